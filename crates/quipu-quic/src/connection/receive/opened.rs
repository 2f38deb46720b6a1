//! A packet that opened: the peer sealed it, whoever sent it here, and however often.

use quipu_base::{Instant, PacketNumber, PathId};

use super::frames::PacketFrames;
use super::{Arrival, Origin};
use crate::connection::{Connection, EndpointEvent, Space};
use crate::error::TransportError;
use crate::recorder::DropReason;
use crate::wire::{PacketKind, PartialHeader};

/// A packet that the peer sealed. It may be a copy of one that came before, and its path may be
/// new, or gone.
pub(in crate::connection) struct OpenedPacket<'p> {
    pub(super) origin: &'p Origin,
    pub(in crate::connection) header: &'p PartialHeader,
    pub(in crate::connection) path: PathId,
    pub(in crate::connection) number: PacketNumber,
    pub(in crate::connection) payload: &'p [u8],
    /// The reserved bits of its header are zero.
    pub(super) reserved_bits_clear: bool,
    /// It opened with the keys of the phase before.
    pub(super) old_keys: bool,
}

impl OpenedPacket<'_> {
    pub(in crate::connection) fn arrival(&self) -> &Arrival {
        &self.origin.arrival
    }
}

impl Connection {
    /// Finds space and path of a packet, and sees to it that nothing is applied twice. What is
    /// left is new: its frames may be applied.
    pub(super) fn admit<'p>(
        &mut self,
        now: Instant,
        opened: &OpenedPacket<'p>,
    ) -> Option<PacketFrames<'p>> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.2
        //# An endpoint MUST treat receipt of a packet that has a non-zero value for these bits
        //# after removing both packet and header protection as a connection error of type
        //# PROTOCOL_VIOLATION.
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.3.1
        //# An endpoint MUST treat receipt of a packet that has a non-zero value for these bits,
        //# after removing both packet and header protection, as a connection error of type
        //# PROTOCOL_VIOLATION.
        if !opened.reserved_bits_clear {
            self.fault(now, TransportError::protocol_violation("reserved bits are set"));
            return None;
        }
        let drop = |connection: &mut Self, reason| {
            let (kind, size) = (Some(opened.header.kind), opened.header.packet_length);
            connection.record_dropped(now, kind, opened.path, size, reason);
        };
        let space = match self.space_of(now, opened) {
            Ok(Some(space)) => space,
            Ok(None) => {
                drop(self, DropReason::NoPath);
                return None;
            }
            Err(error) => {
                self.fault(now, error);
                return None;
            }
        };
        // https://www.rfc-editor.org/rfc/rfc9000#section-12.3
        //# A receiver MUST discard a newly unprotected packet unless it is certain that it has
        //# not processed another packet with the same packet number from the same packet number
        //# space. Duplicate suppression MUST happen after removing packet protection for the
        //# reasons described in Section 9.5 of [QUIC-TLS].
        let packets = self.packets_mut(space);
        if packets.is_none_or(|packets| packets.received.is_duplicate(opened.number)) {
            drop(self, DropReason::Duplicate);
            return None;
        }
        self.record_received(now, opened);
        if let Err(error) = self.on_authentic(now, space, opened.header) {
            self.fault(now, error);
            return None;
        }
        let key = self.shared.paths.get(space.slot())?.key;
        Some(PacketFrames::new(
            (space, opened.number),
            (opened.header, opened.old_keys),
            (key, opened.origin),
            opened.payload,
        ))
    }

    /// The space of a packet; a server takes a new path. `None`: its path is gone.
    fn space_of(
        &mut self,
        now: Instant,
        opened: &OpenedPacket<'_>,
    ) -> Result<Option<Space>, TransportError> {
        match opened.header.kind {
            PacketKind::Initial => return Ok(Some(Space::Initial)),
            PacketKind::Handshake => return Ok(Some(Space::Handshake)),
            // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.3
            // 0-RTT packets share the packet number space of 1-RTT packets, on the first path.
            PacketKind::ZeroRtt => {
                return Ok(self.shared.paths.slot_of(PathId::ZERO).map(Space::Data));
            }
            PacketKind::OneRtt => {}
        }
        let path = opened.path;
        if let Some(slot) = self.shared.paths.slot_of(path) {
            return Ok(Some(Space::Data(slot)));
        }
        if self.plan.is_over(path) || !self.lifecycle.is_established() {
            return Ok(None);
        }
        let Origin { arrival, datagram, .. } = *opened.origin;
        let slot = self.accept_path(now, path, arrival.route, opened.header.dcid)?;
        // The datagram that opens a path counts towards its amplification limit.
        if let Some((data, view)) = self.shared.paths.pair_mut(slot) {
            data.counters.packets_received += 1;
            data.counters.bytes_received += datagram as u64;
            data.addresses.on_received(&arrival.route, datagram);
            view.amplification_limited = true;
        }
        Ok(Some(Space::Data(slot)))
    }

    /// A packet that is new proved to come from the peer.
    fn on_authentic(
        &mut self,
        now: Instant,
        space: Space,
        header: &PartialHeader,
    ) -> Result<(), TransportError> {
        self.lifecycle.on_received(now);
        if space == Space::Initial && self.role.is_client() {
            self.handshake.on_version(header.version)?;
        }
        match space {
            Space::Initial if self.role.is_client() && !self.handshake.has_heard() => {
                // https://www.rfc-editor.org/rfc/rfc9000#section-7.2
                //# A client MUST change the Destination Connection ID it uses for
                //# sending packets in response to only the first received Initial
                //# or Retry packet.
                self.ids.replace_first_remote(header.scid);
            }
            Space::Handshake if !self.role.is_client() => {
                // https://www.rfc-editor.org/rfc/rfc9000#section-8.1
                //# receipt of a packet protected with Handshake keys confirms that
                //# the peer successfully processed an Initial packet.
                // That went to the address in use, wherever this one comes from.
                if let Some((data, view)) = self.shared.paths.pair_mut(0)
                    && data.addresses.active_mut().prove()
                {
                    view.amplification_limited = false;
                    self.events.tell_endpoint(EndpointEvent::Validated);
                }
                self.discard_space(Space::Initial);
            }
            _ => {}
        }
        Ok(())
    }
}
