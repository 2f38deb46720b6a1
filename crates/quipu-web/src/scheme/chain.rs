//! Chrome's exclusive chain: which stream depends on which, as `Http2PriorityDependencies` of its
//! network stack has it (read in code).

use std::collections::{BTreeMap, BTreeSet};

use quipu_base::StreamId;

/// The open streams by weight; a higher weight is more urgent. Every operation costs O(log n).
#[derive(Debug, Clone, Default)]
pub(super) struct Chain {
    /// Per weight, the streams in order of opening.
    open: BTreeMap<u16, BTreeSet<(u64, StreamId)>>,
    opened: BTreeMap<StreamId, (u16, u64)>,
    count: u64,
}

impl Chain {
    /// Opens `stream` and returns its parent: the newest open stream of its own weight, else of
    /// the next higher weight that has one; `None` is the root. A stream that is open already is
    /// opened anew.
    pub(super) fn open(&mut self, stream: StreamId, weight: u16) -> Option<StreamId> {
        self.close(stream);
        let parent = self.newest(weight);
        let sequence = self.count;
        self.count += 1;
        self.open.entry(weight).or_default().insert((sequence, stream));
        self.opened.insert(stream, (weight, sequence));
        parent
    }

    /// Gives `stream` another weight, as the last of those that have it. Returns the streams that depend
    /// on another one now, as (stream, parent, weight), in the order of telling: first the one that
    /// followed it, then it. There are none if its parent stays.
    pub(super) fn reprioritise(
        &mut self,
        stream: StreamId,
        weight: u16,
    ) -> Vec<(StreamId, Option<StreamId>, u16)> {
        let Some(&(old_weight, sequence)) = self.opened.get(&stream) else { return Vec::new() };
        if weight == old_weight {
            return Vec::new();
        }
        let old_parent = self.before(old_weight, sequence);
        let follower = self.after(old_weight, sequence);
        let new_parent = match self.newest(weight) {
            // It was the last of all that are not less urgent than its new level.
            Some(newest) if newest == stream => old_parent,
            newest => newest,
        };
        self.open(stream, weight);
        if new_parent == old_parent {
            return Vec::new();
        }
        let follower = follower.map(|(follower, weight)| (follower, old_parent, weight));
        follower.into_iter().chain([(stream, new_parent, weight)]).collect()
    }

    /// The newest open stream of `weight`, else of the next higher weight that has one.
    fn newest(&self, weight: u16) -> Option<StreamId> {
        let (_, streams) = self.open.range(weight..).next()?;
        streams.last().map(|&(_, stream)| stream)
    }

    /// The stream in front of a place.
    fn before(&self, weight: u16, sequence: u64) -> Option<StreamId> {
        let place = (sequence, StreamId(0));
        let before = self.open.get(&weight).and_then(|streams| streams.range(..place).next_back());
        match before {
            Some(&(_, stream)) => Some(stream),
            None => self.newest(weight.saturating_add(1)),
        }
    }

    /// The stream behind a place, and its weight.
    fn after(&self, weight: u16, sequence: u64) -> Option<(StreamId, u16)> {
        let place = (sequence + 1, StreamId(0));
        let after = self.open.get(&weight).and_then(|streams| streams.range(place..).next());
        if let Some(&(_, stream)) = after {
            return Some((stream, weight));
        }
        let (&weight, streams) = self.open.range(..weight).next_back()?;
        streams.first().map(|&(_, stream)| (stream, weight))
    }

    /// `stream` is closed; unknown streams are ignored.
    pub(super) fn close(&mut self, stream: StreamId) {
        let Some((weight, sequence)) = self.opened.remove(&stream) else { return };
        if let Some(streams) = self.open.get_mut(&weight) {
            streams.remove(&(sequence, stream));
            if streams.is_empty() {
                self.open.remove(&weight);
            }
        }
    }
}
