//! Datagrams out: the engine's duties first, then what the policies choose, then what is left.

use quipu_base::{Bytes, Instant, PathId};
use quipu_policy::{Kind, PathKey, PathSet, PathState, Piece};

use super::control::to_frame;
use super::lifecycle::CloseFrame;
use super::packet::OpenPacket;
use super::{Connection, Space};
use crate::config::MIN_UDP_PAYLOAD;
use crate::outbox::Outbox;
use crate::path::PathTable;
use crate::recovery::{SentControl, SentRecord};
use crate::wire::frame::write_ack;
use crate::wire::frame::{AckRange, CryptoLayout, EcnCounts, NewConnectionId, StreamLayout};
use crate::wire::{Frame, FrameType, NoSpace};

/// Ranges written in one acknowledgement at most; our choice.
const MAX_ACK_RANGES: usize = 32;

/// Shortest time between checks of a path that only carries acknowledgements of others; our choice.
const RETURN_PATH_CHECK: quipu_base::Duration = quipu_base::Duration::from_millis(50);

/// Ranges from which on an acknowledgement asks to be acknowledged itself; our choice.
const PING_ABOVE_RANGES: usize = 8;

/// Size of a datagram with an acknowledgement and nothing else, at most; our choice.
const ACK_DATAGRAM: usize = 400;

/// How a call of [`Connection::poll_transmit`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// Nothing more can go now.
    Rest,
    /// The outbox has no room for the next datagram: call again when it has.
    Full,
}

/// The outbox has no room for a datagram of this path.
pub(super) struct Full;

impl Connection {
    /// Writes all datagrams that can go now into `outbox`.
    pub fn poll_transmit(&mut self, now: Instant, outbox: &mut dyn Outbox) -> Drain {
        match self.transmit(now, outbox) {
            Ok(()) => Drain::Rest,
            Err(Full) => Drain::Full,
        }
    }

    fn transmit(&mut self, now: Instant, outbox: &mut dyn Outbox) -> Result<(), Full> {
        self.flush_edges(now);
        if self.lifecycle.is_open() && self.keys.wants_maintenance() {
            self.maintain_keys(now);
        }
        if !self.lifecycle.is_open() {
            return self.send_close(now, outbox);
        }
        // An outbox that filled up among the leftovers changes no decision.
        if !self.rested {
            self.send_by_choice(now, outbox)?;
        }
        if !self.lifecycle.is_established() {
            return Ok(());
        }
        self.rested = true;
        self.send_left_over_controls(now, outbox)?;
        self.send_left_over_acks(now, outbox)?;
        self.come_to_rest(now);
        self.rested = false;
        Ok(())
    }

    /// The engine's duties, and then what the policies choose.
    fn send_by_choice(&mut self, now: Instant, outbox: &mut dyn Outbox) -> Result<(), Full> {
        self.scheduler.start_drain();
        if self.keys.has_handshake_keys() {
            self.send_handshake(now, outbox)?;
        }
        if !self.lifecycle.is_established() {
            return Ok(());
        }
        for slot in 0..self.shared.paths.slots() {
            self.send_path_duties(now, slot, outbox)?;
        }
        self.send_data(now, outbox)
    }

    fn maintain_keys(&mut self, now: Instant) {
        let timeout = self.longest_probe_timeout();
        self.keys.maintain(now, timeout, &mut *self.session);
        if self.keys.is_worn_out() {
            // https://www.rfc-editor.org/rfc/rfc9001#section-6.6
            //# If a key update is not possible or integrity limits are reached, the
            //# endpoint MUST stop using the connection
            let code = crate::error::ErrorCode::AEAD_LIMIT_REACHED;
            let error = crate::error::TransportError::new(code, "the keys are worn out");
            self.fault(now, error);
        }
    }

