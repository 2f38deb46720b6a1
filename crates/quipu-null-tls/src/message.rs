//! Messages: a type, a length, a few fields, and zeros up to the size of the real one.

use quipu_quic::wire::{EndedEarly, Reader};

/// Which message; the numbers are those of TLS.
/// <https://www.rfc-editor.org/rfc/rfc8446#section-4>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    ClientHello = 1,
    ServerHello = 2,
    SessionTicket = 4,
    EncryptedExtensions = 8,
    Certificate = 11,
    CertificateVerify = 15,
    Finished = 20,
}

/// Bytes of type and length.
const HEADER: usize = 4;

impl Kind {
    pub(crate) fn from_byte(byte: u8) -> Option<Kind> {
        [
            Kind::ClientHello,
            Kind::ServerHello,
            Kind::SessionTicket,
            Kind::EncryptedExtensions,
            Kind::Certificate,
            Kind::CertificateVerify,
            Kind::Finished,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }
}

/// Appends a message of `size` bytes in all, whose body starts with what `fields` appends.
///
/// The sizes of [`crate::flight`] leave room for the fields of every message.
pub(crate) fn put(out: &mut Vec<u8>, kind: Kind, size: usize, fields: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    // Sizes are below 2^24: parameters are checked at the start, chains in the configuration.
    let [_, a, b, c] = ((size - HEADER) as u32).to_be_bytes();
    out.extend_from_slice(&[kind as u8, a, b, c]);
    fields(out);
    debug_assert!(out.len() <= start + size, "{kind:?} has no room for its fields");
    out.resize(start + size, 0);
}

/// Appends a two-byte length and the bytes; there are at most 65,535.
pub(crate) fn put_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Takes a two-byte length and as many bytes.
pub(crate) fn prefixed<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], EndedEarly> {
    let length = reader.u16()?;
    reader.bytes(usize::from(length))
}

/// The handshake bytes of the peer, until they make whole messages; a message announces at most
/// 2^24 bytes.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    taken: usize,
}

impl Inbox {
    /// Takes bytes in order.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message, header included, and its type byte.
    pub(crate) fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let message = first(self.bytes.get(self.taken..)?)?;
        let (kind, message) = (*message.first()?, message.to_vec());
        self.taken += message.len();
        if !self.is_partial() {
            *self = Inbox::default();
        }
        Some((kind, message))
    }

    /// True if a message has begun and not ended.
    pub(crate) fn is_partial(&self) -> bool {
        self.taken < self.bytes.len()
    }
}

/// The first message of some bytes, header included, if it is whole.
pub(crate) fn first(bytes: &[u8]) -> Option<&[u8]> {
    let &[_, a, b, c] = bytes.first_chunk::<HEADER>()?;
    bytes.get(..HEADER + u32::from_be_bytes([0, a, b, c]) as usize)
}

/// The fields of a message, behind its header.
pub(crate) fn body(message: &[u8]) -> Reader<'_> {
    Reader::new(message.get(HEADER..).unwrap_or_default())
}
