//! The delivery rate of a path as policies see it, whatever its controller.

use quipu_base::{Bytes, Rate};

use super::RateSample;
use super::filter::WindowedMax;
use super::round::RoundCounter;

/// Round trips after the one of its sample for which a rate counts: ten in all.
const ROUNDS: u64 = 9;

/// The greatest delivery rate of the last ten round trips, for
/// [`PathView::rate`](crate::PathView::rate).
///
/// A sample that application or policy limited shows at least what the path can do: it counts if it
/// is no less than the estimate, and only samples that count make others too old. Until the path's
/// window or pace has once held sending back no sample counts: what a handshake or a short request
/// shows is its own size.
///
/// Source: the bandwidth filter of BBR,
/// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.1.1>;
/// the beginning is our choice.
#[derive(Clone, Debug)]
pub struct RateEstimate {
    begun: bool,
    rounds: RoundCounter,
    /// Boxed, since few paths ever had a sample that counts.
    greatest: Option<Box<WindowedMax<Rate>>>,
}

impl RateEstimate {
    /// Nothing is known.
    pub fn new() -> Self {
        RateEstimate { begun: false, rounds: RoundCounter::default(), greatest: None }
    }

    /// Window or pace hold sending back: samples count from now on.
    pub fn begin(&mut self) {
        self.begun = true;
    }

    /// An acknowledgement gave `sample`; `delivered` bytes are acknowledged in all.
    pub fn on_sample(&mut self, sample: &RateSample, delivered: Bytes) {
        self.rounds.on_acked(Some(sample), delivered);
        let is_shown = !sample.limited || self.rate().is_some_and(|best| sample.rate >= best);
        if self.begun && is_shown && sample.rate != Rate::ZERO {
            let greatest = self.greatest.get_or_insert_with(|| WindowedMax::new(ROUNDS).into());
            greatest.update(self.rounds.count(), sample.rate);
        }
    }

    /// The estimate; `None` before the first sample that counts.
    pub fn rate(&self) -> Option<Rate> {
        self.greatest.as_ref()?.best()
    }
}

impl Default for RateEstimate {
    fn default() -> Self {
        RateEstimate::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quipu_base::Duration;

    /// A sample whose packet left when `prior` bytes had been delivered.
    fn sample(mbit: u64, prior: u64, limited: bool) -> RateSample {
        RateSample {
            rate: Rate::from_mbit_per_sec(mbit),
            delivered: Bytes(1_000),
            interval: Duration::from_millis(10),
            prior_delivered: Bytes(prior),
            in_flight_at_send: Bytes(1_000),
            lost: Bytes::ZERO,
            limited,
        }
    }

    /// An estimate after one sample a round trip.
    fn after(samples: &[(u64, bool)]) -> Option<Rate> {
        let mut estimate = RateEstimate::new();
        estimate.begin();
        for (round, &(mbit, limited)) in samples.iter().enumerate() {
            let delivered = Bytes(1_000 * (round as u64 + 1));
            estimate.on_sample(&sample(mbit, 1_000 * round as u64, limited), delivered);
        }
        estimate.rate()
    }

    #[test]
    fn nothing_counts_before_window_or_pace_held_sending_back() {
        let mut estimate = RateEstimate::new();
        estimate.on_sample(&sample(8, 0, false), Bytes(1_000));
        assert_eq!(estimate.rate(), None);
        estimate.begin();
        estimate.on_sample(&sample(1, 1_000, true), Bytes(2_000));
        assert_eq!(estimate.rate(), None, "a limited sample begins nothing");
        estimate.on_sample(&sample(4, 2_000, false), Bytes(3_000));
        assert_eq!(estimate.rate(), Some(Rate::from_mbit_per_sec(4)));
    }

    #[test]
    fn limited_samples_raise_the_estimate_and_never_lower_it() {
        let mbit = Rate::from_mbit_per_sec;
        let mut samples = vec![(8, false)];
        samples.extend([(1, true); 40]);
        assert_eq!(after(&samples), Some(mbit(8)));
        samples.push((9, true));
        assert_eq!(after(&samples), Some(mbit(9)));
    }

    #[test]
    fn a_rate_that_fell_is_believed_after_ten_round_trips() {
        let mbit = Rate::from_mbit_per_sec;
        let mut samples = vec![(8, false)];
        samples.extend([(2, false); 9]);
        assert_eq!(after(&samples), Some(mbit(8)));
        samples.push((2, false));
        assert_eq!(after(&samples), Some(mbit(2)));
    }

    proptest! {
        #[test]
        fn it_is_the_greatest_of_the_last_ten_rounds(
            rates in prop::collection::vec(1..1_000u64, 1..60),
        ) {
            let samples: Vec<_> = rates.iter().map(|&mbit| (mbit, false)).collect();
            let last = rates.iter().rev().take(10).max().copied();
            prop_assert_eq!(after(&samples), last.map(Rate::from_mbit_per_sec));
        }
    }
}
