//! What came in one packet number space, and when it must be acknowledged.

use quipu_base::{Duration, Instant, PacketNumber};
use smallvec::SmallVec;

/// Most ranges remembered; older packets count as duplicates. Our choice, as in quinn.
const MAX_RANGES: usize = 64;

/// When to acknowledge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckSettings {
    /// Acknowledge at the latest after so many ack-eliciting packets.
    pub(crate) every: u32,
    /// Acknowledge at the latest so long after an ack-eliciting packet.
    pub(crate) max_delay: Duration,
}

/// Packets received in one packet number space.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    /// Disjoint inclusive ranges, in ascending order.
    ranges: SmallVec<[(u64, u64); 4]>,
    /// Packets below this are not told apart any more.
    floor: u64,
    largest_at: Instant,
    largest_eliciting: Option<u64>,
    eliciting_unacked: u32,
    deadline: Option<Instant>,
    due: bool,
    /// Something came since the last acknowledgement.
    news: bool,
    ecn: [u64; 3],
}

impl Received {
    /// True if the packet came before, or is too old to tell.
    pub(crate) fn is_duplicate(&self, pn: PacketNumber) -> bool {
        if pn.0 < self.floor {
            return true;
        }
        if self.ranges.last().is_none_or(|&(_, end)| end < pn.0) {
            return false;
        }
        let at = self.ranges.partition_point(|&(_, end)| end < pn.0);
        self.ranges.get(at).is_some_and(|&(start, _)| start <= pn.0)
    }

