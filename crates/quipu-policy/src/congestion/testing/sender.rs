//! A sender of the bottleneck for tests: counts, samples and losses as the engine tells them.

use std::collections::VecDeque;

use quipu_base::{Bytes, Duration, Instant, PacketNumber, PathId, Rate};

use super::{ACK_DELAY, SIZE};
use crate::congestion::{
    AckedInfo, AckedPacket, Controller, LostInfo, LostPacket, PathChange, Peers, Published,
    RateSample, SentInfo,
};
use crate::key::PathKey;

/// What there is to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::congestion) enum App {
    /// Always more.
    Endless,
    /// Nothing.
    Idle,
    /// A packet after another at that rate; what cannot leave at once waits.
    Paced(Rate),
}

/// How a sender stood after an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(in crate::congestion) struct Seen {
    pub(in crate::congestion) at: Instant,
    pub(in crate::congestion) published: Published,
    pub(in crate::congestion) in_flight: Bytes,
    pub(in crate::congestion) rtt: Duration,
    pub(in crate::congestion) delivered: Bytes,
    pub(in crate::congestion) lost: Bytes,
    pub(in crate::congestion) rate: Option<RateSample>,
}

/// A packet in flight, with the counts when it left.
#[derive(Clone, Copy, Debug)]
struct Packet {
    pn: u64,
    sent_at: Instant,
    delivered: Bytes,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: Bytes,
    in_flight: Bytes,
    limited: bool,
}

/// One sender with its controller.
pub(in crate::congestion) struct Sender {
    pub(in crate::congestion) controller: Box<dyn Controller>,
    /// Every acknowledgement.
    pub(in crate::congestion) seen: Vec<Seen>,
    /// Every state with the time it was first published at.
    pub(in crate::congestion) states: Vec<(Instant, &'static str)>,
    pub(in crate::congestion) in_flight: Bytes,
    pub(in crate::congestion) delivered: Bytes,
    pub(in crate::congestion) lost: Bytes,
    /// When it is to be asked again.
    pub(super) wake_at: Option<Instant>,
    /// True while an event for its probe timeout is to come.
    pub(super) has_timer: bool,
    /// When it last heard of the receiver, or began to send.
    pub(super) heard_at: Instant,
    flow: usize,
    app: App,
    /// With a paced application, what is written and not yet sent, and when that was counted.
    written: Bytes,
    written_at: Instant,
    sent: VecDeque<Packet>,
    next_pn: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    limited_until: Option<Bytes>,
    resting: bool,
    release_at: Instant,
    srtt: Option<Duration>,
    min_rtt: Option<Duration>,
}

/// Whether a sender may send.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    Now,
    At(Instant),
    /// After an acknowledgement or with other work.
    Later,
}

fn peers(flow: usize) -> Peers<'static> {
    Peers { own: PathKey { slot: flow as u8, id: PathId(flow as u32) }, all: &[] }
}

impl Sender {
    pub(super) fn new(
        controller: Box<dyn Controller>,
        app: App,
        now: Instant,
        flow: usize,
    ) -> Self {
        let state = controller.published().state;
        Sender {
            controller,
            seen: Vec::new(),
            states: vec![(now, state)],
            in_flight: Bytes::ZERO,
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            wake_at: None,
            has_timer: false,
            heard_at: now,
            flow,
            app,
            written: Bytes::ZERO,
            written_at: now,
            sent: VecDeque::new(),
            next_pn: 0,
            delivered_at: now,
            first_sent_at: now,
            limited_until: None,
            resting: false,
            release_at: now,
            srtt: None,
            min_rtt: None,
        }
    }

    /// The last acknowledgement seen.
    pub(in crate::congestion) fn last(&self) -> &Seen {
        self.seen.last().unwrap()
    }

    /// Acknowledgements from one time up to another.
    pub(in crate::congestion) fn between(
        &self,
        from: Duration,
        to: Duration,
    ) -> impl Iterator<Item = &Seen> {
        let (from, to) = (Instant::ZERO + from, Instant::ZERO + to);
        self.seen.iter().filter(move |seen| from <= seen.at && seen.at < to)
    }

