//! A packet as it came: protected.

use std::net::SocketAddr;

use quipu_base::{PacketNumber, PathId};

use super::Origin;
use super::opened::OpenedPacket;
use crate::connection::handshake::{Handshake, KeptPacket, OpenedPayload, Unopened};
use crate::error::TransportError;
use crate::tls::Level;
use crate::wire::{PacketKind, PartialHeader, ResetToken, Version};

/// A packet as it came. What lies open of its header is all that can be read; nothing shows yet
/// that it is the peer's.
pub(super) struct SealedPacket<'p> {
    origin: &'p Origin,
    header: &'p PartialHeader,
    bytes: &'p mut [u8],
}

/// A packet that does not open: not the peer's, or damaged.
pub(super) struct Unreadable {
    /// Its last bytes, as they came.
    tail: Option<[u8; ResetToken::LENGTH]>,
    /// Who sent it.
    remote: SocketAddr,
    /// The connection closes for it.
    pub(super) fault: Option<TransportError>,
}

impl<'p> SealedPacket<'p> {
    /// `bytes` are the whole packet, and nothing else.
    pub(super) fn new(origin: &'p Origin, header: &'p PartialHeader, bytes: &'p mut [u8]) -> Self {
        SealedPacket { origin, header, bytes }
    }

    pub(super) fn kind(&self) -> PacketKind {
        self.header.kind
    }

    /// What a long header says.
    pub(super) fn version(&self) -> Option<Version> {
        self.header.version
    }

    /// Size of the packet in bytes.
    pub(super) fn size(&self) -> usize {
        self.header.packet_length
    }

    /// Whose keys open it.
    pub(super) fn level(&self) -> Level {
        match self.header.kind {
            PacketKind::Initial => Level::Initial,
            PacketKind::ZeroRtt => Level::ZeroRtt,
            PacketKind::Handshake => Level::Handshake,
            PacketKind::OneRtt => Level::OneRtt,
        }
    }

    /// The path to whose packet number space it belongs.
    pub(super) fn path(&self) -> PathId {
        match self.header.kind {
            PacketKind::OneRtt => self.origin.path,
            _ => PathId::ZERO,
        }
    }

    /// A copy, to be read when its keys come.
    pub(super) fn to_kept(&self, level: Level) -> KeptPacket {
        KeptPacket { origin: *self.origin, level, bytes: self.bytes.to_vec() }
    }

    /// Takes header protection off and opens the payload in place. `expected`: one above the
    /// largest packet number that came in its space.
    pub(super) fn open(
        self,
        level: Level,
        expected: PacketNumber,
        handshake: &mut Handshake,
    ) -> Result<OpenedPacket<'p>, Unreadable> {
        let path = self.path();
        let SealedPacket { origin, header, bytes } = self;
        // What does not open may be overwritten.
        let tail = bytes.last_chunk().copied();
        let unreadable = Unreadable { tail, remote: origin.arrival.route.remote, fault: None };
        let (version, at) = (header.version, header.packet_number_at);
        let Ok(unprotected) = handshake.unprotect(level, version, bytes, at) else {
            return Err(unreadable);
        };
        let number = unprotected.packet_number.expand(expected);
        // https://www.rfc-editor.org/rfc/rfc9001#section-9.5
        //# For authentication to be free from side channels, the entire process of header
        //# protection removal, packet number recovery, and packet protection removal MUST be
        //# applied together without timing and other side channels.
        let opened = handshake.open(level, version, (path, number), &unprotected, bytes);
        let (length, old_keys) = match opened {
            Ok(OpenedPayload { payload, old_keys }) => (payload.len(), old_keys),
            Err(Unopened::Unreadable) => return Err(unreadable),
            Err(Unopened::Fault(error)) => {
                return Err(Unreadable { fault: Some(error), ..unreadable });
            }
        };
        let payload = bytes.get(unprotected.header_length..).and_then(|rest| rest.get(..length));
        let payload = payload.unwrap_or_default();
        let reserved_bits_clear = unprotected.reserved_bits_clear;
        Ok(OpenedPacket { origin, header, path, number, payload, reserved_bits_clear, old_keys })
    }
}

impl Unreadable {
    /// What would be the token if it is a stateless reset, and who sent it.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-10.3.1>
    pub(super) fn reset_token(&self) -> Option<(SocketAddr, &[u8; ResetToken::LENGTH])> {
        self.tail.as_ref().map(|tail| (self.remote, tail))
    }
}
