//! Cross traffic: datagrams that come at their own pace, whatever becomes of them.

use quipu_base::{Bytes, Duration, Instant, Random, Rate, Seed};
use quipu_sim::{Envelope, Outgoing};
use rand::Rng;

use quipu_scenario::{CrossKind, CrossSpec};

/// A node that sends, and listens to nothing.
pub(super) struct CrossSender {
    route: Envelope,
    payload: usize,
    pace: Pace,
    /// When the next datagram is due.
    next_at: Option<Instant>,
    stop_at: Instant,
    due: u32,
    sent: Bytes,
}

/// When datagrams are due.
struct Pace {
    kind: CrossKind,
    rate: Rate,
    /// Bytes of a datagram on links.
    bytes: Bytes,
    on: Duration,
    off: Duration,
    /// Where the present row of datagrams at constant distances began, and how many it has had.
    began_at: Instant,
    count: u64,
    /// When silence follows: only of `on-off`.
    silent_at: Instant,
    random: Random,
}

impl CrossSender {
    /// The sender of that description with `overhead` bytes of headers per datagram on links.
    pub(super) fn new(
        spec: &CrossSpec,
        overhead: Bytes,
        route: Envelope,
        seed: Seed,
        index: usize,
    ) -> CrossSender {
        let start = Instant::ZERO + spec.start;
        let mut pace = Pace {
            kind: spec.kind,
            rate: spec.rate,
            bytes: spec.packet + overhead,
            on: spec.on,
            off: spec.off,
            began_at: start,
            count: 0,
            silent_at: Instant::FAR_FUTURE,
            random: seed.stream("cross", index as u64),
        };
        let first_at = pace.first(start);
        let mut sender = CrossSender {
            route,
            // At most 65,527, as the scenario was checked.
            payload: usize::try_from(spec.packet.0).unwrap_or(usize::MAX),
            pace,
            next_at: Some(first_at),
            stop_at: spec.stop.map_or(Instant::FAR_FUTURE, |stop| Instant::ZERO + stop),
            due: 0,
            sent: Bytes::ZERO,
        };
        sender.end_at_stop();
        sender
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some(at) = self.next_at.filter(|at| *at <= now) {
            self.due += 1;
            self.next_at = Some(self.pace.after(at));
            self.end_at_stop();
        }
    }

    pub(super) fn poll_transmit(&mut self, out: &mut Outgoing<'_>) {
        for _ in 0..std::mem::take(&mut self.due) {
            // A datagram that is too long for the world is dropped by it.
            if let Some(place) = out.buffer().get_mut(..self.payload) {
                place.fill(0);
            }
            out.send(&self.route, self.payload);
            self.sent += self.pace.bytes;
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.next_at
    }

    /// Bytes sent so far, as links count them.
    pub(super) fn sent(&self) -> Bytes {
        self.sent
    }

    fn end_at_stop(&mut self) {
        self.next_at = self.next_at.filter(|at| *at < self.stop_at);
    }
}

impl Pace {
    /// When the first datagram is due.
    fn first(&mut self, start: Instant) -> Instant {
        match self.kind {
            CrossKind::Constant => start,
            CrossKind::Poisson => start + self.exponential(self.rate.time_for(self.bytes)),
            CrossKind::OnOff => {
                self.silent_at = start + self.exponential(self.on);
                start
            }
        }
    }

    /// When the datagram after the one at `at` is due.
    fn after(&mut self, at: Instant) -> Instant {
        match self.kind {
            CrossKind::Poisson => at + self.exponential(self.rate.time_for(self.bytes)),
            CrossKind::Constant => self.next_in_row(),
            CrossKind::OnOff => {
                let mut next = self.next_in_row();
                // A time to send may be over before its first datagram, but not one without length.
                while next >= self.silent_at && self.silent_at < Instant::FAR_FUTURE {
                    next = self.silent_at + self.exponential(self.off);
                    (self.began_at, self.count) = (next, 0);
                    self.silent_at = next + self.exponential(self.on);
                }
                next
            }
        }
    }

