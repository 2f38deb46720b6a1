//! What an acknowledgement sets in motion: recovery settles packets, and what they carried is
//! handed on to streams, handshake and control frames; policies and recorder are told.

use quipu_base::{Bytes, Duration, Instant};
use quipu_policy::{Event, PathKey, Span, StreamKey};

use super::receive::Came;
use super::spaces::recovery_of;
use super::{Connection, ConnectionEvent, Space};
use crate::error::TransportError;
use crate::path::Step;
use crate::recorder::PathEvent;
use crate::recovery::{Acknowledgement, NeverSent, SentControl, SentRecord, Settled};
use crate::wire::frame::Ack;

/// Buffers used again from one acknowledgement to the next, while something is in flight.
#[derive(Default)]
pub(super) struct Scratch(Option<Box<Buffers>>);

#[derive(Default)]
struct Buffers {
    settled: Settled,
    requeued: Vec<(StreamKey, Span)>,
}

impl Scratch {
    /// What recovery is to write to.
    pub(super) fn settled_mut(&mut self) -> &mut Settled {
        &mut self.get().settled
    }

    fn get(&mut self) -> &mut Buffers {
        self.0.get_or_insert_default()
    }
}

impl Connection {
    /// Nothing is in flight: gives back what is kept of packets. A server may have many connections
    /// that did something once.
    pub(super) fn release_memory(&mut self) {
        self.scratch = Scratch::default();
        self.ids.release_memory();
        self.handshake.release_memory();
        for slot in 0..self.shared.paths.slots() {
            if let Some(data) = self.shared.paths.get_mut(slot) {
                data.packets.sent.release();
            }
        }
    }