    /// Nothing more goes now: starved paths are marked, the policies are told.
    fn come_to_rest(&mut self, now: Instant) {
        let peers = std::mem::take(&mut self.shared.paths.published);
        let mut release_at: Option<Instant> = None;
        for slot in 0..self.shared.paths.slots() {
            let Some((data, view)) = self.shared.paths.pair_mut(slot) else { continue };
            if view.is_open(now) {
                if !data.app_limited {
                    data.app_limited = true;
                    let change = quipu_policy::congestion::PathChange::ApplicationLimited;
                    data.change(change, &peers);
                }
                view.limited = true;
            } else {
                view.limited = false;
                let held = view.state == PathState::Usable
                    && view.release_at > now
                    && view.room() >= view.payload;
                if held {
                    release_at =
                        Some(release_at.map_or(view.release_at, |at| at.min(view.release_at)));
                }
            }
        }
        self.shared.paths.published = peers;
        let waiting = self.shared.streams.conn_view().ready > 0
            || self.scheduler.has_copies()
            || self.shared.streams.has_control_data()
            || self.has_control_frames();
        self.release_at = release_at.filter(|_| waiting);
        self.scheduler.rest(now, &self.shared);
    }

    pub(super) fn has_control_frames(&self) -> bool {
        !self.control.is_empty()
            || self.shared.streams.has_frames()
            || self.crypto.is_pending(Space::Data(0))
    }

    fn send_close(&mut self, now: Instant, outbox: &mut dyn Outbox) -> Result<(), Full> {
        if !self.lifecycle.wants_close() {
            return Ok(());
        }
        // The peer may not have our latest keys yet: every level that we have says it.
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.2.3
        let spaces = [Space::Initial, Space::Handshake];
        let Some(slot) = self.closing_slot() else { return Ok(()) };
        let allowed =
            |data: &crate::path::PathData| data.amplification.allows(usize::from(MIN_UDP_PAYLOAD));
        if !self.shared.paths.get(slot).is_some_and(allowed) {
            return Ok(());
        }
        self.require_room(outbox, slot)?;
        let Some(frame) = self.lifecycle.take_close().cloned() else { return Ok(()) };
        let size = usize::from(MIN_UDP_PAYLOAD);
        let buffer = outbox.buffer(size);
        let mut end = 0;
        for space in spaces.into_iter().chain([Space::Data(slot)]) {
            if !self.keys.has(space) || (space.slot() != slot && space == Space::Data(slot)) {
                continue;
            }
            let Some(mut packet) = self.open_packet(now, space, buffer, end, size) else {
                continue;
            };
            let early = space != Space::Data(slot);
            packet.write(buffer, |writer| write_close(&frame, early, writer));
            let pad =
                if early && self.role.is_client() && space == Space::Initial { size } else { 0 };
            // Only the last packet may be padded; an Initial of a client alone is.
            let pad = if self.keys.has(Space::Handshake) || self.keys.has(Space::Data(slot)) {
                0
            } else {
                pad
            };
            end = self.close_packet(now, packet, buffer, pad).unwrap_or(end);
        }
        if end > 0
            && let Some(transmit) = self.envelope(slot, end)
        {
            outbox.send(transmit);
        }
        Ok(())
    }

    /// The path on which to close: the best usable one, else any.
    fn closing_slot(&self) -> Option<u8> {
        let best = self.shared.paths.views.least_srtt_usable();
        let any = || self.shared.paths.views.iter().next().map(|view| view.key);
        best.or_else(any)
            .map(|key| key.slot)
            .or_else(|| self.shared.paths.iter().next().map(|data| data.key.slot))
    }

    fn require_room(&self, outbox: &dyn Outbox, slot: u8) -> Result<(), Full> {
        match self.shared.paths.get(slot) {
            Some(data) if outbox.has_room(data.key) => Ok(()),
            _ => Err(Full),
        }
    }

