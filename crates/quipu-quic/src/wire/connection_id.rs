//! Connection IDs and the tokens that reset a connection without its state.

use std::fmt;

use crate::constant_time;

/// A connection ID: 0 to 20 bytes, held inline.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-5.1>
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    length: u8,
    // Bytes beyond the length are zero, so that the derived comparison is right.
    bytes: [u8; ConnectionId::MAX_LENGTH],
}

impl ConnectionId {
    /// The longest connection ID of QUIC v1, in bytes.
    // https://www.rfc-editor.org/rfc/rfc9000#section-17.2
    //# In QUIC version 1, this value MUST NOT exceed 20 bytes.
    pub const MAX_LENGTH: usize = 20;

    /// The connection ID of no bytes.
    pub const EMPTY: ConnectionId = ConnectionId { length: 0, bytes: [0; Self::MAX_LENGTH] };

    /// From 0 to 20 bytes; `None` for more.
    pub fn new(from: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MAX_LENGTH];
        bytes.get_mut(..from.len())?.copy_from_slice(from);
        Some(ConnectionId { length: u8::try_from(from.len()).ok()?, bytes })
    }

    /// Number of bytes, 0 to 20.
    pub const fn length(&self) -> usize {
        self.length as usize
    }

    /// True if it has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length()).unwrap_or_default()
    }
}

impl AsRef<[u8]> for ConnectionId {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl fmt::Display for ConnectionId {
    /// Lower-case hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionId({self})")
    }
}

/// The 16 bytes that tell a peer that the connection's state was lost.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-10.3>
#[derive(Clone, Copy, Eq)]
pub struct ResetToken([u8; ResetToken::LENGTH]);

impl ResetToken {
    /// Length of a token in bytes.
    pub const LENGTH: usize = 16;

    /// A token of these bytes.
    pub const fn new(bytes: [u8; ResetToken::LENGTH]) -> Self {
        ResetToken(bytes)
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; ResetToken::LENGTH] {
        &self.0
    }
}

impl PartialEq for ResetToken {
    /// Takes the same time wherever the tokens differ.
    fn eq(&self, other: &Self) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.3.1
        //# When comparing a datagram to stateless reset token values, endpoints MUST perform the
        //# comparison without leaking information about the value of the token.
        constant_time::equal(&self.0, &other.0)
    }
}

impl fmt::Debug for ResetToken {
    /// The bytes are a secret of the two ends and are not printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetToken(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_id_holds_at_most_twenty_bytes() {
        assert_eq!(ConnectionId::new(&[7; 20]).unwrap().as_bytes(), &[7; 20]);
        assert_eq!(ConnectionId::new(&[7; 21]), None);
        assert_eq!(ConnectionId::new(&[]), Some(ConnectionId::EMPTY));
        assert_ne!(ConnectionId::new(&[0]), ConnectionId::new(&[0, 0]));
        assert_eq!(ConnectionId::new(&[0x0a, 0xff]).unwrap().to_string(), "0aff");
    }

    #[test]
    fn reset_tokens_differ_if_one_bit_does() {
        let mut bytes = [1; 16];
        let token = ResetToken::new(bytes);
        assert_eq!(token, ResetToken::new(bytes));
        bytes[15] ^= 0x80;
        assert_ne!(token, ResetToken::new(bytes));
    }
}
