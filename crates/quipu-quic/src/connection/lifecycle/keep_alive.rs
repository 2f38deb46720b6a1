//! When a connection needs a sign of life.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-10.1.2>

use quipu_base::{Duration, Instant};

/// Asks for a PING where nothing that the peer has to acknowledge was sent for some time.
#[derive(Clone, Debug)]
pub(super) struct KeepAlive {
    interval: Option<Duration>,
    since: Instant,
}

impl KeepAlive {
    pub(super) fn new(now: Instant, interval: Option<Duration>) -> Self {
        KeepAlive { interval, since: now }
    }

    /// An ack-eliciting packet left, or a sign of life was asked for.
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.since = now;
    }

    /// `at_least`: how often a sign of life is needed whatever was configured.
    #[inline]
    pub(super) fn deadline(&self, at_least: Option<Duration>) -> Option<Instant> {
        let interval = self.interval.into_iter().chain(at_least).min();
        interval.map(|interval| self.since + interval)
    }
}
