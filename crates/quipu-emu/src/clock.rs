//! The host's monotonic clock as links count time: nanoseconds since the beginning of a run.

use std::time::Duration as StdDuration;

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use quipu_base::{Duration, Instant};

/// A run's time. It is that of `CLOCK_MONOTONIC`, which timers can wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Nanoseconds of the host's clock at the beginning.
    began: u64,
}

impl Clock {
    /// A run that begins now.
    pub(crate) fn start() -> Self {
        Clock { began: read(ClockId::CLOCK_MONOTONIC) }
    }

    pub(crate) fn now(self) -> Instant {
        Instant::from_nanos(read(ClockId::CLOCK_MONOTONIC).saturating_sub(self.began))
    }

    /// What the host's clock shows at `at`.
    pub(crate) fn of_host(self, at: Instant) -> TimeSpec {
        StdDuration::from_nanos(self.began.saturating_add(at.as_nanos())).into()
    }
}

/// Processor time that the calling thread has used.
pub(crate) fn processor_time() -> Duration {
    Duration::from_nanos(read(ClockId::CLOCK_THREAD_CPUTIME_ID))
}

fn read(clock: ClockId) -> u64 {
    // Linux has both clocks, and the address is that of a variable: there is no error.
    let time = clock_gettime(clock).map(StdDuration::from).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_starts_near_zero_and_goes_on() {
        let clock = Clock::start();
        let first = clock.now();
        assert!(first < Instant::ZERO + Duration::from_secs(5));
        assert!(clock.now() >= first);
        let later = StdDuration::from(clock.of_host(Instant::from_nanos(7)));
        let begun = StdDuration::from(clock.of_host(Instant::ZERO));
        assert_eq!(later - begun, StdDuration::from_nanos(7));
    }
}
