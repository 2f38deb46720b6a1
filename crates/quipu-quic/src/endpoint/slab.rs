//! Places of connections. A place is used again, and its handle then has another generation, so that
//! a handle of the connection before finds nothing.

use std::cell::Cell;

/// A connection of an endpoint. It stays the name of that connection alone: once the connection is
/// gone, it finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionHandle {
    index: u32,
    generation: u32,
}

impl ConnectionHandle {
    /// Before all others.
    pub(super) const FIRST: Self = ConnectionHandle { index: 0, generation: 0 };
    /// After all others.
    pub(super) const LAST: Self = ConnectionHandle { index: u32::MAX, generation: u32::MAX };
}

/// Values by handle. All operations take the same time however many values there are.
pub(super) struct Slab<T> {
    places: Vec<Place<T>>,
    /// Indices of places without a value, the one left last at the end.
    free: Vec<u32>,
    len: usize,
    /// Places that were looked at so far: in debug builds alone.
    looked_at: Cell<u64>,
}

struct Place<T> {
    /// Of the value that is here, or of the next one.
    generation: u32,
    /// Boxed: a place without a value is small, and a table that grows moves no values.
    value: Option<Box<T>>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Self {
        Slab { places: Vec::new(), free: Vec::new(), len: 0, looked_at: Cell::new(0) }
    }

    /// Places that were looked at so far, so that a test can see how much work an operation is. Zero
    /// in release builds.
    pub(super) fn looked_at(&self) -> u64 {
        self.looked_at.get()
    }

    fn look(&self) {
        if cfg!(debug_assertions) {
            self.looked_at.set(self.looked_at.get() + 1);
        }
    }

    /// Values at present.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Takes a value in; `None` if no index is left.
    pub(super) fn insert(&mut self, value: T) -> Option<ConnectionHandle> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(self.places.len()).ok()?;
                self.places.push(Place { generation: 0, value: None });
                index
            }
        };
        let place = self.places.get_mut(index as usize)?;
        place.value = Some(Box::new(value));
        self.len += 1;
        Some(ConnectionHandle { index, generation: place.generation })
    }

    pub(super) fn get(&self, handle: ConnectionHandle) -> Option<&T> {
        self.look();
        let place = self.places.get(handle.index as usize)?;
        place.value.as_deref().filter(|_| place.generation == handle.generation)
    }

    pub(super) fn get_mut(&mut self, handle: ConnectionHandle) -> Option<&mut T> {
        self.look();
        let place = self.places.get_mut(handle.index as usize)?;
        place.value.as_deref_mut().filter(|_| place.generation == handle.generation)
    }

    pub(super) fn remove(&mut self, handle: ConnectionHandle) -> Option<T> {
        let place = self.places.get_mut(handle.index as usize)?;
        let value = place.value.take_if(|_| place.generation == handle.generation)?;
        self.len -= 1;
        // A place whose generations are used up is left empty for good.
        if let Some(next) = place.generation.checked_add(1) {
            place.generation = next;
            self.free.push(handle.index);
        }
        Some(*value)
    }

    /// The handles of all values, in order of their places.
    pub(super) fn handles(&self) -> impl Iterator<Item = ConnectionHandle> + '_ {
        let places = (0..).zip(&self.places).inspect(|_| self.look());
        places
            .filter(|(_, place)| place.value.is_some())
            .map(|(index, place)| ConnectionHandle { index, generation: place.generation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_but_its_old_handle_finds_nothing() {
        let mut slab = Slab::new();
        let first = slab.insert("a").unwrap();
        let other = slab.insert("b").unwrap();
        assert_eq!(slab.remove(first), Some("a"));
        let second = slab.insert("c").unwrap();
        assert_eq!((second.index, second.generation), (first.index, 1));
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!((slab.get(second), slab.get(other)), (Some(&"c"), Some(&"b")));
        assert_eq!(slab.len(), 2);
        assert_eq!(slab.handles().collect::<Vec<_>>(), [second, other]);
    }

    #[test]
    fn a_place_whose_generations_are_used_up_is_not_used_again() {
        let mut slab = Slab::new();
        let first = slab.insert(1).unwrap();
        slab.places[0].generation = u32::MAX;
        let last = ConnectionHandle { generation: u32::MAX, ..first };
        assert_eq!(slab.remove(last), Some(1));
        let next = slab.insert(2).unwrap();
        assert_eq!(next, ConnectionHandle { index: 1, generation: 0 });
        assert_eq!(slab.get(last), None);
    }
}
