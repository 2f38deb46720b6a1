//! What an acknowledgement sets in motion: packets settled, losses found, policies told.

use quipu_base::{Bytes, Duration, Instant};
use quipu_policy::congestion::{PathChange, RateSample};
use quipu_policy::{Event, PathKey, PathState, Span, StreamKey};

use super::congestion::Acknowledged;
use super::{Connection, Space};
use crate::error::TransportError;
use crate::path::WayChange;
use crate::recorder::PathEvent;
use crate::recovery::{
    PACKET_THRESHOLD, SentControl, SentPackets, SentRecord, loss_delay, take_rtt_sample,
};
use crate::wire::frame::Ack;

/// Buffers used again from one acknowledgement to the next.
#[derive(Default)]
pub(crate) struct Scratch {
    acked: Vec<SentRecord>,
    late: Vec<SentRecord>,
    lost: Vec<SentRecord>,
    requeued: Vec<(StreamKey, Span)>,
}

impl Connection {
    /// An ACK or PATH_ACK frame came on the path in slot `arrived_on`, for packets of `space`.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        space: Space,
        arrived_on: PathKey,
        ack: &Ack<'_>,
    ) -> Result<(), TransportError> {
        let largest = ack.largest();
        let slot = space.slot();
        let Some(sent) = self.sent_mut(space) else { return Ok(()) };
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.1
        //# An endpoint SHOULD treat receipt of an acknowledgment for a packet it
        //# did not send as a connection error of type PROTOCOL_VIOLATION
        if largest >= sent.next_pn() {
            return Err(TransportError::protocol_violation("acknowledged a packet never sent"));
        }
        let prior_in_flight = sent.in_flight();
        let mut scratch = std::mem::take(&mut self.scratch);
        let ranges = ack.ranges.iter().map(|range| (range.first.0, range.last.0));
        let Some(sent) = self.sent_mut(space) else { return Ok(()) };
        let largest_is_new = sent.on_ack(ranges, &mut scratch.acked, &mut scratch.late);

        if scratch.acked.is_empty() && scratch.late.is_empty() {
            self.scratch = scratch;
            self.tell_ack_seen(now, space, arrived_on, ack, false);
            return Ok(());
        }
        let rtt =
            self.sample_rtt(now, space, arrived_on, ack.delay, largest_is_new, &scratch.acked);
        self.on_path_alive(now, slot, !scratch.acked.is_empty());
        self.detect_lost(now, space, &mut scratch.lost);
        self.settle(space, &mut scratch);
        let acknowledged = Acknowledged {
            packets: &scratch.acked,
            prior_in_flight,
            rtt,
            rate: self.sample_rate(now, slot, arrived_on, &scratch),
            marks: self.newly_marked(space, ack, largest_is_new, &scratch.acked),
        };
        self.control_congestion(now, space, &acknowledged, &scratch.lost);
        self.record_metrics(now, slot);
        if let Space::Data(_) = space {
            self.tell_ack(now, slot, &mut scratch);
            self.tell_ack_seen(now, space, arrived_on, ack, true);
        }
        self.flush_edges(now);
        scratch.recycle(self.sent_mut(space));
        self.scratch = scratch;
        self.suspect_silent_paths(now, slot);
        Ok(())
    }

    /// Packets of `space` that are overdue are lost.
    pub(super) fn on_loss_timer(&mut self, now: Instant, space: Space) {
        let mut scratch = std::mem::take(&mut self.scratch);
        self.detect_lost(now, space, &mut scratch.lost);
        self.settle(space, &mut scratch);
        self.control_loss(now, space, &scratch.lost);
        self.record_metrics(now, space.slot());
        if let Space::Data(slot) = space {
            self.tell_ack(now, slot, &mut scratch);
        }
        self.flush_edges(now);
        scratch.recycle(self.sent_mut(space));
        self.scratch = scratch;
    }

    fn sample_rtt(
        &mut self,
        now: Instant,
        space: Space,
        arrived_on: PathKey,
        delay_field: u64,
        largest_is_new: bool,
        acked: &[SentRecord],
    ) -> Option<Duration> {
        // https://www.rfc-editor.org/rfc/rfc9002#section-5.1
        //# An endpoint generates an RTT sample on receiving an ACK frame that
        //# meets the following two conditions: the largest acknowledged packet
        //# number is newly acknowledged, and at least one of the newly
        //# acknowledged packets was ack-eliciting.
        let newest = acked.last().filter(|_| largest_is_new)?;
        if !acked.iter().any(|record| record.ack_eliciting) {
            return None;
        }
        if let Space::Data(_) = space {
            self.handshake.on_acked(newest.sent_at);
        }
        let latest = now - newest.sent_at;
        let delay = self.ack_delay(space, delay_field);
        let slot = space.slot();
        let data = self.shared.paths.get_mut(slot)?;
        data.ack_times.note(newest.pn, newest.sent_at);
        let key = data.key;
        if !self.scheduler.takes_sample(key, arrived_on) {
            return None;
        }
        self.note_return_way(now, slot, arrived_on, latest);
        let (data, view) = self.shared.paths.pair_mut(slot)?;
        data.first_sample_at.get_or_insert(now);
        take_rtt_sample(view, latest, delay);
        Some(latest)
    }

    /// The delivery rate that this acknowledgement shows, if it does.
    fn sample_rate(
        &mut self,
        now: Instant,
        slot: u8,
        arrived_on: PathKey,
        scratch: &Scratch,
    ) -> Option<RateSample> {
        let late = scratch.late.iter().map(|record| Bytes(u64::from(record.bytes))).sum();
        let (data, view) = self.shared.paths.pair_mut(slot)?;
        data.delivery.on_acked(now, arrived_on.slot, &scratch.acked, late, view.min_rtt)
    }

    /// How many packets the acknowledgement newly reports as marked CE.
    fn newly_marked(
        &mut self,
        space: Space,
        ack: &Ack<'_>,
        advances: bool,
        acked: &[SentRecord],
    ) -> u64 {
        let Space::Data(slot) = space else { return 0 };
        let Some(data) = self.shared.paths.get_mut(slot) else { return 0 };
        let marks = data.ecn.on_acked(acked, ack.ecn, advances);
        data.counters.packets_marked += marks;
        marks
    }

    /// The delay that the peer says to have added, in units of its exponent, as far as it counts.
    fn ack_delay(&self, space: Space, field: u64) -> Duration {
        let Space::Data(_) = space else { return Duration::ZERO };
        let micros = field
            .checked_shl(u32::from(self.handshake.peer().ack_delay_exponent))
            .unwrap_or(u64::MAX);
        let delay = Duration::from_micros(micros);
        if self.lifecycle.is_confirmed() {
            delay.min(self.handshake.peer().max_ack_delay)
        } else {
            delay
        }
    }

    /// A round-trip sample of `latest` is about to be taken by way of `arrived_on`. If
    /// acknowledgements return another way now, what was estimated of the old one is void, also for
    /// the probe timeout and persistent congestion where the way was changed on purpose.
    fn note_return_way(&mut self, now: Instant, slot: u8, arrived_on: PathKey, latest: Duration) {
        let scheduler = &self.scheduler;
        let Some((data, view)) = self.shared.paths.pair_mut(slot) else { return };
        let key = data.key;
        let is_refused = |way| !scheduler.takes_sample(key, way);
        match data.return_way.on_sample(now, arrived_on, latest, view.srtt, is_refused) {
            WayChange::None => return,
            WayChange::Switched => {
                view.srtt = None;
                view.min_rtt = None;
                data.first_sample_at = None;
            }
            WayChange::Lasting(least) => view.min_rtt = Some(least),
        }
        self.control_change(now, slot, PathChange::ReturnRoute);
    }

    /// Something that we sent on the path was acknowledged.
    fn on_path_alive(&mut self, now: Instant, slot: u8, newly_acked: bool) {
        let validated_by_peer = self.peer_validated_us();
        let Some((data, view)) = self.shared.paths.pair_mut(slot) else { return };
        data.acked_at = Some(now);
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
        //# The PTO backoff factor is reset when an acknowledgment is received,
        //# except in the following case. [...] a client does not reset its
        //# backoff until the server is known to have validated its address.
        if newly_acked && validated_by_peer {
            view.pto_count = 0;
            data.probes_due = 0;
        }
        if view.state == PathState::Suspect {
            view.state = PathState::Usable;
            self.pending_revival = Some(view.key);
        }
    }

    fn detect_lost(&mut self, now: Instant, space: Space, lost: &mut Vec<SentRecord>) {
        let Some(view) = self.shared.paths.views.by_slot(space.slot()) else { return };
        let delay = loss_delay(view);
        if let Some(sent) = self.sent_mut(space) {
            sent.detect_lost(now, delay, PACKET_THRESHOLD, lost);
        }
        self.record_lost(now, space, lost);
    }

    /// Applies what was acknowledged and lost to streams, control frames and counters.
    fn settle(&mut self, space: Space, scratch: &mut Scratch) {
        let slot = space.slot();
        let mut settled = Bytes::ZERO;
        for record in &scratch.acked {
            settled += Bytes(u64::from(record.bytes));
            self.settle_acked(space, record);
        }
        if let Some(data) = self.shared.paths.get_mut(slot) {
            data.counters.packets_acked += scratch.acked.len() as u64;
            data.counters.bytes_acked += settled.0;
        }
        for record in &scratch.late {
            self.settle_acked(space, record);
            if let Some(data) = self.shared.paths.get_mut(slot) {
                data.counters.packets_acked += 1;
                data.counters.bytes_acked += u64::from(record.bytes);
                data.counters.packets_spurious += 1;
                data.counters.bytes_spurious += u64::from(record.bytes);
            }
        }
        for record in &scratch.lost {
            settled += Bytes(u64::from(record.bytes));
            if let Some(data) = self.shared.paths.get_mut(slot) {
                data.counters.packets_lost += 1;
                data.counters.bytes_lost += u64::from(record.bytes);
                data.delivery.on_lost(Bytes(u64::from(record.bytes)));
            }
            self.settle_lost(space, record, &mut scratch.requeued);
        }
        self.release_in_flight(slot, settled);
        self.note_loss_share(slot, scratch.acked.len(), scratch.lost.len());
    }

    /// Takes bytes off what is in flight on a path and in all.
    pub(super) fn release_in_flight(&mut self, slot: u8, bytes: Bytes) {
        // What was in flight on an abandoned path went off the count with its view.
        if let Some((_, view)) = self.shared.paths.pair_mut(slot) {
            view.in_flight -= bytes;
            self.shared.streams.conn_view_mut().in_flight -= bytes;
        }
    }

    fn settle_acked(&mut self, space: Space, record: &SentRecord) {
        for (index, piece) in record.pieces.iter().enumerate() {
            let fin = record.carries_fin(index);
            self.shared.streams.on_acked(piece.stream, piece.span, fin);
        }
        for control in &record.controls {
            match control {
                SentControl::Ack { path, largest } => {
                    if let Some(received) = self.received_of(space, *path) {
                        received.on_ack_of_ack(*largest);
                    }
                }
                SentControl::Crypto { span } => self.handshake.crypto_mut(space).on_acked(*span),
                SentControl::Stream(piece) => {
                    self.shared.streams.on_acked(piece.stream, piece.span, piece.fin);
                }
                SentControl::StreamFrame(frame) => {
                    self.shared.streams.on_frame_acked(frame);
                }
                SentControl::HandshakeDone
                | SentControl::NewConnectionId { .. }
                | SentControl::RetireConnectionId { .. }
                | SentControl::PathAbandon { .. }
                | SentControl::PathStatus { .. }
                | SentControl::MaxPathId
                | SentControl::ReturnPaths { .. } => {}
            }
        }
    }

    /// What a lost packet carried waits again, unless it does already.
    pub(super) fn settle_lost(
        &mut self,
        space: Space,
        record: &SentRecord,
        requeued: &mut Vec<(StreamKey, Span)>,
    ) {
        if record.requeued {
            return;
        }
        let Some(origin) = self.shared.paths.get(space.slot()).map(|data| data.key) else {
            return;
        };
        let counted = if record.repeats { &[][..] } else { &record.pieces[..] };
        for (index, piece) in counted.iter().enumerate() {
            let fin = record.carries_fin(index);
            self.shared.streams.on_lost(piece.stream, piece.span, fin, origin, requeued);
        }
        for control in &record.controls {
            match control {
                SentControl::Crypto { span } => self.handshake.crypto_mut(space).on_lost(*span),
                SentControl::Stream(piece) => {
                    let streams = &mut self.shared.streams;
                    streams.on_lost(piece.stream, piece.span, piece.fin, origin, requeued);
                }
                SentControl::StreamFrame(frame) => self.shared.streams.requeue_frame(frame),
                other => self.control.requeue(other, |path| self.plan.abandoned_with(path)),
            }
        }
    }

    fn note_loss_share(&mut self, slot: u8, acked: usize, lost: usize) {
        let total = acked + lost;
        if total == 0 {
            return;
        }
        if let Some((_, view)) = self.shared.paths.pair_mut(slot) {
            // Smoothed over about 256 packets; our choice.
            let share = (lost * 1000 / total) as u64;
            let weight = (total as u64).min(256);
            let before = u64::from(view.loss.0);
            view.loss.0 = ((before * (256 - weight) + share * weight) / 256) as u16;
        }
    }

    /// Tells the policies of one acknowledgement or loss, in the order of the seam.
    fn tell_ack(&mut self, now: Instant, slot: u8, scratch: &mut Scratch) {
        let Some(key) = self.shared.paths.get(slot).map(|data| data.key) else { return };
        let (scheduler, shared) = (&mut self.scheduler, &self.shared);
        if let Some(revived) = self.pending_revival.take() {
            scheduler.tell(now, shared, Event::PathRevived(revived));
            self.recording.path(now, revived.id, PathEvent::Revived);
        }
        scheduler.tell(now, shared, Event::PathMeasured(key));
        for record in &scratch.acked {
            scheduler.tell_joint(now, shared, Event::Acked(record.as_packet(key)));
        }
        for record in &scratch.lost {
            scheduler.tell_joint(now, shared, Event::Lost(record.as_packet(key)));
        }
        if scratch.requeued.len() > 1 {
            scratch.requeued.sort_unstable();
        }
        for &(stream, span) in &scratch.requeued {
            let event = Event::Requeued { stream, span, origin: key };
            scheduler.tell_joint(now, shared, event);
        }
    }

    fn tell_ack_seen(
        &mut self,
        now: Instant,
        space: Space,
        arrived_on: PathKey,
        ack: &Ack<'_>,
        advances: bool,
    ) {
        let Space::Data(slot) = space else { return };
        let delay = self.ack_delay(space, ack.delay);
        let Some(data) = self.shared.paths.get_mut(slot) else { return };
        let largest = ack.largest();
        let Some(sent_at) = data.ack_times.sent_at(largest) else { return };
        let since_sent = (now - sent_at).saturating_sub(delay);
        let event = Event::AckSeen { data: data.key, arrived_on, largest, since_sent, advances };
        self.scheduler.tell_ack_policy(now, &self.shared, event);
    }

    /// All that is in flight on a path is pending again; the packets stay in flight.
    pub(super) fn requeue_in_flight(&mut self, now: Instant, slot: u8) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let Some(data) = self.shared.paths.get_mut(slot) else { return };
        let key = data.key;
        scratch.lost.extend(data.sent.iter_mut().filter(|record| !record.requeued).map(|record| {
            let copy = record.clone();
            record.requeued = true;
            copy
        }));
        for record in &scratch.lost {
            self.settle_lost(Space::Data(slot), record, &mut scratch.requeued);
        }
        scratch.requeued.sort_unstable();
        for &(stream, span) in &scratch.requeued {
            let event = Event::Requeued { stream, span, origin: key };
            self.scheduler.tell_joint(now, &self.shared, event);
        }
        self.flush_edges(now);
        scratch.lost.clear();
        scratch.requeued.clear();
        self.scratch = scratch;
    }

    fn sent_mut(&mut self, space: Space) -> Option<&mut SentPackets> {
        match space {
            Space::Data(slot) => self.shared.paths.get_mut(slot).map(|data| &mut data.sent),
            _ => self.handshake.space_mut(space).map(|state| &mut state.sent),
        }
    }

    fn received_of(
        &mut self,
        space: Space,
        path: PathKey,
    ) -> Option<&mut crate::recovery::Received> {
        match space {
            Space::Data(_) => self
                .shared
                .paths
                .get_mut(path.slot)
                .filter(|data| data.key == path)
                .map(|data| &mut data.received),
            _ => self.handshake.space_mut(space).map(|state| &mut state.received),
        }
    }
}

impl Scratch {
    /// Empties the buffers; lost packets are remembered for late acknowledgements.
    fn recycle(&mut self, sent: Option<&mut SentPackets>) {
        self.acked.clear();
        self.late.clear();
        match sent {
            Some(sent) => self.lost.drain(..).for_each(|record| sent.remember_lost(record)),
            None => self.lost.clear(),
        }
        self.requeued.clear();
    }
}

/// Send times of the last packets, so that a repeated acknowledgement can still be measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct AckTimes {
    recent: std::collections::VecDeque<(quipu_base::PacketNumber, Instant)>,
}

impl AckTimes {
    /// Largest-acknowledged packets remembered.
    const MAX: usize = 64;

    /// A packet was the largest of an acknowledgement for the first time.
    pub(crate) fn note(&mut self, pn: quipu_base::PacketNumber, sent_at: Instant) {
        if self.recent.len() >= Self::MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((pn, sent_at));
    }

    fn sent_at(&self, pn: quipu_base::PacketNumber) -> Option<Instant> {
        self.recent.iter().rev().find(|(known, _)| *known == pn).map(|(_, at)| *at)
    }
}
