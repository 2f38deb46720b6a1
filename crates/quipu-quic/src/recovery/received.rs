//! What came in one packet number space, and when it must be acknowledged.

use quipu_base::{Duration, Instant, PacketNumber};
use smallvec::SmallVec;

/// Most ranges remembered; older packets count as duplicates. Our choice, as in quinn.
const MAX_RANGES: usize = 64;

/// Ranges from which on each new one is acknowledged at once, however patient the peer is, so that none
/// is forgotten before it was told. Our choice: half of what is kept, and fewer than are told at once.
const PRESSING_RANGES: usize = 24;

/// When to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckSettings {
    /// Acknowledge at the latest after so many ack-eliciting packets.
    pub(crate) every: u32,
    /// Acknowledge at the latest so long after an ack-eliciting packet.
    pub(crate) max_delay: Duration,
    /// Acknowledge at once what shows that an earlier packet was overtaken by so many: with 1 every
    /// packet that is out of order, with 0 none.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-6.2>
    pub(crate) reordering: u64,
    /// Of marks of congestion in a row, only the first is acknowledged at once.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-6.3>
    pub(crate) first_mark_only: bool,
}

impl AckSettings {
    /// What RFC 9000 recommends, with these limits.
    pub(crate) const fn new(every: u32, max_delay: Duration) -> Self {
        AckSettings { every, max_delay, reordering: 1, first_mark_only: false }
    }

    /// Everything is acknowledged at once.
    pub(crate) const AT_ONCE: AckSettings = AckSettings::new(1, Duration::ZERO);
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
    /// The largest packet number of the last acknowledgement.
    largest_acked: Option<u64>,
    /// The last packet came with a mark of congestion.
    was_marked: bool,
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
        let ranges = self.ranges.len();
        self.insert(pn.0);
        self.news = true;
        let marked = ecn == 3;
        let was_marked = std::mem::replace(&mut self.was_marked, marked);
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
        let before = self.largest_eliciting;
        self.largest_eliciting = before.max(Some(pn.0));
        let tells_of_loss = match settings.reordering {
            0 => false,
            1 => self.is_out_of_order(pn.0, before),
            threshold => self.was_overtaken(pn.0, threshold),
        };
        let pressing = self.ranges.len() > ranges && ranges >= PRESSING_RANGES;
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
        //# Similarly, packets marked with the ECN Congestion Experienced (CE) codepoint in the IP
        //# header SHOULD be acknowledged immediately, to reduce the peer's response time to
        //# congestion events.
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.2
        //# A receiver SHOULD send an ACK frame after receiving at least two ack-eliciting
        //# packets.
        let mark = marked && !(settings.first_mark_only && was_marked);
        if tells_of_loss || pressing || mark || self.eliciting_unacked >= settings.every {
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

    /// True if `pn` is not the next after the largest ack-eliciting packet before it.
    fn is_out_of_order(&self, pn: u64, before: Option<u64>) -> bool {
        match before {
            Some(before) if pn < before => true,
            Some(before) => {
                !self.ranges.last().is_some_and(|&(start, end)| start <= before && pn <= end)
            }
            None => false,
        }
    }

    /// True if an acknowledgement now tells the peer that a packet was overtaken by `threshold` others,
    /// or that `pn` came although the peer must think that.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-6.2>
    fn was_overtaken(&self, pn: u64, threshold: u64) -> bool {
        let reported = self.largest_acked.and_then(|largest| largest.checked_sub(threshold));
        let largest = self.largest_eliciting.unwrap_or_default();
        let missing = self.first_missing(reported.map_or(0, |reported| reported + 1));
        reported.is_some_and(|reported| pn <= reported)
            || missing < largest && largest - missing >= threshold
    }

    /// The lowest packet number from `from` on that has not come.
    fn first_missing(&self, from: u64) -> u64 {
        let lowest = from.max(self.floor);
        let at = self.ranges.partition_point(|&(_, end)| end < lowest);
        match self.ranges.get(at) {
            Some(&(start, end)) if start <= lowest => end + 1,
            _ => lowest,
        }
    }

    /// True if an acknowledgement is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due || self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// True if an acknowledgement is due that tells something new about ack-eliciting packets.
    #[inline]
    pub(crate) fn wants_ack_by(&self, now: Instant) -> bool {
        self.wants_ack() && self.is_due(now)
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
        self.largest_acked = self.ranges.last().map(|&(_, end)| end);
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
        let told = self.ranges.partition_point(|&(_, end)| end < largest.0);
        let told = told.min(self.ranges.len().saturating_sub(1));
        if let Some(&(_, end)) = told.checked_sub(1).and_then(|last| self.ranges.get(last)) {
            // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.3
            //# A receiver MUST retain an ACK Range unless it can ensure that it will not
            //# subsequently accept packets with numbers in that range.
            self.floor = self.floor.max(end + 1);
            self.ranges.drain(..told);
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
mod tests;
