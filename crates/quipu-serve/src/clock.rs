//! The host's clock.

use std::time::{Duration, Instant, SystemTime};

/// The current time, for `Date` and for the age of files.
#[expect(clippy::disallowed_methods, reason = "a server of files lives in the host's time")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// The start of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin(Instant);

impl Begin {
    #[expect(clippy::disallowed_methods, reason = "a server of files lives in the host's time")]
    pub(crate) fn now() -> Self {
        Begin(Instant::now())
    }

    #[cfg(test)]
    pub(crate) fn ago(time: Duration) -> Self {
        let Begin(now) = Self::now();
        Begin(now.checked_sub(time).expect("the host has run for longer"))
    }

    #[cfg(test)]
    pub(crate) fn later(self, time: Duration) -> Self {
        Begin(self.0 + time)
    }

    /// Time since the start.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
