//! The host's clock as the engine counts time.

use quipu_base::{Duration, Instant};

/// Nanoseconds since the endpoint was made, which never go back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: std::time::Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the runtime gives the engine its time")]
    pub(crate) fn start() -> Self {
        Clock { start: std::time::Instant::now() }
    }

    pub(crate) fn now(self) -> Instant {
        let nanos = self.start.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The time since 1970, which dates tokens of addresses.
    #[expect(clippy::disallowed_methods, reason = "the runtime gives the engine its time")]
    pub(crate) fn unix_time() -> Duration {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanos = since.unwrap_or_default().as_nanos();
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// The same length of time for tokio.
pub(crate) fn std_duration(duration: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(duration.as_nanos())
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
        assert!(Clock::unix_time() > Duration::from_secs(1_700_000_000));
    }
}