    /// Initial and Handshake packets, coalesced.
    fn send_handshake(&mut self, now: Instant, outbox: &mut dyn Outbox) -> Result<(), Full> {
        let size = usize::from(MIN_UDP_PAYLOAD);
        loop {
            let wants = [Space::Initial, Space::Handshake].map(|space| self.wants(now, space));
            let Some(data) = self.shared.paths.get(0) else { return Ok(()) };
            if wants == [false; 2] || !data.amplification.allows(size) {
                return Ok(());
            }
            self.require_room(outbox, 0)?;
            let buffer = outbox.buffer(size);
            let mut end = 0;
            for (space, wanted) in [Space::Initial, Space::Handshake].into_iter().zip(wants) {
                if !wanted {
                    continue;
                }
                let Some(mut packet) = self.open_packet(now, space, buffer, end, size) else {
                    continue;
                };
                self.fill_handshake_packet(now, &mut packet, buffer);
                // https://www.rfc-editor.org/rfc/rfc9000#section-14.1
                //# A client MUST expand the payload of all UDP datagrams carrying Initial
                //# packets to at least the smallest allowed maximum datagram size of 1200
                //# bytes [...] Similarly, a server MUST expand the payload of all UDP
                //# datagrams carrying ack-eliciting Initial packets
                let initial = wants[0] && (self.role.is_client() || packet.record.ack_eliciting);
                let last = space == Space::Handshake || !wants[1];
                let pad_to = if initial && last { size } else { 0 };
                end = self.close_packet(now, packet, buffer, pad_to).unwrap_or(end);
                if space == Space::Handshake && self.role.is_client() {
                    // https://www.rfc-editor.org/rfc/rfc9001#section-4.9.1
                    //# a client MUST discard Initial keys when it first sends a
                    //# Handshake packet
                    self.discard_space(Space::Initial);
                }
            }
            if end == 0 {
                return Ok(());
            }
            if let Some(transmit) = self.envelope(0, end) {
                outbox.send(transmit);
            }
        }
    }

    /// True if something must be sent in a space of the handshake.
    fn wants(&self, now: Instant, space: Space) -> bool {
        let state = self.handshake_space(space);
        self.keys.has(space)
            && (self.crypto.is_pending(space)
                || state.probes_due > 0
                || state.received.wants_ack() && state.received.is_due(now))
    }

    fn fill_handshake_packet(&mut self, now: Instant, packet: &mut OpenPacket, buffer: &mut [u8]) {
        let space = packet.space;
        let key = packet.key;
        let exponent = 3;
        let state = self.handshake_space_mut(space);
        if state.received.has_news() {
            let received = &mut state.received;
            write_received(received, None, now, exponent, key, packet, buffer);
        }
        let probing = state.probes_due > 0;
        if probing {
            state.probes_due -= 1;
            if !self.crypto.is_pending(space) {
                self.repeat_crypto(space);
            }
        }
        self.write_crypto(packet, buffer);
        if probing && !packet.record.ack_eliciting {
            packet.write_eliciting(buffer, |writer| Frame::Ping.write(writer));
        }
    }

    /// Makes the TLS bytes in flight of a space pending again: a probe repeats them.
    fn repeat_crypto(&mut self, space: Space) {
        let spans: Vec<_> = self
            .handshake_space(space)
            .sent
            .iter()
            .flat_map(|record| record.controls.iter())
            .filter_map(|control| match control {
                SentControl::Crypto { span } => Some(*span),
                _ => None,
            })
            .collect();
        for span in spans {
            self.crypto.send(space).on_lost(span);
        }
    }

    fn write_crypto(&mut self, packet: &mut OpenPacket, buffer: &mut [u8]) {
        let space = packet.space;
        while let Some((offset, bytes)) = self.crypto.send(space).next(packet.space_left()) {
            let Some(layout) = CryptoLayout::new(offset, bytes.len(), packet.space_left()) else {
                return;
            };
            let length = layout.data_length();
            let span = quipu_policy::Span::from_len(offset, Bytes(length as u64));
            let written = packet.write_control(buffer, SentControl::Crypto { span }, |writer| {
                layout.write_header(writer)?;
                writer.put_bytes(bytes.get(..length).ok_or(NoSpace)?)
            });
            if !written {
                return;
            }
            self.crypto.send(space).on_sent(span);
        }
    }

    /// What is bound to one path: challenges and responses, and probes. No policy is asked.
    fn send_path_duties(
        &mut self,
        now: Instant,
        slot: u8,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        let Some(data) = self.shared.paths.get(slot).filter(|data| data.lives()) else {
            return Ok(());
        };
        if data.validation.wants_challenge() || data.validation.owes_response() {
            self.send_validation(now, slot, outbox)?;
        }
        while self.shared.paths.get(slot).is_some_and(|data| data.probes_due > 0) {
            self.send_probe(now, slot, outbox)?;
        }
        Ok(())
    }

