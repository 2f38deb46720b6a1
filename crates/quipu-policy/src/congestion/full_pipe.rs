//! Whether a path is full: its delivery rate no longer grows.

use quipu_base::Rate;

/// Finds that a path is full: in three round trips in a row the rate grew by less than a quarter,
/// although more was sent.
///
/// Sources: `draft-cardwell-iccrg-bbr-congestion-control-00`, section 4.3.2.2, the same in
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.3.1.2>.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// The rate that last counted as growth.
    base: Rate,
    /// Round trips since in which it grew less.
    rounds: u32,
}

impl FullPipe {
    const ROUNDS: u32 = 3;

    /// Starts to look, with a rate that has to be exceeded.
    pub(super) fn restart(&mut self, base: Rate) {
        *self = FullPipe { base, rounds: 0 };
    }

    /// A round trip of samples not limited by the application began with this rate.
    pub(super) fn on_round(&mut self, rate: Rate) {
        if self.is_full() {
            return;
        }
        let (base, bits) = (u128::from(self.base.bits_per_sec()), u128::from(rate.bits_per_sec()));
        // A quarter more.
        if bits * 4 >= base * 5 {
            self.restart(rate);
        } else {
            self.rounds += 1;
        }
    }

    /// The path is full by another measure.
    pub(super) fn set_full(&mut self) {
        self.rounds = Self::ROUNDS;
    }

    /// True once it was found full, until the next start.
    pub(super) fn is_full(&self) -> bool {
        self.rounds >= Self::ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pipe_is_full_after_three_rounds_of_less_than_a_quarter_more() {
        let mut pipe = FullPipe::default();
        for mbit in [1, 2, 3, 3, 3, 4] {
            pipe.on_round(Rate::from_mbit_per_sec(mbit));
        }
        assert!(!pipe.is_full());
        let slower = [4_999, 4_999, 4_999].map(|kbit| Rate::from_bits_per_sec(kbit * 1_000));
        for (round, rate) in slower.into_iter().enumerate() {
            assert!(!pipe.is_full(), "{round}");
            pipe.on_round(rate);
        }
        assert!(pipe.is_full());
        pipe.on_round(Rate::from_mbit_per_sec(100));
        assert!(pipe.is_full());
    }

    #[test]
    fn it_looks_again_with_another_rate_to_be_exceeded() {
        let mut pipe = FullPipe::default();
        pipe.set_full();
        pipe.restart(Rate::from_mbit_per_sec(40));
        for (rate, full) in [(49, false), (50, false), (62, false), (62, false), (62, true)] {
            pipe.on_round(Rate::from_mbit_per_sec(rate));
            assert_eq!(pipe.is_full(), full);
        }
    }
}
