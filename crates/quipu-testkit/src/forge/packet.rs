//! Packets and datagrams to forge, as plain values.

use std::net::SocketAddr;

use quipu_base::{PacketNumber, PathId};
use quipu_quic::tls::protection;
use quipu_quic::wire::frame::{AckRange, EcnCounts, write_ack};
use quipu_quic::wire::header::{HeaderLayout, LongHeader, LongKind, ShortHeader};
use quipu_quic::wire::{ConnectionId, Frame, PacketKind, TruncatedPacketNumber, Version, Writer};

use super::tap::SharedDirection;

/// Bytes of the tag of every AEAD of QUIC v1.
const TAG: usize = 16;
/// Bits of the first byte that are to be zero, in a long and in a short header.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-17.2>
const RESERVED: [u8; 2] = [0x0c, 0x18];
/// The longest acknowledgement that is forged, in bytes.
const LONGEST_ACK: usize = 60_000;

/// The packet number of a forged packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Number {
    /// One above the largest so far of the space.
    #[default]
    Next,
    /// So many further than the next.
    Skip(u64),
    /// This one, used before or not.
    Exact(u64),
}

/// A packet to forge: what is not set is as an honest peer would have it.
#[derive(Clone, Debug)]
pub struct Forgery {
    pub(super) kind: PacketKind,
    pub(super) path: PathId,
    pub(super) number: Number,
    pub(super) number_length: usize,
    pub(super) phase: Option<usize>,
    pub(super) flip_phase: bool,
    pub(super) reserved: bool,
    pub(super) clear: bool,
    pub(super) spin: bool,
    pub(super) dcid: Option<ConnectionId>,
    pub(super) scid: Option<ConnectionId>,
    pub(super) token: Vec<u8>,
    pub(super) payload: Vec<u8>,
    pub(super) size: usize,
}

/// A 1-RTT packet of path 0.
pub fn one_rtt() -> Forgery {
    Forgery::new(PacketKind::OneRtt)
}

/// An Initial packet.
pub fn initial() -> Forgery {
    Forgery::new(PacketKind::Initial)
}

/// A Handshake packet.
pub fn handshake() -> Forgery {
    Forgery::new(PacketKind::Handshake)
}

impl Forgery {
    /// A packet of that kind without frames.
    pub fn new(kind: PacketKind) -> Self {
        Forgery {
            kind,
            path: PathId::ZERO,
            number: Number::Next,
            number_length: TruncatedPacketNumber::MAX_LENGTH,
            phase: None,
            flip_phase: false,
            reserved: false,
            clear: false,
            spin: false,
            dcid: None,
            scid: None,
            token: Vec::new(),
            payload: Vec::new(),
            size: 0,
        }
    }

    /// A 1-RTT packet in the number space of that path, with a connection ID of that path.
    #[must_use]
    pub fn on(self, path: u32) -> Self {
        Forgery { path: PathId(path), ..self }
    }

    /// With this packet number.
    #[must_use]
    pub fn numbered(self, number: Number) -> Self {
        Forgery { number, ..self }
    }

    /// With a packet number field of so many bytes, 1 to 4.
    #[must_use]
    pub fn number_length(self, length: usize) -> Self {
        Forgery { number_length: length, ..self }
    }

    /// Sealed with the keys of that key phase, counted from zero, and with its bit.
    #[must_use]
    pub fn phase(self, phase: usize) -> Self {
        Forgery { phase: Some(phase), ..self }
    }

    /// The key phase bit is the other one, whatever keys seal the packet.
    #[must_use]
    pub fn with_wrong_phase_bit(self) -> Self {
        Forgery { flip_phase: true, ..self }
    }

    /// The QUIC bit is zero.
    #[must_use]
    pub fn without_quic_bit(self) -> Self {
        Forgery { clear: true, ..self }
    }

    /// The reserved bits are set.
    #[must_use]
    pub fn with_reserved_bits(self) -> Self {
        Forgery { reserved: true, ..self }
    }

    /// To this connection ID.
    #[must_use]
    pub fn to(self, dcid: ConnectionId) -> Self {
        Forgery { dcid: Some(dcid), ..self }
    }

    /// From this connection ID, in a long header.
    #[must_use]
    pub fn by(self, scid: ConnectionId) -> Self {
        Forgery { scid: Some(scid), ..self }
    }

    /// An Initial packet with this token.
    #[must_use]
    pub fn with_token(self, token: &[u8]) -> Self {
        Forgery { token: token.to_vec(), ..self }
    }

    /// One more frame.
    #[must_use]
    pub fn frame(mut self, frame: Frame<'_>) -> Self {
        let at = self.payload.len();
        self.payload.resize(at + frame.size(), 0);
        let mut writer = Writer::new(&mut self.payload[at..]);
        frame.write(&mut writer).expect("a frame takes as many bytes as it says");
        self
    }

