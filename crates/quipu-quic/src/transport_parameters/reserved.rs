//! A transport parameter without meaning.

use super::ParameterId;

/// A parameter of a reserved number, whose receiver ignores it, and a version that nobody speaks.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-18.1>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedParameter {
    /// Its number: 27 and a multiple of 31.
    pub id: ParameterId,
    /// Its value is the beginning of this.
    pub value: [u8; 7],
    /// Bytes of the value, at most seven.
    pub length: usize,
    /// A reserved version: 0x?a?a?a?a. <https://www.rfc-editor.org/rfc/rfc9000#section-15>
    pub version: u32,
}

impl ReservedParameter {
    /// The value.
    pub fn value(&self) -> &[u8] {
        self.value.get(..self.length).unwrap_or(&self.value)
    }
}
