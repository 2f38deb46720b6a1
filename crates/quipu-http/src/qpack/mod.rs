//! QPACK, the field compression of HTTP/3: RFC 9204.
//!
//! Each end of a connection has an [`Encoder`] for the field sections that it sends and a [`Decoder`]
//! for those that it receives. Field sections travel on the streams of their messages. What keeps the
//! tables of both ends equal travels on two more streams in each direction: the encoder stream
//! carries insertions into the table, and the decoder stream of the other end acknowledges them. All
//! of these are octets in and octets out here; the streams themselves belong to the caller.
//!
//! Sections may arrive before the insertions that they need. [`Decoder::decode`] then answers
//! [`Outcome::Blocked`], and [`Decoder::poll_unblocked`] names the stream later.
//!
//! Everything that the peer can make grow is bounded: tables by the arguments of the constructors,
//! unfinished instructions by the tables, blocked streams by their limit, and unacknowledged sections
//! by a number after which the encoder stops using its table. The caller bounds the length of the
//! sections that it passes on.

mod blocked;
mod decoder;
mod encoder;
mod instruction;
mod outstanding;
mod prefix;
mod static_table;
#[cfg(test)]
mod tests;

pub use decoder::{DecodeError, Decoder, EncoderStreamError, Outcome};
pub use encoder::{DecoderStreamError, Encoder};

/// First octets of the field line representations.
/// <https://www.rfc-editor.org/rfc/rfc9204#section-4.5>
mod representation {
    pub(super) const INDEXED: u8 = 0x80;
    pub(super) const INDEXED_STATIC: u8 = 0x40;
    pub(super) const INDEXED_PREFIX: u32 = 6;
    pub(super) const NAMED: u8 = 0x40;
    pub(super) const NAMED_NEVER_INDEXED: u8 = 0x20;
    pub(super) const NAMED_STATIC: u8 = 0x10;
    pub(super) const NAMED_PREFIX: u32 = 4;
    pub(super) const LITERAL: u8 = 0x20;
    pub(super) const LITERAL_NEVER_INDEXED: u8 = 0x10;
    /// Length prefix of the name.
    pub(super) const LITERAL_PREFIX: u32 = 3;
    pub(super) const POST_BASE_INDEXED: u8 = 0x10;
    pub(super) const POST_BASE_INDEXED_PREFIX: u32 = 4;
    pub(super) const POST_BASE_NAMED_NEVER_INDEXED: u8 = 0x08;
    pub(super) const POST_BASE_NAMED_PREFIX: u32 = 3;
    /// Length prefix of strings that begin an octet.
    pub(super) const STRING_PREFIX: u32 = 7;
}
