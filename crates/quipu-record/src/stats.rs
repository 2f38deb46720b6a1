//! Statistics of repeated runs: quantiles, paired ratios, bootstrap intervals.
//!
//! Only `+ − × ÷`, and `log` and `exp` of `libm`: the same numbers on every machine.

mod histogram;
mod quantile;
mod rank;

use quipu_base::{Random, Seed};
use rand::Rng;

pub use histogram::Histogram;
pub use quantile::{
    FiveNumbers, five_numbers, median, median_of_numbers, p95, quantile, quantile_of_counted,
    quantile_of_numbers,
};
pub use rank::kendall;

/// Resamples of a bootstrap. Our choice, from the project's conventions.
pub const RESAMPLES: usize = 10_000;

/// A ratio of paired runs, with the interval that holds it with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Geometric mean of the pairs' ratios.
    pub mean: f64,
    /// Lower and upper end; `None` if chance decides nothing or there is only one pair.
    pub interval: Option<(f64, f64)>,
}

/// The mean, rounded down. `None` of nothing.
pub fn mean(values: &[u64]) -> Option<u64> {
    let sum: u128 = values.iter().copied().map(u128::from).sum();
    // The mean of values that fit fits.
    sum.checked_div(values.len() as u128).map(|mean| mean as u64)
}

/// Compares runs with the runs of a base in the same conditions.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    seed: Seed,
    random: bool,
}

impl Comparison {
    /// Intervals are drawn from `seed`; `random` says whether chance decides anything in the runs.
    pub fn new(seed: Seed, random: bool) -> Self {
        Comparison { seed, random }
    }

    /// The ratio `value ÷ base` over pairs `(value, base)`, one pair for each seed. `None` if there is
    /// no pair, or a value of zero, which has no ratio.
    pub fn ratio(&self, pairs: &[(u64, u64)]) -> Option<Ratio> {
        self.ratio_of_groups(pairs.chunks(1))
    }

    /// The same over groups of pairs that chance decides together, one group for each seed: each counts
    /// by its geometric mean, and the interval is drawn from groups. Empty ones are left out.
    pub fn ratio_of_groups<'a>(
        &self,
        groups: impl Iterator<Item = &'a [(u64, u64)]>,
    ) -> Option<Ratio> {
        let mut logs = Vec::new();
        for pairs in groups.filter(|pairs| !pairs.is_empty()) {
            if pairs.iter().any(|&(value, base)| value == 0 || base == 0) {
                return None;
            }
            let of_pairs = pairs.iter().map(|&(value, base)| libm::log(value as f64 / base as f64));
            logs.push(of_pairs.sum::<f64>() / pairs.len() as f64);
        }
        let (mean, interval) = self.mean(&logs)?;
        let interval = interval.map(|(low, high)| (libm::exp(low), libm::exp(high)));
        Some(Ratio { mean: libm::exp(mean), interval })
    }

    /// The mean of `values`, one for each seed, and its interval. `None` of nothing.
    pub fn mean(&self, values: &[f64]) -> Option<(f64, Option<(f64, f64)>)> {
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let interval = (self.random && values.len() > 1)
            .then(|| bootstrap(values, self.seed.stream("bootstrap", 0)))
            .flatten();
        Some((mean, interval))
    }

    /// The interval of what `statistic` makes of `count` runs: the 2.5th and 97.5th percentile over
    /// `resamples` draws of as many of their positions. `None` if chance decides nothing, there is
    /// only one run, or `statistic` has nothing to say of a draw.
    pub fn interval(
        &self,
        count: usize,
        resamples: usize,
        statistic: impl Fn(&[usize]) -> Option<f64>,
    ) -> Option<(f64, f64)> {
        if !self.random || count < 2 {
            return None;
        }
        let mut random = self.seed.stream("bootstrap", 0);
        let mut drawn = vec![0; count];
        let mut found = Vec::with_capacity(resamples);
        for _ in 0..resamples {
            for index in &mut drawn {
                *index = ((u64::from(random.next_u32()) * count as u64) >> 32) as usize;
            }
            found.push(statistic(&drawn)?);
        }
        confident(found)
    }
}

/// The 2.5th and 97.5th percentile of the means of [`RESAMPLES`] resamples of `values`, which are
/// not empty.
fn bootstrap(values: &[f64], mut random: Random) -> Option<(f64, f64)> {
    let count = values.len() as u64;
    let mut means = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let mut sum = 0.0;
        for _ in values {
            // Upper half of a product: an index below `count`, which is far below 2^32.
            let index = (u64::from(random.next_u32()) * count) >> 32;
            sum += values[index as usize];
        }
        means.push(sum / count as f64);
    }
    confident(means)
}