    /// What was delivered from one time up to another, a second.
    pub(in crate::congestion) fn goodput(&self, from: Duration, to: Duration) -> Rate {
        let bytes = |mut part: Vec<&Seen>| {
            let last = part.pop().map_or(Bytes::ZERO, |seen| seen.delivered);
            last - part.first().map_or(Bytes::ZERO, |seen| seen.delivered)
        };
        let delivered = bytes(self.between(from, to).collect());
        Rate::from_bytes_over(delivered, to.saturating_sub(from)).unwrap()
    }

    pub(super) fn set_app(&mut self, now: Instant, app: App) {
        (self.app, self.written, self.written_at) = (app, Bytes::ZERO, now);
    }

    /// The controller hears of something else.
    pub(super) fn change(&mut self, now: Instant, change: PathChange) {
        self.controller.on_change(change, &peers(self.flow));
        self.note_state(now);
    }

    fn note_state(&mut self, now: Instant) {
        let state = self.controller.published().state;
        if self.states.last().is_none_or(|&(_, last)| last != state) {
            self.states.push((now, state));
        }
    }

    /// Whether a packet goes now. If so it is taken from what there is to send.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        if self.is_open(now) {
            match self.take_written(now) {
                Ok(()) => return Next::Now,
                Err(ready_at) => {
                    self.rest(now);
                    return ready_at.map_or(Next::Later, Next::At);
                }
            }
        }
        if self.release_at > now { Next::At(self.release_at) } else { Next::Later }
    }

    fn is_open(&self, now: Instant) -> bool {
        let cwnd = self.controller.published().cwnd;
        self.release_at <= now && self.in_flight + SIZE <= cwnd
    }

    /// Takes a packet from what there is to send, or tells when there will be one.
    fn take_written(&mut self, now: Instant) -> Result<(), Option<Instant>> {
        match self.app {
            App::Endless => Ok(()),
            App::Idle => Err(None),
            App::Paced(rate) => {
                let earned = rate.bytes_in(now - self.written_at);
                if !earned.is_zero() {
                    self.written_at = now;
                }
                self.written += earned;
                if self.written >= SIZE {
                    self.written -= SIZE;
                    Ok(())
                } else {
                    Err(Some(now + rate.time_for(SIZE - self.written)))
                }
            }
        }
    }

    /// The sender has window and pace left, and nothing to send.
    fn rest(&mut self, now: Instant) {
        self.limited_until = Some(self.delivered + self.in_flight);
        if !self.resting {
            self.resting = true;
            self.change(now, PathChange::ApplicationLimited);
        }
    }

    /// When it no longer waits for an acknowledgement: not before the receiver stops waiting for
    /// more packets (RFC 9002, section 6.2.1).
    pub(super) fn timeout_at(&self) -> Instant {
        let rtt = self.srtt.unwrap_or(Duration::from_millis(333));
        self.heard_at + rtt.saturating_mul(3) + ACK_DELAY
    }

    /// Sends a packet, whether it may or not. Its number.
    pub(super) fn send(&mut self, now: Instant) -> u64 {
        let pn = self.next_pn;
        self.next_pn += 1;
        if self.in_flight.is_zero() {
            (self.first_sent_at, self.delivered_at, self.heard_at) = (now, now, now);
        }
        self.in_flight += SIZE;
        let limited = self.limited_until.is_some();
        self.sent.push_back(Packet {
            pn,
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            in_flight: self.in_flight,
            limited,
        });
        let info = SentInfo { now, bytes: SIZE, in_flight: self.in_flight, limited };
        self.controller.on_sent(&info, &peers(self.flow));
        self.note_state(now);
        if let Some(pace) = self.controller.published().pacing_rate {
            // A pace of nearly nothing must not end the run.
            let gap = pace.time_for(SIZE).min(Duration::from_secs(3_600));
            self.release_at = self.release_at.max(now) + gap;
        }
        if !self.is_open(now) {
            self.resting = false;
        }
        pn
    }

    /// An acknowledgement came of packets with these numbers.
    pub(super) fn on_ack(&mut self, now: Instant, pns: &[u64]) {
        self.heard_at = now;
        let prior_in_flight = self.in_flight;
        let mut acked = Vec::new();
        for &pn in pns {
            // Declared lost before, and here after all.
            let Ok(index) = self.sent.binary_search_by_key(&pn, |packet| packet.pn) else {
                self.delivered += SIZE;
                continue;
            };
            acked.extend(self.sent.remove(index));
        }
        let Some(&newest) = acked.last() else { return };
        let rtt = now - newest.sent_at;
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        self.srtt =
            Some(self.srtt.map_or(rtt, |srtt| {
                Duration::from_nanos((srtt.as_nanos() * 7 + rtt.as_nanos()) / 8)
            }));
        let bytes = SIZE.saturating_mul(acked.len() as u64);
        self.in_flight -= bytes;
        self.delivered += bytes;
        self.delivered_at = now;
        if self.limited_until.is_some_and(|end| self.delivered > end) {
            self.limited_until = None;
        }
        let lost = self.detect_lost(now, newest.pn, rtt);
        let rate = self.sample(now, &newest);
        let packets: Vec<_> = acked
            .iter()
            .map(|packet| AckedPacket { sent_at: packet.sent_at, bytes: SIZE })
            .collect();
        let cwnd = self.controller.published().cwnd;
        let info = AckedInfo {
            now,
            packets: &packets,
            prior_in_flight,
            in_flight: self.in_flight,
            limited: self.resting && prior_in_flight + SIZE < cwnd,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            latest_rtt: Some(rtt),
            rate,
            delivered: self.delivered,
            lost: self.lost,
        };
        self.controller.on_acked(&info, &peers(self.flow));
        self.tell_lost(now, &lost);
        self.note_state(now);
        self.seen.push(Seen {
            at: now,
            published: self.controller.published(),
            in_flight: self.in_flight,
            rtt,
            delivered: self.delivered,
            lost: self.lost,
            rate,
        });
    }

    /// The delivery rate that the acknowledgement of `newest` shows.
    fn sample(&mut self, now: Instant, newest: &Packet) -> Option<RateSample> {
        self.first_sent_at = newest.sent_at;
        let sending = newest.sent_at - newest.first_sent_at;
        let interval = sending.max(now - newest.delivered_at);
        if interval.is_zero() || self.min_rtt.is_some_and(|least| interval < least) {
            return None;
        }
        let delivered = self.delivered - newest.delivered;
        Some(RateSample {
            rate: Rate::from_bytes_over(delivered, interval)?,
            delivered,
            interval,
            prior_delivered: newest.delivered,
            in_flight_at_send: newest.in_flight,
            lost: self.lost - newest.lost,
            limited: newest.limited,
        })
    }

    /// Takes out what is lost by the thresholds of RFC 9002.
    fn detect_lost(&mut self, now: Instant, acked: u64, rtt: Duration) -> Vec<Packet> {
        let delay = self.srtt.unwrap_or(rtt).max(rtt).scaled(9, 8);
        let mut lost = Vec::new();
        while let Some(&packet) = self.sent.front()
            && packet.pn < acked
            && (packet.pn + 3 <= acked || packet.sent_at + delay <= now)
        {
            self.sent.pop_front();
            lost.push(packet);
        }
        let bytes = SIZE.saturating_mul(lost.len() as u64);
        self.in_flight -= bytes;
        self.lost += bytes;
        lost
    }

    fn tell_lost(&mut self, now: Instant, lost: &[Packet]) {
        let Some(newest) = lost.last() else { return };
        let packets: Vec<_> = lost
            .iter()
            .map(|packet| LostPacket {
                pn: PacketNumber(packet.pn),
                sent_at: packet.sent_at,
                bytes: SIZE,
                in_flight_at_send: packet.in_flight,
                lost_at_send: packet.lost,
                limited: packet.limited,
            })
            .collect();
        let info = LostInfo {
            now,
            packets: &packets,
            bytes: SIZE.saturating_mul(lost.len() as u64),
            lost: self.lost,
            newest_sent_at: newest.sent_at,
            in_flight: self.in_flight,
            persistent: false,
        };
        self.controller.on_lost(&info, &peers(self.flow));
    }
}
