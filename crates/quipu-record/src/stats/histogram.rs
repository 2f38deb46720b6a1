//! Many samples in little memory: counts by size, in steps of a thirty-second.

use super::quantile::quantile_of_counted;

/// Steps within a power of two, as a power of two: 32 steps, each at most 3.2 % wide.
const STEP_BITS: u32 = 5;
const STEPS: u64 = 1 << STEP_BITS;

/// Counts of samples by size. The mean is exact, a quantile lies at most 1.6 % beside the sample that
/// it stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// By step; as many as the largest sample asked for, at most 1,920.
    counts: Vec<u64>,
    samples: u64,
    sum: u128,
}

impl Histogram {
    /// Adds a sample.
    pub fn add(&mut self, sample: u64) {
        let step = step_of(sample);
        if self.counts.len() <= step {
            self.counts.resize(step + 1, 0);
        }
        self.counts[step] += 1;
        self.samples += 1;
        self.sum += u128::from(sample);
    }

    /// Samples so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Their mean, rounded down; `None` if there are none.
    pub fn mean(&self) -> Option<u64> {
        let mean = self.sum.checked_div(u128::from(self.samples))?;
        // Not above the largest sample.
        Some(mean as u64)
    }

    /// The percentile at `per_cent`, of the middles of steps; `None` if there are no samples.
    pub fn percentile(&self, per_cent: u8) -> Option<u64> {
        let sample = |index| {
            let mut seen = 0;
            let of = |&count: &u64| {
                seen += count;
                seen > index
            };
            self.counts.iter().position(of).map(middle_of)
        };
        quantile_of_counted(self.samples, u16::from(per_cent.min(100)) * 10, sample)
    }
}

/// The step of a size: sizes below 32 have steps of their own, above them each power of two has 32.
fn step_of(size: u64) -> usize {
    let power = size.max(1).ilog2();
    if power < STEP_BITS {
        // Below 32.
        return size as usize;
    }
    let shift = power - STEP_BITS;
    // At most 59 · 32 + 63.
    (u64::from(shift) * STEPS + (size >> shift)) as usize
}

/// The size in the middle of a step.
fn middle_of(step: usize) -> u64 {
    let step = step as u64;
    if step < STEPS {
        return step;
    }
    let shift = step / STEPS - 1;
    let low = (step - shift * STEPS) << shift;
    low + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats::p95;

    #[test]
    fn of_nothing_there_is_nothing() {
        let empty = Histogram::default();
        assert_eq!((empty.samples(), empty.mean(), empty.percentile(95)), (0, None, None));
    }

    #[test]
    fn the_largest_and_the_least_have_a_step() {
        let mut all = Histogram::default();
        for sample in [0, 31, 32, u64::MAX] {
            all.add(sample);
            let found = all.percentile(100).unwrap();
            assert!(found.abs_diff(sample) <= sample / 60, "{found} of {sample}");
        }
        assert_eq!((all.percentile(0), all.samples()), (Some(0), 4));
    }

    proptest! {
        #[test]
        fn the_mean_is_exact_and_percentiles_are_near(
            samples in proptest::collection::vec(0..=u64::MAX >> 8, 1..200),
        ) {
            let mut histogram = Histogram::default();
            samples.iter().for_each(|&sample| histogram.add(sample));
            let mean = samples.iter().map(|&sample| u128::from(sample)).sum::<u128>()
                / samples.len() as u128;
            prop_assert_eq!(histogram.mean().map(u128::from), Some(mean));
            let (exact, found) = (p95(&samples).unwrap(), histogram.percentile(95).unwrap());
            prop_assert!(found.abs_diff(exact) <= exact / 60, "{} of {}", found, exact);
        }
    }
}
