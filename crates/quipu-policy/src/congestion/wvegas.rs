//! Weighted Vegas.

use quipu_base::{Bytes, Duration, Instant};

use super::reno::RenoWindow;
use super::slow_start::SlowStartExit;
use super::{AckedInfo, Controller, LostInfo, PathChange, Peers, Published, SentInfo};

/// Packets that the paths together may keep in queues.
const TOTAL_ALPHA: f64 = 10.0;
/// Least number of packets that one path may keep in queues, and the number it starts with.
const LEAST_ALPHA: f64 = 2.0;
/// Packets in queues that end slow start.
const GAMMA: f64 = 1.0;

/// `wvegas`: each path keeps a few packets in the queues on its way, in proportion to its share of
/// the connection's rate; so traffic moves to where queues are short, before there is loss.
///
/// Once per round trip, with `rtt` the mean of its samples (more than two, else the window grows
/// as Reno's in that round) and `base` the least sample seen: `diff = cwnd·(rtt − base)/rtt` packets are queued.
/// In slow start: above γ = 1, `cwnd = min(cwnd, cwnd·base/rtt + 1)` and avoidance begins. In
/// avoidance: where `diff ≥ α`, `α = max(2, 10·x_i/Σ x)` with `x = cwnd/rtt`; then the window grows
/// by a packet below α and shrinks by one above. If `rtt − base` is twice the least one since the
/// last time, `cwnd = cwnd·base/(2·rtt)` drains the queue, and slow start leads back. A congestion event halves, as in
/// [`NewReno`](super::NewReno).
///
/// Ours: `x` of the others is from what they publish, where Linux has the rate at which each last
/// looked at its α; an empty queue is not drained, which Linux does; a changed return route voids
/// `base`, as sending after silence does there and here.
///
/// Source: Cao, Xu, Fu, "Delay-based congestion control for multipath TCP", ICNP 2012; Linux
/// `mptcp_wvegas.c`; confidence high.
#[derive(Clone, Debug)]
pub(crate) struct Wvegas {
    window: RenoWindow,
    base: Option<Duration>,
    alpha: f64,
    /// Least queueing delay above zero since the queue was drained; zero if there was none.
    queue_delay: Duration,
    round: Round,
}

/// The samples of one round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// It ends with the acknowledgement of a packet sent after this.
    began_at: Option<Instant>,
    sum: Duration,
    samples: u32,
}

impl Round {
    fn mean(&self) -> Duration {
        self.sum.divided_by(u64::from(self.samples.max(1)))
    }
}

impl Wvegas {
    pub(crate) fn new(initial_packets: u32, datagram_size: Bytes) -> Self {
        Wvegas {
            window: RenoWindow::new(initial_packets, datagram_size, SlowStartExit::Loss),
            base: None,
            alpha: LEAST_ALPHA,
            queue_delay: Duration::ZERO,
            round: Round::default(),
        }
    }

    /// Starts anew after a congestion event.
    fn restart(&mut self) {
        self.alpha = LEAST_ALPHA;
        self.queue_delay = Duration::ZERO;
        self.round = Round::default();
    }

    /// The share of the path in the connection's rate.
    fn weight(&self, mean: Duration, peers: &Peers<'_>) -> f64 {
        let rate = |cwnd: Bytes, rtt: Duration| cwnd.0.max(1) as f64 / rtt.as_nanos().max(1) as f64;
        let own = rate(self.window.cwnd(), mean);
        let others = peers.all.iter().filter(|(key, _)| *key != peers.own);
        let others = others.filter_map(|(_, other)| Some(rate(other.cwnd, other.srtt?)));
        own / (own + others.sum::<f64>())
    }

