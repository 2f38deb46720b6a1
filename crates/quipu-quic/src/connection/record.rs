//! What the recorder is told, if there is one: see [`crate::recorder`].

use quipu_base::{Instant, PathId, StreamId};
use quipu_policy::{Ask, Checked, DecidedBy, Decision, Placement, Refusal};

use super::lifecycle::Phase;
use super::packet::PacketBuilder;
use super::receive::OpenedPacket;
use super::{Connection, FirstIds, Space};
use crate::recorder::{
    ConnectionState, DropReason, Event, LossSign, Metrics, Outcome, PacketInfo, Scheduled, Started,
    StreamSide, StreamState, Timer,
};
use crate::recovery::{PacketSpace, SentRecord};
use crate::route::Route;
use crate::wire::{ConnectionId, PacketKind};

impl Space {
    pub(super) const fn kind(self) -> PacketKind {
        match self {
            Space::Initial => PacketKind::Initial,
            Space::Handshake => PacketKind::Handshake,
            Space::Data(_) => PacketKind::OneRtt,
        }
    }
}

/// An accepted answer, as the recorder is told of it.
fn outcome(checked: &Checked) -> Outcome {
    match *checked {
        Checked::Frame(key, Placement { stream, span, copy }) => {
            Outcome::Sends { path: key.id, stream: stream.id, span, copy }
        }
        Checked::Probe(key) => Outcome::Probes { path: key.id },
        Checked::Rest => Outcome::Rests,
    }
}

impl Connection {
    /// The connection begins, and with it its first path.
    pub(super) fn record_start(&mut self, now: Instant, route: Route, ids: &FirstIds) {
        if !self.recording.is_on() {
            return;
        }
        let started = Started {
            role: self.role,
            route,
            local_cid: self.ids.first_local(),
            remote_cid: self.ids.remote().active(PathId::ZERO).unwrap_or_default(),
            original_dcid: self.ids.original(),
        };
        self.recording.record(now, || Event::Started(started));
        let own = super::parameters(self.role, &self.config, ids);
        self.recording.record(now, || Event::Parameters { own: true, parameters: &own });
    }

    /// Ends and key updates since the last call.
    pub(super) fn record_lifecycle(&mut self, now: Instant) {
        if !self.recording.is_on() {
            return;
        }
        self.recording.updates(now, self.handshake.keys().updates());
        if let Some(reason) = self.lifecycle.reason() {
            self.recording.close(now, reason);
        }
        match self.lifecycle.phase() {
            Phase::Handshaking | Phase::Established | Phase::Confirmed => {}
            Phase::Closing => self.recording.state(now, ConnectionState::Closing),
            Phase::Draining => self.recording.state(now, ConnectionState::Draining),
            Phase::Closed => self.recording.state(now, ConnectionState::Closed),
        }
    }

    /// A packet is complete and about to be sealed; it will be `size` bytes long.
    pub(super) fn record_sent(&mut self, now: Instant, packet: &PacketBuilder<'_>, size: usize) {
        if !self.recording.is_on() {
            return;
        }
        let kind = packet.kind();
        let path = packet.key().id;
        let long = kind != PacketKind::OneRtt;
        let info = PacketInfo {
            kind,
            path,
            number: packet.record.pn,
            size,
            dcid: packet.dcid(),
            scid: if long { self.ids.first_local() } else { ConnectionId::EMPTY },
            token: if kind == PacketKind::Initial { self.handshake.token().len() } else { 0 },
            payload: packet.payload(),
        };
        let probe = packet.record.repeats;
        self.recording.record(now, || Event::PacketSent { packet: info, probe });
    }

    /// A packet was opened and is not a duplicate.
    pub(super) fn record_received(&mut self, now: Instant, packet: &OpenedPacket<'_>) {
        let OpenedPacket { header, path, number, payload, .. } = *packet;
        let ecn = packet.arrival().ecn;
        self.recording.record(now, || {
            let info = PacketInfo {
                kind: header.kind,
                path,
                number,
                size: header.packet_length,
                dcid: header.dcid,
                scid: header.scid,
                token: header.token.len(),
                payload,
            };
            Event::PacketReceived { packet: info, ecn }
        });
    }

