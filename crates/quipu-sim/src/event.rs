//! What happens next: events in order of time, and of creation at the same time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use quipu_base::Instant;

/// Events ordered by (time, sequence number): those of one instant come out as they went in.
#[derive(Debug)]
pub struct EventQueue<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    next_sequence: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Instant,
    sequence: u64,
    event: T,
}

impl<T> EventQueue<T> {
    /// A queue without events.
    pub fn new() -> Self {
        EventQueue { heap: BinaryHeap::new(), next_sequence: 0 }
    }

    /// Adds an event that happens at `at`.
    #[inline]
    pub fn push(&mut self, at: Instant, event: T) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.heap.push(Reverse(Entry { at, sequence, event }));
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Instant, T)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }

    /// When the next event happens.
    #[inline]
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Number of events that wait.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if no event waits.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Ord for Entry<T> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl<T> PartialOrd for Entry<T> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}

impl<T> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn events_come_in_order_of_time_and_then_of_creation(
            times in proptest::collection::vec(0u64..20, 0..200),
        ) {
            let mut queue = EventQueue::new();
            for (index, &time) in times.iter().enumerate() {
                queue.push(Instant::from_nanos(time), index);
            }
            let mut expected: Vec<_> = times.iter().copied().enumerate().collect();
            // A stable sort keeps the order of creation.
            expected.sort_by_key(|&(_, time)| time);
            prop_assert_eq!(queue.len(), expected.len());
            for (index, time) in expected {
                prop_assert_eq!(queue.next_at(), Some(Instant::from_nanos(time)));
                prop_assert_eq!(queue.pop(), Some((Instant::from_nanos(time), index)));
            }
            prop_assert!(queue.is_empty());
        }
    }
}
