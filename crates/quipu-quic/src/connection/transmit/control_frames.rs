//! Control frames into packets.

use quipu_base::{Instant, PathId};

use super::Full;
use crate::connection::control::to_frame;
use crate::connection::packet::PacketBuilder;
use crate::connection::{Connection, Space};
use crate::outbox::Outbox;
use crate::path::PathTable;
use crate::recovery::SentControl;
use crate::wire::Frame;
use crate::wire::frame::{NewConnectionId, write_return_paths};

impl Connection {
    pub(in crate::connection) fn has_control_frames(&self) -> bool {
        !self.control.is_empty()
            || self.shared.streams.has_frames()
            || self.handshake.crypto(Space::Data(0)).is_pending()
    }

    /// What the acknowledgement policy asks of the peer waits to be sent.
    pub(super) fn take_advice(&mut self, now: Instant) {
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
        if self.handshake.crypto(Space::Data(0)).is_pending() {
            self.write_crypto(Space::Data(0), packet);
        }
        if !self.control.is_empty() {
            self.write_queue(packet);
        }
        while self.shared.streams.has_frames() {
            let space_left = packet.space_left();
            let Some(control) =
                self.shared.streams.pop_frame(|frame| to_frame(frame).size() <= space_left)
            else {
                return;
            };
            packet.write_control(SentControl::StreamFrame(control), |writer| {
                to_frame(&control).write(writer)
            });
        }
    }

    fn write_queue(&mut self, packet: &mut PacketBuilder<'_>) {
        let multipath = self.multipath().is_some();
        if self.control.handshake_done
            && packet.write_control(SentControl::HandshakeDone, |writer| {
                Frame::HandshakeDone.write(writer)
            })
        {
            self.control.handshake_done = false;
        }
        while let Some(&(path, error_code)) = self.control.abandon.first() {
            let frame = Frame::PathAbandon { path, error_code };
            let control = SentControl::PathAbandon { path };
            if !packet.write_control(control, |writer| frame.write(writer)) {
                return;
            }
            self.control.abandon.remove(0);
        }
        if self.control.max_path_id {
            let frame = Frame::MaxPathId { maximum: self.plan.local_max() };
            if !packet.write_control(SentControl::MaxPathId, |writer| frame.write(writer)) {
                return;
            }
            self.control.max_path_id = false;
        }
        if self.control.return_paths.waits {
            let advice = &self.control.return_paths;
            let control = SentControl::ReturnPaths { sequence: advice.sequence };
            if !packet.write_control(control, |writer| {
                write_return_paths(writer, advice.sequence, &advice.pairs)
            }) {
                return;
            }
            self.control.return_paths.waits = false;
        }
        while let Some(&path) = self.control.status.first() {
            if let Some(frame) = status_frame(&self.shared.paths, path) {
                let control = SentControl::PathStatus { path };
                if !packet.write_control(control, |writer| frame.write(writer)) {
                    return;
                }
            }
            self.control.status.remove(0);
        }
        let named = |path: PathId| (multipath || path != PathId::ZERO).then_some(path);
        while let Some(&(path, sequence)) = self.control.new_cids.front() {
            if let Some((id, reset_token)) = self.ids.issued(path, sequence) {
                let frame = Frame::NewConnectionId(NewConnectionId {
                    path: named(path),
                    sequence,
                    retire_prior_to: 0,
                    id,
                    reset_token,
                });
                let control = SentControl::NewConnectionId { path, sequence };
                if !packet.write_control(control, |writer| frame.write(writer)) {
                    return;
                }
            }
            self.control.new_cids.pop_front();
        }
        while let Some(&(path, sequence)) = self.control.retire_cids.front() {
            let frame = Frame::RetireConnectionId { path: named(path), sequence };
            let control = SentControl::RetireConnectionId { path, sequence };
            if !packet.write_control(control, |writer| frame.write(writer)) {
                return;
            }
            self.control.retire_cids.pop_front();
        }
    }
}

fn status_frame(paths: &PathTable, path: PathId) -> Option<Frame<'static>> {
    let data = paths.by_id(path)?;
    let sequence = data.status.own_sequence;
    Some(match data.status.own {
        quipu_policy::PathStatus::Available => Frame::PathStatusAvailable { path, sequence },
        quipu_policy::PathStatus::Backup => Frame::PathStatusBackup { path, sequence },
    })
}
