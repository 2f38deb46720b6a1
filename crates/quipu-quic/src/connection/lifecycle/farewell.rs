//! A close that waits until the peer has everything.

use quipu_base::Instant;

/// A connection that closes once all that was written is acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Farewell {
    /// It closes then in any case.
    pub(crate) until: Instant,
    /// What the peer's application is told.
    pub(crate) code: u64,
    pub(crate) reason: Vec<u8>,
}