    /// A round ended whose samples had this mean.
    fn adjust(&mut self, mean: Duration, base: Duration, peers: &Peers<'_>) {
        let packet = self.window.datagram_size();
        let queueing = mean.saturating_sub(base);
        let queued = queueing.as_nanos() as f64 / mean.as_nanos().max(1) as f64;
        let cwnd = self.window.cwnd().0 as f64;
        let diff = cwnd / packet.0.max(1) as f64 * queued;
        if self.window.in_slow_start() {
            if diff > GAMMA {
                let target = Bytes((cwnd * (1.0 - queued)) as u64) + packet;
                self.window.shrink_to(target);
            }
            return;
        }
        if diff >= self.alpha {
            self.alpha = f64::max(LEAST_ALPHA, self.weight(mean, peers) * TOTAL_ALPHA);
        }
        if diff > self.alpha {
            self.window.shrink_to(self.window.cwnd().saturating_sub(packet));
        } else if diff < self.alpha {
            self.window.grow_by(packet);
        }
        if queueing.is_zero() {
            return;
        }
        if self.queue_delay.is_zero() || self.queue_delay > queueing {
            self.queue_delay = queueing;
        }
        if queueing >= self.queue_delay.saturating_mul(2) {
            let kept = self.window.cwnd().0 as f64 * (1.0 - queued) / 2.0;
            self.window.drain_to(Bytes(kept as u64));
            self.queue_delay = Duration::ZERO;
        }
    }
}

impl Controller for Wvegas {
    fn on_sent(&mut self, sent: &SentInfo, _peers: &Peers<'_>) {
        if sent.in_flight <= sent.bytes {
            // After silence the way may be another, and its queues are empty of ours.
            self.base = None;
            self.restart();
        }
    }

    fn on_acked(&mut self, acked: &AckedInfo<'_>, peers: &Peers<'_>) {
        // In avoidance the window moves once per round trip.
        self.window.on_acked(acked, |_, _| {});
        let Some(newest) = acked.packets.last() else { return };
        if let Some(sample) = acked.latest_rtt {
            self.base = Some(self.base.map_or(sample, |base| base.min(sample)));
            self.round.sum += sample;
            self.round.samples = self.round.samples.saturating_add(1);
        }
        if self.window.in_recovery(newest.sent_at) {
            self.round = Round::default();
            return;
        }
        let began_at = *self.round.began_at.get_or_insert(acked.now);
        if newest.sent_at <= began_at {
            return;
        }
        let round = self.round;
        self.round = Round { began_at: Some(acked.now), ..Round::default() };
        if acked.limited {
            return;
        }
        match self.base {
            Some(base) if round.samples > 2 => self.adjust(round.mean(), base, peers),
            _ if self.window.in_slow_start() => {}
            _ => self.window.grow_by(self.window.datagram_size()),
        }
    }

    fn on_lost(&mut self, lost: &LostInfo<'_>, _peers: &Peers<'_>) {
        let kept = Bytes(self.window.cwnd().0 / 2);
        if self.window.on_lost(lost, kept) {
            self.restart();
        }
    }

    fn on_change(&mut self, change: PathChange, _peers: &Peers<'_>) {
        let kept = Bytes(self.window.cwnd().0 / 2);
        if self.window.on_change(change, kept) {
            self.restart();
        }
        if change == PathChange::ReturnRoute {
            self.base = None;
            self.restart();
        }
    }

