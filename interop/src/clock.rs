//! Virtual time in the words of the standard library.

use std::time;

use quipu_base::Instant;

/// Turns virtual instants into those of the standard library, which the foreign engines use, and
/// back. The engines only ever compare and subtract them.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: time::Instant,
}

impl Clock {
    /// A clock that shows any time at all at the start of the run.
    #[expect(clippy::disallowed_methods, reason = "no other way makes a standard instant")]
    pub fn new() -> Self {
        Clock { start: time::Instant::now() }
    }

    /// `now` for a foreign engine.
    pub fn to_std(self, now: Instant) -> time::Instant {
        self.start + time::Duration::from_nanos(now.as_nanos())
    }

    /// A foreign engine's instant in virtual time; the start of the run if it lies before.
    pub fn from_std(self, instant: time::Instant) -> Instant {
        let since_start = instant.saturating_duration_since(self.start);
        Instant::from_nanos(u64::try_from(since_start.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
