//! netem's correlated random numbers.

use quipu_base::{Random, Seed};
use rand_core::Rng;

/// Random numbers of 32 bits, each a weighted mean of a fresh one and the one before.
///
/// With r of 2^32 parts as the correlation, in integers as in Linux' netem (`get_crandom` in
/// <https://github.com/torvalds/linux/blob/master/net/sched/sch_netem.c>):
///
/// ```text
/// number = (fresh * (2^32 - r) + number before * r) / 2^32, rounded down
/// ```
///
/// Two in a row have the correlation r / 2^32, but they are not evenly spread: their standard
/// deviation is sqrt((1 - c) / (1 + c)) of that of the fresh ones, and numbers near either end are
/// far rarer than among those.
#[derive(Debug)]
pub(crate) struct CorrelatedNumbers {
    /// Of 2^32 parts, those that the number before has.
    kept: u64,
    last: u32,
    random: Random,
}

impl CorrelatedNumbers {
    /// Numbers with `correlation`, 0 to 1, from the streams of that `name`: the first for the
    /// fresh numbers, the second for the one before the first.
    pub(crate) fn new(correlation: f64, seed: Seed, name: &str) -> Self {
        let last = upper_half(&mut seed.stream(name, 1));
        CorrelatedNumbers { kept: parts(correlation), last, random: seed.stream(name, 0) }
    }

    /// The next number.
    pub(crate) fn draw(&mut self) -> u32 {
        let fresh = upper_half(&mut self.random);
        self.mix(fresh)
    }

    fn mix(&mut self, fresh: u32) -> u32 {
        // The weights add up to 2^32, so the sum is at most (2^32 - 1) * 2^32.
        let sum = u64::from(fresh) * ((1 << 32) - self.kept) + u64::from(self.last) * self.kept;
        self.last = (sum >> 32) as u32;
        self.last
    }
}

/// A share of 0 to 1 as netem and its command line keep it: of 2^32 - 1, to the nearest.
pub(crate) fn of_u32_max(share: f64) -> u32 {
    // `as` rounds down, and saturates.
    (share * f64::from(u32::MAX) + 0.5) as u32
}

/// A correlation of 0 to 1 as parts of 2^32: netem counts one more than it keeps.
fn parts(correlation: f64) -> u64 {
    match of_u32_max(correlation) {
        0 => 0,
        kept => u64::from(kept) + 1,
    }
}

fn upper_half(random: &mut Random) -> u32 {
    (random.next_u64() >> 32) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mixed(correlation: f64, last: u32, fresh: &[u32]) -> Vec<u32> {
        let mut numbers = CorrelatedNumbers::new(correlation, Seed::new(1), "test");
        numbers.last = last;
        fresh.iter().map(|&fresh| numbers.mix(fresh)).collect()
    }

    #[test]
    fn numbers_follow_the_recurrence_computed_by_hand() {
        // Kept as 0x8000_0000, so the weights are 2^31 - 1 and 2^31 + 1.
        let half = mixed(0.5, 0, &[u32::MAX, 0, 1 << 31]);
        assert_eq!(half, [2_147_483_646, 1_073_741_823, 1_610_612_735]);
        // Kept as 0xbfff_ffff, so the weights are exactly a quarter and three quarters.
        assert_eq!(mixed(0.75, 400, &[800, 0, 1]), [500, 375, 281]);
    }

    #[test]
    fn no_correlation_takes_the_fresh_number_and_a_full_one_the_last() {
        let fresh = [0, 1, 7, 1 << 31, u32::MAX];
        assert_eq!(mixed(0.0, 99, &fresh), fresh);
        assert_eq!(mixed(1.0, 99, &fresh), [99; 5]);
        assert_eq!(mixed(1.0, u32::MAX, &fresh), [u32::MAX; 5]);
    }

    #[test]
    fn two_in_a_row_have_the_correlation_and_it_halves_at_each_further_one() {
        let mut numbers = CorrelatedNumbers::new(0.5, Seed::new(3), "test");
        let drawn: Vec<f64> =
            (0..200_000).map(|_| f64::from(numbers.draw()) - 2f64.powi(31)).collect();
        let covariance = |lag: usize| -> f64 {
            drawn.iter().zip(&drawn[lag..]).map(|(first, second)| first * second).sum()
        };
        for (lag, expected) in [(1, 0.5), (2, 0.25), (3, 0.125)] {
            let found = covariance(lag) / covariance(0);
            assert!((found - expected).abs() < 0.02, "lag {lag}: {found}");
        }
    }

    proptest! {
        #[test]
        fn numbers_lie_between_the_fresh_one_and_the_last(
            correlation in 0.0f64..=1.0,
            last: u32,
            fresh: u32,
        ) {
            let number = mixed(correlation, last, &[fresh])[0];
            prop_assert!((last.min(fresh)..=last.max(fresh)).contains(&number));
        }
    }
}
