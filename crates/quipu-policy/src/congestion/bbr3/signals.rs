//! What the last round trip showed: the most that was delivered, and whether there was loss.

use quipu_base::{Bytes, Rate};

use super::bounds::Limits;
use crate::congestion::RateSample;

/// Signals of the present round trip. It is counted apart from the others: with the first loss in a
/// round trip, one begins.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.5.10.3>
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signals {
    /// Bytes delivered when the present round trip began.
    began_at: Bytes,
    /// True if the present acknowledgement ended one.
    ended: bool,
    congested: bool,
    /// The greatest delivery rate.
    rate: Rate,
    /// The most that was delivered over a sample.
    volume: Bytes,
    /// Bytes of packets that were marked.
    marked: Bytes,
}

impl Signals {
    /// A sample came, with `delivered` bytes in all.
    pub(super) fn on_sample(&mut self, sample: &RateSample, delivered: Bytes) {
        self.rate = self.rate.max(sample.rate);
        self.volume = self.volume.max(sample.delivered);
        self.ended = sample.prior_delivered >= self.began_at;
        if self.ended {
            self.began_at = delivered;
        }
    }

    /// An acknowledgement came without a sample.
    pub(super) fn without_sample(&mut self) {
        self.ended = false;
    }

    /// True if the present acknowledgement ended a round trip.
    pub(super) fn round_ended(&self) -> bool {
        self.ended
    }

    /// What the path delivered at best.
    pub(super) fn seen(&self) -> Limits {
        Limits { rate: self.rate, in_flight: self.volume }
    }

    /// There was loss, with `delivered` bytes in all. True if it is the first of the round trip,
    /// which begins anew then.
    pub(super) fn on_congestion(&mut self, delivered: Bytes) -> bool {
        let first = !self.congested;
        if first {
            self.began_at = delivered;
        }
        self.congested = true;
        first
    }

    /// Packets of so many bytes were marked.
    pub(super) fn on_marked(&mut self, bytes: Bytes) {
        self.marked += bytes;
    }

    /// Bytes of packets marked since the round trip began.
    pub(super) fn marked(&self) -> Bytes {
        self.marked
    }

    /// True if there was loss in the round trip that ended; it counts once.
    pub(super) fn take_congestion(&mut self) -> bool {
        std::mem::take(&mut self.congested)
    }

    /// The acknowledgement was dealt with: if it ended a round trip, the next one starts with its
    /// `sample`.
    pub(super) fn advance(&mut self, sample: &RateSample) {
        if self.ended {
            self.rate = sample.rate;
            self.volume = sample.delivered;
            self.marked = Bytes::ZERO;
        }
    }

    /// What was seen until now is the doing of a probe, and says nothing of what follows.
    pub(super) fn forget(&mut self) {
        self.congested = false;
        self.rate = Rate::ZERO;
        self.volume = Bytes::ZERO;
        self.marked = Bytes::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_base::Duration;

    fn sample(prior: u64, mbit: u64, delivered: u64) -> RateSample {
        RateSample {
            rate: Rate::from_mbit_per_sec(mbit),
            delivered: Bytes(delivered),
            interval: Duration::from_millis(100),
            prior_delivered: Bytes(prior),
            in_flight_at_send: Bytes(0),
            lost: Bytes(0),
            limited: false,
        }
    }

    fn feed(signals: &mut Signals, prior: u64, mbit: u64, volume: u64, delivered: u64) -> bool {
        signals.on_sample(&sample(prior, mbit, volume), Bytes(delivered));
        signals.round_ended()
    }

    #[test]
    fn the_most_of_a_round_trip_counts_until_its_end() {
        let mut signals = Signals::default();
        assert!(feed(&mut signals, 0, 1, 100, 1_000));
        signals.advance(&sample(0, 1, 100));
        assert!(!feed(&mut signals, 500, 9, 900, 2_000));
        signals.advance(&sample(500, 9, 900));
        assert!(feed(&mut signals, 1_000, 5, 500, 3_000));
        assert_eq!(
            signals.seen(),
            Limits { rate: Rate::from_mbit_per_sec(9), in_flight: Bytes(900) }
        );
        signals.advance(&sample(1_000, 5, 500));
        assert_eq!(
            signals.seen(),
            Limits { rate: Rate::from_mbit_per_sec(5), in_flight: Bytes(500) }
        );
    }

    #[test]
    fn the_first_loss_begins_a_round_trip() {
        let mut signals = Signals::default();
        feed(&mut signals, 0, 1, 100, 1_000);
        assert!(signals.on_congestion(Bytes(5_000)));
        assert!(!signals.on_congestion(Bytes(6_000)));
        assert!(!feed(&mut signals, 4_999, 1, 100, 7_000));
        assert!(feed(&mut signals, 5_000, 1, 100, 8_000));
        assert!(signals.take_congestion());
        assert!(!signals.take_congestion());
    }
}