    fn send_validation(
        &mut self,
        now: Instant,
        slot: u8,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        self.require_room(outbox, slot)?;
        let Some(data) = self.shared.paths.get(slot) else { return Ok(()) };
        let full = usize::from(MIN_UDP_PAYLOAD);
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.1
        //# An endpoint MUST expand datagrams that contain a PATH_CHALLENGE frame
        //# to at least the smallest allowed maximum datagram size of 1200 bytes,
        //# unless the anti-amplification limit for the path does not permit
        //# sending a datagram of this size.
        let pad_to = if data.amplification.allows(full) { full } else { 0 };
        if pad_to == 0 && !data.amplification.allows(100) {
            self.withhold_challenge(now, slot);
            return Ok(());
        }
        let buffer = outbox.buffer(full);
        let Some(mut packet) = self.open_packet(now, Space::Data(slot), buffer, 0, full) else {
            return Ok(());
        };
        self.write_acks(now, &mut packet, buffer);
        while let Some(data) =
            self.shared.paths.get_mut(slot).and_then(|path| path.validation.take_response())
        {
            packet.write_eliciting(buffer, |writer| Frame::PathResponse { data }.write(writer));
        }
        let wants = self.shared.paths.get(slot).is_some_and(|p| p.validation.wants_challenge());
        if wants && let Some(data) = self.new_challenge(now, slot) {
            packet.write_eliciting(buffer, |writer| Frame::PathChallenge { data }.write(writer));
        }
        self.finish_datagram(now, packet, pad_to, outbox);
        Ok(())
    }

    /// A probe: the oldest bytes that the path still owes, else a PING.
    fn send_probe(&mut self, now: Instant, slot: u8, outbox: &mut dyn Outbox) -> Result<(), Full> {
        self.require_room(outbox, slot)?;
        let Some(data) = self.shared.paths.get_mut(slot) else { return Ok(()) };
        let nth = usize::from(2u8.saturating_sub(data.probes_due));
        data.probes_due -= 1;
        let size = usize::from(data.datagram_size);
        if !data.amplification.allows(size) {
            return Ok(());
        }
        let key = data.key;
        let oldest = take_for_probe(data.sent.iter_mut(), nth);
        // What a suspect path owes is for the others: a probe must not take it back.
        let views = &self.shared.paths.views;
        let suspect = views.get(key).is_some_and(|view| view.state == PathState::Suspect);
        let buffer = outbox.buffer(size);
        let Some(mut packet) = self.open_packet(now, Space::Data(slot), buffer, 0, size) else {
            return Ok(());
        };
        self.write_acks(now, &mut packet, buffer);
        if let Some((pieces, controls)) = oldest {
            for control in &controls {
                self.requeue_control(slot, control);
            }
            if !suspect {
                self.write_controls(&mut packet, buffer);
                self.write_control_streams(&mut packet, buffer);
            }
            for piece in pieces {
                self.write_probe_piece(&mut packet, buffer, piece);
            }
        }
        if !packet.record.ack_eliciting {
            packet.write_eliciting(buffer, |writer| Frame::Ping.write(writer));
        }
        // Its bytes are those of another packet: its own loss asks for nothing.
        packet.record.requeued = packet.record.controls.iter().all(is_ack);
        self.finish_datagram(now, packet, 0, outbox);
        Ok(())
    }

    fn requeue_control(&mut self, slot: u8, control: &SentControl) {
        let mut record = SentRecord::new(quipu_base::PacketNumber(0), Instant::ZERO);
        record.controls.push(control.clone());
        self.settle_lost(Space::Data(slot), &record, &mut Vec::new());
    }

    fn write_probe_piece(
        &mut self,
        packet: &mut OpenPacket,
        buffer: &mut [u8],
        (piece, fin): (Piece, bool),
    ) {
        let streams = &self.shared.streams;
        let Some(span) = streams.first_unacked(piece.stream, piece.span, fin) else { return };
        let space_left = packet.space_left();
        let available = usize::try_from(span.len().0).unwrap_or(usize::MAX);
        let Some(layout) = StreamLayout::new(piece.stream.id, span.start, available, space_left)
        else {
            return;
        };
        let span = quipu_policy::Span::from_len(span.start, Bytes(layout.data_length() as u64));
        let fin = streams.ends_at(piece.stream, span.end);
        let written = packet.write_eliciting(buffer, |writer| {
            layout.write_header(writer, fin)?;
            let room = writer.reserve(layout.data_length())?;
            if streams.copy_to(piece.stream, span, room) { Ok(()) } else { Err(NoSpace) }
        });
        if written {
            packet.full |= layout.fills_packet();
            packet.record.add_piece(Piece { stream: piece.stream, span, kind: Kind::Copy }, fin);
            self.count_piece(packet.key, span.len(), Kind::Copy);
        }
    }

