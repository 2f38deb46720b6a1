//! What is done with events, and which plans are taken back.

use quipu_base::Bytes;

use super::place::is_backup;
use super::{Planned, Replan};
use crate::joint::free_set::Spare;
use crate::joint::ledger::Commit;
use crate::joint::planner::Planner;
use crate::key::{PathKey, StreamKey};
use crate::path::TakeBack;
use crate::seam::event::Event;
use crate::seam::view::{Kind, Piece, SentPacket, View};
use crate::stream::Turn;

impl<P: Planner> Planned<P> {
    /// Step 1: takes back the plans that no longer hold.
    pub(super) fn revise(&mut self, view: &View<'_>) {
        let changed = std::mem::take(&mut self.changed);
        let touched = std::mem::take(&mut self.touched);
        if changed {
            let payloads = view.paths.usable().map(|path| path.payload);
            self.packet = payloads.max().unwrap_or_default();
            // Stream credit may have grown without an edge: the engine held these for ready.
            let covered = self.edges.take_covered();
            for &stream in &covered {
                self.refresh(stream, view);
            }
            self.edges.recycle(covered);
        }
        if self.ledger.is_empty() {
            return;
        }
        let reordered = self.planner.rebinds() && self.planner.order() != self.order;
        if reordered || (touched && self.replan == Replan::Always) {
            self.take_back_all(view);
        } else if changed {
            match self.planner.take_back(view) {
                TakeBack::Nothing => {}
                TakeBack::Path(path) => self.take_back_path(path, view),
                TakeBack::All => self.take_back_all(view),
            }
            let limit = self.planner.commit_limit(view);
            while self.ledger.total() > limit && self.take_back_newest(view) {}
        }
        while self.ledger.reserved() > view.conn.credit && self.take_back_newest(view) {}
    }

    /// Tells the planner if it must know; `true` if it was told.
    pub(super) fn refresh(&mut self, stream: StreamKey, view: &View<'_>) -> bool {
        let (ready, covered) = match view.streams.get(stream) {
            Some(stream) => {
                let ready = self.ledger.leaves_something(stream);
                if !stream.free.is_zero() || stream.bare_fin {
                    self.free.add(stream.key, Spare::Skipped);
                }
                (ready, !ready && stream.is_ready())
            }
            None => (false, false),
        };
        match self.edges.update(stream, ready, covered) {
            Some(true) => self.planner.on_event(&Event::Ready(stream), view),
            Some(false) => self.planner.on_event(&Event::Stopped(stream), view),
            None => return false,
        }
        true
    }

    /// Takes back the newest packet planned, so that an open path with nothing else to carry may
    /// have it; `false` if there is none or it was tried already.
    pub(super) fn reconsider(&mut self, view: &View<'_>) -> bool {
        if self.reconsidered || self.ledger.is_empty() || !self.planner.rebinds() {
            return false;
        }
        self.reconsidered = true;
        let newest = self.ledger.pop_newest_tail(self.packet.max(Bytes(1)));
        newest.map(|commit| self.returned(commit, view)).is_some()
    }

    pub(super) fn note_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.keep_answer(event);
        self.touched = true;
        self.reconsidered = false;
        self.changed |= !matches!(event, Event::Placed { .. } | Event::Sent(_));
        if !matches!(event, Event::Woken | Event::Drained) {
            self.waiting_until = None;
        }
        match *event {
            Event::Ready(stream) => {
                if view.streams.get(stream).is_some_and(|stream| !stream.free.is_zero()) {
                    // Told anew to a policy that joins late, lost bytes come without `Requeued`.
                    self.free.add(stream, Spare::Lost);
                }
                self.refresh(stream, view);
            }
            Event::Stopped(stream) => {
                self.refresh(stream, view);
            }
            Event::Placed { piece, .. } => self.placed(event, piece, view),
            Event::Sent(_) => {
                self.packet_stream = None;
                self.stalled_since = None;
                self.planner.on_event(event, view);
            }
            Event::Acked(packet) => self.acked(event, packet, view),
            Event::Opened(stream) => {
                self.edges.reset(stream);
                self.planner.on_event(event, view);
            }
            Event::Written(stream) => {
                self.planner.on_event(event, view);
                self.refresh(stream, view);
            }
            Event::Requeued { stream, span, .. } => {
                self.ledger.reopen(stream, span.start);
                self.free.add(stream, Spare::Lost);
                self.planner.on_event(event, view);
                self.refresh(stream, view);
            }
            Event::Closed(stream) => {
                while let Some(commit) = self.ledger.pop_of_stream(stream) {
                    let turn = Turn { stream, max: commit.span.len() };
                    self.planner.on_returned(turn, view);
                }
                self.ledger.forget(stream);
                self.free.forget(stream);
                self.edges.reset(stream);
                self.planner.on_event(event, view);
            }
            Event::PathGone(path) | Event::PathSuspect(path) => {
                self.take_back_path(path, view);
                self.planner.on_event(event, view);
            }
            Event::PathStatus(path) => {
                if is_backup(view, path) {
                    self.take_back_path(path, view);
                }
                self.planner.on_event(event, view);
            }
            _ => self.planner.on_event(event, view),
        }
    }

    /// A frame was written: charges what no commit had charged.
    fn placed(&mut self, event: &Event<'_>, piece: Piece, view: &View<'_>) {
        let Piece { stream, span, kind } = piece;
        self.packet_stream = Some(stream);
        if kind != Kind::Copy {
            let uncharged = if span.is_empty() {
                (!self.ledger.release_fin(stream)).then_some(Bytes::ZERO)
            } else {
                let held = self.ledger.release(stream, span);
                Some(span.len() - held).filter(|bytes| !bytes.is_zero())
            };
            if let Some(max) = uncharged {
                self.planner.on_taken(Turn { stream, max }, kind, view);
            }
            if let Some(stream) = view.streams.get(stream) {
                self.ledger.settle(stream.key, stream.high_sent);
            }
        }
        self.planner.on_event(event, view);
        self.refresh(stream, view);
    }

    /// A late acknowledgement also settles pending bytes, planned ones included.
    fn acked(&mut self, event: &Event<'_>, packet: SentPacket<'_>, view: &View<'_>) {
        for piece in packet.pieces {
            if self.ledger.holds_any(piece.stream) {
                let freed = self.ledger.release(piece.stream, piece.span);
                if !freed.is_zero() {
                    self.give_back(piece.stream, freed, view);
                }
            }
        }
        self.planner.on_event(event, view);
    }

    pub(super) fn take_back_all(&mut self, view: &View<'_>) {
        while self.take_back_newest(view) {}
    }

    fn take_back_path(&mut self, path: PathKey, view: &View<'_>) {
        while let Some(commit) = self.ledger.pop_newest_of(path) {
            self.returned(commit, view);
        }
    }

    fn take_back_newest(&mut self, view: &View<'_>) -> bool {
        let Some(commit) = self.ledger.pop_newest() else { return false };
        self.returned(commit, view);
        true
    }

    fn returned(&mut self, commit: Commit, view: &View<'_>) {
        self.give_back(commit.stream, commit.span.len(), view);
    }

    /// Refunds bytes that a commit charged, and brings credit and edges up to date.
    pub(super) fn give_back(&mut self, stream: StreamKey, max: Bytes, view: &View<'_>) {
        self.planner.on_returned(Turn { stream, max }, view);
        if let Some(stream) = view.streams.get(stream) {
            self.ledger.settle(stream.key, stream.high_sent);
        }
        self.refresh(stream, view);
    }
}
