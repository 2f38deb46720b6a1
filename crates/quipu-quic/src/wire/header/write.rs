//! Writing headers.

use super::{
    FIXED_BIT, KEY_PHASE_BIT, LONG_FORM, PACKET_NUMBER_LENGTH_BITS, PacketKind, SPIN_BIT, Version,
    type_bits,
};
use crate::wire::{ConnectionId, NoSpace, TruncatedPacketNumber, Writer, varint};

/// Bytes that the Length field of a written long header takes: it is filled in when the packet is
/// sealed, so its size cannot depend on the value. Two bytes hold up to 16,383.
const LENGTH_FIELD: usize = 2;

/// Where the parts of a written header lie, counted from the packet's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderLayout {
    /// Where the two bytes of a long header's Length field are; `None` in a short header.
    pub length_at: Option<usize>,
    /// Where the packet number begins.
    pub packet_number_at: usize,
    /// Bytes of the packet number, 1 to 4.
    pub packet_number_length: usize,
}

impl HeaderLayout {
    /// Bytes of the header, packet number included: the payload begins there.
    pub const fn header_length(&self) -> usize {
        self.packet_number_at + self.packet_number_length
    }

    /// The fewest payload bytes that leave enough ciphertext for the header protection sample;
    /// a shorter payload is padded.
    /// <https://www.rfc-editor.org/rfc/rfc9001#section-5.4.2>
    pub const fn min_payload(&self) -> usize {
        TruncatedPacketNumber::MAX_LENGTH.saturating_sub(self.packet_number_length)
    }
}

/// The kind of a long header that is written, with the field that only an Initial has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongKind<'a> {
    /// An Initial packet.
    Initial {
        /// What a Retry packet or NEW_TOKEN frame gave; empty if none did, and from a server.
        token: &'a [u8],
    },
    /// A 0-RTT packet.
    ZeroRtt,
    /// A Handshake packet.
    Handshake,
}

/// A long header of QUIC v1 or v2 to write.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-17.2>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongHeader<'a> {
    /// Which packet.
    pub kind: LongKind<'a>,
    /// The version that it names, one of [`Version::KNOWN`].
    pub version: Version,
    /// Connection ID of the receiver.
    pub dcid: ConnectionId,
    /// Connection ID of the sender.
    pub scid: ConnectionId,
    /// The packet number.
    pub packet_number: TruncatedPacketNumber,
}

impl LongKind<'_> {
    /// The kind without its field.
    pub const fn packet_kind(&self) -> PacketKind {
        match self {
            LongKind::Initial { .. } => PacketKind::Initial,
            LongKind::ZeroRtt => PacketKind::ZeroRtt,
            LongKind::Handshake => PacketKind::Handshake,
        }
    }
}

impl LongHeader<'_> {
    /// Bytes that the header takes, packet number included.
    pub const fn size(&self) -> usize {
        let token = match self.kind {
            LongKind::Initial { token } => varint::size(token.len() as u64) + token.len(),
            LongKind::ZeroRtt | LongKind::Handshake => 0,
        };
        let connection_ids = 1 + self.dcid.length() + 1 + self.scid.length();
        1 + 4 + connection_ids + token + LENGTH_FIELD + self.packet_number.length()
    }

    /// Writes the header; the Length field stays open until the packet is sealed.
    pub fn write(&self, writer: &mut Writer<'_>) -> Result<HeaderLayout, NoSpace> {
        writer.ensure(self.size())?;
        let start = writer.position();
        let type_bits = self.version.type_bits(match self.kind {
            LongKind::Initial { .. } => type_bits::INITIAL,
            LongKind::ZeroRtt => type_bits::ZERO_RTT,
            LongKind::Handshake => type_bits::HANDSHAKE,
        });
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.2
        //# The value included prior to protection MUST be set to 0.
        let first = LONG_FORM | FIXED_BIT | type_bits << 4 | self.packet_number.length_bits();
        put_long_start(writer, first, self.version, self.dcid.as_bytes(), self.scid.as_bytes())?;
        if let LongKind::Initial { token } = self.kind {
            writer.put_length_prefixed(token)?;
        }
        let length_at = writer.position() - start;
        writer.put_zeros(LENGTH_FIELD)?;
        let packet_number_at = writer.position() - start;
        put_packet_number(writer, self.packet_number)?;
        Ok(HeaderLayout {
            length_at: Some(length_at),
            packet_number_at,
            packet_number_length: self.packet_number.length(),
        })
    }
}

/// A short header to write.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-17.3.1>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortHeader {
    /// Connection ID of the receiver.
    pub dcid: ConnectionId,
    /// The latency spin bit.
    pub spin: bool,
    /// Which of two successive sets of keys seals the packet.
    pub key_phase: bool,
    /// The packet number.
    pub packet_number: TruncatedPacketNumber,
}