    /// Counts stream bytes sent on a path.
    pub(super) fn count_piece(&mut self, key: PathKey, bytes: Bytes, kind: Kind) {
        if let Some(data) = self.shared.paths.get_mut(key.slot) {
            data.counters.stream_bytes += bytes.0;
            match kind {
                Kind::Fresh => {}
                Kind::Again => data.counters.again_bytes += bytes.0,
                Kind::Copy => data.counters.copy_bytes += bytes.0,
            }
        }
    }

    /// Seals the packet and hands its datagram over.
    pub(super) fn finish_datagram(
        &mut self,
        now: Instant,
        packet: OpenPacket,
        pad_to: usize,
        outbox: &mut dyn Outbox,
    ) {
        let slot = packet.key.slot;
        let size = usize::from(self.shared.paths.get(slot).map_or(0, |data| data.datagram_size));
        let buffer = outbox.buffer(size.max(pad_to));
        if let Some(end) = self.close_packet(now, packet, buffer, pad_to)
            && let Some(transmit) = self.envelope(slot, end)
        {
            outbox.send(transmit);
        }
    }

    /// Control frames that no data packet carried go on the path that the policy names.
    fn send_left_over_controls(
        &mut self,
        now: Instant,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        while self.has_control_frames() {
            let Some(key) = self.scheduler.control_path(now, &self.shared) else { return Ok(()) };
            let open = self.shared.paths.views.get(key).is_some_and(|view| view.is_open(now));
            if !open {
                return Ok(());
            }
            self.require_room(outbox, key.slot)?;
            let size = self.packet_size(key);
            let buffer = outbox.buffer(size);
            let space = Space::Data(key.slot);
            let Some(mut packet) = self.open_packet(now, space, buffer, 0, size) else {
                return Ok(());
            };
            self.write_acks(now, &mut packet, buffer);
            self.write_controls(&mut packet, buffer);
            if !packet.record.ack_eliciting {
                return Ok(());
            }
            self.finish_datagram(now, packet, 0, outbox);
        }
        Ok(())
    }

    /// Bytes that the next packet on a path may take: a full datagram, or what the window leaves.
    pub(super) fn packet_size(&self, key: PathKey) -> usize {
        let size = self.shared.paths.get(key.slot).map_or(0, |data| data.datagram_size);
        let room = self.shared.paths.views.get(key).map_or(Bytes::ZERO, |view| view.room());
        usize::try_from(room.0).unwrap_or(usize::MAX).min(usize::from(size))
    }

    /// Acknowledgements that are due and that no packet carried.
    fn send_left_over_acks(&mut self, now: Instant, outbox: &mut dyn Outbox) -> Result<(), Full> {
        for slot in 0..self.shared.paths.slots() {
            let Some(data) = self.shared.paths.get(slot) else { continue };
            if !data.received.wants_ack() || !data.received.is_due(now) {
                continue;
            }
            let key = data.key;
            let (lives, owed) = (data.lives(), data.ack_owed);
            // What is left of a round that the outbox had no room for, else a new one.
            let mut owed = if owed.is_empty() { self.ack_paths(now, key, lives) } else { owed };
            if owed.is_empty() {
                if let Some(data) = self.shared.paths.get_mut(slot) {
                    data.received.defer();
                }
                continue;
            }
            for other in 0..self.shared.paths.slots() {
                let Some(view) = self.shared.paths.views.by_slot(other) else { continue };
                let on = view.key;
                if !owed.contains(on) {
                    continue;
                }
                let sent = self.send_ack_packet(now, other, key, outbox);
                if sent.is_ok() {
                    owed = owed.without(on);
                }
                if let Some(data) = self.shared.paths.get_mut(slot) {
                    data.ack_owed = owed;
                }
                sent?;
            }
            if let Some(data) = self.shared.paths.get_mut(slot) {
                data.ack_owed = PathSet::EMPTY;
                data.received.on_ack_written();
            }
        }
        Ok(())
    }

