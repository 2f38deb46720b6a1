//! 32 bytes as text.

/// 64 hexadecimal digits.
pub(super) fn write(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads them, with or without colons.
pub(super) fn read(text: &str) -> Option<[u8; 32]> {
    let mut digits = text.chars().filter(|sign| *sign != ':').map(|sign| sign.to_digit(16));
    let mut bytes = [0; 32];
    for byte in &mut bytes {
        let (high, low) = (digits.next()??, digits.next()??);
        *byte = u8::try_from(high << 4 | low).ok()?;
    }
    digits.next().is_none().then_some(bytes)
}
