//! Chrome's exclusive chain: which stream a new one depends on.

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
        let parent =
            self.open.range(weight..).next().and_then(|(_, streams)| streams.last()).copied();
        let sequence = self.count;
        self.count += 1;
        self.open.entry(weight).or_default().insert((sequence, stream));
        self.opened.insert(stream, (weight, sequence));
        parent.map(|(_, parent)| parent)
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
