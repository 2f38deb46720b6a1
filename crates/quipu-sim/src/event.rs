//! What happens next: events in order of time, and of creation at the same time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::VecDeque;
use std::collections::binary_heap::PeekMut;

use quipu_base::Instant;

/// Events ordered by (time, sequence number): those of one instant come out as they went in.
///
/// What a link carries comes out in the order in which it went in, as a rule. Such events wait in a
/// lane, of which only the first is compared with others: the cost of an event does not depend on how
/// many are on their way.
#[derive(Debug)]
pub struct EventQueue<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    lanes: Vec<Lane<T>>,
    next_sequence: u64,
}

/// Events that follow each other in time.
#[derive(Debug)]
struct Lane<T> {
    /// The first event is in the heap; the others are here.
    behind: VecDeque<Entry<T>>,
    /// Some event of the lane waits.
    is_used: bool,
    /// When the last of them happens.
    last_at: Instant,
}

#[derive(Debug)]
struct Entry<T> {
    at: Instant,
    sequence: u64,
    /// Others may wait behind it in this lane.
    lane: Option<u32>,
    event: T,
}

impl<T> EventQueue<T> {
    /// A queue without events.
    pub fn new() -> Self {
        EventQueue { heap: BinaryHeap::new(), lanes: Vec::new(), next_sequence: 0 }
    }

    /// Adds an event that happens at `at`.
    #[inline]
    pub fn push(&mut self, at: Instant, event: T) {
        let entry = self.entry(at, None, event);
        self.heap.push(Reverse(entry));
    }

    /// The same of an event that happens after those of `lane` that wait, as a rule; a small number.
    #[inline]
    pub fn push_in(&mut self, lane: u32, at: Instant, event: T) {
        let entry = self.entry(at, Some(lane), event);
        if self.lanes.len() <= lane as usize {
            self.lanes.resize_with(lane as usize + 1, Lane::default);
        }
        let lane = &mut self.lanes[lane as usize];
        if !lane.is_used {
            (lane.is_used, lane.last_at) = (true, at);
            self.heap.push(Reverse(entry));
        } else if lane.last_at <= at {
            lane.last_at = at;
            lane.behind.push_back(entry);
        } else {
            self.heap.push(Reverse(Entry { lane: None, ..entry }));
        }
    }

    #[inline]
    fn entry(&mut self, at: Instant, lane: Option<u32>, event: T) -> Entry<T> {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        Entry { at, sequence, lane, event }
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Instant, T)> {
        let mut first = self.heap.peek_mut()?;
        let lane = first.0.lane.and_then(|lane| self.lanes.get_mut(lane as usize));
        let next = lane.and_then(|lane| {
            let next = lane.behind.pop_front();
            lane.is_used = next.is_some();
            next
        });
        let Reverse(entry) = match next {
            Some(next) => std::mem::replace(&mut *first, Reverse(next)),
            None => PeekMut::pop(first),
        };
        Some((entry.at, entry.event))
    }

    /// When the next event happens.
    #[inline]
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Number of events that wait.
    pub fn len(&self) -> usize {
        self.heap.len() + self.lanes.iter().map(|lane| lane.behind.len()).sum::<usize>()
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

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Lane { behind: VecDeque::new(), is_used: false, last_at: Instant::ZERO }
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
        /// Whatever lane an event is in, and whether or not it follows those before it there.
        #[test]
        fn events_come_in_order_of_time_and_then_of_creation(
            steps in proptest::collection::vec(
                (0u64..20, proptest::option::of(0u32..3), any::<bool>()),
                0..200,
            ),
        ) {
            let mut queue = EventQueue::new();
            let mut expected: Vec<(u64, usize)> = Vec::new();
            for (index, &(time, lane, takes)) in steps.iter().enumerate() {
                let at = Instant::from_nanos(time);
                match lane {
                    Some(lane) => queue.push_in(lane, at, index),
                    None => queue.push(at, index),
                }
                expected.push((time, index));
                expected.sort_unstable();
                if takes {
                    let (time, index) = expected.remove(0);
                    prop_assert_eq!(queue.pop(), Some((Instant::from_nanos(time), index)));
                }
                prop_assert_eq!(queue.len(), expected.len());
            }
            for (time, index) in expected {
                prop_assert_eq!(queue.next_at(), Some(Instant::from_nanos(time)));
                prop_assert_eq!(queue.pop(), Some((Instant::from_nanos(time), index)));
            }
            prop_assert!(queue.is_empty());
        }
    }

    #[test]
    fn of_events_that_follow_each_other_one_is_compared() {
        let mut queue = EventQueue::new();
        for time in 0..1_000 {
            queue.push_in(7, Instant::from_nanos(time), time);
        }
        assert_eq!((queue.heap.len(), queue.len()), (1, 1_000));
        assert_eq!(queue.pop(), Some((Instant::from_nanos(0), 0)));
        assert_eq!((queue.heap.len(), queue.len()), (1, 999));
    }
}
