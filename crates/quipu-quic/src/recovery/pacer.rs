//! Pacing: packets leave in bursts, at a rate somewhat above window per round trip.

use quipu_base::{Bytes, Instant, Rate};

use crate::config::Burst;

/// A bucket of bytes that may leave now. When it is empty, nothing leaves until it is full again,
/// so that bursts (and batches) form.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    tokens: Bytes,
    /// What the bucket holds.
    burst: Bytes,
    rule: Burst,
    rate: Rate,
    updated_at: Instant,
    release_at: Instant,
}

impl Pacer {
    pub(crate) fn new(now: Instant, datagram_size: Bytes, rule: Burst) -> Self {
        let burst = rule.bytes(Rate::ZERO, datagram_size);
        Pacer { tokens: burst, burst, rule, rate: Rate::ZERO, updated_at: now, release_at: now }
    }

    /// Sets the rate and, from it, the burst.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: Rate, datagram_size: Bytes) {
        if rate == self.rate {
            return;
        }
        self.refill(now);
        self.rate = rate;
        self.burst = self.rule.bytes(rate, datagram_size);
        self.tokens = self.tokens.min(self.burst);
        if self.release_at > now {
            self.release_at = now + self.rate.time_for(self.burst.saturating_sub(self.tokens));
        }
    }

    /// Takes a packet out, and says when the next may leave.
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: Bytes, datagram_size: Bytes) -> Instant {
        self.refill(now);
        self.tokens = self.tokens.saturating_sub(bytes);
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.7
        //# Senders MUST either use pacing or limit such bursts.
        if self.tokens < datagram_size && self.rate != Rate::ZERO {
            self.release_at = now + self.rate.time_for(self.burst.saturating_sub(self.tokens));
        }
        self.release_at
    }

    /// What left is over and done with: a burst may leave at once.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.tokens = self.burst;
        self.updated_at = now;
        self.release_at = now;
    }

    /// The pace; `None` while there is none and nothing is held back.
    pub(crate) fn rate(&self) -> Option<Rate> {
        (self.rate != Rate::ZERO).then_some(self.rate)
    }

    /// Nothing leaves before this.
    pub(crate) fn release_at(&self) -> Instant {
        self.release_at
    }

    fn refill(&mut self, now: Instant) {
        let earned = self.rate.bytes_in(now - self.updated_at);
        self.tokens = (self.tokens + earned).min(self.burst);
        // What is less than a byte is kept for the next time.
        if !earned.is_zero() || self.rate == Rate::ZERO {
            self.updated_at = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_base::Duration;

    const SIZE: Bytes = Bytes(1200);

    #[test]
    fn a_burst_leaves_at_once_then_nothing_until_the_bucket_is_full() {
        let mut pacer = Pacer::new(Instant::ZERO, SIZE, Burst::default());
        pacer.set_rate(Instant::ZERO, Rate::from_bytes_per_sec(1_200_000), SIZE);
        let mut release_at = Instant::ZERO;
        for _ in 0..10 {
            assert_eq!(release_at, Instant::ZERO);
            release_at = pacer.on_sent(Instant::ZERO, SIZE, SIZE);
        }
        assert_eq!(release_at, Instant::ZERO + Duration::from_millis(10));
    }

    #[test]
    fn a_restart_lets_a_burst_go() {
        let mut pacer = Pacer::new(Instant::ZERO, SIZE, Burst::default());
        pacer.set_rate(Instant::ZERO, Rate::from_bytes_per_sec(1_200_000), SIZE);
        for _ in 0..10 {
            pacer.on_sent(Instant::ZERO, SIZE, SIZE);
        }
        let now = Instant::ZERO + Duration::from_millis(1);
        assert!(pacer.release_at() > now);
        pacer.restart(now);
        assert_eq!(pacer.on_sent(now, SIZE, SIZE), now);
    }

    #[test]
    fn over_time_the_rate_is_kept() {
        let mut pacer = Pacer::new(Instant::ZERO, SIZE, Burst::default());
        let rate = Rate::from_mbit_per_sec(100);
        pacer.set_rate(Instant::ZERO, rate, SIZE);
        let mut now = Instant::ZERO;
        let mut sent = Bytes::ZERO;
        while now < Instant::ZERO + Duration::from_secs(1) {
            sent += SIZE;
            now = now.max(pacer.on_sent(now, SIZE, SIZE));
        }
        let expected = rate.bytes_in(Duration::from_secs(1));
        assert!(
            sent.0.abs_diff(expected.0) <= 2 * Burst::default().limit.0,
            "{sent} of {expected}"
        );
    }

    #[test]
    fn bursts_grow_with_the_rate_up_to_the_limit() {
        let mut pacer = Pacer::new(Instant::ZERO, SIZE, Burst::default());
        pacer.set_rate(Instant::ZERO, Rate::from_mbit_per_sec(10_000), SIZE);
        assert_eq!(pacer.burst, Burst::default().limit);
    }
}