    /// Takes note of a packet that is no duplicate.
    pub(crate) fn on_packet(
        &mut self,
        now: Instant,
        pn: PacketNumber,
        ack_eliciting: bool,
        ecn: u8,
        settings: &AckSettings,
    ) {
        let largest = self.largest();
        if largest.is_none_or(|largest| pn > largest) {
            self.largest_at = now;
        }
        self.insert(pn.0);
        self.news = true;
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.4.1
        //# Even if an endpoint does not set an ECT field in packets it sends, the endpoint MUST
        //# provide feedback about ECN markings it receives, if these are accessible.
        if let 1..=3 = ecn {
            // ECT(1) is 1, ECT(0) is 2, CE is 3.
            let count = match ecn {
                2 => 0,
                1 => 1,
                _ => 2,
            };
            self.ecn[count] += 1;
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
        //# An endpoint MUST NOT send a non-ack-eliciting packet in response to a
        //# non-ack-eliciting packet, even if there are packet gaps that precede the received
        //# packet.
        if !ack_eliciting {
            return;
        }
        self.eliciting_unacked += 1;
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
        //# In order to assist loss detection at the sender, an endpoint SHOULD generate and send an
        //# ACK frame without delay when it receives an ack-eliciting packet either: [...] when the
        //# received packet has a packet number less than another ack-eliciting packet that has been
        //# received, or [...] when the packet has a packet number larger than the highest-numbered
        //# ack-eliciting packet that has been received and there are missing packets between that
        //# packet and this packet.
        let out_of_order = match self.largest_eliciting {
            Some(before) if pn.0 < before => true,
            Some(before) => {
                !self.ranges.last().is_some_and(|&(start, end)| start <= before && pn.0 <= end)
            }
            None => false,
        };
        self.largest_eliciting = self.largest_eliciting.max(Some(pn.0));
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
        //# Similarly, packets marked with the ECN Congestion Experienced (CE) codepoint in the IP
        //# header SHOULD be acknowledged immediately, to reduce the peer's response time to
        //# congestion events.
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.2
        //# A receiver SHOULD send an ACK frame after receiving at least two ack-eliciting
        //# packets.
        if out_of_order || ecn == 3 || self.eliciting_unacked >= settings.every {
            self.due = true;
        }
        if self.deadline.is_none() {
            // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
            //# Every packet SHOULD be acknowledged at least once, and ack-eliciting packets MUST
            //# be acknowledged at least once within the maximum delay an endpoint communicated
            //# using the max_ack_delay transport parameter; see Section 18.2. An endpoint MUST
            //# acknowledge all ack-eliciting Initial and Handshake packets immediately and all
            //# ack-eliciting 0-RTT and 1-RTT packets within its advertised max_ack_delay, with
            //# the following exception.
            self.deadline = Some(now + settings.max_delay);
        }
    }

    /// True if an acknowledgement is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due || self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// When an acknowledgement becomes due by time.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// True if an acknowledgement would tell something new about ack-eliciting packets.
    pub(crate) fn wants_ack(&self) -> bool {
        self.eliciting_unacked > 0
    }

    /// True if anything came since the last acknowledgement.
    pub(crate) fn has_news(&self) -> bool {
        self.news
    }

    /// No path can carry the acknowledgement now: it is due with the next packet.
    pub(crate) fn defer(&mut self) {
        self.due = true;
        self.deadline = None;
    }

    /// The largest packet number that came.
    pub(crate) fn largest(&self) -> Option<PacketNumber> {
        self.ranges.last().map(|&(_, end)| PacketNumber(end))
    }

    /// How long the largest packet has waited for its acknowledgement.
    pub(crate) fn ack_delay(&self, now: Instant) -> Duration {
        now - self.largest_at
    }

    /// What came, as inclusive ranges, the highest first.
    pub(crate) fn ranges(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + Clone + '_ {
        self.ranges.iter().rev().copied()
    }

    /// Packets that came marked ECT(0), ECT(1) and CE; `None` if none was marked.
    pub(crate) fn ecn_counts(&self) -> Option<[u64; 3]> {
        (self.ecn != [0; 3]).then_some(self.ecn)
    }

    /// An acknowledgement of all of it was written.
    pub(crate) fn on_ack_written(&mut self) {
        self.eliciting_unacked = 0;
        self.deadline = None;
        self.due = false;
        self.news = false;
    }

    /// The peer has an acknowledgement that covered everything up to `largest`.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-13.2.4>
    pub(crate) fn on_ack_of_ack(&mut self, largest: PacketNumber) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.3
        //# After receiving acknowledgments for an ACK frame, the receiver SHOULD stop tracking
        //# those acknowledged ACK Ranges. Receivers can discard all ACK Ranges, but they MUST
        //# retain the largest packet number that has been successfully processed, as that is used
        //# to recover packet numbers from subsequent packets; see Section 17.1.
        while self.ranges.len() > 1 && self.ranges[0].1 < largest.0 {
            // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.3
            //# A receiver MUST retain an ACK Range unless it can ensure that it will not
            //# subsequently accept packets with numbers in that range.
            self.floor = self.floor.max(self.ranges[0].1 + 1);
            self.ranges.remove(0);
        }
    }

    /// Number of ranges remembered.
    pub(crate) fn range_count(&self) -> usize {
        self.ranges.len()
    }

    fn insert(&mut self, pn: u64) {
        if let Some(last) = self.ranges.last_mut() {
            if pn == last.1 + 1 {
                last.1 = pn;
                return;
            }
            if pn > last.1 {
                self.ranges.push((pn, pn));
                self.trim();
                return;
            }
        } else {
            self.ranges.push((pn, pn));
            return;
        }
        let at = self.ranges.partition_point(|&(_, end)| end < pn);
        let (start, _) = self.ranges[at];
        if start <= pn {
            return;
        }
        let joins_next = start == pn + 1;
        let joins_previous = at > 0 && self.ranges[at - 1].1 + 1 == pn;
        match (joins_previous, joins_next) {
            (true, true) => {
                self.ranges[at - 1].1 = self.ranges[at].1;
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at - 1].1 = pn,
            (false, true) => self.ranges[at].0 = pn,
            (false, false) => {
                self.ranges.insert(at, (pn, pn));
                self.trim();
            }
        }
    }

