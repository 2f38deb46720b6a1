//! A bottleneck for tests of controllers: senders, one queue, and a way back.
//!
//! It goes packet by packet, in virtual time. Senders pace as asked, measure round-trip times and
//! delivery rates, and detect losses in the plain way of RFC 9002; coupled controllers see no peers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use quipu_base::{Bytes, Duration, Instant, Random, Rate, Seed};
use rand_core::Rng;

use super::{Controller, PathChange};

mod sender;

use sender::Next;
pub(super) use sender::{App, Seen, Sender};

/// Bytes of every packet.
pub(super) const SIZE: Bytes = Bytes(1_250);
/// An acknowledgement of fewer packets than asked for comes after this.
const ACK_DELAY: Duration = Duration::from_millis(25);

/// What all senders share. May be changed during a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// Rate at which the queue empties.
    pub(super) rate: Rate,
    /// Round-trip time without queue and transmission.
    pub(super) delay: Duration,
    /// What the queue holds; what does not fit is lost.
    pub(super) buffer: Bytes,
    /// One of so many packets is lost on arrival; 0: none.
    pub(super) loss_every: u64,
    /// Of a thousand packets so many are lost on arrival, at random.
    pub(super) random_loss: u64,
    /// Acknowledgements are late by a random time up to this, in order.
    pub(super) jitter: Duration,
    /// Packets for one acknowledgement.
    pub(super) ack_every: usize,
}

impl Link {
    /// A link with a deep queue, without losses, that acknowledges every packet.
    pub(super) fn new(rate: Rate, delay: Duration) -> Self {
        Link {
            rate,
            delay,
            buffer: Bytes(10_000_000),
            loss_every: 0,
            random_loss: 0,
            jitter: Duration::ZERO,
            ack_every: 1,
        }
    }

    /// Bytes in flight that fill it without a queue.
    pub(super) fn bdp(&self) -> Bytes {
        self.rate.bytes_in(self.delay)
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The packet in transmission has left the queue.
    Departed,
    /// The receiver waited long enough for another packet.
    AckDelay {
        flow: usize,
        since: Instant,
    },
    Ack {
        flow: usize,
        pns: Vec<u64>,
    },
    Wake {
        flow: usize,
    },
    Pto {
        flow: usize,
    },
}

/// What a receiver has not acknowledged yet.
#[derive(Debug)]
struct Receiver {
    unacknowledged: Vec<u64>,
    /// Since when it waits for more; `None` if it does not.
    waits_since: Option<Instant>,
    /// When its last acknowledgement arrives; no other arrives earlier.
    acked_at: Instant,
}

/// Senders behind one queue.
pub(super) struct Bottleneck {
    pub(super) link: Link,
    pub(super) now: Instant,
    pub(super) senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    /// Bytes waiting or in transmission.
    pub(super) queued: Bytes,
    queue: VecDeque<(usize, u64)>,
    arrived: u64,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    sequence: u64,
    random: Random,
}

impl Bottleneck {
    pub(super) fn new(link: Link) -> Self {
        Bottleneck {
            link,
            now: Instant::ZERO,
            senders: Vec::new(),
            receivers: Vec::new(),
            queued: Bytes::ZERO,
            queue: VecDeque::new(),
            arrived: 0,
            events: BinaryHeap::new(),
            sequence: 0,
            random: Seed::new(1).stream("bottleneck", 0),
        }
    }

    /// Adds a sender, which begins now. Its index.
    pub(super) fn add(&mut self, controller: Box<dyn Controller>, app: App) -> usize {
        let flow = self.senders.len();
        self.senders.push(Sender::new(controller, app, self.now, flow));
        self.receivers.push(Receiver {
            unacknowledged: Vec::new(),
            waits_since: None,
            acked_at: self.now,
        });
        self.pump(flow);
        flow
    }

    /// Gives a sender something else to send.
    pub(super) fn set_app(&mut self, flow: usize, app: App) {
        self.senders[flow].set_app(self.now, app);
        self.pump(flow);
    }

    /// Tells a controller of something else.
    pub(super) fn change(&mut self, flow: usize, change: PathChange) {
        self.senders[flow].change(self.now, change);
        self.pump(flow);
    }

