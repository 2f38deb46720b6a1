//! The greatest delivery rate of the last two cycles of ProbeBW.

use quipu_base::Rate;

use crate::congestion::filter::WindowedMax;

/// Greatest delivery rate of this cycle and of the one before.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.5.3>
#[derive(Clone, Debug)]
pub(super) struct MaxBandwidth {
    cycle: u64,
    rates: WindowedMax<Rate>,
}

impl MaxBandwidth {
    pub(super) fn new() -> Self {
        MaxBandwidth { cycle: 0, rates: WindowedMax::new(1) }
    }

    /// The greatest; zero before the first sample.
    pub(super) fn get(&self) -> Rate {
        self.rates.best().unwrap_or(Rate::ZERO)
    }

    /// A sample came; a `limited` one counts only if it is not below what is known.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.5.4>
    pub(super) fn note(&mut self, rate: Rate, limited: bool) {
        if rate > Rate::ZERO && (!limited || rate >= self.get()) {
            self.rates.update(self.cycle, rate);
        }
    }

    /// A cycle is over.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.5.6>
    pub(super) fn end_cycle(&mut self) {
        self.cycle = self.cycle.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(mbit: u64) -> Rate {
        Rate::from_mbit_per_sec(mbit)
    }

    #[test]
    fn a_sample_counts_for_its_cycle_and_the_next() {
        let mut max = MaxBandwidth::new();
        max.note(rate(10), false);
        max.end_cycle();
        max.note(rate(4), false);
        assert_eq!(max.get(), rate(10));
        max.end_cycle();
        assert_eq!(max.get(), rate(10), "until there is a newer one");
        max.note(rate(3), false);
        assert_eq!(max.get(), rate(4));
    }

    #[test]
    fn a_limited_sample_counts_if_it_is_not_below() {
        let mut max = MaxBandwidth::new();
        max.note(rate(10), false);
        max.end_cycle();
        max.note(rate(9), true);
        max.end_cycle();
        assert_eq!(max.get(), rate(10));
        max.note(rate(11), true);
        assert_eq!(max.get(), rate(11));
    }
}
