//! Control frames into packets.

use quipu_base::{Bytes, Instant};

use super::Full;
use crate::connection::control::{Values, to_frame};
use crate::connection::packet::PacketBuilder;
use crate::connection::{Connection, Space};
use crate::outbox::Outbox;
use crate::recovery::{SentControl, SentStreamPiece};
use crate::stream::Streams;

impl Connection {
    pub(in crate::connection) fn has_control_frames(&self) -> bool {
        !self.control.is_empty()
            || self.shared.streams.has_frames()
            || self.has_ack_request()
            || self.handshake.crypto_waits(Space::Data(0))
    }

    /// What the acknowledgement policy asks of the peer waits to be sent.
    pub(super) fn take_advice(&mut self, now: Instant) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.21
        //# An extension to QUIC that wishes to use a new type of frame MUST first ensure that a
        //# peer is able to understand the frame.
        if self.shared.streams.conn_view().return_paths
            && let Some(pairs) = self.scheduler.advice(now, &self.shared)
        {
            let pairs = pairs.into_iter().map(|(data, on)| (data.id, on.id));
            self.control.advise_return_paths(pairs);
        }
    }

    /// Control frames that no data packet carried go on the path that the policy names.
    pub(super) fn send_left_over_controls(
        &mut self,
        now: Instant,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        while self.has_control_frames() {
            let Some(key) = self.scheduler.control_path(now, &self.shared) else { return Ok(()) };
            let Some(path) = self.shared.paths.at(key.slot).filter(|path| path.is_open(now)) else {
                return Ok(());
            };
            let size = path.packet_size();
            let written =
                self.send_one_rtt(now, outbox, key.slot, size, |connection, packet| {
                    connection.write_acks(now, packet);
                    connection.write_controls(packet);
                    packet.record.ack_eliciting
                })?;
            if written != Some(true) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Writes waiting control frames, as many as fit.
    pub(in crate::connection) fn write_controls(&mut self, packet: &mut PacketBuilder<'_>) {
        if self.handshake.crypto_waits(Space::Data(0)) {
            self.handshake.crypto_mut(Space::Data(0)).write_to(packet);
        }
        if !self.control.is_empty() {
            let multipath = self.multipath().is_some();
            let values = Values { multipath, plan: &mut self.plan, ids: &mut self.ids };
            self.control.write(packet, values);
        }
        if self.has_ack_request() {
            self.write_ack_request(packet);
        }
        packet.write_stream_frames(&mut self.shared.streams);
    }
}

impl PacketBuilder<'_> {
    /// Writes frames of credit, limits and ends of streams, as many as fit.
    fn write_stream_frames(&mut self, streams: &mut Streams) {
        while streams.has_frames() {
            let space_left = self.space_left();
            let Some(control) = streams.pop_frame(|frame| to_frame(frame).size() <= space_left)
            else {
                return;
            };
            self.write_control(SentControl::StreamFrame(control), |writer| {
                to_frame(&control).write(writer)
            });
        }
    }

    /// Writes what control streams have to send, as much as fits.
    pub(in crate::connection) fn write_control_streams(&mut self, streams: &mut Streams) {
        while let Some((stream, span)) = streams.next_control(Bytes::MAX) {
            let Some((span, fin)) = self.write_stream(streams, stream, span) else { return };
            streams.place(stream, span);
            let piece = SentStreamPiece { stream, span, fin };
            self.record.controls.push(SentControl::Stream(piece));
            if self.space_left() == 0 {
                return;
            }
        }
    }
}
