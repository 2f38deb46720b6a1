//! Events that befall each datagram with the same chance, and evenly spread lengths of time.

use quipu_base::{Duration, Random};
use rand_core::Rng;

/// Steps of a probability: 2^53, as many as an `f64` below one has.
const STEPS: f64 = (1u64 << 53) as f64;

/// A probability, as the share of a random stream's numbers that mean yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probability {
    /// Yes for a draw below this many of the 2^53 steps.
    threshold: u64,
}

impl Probability {
    /// Of a number from 0 to 1.
    pub(crate) fn new(probability: f64) -> Self {
        // `as` saturates, and probabilities are multiples of 1/2^53 or finer.
        Probability { threshold: (probability * STEPS) as u64 }
    }

    /// Yes or no, for one number of the stream.
    pub(crate) fn draw(self, random: &mut Random) -> bool {
        random.next_u64() >> 11 < self.threshold
    }
}

/// A yes or no per datagram, independent of all others, from a random stream of its own.
#[derive(Debug)]
pub(crate) struct Chance {
    probability: Probability,
    random: Random,
}

impl Chance {
    /// Yes with `probability`, 0 to 1.
    pub(crate) fn new(probability: f64, random: Random) -> Self {
        Chance { probability: Probability::new(probability), random }
    }

    /// The answer for the next datagram.
    pub(crate) fn draw(&mut self) -> bool {
        // The stream is used for nothing else, so a chance of zero need not draw.
        self.probability.threshold != 0 && self.probability.draw(&mut self.random)
    }
}

/// A length of time, evenly spread over 0 to `most`, both included.
pub(crate) fn uniform_up_to(most: Duration, random: &mut Random) -> Duration {
    share_of(most, random.next_u64())
}

/// `number` of 2^64 parts of the whole nanoseconds from 0 to `most`, both included.
pub(crate) fn share_of(most: Duration, number: u64) -> Duration {
    let choices = u128::from(most.as_nanos()) + 1;
    // The product is below 2^128 and its upper half at most `most`. The bias is below most / 2^64.
    Duration::from_nanos(((u128::from(number) * choices) >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use quipu_base::Seed;

    use super::*;

    fn yes_of(probability: f64, draws: u32) -> u32 {
        let mut chance = Chance::new(probability, Seed::new(7).stream("test", 0));
        (0..draws).map(|_| u32::from(chance.draw())).sum()
    }

    #[test]
    fn zero_never_and_one_always() {
        assert_eq!(yes_of(0.0, 10_000), 0);
        assert_eq!(yes_of(1.0, 10_000), 10_000);
    }

    #[test]
    fn one_percent_is_one_in_a_hundred() {
        // 10,000 expected, standard deviation 99.5.
        let yes = yes_of(0.01, 1_000_000);
        assert!((9_600..=10_400).contains(&yes), "{yes}");
    }

    #[test]
    fn uniform_times_reach_both_ends_and_nothing_beyond() {
        let mut random = Seed::new(7).stream("test", 0);
        let mut seen = [0u32; 4];
        for _ in 0..1_000 {
            let drawn = uniform_up_to(Duration::from_nanos(3), &mut random);
            seen[usize::try_from(drawn.as_nanos()).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&count| count > 200), "{seen:?}");
        assert_eq!(uniform_up_to(Duration::ZERO, &mut random), Duration::ZERO);
        // Does not overflow.
        uniform_up_to(Duration::MAX, &mut random);
    }
}
