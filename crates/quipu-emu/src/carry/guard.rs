//! How long before an instant a timer has to fire, so that a thread is awake at that instant.

use quipu_base::Duration;

/// The time that a wake-up takes, as it has been of late: a smoothed mean and a mean deviation, as of round trips in
/// TCP (<https://www.rfc-editor.org/rfc/rfc6298#section-2>). So much time is waited for without sleeping.
///
/// A fixed time that is as long as the slowest wake-ups take would keep a processor busy all the time from 17,000 packets
/// a second on, and a thread with a real-time priority may not be: Linux takes it off for 50 ms in each second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guard {
    mean: u64,
    deviation: u64,
}

impl Guard {
    /// The most, in nanoseconds. A wake-up that takes longer is that of a busy machine, for which no waiting makes up.
    const MOST: u64 = 60_000;

    /// What wake-ups took on Linux 6.18 at the median.
    pub(super) fn new() -> Self {
        Guard { mean: 26_000, deviation: 10_000 }
    }

    /// A timer fired as late as this.
    pub(super) fn woken_after(&mut self, late: Duration) {
        let late = late.as_nanos().min(Guard::MOST);
        self.deviation = (3 * self.deviation + self.mean.abs_diff(late)) / 4;
        self.mean = (7 * self.mean + late) / 8;
    }

    pub(super) fn time(self) -> Duration {
        Duration::from_nanos((self.mean + self.deviation).min(Guard::MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(times: impl IntoIterator<Item = u64>) -> u64 {
        let mut guard = Guard::new();
        times.into_iter().for_each(|micros| guard.woken_after(Duration::from_micros(micros)));
        guard.time().as_micros()
    }

    #[test]
    fn a_guard_is_as_long_as_wake_ups_take() {
        assert_eq!(after([]), 36);
        assert!((5..8).contains(&after([5; 50])));
        assert!((20..40).contains(&after([10, 30].repeat(50))));
    }

    #[test]
    fn a_guard_has_a_bound_and_comes_back() {
        assert_eq!(after([100_000; 50]), 60);
        assert!(after([vec![100_000; 50], vec![10; 50]].concat()) < 15);
    }
}
