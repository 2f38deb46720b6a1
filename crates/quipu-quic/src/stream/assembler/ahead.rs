//! What lies beyond the first gap of a stream, in order.

use std::collections::{BTreeMap, VecDeque};

use super::Segment;

/// So many segments are kept in a list; our choice. Tests see to it that both kinds are used.
const MOST_LISTED: usize = if cfg!(test) { 6 } else { 256 };

/// Room for as many is kept while there are none; our choice.
const MOST_KEPT: usize = 32;

/// Segments by where they start. Nothing overlaps.
///
/// Where paths overtake each other, a segment is appended behind all others, or the first one is taken
/// out: a list does that at once. A peer that leaves gaps without end makes it a tree.
#[derive(Debug)]
pub(super) enum Ahead {
    /// In ascending order.
    List(VecDeque<(u64, Segment)>),
    /// There were many, and are some.
    Tree(BTreeMap<u64, Segment>),
}

impl Default for Ahead {
    fn default() -> Self {
        Ahead::new()
    }
}

impl Ahead {
    pub(super) const fn new() -> Self {
        Ahead::List(VecDeque::new())
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Ahead::List(list) => list.is_empty(),
            Ahead::Tree(tree) => tree.is_empty(),
        }
    }

    /// Puts a segment in that starts at `start`, where no other does.
    pub(super) fn insert(&mut self, start: u64, segment: Segment) {
        match self {
            Ahead::List(list) if list.len() < MOST_LISTED => {
                let at = position(list, start);
                list.insert(at, (start, segment));
            }
            Ahead::List(list) => {
                let mut tree: BTreeMap<_, _> = std::mem::take(list).into_iter().collect();
                tree.insert(start, segment);
                *self = Ahead::Tree(tree);
            }
            Ahead::Tree(tree) => _ = tree.insert(start, segment),
        }
    }

    /// Takes the first segment out if it starts at `limit` or before.
    pub(super) fn pop_first(&mut self, limit: u64) -> Option<Segment> {
        match self {
            Ahead::List(list) => {
                list.front().filter(|(start, _)| *start <= limit)?;
                let first = list.pop_front();
                if list.is_empty() && list.capacity() > MOST_KEPT {
                    *list = VecDeque::new();
                }
                first.map(|(_, segment)| segment)
            }
            Ahead::Tree(tree) => {
                let first = tree.first_entry().filter(|entry| *entry.key() <= limit);
                let segment = first.map(|entry| entry.remove());
                if tree.is_empty() {
                    *self = Ahead::new();
                }
                segment
            }
        }
    }

    /// The segment that starts at `start`.
    pub(super) fn get_mut(&mut self, start: u64) -> Option<&mut Segment> {
        self.first_at_least(start).filter(|(first, _)| *first == start).map(|(_, segment)| segment)
    }

    /// The last segment that starts at `limit` or before, and where.
    pub(super) fn last_at_most(&mut self, limit: u64) -> Option<(u64, &mut Segment)> {
        match self {
            Ahead::List(list) => {
                let at = position(list, limit.saturating_add(1)).checked_sub(1)?;
                list.get_mut(at).map(|(start, segment)| (*start, segment))
            }
            Ahead::Tree(tree) => {
                tree.range_mut(..=limit).next_back().map(|(start, segment)| (*start, segment))
            }
        }
    }

    /// The first segment that starts at `limit` or later, and where.
    pub(super) fn first_at_least(&mut self, limit: u64) -> Option<(u64, &mut Segment)> {
        match self {
            Ahead::List(list) => {
                let at = position(list, limit);
                list.get_mut(at).map(|(start, segment)| (*start, segment))
            }
            Ahead::Tree(tree) => {
                tree.range_mut(limit..).next().map(|(start, segment)| (*start, segment))
            }
        }
    }

    /// Takes the segment out that starts at `start`.
    pub(super) fn remove(&mut self, start: u64) -> Option<Segment> {
        match self {
            Ahead::List(list) => {
                let at = position(list, start);
                list.get(at).filter(|(first, _)| *first == start)?;
                list.remove(at).map(|(_, segment)| segment)
            }
            Ahead::Tree(tree) => tree.remove(&start),
        }
    }

    /// All segments, and where they start, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Segment)> {
        let (list, tree) = match self {
            Ahead::List(list) => (Some(list), None),
            Ahead::Tree(tree) => (None, Some(tree)),
        };
        let listed = list.into_iter().flatten().map(|(start, segment)| (*start, segment));
        let others = tree.into_iter().flatten().map(|(start, segment)| (*start, segment));
        listed.chain(others)
    }

    /// Takes all segments out, in order.
    pub(super) fn clear(&mut self, mut take: impl FnMut(Segment)) {
        match std::mem::take(self) {
            Ahead::List(list) => list.into_iter().for_each(|(_, segment)| take(segment)),
            Ahead::Tree(tree) => tree.into_values().for_each(take),
        }
    }
}

/// Where the first segment of a list is that starts at `limit` or later.
fn position(list: &VecDeque<(u64, Segment)>, limit: u64) -> usize {
    match list.back() {
        Some((last, _)) if *last >= limit => list.partition_point(|(start, _)| *start < limit),
        _ => list.len(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stream::clump::Clump;

    fn segment() -> Segment {
        Segment::Clump(Clump::default())
    }

    proptest! {
        /// Few and many segments, from a list to a tree and back.
        #[test]
        fn segments_come_in_order_as_from_a_map(
            steps in proptest::collection::vec((0u8..5, 0u64..40), 0..200),
        ) {
            let mut ahead = Ahead::new();
            let mut model = BTreeMap::new();
            for (step, at) in steps {
                match step {
                    0 => {
                        let is_due = model.first_key_value().is_some_and(|(first, ())| *first <= at);
                        prop_assert_eq!(ahead.pop_first(at).is_some(), is_due);
                        if is_due {
                            model.pop_first();
                        }
                    }
                    1 => prop_assert_eq!(ahead.remove(at).is_some(), model.remove(&at).is_some()),
                    _ if !model.contains_key(&at) => {
                        ahead.insert(at, segment());
                        model.insert(at, ());
                    }
                    _ => {}
                }
                let before = model.range(..=at).next_back().map(|(start, ())| *start);
                prop_assert_eq!(ahead.last_at_most(at).map(|(start, _)| start), before);
                let from = model.range(at..).next().map(|(start, ())| *start);
                prop_assert_eq!(ahead.first_at_least(at).map(|(start, _)| start), from);
                prop_assert_eq!(ahead.get_mut(at).is_some(), model.contains_key(&at));
                prop_assert_eq!(ahead.is_empty(), model.is_empty());
                let starts: Vec<u64> = ahead.iter().map(|(start, _)| start).collect();
                prop_assert!(starts.iter().eq(model.keys()));
            }
            let mut left = 0;
            ahead.clear(|_| left += 1);
            prop_assert_eq!((left, ahead.is_empty()), (model.len(), true));
        }
    }
}
