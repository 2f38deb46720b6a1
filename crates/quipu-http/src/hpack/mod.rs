//! HPACK, the field compression of HTTP/2: RFC 7541.
//!
//! [`Encoder`] and [`Decoder`] each hold one direction's dynamic table and turn a
//! [`FieldList`](crate::field::FieldList) into a header block and back. Everything that the peer
//! can make grow is bounded by the constructor's arguments.

mod decoder;
mod encoder;
mod static_table;
#[cfg(test)]
mod tests;

pub use decoder::{DecodeError, Decoder, Outcome};
pub use encoder::Encoder;

/// Size in octets that a dynamic table may have before any setting is exchanged.
/// <https://www.rfc-editor.org/rfc/rfc7540#section-6.5.2>
pub const DEFAULT_TABLE_SIZE: u32 = 4096;

/// First octets of the representations.
/// <https://www.rfc-editor.org/rfc/rfc7541#section-6>
mod representation {
    pub(super) const INDEXED: u8 = 0x80;
    pub(super) const INDEXED_PREFIX: u32 = 7;
    pub(super) const LITERAL_INDEXING: u8 = 0x40;
    pub(super) const LITERAL_INDEXING_PREFIX: u32 = 6;
    pub(super) const TABLE_SIZE: u8 = 0x20;
    pub(super) const TABLE_SIZE_PREFIX: u32 = 5;
    pub(super) const LITERAL_NEVER_INDEXED: u8 = 0x10;
    pub(super) const LITERAL_PLAIN: u8 = 0x00;
    pub(super) const LITERAL_PREFIX: u32 = 4;
    /// Length prefix of strings.
    pub(super) const STRING_PREFIX: u32 = 7;
}