    /// Runs for that long.
    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(Reverse((at, ..))) = self.events.peek()
            && *at <= end
            && let Some(Reverse((at, _, event))) = self.events.pop()
        {
            self.now = at;
            self.handle(event);
        }
        self.now = end;
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Departed => self.depart(),
            Event::AckDelay { flow, since } => {
                if self.receivers[flow].waits_since == Some(since) {
                    self.acknowledge(flow);
                }
            }
            Event::Ack { flow, pns } => {
                self.senders[flow].on_ack(self.now, &pns);
                self.pump(flow);
            }
            Event::Wake { flow } => {
                if self.senders[flow].wake_at == Some(self.now) {
                    self.senders[flow].wake_at = None;
                    self.pump(flow);
                }
            }
            Event::Pto { flow } => self.on_pto(flow),
        }
    }

    /// A packet comes to the queue.
    fn enqueue(&mut self, flow: usize, pn: u64) {
        self.arrived += 1;
        let every = self.link.loss_every;
        let dropped = every > 0 && self.arrived.is_multiple_of(every);
        let unlucky =
            self.link.random_loss > 0 && self.random.next_u64() % 1_000 < self.link.random_loss;
        if dropped || unlucky || self.queued + SIZE > self.link.buffer {
            return;
        }
        self.queued += SIZE;
        self.queue.push_back((flow, pn));
        if self.queue.len() == 1 {
            self.schedule(self.now + self.link.rate.time_for(SIZE), Event::Departed);
        }
    }

    fn depart(&mut self) {
        let (flow, pn) = self.queue.pop_front().unwrap();
        self.queued -= SIZE;
        if !self.queue.is_empty() {
            self.schedule(self.now + self.link.rate.time_for(SIZE), Event::Departed);
        }
        let receiver = &mut self.receivers[flow];
        receiver.unacknowledged.push(pn);
        if receiver.unacknowledged.len() >= self.link.ack_every {
            self.acknowledge(flow);
        } else if receiver.unacknowledged.len() == 1 {
            receiver.waits_since = Some(self.now);
            self.schedule(self.now + ACK_DELAY, Event::AckDelay { flow, since: self.now });
        }
    }

    fn acknowledge(&mut self, flow: usize) {
        let jitter = match self.link.jitter.as_nanos() {
            0 => Duration::ZERO,
            most => Duration::from_nanos(self.random.next_u64() % most),
        };
        let receiver = &mut self.receivers[flow];
        let pns = std::mem::take(&mut receiver.unacknowledged);
        receiver.waits_since = None;
        receiver.acked_at = receiver.acked_at.max(self.now + self.link.delay + jitter);
        let at = receiver.acked_at;
        self.schedule(at, Event::Ack { flow, pns });
    }

    /// Sends what may go.
    fn pump(&mut self, flow: usize) {
        loop {
            let sender = &mut self.senders[flow];
            match sender.next(self.now) {
                Next::Now => self.send(flow),
                Next::At(at) => {
                    let at = at.max(self.now + Duration::from_nanos(1));
                    if sender.wake_at != Some(at) {
                        sender.wake_at = Some(at);
                        self.schedule(at, Event::Wake { flow });
                    }
                    return;
                }
                Next::Later => return,
            }
        }
    }

    fn send(&mut self, flow: usize) {
        let sender = &mut self.senders[flow];
        let pn = sender.send(self.now);
        if !sender.has_timer {
            sender.has_timer = true;
            let at = sender.timeout_at();
            self.schedule(at, Event::Pto { flow });
        }
        self.enqueue(flow, pn);
    }

    fn on_pto(&mut self, flow: usize) {
        let sender = &mut self.senders[flow];
        if sender.in_flight.is_zero() {
            sender.has_timer = false;
            return;
        }
        let at = sender.timeout_at();
        if at <= self.now {
            sender.change(self.now, PathChange::Pto);
            sender.heard_at = self.now;
            self.send(flow);
            self.send(flow);
        }
        let at = self.senders[flow].timeout_at();
        self.schedule(at, Event::Pto { flow });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{NewReno, SlowStartExit};

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// 8 Mbit/s and 100 ms: 80 packets fill it.
    fn link() -> Link {
        Link::new(Rate::from_mbit_per_sec(8), ms(100))
    }

    #[test]
    fn a_change_reaches_the_controller() {
        let mut net = Bottleneck::new(link());
        let flow = net.add(newreno(), App::Endless);
        net.run(ms(150));
        net.change(flow, PathChange::DatagramSize(Bytes(2_000)));
        assert!(net.senders[flow].in_flight >= Bytes(20_000));
    }

    fn newreno() -> Box<dyn Controller> {
        Box::new(NewReno::new(10, SIZE))
    }

    #[test]
    fn a_full_bottleneck_is_measured_exactly() {
        let mut net = Bottleneck::new(link());
        assert_eq!(net.link.bdp(), Bytes(100_000));
        net.add(newreno(), App::Endless);
        net.run(ms(3_000));
        let sender = &net.senders[0];
        let rates: Vec<_> =
            sender.between(ms(2_000), ms(3_000)).filter_map(|seen| seen.rate).collect();
        assert_eq!(rates.len(), 800);
        for sample in &rates {
            assert_eq!((sample.rate, sample.limited), (net.link.rate, false), "{sample:?}");
        }
        assert_eq!(sender.last().lost, Bytes::ZERO);
        assert!(sender.last().published.cwnd > net.link.bdp());
        assert!(sender.last().in_flight <= sender.last().published.cwnd);
        // What was in flight ahead of the last packet had to leave the queue before it.
        let sample = sender.last().rate.unwrap();
        let ahead = net.link.rate.time_for(sample.in_flight_at_send);
        assert!(sender.last().rtt.abs_diff(ahead) <= net.link.rate.time_for(SIZE));
    }

    #[test]
    fn a_short_queue_loses_and_newreno_keeps_it_busy() {
        let mut net = Bottleneck::new(Link { buffer: Bytes(100_000), ..link() });
        net.add(newreno(), App::Endless);
        net.run(ms(60_000));
        let sender = &net.senders[0];
        assert!(!sender.lost.is_zero());
        assert!(sender.goodput(ms(10_000), ms(60_000)) >= Rate::from_bits_per_sec(7_900_000));
        assert!(sender.states.iter().any(|&(_, state)| state == "congestion avoidance"));
    }

    /// With a queue of ten times what fills the link, slow start without a watch fills it all.
    #[test]
    fn hybrid_slow_start_leaves_a_long_queue_short() {
        let least_window = |exit| {
            let mut net = Bottleneck::new(Link { buffer: Bytes(1_000_000), ..link() });
            net.add(Box::new(NewReno::with(10, SIZE, exit, 0.5)), App::Endless);
            net.run(ms(1_500));
            let seen = net.senders[0].last().published;
            (seen.cwnd, seen.state, net.senders[0].last().lost)
        };
        let (without, state, _) = least_window(SlowStartExit::Loss);
        assert_eq!(state, "slow start");
        let (hybrid, state, lost) = least_window(SlowStartExit::Hybrid);
        assert_eq!((state, lost), ("congestion avoidance", Bytes::ZERO));
        assert!(hybrid.0 * 2 < without.0, "{hybrid} and {without}");
        // It does not give up the link either.
        assert!(hybrid >= Bytes(100_000), "{hybrid}");
    }

    #[test]
    fn an_application_that_writes_slowly_is_measured_as_limited() {
        let mut net = Bottleneck::new(Link { ack_every: 2, ..link() });
        let rate = Rate::from_mbit_per_sec(2);
        let flow = net.add(newreno(), App::Paced(rate));
        net.run(ms(5_000));
        let sender = &net.senders[flow];
        assert!(sender.goodput(ms(1_000), ms(5_000)) <= rate);
        let limited = |seen: &Seen| seen.rate.is_none_or(|sample| sample.limited);
        assert!(sender.between(ms(1_000), ms(5_000)).all(limited));
        net.set_app(flow, App::Idle);
        net.run(ms(5_000));
        assert_eq!((net.senders[flow].in_flight, net.queued), (Bytes::ZERO, Bytes::ZERO));
    }

    /// Probes would come in time for ever, and leave packets behind each acknowledgement of four.
    #[test]
    fn a_sender_waits_for_a_receiver_that_waits_for_more() {
        let short = Link::new(Rate::from_mbit_per_sec(100), ms(0));
        for packets in 1..6 {
            let link = Link { buffer: SIZE.saturating_mul(8), ack_every: 4, ..short };
            let mut net = Bottleneck::new(link);
            net.add(newreno(), App::Endless);
            net.run(ms(100));
            net.set_app(0, App::Idle);
            net.run(ms(1_000));
            for _ in 0..packets {
                net.send(0);
            }
            net.run(ms(1_000));
            assert_eq!(net.senders[0].in_flight, Bytes::ZERO, "{packets} packets");
        }
    }

    #[test]
    fn two_senders_get_all_and_a_lost_tail_is_found() {
        let mut net = Bottleneck::new(Link { loss_every: 400, jitter: ms(2), ..link() });
        net.add(newreno(), App::Endless);
        net.run(ms(1_000));
        net.add(newreno(), App::Endless);
        net.run(ms(9_000));
        let shares = net.senders.iter().map(|sender| sender.goodput(ms(2_000), ms(10_000)));
        assert!(shares.into_iter().all(|share| share >= Rate::from_mbit_per_sec(1)));
        for flow in 0..2 {
            net.set_app(flow, App::Idle);
        }
        net.link.loss_every = 1;
        net.run(ms(500));
        net.set_app(0, App::Endless);
        net.run(ms(100));
        net.set_app(0, App::Idle);
        net.link.loss_every = 0;
        net.run(ms(20_000));
        assert_eq!(net.senders[0].in_flight, Bytes::ZERO);
    }
}