    /// The paths on which an acknowledgement of `data`'s packets goes now.
    fn ack_paths(&mut self, now: Instant, data: PathKey, lives: bool) -> PathSet {
        let on = if lives {
            self.scheduler.ack_route(now, &self.shared, data).on
        } else {
            PathSet::EMPTY
        };
        let views = &self.shared.paths.views;
        let itself = views.get(data).map(|view| view.key).filter(|&key| self.carries_acks(key));
        let mut paths = PathSet::EMPTY;
        let mut answers = false;
        for view in views.iter().filter(|view| on.contains(view.key)) {
            if self.carries_acks(view.key) && view.state != PathState::Closing {
                paths = paths.with(view.key);
                answers |= view.pto_count == 0 || view.key == data;
            }
        }
        // A return path that does not answer itself may be dead: the acknowledgement also goes
        // the way of its data, or, if that cannot carry it, the best one.
        if !answers && let Some(path) = itself.or_else(|| views.least_srtt_usable()) {
            paths = paths.with(path);
        }
        paths
    }

    /// True if a packet with an acknowledgement may leave on a path.
    fn carries_acks(&self, path: PathKey) -> bool {
        let data = self.shared.paths.get(path.slot);
        data.is_some_and(|data| data.amplification.allows(ACK_DATAGRAM))
            && self.remote_ids.active(path.id).is_some()
    }

    fn send_ack_packet(
        &mut self,
        now: Instant,
        slot: u8,
        data_path: PathKey,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        self.require_room(outbox, slot)?;
        let size = ACK_DATAGRAM;
        let buffer = outbox.buffer(size);
        let Some(mut packet) = self.open_packet(now, Space::Data(slot), buffer, 0, size) else {
            return Ok(());
        };
        self.write_ack_of(now, data_path.slot, &mut packet, buffer);
        self.write_acks(now, &mut packet, buffer);
        self.ask_for_ack(now, slot, &mut packet, buffer);
        self.finish_datagram(now, packet, 0, outbox);
        Ok(())
    }

    /// Once in a round trip, an acknowledgement with many ranges asks for one itself, so that the
    /// peer's answer lets old ranges go. <https://www.rfc-editor.org/rfc/rfc9000#section-13.2.4>
    ///
    /// So does, now and then, one that returns on another path than that of its data: nothing else
    /// would tell that the return path is dead. Not for PINGs alone, or two such ends would go on
    /// asking each other. <https://www.rfc-editor.org/rfc/rfc9000#section-13.2.4>
    fn ask_for_ack(&mut self, now: Instant, slot: u8, packet: &mut OpenPacket, buffer: &mut [u8]) {
        let many =
            self.shared.paths.iter().any(|data| data.received.range_count() > PING_ABOVE_RANGES);
        let own = packet.key;
        let foreign = |control: &SentControl| match control {
            SentControl::Ack { path, .. } if *path != own => Some(*path),
            _ => None,
        };
        let has_content = |path: PathKey| {
            let data = self.shared.paths.get(path.slot).filter(|data| data.key == path);
            data.is_some_and(|data| data.has_content)
        };
        let foreign: smallvec::SmallVec<[PathKey; 4]> =
            packet.record.controls.iter().filter_map(foreign).collect();
        let unwatched = foreign.iter().copied().any(has_content);
        let Some((data, view)) = self.shared.paths.pair_mut(slot) else { return };
        let rtt = view.srtt.unwrap_or(crate::recovery::INITIAL_RTT);
        let unwatched = unwatched && !data.sent.has_eliciting();
        let interval = if many { rtt } else { rtt.max(RETURN_PATH_CHECK) };
        let due = now - data.ack_pinged_at >= interval;
        if (many || unwatched) && due && view.state == PathState::Usable {
            data.ack_pinged_at = now;
            packet.write_eliciting(buffer, |writer| Frame::Ping.write(writer));
            for path in foreign {
                if let Some(data) = self.shared.paths.get_mut(path.slot) {
                    data.has_content = false;
                }
            }
        }
    }

