//! How many of its streams a peer may cancel.

use quipu_base::{Duration, Instant};

/// How many streams of its own a peer may cancel: reset, or ask us to stop sending on. More of them
/// close the connection.
///
/// A stream that is opened and cancelled at once costs its sender nothing, and lets it open the next
/// at once, while the receiver has begun to serve it.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-21.9>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelLimit {
    /// Streams at once; at least 1. Default 1,000, as in nghttp2.
    pub burst: u32,
    /// Streams per second in the long run. Default 33, as in nghttp2.
    pub per_second: u32,
}

impl Default for CancelLimit {
    fn default() -> Self {
        CancelLimit { burst: 1_000, per_second: 33 }
    }
}

/// What is left of a [`CancelLimit`]: a bucket that fills with time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CancelBudget {
    limit: CancelLimit,
    left: u32,
    filled_until: Instant,
}

impl CancelBudget {
    /// A full bucket.
    pub(crate) const fn new(limit: CancelLimit) -> Self {
        CancelBudget { limit, left: limit.burst, filled_until: Instant::ZERO }
    }

    /// The peer cancels a stream; false if that is one too many.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        self.fill(now);
        let has_one = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_one
    }

    fn fill(&mut self, now: Instant) {
        const SECOND: u128 = 1_000_000_000;
        let rate = u128::from(self.limit.per_second);
        let earned = u128::from((now - self.filled_until).as_nanos()) * rate / SECOND;
        if earned == 0 {
            return;
        }
        let lacking = self.limit.burst - self.left;
        if earned >= u128::from(lacking) {
            self.left = self.limit.burst;
            self.filled_until = now;
        } else {
            // Both are below the burst.
            self.left += earned as u32;
            self.filled_until += Duration::from_nanos((earned * SECOND / rate) as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// How many may be taken at once.
    fn drain(budget: &mut CancelBudget, now: Instant) -> u32 {
        (0..10_000).take_while(|_| budget.take(now)).count() as u32
    }

    #[test]
    fn a_burst_may_be_cancelled_and_then_so_many_per_second() {
        let mut budget = CancelBudget::new(CancelLimit { burst: 10, per_second: 2 });
        assert_eq!(drain(&mut budget, ms(0)), 10);
        assert_eq!(drain(&mut budget, ms(499)), 0);
        assert_eq!(drain(&mut budget, ms(500)), 1);
        // What is less than one is kept.
        assert_eq!(drain(&mut budget, ms(1_900)), 2);
        assert_eq!(drain(&mut budget, ms(2_000)), 1);
        assert_eq!(drain(&mut budget, ms(1_000_000)), 10);
    }

    #[test]
    fn a_rate_of_zero_leaves_the_burst() {
        let mut budget = CancelBudget::new(CancelLimit { burst: 2, per_second: 0 });
        assert_eq!(drain(&mut budget, ms(0)), 2);
        assert_eq!(drain(&mut budget, ms(1_000_000)), 0);
    }
}
