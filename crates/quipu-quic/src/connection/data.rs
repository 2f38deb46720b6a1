//! The life of one decision: ask, check, write, settle, tell.

use quipu_base::{Bytes, Instant};
use quipu_policy::{Ask, Checked, Event, Kind, PathKey, Piece, Placement};

use super::Connection;
use super::packet::PacketBuilder;
use super::transmit::Full;
use crate::outbox::Outbox;
use crate::stream::Streams;
use crate::wire::Frame;

/// What goes before the data of streams that a policy chose, in the same packet or without any.
#[derive(Clone, Copy)]
struct Ahead {
    control_streams: bool,
    datagrams: bool,
}

impl Ahead {
    const NOTHING: Ahead = Ahead { control_streams: false, datagrams: false };
}

/// What is left of a checked answer after others used credit; `None`: the next question gets it
/// again.
fn fit_again(placement: Placement, streams: &Streams) -> Option<Placement> {
    if placement.copy {
        return Some(placement);
    }
    let Placement { stream, span, .. } = placement;
    let span = streams.fit(stream, Some(span.start), span.len()).ok()?;
    Some(Placement { span, ..placement })
}

impl Connection {
    /// Sends what the policies choose until nothing can go, they wait, or the outbox is full.
    pub(super) fn send_data(&mut self, now: Instant, outbox: &mut dyn Outbox) -> Result<(), Full> {
        loop {
            let control = self.control_stream_path(now);
            let chosen = if self.may_ask(now) { self.ask(now) } else { Checked::Rest };
            let waits = matches!(chosen, Checked::Frame(..));
            let datagrams = if waits && self.datagrams.gives_way() || self.datagrams.is_idle() {
                None
            } else {
                self.datagram_path(now)
            };
            let goes_on = |key| {
                let is_there = |path: Option<PathKey>| path == Some(key);
                Ahead { control_streams: is_there(control), datagrams: is_there(datagrams) }
            };
            let ahead = match (chosen, control.or(datagrams)) {
                (Checked::Frame(key, placement), None) => {
                    self.send_packet(now, key, Some(placement), Ahead::NOTHING, outbox)?;
                    Ahead::NOTHING
                }
                (Checked::Frame(key, placement), Some(first)) if key == first => {
                    self.send_packet(now, key, Some(placement), goes_on(key), outbox)?;
                    goes_on(key)
                }
                // They go first, and alone on their path. The answer was not charged: the next
                // question gets it again.
                (_, Some(first)) => {
                    self.send_packet(now, first, None, goes_on(first), outbox)?;
                    goes_on(first)
                }
                (Checked::Probe(key), None) => {
                    self.send_ping(now, key, outbox)?;
                    self.scheduler.on_probe(key);
                    Ahead::NOTHING
                }
                (Checked::Rest, None) => return Ok(()),
            };
            if waits {
                self.datagrams.on_packet(ahead.datagrams);
            }
        }
    }

    /// The path for control-stream bytes, if some wait and a path is open.
    fn control_stream_path(&mut self, now: Instant) -> Option<PathKey> {
        if !self.shared.streams.has_control_data() {
            return None;
        }
        self.shared.streams.next_control(Bytes::MAX)?;
        let key = self.scheduler.control_path(now, &self.shared)?;
        let view = self.shared.paths.views.get(key)?;
        view.is_open(now).then_some(key)
    }

    /// Nothing is asked while no path is open, or nothing waits and no copy may exist.
    fn may_ask(&self, now: Instant) -> bool {
        let ready = self.shared.streams.conn_view().ready > 0 || self.scheduler.has_copies();
        ready && self.shared.paths.views.open(now).next().is_some()
    }

    /// Asks until an answer holds, at most three times; then the engine chooses.
    fn ask(&mut self, now: Instant) -> Checked {
        loop {
            let decision = self.scheduler.decide(now, &self.shared, Ask::Packet);
            let checked = self.scheduler.check(now, &self.shared, Ask::Packet, decision);
            self.record_answer(now, Ask::Packet, decision, &checked);
            let refusal = match checked {
                Ok(checked) => return checked,
                Err(refusal) => refusal,
            };
            if self.scheduler.on_refused(now, &self.shared, refusal) {
                let chosen = self.choose_instead(now);
                self.record_override(now, &chosen);
                return chosen;
            }
        }
    }

    /// The policy failed: the lowest stream that is ready, on the best open path.
    fn choose_instead(&mut self, now: Instant) -> Checked {
        self.scheduler.counters.overridden += 1;
        let stream = self
            .shared
            .streams
            .views()
            .filter(|view| view.is_ready())
            .map(|view| view.key)
            .filter(|&key| self.shared.streams.fit(key, None, Bytes::MAX).is_ok())
            .min();
        let path = self.shared.paths.views.least_srtt_open(now);
        let (Some(stream), Some(path)) = (stream, path) else { return Checked::Rest };
        match self.shared.streams.fit(stream, None, Bytes::MAX) {
            Ok(span) => Checked::Frame(path, Placement { stream, span, copy: false }),
            Err(_) => Checked::Rest,
        }
    }

