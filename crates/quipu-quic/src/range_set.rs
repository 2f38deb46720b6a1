//! A set of `u64` kept as disjoint ranges.

use std::ops::Range;

use crate::range_map::{Entry, RangeMap};

/// A set of integers as a sorted list of disjoint half-open ranges; ranges that touch are one.
///
/// Extending the highest range and taking from the lowest cost O(1); all else costs a binary
/// search, and moves at most half of the list.
#[derive(Clone, Debug, Default)]
pub struct RangeSet {
    map: RangeMap<()>,
}

impl RangeSet {
    /// The empty set.
    pub const fn new() -> Self {
        RangeSet { map: RangeMap::new() }
    }

    /// True if nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Number of ranges.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Takes everything out.
    pub fn clear(&mut self) {
        self.map.clear();
    }

    /// Adds a range. Returns how many integers of it are new.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        let len = range.end.saturating_sub(range.start);
        len - self.map.set(range.start, range.end, ())
    }

    /// Takes a range out. Returns how many integers of it were in the set.
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        let mut count = 0;
        self.remove_each(range, |part| count += part.end - part.start);
        count
    }

    /// Takes a range out and tells each stretch of it that was in the set, in order.
    pub fn remove_each(&mut self, range: Range<u64>, mut removed: impl FnMut(Range<u64>)) {
        self.map.remove(range.start, range.end, |start, end, ()| removed(start..end));
    }

    /// True if the integer is in the set.
    pub fn contains(&self, value: u64) -> bool {
        self.map.from(value).is_some_and(|entry| entry.start <= value)
    }

    /// The lowest range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.map.first().map(range)
    }

    /// The highest range.
    pub fn last(&self) -> Option<Range<u64>> {
        self.map.last().map(range)
    }

    /// Takes the lowest range out.
    pub fn pop_front(&mut self) -> Option<Range<u64>> {
        self.map.pop_first().as_ref().map(range)
    }

    /// The lowest range that ends after `at`, whole.
    pub fn range_from(&self, at: u64) -> Option<Range<u64>> {
        self.map.from(at).map(range)
    }

    /// All ranges, lowest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> {
        self.map.iter().map(range)
    }
}

fn range(entry: &Entry<()>) -> Range<u64> {
    entry.start..entry.end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_bitset(
            ops in prop::collection::vec((any::<bool>(), 0u64..64, 0u64..64), 1..60),
        ) {
            let mut set = RangeSet::new();
            let mut bits = [false; 64];
            for (insert, start, end) in ops {
                let mut changed = 0;
                for bit in bits.iter_mut().take(end as usize).skip(start as usize) {
                    changed += u64::from(*bit != insert);
                    *bit = insert;
                }
                let told = if insert { set.insert(start..end) } else { set.remove(start..end) };
                prop_assert_eq!(told, changed);
                for (at, bit) in (0..).zip(&bits) {
                    prop_assert_eq!(set.contains(at), *bit);
                }
                let ranges: Vec<_> = set.iter().collect();
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
                prop_assert_eq!(set.len(), ranges.len());
                prop_assert_eq!(set.first(), ranges.first().cloned());
                prop_assert_eq!(set.last(), ranges.last().cloned());
            }
        }
    }

    #[test]
    fn pop_front_takes_the_lowest_range() {
        let mut set = RangeSet::new();
        set.insert(10..20);
        set.insert(1..3);
        assert_eq!(set.pop_front(), Some(1..3));
        assert_eq!(set.range_from(15), Some(10..20));
        assert_eq!(set.pop_front(), Some(10..20));
        assert_eq!(set.pop_front(), None);
        assert!(set.is_empty());
    }
}
