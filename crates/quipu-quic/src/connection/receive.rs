//! Datagrams in: packets found, opened, and their frames read.

use quipu_base::{Instant, PacketNumber, PathId};

use super::frames::FrameSummary;
use super::handshake::{KeptPacket, Readable};
use super::record::OpenedPacket;
use super::{CloseReason, Connection, Space};
use crate::error::TransportError;
use crate::outbox::Route;
use crate::recorder::{DropReason, Event};
use crate::recovery::AckSettings;
use crate::wire::header::Packet;
use crate::wire::{PacketKind, PartialHeader, Version};

/// How a datagram came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Our address and the peer's.
    pub route: Route,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
}

impl Connection {
    /// A datagram for this connection came. `path` is that of its connection ID. It is opened in
    /// place.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        arrival: Arrival,
        path: PathId,
        datagram: &mut [u8],
    ) {
        self.rest.end();
        if self.lifecycle.is_closing() {
            self.lifecycle.on_packet_while_closing();
        }
        self.arriving = datagram.len();
        if let Some(slot) = self.shared.paths.slot_of(path)
            && let Some((data, view)) = self.shared.paths.pair_mut(slot)
        {
            data.counters.packets_received += 1;
            data.counters.bytes_received += datagram.len() as u64;
            if data.route == arrival.route {
                data.amplification.on_received(datagram.len());
                view.amplification_limited =
                    !data.amplification.allows(usize::from(data.datagram_size));
            }
        }
        self.read_packets(now, arrival, path, datagram);
        self.read_kept(now);
        self.flush_edges(now);
    }

    /// True once a packet of the peer opened, be it a faulty one: before that, nothing proves that
    /// there is a peer.
    pub(crate) fn has_opened_packet(&self) -> bool {
        self.handshake.has_heard() || !self.lifecycle.is_open()
    }

    /// Reads the kept packets whose keys have come; Handshake packets may bring the keys of others.
    fn read_kept(&mut self, now: Instant) {
        while self.lifecycle.is_open()
            && let Some(kept) = self.handshake.next_kept(self.lifecycle.is_handshaking())
        {
            let KeptPacket { arrival, path, mut bytes, .. } = kept;
            self.read_packets(now, arrival, path, &mut bytes);
        }
    }

    fn read_packets(&mut self, now: Instant, arrival: Arrival, path: PathId, mut rest: &mut [u8]) {
        while !rest.is_empty() {
            let length = match Packet::parse(rest, super::LOCAL_LEN) {
                Ok(Packet::Protected(header)) => {
                    let length = header.packet_length;
                    let Some((packet, after)) = rest.split_at_mut_checked(length) else { return };
                    self.read_packet(now, arrival, path, &header, packet);
                    rest = after;
                    continue;
                }
                Ok(Packet::Retry { dcid: _, scid, token, protected, tag }) => {
                    let valid = self.retry_tag(protected) == tag;
                    let token = token.to_vec();
                    if valid {
                        self.on_retry(scid, token);
                    }
                    return;
                }
                Ok(packet @ Packet::VersionNegotiation { scid, .. }) => {
                    // https://www.rfc-editor.org/rfc/rfc8999#section-6
                    //# Echoing both connection IDs gives clients some assurance that the
                    //# server received the packet
                    let echoed = scid == self.ids.original().as_bytes();
                    // https://www.rfc-editor.org/rfc/rfc9000#section-6.2
                    //# A client MUST discard a Version Negotiation packet that lists the
                    //# QUIC version selected by the client.
                    let listed = packet.versions().any(|version| version == Version::V1);
                    let early = self.role.is_client() && !self.has_opened_packet();
                    if echoed && !listed && early {
                        self.lifecycle.abort(CloseReason::Version);
                    }
                    return;
                }
                Ok(Packet::UnknownVersion { .. }) | Err(_) => 0,
            };
            debug_assert_eq!(length, 0);
            self.dropped += 1;
            self.record_dropped(now, None, path, rest.len(), DropReason::Invalid);
            return;
        }
    }

    fn read_packet(
        &mut self,
        now: Instant,
        arrival: Arrival,
        path: PathId,
        header: &PartialHeader,
        packet: &mut [u8],
    ) {
        if !self.lifecycle.is_open() && !self.lifecycle.is_closing() {
            return;
        }
        let drop = |connection: &mut Self, reason| {
            let (kind, size) = (Some(header.kind), header.packet_length);
            connection.record_dropped(now, kind, path, size, reason);
        };
        let (space, path) = match header.kind {
            PacketKind::Initial => (Space::Initial, PathId::ZERO),
            PacketKind::Handshake => (Space::Handshake, PathId::ZERO),
            PacketKind::ZeroRtt => {
                self.dropped += 1;
                return drop(self, DropReason::Unsupported);
            }
            PacketKind::OneRtt => (Space::Data(0), path),
        };
        let (kind, size) = (header.kind, header.packet_length);
        let readable = self.handshake.readable(space, self.lifecycle.is_handshaking());
        let keep = || KeptPacket { arrival, path, space, bytes: packet.to_vec() };
        if readable == Readable::Later && self.handshake.keep(keep()) {
            self.recording.record(now, || Event::PacketKept { kind, size });
            return;
        }
        if readable != Readable::Now {
            self.dropped += 1;
            return drop(self, DropReason::NoKeys);
        }
        let number_at = header.packet_number_at;
        let Ok(unprotected) = self.handshake.unprotect(space, packet, number_at) else {
            self.on_unreadable(packet);
            return drop(self, DropReason::DoesNotOpen);
        };
        let largest = match space {
            Space::Data(_) => {
                self.shared.paths.by_id(path).and_then(|data| data.received.largest())
            }
            _ => self.handshake.space(space).and_then(|state| state.received.largest()),
        };
        let expected = largest.map_or(PacketNumber(0), PacketNumber::next);
        let number = unprotected.packet_number.expand(expected);
        let opened = self.handshake.open(now, space, (path, number), &unprotected, packet);
        let Ok(payload) = opened else {
            self.dropped += 1;
            self.on_unreadable(packet);
            return drop(self, DropReason::DoesNotOpen);
        };
        // The payload is read while `self` changes: it lies in the caller's datagram.
        let payload: &[u8] = payload;
        if !unprotected.reserved_bits_clear {
            self.fault(now, TransportError::protocol_violation("reserved bits are set"));
            return;
        }
        let space = match (space, self.data_slot(now, path, arrival.route)) {
            (Space::Data(_), Ok(Some(slot))) => Space::Data(slot),
            (Space::Data(_), Ok(None)) => return drop(self, DropReason::NoPath),
            (Space::Data(_), Err(error)) => return self.fault(now, error),
            (space, _) => space,
        };
        if self.received_mut(space).is_none_or(|received| received.is_duplicate(number)) {
            return drop(self, DropReason::Duplicate);
        }
        let opened = OpenedPacket { header, path, number, payload, ecn: arrival.ecn };
        self.record_received(now, &opened);
        self.on_authentic(now, space, header);
        let Some(key) = self.shared.paths.get(space.slot()).map(|data| data.key) else { return };
        match self.on_frames(now, space, key, header.kind, payload) {
            Ok(summary) => {
                self.note_received(now, space, number, summary, arrival.ecn);
                if summary.crypto {
                    self.advance_tls(now);
                }
            }
            Err(error) => self.fault(now, error),
        }
    }

    /// The slot of a path by identifier; a server takes a new path. `None`: it is gone.
    fn data_slot(
        &mut self,
        now: Instant,
        path: PathId,
        route: Route,
    ) -> Result<Option<u8>, TransportError> {
        if let Some(slot) = self.shared.paths.slot_of(path) {
            return Ok(Some(slot));
        }
        if self.plan.is_past(path) || !self.lifecycle.is_established() {
            return Ok(None);
        }
        let slot = self.accept_path(now, path, route)?;
        // The datagram that opens a path counts towards its amplification limit.
        let arriving = self.arriving;
        if let Some((data, view)) = self.shared.paths.pair_mut(slot) {
            data.counters.packets_received += 1;
            data.counters.bytes_received += arriving as u64;
            data.amplification.on_received(arriving);
            view.amplification_limited = true;
        }
        Ok(Some(slot))
    }

    /// A packet proved to come from the peer.
    fn on_authentic(&mut self, now: Instant, space: Space, header: &PartialHeader) {
        self.idle.on_received(now);
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
                if let Some((data, view)) = self.shared.paths.pair_mut(0) {
                    data.amplification.validate();
                    view.amplification_limited = false;
                }
                self.discard_space(Space::Initial);
            }
            _ => {}
        }
    }

    fn note_received(
        &mut self,
        now: Instant,
        space: Space,
        number: PacketNumber,
        summary: FrameSummary,
        ecn: u8,
    ) {
        let settings = match space {
            Space::Data(_) => {
                AckSettings { every: self.config.ack_every, max_delay: self.config.max_ack_delay }
            }
            // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
            //# An endpoint MUST acknowledge all ack-eliciting Initial and Handshake
            //# packets immediately
            _ => AckSettings { every: 1, max_delay: quipu_base::Duration::ZERO },
        };
        if let Some(received) = self.received_mut(space) {
            received.on_packet(now, number, summary.ack_eliciting, ecn, &settings);
        }
        if let Space::Data(slot) = space
            && let Some(data) = self.shared.paths.get_mut(slot)
        {
            data.heard_at = Some(now);
            data.has_content |= summary.content;
            data.probed |= summary.ack_eliciting && !summary.content;
        }
    }

    pub(super) fn received_mut(&mut self, space: Space) -> Option<&mut crate::recovery::Received> {
        match space {
            Space::Data(slot) => self.shared.paths.get_mut(slot).map(|data| &mut data.received),
            _ => self.handshake.space_mut(space).map(|state| &mut state.received),
        }
    }

    /// A datagram that opens with no key may be a stateless reset.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-10.3.1>
    fn on_unreadable(&mut self, packet: &[u8]) {
        let token = packet.last_chunk::<16>();
        if token.is_some_and(|token| self.ids.is_reset_token(token)) {
            self.lifecycle.abort(CloseReason::StatelessReset);
        }
    }

    fn retry_tag(&self, protected: &[u8]) -> [u8; 16] {
        crate::tls::retry_tag(&self.ids.original(), protected)
    }

    /// A Retry came: the first flight goes again, with the token and new keys.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5>
    fn on_retry(&mut self, scid: crate::wire::ConnectionId, token: Vec<u8>) {
        let Some(lost) = self.handshake.on_retry(scid, token) else { return };
        self.ids.replace_first_remote(scid);
        let mut in_flight = quipu_base::Bytes::ZERO;
        for record in lost {
            in_flight += quipu_base::Bytes(u64::from(record.bytes));
            self.settle_lost(Space::Initial, &record, &mut Vec::new());
        }
        self.release_in_flight(0, in_flight);
    }
}
