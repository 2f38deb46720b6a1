//! The host's clock.

use std::time::{Duration, Instant, SystemTime};

/// For the `Date` of responses, and how old files are.
#[expect(clippy::disallowed_methods, reason = "a server of files lives in the host's time")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// When something began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin(Instant);

impl Begin {
    #[expect(clippy::disallowed_methods, reason = "a server of files lives in the host's time")]
    pub(crate) fn now() -> Self {
        Begin(Instant::now())
    }

    /// How long ago that is.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
