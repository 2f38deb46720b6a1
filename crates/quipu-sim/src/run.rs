//! How a run ends.

use quipu_base::Instant;

/// Why a run stopped without a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The condition no longer holds.
    Condition,
    /// No event waits: nothing will ever happen again without an input from outside.
    Idle,
    /// The time is up.
    TimeLimit,
}

/// A run that would not end was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// More events than the world's limit.
    #[error("{limit} events by {now}, the limit of this world; expected the run to end before")]
    EventLimit {
        /// The limit.
        limit: u64,
        /// When it was reached.
        now: Instant,
    },
    /// Somebody set the flag of [`World::stop_on`](crate::World::stop_on).
    #[error("stopped at {now}")]
    Stopped {
        /// The instant.
        now: Instant,
    },
    /// Events go on without time moving: most likely a node whose deadline stays in the past.
    #[error("{events} events at {now} alone, expected time to move on")]
    NoProgress {
        /// Events at that instant.
        events: u64,
        /// The instant.
        now: Instant,
    },
}
