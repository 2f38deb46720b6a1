//! Strict orders of streams: the one of least rank sends all that it has.

use std::fmt::Debug;

use quipu_base::Instant;

use super::ready_queue::ReadyQueue;
use super::{StreamPolicy, Turn};
use crate::key::StreamKey;
use crate::priority::TreeEdit;
use crate::seam::decision::{Note, Notes};
use crate::seam::event::Event;
use crate::seam::view::{Kind, StreamView, View};

/// What streams are ranked by.
pub trait Rank: Send {
    /// Least first; ties go to the lower stream identifier.
    type Key: Copy + Ord + Debug + Send;

    /// Sending bytes of a stream never makes it rank later.
    const SENT_STAYS_FIRST: bool = false;

    /// The stream's rank at this instant.
    fn key(&self, stream: &StreamView, view: &View<'_>) -> Self::Key;

    /// True if the event may change the rank of the streams that it names.
    fn depends_on(&self, event: &Event<'_>) -> bool;

    /// Takes note of the time; true if ranks changed by that alone.
    fn advance(&mut self, _now: Instant) -> bool {
        false
    }

    /// The rank as a score, with what it means.
    fn explain(&self, stream: &StreamView, view: &View<'_>) -> (&'static str, f64);
}

/// Serves ready streams in order of a [`Rank`], without interleaving. O(log n).
#[derive(Clone, Debug)]
pub struct Ranked<R: Rank> {
    rank: R,
    queue: ReadyQueue<R::Key>,
    /// By slot of a node of the dependency tree: the stream that it spoke for last.
    speakers: Vec<Option<StreamKey>>,
}

impl<R: Rank> Ranked<R> {
    /// A policy that knows no stream.
    pub fn by(rank: R) -> Self {
        Ranked { rank, queue: ReadyQueue::default(), speakers: Vec::new() }
    }

    /// Brings a stream's rank up to date. `news`: what is planned may be in the wrong place then.
    fn refresh(&mut self, stream: StreamKey, news: bool, view: &View<'_>) {
        let Some(of) = view.streams.get(stream) else { return };
        let key = self.rank.key(of, view);
        let changed = match self.queue.rank(stream) {
            Some(old) => old != key,
            // All that it has is planned, by whatever rank it had.
            None => of.is_ready(),
        };
        if changed {
            self.queue.set_rank(stream, key);
            if news {
                self.queue.preemptions.on_change();
            }
        }
    }

    /// The tree changed: the streams whose weight is another now.
    fn on_edit(&mut self, edit: TreeEdit, view: &View<'_>) {
        let (node, stream) = match edit {
            TreeEdit::Attached { node, stream } => (node, Some(stream)),
            TreeEdit::Weighted { node, .. } | TreeEdit::Removed { node } => (node, None),
            TreeEdit::Inserted { .. } | TreeEdit::Moved { .. } => return,
        };
        if self.speakers.len() <= node.index() {
            self.speakers.resize(node.index() + 1, None);
        }
        let speaker = &mut self.speakers[node.index()];
        let before = *speaker;
        match edit {
            TreeEdit::Attached { .. } => *speaker = stream,
            TreeEdit::Removed { .. } => *speaker = None,
            _ => {}
        }
        for stream in before.into_iter().chain(stream) {
            self.refresh(stream, true, view);
        }
    }
}

impl<R: Rank> StreamPolicy for Ranked<R> {
    fn next(&mut self, view: &View<'_>, notes: &mut Notes) -> Option<Turn> {
        if self.rank.advance(view.now) {
            let rank = &self.rank;
            self.queue.set_ranks(|stream, old| {
                view.streams.get(stream).map_or(old, |stream| rank.key(stream, view))
            });
        }
        let (stream, _) = self.queue.first()?;
        if let Some(of) = view.streams.get(stream) {
            notes.add(|| {
                let (label, score) = self.rank.explain(of, view);
                Note { label, path: None, stream: Some(stream), score }
            });
        }
        Some(Turn::unlimited(stream))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        match *event {
            Event::Ready(stream) => {
                if let Some(of) = view.streams.get(stream) {
                    self.queue.insert(stream, self.rank.key(of, view));
                }
                return;
            }
            Event::Stopped(stream) | Event::Closed(stream) => {
                self.queue.remove(stream);
                return;
            }
            Event::Placed { piece, .. } => self.queue.preemptions.on_placed(piece),
            _ => {}
        }
        if !self.rank.depends_on(event) {
            return;
        }
        match *event {
            Event::Sized(stream) | Event::Reprioritised(stream) => self.refresh(stream, true, view),
            Event::Written(stream) | Event::Requeued { stream, .. } => {
                self.refresh(stream, false, view);
            }
            Event::Placed { piece, .. } => self.refresh(piece.stream, false, view),
            Event::Acked(packet) => {
                for piece in packet.pieces {
                    self.refresh(piece.stream, false, view);
                }
            }
            Event::Tree(edit) => self.on_edit(edit, view),
            _ => {}
        }
    }

    fn on_taken(&mut self, turn: Turn, kind: Kind, _view: &View<'_>) {
        self.queue.preemptions.on_taken(turn, kind, self.queue.rank(turn.stream));
    }

    fn on_returned(&mut self, turn: Turn, _view: &View<'_>) {
        let ready = self.queue.rank(turn.stream).is_some();
        self.queue.preemptions.on_returned(turn, ready);
    }

    fn order(&self) -> u64 {
        self.queue.preemptions.count()
    }

    fn stays_with(&self, stream: StreamKey) -> bool {
        R::SENT_STAYS_FIRST && self.queue.first().is_some_and(|(first, _)| first == stream)
    }
}
