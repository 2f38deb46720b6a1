//! Reading headers: what lies open before header protection is removed.

use std::ops::Range;

use thiserror::Error;

use super::{FIXED_BIT, LONG_FORM, PacketKind, RETRY_TAG_LENGTH, Version, type_bits};
use crate::wire::{ConnectionId, EndedEarly, Reader};

/// Why the bytes are no packet of QUIC v1 or v2. Such bytes are dropped; they never close a connection.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-12.2>
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The bytes end within the header.
    #[error("the header ended early")]
    EndedEarly,
    /// A connection ID of QUIC v1 or v2 has more than 20 bytes.
    #[error("connection ID of {0} bytes, expected at most 20")]
    ConnectionIdTooLong(usize),
    /// The Length field reaches beyond the datagram.
    #[error("length {length} reaches beyond the {available} bytes of the datagram")]
    LengthBeyondDatagram {
        /// What the field says, in bytes.
        length: u64,
        /// What the datagram still holds, in bytes.
        available: usize,
    },
    /// A Version Negotiation packet lists no version, or a part of one.
    #[error("version list of {0} bytes, expected a multiple of 4 above 0")]
    VersionList(usize),
}

impl From<EndedEarly> for HeaderError {
    fn from(_: EndedEarly) -> Self {
        HeaderError::EndedEarly
    }
}

/// The next packet of a datagram, as far as it can be read without keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A packet of QUIC v1 or v2 that carries frames.
    Protected(PartialHeader),
    /// A Retry packet, which takes the rest of the datagram.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5>
    Retry {
        /// The fixed bit: see [`PartialHeader::fixed_bit`].
        fixed_bit: bool,
        /// What its header says.
        version: Version,
        /// Connection ID of its receiver.
        dcid: ConnectionId,
        /// Connection ID that the server wants to be called by.
        scid: ConnectionId,
        /// What the client has to repeat; may be empty, which a client drops.
        token: &'a [u8],
        /// The packet without its tag: what the tag protects.
        protected: &'a [u8],
        /// The integrity tag.
        tag: [u8; RETRY_TAG_LENGTH],
    },
    /// A Version Negotiation packet, which takes the rest of the datagram.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1>
    VersionNegotiation {
        /// Connection ID of its receiver, 0 to 255 bytes.
        dcid: &'a [u8],
        /// Connection ID of its sender, 0 to 255 bytes.
        scid: &'a [u8],
        /// The versions, four bytes each in network byte order, at least one.
        versions: &'a [u8],
    },
    /// A long header of a version that this crate does not speak; it takes the rest of the
    /// datagram. <https://www.rfc-editor.org/rfc/rfc8999#section-5.1>
    UnknownVersion {
        /// What it says.
        version: Version,
        /// Connection ID of its receiver, 0 to 255 bytes.
        dcid: &'a [u8],
        /// Connection ID of its sender, 0 to 255 bytes.
        scid: &'a [u8],
    },
}

/// The header of a packet that carries frames, before header protection is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialHeader {
    /// Which packet.
    pub kind: PacketKind,
    /// The fixed bit, which RFC 9287 calls the QUIC bit: a packet in which it is zero is invalid
    /// unless its receiver sent the transport parameter `grease_quic_bit`.
    pub fixed_bit: bool,
    /// What a long header says; `None` in a short header, which names no version.
    pub version: Option<Version>,
    /// Connection ID of its receiver.
    pub dcid: ConnectionId,
    /// Connection ID of its sender; empty in a short header, which has none.
    pub scid: ConnectionId,
    /// Where an Initial packet's token lies, counted from the packet's first byte; empty if none.
    pub token: Range<usize>,
    /// Where the packet number begins, counted from the packet's first byte.
    pub packet_number_at: usize,
    /// Bytes of the packet: the datagram's next packet begins there.
    pub packet_length: usize,
}

impl<'a> Packet<'a> {
    /// Reads the packet at the start of `datagram`.
    ///
    /// `short_cid_length` is the length in bytes of the connection IDs that this endpoint issues,
    /// 0 to 20: a short header does not tell it.
    ///
    /// After [`Packet::Protected`], call again with the bytes from
    /// [`PartialHeader::packet_length`] on, until none are left; the rest of the datagram is lost
    /// with an error. <https://www.rfc-editor.org/rfc/rfc9000#section-12.2>
    pub fn parse(datagram: &'a [u8], short_cid_length: usize) -> Result<Self, HeaderError> {
        let mut reader = Reader::new(datagram);
        let first = reader.u8()?;
        if first & LONG_FORM != 0 {
            return parse_long(datagram, first, reader);
        }
        let dcid = connection_id(reader.bytes(short_cid_length)?)?;
        Ok(Packet::Protected(PartialHeader {
            kind: PacketKind::OneRtt,
            fixed_bit: first & FIXED_BIT != 0,
            version: None,
            dcid,
            scid: ConnectionId::EMPTY,
            token: 0..0,
            packet_number_at: datagram.len() - reader.remaining(),
            packet_length: datagram.len(),
        }))
    }

