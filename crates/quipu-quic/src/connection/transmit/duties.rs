//! What is bound to one path and asks no policy: path validation (`validation`) and probes.

use quipu_base::Instant;
use quipu_policy::{Kind, PathState, Piece};
use smallvec::SmallVec;

use super::Full;
use crate::config::MIN_UDP_PAYLOAD;
use crate::connection::packet::PacketBuilder;
use crate::connection::{Connection, Space};
use crate::outbox::Outbox;
use crate::path::PathMut;
use crate::recovery::{SentControl, SentRecord};
use crate::stream::Streams;
use crate::wire::Frame;

impl Connection {
    /// What is bound to one path: challenges and responses, and probes. No policy is asked.
    pub(super) fn send_path_duties(
        &mut self,
        now: Instant,
        slot: u8,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        let Some(data) = self.shared.paths.get(slot).filter(|data| data.lives()) else {
            return Ok(());
        };
        if !data.has_duties(now) && self.silence.asks().is_empty() {
            return Ok(());
        }
        if data.addresses.wants_challenge() || !data.responses.is_empty() {
            self.send_validation(now, slot, outbox)?;
        }
        if !self.silence.asks().is_empty() {
            self.send_question(now, slot, outbox)?;
        }
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.5
        //# Probe packets MUST NOT be blocked by the congestion controller.
        // A probe that must not go now goes as soon as it may.
        while let Some(path) = self.shared.paths.at(slot)
            && path.data.recovery.probes_due() > 0
            && !path.is_blocked()
            && !path.data.is_amplification_limited()
        {
            self.send_probe(now, slot, outbox)?;
        }
        self.send_pings(now, slot, outbox)?;
        self.send_mtu_probe(now, slot, outbox)
    }

    /// A PING to a server that fell silent, in a full datagram: if it comes from an address that the
    /// server does not know, that much allows an answer worth the name.
    fn send_question(
        &mut self,
        now: Instant,
        slot: u8,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        let Some(path) = self.shared.paths.at(slot) else { return Ok(()) };
        let key = path.data.key;
        if !self.silence.asks().contains(key) || path.is_blocked() {
            return Ok(());
        }
        let size = usize::from(MIN_UDP_PAYLOAD);
        self.send_one_rtt(now, outbox, slot, size, |connection, packet| {
            packet.pad_to_end();
            connection.write_acks(now, packet);
            packet.write_eliciting(|writer| Frame::Ping.write(writer));
            connection.silence.on_asked(key);
        })?;
        Ok(())
    }

    /// A probe: the oldest bytes that the path still owes, else a PING.
    fn send_probe(&mut self, now: Instant, slot: u8, outbox: &mut dyn Outbox) -> Result<(), Full> {
        let PathMut { data, view, .. } = self.path_with_room(outbox, slot)?;
        let nth = data.recovery.take_probe();
        // The second one is small, in case that the path stopped carrying full datagrams.
        let size = usize::from(if nth == 0 { data.mtu.size() } else { data.mtu.safe_size() });
        // What a suspect path owes is for the others: a probe must not take it back.
        let suspect = view.is_some_and(|view| view.state == PathState::Suspect);
        let forgotten = data.packets.sent.make_room_for_probe();
        self.release_in_flight(slot, forgotten);
        self.send_one_rtt(now, outbox, slot, size, |connection, packet| {
            connection.write_acks(now, packet);
            let path = connection.shared.paths.get_mut(slot);
            let oldest = path.and_then(|data| take_for_probe(data.packets.sent.iter_mut(), nth));
            if let Some((pieces, controls)) = oldest {
                for control in &controls {
                    connection.requeue_control(slot, control);
                }
                if !suspect {
                    connection.write_controls(packet);
                    packet.write_control_streams(&mut connection.shared.streams);
                }
                for piece in pieces {
                    packet.write_probe_piece(&connection.shared.streams, piece);
                }
            }
            // "When sending PTO packets, one can include an IMMEDIATE_ACK frame to elicit an immediate
            // acknowledgment."
            // https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-7
            if connection.asks_for_acks_at_once() {
                packet.write_eliciting(|writer| Frame::ImmediateAck.write(writer));
            }
            // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.4
            //# All probe packets sent on a PTO MUST be ack-eliciting. When there is no data to
            //# send, the sender SHOULD send a PING or other ack-eliciting frame in a single
            //# packet, rearming the PTO timer.
            if !packet.record.ack_eliciting {
                packet.write_eliciting(|writer| Frame::Ping.write(writer));
            }
            // Its bytes are those of another packet: its own loss asks for its control frames at
            // most.
            packet.record.repeats = true;
            packet.record.requeued = packet.record.controls.iter().all(stays);
        })?;
        Ok(())
    }

    fn requeue_control(&mut self, slot: u8, control: &SentControl) {
        let mut record = SentRecord::new(quipu_base::PacketNumber(0), Instant::ZERO);
        record.controls.push(control.clone());
        self.settle_lost(Space::Data(slot), &record, &mut Vec::new());
    }
}

impl PacketBuilder<'_> {
    /// Repeats what the peer is not known to have of a piece; the stream is not told.
    fn write_probe_piece(&mut self, streams: &Streams, (piece, fin): (Piece, bool)) {
        let stream = piece.stream;
        if let Some(span) = streams.first_unacked(stream, piece.span, fin)
            && let Some((span, fin)) = self.write_stream(streams, stream, span)
        {
            self.record.add_piece(Piece { stream, span, kind: Kind::Copy }, fin);
        }
    }
}

/// What a probe repeats: stream pieces, each with whether it carried the end, and control frames.
type ProbeContent = (Vec<(Piece, bool)>, SmallVec<[SentControl; 1]>);

/// The stream pieces of the `nth` oldest packet in flight that has something to repeat, and its
/// control frames, which move to the probe.
fn take_for_probe<'a>(
    records: impl Iterator<Item = &'a mut SentRecord>,
    nth: usize,
) -> Option<ProbeContent> {
    let has_content =
        |record: &SentRecord| !record.pieces.is_empty() || !record.controls.iter().all(stays);
    let record = records.filter(|record| record.ack_eliciting && has_content(record)).nth(nth)?;
    let (staying, controls) = std::mem::take(&mut record.controls).into_iter().partition(stays);
    record.controls = staying;
    let pieces = record.pieces.iter().enumerate();
    Some((pieces.map(|(at, piece)| (*piece, record.carries_fin(at))).collect(), controls))
}

/// True of what is never repeated.
fn stays(control: &SentControl) -> bool {
    // https://www.rfc-editor.org/rfc/rfc9221#section-5.2
    //# As with any ack-eliciting frame, when a sender suspects that a packet containing only DATAGRAM
    //# frames has been lost, it sends probe packets to elicit a faster acknowledgement as described
    //# in Section 6.2.4 of [RFC9002].
    matches!(control, SentControl::Ack { .. } | SentControl::Datagram(_))
}