    /// Counted from the first of the row, so that rounding does not add up.
    fn next_in_row(&mut self) -> Instant {
        self.count = self.count.saturating_add(1);
        self.began_at + self.rate.time_for(self.bytes.saturating_mul(self.count))
    }

    fn exponential(&mut self, mean: Duration) -> Duration {
        // Above 0 and not above 1.
        let uniform = ((self.random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        // `as` rounds down and saturates.
        Duration::from_nanos((-libm::log(uniform) * mean.as_nanos() as f64) as u64)
    }
}

/// A node that takes what comes.
#[derive(Default)]
pub(super) struct CrossSink {
    overhead: Bytes,
    received: Bytes,
}

impl CrossSink {
    /// A sink that counts `overhead` bytes of headers with each datagram.
    pub(super) fn new(overhead: Bytes) -> CrossSink {
        CrossSink { overhead, received: Bytes::ZERO }
    }

    pub(super) fn handle_datagram(&mut self, payload: &[u8]) {
        self.received += Bytes(payload.len() as u64) + self.overhead;
    }

    /// Bytes received so far, as links count them.
    pub(super) fn received(&self) -> Bytes {
        self.received
    }
}

#[cfg(test)]
mod tests {
    use quipu_sim::address;

    use super::*;

    fn sender(change: impl FnOnce(&mut CrossSpec)) -> CrossSender {
        let text = "pages = []\nflows = [{ name = \"a\" }]\n\
                    cross = [{ name = \"c\", rate = \"1mbit\", packet = \"1222B\" }]";
        let mut spec = quipu_scenario::Scenario::from_toml(text, "a.toml").unwrap().cross.remove(0);
        change(&mut spec);
        let (local, remote) = (address(1, 0, 1), address(2, 0, 1));
        CrossSender::new(&spec, Bytes(28), Envelope { local, remote, ecn: 0 }, Seed::new(3), 0)
    }

    /// The instants at which datagrams are due before `until`, in milliseconds.
    fn due(sender: &mut CrossSender, until: u64) -> Vec<f64> {
        let mut times = Vec::new();
        let end = Instant::ZERO + Duration::from_secs(until);
        while let Some(at) = sender.poll_timeout().filter(|at| *at < end) {
            let before = sender.due;
            sender.handle_timeout(at);
            times.extend((before..sender.due).map(|_| at.as_nanos() as f64 / 1e6));
        }
        times
    }

    #[test]
    fn a_constant_sender_keeps_its_rate_from_start_to_stop() {
        let mut sender = sender(|spec| {
            spec.start = Duration::from_secs(1);
            spec.stop = Some(Duration::from_secs(3));
        });
        let times = due(&mut sender, 10);
        // 1,250 bytes at 1 Mb/s: one in 10 ms.
        assert_eq!(times.len(), 200);
        assert_eq!((times[0], times[199]), (1_000.0, 2_990.0));
        assert_eq!(sender.poll_timeout(), None);
    }

    #[test]
    fn a_poisson_sender_has_the_rate_and_the_spread_of_one() {
        let times = due(&mut sender(|spec| spec.kind = CrossKind::Poisson), 1_000);
        // 100,000 expected, standard deviation 316.
        assert!((98_500..=101_500).contains(&times.len()), "{}", times.len());
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        let longer = gaps.filter(|gap| *gap > 10.0).count() as f64 / times.len() as f64;
        assert!((longer - 0.3679).abs() < 0.01, "a share of 1/e is longer than the mean: {longer}");
    }

    #[test]
    fn an_on_off_sender_sends_its_share_of_the_time() {
        let times = due(
            &mut sender(|spec| {
                spec.kind = CrossKind::OnOff;
                (spec.on, spec.off) = (Duration::from_millis(200), Duration::from_millis(600));
            }),
            2_000,
        );
        // A quarter of the time at 100 datagrams a second, and half a datagram more in each of the
        // 2,500 times: each begins with one.
        let share = times.len() as f64 / 200_000.0;
        assert!((0.24..0.28).contains(&share), "{share}");
        let silent = times.windows(2).filter(|pair| pair[1] - pair[0] > 10.001).count();
        assert!((2_200..=2_800).contains(&silent), "{silent} times of silence");
    }
}
