//! How late packets were handed over.

use hdrhistogram::{CreationError, Histogram};
use quipu_base::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// Significant digits of each figure.
const DIGITS: u8 = 3;
/// Longer ones count as this: an hour, in nanoseconds.
const LONGEST: u64 = 3_600_000_000_000;

/// Lateness of all packets of a run, in bounded memory.
#[derive(Clone, Debug)]
pub(crate) struct Recorder(Histogram<u64>);

/// How late packets were handed over to the hosts that they went to, against the instant that their links said. A packet
/// is never early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Packets that were handed over.
    pub packets: u64,
    /// Nanoseconds that half of them were late at most.
    pub p50_ns: u64,
    /// Nanoseconds that 99 % of them were late at most.
    pub p99_ns: u64,
    /// Nanoseconds that 99.9 % of them were late at most.
    pub p999_ns: u64,
    /// Nanoseconds that the latest was late.
    pub max_ns: u64,
}

impl Recorder {
    /// Nothing recorded yet.
    ///
    /// # Errors
    /// None with these figures.
    pub(crate) fn new() -> Result<Self, CreationError> {
        Histogram::new_with_bounds(1, LONGEST, DIGITS).map(Recorder)
    }

    /// A packet that was due at `due` was handed over at `now`.
    pub(crate) fn record(&mut self, due: Instant, now: Instant) {
        let Recorder(histogram) = self;
        let late: Duration = now.saturating_since(due);
        histogram.saturating_record(late.as_nanos());
    }

    pub(crate) fn clear(&mut self) {
        self.0.reset();
    }

    pub(crate) fn summary(&self) -> Lateness {
        let Recorder(histogram) = self;
        Lateness {
            packets: histogram.len(),
            p50_ns: histogram.value_at_quantile(0.5),
            p99_ns: histogram.value_at_quantile(0.99),
            p999_ns: histogram.value_at_quantile(0.999),
            max_ns: histogram.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_exact_to_three_digits() {
        let mut recorder = Recorder::new().unwrap();
        for micros in 1..=1_000u64 {
            let due = Instant::from_nanos(5);
            recorder.record(due, due + Duration::from_micros(micros));
        }
        let Lateness { packets, p50_ns, p99_ns, p999_ns, max_ns } = recorder.summary();
        assert_eq!(packets, 1_000);
        for (found, wanted) in
            [(p50_ns, 500_000), (p99_ns, 990_000), (p999_ns, 999_000), (max_ns, 1_000_000)]
        {
            assert!(found.abs_diff(wanted) <= wanted / 1_000, "{found}, expected {wanted}");
        }
        recorder.clear();
        assert_eq!(recorder.summary(), Lateness::default());
    }

    #[test]
    fn what_is_early_is_on_time_and_ages_are_an_hour() {
        let mut recorder = Recorder::new().unwrap();
        recorder.record(Instant::from_nanos(9), Instant::ZERO);
        assert_eq!(recorder.summary().max_ns, 0);
        recorder.record(Instant::ZERO, Instant::FAR_FUTURE);
        assert!(recorder.summary().max_ns.abs_diff(LONGEST) < LONGEST / 1_000);
    }
}
