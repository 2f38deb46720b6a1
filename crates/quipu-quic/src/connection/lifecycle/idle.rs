//! The idle timeout. <https://www.rfc-editor.org/rfc/rfc9000#section-10.1>

use quipu_base::{Duration, Instant};

/// Ends a connection on which nothing comes.
#[derive(Clone, Debug)]
pub(super) struct IdleTimer {
    timeout: Duration,
    since: Instant,
    /// An ack-eliciting packet left since something came.
    sent_since: bool,
}

impl IdleTimer {
    pub(super) fn new(now: Instant, timeout: Duration) -> Self {
        IdleTimer { timeout, since: now, sent_since: false }
    }

    /// The shorter of our and the peer's timeout counts; zero is none.
    pub(super) fn agree(&mut self, peers: Duration) {
        self.timeout = match (self.timeout.is_zero(), peers.is_zero()) {
            (true, _) => peers,
            (_, true) => self.timeout,
            _ => self.timeout.min(peers),
        };
    }

    pub(super) fn on_received(&mut self, now: Instant) {
        self.since = now;
        self.sent_since = false;
    }

    // https://www.rfc-editor.org/rfc/rfc9000#section-10.1
    //# An endpoint also restarts its idle timer when sending an ack-eliciting
    //# packet if no other ack-eliciting packets have been sent since last
    //# receiving and processing a packet.
    pub(super) fn on_sent(&mut self, now: Instant) {
        if !std::mem::replace(&mut self.sent_since, true) {
            self.since = now;
        }
    }

    /// How long an end may send nothing that still wants the connection; `None` without a timeout.
    pub(super) fn half(&self) -> Option<Duration> {
        (!self.timeout.is_zero()).then(|| self.timeout.divided_by(2))
    }

    /// False if [`deadline`](Self::deadline) is not before `at`, however long the probe timeout is.
    pub(super) fn may_end_before(&self, at: Instant) -> bool {
        self.since + self.timeout < at
    }

    pub(super) fn deadline(
        &self,
        longest_probe_timeout: impl FnOnce() -> Duration,
    ) -> Option<Instant> {
        if self.timeout.is_zero() {
            return None;
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.1
        //# endpoints MUST increase the idle timeout period to be at least three
        //# times the current Probe Timeout (PTO).
        let timeout = self.timeout.max(longest_probe_timeout().saturating_mul(3));
        Some(self.since + timeout)
    }
}
