//! Hybrid slow start: slow start that ends at once when round-trip times rise.

use quipu_base::{Duration, Instant};

/// Hybrid slow start of one path, as gQUIC has it: of the two signs that the paper knows, a rise of
/// the delay alone.
///
/// Of the first eight samples of a round the least is compared with the least round-trip time of
/// the connection; if it is larger by more than an eighth, slow start is over, and avoidance begins
/// with the window as it is. Unlike [`HyStart`](super::hystart::HyStart) it compares with the least
/// of all rounds, has no conservative phase that could take a false alarm back, and applies to
/// every slow start.
///
/// A round is told by times, as packet numbers do not come here: it lasts until a packet is
/// acknowledged that was sent after the last one before its start.
///
/// Source: Ha and Rhee, "Taming the elephants: new TCP slow start", Computer Networks 55(9), 2011;
/// constants of mp-quic (`congestion/hybrid_slow_start.go`), which are those of Linux'
/// `tcp_cubic.c`; confidence high.
#[derive(Clone, Debug, Default)]
pub(super) struct HybridSlowStart {
    last_sent_at: Option<Instant>,
    /// When the last packet before the present round was sent; `None` between rounds.
    round: Option<Instant>,
    /// Least of the first samples of the round.
    least: Option<Duration>,
    samples: u32,
    found: bool,
}

impl HybridSlowStart {
    /// Samples of a round that count.
    const SAMPLES: u32 = 8;
    const LEAST_RISE: Duration = Duration::from_millis(4);
    const MOST_RISE: Duration = Duration::from_millis(16);
    const RISE_DIVISOR: u64 = 8;
    /// In packets; below it slow start goes on.
    const LOW_WINDOW: u64 = 16;

    /// A packet left.
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.last_sent_at = Some(now);
    }

    /// An acknowledgement of packets of which the newest was sent at `newest_sent_at`, with its
    /// round-trip time and the least one so far, after which the window is `packets`. True if slow
    /// start is over.
    pub(super) fn on_acked(
        &mut self,
        newest_sent_at: Instant,
        sample: Option<Duration>,
        least: Option<Duration>,
        packets: u64,
    ) -> bool {
        let round = match self.round {
            Some(round) => round,
            None => {
                self.least = None;
                self.samples = 0;
                *self.round.insert(self.last_sent_at.unwrap_or(newest_sent_at))
            }
        };
        if let (Some(sample), Some(least)) = (sample, least) {
            self.judge(sample, least);
        }
        if newest_sent_at > round {
            self.round = None;
        }
        self.found && packets >= Self::LOW_WINDOW
    }

    fn judge(&mut self, sample: Duration, least: Duration) {
        self.samples = self.samples.saturating_add(1);
        if self.samples > Self::SAMPLES {
            return;
        }
        let current = self.least.map_or(sample, |current| current.min(sample));
        self.least = Some(current);
        let rise = least.divided_by(Self::RISE_DIVISOR).clamp(Self::LEAST_RISE, Self::MOST_RISE);
        if self.samples == Self::SAMPLES && current > least + rise {
            self.found = true;
        }
    }

    /// Slow start begins anew, or samples until now no longer compare with those to come.
    pub(super) fn restart(&mut self) {
        *self = HybridSlowStart { last_sent_at: self.last_sent_at, ..HybridSlowStart::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_millis(40);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// `samples` acknowledgements with that round-trip time, in one round. Whether slow start was over.
    fn round(hybrid: &mut HybridSlowStart, ms: u64, samples: u32, rtt: u64, packets: u64) -> bool {
        hybrid.on_sent(at(ms));
        let rtt = Some(Duration::from_millis(rtt));
        let mut over = false;
        for _ in 0..samples {
            over |= hybrid.on_acked(at(ms), rtt, Some(LEAST), packets);
        }
        // The next round's first packet ends this one.
        hybrid.on_sent(at(ms + 1));
        over | hybrid.on_acked(at(ms + 1), None, Some(LEAST), packets)
    }

    #[test]
    fn a_rise_by_more_than_an_eighth_of_the_least_ends_slow_start_at_once() {
        // An eighth of 40 ms is 5 ms.
        assert!(!round(&mut HybridSlowStart::default(), 0, 8, 45, 32));
        assert!(round(&mut HybridSlowStart::default(), 0, 8, 46, 32));
    }

    #[test]
    fn the_threshold_lies_between_4_and_16_ms() {
        for (least, stays, leaves) in [(8, 12, 13), (400, 416, 417)] {
            for (rtt, over) in [(stays, false), (leaves, true)] {
                let mut hybrid = HybridSlowStart::default();
                let seen = (0..8).any(|_| {
                    let [rtt, least] = [rtt, least].map(|ms| Some(Duration::from_millis(ms)));
                    hybrid.on_acked(at(0), rtt, least, 32)
                });
                assert_eq!(seen, over, "{rtt} ms over {least} ms");
            }
        }
    }

    #[test]
    fn seven_samples_show_nothing_and_what_follows_the_eighth_neither() {
        assert!(!round(&mut HybridSlowStart::default(), 0, 7, 90, 32));
        let mut hybrid = HybridSlowStart::default();
        hybrid.on_sent(at(0));
        let [low, high] = [40, 90].map(|ms| Some(Duration::from_millis(ms)));
        for index in 0..30 {
            let sample = if index < 8 { low } else { high };
            assert!(!hybrid.on_acked(at(0), sample, Some(LEAST), 32), "{index}");
        }
    }

    #[test]
    fn each_round_is_judged_by_its_own_samples() {
        let mut hybrid = HybridSlowStart::default();
        assert!(!round(&mut hybrid, 0, 8, 40, 32));
        assert!(!round(&mut hybrid, 100, 8, 44, 32));
        assert!(round(&mut hybrid, 200, 8, 60, 32));
    }

    #[test]
    fn a_small_window_grows_on_and_what_was_found_holds() {
        let mut hybrid = HybridSlowStart::default();
        assert!(!round(&mut hybrid, 0, 8, 90, 15));
        assert!(hybrid.on_acked(at(1), None, Some(LEAST), 16));
    }

    #[test]
    fn a_restart_forgets_what_was_found() {
        let mut hybrid = HybridSlowStart::default();
        assert!(round(&mut hybrid, 0, 8, 90, 32));
        hybrid.restart();
        assert!(!round(&mut hybrid, 100, 7, 90, 32));
    }

    #[test]
    fn absurd_samples_end_in_no_overflow() {
        let mut hybrid = HybridSlowStart::default();
        for sample in [0, u64::MAX, 0, u64::MAX] {
            let sample = Some(Duration::from_nanos(sample));
            hybrid.on_acked(at(0), sample, sample, u64::MAX);
        }
    }
}
