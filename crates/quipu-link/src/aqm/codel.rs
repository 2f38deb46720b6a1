//! CoDel: drops at the head, more and more often, until datagrams wait for less than the target.
//!
//! <https://www.rfc-editor.org/rfc/rfc8289#section-5>

use quipu_base::{Bytes, Duration, Instant};

use super::waiting::{Fifo, Waiting};
use super::{AqmLimit, CoDel};
use crate::{DropReason, QueueLimit};

/// As many bytes or less keep a link busy, however slow it is: what still waits behind the head is
/// then no queue. Counts one packet.
///
/// <https://www.rfc-editor.org/rfc/rfc8289#section-5.6>
const MAX_PACKET: Bytes = QueueLimit::PACKET;

/// One queue under CoDel.
#[derive(Debug)]
pub(crate) struct CoDelQueue {
    fifo: Fifo,
    control: Controller,
    limit: AqmLimit,
}

impl CoDelQueue {
    pub(crate) fn new(config: &CoDel) -> Self {
        CoDelQueue {
            fifo: Fifo::default(),
            control: Controller::new(config.target, config.interval),
            limit: config.limit,
        }
    }

    pub(crate) fn enqueue(&mut self, waiting: Waiting) -> Result<(), DropReason> {
        if !self.fifo.admits(waiting.bytes, &self.limit) {
            return Err(DropReason::QueueFull);
        }
        self.fifo.push(waiting);
        Ok(())
    }

    pub(crate) fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Waiting>) -> Option<Waiting> {
        self.control.dequeue(now, &mut self.fifo, dropped)
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.fifo.bytes()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }
}

/// When to drop at the head of a queue: the state of the RFC's `codel_queue_t`.
#[derive(Debug)]
pub(crate) struct Controller {
    target: Duration,
    interval: Duration,
    /// When the wait will have been above the target for an interval, if it is above it.
    above_for_interval_at: Option<Instant>,
    /// Whether datagrams are being dropped.
    dropping: bool,
    /// When the next one is.
    drop_next_at: Instant,
    /// Drops since dropping began; and how many there were when it last began.
    count: u32,
    last_count: u32,
}

/// What comes out of a queue, and whether it waited so long that it may be dropped.
type Head = (Option<Waiting>, bool);

