//! The way from one end of a link to the other: delay, jitter and late datagrams.

use quipu_base::{Duration, Instant, Random, Seed};

use crate::chance::{Chance, share_of, uniform_up_to};
use crate::correlated::CorrelatedNumbers;
use crate::timeline::Cursor;
use crate::{LinkConfig, Reorder};

/// When what has left a link's near end reaches the far end.
#[derive(Debug)]
pub(crate) struct Propagation {
    /// The delay without jitter, over time.
    delays: Cursor<Duration>,
    /// How much shorter jitter may make it.
    jitter_below: Duration,
    /// Jitter adds zero to this.
    spread: Duration,
    keeps_order: bool,
    /// Last arrival of those that keep their order.
    last_arrival: Instant,
    jitter: Jitter,
    late: Chance,
    late_by: Duration,
}

/// How much of the spread each datagram gets.
#[derive(Debug)]
enum Jitter {
    /// There is nothing to spread.
    Absent,
    /// Each datagram by itself, evenly.
    Uniform(Random),
    /// Near that of the datagram before.
    Correlated(CorrelatedNumbers),
}

impl Jitter {
    fn new(config: &LinkConfig, seed: Seed) -> Self {
        if config.jitter.is_zero() {
            Jitter::Absent
        } else if config.jitter_correlation == 0.0 {
            Jitter::Uniform(seed.stream("link.jitter", 0))
        } else {
            let correlation = config.jitter_correlation;
            Jitter::Correlated(CorrelatedNumbers::new(correlation, seed, "link.jitter"))
        }
    }

    fn draw(&mut self, spread: Duration) -> Duration {
        match self {
            Jitter::Absent => Duration::ZERO,
            Jitter::Uniform(random) => uniform_up_to(spread, random),
            Jitter::Correlated(numbers) => share_of(spread, u64::from(numbers.draw()) << 32),
        }
    }
}

/// Where and how a datagram comes out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    /// It was picked to be late.
    pub(crate) late: bool,
}

impl Propagation {
    pub(crate) fn new(config: &LinkConfig, seed: Seed) -> Self {
        let reorder = config.reorder.unwrap_or(Reorder { share: 0.0, extra: Duration::ZERO });
        Propagation {
            delays: Cursor::new(&config.delay_over_time()),
            jitter_below: config.jitter,
            spread: config.jitter.saturating_mul(2),
            keeps_order: !config.jitter_reorders,
            last_arrival: Instant::ZERO,
            jitter: Jitter::new(config, seed),
            late: Chance::new(reorder.share, seed.stream("link.reorder", 0)),
            late_by: reorder.extra,
        }
    }

    /// How much of the jitter the next datagram gets, and whether it is late: drawn before anything
    /// else is known.
    #[inline]
    pub(crate) fn draw(&mut self) -> (Duration, bool) {
        let spread = self.jitter.draw(self.spread);
        (spread, self.late.draw())
    }

    /// When a datagram arrives that left at `departs_at`, not before the one before it, with what
    /// was drawn for it.
    pub(crate) fn arrival(&mut self, departs_at: Instant, drawn: (Duration, bool)) -> Arrival {
        let (spread, late) = drawn;
        self.delays.seek(departs_at);
        let mut at = departs_at + self.delays.value().saturating_sub(self.jitter_below) + spread;
        if self.keeps_order {
            at = at.max(self.last_arrival);
        }
        if late {
            // The others do not wait for it.
            at += self.late_by;
        } else {
            self.last_arrival = at;
        }
        Arrival { at, late }
    }
}

#[cfg(test)]
mod tests {
    use rand_core::Rng;

    use super::*;

    const DELAY: Duration = Duration::from_millis(10);

    fn nanoseconds(jitter: Duration, correlation: f64, draws: usize) -> Vec<u64> {
        let config = LinkConfig { delay: DELAY, ..LinkConfig::default() };
        let config = config.with_jitter(jitter).with_jitter_correlation(correlation);
        // Else one that would overtake another has that one's delay.
        let config = LinkConfig { jitter_reorders: true, ..config };
        let mut propagation = Propagation::new(&config, Seed::new(5));
        (0..draws)
            .map(|_| {
                let drawn = propagation.draw();
                (propagation.arrival(Instant::ZERO, drawn).at - Instant::ZERO).as_nanos()
            })
            .collect()
    }

    /// Mean, standard deviation, and correlation with the one before.
    fn moments(delays: &[u64]) -> (f64, f64, f64) {
        let count = delays.len() as f64;
        let mean = delays.iter().map(|&delay| delay as f64).sum::<f64>() / count;
        let apart: Vec<f64> = delays.iter().map(|&delay| delay as f64 - mean).collect();
        let variance = apart.iter().map(|apart| apart * apart).sum::<f64>() / count;
        let covariance = apart.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / count;
        (mean, variance.sqrt(), covariance / variance)
    }

    fn assert_near(found: f64, expected: f64, within: f64) {
        assert!((found - expected).abs() < within, "{found}, expected {expected}");
    }

    #[test]
    fn without_correlation_each_delay_is_one_number_of_the_jitters_stream() {
        let mut random = Seed::new(5).stream("link.jitter", 0);
        for delay in nanoseconds(Duration::from_nanos(499_999), 0.0, 1_000) {
            // 999,999 whole nanoseconds from the shortest to the longest delay.
            let spread = (u128::from(random.next_u64()) * 999_999) >> 64;
            assert_eq!(u128::from(delay), 9_500_001 + spread);
        }
    }

    #[test]
    fn correlated_delays_gather_around_the_mean_and_follow_each_other() {
        // Evenly spread over 1.6 ms: a standard deviation of 1.6 ms / sqrt(12) = 461,880 ns.
        let jitter = Duration::from_micros(800);
        for (correlation, narrower) in [(0.0, 1.0), (0.5, (1.0f64 / 3.0).sqrt())] {
            let (mean, deviation, found) = moments(&nanoseconds(jitter, correlation, 200_000));
            assert_near(mean, 10_000_000.0, 8_000.0);
            assert_near(deviation, 461_880.0 * narrower, 4_000.0);
            assert_near(found, correlation, 0.02);
        }
        let delays = nanoseconds(jitter, 0.75, 200_000);
        assert!(delays.iter().all(|delay| (9_200_000..=10_800_000).contains(delay)));
        assert_near(moments(&delays).2, 0.75, 0.02);
    }

    /// Why the correlation is not applied as netem applies it: see
    /// [`LinkConfig::jitter_correlation`].
    #[test]
    fn the_remainder_by_a_width_of_milliseconds_has_no_correlation() {
        let mut numbers = CorrelatedNumbers::new(0.75, Seed::new(5), "link.jitter");
        let delays: Vec<_> = (0..200_000).map(|_| u64::from(numbers.draw() % 1_600_000)).collect();
        let (mean, deviation, correlation) = moments(&delays);
        assert_near(mean, 800_000.0, 5_000.0);
        assert_near(deviation, 461_880.0, 3_000.0);
        assert_near(correlation, 0.0, 0.015);
    }
}
