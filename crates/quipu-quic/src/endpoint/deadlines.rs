//! When connections want to be called.

use std::collections::BTreeSet;

use quipu_base::Instant;

use super::slab::ConnectionHandle;

/// The deadlines of all connections, one of each at most.
#[derive(Default)]
pub(super) struct Deadlines {
    in_order: BTreeSet<(Instant, ConnectionHandle)>,
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
            self.in_order.remove(&(before, handle));
        }
        if let Some(after) = after {
            self.in_order.insert((after, handle));
        }
    }

    /// The earliest.
    pub(super) fn first(&self) -> Option<Instant> {
        self.in_order.first().map(|(at, _)| *at)
    }

    pub(super) fn len(&self) -> usize {
        self.in_order.len()
    }

    /// Takes out the earliest deadline that has come.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<ConnectionHandle> {
        let &(at, _) = self.in_order.first()?;
        if at > now {
            return None;
        }
        self.in_order.pop_first().map(|(_, handle)| handle)
    }
}
