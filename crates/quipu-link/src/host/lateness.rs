//! How late something happens at a host, by median and 99th percentile.

use quipu_base::{Duration, Random};
use rand_core::Rng;

use crate::chance::share_of;

/// A random time with a median and a 99th percentile that are given.
#[derive(Debug)]
pub(super) struct Lateness {
    /// The shortest; at most the median.
    least: Duration,
    median: Duration,
    /// At least the median.
    p99: Duration,
    random: Random,
}

impl Lateness {
    /// Evenly spread from `least` to `median` for one half of all, from there to `p99` up to the 99th percentile,
    /// and on at that slope. `random` is used for nothing else.
    pub(super) fn new(least: Duration, median: Duration, p99: Duration, random: Random) -> Self {
        Lateness { least, median, p99, random }
    }

    /// The next one, for one number of the random stream.
    pub(super) fn draw(&mut self) -> Duration {
        const MEDIAN: u64 = 1 << 63;
        // So many 49ths of the way from the median to the 99th percentile are a hundredth of all.
        const STEPS: u128 = 100;
        const WAY: u128 = 49;
        let number = self.random.next_u64();
        let Some(above) = number.checked_sub(MEDIAN) else {
            return self.least + share_of(self.median.saturating_sub(self.least), number << 1);
        };
        let slope = u128::from(self.p99.saturating_sub(self.median).as_nanos());
        let more = (slope * u128::from(above) / WAY * STEPS) >> 64;
        self.median + Duration::from_nanos(u64::try_from(more).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::Seed;

    use super::*;

    #[test]
    fn it_has_the_least_the_median_and_the_99th_percentile_that_were_given() {
        for least in [0, 40] {
            let [least, median, p99] = [least, 60, 200].map(Duration::from_micros);
            let random = Seed::new(1).stream("lateness", 0);
            let mut lateness = Lateness::new(least, median, p99, random);
            const DRAWS: usize = 100_000;
            let mut late: Vec<u64> = (0..DRAWS).map(|_| lateness.draw().as_nanos()).collect();
            late.sort_unstable();
            // A quantile of n draws lies within 4 × sqrt(q × (1 - q) / n) of its share: 0.7 % at the median, 0.13 %
            // at the 99th percentile, on slopes of 60 µs per half below it and 140 µs per 49 % above.
            assert!(late[DRAWS / 2].abs_diff(60_000) < 2_000, "{}", late[DRAWS / 2]);
            assert!(late[DRAWS / 100 * 99].abs_diff(200_000) < 500, "{}", late[DRAWS / 100 * 99]);
            // A hundredth more at the same slope: 140 / 49 = 2.86 µs.
            assert!(late[DRAWS - 1] <= 202_858 && late[DRAWS - 1] > 202_000, "{}", late[DRAWS - 1]);
            assert!(late[0] >= least.as_nanos() && late[0] < least.as_nanos() + 100, "{}", late[0]);
        }
    }
}
