//! The fitted laws of Table 1 of the ns-3 QUIC paper, and how values are drawn from them.
//!
//! Sizes and numbers are rounded down and limited; nothing else is done to a draw. Each takes the
//! same from its stream, whatever comes out.

use quipu_base::{Bytes, Duration, Random};
use rand_core::Rng;

/// Scale of the size of a main object, Weibull, bytes.
const MAIN_SCALE: f64 = 28_242.8;
/// Shape of the size of a main object, Weibull.
const MAIN_SHAPE: f64 = 0.814_944;
/// Mean of the logarithm of the number of main objects.
const MAINS_MU: f64 = 0.473_844;
/// Standard deviation of the logarithm of the number of main objects.
const MAINS_SIGMA: f64 = 0.688_471;
/// Mean of the logarithm of the size of an embedded object, bytes.
const EMBEDDED_MU: f64 = 9.179_79;
/// Standard deviation of the logarithm of the size of an embedded object.
const EMBEDDED_SIGMA: f64 = 1.246_46;
/// Rate of the exponential number of embedded objects.
const EMBEDDED_RATE: f64 = 0.031_32;
/// Mean of the logarithm of the reading time, seconds.
const READING_MU: f64 = -0.495_204;
/// Standard deviation of the logarithm of the reading time.
const READING_SIGMA: f64 = 2.773_1;
/// Largest size of any object, bytes.
const MAX_BYTES: f64 = 8e6;
/// Most main objects of a page.
const MAX_MAINS: f64 = 212.0;
/// Most embedded objects of a page.
const MAX_EMBEDDED: f64 = 1_920.0;
/// Longest reading time, seconds.
const MAX_READING: f64 = 1e4;

/// Number of main objects: log-normal, 1 to 212. Mean of the law 2.04; rounded down, at least one:
/// 1.77.
pub(super) fn mains(random: &mut Random) -> u64 {
    limited(log_normal(random, MAINS_MU, MAINS_SIGMA), 1.0, MAX_MAINS)
}

/// Size of a main object: Weibull, 1 B to 8 MB. Mean 31.6 kB.
pub(super) fn main_size(random: &mut Random) -> Bytes {
    let size = MAIN_SCALE * libm::pow(exponential(random), 1.0 / MAIN_SHAPE);
    Bytes(limited(size, 1.0, MAX_BYTES))
}

/// Number of embedded objects: exponential, 0 to 1,920. Mean of the law 31.93; rounded down: 31.43.
pub(super) fn embedded(random: &mut Random) -> u64 {
    limited(exponential(random) / EMBEDDED_RATE, 0.0, MAX_EMBEDDED)
}

/// Size of an embedded object: log-normal, 1 B to 8 MB. Mean 21.1 kB.
pub(super) fn embedded_size(random: &mut Random) -> Bytes {
    Bytes(limited(log_normal(random, EMBEDDED_MU, EMBEDDED_SIGMA), 1.0, MAX_BYTES))
}

/// Reading time: log-normal, at most 10,000 s. Mean of the law 28.5 s; limited: 24.2 s.
pub(super) fn reading_time(random: &mut Random) -> Duration {
    let seconds = log_normal(random, READING_MU, READING_SIGMA).min(MAX_READING);
    Duration::from_nanos(limited(seconds * 1e9, 0.0, MAX_READING * 1e9))
}

/// `value` rounded down, from `least` to `most`.
fn limited(value: f64, least: f64, most: f64) -> u64 {
    // Not negative and small: the cast only drops the fraction.
    value.clamp(least, most) as u64
}

/// Uniform in the open interval from 0 to 1.
pub(super) fn uniform(random: &mut Random) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// Exponential with mean 1.
pub(super) fn exponential(random: &mut Random) -> f64 {
    -libm::log(uniform(random))
}

/// Log-normal, by the method of Box and Muller; the second value of the pair is not used, so that
/// each draw takes the same from the stream.
pub(super) fn log_normal(random: &mut Random, mu: f64, sigma: f64) -> f64 {
    let radius = libm::sqrt(2.0 * exponential(random));
    let angle = core::f64::consts::TAU * uniform(random);
    libm::exp(mu + sigma * radius * libm::cos(angle))
}

#[cfg(test)]
mod tests {
    use quipu_base::Seed;

    use super::*;

    fn mean(draws: u32, mut draw: impl FnMut(&mut Random) -> f64) -> f64 {
        let mut random = Seed::new(7).stream("laws", 0);
        (0..draws).map(|_| draw(&mut random)).sum::<f64>() / f64::from(draws)
    }

    const MAIN_SIZE_MEAN: f64 = 31_586.12;
    const MAINS_MEAN: f64 = 1.771_802;
    const EMBEDDED_SIZE_MEAN: f64 = 21_090.83;
    const EMBEDDED_MEAN: f64 = 31.431_09;
    const READING_MEAN: f64 = 24.166_00;

    /// The expected value of each draw, from its formula: the Weibull's `scale · Γ(1 + 1/shape)`, less
    /// half a byte; `Σ P(X ≥ k)` of the numbers; `exp(μ + σ²/2)` of the embedded size, less half a byte;
    /// and of the reading time `exp(μ + σ²/2)·Φ(a − σ) + max·(1 − Φ(a))`, `a = (ln max − μ)/σ`.
    #[test]
    fn means_are_those_of_the_fitted_laws() {
        let near = |mean: f64, expected: f64, tolerance: f64| {
            assert!((mean / expected - 1.0).abs() < tolerance, "{mean} is not near {expected}");
        };
        near(mean(400_000, |random| main_size(random).0 as f64), MAIN_SIZE_MEAN, 0.01);
        near(mean(400_000, |random| mains(random) as f64), MAINS_MEAN, 0.01);
        near(mean(400_000, |random| embedded_size(random).0 as f64), EMBEDDED_SIZE_MEAN, 0.02);
        near(mean(400_000, |random| embedded(random) as f64), EMBEDDED_MEAN, 0.01);
        // Nearly all of the mean lies in the tail: one draw in 4,300 is the limit.
        near(mean(2_000_000, |random| reading_time(random).as_secs_f64()), READING_MEAN, 0.03);
    }

    #[test]
    fn draws_keep_to_their_limits() {
        let mut random = Seed::new(8).stream("laws", 0);
        for _ in 0..100_000 {
            assert!((1..=212).contains(&mains(&mut random)));
            assert!((1..=8_000_000).contains(&main_size(&mut random).0));
            assert!((1..=8_000_000).contains(&embedded_size(&mut random).0));
            assert!(embedded(&mut random) <= 1_920);
            assert!(reading_time(&mut random) <= Duration::from_secs(10_000));
        }
    }
}
