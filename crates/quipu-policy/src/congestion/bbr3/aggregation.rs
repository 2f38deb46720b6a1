//! How much more than expected is acknowledged at once.

use quipu_base::{Bytes, Instant, Rate};

use crate::congestion::filter::WindowedMax;

/// Round trips for which an excess counts, once the path was full.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-2.12>
const ROUNDS: u64 = 10;
/// The same in the first Startup.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.5.9>
const ROUNDS_IN_STARTUP: u64 = 1;

/// What aggregation on the way makes the sender wait for: the window has to be that much larger.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.5.9>
#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    /// When the present interval began.
    began_at: Instant,
    /// Bytes acknowledged in it.
    acked: Bytes,
    excess: WindowedMax<Bytes>,
}

/// Where the path stands as an acknowledgement comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipe {
    pub(super) bandwidth: Rate,
    pub(super) cwnd: Bytes,
    pub(super) round: u64,
    /// True if the path was ever full.
    pub(super) was_full: bool,
}

impl Aggregation {
    pub(super) fn new() -> Self {
        Aggregation {
            began_at: Instant::ZERO,
            acked: Bytes::ZERO,
            excess: WindowedMax::new(ROUNDS_IN_STARTUP),
        }
    }

    /// Bytes were acknowledged.
    pub(super) fn on_acked(&mut self, now: Instant, acked: Bytes, pipe: &Pipe) {
        let mut expected = pipe.bandwidth.bytes_in(now - self.began_at);
        if self.acked <= expected {
            self.acked = Bytes::ZERO;
            self.began_at = now;
            expected = Bytes::ZERO;
        }
        self.acked += acked;
        let excess = self.acked.saturating_sub(expected).min(pipe.cwnd);
        self.excess.set_window(if pipe.was_full { ROUNDS } else { ROUNDS_IN_STARTUP });
        self.excess.update(pipe.round, excess);
    }

    /// Sending begins again after silence.
    pub(super) fn restart(&mut self, now: Instant) {
        self.began_at = now;
    }

    /// The greatest excess.
    pub(super) fn excess(&self) -> Bytes {
        self.excess.best().unwrap_or(Bytes::ZERO)
    }
}
