//! Who comes before what is planned.

use crate::key::StreamKey;
use crate::seam::view::{Kind, Piece};
use crate::stream::Turn;

/// Counts how often planned bytes should have gone to another stream, for
/// [`StreamPolicy::order`](super::StreamPolicy::order): a stream became ready whose rank `K` is
/// below that of something planned. What is taken and not placed yet counts as planned.
#[derive(Clone, Debug)]
pub(crate) struct Preemptions<K> {
    /// Bytes taken and not placed.
    planned: u64,
    /// The highest rank that was taken since nothing was planned.
    last: Option<K>,
    /// A stream whose plan was just taken back while it was not ready.
    returned: Option<StreamKey>,
    count: u64,
}

impl<K> Default for Preemptions<K> {
    fn default() -> Self {
        Preemptions { planned: 0, last: None, returned: None, count: 0 }
    }
}

impl<K: Copy + Ord> Preemptions<K> {
    /// Bytes of a stream of that rank were sent or planned.
    pub(crate) fn on_taken(&mut self, turn: Turn, kind: Kind, rank: Option<K>) {
        if kind == Kind::Copy {
            return;
        }
        self.planned = self.planned.saturating_add(turn.max.0);
        if kind == Kind::Fresh {
            self.last = self.last.max(rank);
        }
    }

    /// A frame was written.
    pub(crate) fn on_placed(&mut self, piece: Piece) {
        if piece.kind != Kind::Copy {
            self.settle(piece.span.len().0);
        }
    }

    /// A plan of a stream was taken back; `ready`: the stream had something else to send.
    pub(crate) fn on_returned(&mut self, turn: Turn, ready: bool) {
        self.settle(turn.max.0);
        self.returned = (!ready).then_some(turn.stream);
    }

    /// A stream of that rank became ready.
    pub(crate) fn on_ready(&mut self, stream: StreamKey, rank: K) {
        if self.is_news(stream) {
            self.compare(rank);
        }
    }

    /// A stream became ready. False if it only is again because its plan was taken back.
    pub(crate) fn is_news(&mut self, stream: StreamKey) -> bool {
        self.returned.take() != Some(stream)
    }

    /// Bytes of that rank came to be pending.
    pub(crate) fn compare(&mut self, rank: K) {
        self.count += u64::from(self.last.is_some_and(|last| rank < last));
    }

    /// Ranks changed: whatever is planned may be in the wrong place.
    pub(crate) fn on_change(&mut self) {
        self.count += u64::from(self.planned > 0);
    }

    /// How often so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    fn settle(&mut self, bytes: u64) {
        self.planned = self.planned.saturating_sub(bytes);
        if self.planned == 0 {
            self.last = None;
        }
    }
}
