//! FQ-CoDel: a queue for each flow, taken in turns, with CoDel on each.
//!
//! <https://www.rfc-editor.org/rfc/rfc8290#section-4>

use std::collections::VecDeque;

use quipu_base::{Bytes, Instant};

use super::codel::Controller;
use super::waiting::{Fifo, Waiting};
use super::{AqmLimit, FlowKey, FqCoDel};

/// As many datagrams are dropped at once when the limit is exceeded.
///
/// <https://www.rfc-editor.org/rfc/rfc8290#section-4.1>
const MOST_DROPPED_AT_ONCE: usize = 64;

/// All queues of a link.
///
/// CoDel looks at the bytes behind the head of its own queue, as RFC 8289 does; Linux looks at
/// those of all queues.
#[derive(Debug)]
pub(crate) struct FqCoDelQueue {
    quantum: i64,
    limit: AqmLimit,
    /// Mixed into each flow's key, so that in another run other flows share a queue.
    perturbation: u64,
    flows: Vec<Flow>,
    /// Indices of the flows that have just begun to send, and of the others that have something or
    /// have just had: each in at most one of the two.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    datagrams: usize,
    bytes: Bytes,
}

#[derive(Debug)]
struct Flow {
    fifo: Fifo,
    control: Controller,
    /// Bytes that it may still send in this round; below zero if it sent more.
    credit: i64,
    is_listed: bool,
}

impl FqCoDelQueue {
    pub(crate) fn new(config: &FqCoDel, perturbation: u64) -> Self {
        let flow = || Flow {
            fifo: Fifo::default(),
            control: Controller::new(config.target, config.interval),
            credit: 0,
            is_listed: false,
        };
        FqCoDelQueue {
            // At most 1 MiB.
            quantum: i64::try_from(config.quantum.0).unwrap_or(i64::MAX),
            limit: config.limit,
            perturbation,
            flows: (0..config.flows).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            datagrams: 0,
            bytes: Bytes::ZERO,
        }
    }

    /// Takes a datagram. If it is one too many, half of the datagrams of the queue with the most
    /// bytes, but at most 64, are dropped from its head, and go to `dropped`.
    pub(crate) fn enqueue(&mut self, waiting: Waiting, key: FlowKey, dropped: &mut Vec<Waiting>) {
        let index = self.index(key);
        let Some(flow) = self.flows.get_mut(index as usize) else { return };
        self.datagrams += 1;
        self.bytes += waiting.bytes;
        flow.fifo.push(waiting);
        if !flow.is_listed {
            (flow.is_listed, flow.credit) = (true, self.quantum);
            self.new.push_back(index);
        }
        while !self.limit.holds(self.datagrams, self.bytes) && self.drop_of_longest(dropped) {}
    }

    /// Drops from the queue with the most bytes; false if nothing waits.
    #[cold]
    fn drop_of_longest(&mut self, dropped: &mut Vec<Waiting>) -> bool {
        // The first of equals, so that the choice is always the same.
        let longest = self.flows.iter_mut().rev().max_by_key(|flow| flow.fifo.bytes());
        let Some(flow) = longest.filter(|flow| !flow.fifo.is_empty()) else { return false };
        let count = (flow.fifo.len() / 2).clamp(1, MOST_DROPPED_AT_ONCE);
        for _ in 0..count {
            let Some(first) = flow.fifo.pop() else { break };
            self.datagrams -= 1;
            self.bytes -= first.bytes;
            dropped.push(first);
        }
        true
    }