impl ShortHeader {
    /// Bytes that the header takes, packet number included.
    pub const fn size(&self) -> usize {
        1 + self.dcid.length() + self.packet_number.length()
    }

    /// Writes the header.
    #[inline]
    pub fn write(&self, writer: &mut Writer<'_>) -> Result<HeaderLayout, NoSpace> {
        writer.ensure(self.size())?;
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.3.1
        //# The value included prior to protection MUST be set to 0.
        let mut first = FIXED_BIT | self.packet_number.length_bits();
        if self.spin {
            first |= SPIN_BIT;
        }
        if self.key_phase {
            first |= KEY_PHASE_BIT;
        }
        writer.put_u8(first)?;
        writer.put_bytes(self.dcid.as_bytes())?;
        put_packet_number(writer, self.packet_number)?;
        Ok(HeaderLayout {
            length_at: None,
            packet_number_at: 1 + self.dcid.length(),
            packet_number_length: self.packet_number.length(),
        })
    }
}

/// Fills in the Length field of a long header, for a packet of `packet_length` bytes in all.
///
/// Fails if the field or the length has no room.
pub(crate) fn set_length(
    packet: &mut [u8],
    layout: &HeaderLayout,
    packet_length: usize,
) -> Result<(), NoSpace> {
    let Some(length_at) = layout.length_at else { return Ok(()) };
    let length = packet_length.checked_sub(layout.packet_number_at).ok_or(NoSpace)?;
    let length = u16::try_from(length).ok().filter(|length| *length < 1 << 14).ok_or(NoSpace)?;
    let field = packet.get_mut(length_at..length_at + LENGTH_FIELD).ok_or(NoSpace)?;
    field.copy_from_slice(&(length | 0x4000).to_be_bytes());
    Ok(())
}

/// Writes a Retry packet without its integrity tag, which the caller computes over what was
/// written and appends.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5>
pub fn write_retry(
    writer: &mut Writer<'_>,
    version: Version,
    dcid: ConnectionId,
    scid: ConnectionId,
    token: &[u8],
) -> Result<(), NoSpace> {
    writer.ensure(1 + 4 + 1 + dcid.length() + 1 + scid.length() + token.len())?;
    let type_bits = version.type_bits(type_bits::RETRY);
    let first = LONG_FORM | FIXED_BIT | type_bits << 4 | PACKET_NUMBER_LENGTH_BITS;
    put_long_start(writer, first, version, dcid.as_bytes(), scid.as_bytes())?;
    writer.put_bytes(token)
}

/// Writes a Version Negotiation packet that answers a packet of an unknown version.
///
/// `dcid` and `scid` are the other packet's `scid` and `dcid`, at most 255 bytes each. `random`
/// fills the first byte's unused bits; its second-highest bit is set, so that the packet is not
/// taken for another protocol's.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1>
pub fn write_version_negotiation(
    writer: &mut Writer<'_>,
    random: u8,
    dcid: &[u8],
    scid: &[u8],
    versions: &[Version],
) -> Result<(), NoSpace> {
    writer.ensure(1 + 4 + 1 + dcid.len() + 1 + scid.len() + 4 * versions.len())?;
    // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
    //# Where QUIC might be multiplexed with other protocols (see [RFC7983]), servers SHOULD set
    //# the most significant bit of this field (0x40) to 1 so that Version Negotiation packets
    //# appear to have the Fixed Bit field. The Version field of a Version Negotiation packet MUST
    //# be set to 0x00000000.
    put_long_start(writer, LONG_FORM | FIXED_BIT | random, Version::NEGOTIATION, dcid, scid)?;
    versions.iter().try_for_each(|version| writer.put_u32(version.0))
}

fn put_long_start(
    writer: &mut Writer<'_>,
    first: u8,
    version: Version,
    dcid: &[u8],
    scid: &[u8],
) -> Result<(), NoSpace> {
    let length = |cid: &[u8]| u8::try_from(cid.len()).map_err(|_| NoSpace);
    let (dcid_length, scid_length) = (length(dcid)?, length(scid)?);
    writer.put_u8(first)?;
    writer.put_u32(version.0)?;
    writer.put_u8(dcid_length)?;
    writer.put_bytes(dcid)?;
    writer.put_u8(scid_length)?;
    writer.put_bytes(scid)
}

#[inline]
fn put_packet_number(
    writer: &mut Writer<'_>,
    number: TruncatedPacketNumber,
) -> Result<(), NoSpace> {
    let [a, b, c, d] = number.bits().to_be_bytes();
    match number.length() {
        1 => writer.put_array([d]),
        2 => writer.put_array([c, d]),
        3 => writer.put_array([b, c, d]),
        _ => writer.put_array([a, b, c, d]),
    }
}