    /// Writes the acknowledgements that are to travel on the packet's path.
    pub(super) fn write_acks(&mut self, now: Instant, packet: &mut OpenPacket, buffer: &mut [u8]) {
        for slot in 0..self.shared.paths.slots() {
            let Some(data) = self.shared.paths.get(slot) else { continue };
            if !data.received.wants_ack() {
                continue;
            }
            let key = data.key;
            let (due, lives) = (data.received.is_due(now), data.lives());
            let whole = if lives {
                let route = self.scheduler.ack_route(now, &self.shared, key);
                let named = route.on.contains(packet.key) && (due || route.on.len() == 1);
                let rides = route.ride && due;
                if !named && !rides {
                    continue;
                }
                let answers = packet.key == key
                    || self
                        .shared
                        .paths
                        .views
                        .get(packet.key)
                        .is_some_and(|view| view.pto_count == 0);
                answers && (route.on.len() == 1 || route.ride)
            } else if due {
                true
            } else {
                continue;
            };
            let written = self.write_ack_of(now, slot, packet, buffer);
            if written
                && whole
                && let Some(data) = self.shared.paths.get_mut(slot)
            {
                data.received.on_ack_written();
            }
        }
    }

    fn write_ack_of(
        &mut self,
        now: Instant,
        slot: u8,
        packet: &mut OpenPacket,
        buffer: &mut [u8],
    ) -> bool {
        let multipath = self.multipath().is_some();
        let Some(data) = self.shared.paths.get_mut(slot) else { return false };
        let already =
            packet.record.controls.iter().any(
                |control| matches!(control, SentControl::Ack { path, .. } if *path == data.key),
            );
        if already || !data.received.has_news() && !data.received.wants_ack() {
            return already;
        }
        let path = multipath.then_some(data.key.id);
        let key = data.key;
        write_ranges(&data.received, path, now, key, packet, buffer)
    }

    /// Writes waiting control frames, as many as fit.
    pub(super) fn write_controls(&mut self, packet: &mut OpenPacket, buffer: &mut [u8]) {
        if self.crypto.is_pending(Space::Data(0)) {
            let space = std::mem::replace(&mut packet.space, Space::Data(0));
            self.write_crypto(packet, buffer);
            packet.space = space;
        }
        if !self.control.is_empty() {
            self.write_queue(packet, buffer);
        }
        while self.shared.streams.has_frames() {
            let space_left = packet.space_left();
            let Some(control) =
                self.shared.streams.pop_frame(|frame| to_frame(frame).size() <= space_left)
            else {
                return;
            };
            packet.write_control(buffer, SentControl::StreamFrame(control), |writer| {
                to_frame(&control).write(writer)
            });
        }
    }

    fn write_queue(&mut self, packet: &mut OpenPacket, buffer: &mut [u8]) {
        let multipath = self.multipath().is_some();
        if self.control.handshake_done
            && packet.write_control(buffer, SentControl::HandshakeDone, |writer| {
                Frame::HandshakeDone.write(writer)
            })
        {
            self.control.handshake_done = false;
        }
        while let Some(&(path, error_code)) = self.control.abandon.first() {
            let frame = Frame::PathAbandon { path, error_code };
            let control = SentControl::PathAbandon { path };
            if !packet.write_control(buffer, control, |writer| frame.write(writer)) {
                return;
            }
            self.control.abandon.remove(0);
        }
        if self.control.max_path_id {
            let frame = Frame::MaxPathId { maximum: self.paths.local_max };
            if !packet.write_control(buffer, SentControl::MaxPathId, |writer| frame.write(writer)) {
                return;
            }
            self.control.max_path_id = false;
        }
        while let Some(&path) = self.control.status.first() {
            if let Some(frame) = status_frame(&self.shared.paths, path) {
                let control = SentControl::PathStatus { path };
                if !packet.write_control(buffer, control, |writer| frame.write(writer)) {
                    return;
                }
            }
            self.control.status.remove(0);
        }
        let named = |path: PathId| (multipath || path != PathId::ZERO).then_some(path);
        while let Some(&(path, sequence)) = self.control.new_cids.front() {
            if let Some((id, reset_token)) = self.local_ids.get(path, sequence) {
                let frame = Frame::NewConnectionId(NewConnectionId {
                    path: named(path),
                    sequence,
                    retire_prior_to: 0,
                    id,
                    reset_token,
                });
                let control = SentControl::NewConnectionId { path, sequence };
                if !packet.write_control(buffer, control, |writer| frame.write(writer)) {
                    return;
                }
            }
            self.control.new_cids.pop_front();
        }
        while let Some(&(path, sequence)) = self.control.retire_cids.front() {
            let frame = Frame::RetireConnectionId { path: named(path), sequence };
            let control = SentControl::RetireConnectionId { path, sequence };
            if !packet.write_control(buffer, control, |writer| frame.write(writer)) {
                return;
            }
            self.control.retire_cids.pop_front();
        }
    }
}

