//! Watches over the size that was found: are full datagrams lost while smaller ones arrive?
//! <https://www.rfc-editor.org/rfc/rfc8899#section-4.3>
//!
//! Congestion loses full datagrams too, and a queue that is full takes a small one more easily. What
//! it does not do is to lose *all* of them for longer than a round trip while others get through:
//! that is what counts here.

use quipu_base::{Duration, Instant, PacketNumber};

use crate::config::MIN_UDP_PAYLOAD;
use crate::recovery::SentRecord;

/// Datagrams that must be lost in a row; our choice, as in s2n-quic.
const LEAST_LOSSES: u32 = 3;

/// Losses above the least size with none of their size acknowledged since the first of them left.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: PacketNumber,
    first_sent_at: Instant,
    last_sent_at: Instant,
    /// The smallest of those that were lost.
    least: u16,
    losses: u32,
}

/// What is known of the size of full datagrams.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    run: Option<Run>,
    /// The last full datagram that was acknowledged.
    full_acked: Option<PacketNumber>,
    /// The last smaller one.
    smaller_acked: Option<PacketNumber>,
    /// Packets that left before say nothing.
    since: Instant,
}

impl Watch {
    /// The size changed at `now`: the watch begins anew.
    pub(super) fn from(now: Instant) -> Self {
        Watch { since: now, ..Watch::default() }
    }

    /// A packet that is no probe was acknowledged, while full datagrams have `size`.
    #[inline]
    pub(super) fn on_acked(&mut self, record: &SentRecord, size: u16) {
        if size <= MIN_UDP_PAYLOAD {
            return;
        }
        let last =
            if record.bytes >= size { &mut self.full_acked } else { &mut self.smaller_acked };
        *last = (*last).max(Some(record.pn));
        let disproved = |run: &Run| record.pn >= run.first && record.bytes >= run.least;
        if self.run.as_ref().is_some_and(disproved) {
            self.run = None;
        }
    }

    /// A packet that is no probe was declared lost.
    pub(super) fn on_lost(&mut self, record: &SentRecord) {
        let overtaken = self.full_acked.is_some_and(|acked| acked > record.pn);
        if record.bytes <= MIN_UDP_PAYLOAD || overtaken || record.sent_at < self.since {
            return;
        }
        let run = self.run.get_or_insert(Run {
            first: record.pn,
            first_sent_at: record.sent_at,
            last_sent_at: record.sent_at,
            least: record.bytes,
            losses: 0,
        });
        run.losses += 1;
        run.least = run.least.min(record.bytes);
        run.last_sent_at = run.last_sent_at.max(record.sent_at);
    }

    /// Whether the path stopped carrying full datagrams; `rtt`: its round-trip time.
    #[inline]
    pub(super) fn is_black_hole(&self, rtt: Duration) -> bool {
        self.run.as_ref().is_some_and(|run| {
            run.losses >= LEAST_LOSSES
                && self.smaller_acked.is_some_and(|acked| acked > run.first)
                && run.last_sent_at - run.first_sent_at >= rtt
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);
    const FULL: u16 = 1_472;

    fn record(number: u64, millis: u64, bytes: u16) -> SentRecord {
        let sent_at = Instant::ZERO + Duration::from_millis(millis);
        let mut record = SentRecord::new(PacketNumber(number), sent_at);
        record.bytes = bytes;
        record
    }

    fn lose(watch: &mut Watch, packets: &[(u64, u64)]) {
        packets.iter().for_each(|&(number, at)| watch.on_lost(&record(number, at, FULL)));
    }

    fn ack(watch: &mut Watch, number: u64, bytes: u16) {
        watch.on_acked(&record(number, 0, bytes), FULL);
    }

    #[test]
    fn full_datagrams_lost_for_a_round_trip_beside_a_small_one_are_a_black_hole() {
        let mut watch = Watch::default();
        ack(&mut watch, 3, FULL);
        lose(&mut watch, &[(4, 0), (5, 0), (6, 1)]);
        ack(&mut watch, 7, 300);
        assert!(!watch.is_black_hole(RTT), "one burst of losses may be congestion");
        lose(&mut watch, &[(8, 50)]);
        assert!(watch.is_black_hole(RTT));
    }

    #[test]
    fn losses_of_everything_are_none() {
        let mut watch = Watch::default();
        ack(&mut watch, 1, 300);
        lose(&mut watch, &[(4, 0), (5, 10), (6, 100), (7, 200)]);
        assert!(!watch.is_black_hole(RTT));
        // The one that arrives at last is full itself.
        ack(&mut watch, 8, FULL);
        ack(&mut watch, 9, 300);
        assert!(!watch.is_black_hole(RTT));
    }

    #[test]
    fn a_full_datagram_that_arrives_ends_the_suspicion() {
        let mut watch = Watch::default();
        lose(&mut watch, &[(4, 0), (5, 0), (6, 1)]);
        ack(&mut watch, 7, FULL);
        ack(&mut watch, 8, 300);
        lose(&mut watch, &[(9, 50)]);
        assert!(!watch.is_black_hole(RTT));
        // One that was overtaken by a full one is congestion.
        lose(&mut watch, &[(2, 0)]);
        assert_eq!(watch.run.unwrap().first, PacketNumber(9));
    }

    #[test]
    fn a_smaller_one_that_is_as_large_as_one_lost_ends_it_too() {
        let mut watch = Watch::default();
        watch.on_lost(&record(4, 0, 1_300));
        lose(&mut watch, &[(5, 10), (6, 60)]);
        ack(&mut watch, 7, 1_250);
        assert!(watch.is_black_hole(RTT));
        ack(&mut watch, 8, 1_300);
        assert!(!watch.is_black_hole(RTT));
    }

    #[test]
    fn packets_of_the_least_size_and_of_before_a_change_do_not_count() {
        let mut watch = Watch::from(Instant::ZERO + Duration::from_millis(100));
        for number in 0..5 {
            watch.on_lost(&record(number, 200 + number * 50, MIN_UDP_PAYLOAD));
            watch.on_lost(&record(10 + number, number * 10, FULL));
        }
        assert!(watch.run.is_none());
    }
}
