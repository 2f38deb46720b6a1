//! When connections want to be called.

use std::collections::BTreeSet;

use quipu_base::Instant;

use super::slab::ConnectionHandle;

/// A deadline and whose it is.
type Entry = (Instant, ConnectionHandle);

/// The deadlines of all connections, one of each at most.
#[derive(Default)]
pub(super) struct Deadlines {
    /// The earliest, apart from the others: a connection that is busy mostly has it before and after,
    /// and the only connection of a client always does.
    first: Option<Entry>,
    later: BTreeSet<Entry>,
}

impl Deadlines {
    /// A connection's deadline was `before` and is `after` from now on.
    pub(super) fn replace(
        &mut self,
        handle: ConnectionHandle,
        before: Option<Instant>,
        after: Option<Instant>,
    ) {
        if before == after {
            return;
        }
        if let Some(before) = before {
            if self.first == Some((before, handle)) {
                self.first = None;
            } else {
                self.later.remove(&(before, handle));
            }
        }
        if let Some(after) = after {
            self.insert((after, handle));
        } else if self.first.is_none() {
            self.first = self.later.pop_first();
        }
    }

    /// Puts one in; none need be the first at present.
    fn insert(&mut self, entry: Entry) {
        let first = match self.first {
            Some(first) => first,
            // It takes the place of the one that was taken out.
            None => match self.later.first() {
                Some(&next) if next < entry => {
                    self.later.pop_first();
                    next
                }
                _ => entry,
            },
        };
        self.first = Some(first.min(entry));
        if first != entry {
            self.later.insert(first.max(entry));
        }
    }

    /// The earliest.
    pub(super) fn first(&self) -> Option<Instant> {
        self.first.map(|(at, _)| at)
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.later.len()
    }

    /// Takes out the earliest deadline that has come.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<ConnectionHandle> {
        let (at, handle) = self.first?;
        if at > now {
            return None;
        }
        self.first = self.later.pop_first();
        Some(handle)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::slab::Slab;
    use super::*;

    proptest! {
        #[test]
        fn deadlines_come_in_order_as_from_a_sorted_list(
            changes in proptest::collection::vec((0usize..6, proptest::option::of(0u64..20)), 0..200),
        ) {
            let mut slab = Slab::new();
            let handles: Vec<_> = (0..6).map(|_| slab.insert(()).expect("there is room")).collect();
            let mut deadlines = Deadlines::default();
            let mut model: Vec<Option<Instant>> = vec![None; handles.len()];
            for (index, at) in changes {
                let after = at.map(Instant::from_nanos);
                deadlines.replace(handles[index], model[index], after);
                model[index] = after;
                prop_assert_eq!(deadlines.first(), model.iter().flatten().min().copied());
                prop_assert_eq!(deadlines.len(), model.iter().flatten().count());
                // Time goes on now and then.
                let now = Instant::from_nanos(5);
                while index == 0 && let Some(handle) = deadlines.take_due(now) {
                    let due = model.iter().zip(&handles).filter_map(|(at, of)| Some(((*at)?, *of)));
                    let due = due.min().filter(|(at, _)| *at <= now);
                    prop_assert_eq!(due.map(|(_, of)| of), Some(handle));
                    let index = handles.iter().position(|of| *of == handle).expect("a known one");
                    model[index] = None;
                }
            }
        }
    }
}
