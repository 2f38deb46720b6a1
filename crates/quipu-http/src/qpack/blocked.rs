//! Streams whose sections wait for insertions.
//! <https://www.rfc-editor.org/rfc/rfc9204#section-2.2.1>

use std::collections::{BTreeMap, BTreeSet};

use quipu_base::StreamId;

/// The blocked streams, and how many insertions each waits for.
#[derive(Debug, Default)]
pub(super) struct Blocked {
    required: BTreeMap<StreamId, u64>,
    /// The same, ordered by the insertions.
    by_required: BTreeSet<(u64, StreamId)>,
}

impl Blocked {
    /// Adds `stream`, or changes what it waits for. False, with `stream` removed, if that would make more
    /// than `limit` streams.
    pub(super) fn insert(&mut self, stream: StreamId, required: u64, limit: u16) -> bool {
        self.remove(stream);
        if self.required.len() >= usize::from(limit) {
            return false;
        }
        self.required.insert(stream, required);
        self.by_required.insert((required, stream));
        true
    }

    /// Removes `stream`, which need not be blocked.
    pub(super) fn remove(&mut self, stream: StreamId) {
        if let Some(required) = self.required.remove(&stream) {
            self.by_required.remove(&(required, stream));
        }
    }

    /// Removes and returns a stream for which `inserted` insertions are enough.
    pub(super) fn poll(&mut self, inserted: u64) -> Option<StreamId> {
        let &(required, stream) = self.by_required.first()?;
        if required > inserted {
            return None;
        }
        self.remove(stream);
        Some(stream)
    }
}