    /// An ACK or PATH_ACK frame came, for packets of `space`.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        space: Space,
        came: Came,
        ack: &Ack<'_>,
    ) -> Result<(), TransportError> {
        let event = Acknowledgement {
            now,
            ack,
            arrived_on: came.on,
            came_at: came.at,
            delay: self.ack_delay(space, ack.delay),
            validated: self.peer_validated_us() || space == Space::Handshake,
            max_ack_delay: self.handshake.peer().max_ack_delay,
        };
        let paths = &mut self.shared.paths;
        let Some(mut recovery) = recovery_of(paths, &mut self.handshake, space) else {
            return Ok(());
        };
        let (key, scheduler) = (recovery.path.key(), &self.scheduler);
        let settled = self.scratch.settled_mut();
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.1
        //# An endpoint SHOULD treat receipt of an acknowledgment for a packet it
        //# did not send as a connection error of type PROTOCOL_VIOLATION
        recovery.on_ack(&event, |way| scheduler.takes_sample(key, way), settled).map_err(
            |NeverSent| TransportError::protocol_violation("acknowledged a packet never sent"),
        )?;
        if let Some(revived) = self.scratch.settled_mut().revived() {
            self.step_path(revived, Step::Answer);
            self.events.tell(ConnectionEvent::PathRevived(revived.id));
            self.tell_of_broken_paths(now);
        }
        if self.scratch.settled_mut().is_nothing_acked() {
            self.tell_ack_seen(now, space, &event, false);
            return Ok(());
        }
        if let Space::Data(slot) = space {
            self.handshake.on_acked(key.id, ack.largest(), false)?;
            if let Some(data) = self.shared.paths.get_mut(slot) {
                data.responses.on_passed(self.scratch.settled_mut().acked().len());
            }
        }
        self.hand_on(now, space, Some(&event));
        self.suspect_silent_paths(now, space.slot());
        Ok(())
    }

    /// Packets of `space` that are overdue are lost.
    pub(super) fn on_loss_timer(&mut self, now: Instant, space: Space) {
        let max_ack_delay = self.handshake.peer().max_ack_delay;
        let paths = &mut self.shared.paths;
        if let Some(mut recovery) = recovery_of(paths, &mut self.handshake, space) {
            recovery.on_loss_timer(now, max_ack_delay, self.scratch.settled_mut());
            self.hand_on(now, space, None);
        }
    }

    /// Hands on what recovery settled: to what the packets carried, the policies and the recorder.
    pub(super) fn hand_on(
        &mut self,
        now: Instant,
        space: Space,
        event: Option<&Acknowledgement<'_>>,
    ) {
        let mut scratch = self.scratch.0.take().unwrap_or_default();
        self.record_lost(now, space, scratch.settled.lost());
        self.settle(now, space, &mut scratch);
        if let Space::Data(slot) = space {
            self.settle_mtu(now, slot, &scratch.settled);
        }
        self.record_metrics(now, space.slot());
        if let Space::Data(slot) = space {
            self.tell_settled(now, slot, &mut scratch);
        }
        if let Some(event) = event {
            self.tell_ack_seen(now, space, event, true);
        }
        self.flush_edges(now);
        let recovery = recovery_of(&mut self.shared.paths, &mut self.handshake, space);
        scratch.settled.recycle(recovery.map(|recovery| recovery.sent));
        scratch.requeued.clear();
        self.scratch = Scratch(Some(scratch));
    }

    /// The delay that the peer says to have added, in units of its exponent, as far as it counts.
    fn ack_delay(&self, space: Space, field: u64) -> Duration {
        let Space::Data(_) = space else { return Duration::ZERO };
        let peer = self.handshake.peer();
        let micros = field.checked_shl(u32::from(peer.ack_delay_exponent)).unwrap_or(u64::MAX);
        let delay = Duration::from_micros(micros);
        // https://www.rfc-editor.org/rfc/rfc9002#section-5.3
        //# To account for this, the endpoint SHOULD ignore max_ack_delay until the handshake is
        //# confirmed, as defined in Section 4.1.2 of [QUIC-TLS]. SHOULD ignore the peer's
        //# max_ack_delay until the handshake is confirmed; [...] MUST use the lesser of the
        //# acknowledgment delay and the peer's max_ack_delay after the handshake is confirmed;
        //# and
        if self.lifecycle.is_confirmed() { delay.min(peer.max_ack_delay) } else { delay }
    }

    /// Applies what was acknowledged and lost to streams and control frames.
    fn settle(&mut self, now: Instant, space: Space, scratch: &mut Buffers) {
        let Buffers { settled, requeued } = scratch;
        for record in settled.acked().iter().chain(settled.late()) {
            self.settle_acked(now, space, record);
        }
        for record in settled.lost() {
            self.tell_lost_datagrams(record);
            self.settle_lost(space, record, requeued);
        }
        self.shared.streams.conn_view_mut().in_flight -= settled.released();
    }

    /// Takes bytes off what is in flight on a path and in all.
    pub(super) fn release_in_flight(&mut self, slot: u8, bytes: Bytes) {
        // What was in flight on an abandoned path went off the count with its view.
        if let Some((_, view)) = self.shared.paths.pair_mut(slot) {
            view.in_flight -= bytes;
            self.shared.streams.conn_view_mut().in_flight -= bytes;
        }
    }

    fn settle_acked(&mut self, now: Instant, space: Space, record: &SentRecord) {
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
                SentControl::RetireConnectionId { .. } => self.control.on_retirement_acked(),
                SentControl::Ping => self.on_ping_acked(space.slot(), now - record.sent_at),
                SentControl::Datagram(id) => self.on_datagram_acked(*id),
                SentControl::AckFrequency { sequence } => self.on_ack_request_acked(*sequence),
                SentControl::NewConnectionId { path, sequence } => {
                    self.ids.on_acked(*path, *sequence);
                }
                SentControl::HandshakeDone
                | SentControl::NewToken(_)
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
                // https://www.rfc-editor.org/rfc/rfc9001#section-4
                //# If QUIC needs to retransmit that data, it MUST use the same keys even if TLS
                //# has already updated to newer keys.
                // https://www.rfc-editor.org/rfc/rfc9001#section-4.9
                //# If packets from a lower encryption level contain CRYPTO frames, frames that
                //# retransmit that data MUST be sent at the same encryption level.
                SentControl::Crypto { span } => self.handshake.crypto_mut(space).on_lost(*span),
                SentControl::Stream(piece) => {
                    let streams = &mut self.shared.streams;
                    streams.on_lost(piece.stream, piece.span, piece.fin, origin, requeued);
                }
                SentControl::StreamFrame(frame) => self.shared.streams.requeue_frame(frame),
                SentControl::AckFrequency { sequence } => self.on_ack_request_lost(*sequence),
                SentControl::Ping => {
                    if let Some(data) = self.shared.paths.get_mut(space.slot()) {
                        data.pings.on_lost();
                    }
                }
                other => self.control.requeue(other, |path| self.plan.is_over(path)),
            }
        }
    }

    /// Tells the policies of what was settled, in the order of the seam.
    fn tell_settled(&mut self, now: Instant, slot: u8, scratch: &mut Buffers) {
        let Some(key) = self.shared.paths.get(slot).map(|data| data.key) else { return };
        let Buffers { settled, requeued } = scratch;
        let (scheduler, shared) = (&mut self.scheduler, &self.shared);
        if let Some(revived) = settled.revived() {
            scheduler.tell(now, shared, Event::PathRevived(revived));
            self.recording.path(now, revived.id, PathEvent::Revived);
        }
        scheduler.tell(now, shared, Event::PathMeasured(key));
        for record in settled.acked() {
            scheduler.tell_joint(now, shared, Event::Acked(record.as_packet(key)));
        }
        for record in settled.lost() {
            scheduler.tell_joint(now, shared, Event::Lost(record.as_packet(key)));
        }
        if requeued.len() > 1 {
            requeued.sort_unstable();
        }
        for &(stream, span) in requeued.iter() {
            let event = Event::Requeued { stream, span, origin: key };
            scheduler.tell_joint(now, shared, event);
        }
    }

    fn tell_ack_seen(
        &mut self,
        now: Instant,
        space: Space,
        event: &Acknowledgement<'_>,
        advances: bool,
    ) {
        let Space::Data(slot) = space else { return };
        let Some(data) = self.shared.paths.get(slot) else { return };
        let largest = event.ack.largest();
        let Some(sent_at) = data.recovery.sent_at(largest) else { return };
        let since_sent = (now - sent_at).saturating_sub(event.delay);
        let (data, arrived_on) = (data.key, event.arrived_on);
        let event = Event::AckSeen { data, arrived_on, largest, since_sent, advances };
        self.scheduler.tell_ack_policy(now, &self.shared, event);
    }

    /// All that is in flight on a path is pending again; the packets stay in flight.
    pub(super) fn requeue_in_flight(&mut self, now: Instant, slot: u8) {
        let Some(data) = self.shared.paths.get_mut(slot) else { return };
        let key = data.key;
        let fresh = data.packets.sent.iter_mut().filter(|record| !record.requeued);
        let records: Vec<SentRecord> = fresh
            .map(|record| {
                let copy = record.clone();
                record.requeued = true;
                copy
            })
            .collect();
        let mut requeued = std::mem::take(&mut self.scratch.get().requeued);
        for record in &records {
            self.settle_lost(Space::Data(slot), record, &mut requeued);
        }
        requeued.sort_unstable();
        for (stream, span) in requeued.drain(..) {
            let event = Event::Requeued { stream, span, origin: key };
            self.scheduler.tell_joint(now, &self.shared, event);
        }
        self.flush_edges(now);
        self.scratch.get().requeued = requeued;
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
                .map(|data| &mut data.packets.received),
            _ => self.handshake.space_mut(space).map(|state| &mut state.received),
        }
    }
}
