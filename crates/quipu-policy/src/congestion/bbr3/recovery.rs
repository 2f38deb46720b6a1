//! Loss recovery, and the window that is good to return to.

use quipu_base::{Bytes, Instant};

/// The recovery period, and the last window that neither it nor ProbeRTT made.
///
/// A period begins with the loss of a packet sent after the start of the one before, and ends with
/// the acknowledgement of a packet sent after its start.
/// <https://www.rfc-editor.org/rfc/rfc9002#section-7.3.2>
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recovery {
    began_at: Option<Instant>,
    saved: Bytes,
}

impl Recovery {
    /// A packet sent at `newest_sent_at` was lost.
    pub(super) fn on_lost(&mut self, now: Instant, newest_sent_at: Instant) {
        if self.began_at.is_none_or(|began_at| newest_sent_at > began_at) {
            self.began_at = Some(now);
        }
    }

    /// A packet sent at `newest_sent_at` was acknowledged. True if that ended the period.
    pub(super) fn on_acked(&mut self, newest_sent_at: Instant) -> bool {
        let ended = self.began_at.is_some_and(|began_at| newest_sent_at > began_at);
        if ended {
            self.began_at = None;
        }
        ended
    }

    /// There is none any more.
    pub(super) fn cancel(&mut self) {
        self.began_at = None;
    }

    /// Saves the window; while it is kept small on purpose, only if it is larger than the saved one.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.6.4.4>
    pub(super) fn save(&mut self, cwnd: Bytes, on_purpose: bool) {
        let keep = on_purpose || self.began_at.is_some();
        self.saved = if keep { self.saved.max(cwnd) } else { cwnd };
    }

    /// The window to return to from `cwnd`.
    pub(super) fn restored(&self, cwnd: Bytes) -> Bytes {
        cwnd.max(self.saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn the_window_before_loss_is_kept_until_the_period_ends() {
        let mut recovery = Recovery::default();
        recovery.save(Bytes(50), false);
        recovery.on_lost(at(100), at(60));
        recovery.save(Bytes(30), false);
        assert!(!recovery.on_acked(at(100)));
        assert_eq!(recovery.restored(Bytes(20)), Bytes(50));
        assert!(recovery.on_acked(at(101)));
        recovery.save(Bytes(20), true);
        assert_eq!(recovery.restored(Bytes(10)), Bytes(50));
        recovery.save(Bytes(20), false);
        assert_eq!(recovery.restored(Bytes(10)), Bytes(20));
    }
}
