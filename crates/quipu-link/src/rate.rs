//! How fast a link sends: a constant rate, first in, first out.

use quipu_base::{Bytes, Instant, Rate};

const NANOS_TIMES_BITS: u64 = 8 * 1_000_000_000;

/// Sends one datagram after the other at a constant rate.
///
/// The fraction of a nanosecond at which a datagram ends is kept for the next one, so that a
/// busy link moves exactly its rate; what is told is rounded up.
#[derive(Debug)]
pub(crate) struct ConstantRate {
    rate: Option<Rate>,
    /// When the last datagram's last bit has left, rounded down.
    free_at: Instant,
    /// The rest of it, in parts of `1 / rate` nanoseconds; below `rate`.
    fraction: u64,
}

impl ConstantRate {
    pub(crate) fn new(rate: Option<Rate>) -> Self {
        ConstantRate { rate, free_at: Instant::ZERO, fraction: 0 }
    }

    /// When the last bit of `bytes` leaves that are handed over at `now`.
    pub(crate) fn send(&mut self, now: Instant, bytes: Bytes) -> Instant {
        let Some(rate) = self.rate else { return now };
        if self.free_at < now {
            self.free_at = now;
            self.fraction = 0;
        }
        let rate = rate.bits_per_sec().max(1);
        let narrow = bytes.0.checked_mul(NANOS_TIMES_BITS);
        let (nanos, fraction) = match narrow.and_then(|work| work.checked_add(self.fraction)) {
            Some(work) => (work / rate, work % rate),
            None => {
                let work =
                    u128::from(bytes.0) * u128::from(NANOS_TIMES_BITS) + u128::from(self.fraction);
                let nanos = u64::try_from(work / u128::from(rate)).unwrap_or(u64::MAX);
                // A remainder is below the rate, which is a u64.
                (nanos, (work % u128::from(rate)) as u64)
            }
        };
        self.free_at += quipu_base::Duration::from_nanos(nanos);
        self.fraction = fraction;
        self.free_at + quipu_base::Duration::from_nanos(u64::from(fraction != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_link_moves_exactly_its_rate() {
        // 1,378 B at 55 Mbit/s take 200,436.36… ns: 1,000 of them end at 200,436,363.63… ns.
        let rate = Rate::from_mbit_per_sec(55);
        let mut sender = ConstantRate::new(Some(rate));
        assert_eq!(sender.send(Instant::ZERO, Bytes(1_378)).as_nanos(), 200_437);
        let last = (1..1_000).map(|_| sender.send(Instant::ZERO, Bytes(1_378))).last();
        assert_eq!(last, Some(Instant::ZERO + rate.time_for(Bytes(1_378_000))));
    }

    #[test]
    fn an_idle_link_starts_at_once() {
        let mut sender = ConstantRate::new(Some(Rate::from_bits_per_sec(8_000)));
        assert_eq!(sender.send(Instant::ZERO, Bytes(1)).as_nanos(), 1_000_000);
        assert_eq!(sender.send(Instant::from_nanos(7_000_000), Bytes(1)).as_nanos(), 8_000_000);
    }

    #[test]
    fn huge_amounts_saturate() {
        let mut sender = ConstantRate::new(Some(Rate::from_bits_per_sec(1)));
        assert_eq!(sender.send(Instant::ZERO, Bytes::MAX), Instant::FAR_FUTURE);
        assert_eq!(sender.send(Instant::ZERO, Bytes::MAX), Instant::FAR_FUTURE);
    }

    #[test]
    fn without_a_rate_all_leaves_at_once() {
        let now = Instant::from_nanos(3);
        assert_eq!(ConstantRate::new(None).send(now, Bytes::MAX), now);
    }
}
