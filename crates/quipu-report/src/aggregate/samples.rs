//! Any number of times in bounded memory.

use std::collections::BTreeMap;

/// Samples of nanoseconds: exact while they are few, then counted in steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// As they came, while they are at most [`MOST_EXACT`].
    exact: Vec<u64>,
    /// Beyond that how many lie in each step, by the least value of the step.
    counts: BTreeMap<u64, u64>,
    count: u64,
}

/// Samples that are kept as they are. Our choice: 160 kB.
pub(crate) const MOST_EXACT: usize = 20_000;

/// Steps within a power of two, as a power of two: each is at most 0.4 % wide.
const STEP_BITS: u32 = 8;

impl Samples {
    /// Adds one.
    pub fn add(&mut self, sample: u64) {
        self.count += 1;
        if !self.counts.is_empty() {
            *self.counts.entry(step(sample)).or_default() += 1;
            return;
        }
        self.exact.push(sample);
        if self.exact.len() > MOST_EXACT {
            for sample in std::mem::take(&mut self.exact) {
                *self.counts.entry(step(sample)).or_default() += 1;
            }
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether two of them differ; of many, by more than a step.
    pub fn varies(&self) -> bool {
        let first = self.exact.first();
        self.counts.len() > 1 || self.exact.iter().any(|sample| Some(sample) != first)
    }

    /// Each value with how often it is there, from the least. Values are those added while they are
    /// few, else at most 0.4 % below.
    pub fn counted(&self) -> Vec<(u64, u64)> {
        if !self.counts.is_empty() {
            return self.counts.iter().map(|(value, count)| (*value, *count)).collect();
        }
        let mut sorted = self.exact.clone();
        sorted.sort_unstable();
        sorted.chunk_by(|one, next| one == next).map(|same| (same[0], same.len() as u64)).collect()
    }

    /// The least value that `part` of the samples do not exceed, by nearest rank. `None` of nothing.
    pub fn quantile(&self, part: f64) -> Option<u64> {
        let rank = ((self.count as f64 * part).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        self.counted().into_iter().find_map(|(value, count)| {
            seen += count;
            (seen >= rank).then_some(value)
        })
    }
}

impl FromIterator<u64> for Samples {
    fn from_iter<T: IntoIterator<Item = u64>>(values: T) -> Samples {
        let mut samples = Samples::default();
        values.into_iter().for_each(|value| samples.add(value));
        samples
    }
}

/// The least value of the step that `sample` lies in.
fn step(sample: u64) -> u64 {
    let shift = sample.max(1).ilog2().saturating_sub(STEP_BITS);
    sample >> shift << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_are_exact() {
        let samples: Samples = [5, 1, 5, 9].into_iter().collect();
        assert_eq!(samples.counted(), [(1, 1), (5, 2), (9, 1)]);
        assert_eq!(samples.quantile(0.5), Some(5));
        assert!(samples.varies() && ![7, 7].into_iter().collect::<Samples>().varies());
        assert!(!Samples::default().varies());
        assert_eq!(samples.quantile(0.25), Some(1));
        assert_eq!(samples.quantile(1.0), Some(9));
        assert_eq!(Samples::default().quantile(0.5), None);
    }

    #[test]
    fn many_samples_are_counted_and_close() {
        let samples: Samples = (1..=1_000_000_u64).map(|index| index * 1_000).collect();
        assert_eq!(samples.count(), 1_000_000);
        let counted = samples.counted();
        assert!(counted.len() < 20 * 256, "{}", counted.len());
        assert_eq!(counted.iter().map(|(_, count)| count).sum::<u64>(), 1_000_000);
        for part in [0.01, 0.5, 0.95] {
            let exact = part * 1e9;
            let found = samples.quantile(part).unwrap() as f64;
            assert!(found <= exact && found > exact * 0.995, "{part}: {found}");
        }
    }
}