    /// The versions listed by a Version Negotiation packet; none for any other packet.
    pub fn versions(&self) -> impl Iterator<Item = Version> + '_ {
        let list = match self {
            Packet::VersionNegotiation { versions, .. } => versions,
            _ => &[][..],
        };
        list.as_chunks::<4>().0.iter().map(|version| Version(u32::from_be_bytes(*version)))
    }
}

fn connection_id(bytes: &[u8]) -> Result<ConnectionId, HeaderError> {
    ConnectionId::new(bytes).ok_or(HeaderError::ConnectionIdTooLong(bytes.len()))
}

fn parse_long<'a>(
    datagram: &'a [u8],
    first: u8,
    mut reader: Reader<'a>,
) -> Result<Packet<'a>, HeaderError> {
    let version = Version(reader.u32()?);
    let dcid_length = usize::from(reader.u8()?);
    let dcid = reader.bytes(dcid_length)?;
    let scid_length = usize::from(reader.u8()?);
    let scid = reader.bytes(scid_length)?;
    // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
    //# Clients MUST ignore the value of this field.
    if version == Version::NEGOTIATION {
        let versions = reader.take_rest();
        if versions.is_empty() || !versions.len().is_multiple_of(4) {
            return Err(HeaderError::VersionList(versions.len()));
        }
        return Ok(Packet::VersionNegotiation { dcid, scid, versions });
    }
    // https://www.rfc-editor.org/rfc/rfc9000#section-17.2
    //# In order to properly form a Version Negotiation packet, servers SHOULD be able to read
    //# longer connection IDs from other QUIC versions.
    // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
    //# Version-specific rules for the connection ID therefore MUST NOT influence a decision about
    //# whether to send a Version Negotiation packet.
    if !version.is_known() {
        return Ok(Packet::UnknownVersion { version, dcid, scid });
    }
    let fixed_bit = first & FIXED_BIT != 0;
    // https://www.rfc-editor.org/rfc/rfc9000#section-17.2
    //# Endpoints that receive a version 1 long header with a value larger than 20 MUST drop the
    //# packet.
    let (dcid, scid) = (connection_id(dcid)?, connection_id(scid)?);
    let at = |reader: &Reader<'_>| datagram.len() - reader.remaining();
    let mut token = 0..0;
    let is = |of_v1| first >> 4 & 0b11 == version.type_bits(of_v1);
    let kind = if is(type_bits::INITIAL) {
        let bytes = reader.length_prefixed()?;
        token = at(&reader) - bytes.len()..at(&reader);
        PacketKind::Initial
    } else if is(type_bits::ZERO_RTT) {
        PacketKind::ZeroRtt
    } else if is(type_bits::HANDSHAKE) {
        PacketKind::Handshake
    } else {
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5
        //# The value in the Unused field is set to an arbitrary value by the server; a client
        //# MUST ignore these bits.
        return parse_retry(datagram, (fixed_bit, version), (dcid, scid), reader);
    };
    let length = reader.varint()?;
    let available = reader.remaining();
    let packet_number_at = at(&reader);
    match usize::try_from(length) {
        Ok(length) if length <= available => Ok(Packet::Protected(PartialHeader {
            kind,
            fixed_bit,
            version: Some(version),
            dcid,
            scid,
            token,
            packet_number_at,
            packet_length: packet_number_at + length,
        })),
        _ => Err(HeaderError::LengthBeyondDatagram { length, available }),
    }
}

fn parse_retry<'a>(
    datagram: &'a [u8],
    (fixed_bit, version): (bool, Version),
    (dcid, scid): (ConnectionId, ConnectionId),
    mut reader: Reader<'a>,
) -> Result<Packet<'a>, HeaderError> {
    let (protected, &tag) =
        datagram.split_last_chunk::<RETRY_TAG_LENGTH>().ok_or(HeaderError::EndedEarly)?;
    let token_length =
        reader.remaining().checked_sub(RETRY_TAG_LENGTH).ok_or(HeaderError::EndedEarly)?;
    let token = reader.bytes(token_length)?;
    Ok(Packet::Retry { fixed_bit, version, dcid, scid, token, protected, tag })
}
