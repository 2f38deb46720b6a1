//! What an encoder remembers of the field sections that the decoder has not acknowledged.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use quipu_base::StreamId;

/// Sections that refer to the dynamic table and are not acknowledged yet; our choice. A peer that
/// never acknowledges anything costs this end so many records of some tens of octets.
const MOST_SECTIONS: usize = 1024;
/// Cancelled streams that are remembered; our choice: what a browser that leaves a page gives up.
const MOST_CANCELLED: usize = 128;

/// The unacknowledged sections, and what follows from them: which entries may be evicted, and which
/// streams may be blocked.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// By stream and then in the order of encoding.
    sections: BTreeMap<(StreamId, u64), Section>,
    recorded: u64,
    /// By the index of an entry: sections to which it is the oldest that they refer to.
    by_oldest: BTreeMap<u64, usize>,
    /// Streams with a section that needs insertions not known to have arrived: by stream, the
    /// insertions that it needs.
    at_risk: BTreeMap<StreamId, u64>,
    /// The streams cancelled last.
    cancelled: VecDeque<StreamId>,
    known_received: u64,
}

#[derive(Clone, Copy, Debug)]
struct Section {
    oldest: u64,
    required: u64,
}

impl Outstanding {
    /// Insertions that the decoder is known to have received.
    /// <https://www.rfc-editor.org/rfc/rfc9204#section-2.1.4>
    pub(super) fn known_received(&self) -> u64 {
        self.known_received
    }

    /// Whether a section on `stream` may refer to the dynamic table: not if there are too many
    /// sections already, and not if the decoder has cancelled the stream, since it acknowledges
    /// nothing more of it.
    pub(super) fn may_record(&self, stream: StreamId) -> bool {
        self.sections.len() < MOST_SECTIONS && !self.cancelled.contains(&stream)
    }

    /// The index of the oldest entry that may not be evicted.
    pub(super) fn evictable(&self) -> u64 {
        // https://www.rfc-editor.org/rfc/rfc9204#section-2.1.1
        //# Once the insertion of a dynamic table entry has been
        //# acknowledged and there are no outstanding references to the entry in
        //# unacknowledged representations, the entry becomes evictable.
        let referenced = self.by_oldest.keys().next().copied().unwrap_or(u64::MAX);
        referenced.min(self.known_received)
    }

    /// Whether a section on `stream` may need insertions that are not known to have arrived, where
    /// at most `limit` streams may.
    pub(super) fn may_block(&self, stream: StreamId, limit: u64) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9204#section-2.1.2
        //# An encoder MUST limit the number of streams that could become blocked to the
        //# value of SETTINGS_QPACK_BLOCKED_STREAMS at all times.
        (self.at_risk.len() as u64) < limit || self.at_risk.contains_key(&stream)
    }

    /// Adds a section that needs `required` insertions, and refers to the entry `oldest` and none
    /// that is older.
    pub(super) fn record(&mut self, stream: StreamId, oldest: u64, required: u64) {
        self.sections.insert((stream, self.recorded), Section { oldest, required });
        self.recorded += 1;
        *self.by_oldest.entry(oldest).or_default() += 1;
        if required > self.known_received {
            let needed = self.at_risk.entry(stream).or_default();
            *needed = required.max(*needed);
        }
    }

    /// The decoder has decoded the first section of `stream`. False if there is none.
    pub(super) fn on_acknowledged(&mut self, stream: StreamId) -> bool {
        let Some(section) = self.remove_first(stream) else { return false };
        // https://www.rfc-editor.org/rfc/rfc9204#section-2.1.4
        //# If the Required Insert Count of the acknowledged field section is
        //# greater than the current Known Received Count, the Known Received Count is
        //# updated to that Required Insert Count value.
        self.on_received(section.required);
        true
    }

    /// The decoder will decode no more sections of `stream`, of which there need not be any.
    pub(super) fn on_cancelled(&mut self, stream: StreamId) {
        // https://www.rfc-editor.org/rfc/rfc9204#section-2.2.2.2
        //# An encoder cannot infer from this instruction that
        //# any updates to the dynamic table have been received.
        while self.remove_first(stream).is_some() {}
        self.at_risk.remove(&stream);
        if !self.cancelled.contains(&stream) {
            if self.cancelled.len() >= MOST_CANCELLED {
                self.cancelled.pop_front();
            }
            self.cancelled.push_back(stream);
        }
    }

    /// The decoder has received the first `count` insertions.
    pub(super) fn on_received(&mut self, count: u64) {
        if count > self.known_received {
            self.known_received = count;
            self.at_risk.retain(|_, required| *required > count);
        }
    }

    fn remove_first(&mut self, stream: StreamId) -> Option<Section> {
        let all = (Bound::Included((stream, 0)), Bound::Included((stream, u64::MAX)));
        let (&key, &section) = self.sections.range(all).next()?;
        self.sections.remove(&key);
        if let Some(count) = self.by_oldest.get_mut(&section.oldest) {
            *count -= 1;
            if *count == 0 {
                self.by_oldest.remove(&section.oldest);
            }
        }
        Some(section)
    }

    /// Number of sections.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.sections.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: StreamId = StreamId(0);
    const B: StreamId = StreamId(4);

    #[test]
    fn entries_stay_while_a_section_refers_to_them() {
        let mut outstanding = Outstanding::default();
        outstanding.on_received(10);
        assert_eq!(outstanding.evictable(), 10);
        outstanding.record(A, 3, 8);
        outstanding.record(B, 3, 5);
        outstanding.record(A, 7, 8);
        assert_eq!(outstanding.evictable(), 3);
        assert!(outstanding.on_acknowledged(A));
        assert_eq!(outstanding.evictable(), 3);
        outstanding.on_cancelled(B);
        assert_eq!(outstanding.evictable(), 7);
        assert!(outstanding.on_acknowledged(A));
        assert!(!outstanding.on_acknowledged(A));
        assert_eq!(outstanding.evictable(), 10);
    }

    #[test]
    fn streams_are_at_risk_until_their_insertions_are_known() {
        let mut outstanding = Outstanding::default();
        assert!(!outstanding.may_block(A, 0));
        outstanding.record(A, 0, 1);
        outstanding.record(A, 0, 3);
        assert!(outstanding.may_block(A, 1));
        assert!(!outstanding.may_block(B, 1));
        assert!(outstanding.on_acknowledged(A));
        // The second section still needs more.
        assert!(!outstanding.may_block(B, 1));
        outstanding.on_received(3);
        assert!(outstanding.may_block(B, 1));
        outstanding.record(B, 0, 4);
        outstanding.on_cancelled(B);
        assert!(outstanding.may_block(A, 1));
    }

    /// A section that was encoded before the end of the stream was known here.
    #[test]
    fn a_cancelled_stream_holds_no_entries() {
        let mut outstanding = Outstanding::default();
        assert!(outstanding.may_record(A));
        outstanding.on_cancelled(A);
        assert!(!outstanding.may_record(A));
        assert!(outstanding.may_record(B));
        for index in 1..1000 {
            outstanding.on_cancelled(StreamId(4 * index));
        }
        assert_eq!(outstanding.cancelled.len(), MOST_CANCELLED);
    }
}
