//! Where choices come from: a seeded stream of numbers, or the bytes of a fuzzer.

use quipu_base::Random;
use rand_core::Rng;

/// Paths that a forger speaks of.
pub(super) const PATHS: u64 = 6;

/// A source of choices.
pub trait Draw {
    /// A number below `end`, which is not zero.
    fn below(&mut self, end: u64) -> u64;

    /// True with this chance in percent.
    fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A number of any size, most likely one at which something may go wrong: small, at a limit of
    /// the encoding, or the largest that can be encoded.
    fn number(&mut self) -> u64 {
        let edges = [0, 1, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, 1 << 32, (1 << 62) - 1];
        match self.below(4) {
            0 => self.below(8),
            1 => edges[self.below(edges.len() as u64) as usize],
            2 => self.below(1 << 16),
            _ => self.below(1 << 62),
        }
    }
}

impl Draw for Random {
    fn below(&mut self, end: u64) -> u64 {
        self.next_u64() % end.max(1)
    }
}

/// The bytes of a fuzzer: each choice takes as many as it needs, and zero where there are none left.
#[derive(Clone, Debug)]
pub struct Octets<'a>(&'a [u8]);

impl<'a> Octets<'a> {
    /// Choices from these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Octets(bytes)
    }

    /// True if none are left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Draw for Octets<'_> {
    fn below(&mut self, end: u64) -> u64 {
        let mut value = 0;
        let mut reach = end.saturating_sub(1);
        while reach > 0 {
            let Some((&first, rest)) = self.0.split_first() else { break };
            self.0 = rest;
            value = value << 8 | u64::from(first);
            reach >>= 8;
        }
        value % end.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_takes_as_many_bytes_as_it_needs() {
        let mut octets = Octets::new(&[7, 1, 2, 9]);
        assert_eq!(octets.below(1), 0);
        assert_eq!(octets.below(10), 7);
        assert_eq!(octets.below(1 << 16), 0x0102);
        assert_eq!(octets.below(1 << 16), 9);
        assert!(octets.is_empty());
        assert_eq!(octets.below(100), 0);
    }
}