/// The 2.5th and 97.5th percentile of `values`. `None` of nothing.
fn confident(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.sort_unstable_by(f64::total_cmp);
    Some((quantile_of_numbers(&values, 25)?, quantile_of_numbers(&values, 975)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_rounded_down() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[1, 2]), Some(1));
        assert_eq!(mean(&[u64::MAX, u64::MAX - 2]), Some(u64::MAX - 1));
    }

    #[test]
    fn ratios_are_of_pairs_not_of_means() {
        let comparison = Comparison::new(Seed::new(1), true);
        let ratio = comparison.ratio(&[(2, 1), (8, 1), (100, 100)]).unwrap();
        // (2 · 8 · 1)^(1/3)
        assert!((ratio.mean - 2.519_842).abs() < 1e-6);
        let (low, high) = ratio.interval.unwrap();
        assert!(low >= 1.0 && low < ratio.mean && ratio.mean < high && high <= 8.0);
    }

    #[test]
    fn groups_count_once_and_their_interval_is_that_of_groups() {
        let comparison = Comparison::new(Seed::new(1), true);
        let groups = [vec![(2, 1), (8, 1)], vec![(100, 100)], vec![]];
        let ratio = comparison.ratio_of_groups(groups.iter().map(Vec::as_slice)).unwrap();
        assert!((ratio.mean - 2.0).abs() < 1e-9, "the square root of four and one");
        assert_eq!(ratio.interval.map(|(low, high)| (low.round(), high.round())), Some((1.0, 4.0)));
        let single = [vec![(2, 1), (8, 1)]];
        let ratio = comparison.ratio_of_groups(single.iter().map(Vec::as_slice)).unwrap();
        assert_eq!(ratio.interval, None);
        assert_eq!(comparison.ratio_of_groups([].into_iter()), None);
    }

    #[test]
    fn equal_runs_have_ratio_one_and_an_interval_of_no_width() {
        let ratio = Comparison::new(Seed::new(1), true).ratio(&[(7, 7), (9, 9)]).unwrap();
        assert_eq!(ratio, Ratio { mean: 1.0, interval: Some((1.0, 1.0)) });
    }

    #[test]
    fn without_chance_there_is_no_interval() {
        let ratio = Comparison::new(Seed::new(1), false).ratio(&[(3, 2), (3, 2)]).unwrap();
        assert_eq!(ratio.interval, None);
        let single = Comparison::new(Seed::new(1), true).ratio(&[(3, 2)]).unwrap();
        assert_eq!(single.interval, None);
    }

    #[test]
    fn zeros_and_nothing_have_no_ratio() {
        let comparison = Comparison::new(Seed::new(1), true);
        assert_eq!(comparison.ratio(&[]), None);
        assert_eq!(comparison.ratio(&[(0, 1)]), None);
        assert_eq!(comparison.ratio(&[(1, 0)]), None);
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let pairs: Vec<(u64, u64)> =
            (1..=30).map(|run| (100 + run * run, 100 + 20 * run)).collect();
        let interval = |seed| {
            let ratio = Comparison::new(Seed::new(seed), true).ratio(&pairs);
            ratio.unwrap().interval.unwrap()
        };
        assert_eq!(interval(1), interval(1));
        assert_ne!(interval(1), interval(2));
    }

    #[test]
    fn the_interval_holds_the_true_mean_about_as_often_as_it_says() {
        // 30 pairs of log-normal-like noise around ratio 1; 95 % of 200 intervals should hold it.
        let mut held = 0;
        for experiment in 0..200 {
            let mut random = Seed::new(experiment).stream("noise", 0);
            let pairs: Vec<(u64, u64)> = (0..30)
                .map(|_| {
                    let noise: u32 = (0..12).map(|_| random.next_u32() >> 16).sum();
                    // Symmetric in the ratio: the same factor goes up or down with equal chance.
                    let factor = 1_000_000 + u64::from(noise);
                    if random.next_u32() & 1 == 0 {
                        (factor, 1_000_000)
                    } else {
                        (1_000_000, factor)
                    }
                })
                .collect();
            let ratio = Comparison::new(Seed::new(1), true).ratio(&pairs).unwrap();
            let (low, high) = ratio.interval.unwrap();
            held += u32::from(low <= 1.0 && 1.0 <= high);
        }
        assert!((175..=200).contains(&held), "{held} of 200");
    }

    #[test]
    fn the_interval_of_a_statistic_is_that_of_its_resamples() {
        let comparison = Comparison::new(Seed::new(1), true);
        let values: Vec<f64> = (1..=10).map(|value| f64::from(value).sqrt()).collect();
        let mean = |drawn: &[usize]| {
            assert_eq!(drawn.len(), values.len());
            Some(drawn.iter().map(|&at| values[at]).sum::<f64>() / values.len() as f64)
        };
        // The same draws as for a mean, so the same interval to the last digit.
        let found = comparison.interval(values.len(), RESAMPLES, mean);
        assert_eq!(found, bootstrap(&values, Seed::new(1).stream("bootstrap", 0)));
        let found = found.unwrap();
        assert!(1.5 < found.0 && found.0 < 2.2 && 2.3 < found.1 && found.1 < 2.9, "{found:?}");
        // Of the numbers from 0 to 1,000, in any order, the 2.5th and 97.5th percentile.
        let calls = std::cell::Cell::new(1_001.0);
        let falling = |_: &[usize]| {
            calls.set(calls.get() - 1.0);
            Some(calls.get())
        };
        assert_eq!(comparison.interval(2, 1_001, falling), Some((25.0, 975.0)));
    }

    #[test]
    fn without_chance_runs_or_a_value_a_statistic_has_no_interval() {
        let comparison = Comparison::new(Seed::new(1), true);
        assert!(comparison.interval(2, 10, |_| Some(1.0)).is_some());
        assert_eq!(comparison.interval(1, 10, |_| Some(1.0)), None);
        assert_eq!(comparison.interval(2, 10, |_| None), None);
        assert_eq!(comparison.interval(2, 0, |_| Some(1.0)), None);
        assert_eq!(Comparison::new(Seed::new(1), false).interval(2, 10, |_| Some(1.0)), None);
    }
}
