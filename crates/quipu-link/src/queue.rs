//! The queue in front of a link: drop-tail, counted in bytes.

use std::collections::VecDeque;

use quipu_base::{Bytes, Duration, Instant, Rate};

use crate::InvalidConfig;
use crate::config::invalid;

/// When a drop-tail queue is full. The limit is one of bytes, headers included, and counts the
/// datagram that is being sent until its last bit has left. A link that sends nothing takes a
/// datagram of any size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueLimit {
    /// `multiple × rate × round trip`, but not less than `at_least`. No limit without a rate
    /// or a trace.
    BandwidthDelay {
        /// How many bandwidth-delay products, above zero; rounded down to whole bytes.
        multiple: f64,
        /// The round trip that counts. `None`: twice the link's own delay.
        round_trip: Option<Duration>,
        /// The smallest limit.
        at_least: Bytes,
    },
    /// This many bytes, headers included.
    Bytes(Bytes),
    /// Nothing is ever dropped.
    Unlimited,
}

impl QueueLimit {
    /// 1,500 B: one packet that fills an Ethernet frame, where a limit is told in packets.
    pub const PACKET: Bytes = Bytes(1_500);

    /// `multiple` bandwidth-delay products for a round trip of twice the link's delay, without a
    /// lower limit.
    pub const fn bandwidth_delay(multiple: f64) -> Self {
        QueueLimit::BandwidthDelay { multiple, round_trip: None, at_least: Bytes::ZERO }
    }

    /// As many bytes as `packets` packets of [`QueueLimit::PACKET`] have.
    pub const fn packets(packets: u64) -> Self {
        QueueLimit::Bytes(Self::PACKET.saturating_mul(packets))
    }

    pub(crate) fn validate(&self, field: &'static str) -> Result<(), InvalidConfig> {
        match *self {
            QueueLimit::BandwidthDelay { multiple, .. }
                if !(multiple.is_finite() && multiple > 0.0) =>
            {
                Err(invalid(field, multiple, "a finite number above 0"))
            }
            _ => Ok(()),
        }
    }

    /// The limit on a link of this rate and delay; [`Bytes::MAX`] if there is none.
    pub fn in_bytes(&self, rate: Option<Rate>, delay: Duration) -> Bytes {
        match *self {
            QueueLimit::BandwidthDelay { multiple, round_trip, at_least } => {
                let Some(rate) = rate else { return Bytes::MAX };
                let round_trip = round_trip.unwrap_or(delay.saturating_mul(2));
                // `as` rounds down and saturates.
                let product = Bytes((rate.bytes_in(round_trip).0 as f64 * multiple) as u64);
                product.max(at_least)
            }
            QueueLimit::Bytes(bytes) => bytes,
            QueueLimit::Unlimited => Bytes::MAX,
        }
    }
}

impl Default for QueueLimit {
    /// `max(2 × rate × round trip, 50 packets)`: our choice, for papers rarely tell theirs.
    fn default() -> Self {
        QueueLimit::BandwidthDelay {
            multiple: 2.0,
            round_trip: None,
            at_least: Self::PACKET.saturating_mul(50),
        }
    }
}

/// Datagrams that wait or are being sent, first in, first out.
#[derive(Debug)]
pub(crate) struct DropTail {
    limit: Bytes,
    /// Bytes taken so far, and those of them that have left. They may wrap: their difference is
    /// what counts.
    taken: u64,
    left: u64,
    waiting: VecDeque<Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    departs_at: Instant,
    /// Bytes taken up to this datagram's last.
    taken: u64,
}

impl DropTail {
    pub(crate) fn new(limit: Bytes) -> Self {
        DropTail { limit, taken: 0, left: 0, waiting: VecDeque::new() }
    }

    /// Lets go of what has left by `now`.
    pub(crate) fn advance(&mut self, now: Instant) {
        while let Some(first) = self.waiting.front()
            && first.departs_at <= now
        {
            self.left = first.taken;
            self.waiting.pop_front();
        }
    }

    /// Whether a datagram of `bytes` fits.
    pub(crate) fn admits(&self, bytes: Bytes) -> bool {
        self.waiting.is_empty() || self.occupied() + bytes <= self.limit
    }

    /// Takes a datagram that leaves at `departs_at`, not before those taken earlier.
    pub(crate) fn push(&mut self, bytes: Bytes, departs_at: Instant) {
        self.taken = self.taken.wrapping_add(bytes.0);
        self.waiting.push_back(Waiting { departs_at, taken: self.taken });
    }

    /// Bytes that waited or were being sent at the instant of the last [`Self::advance`].
    pub(crate) fn occupied(&self) -> Bytes {
        Bytes(self.taken.wrapping_sub(self.left))
    }

    /// Bytes that wait or are being sent at `now`, not before the last [`Self::advance`].
    pub(crate) fn occupied_at(&self, now: Instant) -> Bytes {
        let gone = self.waiting.partition_point(|datagram| datagram.departs_at <= now);
        let last_gone = gone.checked_sub(1).and_then(|last| self.waiting.get(last));
        let left = last_gone.map_or(self.left, |datagram| datagram.taken);
        Bytes(self.taken.wrapping_sub(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Option<Rate> = Some(Rate::from_mbit_per_sec(20));
    const DELAY: Duration = Duration::from_millis(20);

    #[test]
    fn the_default_is_two_bandwidth_delay_products_or_fifty_packets() {
        // 20 Mbit/s × 40 ms = 100,000 B.
        assert_eq!(QueueLimit::default().in_bytes(RATE, DELAY), Bytes(200_000));
        let short = Duration::from_millis(1);
        assert_eq!(QueueLimit::default().in_bytes(RATE, short), Bytes(75_000));
        assert_eq!(QueueLimit::default().in_bytes(None, DELAY), Bytes::MAX);
    }

    #[test]
    fn one_bandwidth_delay_product_can_be_set() {
        assert_eq!(QueueLimit::bandwidth_delay(1.0).in_bytes(RATE, DELAY), Bytes(100_000));
        let queue = QueueLimit::BandwidthDelay {
            multiple: 1.0,
            round_trip: Some(Duration::from_millis(30)),
            at_least: Bytes::ZERO,
        };
        assert_eq!(queue.in_bytes(RATE, DELAY), Bytes(75_000));
        assert_eq!(QueueLimit::packets(10).in_bytes(RATE, DELAY), Bytes(15_000));
    }

    #[test]
    fn the_last_byte_of_the_limit_is_usable() {
        let mut queue = DropTail::new(Bytes(1_000));
        queue.push(Bytes(600), Instant::from_nanos(10));
        assert!(queue.admits(Bytes(400)));
        assert!(!queue.admits(Bytes(401)));
        queue.advance(Instant::from_nanos(9));
        assert_eq!(queue.occupied(), Bytes(600));
        let at = |nanos| queue.occupied_at(Instant::from_nanos(nanos));
        assert_eq!((at(9), at(10)), (Bytes(600), Bytes::ZERO));
        queue.advance(Instant::from_nanos(10));
        assert_eq!(queue.occupied(), Bytes::ZERO);
        assert!(queue.admits(Bytes(5_000)), "an idle link takes any size");
    }
}
