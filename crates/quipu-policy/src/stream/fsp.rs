//! `fsp`: streams one after the other, in the order in which fair sharing would finish them.
//!
//! Source: the Fair Sojourn Protocol (Friedman and Henderson 2003), by whose order "A Multipath QUIC
//! Scheduler for Mobile HTTP/2" (2019) ranks streams: no stream ends later than under fair sharing
//! by the dependency tree. On a flat tree that is the order of `remaining / weight`. Reconstruction,
//! as the paper's code redistributes nothing when a stream ends: its order is the same on a flat
//! tree, not on deep ones. A stream whose total size the application did not tell counts with what
//! was written; a note then calls its end estimated.

use quipu_base::Bytes;

use super::gps;
use super::preemption::Preemptions;
use super::remaining::remaining;
use super::{ActiveTree, Place, StreamPolicy, Turn};
use crate::key::StreamKey;
use crate::seam::decision::{Note, Notes};
use crate::seam::event::Event;
use crate::seam::view::{Kind, View};

/// Strict service in order of the ends under fair sharing.
///
/// The order is computed anew, lazily, when a stream becomes ready, sizes or priorities change, or
/// bytes are lost; on a tree that is not flat also at the end of a send batch (on a flat tree
/// sending changes no order). A stream that blocks is passed over. O(1) per decision, beside
/// O(n log n · depth) of each computation over n ready streams.
#[derive(Clone, Debug, Default)]
pub struct FairSojourn {
    tree: ActiveTree<()>,
    /// The streams that were ready at the last computation, with the bytes that all had got at the
    /// end of each.
    ends: Vec<(StreamKey, f64)>,
    /// By stream slot: where the stream stands in `ends`.
    ranks: Vec<u32>,
    /// Before it, nothing in `ends` is ready.
    next: usize,
    /// The order must be computed anew.
    stale: bool,
    /// True if every child of the root had one ready stream below it: sending changes no order.
    flat: bool,
    /// Something was sent since the last computation.
    sent: bool,
    plans: Preemptions<u32>,
}

impl FairSojourn {
    /// A policy that knows no stream.
    pub fn new() -> Self {
        FairSojourn::default()
    }

    /// Where a stream stands in the present order.
    fn rank(&self, stream: StreamKey) -> Option<u32> {
        let rank = *self.ranks.get(stream.index())?;
        let (ranked, _) = self.ends.get(rank as usize)?;
        (*ranked == stream && !self.stale).then_some(rank)
    }

    fn is_ready(&self, stream: StreamKey) -> bool {
        self.tree.place_of(stream).is_some_and(|place| self.tree.ready(place).is_some())
    }

    fn compute(&mut self, view: &View<'_>) {
        self.ends = gps::finish_order(&self.tree, |stream| {
            view.streams.get(stream).map_or(Bytes::ZERO, remaining)
        });
        for (rank, (stream, _)) in self.ends.iter().enumerate() {
            if self.ranks.len() <= stream.index() {
                self.ranks.resize(stream.index() + 1, u32::MAX);
            }
            self.ranks[stream.index()] = rank as u32;
        }
        self.next = 0;
        self.stale = false;
        self.sent = false;
        self.flat = self.ends.len() == self.tree.active_children_len(Place::ROOT) as usize;
    }

    fn on_ready(&mut self, stream: StreamKey) {
        if self.plans.is_news(stream) {
            self.plans.on_change();
            self.stale = true;
        } else if let Some(rank) = self.rank(stream) {
            // A plan was taken back: the stream stands where it was.
            self.next = self.next.min(rank as usize);
        } else {
            self.stale = true;
        }
    }
}

impl StreamPolicy for FairSojourn {
    fn next(&mut self, view: &View<'_>, notes: &mut Notes) -> Option<Turn> {
        if !self.tree.is_active(Place::ROOT) {
            return None;
        }
        if self.stale {
            self.compute(view);
        }
        while let Some(&(stream, end)) = self.ends.get(self.next) {
            if self.is_ready(stream) {
                notes.add(|| {
                    let told = view.streams.get(stream).is_some_and(|view| view.size.is_some());
                    let label = if told { "end" } else { "end (estimated)" };
                    Note { label, path: None, stream: Some(stream), score: end }
                });
                return Some(Turn::unlimited(stream));
            }
            self.next += 1;
        }
        None
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        let (mut changed, before) = (false, self.tree.preemptions());
        self.tree.on_event(event, view.priorities, &mut |_, _| changed = true);
        match *event {
            Event::Ready(stream) => self.on_ready(stream),
            Event::Tree(_) => self.stale |= changed || self.tree.preemptions() != before,
            Event::Sized(stream) => {
                self.stale |= self.is_ready(stream);
                if view.streams.get(stream).is_some_and(|stream| stream.is_ready()) {
                    self.plans.on_change();
                }
            }
            // Of a known size nothing changes.
            Event::Written(stream) => {
                let unknown = view.streams.get(stream).is_some_and(|view| view.size.is_none());
                self.stale |= unknown && self.is_ready(stream);
            }
            Event::Requeued { stream, .. } => self.stale |= self.is_ready(stream),
            Event::Placed { piece, .. } => {
                self.plans.on_placed(piece);
                self.sent = true;
            }
            Event::Drained => self.stale |= self.sent && !self.flat,
            _ => {}
        }
    }

    fn on_taken(&mut self, turn: Turn, kind: Kind, _view: &View<'_>) {
        self.plans.on_taken(turn, kind, self.rank(turn.stream));
    }

    fn on_returned(&mut self, turn: Turn, _view: &View<'_>) {
        let ready = self.is_ready(turn.stream);
        self.plans.on_returned(turn, ready);
    }

    fn order(&self) -> u64 {
        self.tree.preemptions() + self.plans.count()
    }
}

#[cfg(test)]
mod tests;