impl Controller {
    pub(crate) fn new(target: Duration, interval: Duration) -> Self {
        Controller {
            target,
            interval,
            above_for_interval_at: None,
            dropping: false,
            drop_next_at: Instant::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    /// The next datagram of `fifo` that is sent, at `now`; those that are dropped before it go to
    /// `dropped`. The last one that waits is never dropped.
    ///
    /// <https://www.rfc-editor.org/rfc/rfc8289#section-5.5>
    pub(crate) fn dequeue(
        &mut self,
        now: Instant,
        fifo: &mut Fifo,
        dropped: &mut Vec<Waiting>,
    ) -> Option<Waiting> {
        let (mut head, mut may_drop) = self.pop(now, fifo);
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && self.drop_next_at <= now {
                self.count = self.count.saturating_add(1);
                let first = head.as_mut()?;
                if first.mark() {
                    self.drop_next_at = self.control_law(self.drop_next_at);
                    break;
                }
                dropped.extend(head);
                (head, may_drop) = self.pop(now, fifo);
                if may_drop {
                    self.drop_next_at = self.control_law(self.drop_next_at);
                } else {
                    self.dropping = false;
                }
            }
        } else if may_drop {
            if !head.as_mut()?.mark() {
                dropped.extend(head);
                (head, _) = self.pop(now, fifo);
            }
            self.dropping = true;
            // Dropping that ended a short while ago goes on about as often as it did at its end: what
            // controlled the queue then is a good start.
            let grown = self.count.saturating_sub(self.last_count);
            let lately = now - self.drop_next_at < self.interval.saturating_mul(16);
            self.count = if grown > 1 && lately { grown } else { 1 };
            self.last_count = self.count;
            self.drop_next_at = self.control_law(now);
        }
        head
    }

    /// <https://www.rfc-editor.org/rfc/rfc8289#section-5.6>
    fn pop(&mut self, now: Instant, fifo: &mut Fifo) -> Head {
        let head = fifo.pop();
        let waited = head.map_or(Duration::ZERO, |first| now - first.enqueued_at);
        if waited < self.target || fifo.bytes() <= MAX_PACKET {
            self.above_for_interval_at = None;
            return (head, false);
        }
        let may_drop_at = *self.above_for_interval_at.get_or_insert(now + self.interval);
        (head, may_drop_at <= now)
    }

    /// When the next datagram is dropped: an interval over the root of the number of drops later.
    ///
    /// <https://www.rfc-editor.org/rfc/rfc8289#section-3.3>
    fn control_law(&self, from: Instant) -> Instant {
        // Rounded down to a nanosecond; a root is exact to its last bit on every machine.
        let wait = self.interval.as_nanos() as f64 / f64::from(self.count.max(1)).sqrt();
        from + Duration::from_nanos(wait as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::waiting::tests::datagram;
    use super::*;
    use crate::ecn::{ECT_0, NOT_ECT};

    fn millis(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn queue() -> CoDelQueue {
        CoDelQueue::new(&CoDel::default())
    }

    fn controller() -> Controller {
        let CoDel { target, interval, .. } = CoDel::default();
        Controller::new(target, interval)
    }

    #[test]
    fn the_control_law_divides_the_interval_by_the_root_of_the_count() {
        // 100 ms / sqrt(count), as of a table of roots.
        let expected = [
            (1, 100_000_000),
            (2, 70_710_678),
            (3, 57_735_026),
            (4, 50_000_000),
            (5, 44_721_359),
            (10, 31_622_776),
            (100, 10_000_000),
            (10_000, 1_000_000),
            (u32::MAX, 1_525),
        ];
        for (count, nanos) in expected {
            let control = Controller { count, ..controller() };
            assert_eq!(control.control_law(millis(7)), millis(7) + Duration::from_nanos(nanos));
        }
    }

    /// Takes a datagram each millisecond from a queue in which each has then waited for `wait`, or a
    /// millisecond less for each one dropped lately: when one was dropped or marked, and how many
    /// were marked.
    fn drops(wait: Duration, ecn: u8, until: u64) -> (Vec<Instant>, u64) {
        let (mut queue, mut dropped, mut times) = (queue(), Vec::new(), Vec::new());
        let mut marked = 0;
        for step in 0..until {
            let now = millis(1_000 + step);
            // Eight are always there, of 1,500 B.
            while queue.bytes() < Bytes(12_000) {
                let taken_at = now + Duration::from_millis(queue.bytes().0 / 1_500);
                let waiting =
                    datagram(0, 1_500, Instant::ZERO + (taken_at - (Instant::ZERO + wait)));
                queue.enqueue(Waiting { ecn, ..waiting }).unwrap();
            }
            let sent = queue.dequeue(now, &mut dropped).unwrap();
            marked += u64::from(sent.marked);
            times.extend(dropped.drain(..).map(|_| now));
            if sent.marked {
                times.push(now);
            }
        }
        (times, marked)
    }

    #[test]
    fn drops_come_as_the_control_law_says() {
        let (times, marked) = drops(Duration::from_millis(20), NOT_ECT, 1_000);
        assert_eq!(marked, 0);
        // The first an interval after the wait was first above the target, which was at once; from
        // then on each one root further, at the first look at or after its time.
        let mut expected = vec![millis(1_100)];
        let mut next = 1_100e6;
        for count in 1.. {
            next += (100e6 / f64::from(count).sqrt()).floor();
            let at = millis((next / 1e6).ceil() as u64);
            if at >= millis(2_000) {
                break;
            }
            expected.push(at);
        }
        assert!(expected.len() > 20);
        assert_eq!(times, expected);
    }

    #[test]
    fn capable_datagrams_are_marked_when_others_would_be_dropped() {
        let (dropped, _) = drops(Duration::from_millis(20), NOT_ECT, 1_000);
        let (times, marked) = drops(Duration::from_millis(20), ECT_0, 1_000);
        assert_eq!(times, dropped);
        assert_eq!(marked, dropped.len() as u64);
    }

    #[test]
    fn a_wait_below_the_target_drops_nothing() {
        assert_eq!(drops(Duration::from_nanos(4_999_999), NOT_ECT, 3_000).0, []);
        assert_ne!(drops(Duration::from_millis(5), NOT_ECT, 3_000).0, []);
    }

    #[test]
    fn what_is_no_queue_behind_the_head_drops_nothing() {
        let (mut queue, mut dropped) = (queue(), Vec::new());
        for second in 0..100 {
            let now = millis(second * 1_000);
            for _ in 0..2 {
                queue.enqueue(datagram(0, 1_500, now)).unwrap();
            }
            for _ in 0..2 {
                assert!(queue.dequeue(now + Duration::from_millis(900), &mut dropped).is_some());
            }
        }
        assert!(dropped.is_empty());
    }

    #[test]
    fn dropping_that_ended_lately_goes_on_where_it_was() {
        let mut control = controller();
        let (mut fifo, mut dropped) = (Fifo::default(), Vec::new());
        let mut take = |control: &mut Controller, now: Instant, wait: u64| {
            while fifo.bytes() < Bytes(9_000) {
                fifo.push(datagram(0, 1_500, Instant::ZERO));
            }
            // As if all had come so long ago.
            let mut aged = Fifo::default();
            while let Some(first) = fifo.pop() {
                aged.push(Waiting { enqueued_at: now - Duration::from_millis(wait), ..first });
            }
            fifo = aged;
            control.dequeue(now, &mut fifo, &mut dropped);
        };
        let mut now = millis(1_000);
        while control.count < 10 {
            take(&mut control, now, 50);
            now += Duration::from_millis(1);
        }
        take(&mut control, now, 0);
        assert!(!control.dropping);
        for step in 0..102 {
            take(&mut control, now + Duration::from_millis(step), 50);
        }
        assert!(control.dropping);
        assert_eq!((control.count, control.last_count), (9, 9), "ten less the one at the start");
        // Long after, it begins anew.
        take(&mut control, now + Duration::from_secs(10), 0);
        for step in 0..102 {
            take(&mut control, now + Duration::from_millis(10_000 + step), 50);
        }
        assert_eq!((control.dropping, control.count), (true, 1));
    }

    #[test]
    fn a_full_queue_takes_no_more() {
        let limit = AqmLimit { datagrams: 3, bytes: Bytes(2_000) };
        let mut queue = CoDelQueue::new(&CoDel { limit, ..CoDel::default() });
        let mut take = |bytes| queue.enqueue(datagram(0, bytes, Instant::ZERO));
        let full = Err(DropReason::QueueFull);
        assert_eq!([1_500, 501, 500, 1].map(&mut take), [Ok(()), full, Ok(()), full]);
        let limit = AqmLimit { datagrams: 3, bytes: Bytes(2_000) };
        let mut queue = CoDelQueue::new(&CoDel { limit, ..CoDel::default() });
        let mut take = |bytes| queue.enqueue(datagram(0, bytes, Instant::ZERO));
        assert_eq!([3_000, 1].map(&mut take), [Ok(()), full]);
        assert_eq!(queue.bytes(), Bytes(3_000));
    }
}