    /// <https://www.rfc-editor.org/rfc/rfc8290#section-4.2>
    pub(crate) fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Waiting>) -> Option<Waiting> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = self.flows.get_mut(index as usize)?;
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = (flow.fifo.len(), flow.fifo.bytes());
            let sent = flow.control.dequeue(now, &mut flow.fifo, dropped);
            self.datagrams -= before.0 - flow.fifo.len();
            self.bytes -= before.1 - flow.fifo.bytes();
            if let Some(sent) = sent {
                flow.credit = flow.credit.saturating_sub_unsigned(sent.bytes.0);
                return Some(sent);
            }
            list.pop_front();
            if is_new {
                // Once through the old ones, so that a flow cannot stay new by sending one by one.
                self.old.push_back(index);
            } else {
                flow.is_listed = false;
            }
        }
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.datagrams == 0
    }

    /// The queue of a flow: the mixing function of SplitMix64, and the high bits of its product with
    /// the number of queues.
    fn index(&self, FlowKey(key): FlowKey) -> u32 {
        let mut mixed = (key ^ self.perturbation).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // Below the number of queues, at most 65,536.
        ((u128::from(mixed) * self.flows.len() as u128) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quipu_base::Duration;

    use super::super::waiting::tests::datagram;
    use super::*;
    use crate::link::Ticket;

    fn queue(config: &FqCoDel) -> FqCoDelQueue {
        FqCoDelQueue::new(config, 7)
    }

    fn tickets(dropped: &[Waiting]) -> Vec<u32> {
        dropped.iter().map(|waiting| waiting.ticket.0).collect()
    }

    #[test]
    fn flows_spread_evenly_over_all_queues() {
        let queue = queue(&FqCoDel::default());
        let mut hits = vec![0u32; 1_024];
        for key in 0..102_400 {
            hits[queue.index(FlowKey(key)) as usize] += 1;
        }
        // 100 each, standard deviation 10.
        assert!(hits.iter().all(|&hits| (50..=160).contains(&hits)));
        let other = FqCoDelQueue::new(&FqCoDel::default(), 8);
        let moved =
            (0..1_000).filter(|&key| queue.index(FlowKey(key)) != other.index(FlowKey(key)));
        assert!(moved.count() > 980);
    }

    #[test]
    fn a_sparse_flow_goes_before_a_bulk_flow() {
        let (mut queue, mut dropped) = (queue(&FqCoDel::default()), Vec::new());
        let now = Instant::ZERO;
        for number in 0..100 {
            queue.enqueue(datagram(number, 1_500, now), FlowKey(1), &mut dropped);
        }
        // The bulk flow has used its first quantum and is an old one.
        for number in 0..2 {
            assert_eq!(queue.dequeue(now, &mut dropped).map(|d| d.ticket), Some(Ticket(number)));
        }
        queue.enqueue(datagram(500, 100, now), FlowKey(2), &mut dropped);
        assert_eq!(queue.dequeue(now, &mut dropped).map(|d| d.ticket), Some(Ticket(500)));
        assert_eq!(queue.dequeue(now, &mut dropped).map(|d| d.ticket), Some(Ticket(2)));
        assert!(dropped.is_empty());
    }

    #[test]
    fn what_is_too_much_is_dropped_from_the_longest_queue() {
        let limit = AqmLimit::of_datagrams(10);
        let mut queue = queue(&FqCoDel { limit, ..FqCoDel::default() });
        let mut dropped = Vec::new();
        for number in 0..8 {
            queue.enqueue(datagram(number, 1_000, Instant::ZERO), FlowKey(1), &mut dropped);
        }
        for number in 8..10 {
            queue.enqueue(datagram(number, 1_000, Instant::ZERO), FlowKey(2), &mut dropped);
        }
        assert!(dropped.is_empty());
        queue.enqueue(datagram(10, 1_000, Instant::ZERO), FlowKey(2), &mut dropped);
        // Half of the eight, from their head.
        assert_eq!(tickets(&dropped), [0, 1, 2, 3]);
        assert_eq!(queue.bytes(), Bytes(7_000));
    }

    #[test]
    fn memory_is_bounded_whatever_the_datagrams_are() {
        let limit = AqmLimit { datagrams: 1_000, bytes: Bytes(5_000) };
        let mut queue = queue(&FqCoDel { limit, ..FqCoDel::default() });
        let mut dropped = Vec::new();
        for number in 0..1_000u32 {
            let flow = FlowKey(u64::from(number % 3));
            queue.enqueue(datagram(number, 1_500, Instant::ZERO), flow, &mut dropped);
            assert!(queue.bytes() <= Bytes(5_000));
        }
        dropped.clear();
        queue.enqueue(datagram(9_999, 5_001, Instant::ZERO), FlowKey(5), &mut dropped);
        // It is itself the longest.
        assert_eq!(tickets(&dropped), [9_999]);
    }

    /// DRR++ as one would write it down first, with flows known by their key.
    #[derive(Default)]
    struct Naive {
        new: Vec<u64>,
        old: Vec<u64>,
        credit: std::collections::BTreeMap<u64, i64>,
        waiting: std::collections::BTreeMap<u64, Vec<(u32, u64)>>,
    }

    impl Naive {
        fn enqueue(&mut self, key: u64, number: u32, bytes: u64) {
            self.waiting.entry(key).or_default().push((number, bytes));
            if !self.new.contains(&key) && !self.old.contains(&key) {
                self.new.push(key);
                self.credit.insert(key, 1_514);
            }
        }

        fn dequeue(&mut self) -> Option<u32> {
            loop {
                let is_new = !self.new.is_empty();
                let list = if is_new { &mut self.new } else { &mut self.old };
                let key = *list.first()?;
                let credit = self.credit.get_mut(&key).unwrap();
                let waiting = self.waiting.get_mut(&key).unwrap();
                if *credit <= 0 {
                    *credit += 1_514;
                    list.remove(0);
                    self.old.push(key);
                } else if waiting.is_empty() {
                    list.remove(0);
                    if is_new {
                        self.old.push(key);
                    }
                } else {
                    let (number, bytes) = waiting.remove(0);
                    *credit -= i64::try_from(bytes).unwrap();
                    return Some(number);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn turns_are_those_of_a_naive_round_robin(
            steps in proptest::collection::vec(
                prop_oneof![2 => (0u64..5, 40u64..3_000).prop_map(Some), 1 => Just(None)], 1..300),
        ) {
            // No time passes, so that CoDel drops nothing.
            let (mut queue, mut dropped) = (queue(&FqCoDel::default()), Vec::new());
            let mut naive = Naive::default();
            for (number, step) in (0..).zip(steps) {
                match step {
                    Some((key, bytes)) => {
                        naive.enqueue(key, number, bytes);
                        let waiting = datagram(number, bytes, Instant::ZERO);
                        queue.enqueue(waiting, FlowKey(key), &mut dropped);
                    }
                    None => {
                        let sent = queue.dequeue(Instant::ZERO, &mut dropped);
                        prop_assert_eq!(sent.map(|sent| sent.ticket.0), naive.dequeue());
                    }
                }
            }
            prop_assert!(dropped.is_empty());
        }

        #[test]
        fn every_datagram_comes_out_once(
            steps in proptest::collection::vec(
                (0u64..4, 40u64..1_500, 0u64..40, any::<bool>()), 1..400),
            limit in 1u32..40,
        ) {
            let limit = AqmLimit { datagrams: limit, bytes: Bytes(20_000) };
            let mut queue = queue(&FqCoDel { limit, ..FqCoDel::default() });
            let (mut now, mut out) = (Instant::ZERO, Vec::new());
            let count = u32::try_from(steps.len()).unwrap();
            for (number, (key, bytes, wait, takes)) in (0..).zip(steps) {
                now += Duration::from_millis(wait);
                queue.enqueue(datagram(number, bytes, now), FlowKey(key), &mut out);
                if takes && let Some(sent) = queue.dequeue(now, &mut out) {
                    out.push(sent);
                }
            }
            while let Some(sent) = queue.dequeue(now, &mut out) {
                out.push(sent);
            }
            prop_assert!(queue.is_empty() && queue.bytes().is_zero());
            let mut out = tickets(&out);
            out.sort_unstable();
            prop_assert_eq!(out, (0..count).collect::<Vec<_>>());
        }
    }
}