    /// More frames.
    #[must_use]
    pub fn frames<'a>(self, frames: impl IntoIterator<Item = Frame<'a>>) -> Self {
        frames.into_iter().fold(self, Forgery::frame)
    }

    /// An acknowledgement of these packet numbers, first and last of each range, the largest
    /// range first; of path 0 as ACK if `path` is `None`.
    #[must_use]
    pub fn ack(self, path: Option<u32>, ranges: &[(u64, u64)]) -> Self {
        self.ack_with(path, 0, ranges, None)
    }

    /// The same with a delay, in units of the exponent, and ECN counts.
    #[must_use]
    pub fn ack_with(
        mut self,
        path: Option<u32>,
        delay: u64,
        ranges: &[(u64, u64)],
        ecn: Option<EcnCounts>,
    ) -> Self {
        let mut buffer = vec![0; LONGEST_ACK];
        let mut writer = Writer::new(&mut buffer);
        let ranges = ranges
            .iter()
            .map(|&(first, last)| AckRange::new(PacketNumber(first), PacketNumber(last)));
        let path = path.map(PathId);
        write_ack(&mut writer, path, delay, ranges, ecn).expect("the first range has room");
        self.payload.extend_from_slice(writer.written());
        self
    }

    /// These bytes where a frame could be.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.payload.extend_from_slice(bytes);
        self
    }

    /// With PADDING behind its frames, so that the packet has at least `size` bytes.
    #[must_use]
    pub fn padded(self, size: usize) -> Self {
        Forgery { size, ..self }
    }

    /// Bytes of frames so far.
    pub fn payload_length(&self) -> usize {
        self.payload.len()
    }

    /// The packet as it goes on the wire.
    pub(super) fn seal(
        &self,
        ids: (ConnectionId, ConnectionId),
        number: PacketNumber,
        phase: usize,
        keys: &SharedDirection,
    ) -> Vec<u8> {
        let field = TruncatedPacketNumber::with_length(number, self.number_length);
        let mut packet = vec![0; 64 + ids.0.length() + ids.1.length() + self.token.len()];
        let mut writer = Writer::new(&mut packet);
        let layout = self.write_header(ids, field, phase, &mut writer);
        let header = layout.header_length();
        packet.truncate(header);
        if self.reserved {
            packet[0] |= RESERVED[usize::from(packet[0] & 0x80 == 0)];
        }
        if self.clear {
            packet[0] &= !0x40;
        }
        packet.extend_from_slice(&self.payload);
        let least = header + self.payload.len().max(layout.min_payload()) + TAG;
        packet.resize(least.max(self.size), 0);
        protection::seal(&mut packet, &layout, self.path, number, &keys.to_keys())
            .expect("header, payload and tag have room");
        packet
    }

    fn write_header(
        &self,
        (dcid, scid): (ConnectionId, ConnectionId),
        packet_number: TruncatedPacketNumber,
        phase: usize,
        writer: &mut Writer<'_>,
    ) -> HeaderLayout {
        let kind = match self.kind {
            PacketKind::Initial => LongKind::Initial { token: &self.token },
            PacketKind::ZeroRtt => LongKind::ZeroRtt,
            PacketKind::Handshake => LongKind::Handshake,
            PacketKind::OneRtt => {
                let key_phase = (phase % 2 == 1) != self.flip_phase;
                let header = ShortHeader { dcid, spin: self.spin, key_phase, packet_number };
                return header.write(writer).expect("a header has room");
            }
        };
        LongHeader { kind, version: Version::V1, dcid, scid, packet_number }
            .write(writer)
            .expect("a header has room")
    }
}

/// A datagram to send.
#[derive(Clone, Debug, Default)]
pub struct Datagram {
    pub(super) packets: Vec<Forgery>,
    pub(super) tail: Vec<u8>,
    pub(super) from: Option<SocketAddr>,
    pub(super) to: Option<SocketAddr>,
    pub(super) ecn: u8,
}

/// A datagram of these packets, one behind the other.
pub fn datagram(packets: impl IntoIterator<Item = Forgery>) -> Datagram {
    Datagram { packets: packets.into_iter().collect(), ..Datagram::default() }
}

/// A datagram of these bytes.
pub fn raw(bytes: &[u8]) -> Datagram {
    Datagram { tail: bytes.to_vec(), ..Datagram::default() }
}

impl From<Forgery> for Datagram {
    fn from(packet: Forgery) -> Self {
        datagram([packet])
    }
}

impl Forgery {
    /// A datagram of this packet that says it comes from `address`.
    #[must_use]
    pub fn sent_from(self, address: SocketAddr) -> Datagram {
        datagram([self]).sent_from(address)
    }
}

impl Datagram {
    /// Says that it comes from `address`.
    #[must_use]
    pub fn sent_from(self, address: SocketAddr) -> Self {
        Datagram { from: Some(address), ..self }
    }

    /// Goes to another address than the victim's first.
    #[must_use]
    pub fn sent_to(self, address: SocketAddr) -> Self {
        Datagram { to: Some(address), ..self }
    }

    /// With these ECN bits.
    #[must_use]
    pub fn marked(self, ecn: u8) -> Self {
        Datagram { ecn, ..self }
    }

    /// With these bytes behind its packets.
    #[must_use]
    pub fn followed_by(mut self, bytes: &[u8]) -> Self {
        self.tail.extend_from_slice(bytes);
        self
    }
}
