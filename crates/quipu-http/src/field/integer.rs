//! Integers that share their first octet with other bits.
//! <https://www.rfc-editor.org/rfc/rfc7541#section-5.1>

use thiserror::Error;

/// The largest value that is read: 2^62 - 1, the limit of QPACK; more than HPACK ever needs.
// https://www.rfc-editor.org/rfc/rfc9204#section-4.1.1
//# QPACK implementations MUST be able to decode integers up to and including 62 bits long.
pub const MAX: u64 = (1 << 62) - 1;

/// Why no integer could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IntegerError {
    /// The input ended inside the integer.
    #[error("the input ends inside an integer")]
    Truncated,
    /// The integer is larger than [`MAX`], or has more octets than such an integer needs.
    #[error("an integer is larger than 2^62 - 1 or padded with needless octets")]
    TooLarge,
}

/// Appends `value` to `out`: its first octet has `prefix` (1 to 8) low bits for the value, and the
/// bits of `flags`, which must lie above them.
pub fn encode(prefix: u32, flags: u8, value: u64, out: &mut Vec<u8>) {
    debug_assert!((1..=8).contains(&prefix));
    let full = prefix_mask(prefix);
    debug_assert_eq!(flags & full, 0);
    if value < u64::from(full) {
        out.push(flags | low_octet(value));
        return;
    }
    out.push(flags | full);
    let mut rest = value - u64::from(full);
    while rest >= 0x80 {
        out.push(0x80 | low_octet(rest & 0x7f));
        rest >>= 7;
    }
    out.push(low_octet(rest));
}

/// Reads an integer with a prefix of `prefix` (1 to 8) bits from the front of `input`, and moves
/// `input` behind it. The bits above the prefix are ignored.
pub fn decode(prefix: u32, input: &mut &[u8]) -> Result<u64, IntegerError> {
    debug_assert!((1..=8).contains(&prefix));
    let full = prefix_mask(prefix);
    let first = next_octet(input)? & full;
    if first < full {
        return Ok(u64::from(first));
    }
    let mut value = u64::from(full);
    // Nine octets of seven bits hold 63 bits, so that no shift below loses a bit.
    for shift in (0..63).step_by(7) {
        let octet = next_octet(input)?;
        value = value
            .checked_add(u64::from(octet & 0x7f) << shift)
            // https://www.rfc-editor.org/rfc/rfc7541#section-5.1
            //# Integer encodings that exceed implementation limits -- in value or octet length --
            //# MUST be treated as decoding errors.
            .filter(|&value| value <= MAX)
            .ok_or(IntegerError::TooLarge)?;
        if octet & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(IntegerError::TooLarge)
}

const fn prefix_mask(prefix: u32) -> u8 {
    0xff >> (8 - prefix)
}

/// The value is below 256 at every call.
const fn low_octet(value: u64) -> u8 {
    (value & 0xff) as u8
}

fn next_octet(input: &mut &[u8]) -> Result<u8, IntegerError> {
    let (&octet, rest) = input.split_first().ok_or(IntegerError::Truncated)?;
    *input = rest;
    Ok(octet)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(prefix: u32, flags: u8, value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        encode(prefix, flags, value, &mut out);
        out
    }

    /// <https://www.rfc-editor.org/rfc/rfc7541#appendix-C.1>
    #[test]
    fn examples_of_the_rfc() {
        for (prefix, value, octets) in [
            (5, 10, &[0x0a][..]),
            (5, 1337, &[0x1f, 0x9a, 0x0a][..]),
            (8, 42, &[0x2a][..]),
            (5, 31, &[0x1f, 0x00][..]),
        ] {
            assert_eq!(encoded(prefix, 0, value), octets);
            let mut input = octets;
            assert_eq!(decode(prefix, &mut input), Ok(value));
            assert!(input.is_empty());
        }
    }

    #[test]
    fn needless_octets_are_bounded() {
        let mut input = &[0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00][..];
        assert_eq!(decode(7, &mut input), Err(IntegerError::TooLarge));
    }

    #[test]
    fn an_integer_above_62_bits_is_an_error() {
        let mut octets = encoded(7, 0x80, MAX);
        assert_eq!(decode(7, &mut octets.as_slice()), Ok(MAX));
        octets = encoded(7, 0x80, MAX + 1);
        assert_eq!(decode(7, &mut octets.as_slice()), Err(IntegerError::TooLarge));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(prefix in 1_u32..=8, value in 0..=MAX, tail in any::<u8>()) {
            let mut octets = encoded(prefix, 0, value);
            for cut in 0..octets.len() {
                prop_assert_eq!(decode(prefix, &mut &octets[..cut]), Err(IntegerError::Truncated));
            }
            octets.push(tail);
            let mut input = octets.as_slice();
            prop_assert_eq!(decode(prefix, &mut input), Ok(value));
            prop_assert_eq!(input, &[tail][..]);
        }
    }
}