    fn published(&self) -> Published {
        self.window.published()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::AckedPacket;
    use crate::key::PathKey;
    use quipu_base::PathId;

    const SIZE: Bytes = Bytes(1000);

    fn key(slot: u8) -> PathKey {
        PathKey { slot, id: PathId(u32::from(slot)) }
    }

    /// A controller in avoidance, and the time.
    struct Path {
        controller: Wvegas,
        now: u64,
        others: Vec<(PathKey, Published)>,
    }

    impl Path {
        /// Base round-trip time 100 ms.
        fn new(packets: u32) -> Self {
            let mut controller = Wvegas::new(packets, SIZE);
            controller.base = Some(Duration::from_millis(100));
            controller.window.shrink_to(SIZE.saturating_mul(u64::from(packets)));
            Path { controller, now: 1000, others: Vec::new() }
        }

        fn ack(&mut self, age: u64, ms: u64, limited: bool) {
            let sent_at = Instant::from_nanos((self.now - age) * 1_000_000);
            let rtt = Some(Duration::from_millis(ms));
            let info = AckedInfo {
                rate: None,
                delivered: Bytes(0),
                lost: Bytes(0),
                now: Instant::from_nanos(self.now * 1_000_000),
                packets: &[AckedPacket { sent_at, bytes: SIZE }],
                prior_in_flight: SIZE,
                in_flight: SIZE,
                limited,
                srtt: rtt,
                min_rtt: rtt,
                latest_rtt: rtt,
            };
            self.controller.on_acked(&info, &Peers { own: key(0), all: &self.others });
        }

        /// Rounds of three samples; the window in packets after.
        fn rounds(&mut self, count: usize, ms: u64) -> f64 {
            for _ in 0..count {
                self.ack(500, ms, false);
                self.ack(500, ms, false);
                self.now += 10;
                self.ack(5, ms, false);
            }
            self.controller.published().cwnd.0 as f64 / 1000.0
        }
    }

    #[test]
    fn silence_voids_the_least_round_trip_time() {
        let mut path = Path::new(20);
        path.rounds(3, 100);
        assert_eq!(path.controller.base, Some(Duration::from_millis(100)));
        let now = Instant::from_nanos(path.now * 1_000_000);
        let sent = SentInfo { now, bytes: SIZE, in_flight: SIZE.saturating_mul(2), limited: false };
        path.controller.on_sent(&sent, &Peers { own: key(0), all: &[] });
        assert_eq!(path.controller.base, Some(Duration::from_millis(100)));
        let sent = SentInfo { in_flight: SIZE, ..sent };
        path.controller.on_sent(&sent, &Peers { own: key(0), all: &[] });
        assert_eq!(path.controller.base, None);
    }

    #[test]
    fn the_window_grows_by_a_packet_per_round_below_alpha_and_shrinks_above() {
        // 20·10/110 = 1.8 packets queued, then more than alpha of 2; alone a path has alpha of 10.
        assert_eq!(Path::new(20).rounds(1, 110), 21.0);
        assert_eq!(Path::new(200).rounds(1, 110), 199.0);
        // 100·10/110 = 9.1, of an alpha of 10.
        assert_eq!(Path::new(100).rounds(1, 110), 101.0);
    }

    #[test]
    fn a_path_with_little_of_the_rate_may_queue_little() {
        let mut path = Path::new(100);
        let cwnd = SIZE.saturating_mul(300);
        let srtt = Some(Duration::from_millis(110));
        path.others.push((key(1), Published { cwnd, srtt, ..Published::default() }));
        // A quarter of the rate: alpha is 2.5.
        assert_eq!(path.rounds(1, 110), 99.0);
        assert_eq!(path.controller.alpha, 2.5);
    }

    #[test]
    fn slow_start_ends_when_a_packet_is_queued() {
        let mut controller = Wvegas::new(20, SIZE);
        controller.base = Some(Duration::from_millis(100));
        let mut path = Path { controller, now: 1000, others: Vec::new() };
        // 23 packets in the third acknowledgement: 23·100/125 + 1.
        assert!((path.rounds(1, 125) - 19.4).abs() < 1e-9);
        assert_eq!(path.controller.published().state, "congestion avoidance");
    }

    #[test]
    fn a_queue_of_twice_the_least_delay_is_drained() {
        let mut path = Path::new(20);
        assert_eq!(path.rounds(1, 110), 21.0);
        // 21·20/120 = 3.5 < alpha of 10: 22 packets, of which 100/240 stay.
        assert!((path.rounds(1, 120) - 22.0 * 100.0 / 240.0).abs() < 1e-2);
        assert_eq!(path.controller.published().state, "slow start");
    }

    #[test]
    fn few_samples_grow_as_reno_and_a_limited_path_stays() {
        let mut path = Path::new(20);
        path.ack(500, 110, false);
        path.now += 10;
        path.ack(5, 110, false);
        assert_eq!(path.controller.published().cwnd, Bytes(21_000));
        for _ in 0..9 {
            path.now += 10;
            path.ack(5, 110, true);
        }
        assert_eq!(path.controller.published().cwnd, Bytes(21_000));
    }
}
