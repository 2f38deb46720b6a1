//! How often a client may make the server work for nothing.

use quipu_base::{Duration, Instant};

/// Requests that a client may cancel at once; our choice, as in nghttp2 (`stream_reset_burst`).
pub(crate) const CANCEL_BURST: u32 = 1_000;
/// After each such time it may cancel one more: 33 a second, as in nghttp2 (`stream_reset_rate`).
const REFILL: Duration = Duration::from_millis(30);

/// Cancelled requests: a client opens a request and cancels it at once, again and again, so that the limit of
/// requests at a time is never reached ("rapid reset", CVE-2023-44487). Or it sends what makes the server cancel
/// the request, to the same effect ("MadeYouReset", CVE-2025-8671).
///
/// A bucket of tokens: each cancelled request takes one, and time brings them back.
#[derive(Debug)]
pub(crate) struct CancelBudget {
    left: u32,
    /// When the last token came back.
    refilled_at: Instant,
}

impl CancelBudget {
    pub(crate) const fn new() -> Self {
        CancelBudget { left: CANCEL_BURST, refilled_at: Instant::ZERO }
    }

    /// A request is cancelled; false if that is one too many.
    pub(crate) fn spend(&mut self, now: Instant) -> bool {
        let passed = now.saturating_since(self.refilled_at).as_nanos() / REFILL.as_nanos();
        self.refilled_at += REFILL.saturating_mul(passed);
        let refilled = u64::from(self.left).saturating_add(passed).min(u64::from(CANCEL_BURST));
        // At most the burst.
        self.left = refilled as u32;
        self.left.checked_sub(1).map(|left| self.left = left).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_burst_is_allowed_and_then_thirty_three_a_second() {
        let mut budget = CancelBudget::new();
        assert!((0..CANCEL_BURST).all(|_| budget.spend(at(1_000_000))));
        assert!(!budget.spend(at(1_000_000)));
        assert!(!budget.spend(at(1_000_009)));
        let allowed = (0..1_000).filter(|tick| budget.spend(at(1_000_010 + tick))).count();
        assert!((33..=34).contains(&allowed), "{allowed}");
    }

    #[test]
    fn a_client_that_cancels_now_and_then_never_runs_out() {
        let mut budget = CancelBudget::new();
        assert!((0..100_000).all(|nth| budget.spend(at(nth * 30))));
    }
}
