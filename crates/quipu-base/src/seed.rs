//! One seed for an experiment, one random stream for each component.

use rand_pcg::Pcg64;
pub use rand_pcg::rand_core::Rng;
use rand_pcg::rand_core::SeedableRng;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// The random stream of one component: PCG XSL 128/64, the same numbers on every machine.
///
/// [`Rng`] draws whole numbers from it, [`uniform`] fractions.
pub type Random = Pcg64;

/// A number from 0 to below 1, each multiple of 2⁻⁵³ as likely as the others.
pub fn uniform(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Puts `items` in an order by chance, each as likely as any other: Fisher and Yates.
pub fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for last in (1..items.len()).rev() {
        // Upper half of a product: an index of at most `last`.
        let index = (u128::from(random.next_u64()) * (last as u128 + 1)) >> 64;
        items.swap(last, index as usize);
    }
}

/// The seed of an experiment, or of a part of it.
///
/// Each component draws from a stream of its own, derived from (seed, component, index), so that a
/// draw more in one place shifts nothing in another.
///
/// ```
/// use quipu_base::Seed;
/// let run = Seed::new(1).child("run", 3);
/// let a = run.stream("link.loss", 0);
/// let b = run.stream("link.loss", 1);
/// assert_ne!(a, b);
/// assert_eq!(a, Seed::new(1).child("run", 3).stream("link.loss", 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// The seed of an experiment.
    pub const fn new(seed: u64) -> Self {
        Seed(seed)
    }

    /// The seed of the `index`-th part called `component`, such as a run of a sweep.
    pub fn child(self, component: &str, index: u64) -> Seed {
        Seed(self.derive(component, index) as u64)
    }

    /// The random stream of the `index`-th component of that name.
    pub fn stream(self, component: &str, index: u64) -> Random {
        let derived = self.derive(component, index);
        let mut state = [0u8; 32];
        state[..16].copy_from_slice(&derived.to_le_bytes());
        state[16..].copy_from_slice(&derived.rotate_left(64).to_be_bytes());
        Pcg64::from_seed(state)
    }

    /// A number derived from the seed, for seeding foreign generators.
    pub fn number(self, component: &str, index: u64) -> u64 {
        (self.derive(component, index) >> 64) as u64
    }

    fn derive(self, component: &str, index: u64) -> u128 {
        let mut key = Vec::with_capacity(component.len() + 8);
        key.extend_from_slice(component.as_bytes());
        key.extend_from_slice(&index.to_le_bytes());
        xxh3_128_with_seed(&key, self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_repeatable_and_differ_by_name_index_and_seed() {
        let first = |seed: u64, name: &str, index| Seed::new(seed).stream(name, index).next_u64();
        assert_eq!(first(1, "loss", 0), first(1, "loss", 0));
        assert_ne!(first(1, "loss", 0), first(1, "loss", 1));
        assert_ne!(first(1, "loss", 0), first(1, "jitter", 0));
        assert_ne!(first(1, "loss", 0), first(2, "loss", 0));
    }

    #[test]
    fn fractions_are_below_one_and_spread_evenly() {
        let mut random = Seed::new(1).stream("loss", 0);
        let drawn: Vec<f64> = (0..4_000).map(|_| uniform(&mut random)).collect();
        assert!(drawn.iter().all(|part| (0.0..1.0).contains(part)));
        for quarter in 0..4 {
            let of = |part: &&f64| (**part * 4.0) as u32 == quarter;
            assert!((900..1_100).contains(&drawn.iter().filter(of).count()));
        }
    }

    #[test]
    fn the_stream_of_a_seed_never_changes_between_releases() {
        let mut random = Seed::new(1).stream("loss", 0);
        let drawn = [random.next_u64(), random.next_u64()];
        assert_eq!(drawn, [9_391_659_709_709_086_382, 16_372_894_170_609_233_592]);
    }
}