    /// A packet is dropped unread.
    pub(super) fn record_dropped(
        &mut self,
        now: Instant,
        kind: Option<PacketKind>,
        path: PathId,
        size: usize,
        reason: DropReason,
    ) {
        self.recording.record(now, || Event::PacketDropped { kind, path, size, reason });
    }

    /// Packets of a space were declared lost.
    pub(super) fn record_lost(&mut self, now: Instant, space: Space, lost: &[SentRecord]) {
        if !self.recording.is_on() || lost.is_empty() {
            return;
        }
        let Some(data) = self.shared.paths.get(space.slot()) else { return };
        let path = data.key.id;
        let threshold = data.recovery.packet_threshold(matches!(space, Space::Data(_)));
        let Some(PacketSpace { sent, .. }) = self.packets(space) else { return };
        let newest_overtaken = sent.overtaken(threshold);
        for record in lost {
            let overtaken = Some(record.pn) <= newest_overtaken;
            self.recording.record(now, || Event::PacketLost {
                kind: space.kind(),
                path,
                number: record.pn,
                sign: if overtaken { LossSign::Reordering } else { LossSign::Time },
            });
        }
    }

    /// What is known of a path now.
    pub(super) fn record_metrics(&mut self, now: Instant, slot: u8) {
        if !self.recording.is_on() {
            return;
        }
        let Some(data) = self.shared.paths.get(slot) else { return };
        let Some(view) = self.shared.paths.views.get(data.key) else { return };
        let published = &self.shared.paths.published;
        let Some((_, controller)) = published.iter().find(|(key, _)| *key == data.key) else {
            return;
        };
        let metrics = Metrics {
            view,
            controller,
            packets_in_flight: data.packets.sent.eliciting_in_flight(),
            pacing_rate: data.recovery.configured_pace(),
        };
        self.recording.record(now, || Event::Metrics(metrics));
    }

    /// Sending came to rest.
    pub(super) fn record_rest(&mut self, now: Instant) {
        if !self.recording.is_on() {
            return;
        }
        for slot in 0..self.shared.paths.slots() {
            self.record_metrics(now, slot);
            let Some(path) = self.shared.paths.get(slot).map(|data| data.key.id) else { continue };
            let expires_at = self.data_timer(slot);
            self.recording.record(now, || Event::TimerSet { path, expires_at });
        }
    }

    /// A loss or probe timer of a space ran out.
    pub(super) fn record_expired(&mut self, now: Instant, slot: u8, timer: Timer) {
        if let Some(path) = self.shared.paths.get(slot).map(|data| data.key.id) {
            self.recording.record(now, || Event::TimerExpired { path, timer });
        }
    }

    /// The policies answered, and this came of it.
    pub(super) fn record_answer(
        &mut self,
        now: Instant,
        ask: Ask,
        decision: Decision,
        checked: &Result<Checked, Refusal>,
    ) {
        if !self.recording.is_on() {
            return;
        }
        let outcome = match checked {
            Ok(checked) => outcome(checked),
            Err(refusal) => Outcome::Refused(*refusal),
        };
        let notes = self.scheduler.notes();
        let scheduled = Scheduled {
            ask,
            decision: Some(decision),
            decided_by: notes.decider(),
            candidates: notes.kept(),
            outcome,
        };
        self.recording.record(now, || Event::Scheduled(scheduled));
    }

    /// The engine chose in place of policies that failed.
    pub(super) fn record_override(&mut self, now: Instant, checked: &Checked) {
        self.recording.record(now, || {
            Event::Scheduled(Scheduled {
                ask: Ask::Packet,
                decision: None,
                decided_by: DecidedBy::Policy,
                candidates: &[],
                outcome: outcome(checked),
            })
        });
    }

    /// A side of a stream moved on.
    pub(super) fn record_stream(
        &mut self,
        now: Instant,
        stream: StreamId,
        side: StreamSide,
        state: StreamState,
    ) {
        self.recording.record(now, || Event::Stream { stream, side, state });
    }
}
