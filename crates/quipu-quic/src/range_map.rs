//! Disjoint ranges of `u64` with a value each, in order.

use std::collections::VecDeque;

/// A range of the map: `start..end`, never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<V> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) value: V,
}

/// A sorted list of disjoint half-open ranges, each with a value. Ranges that touch and have equal
/// values are one.
///
/// Appending at the end and taking from the front cost O(1); all else costs a binary search, and
/// moves at most half of the list.
#[derive(Clone, Debug)]
pub(crate) struct RangeMap<V> {
    entries: VecDeque<Entry<V>>,
}

impl<V> Default for RangeMap<V> {
    fn default() -> Self {
        RangeMap { entries: VecDeque::new() }
    }
}

impl<V: Copy + PartialEq> RangeMap<V> {
    pub(crate) const fn new() -> Self {
        RangeMap { entries: VecDeque::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(crate) fn first(&self) -> Option<&Entry<V>> {
        self.entries.front()
    }

    pub(crate) fn last(&self) -> Option<&Entry<V>> {
        self.entries.back()
    }

    pub(crate) fn pop_first(&mut self) -> Option<Entry<V>> {
        self.entries.pop_front()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Entry<V>> {
        self.entries.iter()
    }

    /// The lowest range that ends after `at`.
    pub(crate) fn from(&self, at: u64) -> Option<&Entry<V>> {
        self.entries.get(self.index_from(at))
    }

    /// The highest range that starts before `at`.
    pub(crate) fn before(&self, at: u64) -> Option<&Entry<V>> {
        match self.entries.back() {
            Some(last) if last.start < at => Some(last),
            _ => {
                let above = self.entries.partition_point(|entry| entry.start < at);
                self.entries.get(above.checked_sub(1)?)
            }
        }
    }

    /// Gives `start..end` the value, whatever it had before. Returns how much of it was in the map.
    pub(crate) fn set(&mut self, start: u64, end: u64, value: V) -> u64 {
        if start >= end {
            return 0;
        }
        match self.entries.back_mut() {
            Some(last) if last.end == start && last.value == value => {
                last.end = end;
                return 0;
            }
            Some(last) if last.end > start => {}
            _ => {
                self.entries.push_back(Entry { start, end, value });
                return 0;
            }
        }
        let mut covered = 0;
        self.remove(start, end, |from, to, _| covered += to - from);
        let index = self.index_from(start);
        let joins_left = index.checked_sub(1).is_some_and(|left| {
            self.entries.get(left).is_some_and(|entry| entry.end == start && entry.value == value)
        });
        let joins_right =
            self.entries.get(index).is_some_and(|entry| entry.start == end && entry.value == value);
        match (joins_left, joins_right) {
            (true, true) => {
                let right_end = self.entries.remove(index).map_or(end, |entry| entry.end);
                self.entries[index - 1].end = right_end;
            }
            (true, false) => self.entries[index - 1].end = end,
            (false, true) => self.entries[index].start = start,
            (false, false) => self.entries.insert(index, Entry { start, end, value }),
        }
        covered
    }

    /// Takes `start..end` out and tells each stretch that was in it, in order.
    pub(crate) fn remove(&mut self, start: u64, end: u64, mut removed: impl FnMut(u64, u64, V)) {
        if start >= end {
            return;
        }
        let mut index = self.index_from(start);
        let Some(first) = self.entries.get_mut(index) else { return };
        if first.start >= end {
            return;
        }
        if first.start < start {
            let whole = *first;
            first.end = start;
            index += 1;
            if whole.end > end {
                self.entries.insert(index, Entry { start: end, ..whole });
                removed(start, end, whole.value);
                return;
            }
            removed(start, whole.end, whole.value);
        }
        let mut count = 0;
        while let Some(entry) = self.entries.get_mut(index + count) {
            if entry.start >= end {
                break;
            }
            if entry.end > end {
                removed(entry.start, end, entry.value);
                entry.start = end;
                break;
            }
            removed(entry.start, entry.end, entry.value);
            count += 1;
        }
        match count {
            0 => {}
            1 if index == 0 => {
                self.entries.pop_front();
            }
            _ => {
                self.entries.drain(index..index + count);
            }
        }
    }

    /// Index of the lowest range that ends after `at`.
    fn index_from(&self, at: u64) -> usize {
        match (self.entries.front(), self.entries.back()) {
            (Some(first), _) if first.end > at => 0,
            (_, Some(last)) if last.end <= at => self.entries.len(),
            _ => self.entries.partition_point(|entry| entry.end <= at),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: usize = 48;

    #[derive(Clone, Debug)]
    enum Op {
        Set(u64, u64, u8),
        Remove(u64, u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        let bound = 0..=SIZE as u64;
        prop_oneof![
            (bound.clone(), bound.clone(), 0u8..3).prop_map(|(a, b, value)| Op::Set(a, b, value)),
            (bound.clone(), bound).prop_map(|(a, b)| Op::Remove(a, b)),
        ]
    }

    /// The ranges that the cells of a naive model form.
    fn ranges(cells: &[Option<u8>]) -> Vec<Entry<u8>> {
        let mut found: Vec<Entry<u8>> = Vec::new();
        for (at, cell) in (0..).zip(cells) {
            let Some(value) = *cell else { continue };
            match found.last_mut() {
                Some(last) if last.end == at && last.value == value => last.end = at + 1,
                _ => found.push(Entry { start: at, end: at + 1, value }),
            }
        }
        found
    }

    proptest! {
        #[test]
        fn behaves_like_an_array_of_cells(ops in prop::collection::vec(op(), 1..60)) {
            let mut map = RangeMap::new();
            let mut cells = [None; SIZE];
            for op in ops {
                match op {
                    Op::Set(start, end, value) => {
                        let mut covered = 0;
                        for cell in cells.iter_mut().take(end as usize).skip(start as usize) {
                            covered += u64::from(cell.is_some());
                            *cell = Some(value);
                        }
                        prop_assert_eq!(map.set(start, end, value), covered);
                    }
                    Op::Remove(start, end) => {
                        let mut told = [None; SIZE];
                        map.remove(start, end, |from, to, value| {
                            told[from as usize..to as usize].fill(Some(value));
                        });
                        let mut expected = [None; SIZE];
                        for at in start..end {
                            expected[at as usize] = cells[at as usize].take();
                        }
                        prop_assert_eq!(told, expected);
                    }
                }
                let expected = ranges(&cells);
                prop_assert_eq!(map.iter().copied().collect::<Vec<_>>(), expected.clone());
                for at in 0..=SIZE as u64 {
                    let from = expected.iter().find(|entry| entry.end > at);
                    prop_assert_eq!(map.from(at), from);
                    let before = expected.iter().rev().find(|entry| entry.start < at);
                    prop_assert_eq!(map.before(at), before);
                }
            }
        }
    }
}
