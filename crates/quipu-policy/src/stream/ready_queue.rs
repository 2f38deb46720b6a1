//! Ready streams in order of a rank.

use quipu_base::StreamId;

use super::heap::{Heap, Positions};
use super::preemption::Preemptions;
use crate::key::StreamKey;

/// The ready streams, least rank first; of equal ranks, the lower identifier. O(log n).
#[derive(Clone, Debug)]
pub(super) struct ReadyQueue<K> {
    positions: Positions,
    order: Heap<(K, StreamId)>,
    /// Who came before what is planned.
    pub(super) preemptions: Preemptions<K>,
}

impl<K: Copy + Ord> Default for ReadyQueue<K> {
    fn default() -> Self {
        ReadyQueue {
            positions: Positions::default(),
            order: Heap::default(),
            preemptions: Preemptions::default(),
        }
    }
}

impl<K: Copy + Ord> ReadyQueue<K> {
    /// The stream of least rank.
    pub(super) fn first(&self) -> Option<(StreamKey, K)> {
        let ((rank, id), slot) = self.order.first()?;
        Some((StreamKey { slot, id }, rank))
    }

    /// The rank of a ready stream.
    pub(super) fn rank(&self, stream: StreamKey) -> Option<K> {
        let (rank, id) = self.order.key(&self.positions, stream.slot)?;
        (id == stream.id).then_some(rank)
    }

    /// A stream became ready.
    pub(super) fn insert(&mut self, stream: StreamKey, rank: K) {
        self.preemptions.on_ready(stream, rank);
        self.order.set(&mut self.positions, stream.slot, (rank, stream.id));
    }

    /// A ready stream has another rank.
    pub(super) fn set_rank(&mut self, stream: StreamKey, rank: K) {
        if self.rank(stream).is_some_and(|old| old != rank) {
            self.order.set(&mut self.positions, stream.slot, (rank, stream.id));
        }
    }

    /// All ranks changed; `rank` tells a stream's from its old one. O(n).
    pub(super) fn set_ranks(&mut self, rank: impl Fn(StreamKey, K) -> K) {
        self.order
            .rekey(&mut self.positions, |(old, id), slot| (rank(StreamKey { slot, id }, old), id));
    }

    /// A stream is ready no more, or gone.
    pub(super) fn remove(&mut self, stream: StreamKey) {
        if self.rank(stream).is_some() {
            self.order.remove(&mut self.positions, stream.slot);
        }
    }
}
