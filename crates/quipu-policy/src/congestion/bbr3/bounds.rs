//! How much may be in flight, as losses show: for long, and until the next probe.

use quipu_base::{Bytes, Rate};

/// Doublings after which growth no longer speeds up.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.3.3.9>
const MOST_DOUBLINGS: u32 = 30;

/// `amount` times `factor`, rounded down, saturating; not a number gives zero.
pub(super) fn scaled(amount: Bytes, factor: f64) -> Bytes {
    Bytes((amount.0 as f64 * factor) as u64)
}

/// The same of a rate.
pub(super) fn scaled_rate(rate: Rate, factor: f64) -> Rate {
    Rate::from_bits_per_sec((rate.bits_per_sec() as f64 * factor) as u64)
}

/// True if so much was `lost` of what was `in_flight` that less should have been.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.5.10.2>
pub(super) fn is_too_high(lost: Bytes, in_flight: Bytes, threshold: f64) -> bool {
    lost.0 as f64 > in_flight.0 as f64 * threshold
}

/// What was in flight when the loss rate crossed the `threshold`: within the packet of `size`, with
/// which `in_flight` bytes were under way and of those `lost`.
///
/// `p` of its bytes crossed it, with `(lost before + p) / (in flight before + p) = threshold`; none
/// if it was crossed before.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.5.10.2>
pub(super) fn in_flight_at_loss(
    size: Bytes,
    in_flight: Bytes,
    lost: Bytes,
    threshold: f64,
) -> Bytes {
    let in_flight_before = in_flight.saturating_sub(size);
    let lost_before = lost.saturating_sub(size);
    let allowed = in_flight_before.0 as f64 * threshold;
    let prefix = (allowed - lost_before.0 as f64) / (1.0 - threshold);
    in_flight_before + Bytes(prefix.max(0.0) as u64)
}

/// The most that the path bears, as far as probes showed.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-2.9.2>
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongTerm {
    limit: Option<Bytes>,
    /// Bytes acknowledged since the last growth.
    acked: Bytes,
    /// Bytes to be acknowledged for growth by a packet; `None`: it does not grow.
    acked_per_packet: Option<Bytes>,
    doublings: u32,
}

impl LongTerm {
    /// The limit; `None`: no probe met one.
    pub(super) fn limit(&self) -> Option<Bytes> {
        self.limit
    }

    /// The limit less what is left to others: that share of it, at least a packet.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.3.3.9>
    pub(super) fn with_headroom(&self, share: f64, packet: Bytes, least: Bytes) -> Option<Bytes> {
        let limit = self.limit?;
        let headroom = scaled(limit, share).max(packet);
        Some(limit.saturating_sub(headroom).max(least))
    }

    /// The limit becomes `limit` if that is more; `None` is no limit.
    pub(super) fn lift_to(&mut self, limit: Option<Bytes>) {
        self.limit = self.limit.zip(limit).map(|(present, limit)| present.max(limit));
    }

    pub(super) fn set(&mut self, limit: Bytes) {
        self.limit = Some(limit);
    }

    /// So much was in flight without harm.
    pub(super) fn raise_to(&mut self, in_flight: Bytes) {
        self.limit = self.limit.map(|limit| limit.max(in_flight));
    }

    /// A probe is prepared: growth starts with a packet in the first round trip.
    pub(super) fn prepare_growth(&mut self) {
        self.doublings = 0;
        self.acked = Bytes::ZERO;
    }

    /// A round trip of growth begins, by twice as many packets as in the last one.
    pub(super) fn speed_up(&mut self, cwnd: Bytes, packet: Bytes) {
        self.acked_per_packet = Some(Bytes(cwnd.0 >> self.doublings).max(packet));
        self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
    }

    /// The limit was in use while those bytes were acknowledged.
    pub(super) fn grow(&mut self, acked: Bytes, packet: Bytes) {
        let (Some(limit), Some(per_packet)) = (&mut self.limit, self.acked_per_packet) else {
            return;
        };
        self.acked += acked;
        let packets = self.acked.0 / per_packet.0.max(1);
        self.acked -= per_packet.saturating_mul(packets);
        *limit += packet.saturating_mul(packets);
    }

    /// The probe is over.
    pub(super) fn stop_growth(&mut self) {
        self.acked_per_packet = None;
    }
}

/// What the path bore in the last round trips with loss, until the next probe.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.5.10.3>
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShortTerm {
    limits: Option<Limits>,
}

/// A pace and an amount in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    pub(super) rate: Rate,
    pub(super) in_flight: Bytes,
}

impl ShortTerm {
    pub(super) fn rate(&self) -> Option<Rate> {
        self.limits.map(|limits| limits.rate)
    }

    pub(super) fn in_flight(&self) -> Option<Bytes> {
        self.limits.map(|limits| limits.in_flight)
    }

