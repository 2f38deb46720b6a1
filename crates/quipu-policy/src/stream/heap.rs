//! A min-heap whose items can be found, re-keyed and taken out from the middle.

/// Where each item is. An item is in at most one of the heaps that share a `Positions`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Positions(Vec<u32>);

/// A heap of items, least key first; of equal keys, the lower item.
#[derive(Clone, Debug)]
pub(crate) struct Heap<K> {
    items: Vec<(K, u32)>,
}

const NOWHERE: u32 = u32::MAX;

/// Children per node: a schedule mostly moves the first item to the bottom, and a flat heap has
/// fewer levels to write.
const ARITY: usize = 4;

impl Positions {
    fn get(&self, item: u32) -> Option<usize> {
        let position = *self.0.get(item as usize)?;
        (position != NOWHERE).then_some(position as usize)
    }

    fn set(&mut self, item: u32, position: u32) {
        let index = item as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, NOWHERE);
        }
        self.0[index] = position;
    }
}

impl<K> Default for Heap<K> {
    fn default() -> Self {
        Heap { items: Vec::new() }
    }
}

impl<K: Ord + Copy> Heap<K> {
    /// The least item with its key.
    pub(crate) fn first(&self) -> Option<(K, u32)> {
        self.items.first().copied()
    }

    /// True if nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The key of an item that is in.
    pub(crate) fn key(&self, positions: &Positions, item: u32) -> Option<K> {
        self.index_of(positions, item).map(|index| self.items[index].0)
    }

    /// Gives every item the key that `key` makes of its old one. O(n).
    pub(crate) fn rekey(&mut self, positions: &mut Positions, key: impl Fn(K, u32) -> K) {
        for (old, item) in &mut self.items {
            *old = key(*old, *item);
        }
        for index in (0..self.items.len()).rev() {
            self.sink(positions, index);
        }
    }

    /// Puts an item in, or gives it another key.
    #[inline]
    pub(crate) fn set(&mut self, positions: &mut Positions, item: u32, key: K) {
        // An only child stays where it is.
        match &mut self.items[..] {
            [(old, only)] if *only == item => *old = key,
            _ => self.put_in_order(positions, item, key),
        }
    }

    fn put_in_order(&mut self, positions: &mut Positions, item: u32, key: K) {
        let index = match self.index_of(positions, item) {
            Some(index) => {
                self.items[index].0 = key;
                index
            }
            None => {
                self.items.push((key, item));
                self.items.len() - 1
            }
        };
        self.place(positions, index);
    }

    /// Takes an item out; does nothing if it is not in.
    pub(crate) fn remove(&mut self, positions: &mut Positions, item: u32) {
        let Some(index) = self.index_of(positions, item) else { return };
        self.items.swap_remove(index);
        positions.set(item, NOWHERE);
        if index < self.items.len() {
            self.place(positions, index);
        }
    }

    fn index_of(&self, positions: &Positions, item: u32) -> Option<usize> {
        let index = positions.get(item)?;
        self.items.get(index).is_some_and(|&(_, other)| other == item).then_some(index)
    }

    /// Moves the item at `index` up or down to where it belongs.
    fn place(&mut self, positions: &mut Positions, mut index: usize) {
        let moving = self.items[index];
        while index > 0 {
            let parent = (index - 1) / ARITY;
            if self.items[parent] <= moving {
                break;
            }
            self.put(positions, index, self.items[parent]);
            index = parent;
        }
        self.items[index] = moving;
        self.sink(positions, index);
    }

    /// Moves the item at `index` down to where it belongs.
    fn sink(&mut self, positions: &mut Positions, mut index: usize) {
        let moving = self.items[index];
        while let Some(child) = self.least_child(index) {
            if self.items[child] >= moving {
                break;
            }
            self.put(positions, index, self.items[child]);
            index = child;
        }
        self.put(positions, index, moving);
    }

    fn least_child(&self, index: usize) -> Option<usize> {
        let first = ARITY * index + 1;
        let children = self.items.get(first..)?;
        let children = &children[..children.len().min(ARITY)];
        let (mut at, mut least) = (0, *children.first()?);
        for (offset, &child) in children.iter().enumerate().skip(1) {
            let less = child < least;
            at = if less { offset } else { at };
            least = if less { child } else { least };
        }
        Some(first + at)
    }

    fn put(&mut self, positions: &mut Positions, index: usize, item: (K, u32)) {
        self.items[index] = item;
        positions.set(item.1, index as u32);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn with_other_keys_items_leave_in_their_order(
            keys in prop::collection::vec((0..50u64, 0..50u64), 1..60),
        ) {
            let (mut positions, mut heap) = (Positions::default(), Heap::default());
            for (item, &(old, _)) in keys.iter().enumerate() {
                heap.set(&mut positions, item as u32, old);
            }
            heap.rekey(&mut positions, |_, item| keys[item as usize].1);
            let mut expected: Vec<(u64, u32)> =
                keys.iter().zip(0..).map(|(&(_, new), item)| (new, item)).collect();
            expected.sort_unstable();
            for (key, item) in expected {
                prop_assert_eq!(heap.key(&positions, item), Some(key));
                prop_assert_eq!(heap.first(), Some((key, item)));
                heap.remove(&mut positions, item);
            }
        }

        #[test]
        fn the_first_is_always_the_least(steps in prop::collection::vec((0..20u32, 0..50u64, any::<bool>()), 1..200)) {
            let (mut positions, mut heap) = (Positions::default(), Heap::default());
            let mut model = BTreeMap::new();
            for (item, key, insert) in steps {
                if insert {
                    heap.set(&mut positions, item, key);
                    model.insert(item, (key, item));
                } else {
                    heap.remove(&mut positions, item);
                    model.remove(&item);
                }
                prop_assert_eq!(heap.first(), model.values().min().copied());
                prop_assert_eq!(heap.is_empty(), model.is_empty());
            }
        }
    }
}