/// What a probe repeats: stream pieces, each with whether it carried the end, and control frames.
type ProbeContent = (Vec<(Piece, bool)>, Vec<SentControl>);

/// The stream pieces of the `nth` oldest packet in flight that has something to repeat, and its
/// control frames, which move to the probe.
fn take_for_probe<'a>(
    records: impl Iterator<Item = &'a mut SentRecord>,
    nth: usize,
) -> Option<ProbeContent> {
    let has_content =
        |record: &SentRecord| !record.pieces.is_empty() || !record.controls.iter().all(is_ack);
    let record = records.filter(|record| record.ack_eliciting && has_content(record)).nth(nth)?;
    let (acks, controls) = std::mem::take(&mut record.controls).into_iter().partition(is_ack);
    record.controls = acks;
    let pieces = record.pieces.iter().enumerate();
    Some((pieces.map(|(at, piece)| (*piece, record.carries_fin(at))).collect(), controls))
}

fn is_ack(control: &SentControl) -> bool {
    matches!(control, SentControl::Ack { .. })
}

fn status_frame(paths: &PathTable, path: PathId) -> Option<Frame<'static>> {
    let data = paths.by_id(path)?;
    let sequence = data.status.own_sequence;
    Some(match data.status.own {
        quipu_policy::PathStatus::Available => Frame::PathStatusAvailable { path, sequence },
        quipu_policy::PathStatus::Backup => Frame::PathStatusBackup { path, sequence },
    })
}

fn write_close(
    frame: &CloseFrame,
    early: bool,
    writer: &mut crate::wire::Writer<'_>,
) -> Result<(), NoSpace> {
    match frame {
        CloseFrame::Transport(error) => Frame::ConnectionClose {
            error_code: error.code.0,
            frame_type: error.frame_type.unwrap_or(FrameType::PADDING),
            reason: error.reason.as_bytes(),
        }
        .write_shortened(writer),
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.2.3
        //# A CONNECTION_CLOSE of type 0x1d MUST be replaced by a CONNECTION_CLOSE
        //# of type 0x1c when sending the frame in Initial or Handshake packets.
        CloseFrame::Application { .. } if early => Frame::ConnectionClose {
            error_code: crate::error::ErrorCode::APPLICATION_ERROR.0,
            frame_type: FrameType::PADDING,
            reason: b"",
        }
        .write(writer),
        CloseFrame::Application { code, reason } => {
            Frame::ApplicationClose { error_code: *code, reason }.write_shortened(writer)
        }
    }
}

fn write_received(
    received: &mut crate::recovery::Received,
    path: Option<PathId>,
    now: Instant,
    _exponent: u8,
    key: PathKey,
    packet: &mut OpenPacket,
    buffer: &mut [u8],
) {
    if write_ranges(received, path, now, key, packet, buffer) {
        received.on_ack_written();
    }
}

/// Writes an acknowledgement of what was received; true if it fit.
fn write_ranges(
    received: &crate::recovery::Received,
    path: Option<PathId>,
    now: Instant,
    key: PathKey,
    packet: &mut OpenPacket,
    buffer: &mut [u8],
) -> bool {
    let Some(largest) = received.largest() else { return false };
    // Our ack_delay_exponent is the default of 3.
    let delay = received.ack_delay(now).as_micros() >> 3;
    let ecn = received.ecn_counts().map(|[ect0, ect1, ce]| EcnCounts { ect0, ect1, ce });
    let ranges = received.ranges().take(MAX_ACK_RANGES).map(|(first, last)| {
        AckRange::new(quipu_base::PacketNumber(first), quipu_base::PacketNumber(last))
    });
    let written =
        packet.write(buffer, |writer| write_ack(writer, path, delay, ranges, ecn).map(|_| ()));
    if written {
        packet.note_ack(SentControl::Ack { path: key, largest });
    }
    written
}