    /// There was loss: unless there are limits, they are these at first.
    pub(super) fn begin(&mut self, limits: Limits) {
        self.limits.get_or_insert(limits);
    }

    /// A round trip with loss is over in which the path delivered `seen`: of the limits that much
    /// stays, or `beta` of them if that is more.
    pub(super) fn reduce(&mut self, seen: Limits, beta: f64) {
        self.limits = self.limits.map(|limits| Limits {
            rate: seen.rate.max(scaled_rate(limits.rate, beta)),
            in_flight: seen.in_flight.max(scaled(limits.in_flight, beta)),
        });
    }

    /// Limits become those of `other` where these are higher; without limits there, there are none.
    pub(super) fn raise_to(&mut self, other: &ShortTerm) {
        self.limits = self.limits.zip(other.limits).map(|(limits, other)| Limits {
            rate: limits.rate.max(other.rate),
            in_flight: limits.in_flight.max(other.in_flight),
        });
    }

    /// Loss until now says no more.
    pub(super) fn forget(&mut self) {
        self.limits = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes(1_000);

    #[test]
    fn the_threshold_is_crossed_within_the_packet_that_crosses_it() {
        // 2 % of 100,000 is allowed; 1,500 were lost before: 500 / 0.98 of the packet go.
        let at = in_flight_at_loss(PACKET, Bytes(101_000), Bytes(2_500), 0.02);
        assert_eq!(at, Bytes(100_510));
        let ratio = (1_500.0 + 510.0) / at.0 as f64;
        assert!((ratio - 0.02).abs() < 1e-5, "{ratio}");
        // Crossed before.
        assert_eq!(in_flight_at_loss(PACKET, Bytes(101_000), Bytes(4_000), 0.02), Bytes(100_000));
        assert!(!is_too_high(Bytes(2_000), Bytes(100_000), 0.02));
        assert!(is_too_high(Bytes(2_001), Bytes(100_000), 0.02));
    }

    #[test]
    fn the_limit_grows_by_1_2_4_8_packets_per_window_acknowledged() {
        let mut bounds = LongTerm::default();
        let cwnd = Bytes(64_000);
        bounds.set(cwnd);
        bounds.prepare_growth();
        let mut grown = Vec::new();
        for _ in 0..9 {
            bounds.speed_up(cwnd, PACKET);
            let before = bounds.limit().unwrap();
            for _ in 0..64 {
                bounds.grow(PACKET, PACKET);
            }
            grown.push((bounds.limit().unwrap() - before).0 / PACKET.0);
        }
        // At most a packet for each acknowledged: twice as much per round trip.
        assert_eq!(grown, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        bounds.stop_growth();
        bounds.grow(cwnd, PACKET);
        assert_eq!(bounds.limit(), Some(Bytes(64_000 + 255_000)));
    }

    #[test]
    fn headroom_is_a_share_and_at_least_a_packet() {
        let mut bounds = LongTerm::default();
        let with_headroom = |bounds: &LongTerm| bounds.with_headroom(0.15, PACKET, Bytes(4_000));
        assert_eq!(with_headroom(&bounds), None);
        bounds.raise_to(Bytes(90_000));
        assert_eq!(bounds.limit(), None, "there is none to be raised");
        for (limit, left) in [(100_000, 85_000), (6_000, 5_000), (4_500, 4_000)] {
            bounds.set(Bytes(limit));
            assert_eq!(with_headroom(&bounds), Some(Bytes(left)));
        }
    }

    #[test]
    fn a_lossy_round_leaves_what_was_delivered_or_beta() {
        let limits =
            |mbit, bytes| Limits { rate: Rate::from_mbit_per_sec(mbit), in_flight: Bytes(bytes) };
        let mut bounds = ShortTerm::default();
        bounds.begin(limits(100, 200_000));
        bounds.reduce(limits(80, 90_000), 0.7);
        assert_eq!(bounds.limits, Some(limits(80, 140_000)));
        bounds.begin(limits(100, 200_000));
        bounds.reduce(limits(50, 90_000), 0.7);
        assert_eq!(bounds.limits, Some(limits(56, 98_000)));
        bounds.forget();
        assert_eq!((bounds.rate(), bounds.in_flight()), (None, None));
    }

    #[test]
    fn absurd_amounts_end_in_no_overflow() {
        let mut bounds = LongTerm::default();
        bounds.set(Bytes::MAX);
        bounds.speed_up(Bytes::MAX, Bytes(0));
        bounds.grow(Bytes::MAX, Bytes::MAX);
        bounds.speed_up(Bytes(0), Bytes(0));
        bounds.grow(Bytes::MAX, Bytes::MAX);
        assert_eq!(bounds.limit(), Some(Bytes::MAX));
        assert_eq!(in_flight_at_loss(Bytes::MAX, Bytes(1), Bytes::MAX, 0.5), Bytes(0));
        assert_eq!(scaled(Bytes::MAX, 2.0), Bytes::MAX);
    }
}