    fn trim(&mut self) {
        if self.ranges.len() > MAX_RANGES {
            self.floor = self.floor.max(self.ranges[0].1 + 1);
            self.ranges.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const SETTINGS: AckSettings = AckSettings { every: 2, max_delay: Duration::from_millis(25) };

    fn receive(received: &mut Received, pn: u64) {
        received.on_packet(Instant::ZERO, PacketNumber(pn), true, 0, &SETTINGS);
    }

    #[test]
    fn every_second_packet_makes_an_acknowledgement_due() {
        let mut received = Received::default();
        receive(&mut received, 0);
        assert!(!received.is_due(Instant::ZERO));
        assert!(received.is_due(Instant::ZERO + Duration::from_millis(25)));
        receive(&mut received, 1);
        assert!(received.is_due(Instant::ZERO));
        received.on_ack_written();
        assert!(!received.wants_ack());
    }

    #[test]
    fn a_gap_or_a_late_packet_makes_it_due_at_once() {
        let mut received = Received::default();
        receive(&mut received, 0);
        receive(&mut received, 1);
        received.on_ack_written();
        receive(&mut received, 3);
        assert!(received.is_due(Instant::ZERO));
        received.on_ack_written();
        receive(&mut received, 2);
        assert!(received.is_due(Instant::ZERO));
    }

    #[test]
    fn packets_below_what_was_settled_count_as_duplicates() {
        let mut received = Received::default();
        for pn in [0, 1, 5, 6, 9] {
            receive(&mut received, pn);
        }
        received.on_ack_of_ack(PacketNumber(6));
        assert!(received.is_duplicate(PacketNumber(3).min(PacketNumber(1))));
        assert!(!received.is_duplicate(PacketNumber(3)));
        assert_eq!(received.ranges().collect::<Vec<_>>(), [(9, 9), (5, 6)]);
    }

    /// A peer that leaves a gap before each packet, in whatever order.
    #[test]
    fn the_list_of_ranges_is_bounded_and_its_newest_part_stays() {
        for order in [|nth: u64| nth, |nth| 20_000 - nth, |nth| nth * 7_919 % 20_011] {
            let mut received = Received::default();
            for nth in 0..10_000 {
                let pn = 2 * order(nth);
                if !received.is_duplicate(PacketNumber(pn)) {
                    receive(&mut received, pn);
                }
                assert!(received.range_count() <= MAX_RANGES);
            }
            assert!(received.ranges.capacity() <= 2 * MAX_RANGES);
        }
    }

    proptest! {
        #[test]
        fn no_packet_is_taken_twice_however_many_gaps_there_are(
            packets in proptest::collection::vec(0u64..2_000, 1..600),
            acked in proptest::collection::vec((0usize..600, 0u64..2_000), 0..4),
        ) {
            let mut received = Received::default();
            let mut model = BTreeSet::new();
            for (nth, pn) in packets.into_iter().enumerate() {
                if model.contains(&pn) {
                    prop_assert!(received.is_duplicate(PacketNumber(pn)));
                }
                if !received.is_duplicate(PacketNumber(pn)) {
                    model.insert(pn);
                    receive(&mut received, pn);
                }
                for &(_, largest) in acked.iter().filter(|(when, _)| *when == nth) {
                    received.on_ack_of_ack(PacketNumber(largest));
                }
                // What is told came, and the newest is told.
                let told: Vec<u64> =
                    received.ranges().flat_map(|(start, end)| start..=end).collect();
                prop_assert!(told.iter().all(|pn| model.contains(pn)));
                prop_assert_eq!(told.iter().max(), model.last());
            }
        }

        #[test]
        fn ranges_equal_a_set(packets in proptest::collection::vec(0u64..60, 1..80)) {
            let mut received = Received::default();
            let mut model = BTreeSet::new();
            for pn in packets {
                prop_assert_eq!(received.is_duplicate(PacketNumber(pn)), model.contains(&pn));
                if model.insert(pn) {
                    receive(&mut received, pn);
                }
            }
            let listed: BTreeSet<u64> =
                received.ranges().flat_map(|(start, end)| start..=end).collect();
            prop_assert_eq!(listed, model);
            let ranges: Vec<_> = received.ranges().collect();
            prop_assert!(ranges.windows(2).all(|pair| pair[1].1 + 1 < pair[0].0));
        }
    }
}