    /// One packet: acknowledgements and control frames, then the frames that were chosen.
    fn send_packet(
        &mut self,
        now: Instant,
        key: PathKey,
        first: Option<Placement>,
        ahead: Ahead,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        let size = self.shared.paths.at(key.slot).map_or(0, |path| path.packet_size());
        let begun = self.send_one_rtt(now, outbox, key.slot, size, |connection, packet| {
            // Before acknowledgements, which have packets of their own if need be.
            // https://www.rfc-editor.org/rfc/rfc9221#section-5
            //# This frame SHOULD be sent as soon as possible (as determined by factors like
            //# congestion control, described below) and MAY be coalesced with other frames.
            if ahead.datagrams && !ahead.control_streams {
                connection.write_datagrams(packet);
            }
            // https://www.rfc-editor.org/rfc/rfc9000#section-13.2
            //# When sending a packet for any reason, an endpoint SHOULD attempt to include an ACK
            //# frame if one has not been sent recently.
            // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
            //# An endpoint SHOULD send an ACK frame with other frames when there are new
            //# ack-eliciting packets to acknowledge.
            connection.write_acks(now, packet);
            if connection.has_control_frames() {
                connection.write_controls(packet);
            }
            let mut first = first;
            if ahead.control_streams {
                let streams = &mut connection.shared.streams;
                packet.write_control_streams(streams);
                // They took their bytes from the same credit.
                first = first.and_then(|placement| fit_again(placement, streams));
                if ahead.datagrams {
                    connection.write_datagrams(packet);
                }
            }
            if let Some(first) = first {
                connection.write_placements(now, packet, first);
            }
        })?;
        begun.ok_or(Full)
    }

    /// Writes the frame of a checked answer, and then those that are asked for to fill the packet.
    fn write_placements(&mut self, now: Instant, packet: &mut PacketBuilder<'_>, first: Placement) {
        let mut next = Some(first);
        while let Some(placement) = next.take() {
            if !self.write_placement(now, packet, placement) {
                break;
            }
            next = self.ask_to_fill(now, packet);
        }
        if !packet.record.pieces.is_empty() {
            self.scheduler.on_data_packet(packet.key());
        }
    }

    /// Asks what else goes into an open packet.
    fn ask_to_fill(&mut self, now: Instant, packet: &PacketBuilder<'_>) -> Option<Placement> {
        // A frame of one byte costs up to 14 bytes of header.
        const LEAST_FRAME: usize = 16;
        let left = packet.space_left();
        if left < LEAST_FRAME || packet.record.pieces.len() >= 32 {
            return None;
        }
        let ready = self.shared.streams.conn_view().ready > 0 || self.scheduler.has_copies();
        if !ready {
            return None;
        }
        let space = Bytes(left as u64);
        let ask = Ask::Fill { path: packet.key(), space };
        let decision = self.scheduler.decide(now, &self.shared, ask);
        let checked = self.scheduler.check(now, &self.shared, ask, decision);
        self.record_answer(now, ask, decision, &checked);
        match checked {
            Ok(Checked::Frame(_, placement)) => Some(placement),
            Ok(_) => None,
            Err(refusal) => {
                self.scheduler.on_refused(now, &self.shared, refusal);
                None
            }
        }
    }

    /// Writes the STREAM frame of a checked answer and settles it at once. True if it was written.
    fn write_placement(
        &mut self,
        now: Instant,
        packet: &mut PacketBuilder<'_>,
        placement: Placement,
    ) -> bool {
        let Placement { stream, span, copy } = placement;
        let streams = &mut self.shared.streams;
        let Some((span, fin)) = packet.write_stream(streams, stream, span) else { return false };
        let placed =
            if copy { streams.place_copy(stream, span) } else { streams.place(stream, span) };
        let kind = placed.map_or(Kind::Fresh, |placed| placed.kind);
        let piece = Piece { stream, span, kind };
        packet.record.add_piece(piece, fin);
        let event = Event::Placed { path: packet.key(), piece };
        self.scheduler.tell_joint(now, &self.shared, event);
        self.flush_edges(now);
        true
    }

    /// A PING that a policy asked for.
    fn send_ping(
        &mut self,
        now: Instant,
        key: PathKey,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        let size = self.shared.paths.at(key.slot).map_or(0, |path| path.packet_size()).max(100);
        let begun = self.send_one_rtt(now, outbox, key.slot, size, |connection, packet| {
            connection.write_acks(now, packet);
            packet.write_eliciting(|writer| Frame::Ping.write(writer));
        })?;
        begun.ok_or(Full)
    }
}
