//! Persistent congestion of a path, across acknowledgements and packet number spaces.

use quipu_base::{Duration, Instant};

use super::SentRecord;

/// Watches for persistent congestion: two ack-eliciting packets that are lost, sent further apart
/// than three probe timeouts, and nothing acknowledged that was sent between them.
/// <https://www.rfc-editor.org/rfc/rfc9002#section-7.6>
///
/// Ack-eliciting packets of the path are numbered across its packet number spaces, so that a row of
/// lost packets has no gap in its numbers if nothing between them was acknowledged. A gap that
/// nobody will ever fill, as of packets of a space that was discarded, ends a row.
// https://www.rfc-editor.org/rfc/rfc9002#section-7.6.2
//# Since network congestion is not affected by packet number spaces, persistent congestion
//# SHOULD consider packets sent across packet number spaces.
#[derive(Clone, Debug, Default)]
pub(super) struct PersistentCongestion {
    /// The number of the last ack-eliciting packet sent; zero before the first.
    last: u64,
    row: Option<Row>,
}

/// Lost packets with nothing acknowledged between them.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Their first and last number.
    first: u64,
    last: u64,
    /// When these two were sent.
    begins: Instant,
    ends: Instant,
}

impl PersistentCongestion {
    /// An ack-eliciting packet leaves on the path: its number.
    pub(super) fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Packets of a space were declared lost, in packet-number order. True if they establish
    /// persistent congestion, which then has to last as long again to be established once more.
    /// `probe_timeout`: without backoff.
    pub(super) fn on_lost(
        &mut self,
        lost: &[SentRecord],
        first_sample_at: Option<Instant>,
        probe_timeout: Duration,
    ) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.6.2
        //# The persistent congestion period SHOULD NOT start until there is at
        //# least one RTT sample.
        let Some(first_sample_at) = first_sample_at else { return false };
        self.row = self.row.filter(|row| row.begins >= first_sample_at);
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.6.1
        //# The RECOMMENDED value for kPersistentCongestionThreshold is 3, which results in behavior
        //# that is approximately equivalent to a TCP sender declaring an RTO after two TLPs.
        let period = probe_timeout.saturating_mul(3);
        let mut established = false;
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.6.2
        //# These two packets MUST be ack-eliciting, since a receiver is required to acknowledge only
        //# ack-eliciting packets within its maximum acknowledgment delay; see Section 13.2 of
        //# [QUIC-TRANSPORT].
        let eliciting = lost.iter().filter(|record| record.is_awaited());
        for record in eliciting.filter(|record| record.sent_at >= first_sample_at) {
            let row = self.row.and_then(|row| row.with(record)).unwrap_or(Row::of(record));
            established |= row.ends - row.begins > period;
            self.row = Some(row);
        }
        if established {
            self.row = self.row.map(Row::last_only);
        }
        established
    }

    /// Packets that were declared lost arrived after all.
    pub(super) fn on_late(&mut self, late: &[SentRecord]) {
        let is_in = |row: &Row| {
            let mut late = late.iter().filter(|record| record.is_awaited());
            late.any(|record| row.begins <= record.sent_at && record.sent_at <= row.ends)
        };
        self.row = self.row.filter(|row| !is_in(row));
    }
}

impl Row {
    fn of(record: &SentRecord) -> Row {
        let (number, sent_at) = (record.eliciting_number, record.sent_at);
        Row { first: number, last: number, begins: sent_at, ends: sent_at }
    }

    /// The row with a packet next to its last or first one: of two spaces, the one that is looked at
    /// later may hold the earlier packets.
    fn with(self, record: &SentRecord) -> Option<Row> {
        let (number, sent_at) = (record.eliciting_number, record.sent_at);
        if number == self.last + 1 {
            Some(Row { last: number, ends: sent_at, ..self })
        } else if number + 1 == self.first {
            Some(Row { first: number, begins: sent_at, ..self })
        } else {
            None
        }
    }

    fn last_only(self) -> Row {
        Row { first: self.last, begins: self.ends, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_base::PacketNumber;

    /// A probe timeout of 80 ms: the period is 240 ms.
    const TIMEOUT: Duration = Duration::from_millis(80);

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// Packets as (number among the ack-eliciting, milliseconds).
    fn records(packets: &[(u64, u64)]) -> Vec<SentRecord> {
        let record = |&(number, at): &(u64, u64)| {
            // Packets without content lie between: packet numbers have gaps.
            let mut record = SentRecord::new(PacketNumber(3 * number), ms(at));
            record.ack_eliciting = true;
            record.eliciting_number = number;
            record
        };
        packets.iter().map(record).collect()
    }

    /// What each loss of some packets tells.
    fn told(losses: &[&[(u64, u64)]], first_sample_at: Option<Instant>) -> Vec<bool> {
        let mut watch = PersistentCongestion::default();
        losses.iter().map(|lost| watch.on_lost(&records(lost), first_sample_at, TIMEOUT)).collect()
    }

    #[test]
    fn it_takes_an_unbroken_row_longer_than_three_timeouts() {
        let zero = Some(ms(0));
        assert_eq!(told(&[&[(1, 0), (2, 100), (3, 250)]], zero), [true]);
        assert_eq!(told(&[&[(1, 0), (2, 100), (4, 250)]], zero), [false]);
        assert_eq!(told(&[&[(1, 0), (2, 240)]], zero), [false]);
        assert_eq!(told(&[&[(1, 0), (2, 100), (3, 250)]], None), [false]);
        assert_eq!(told(&[&[(1, 0), (2, 100), (3, 250)]], Some(ms(50))), [false]);
    }

    #[test]
    fn a_row_goes_on_from_one_loss_to_the_next() {
        let zero = Some(ms(0));
        assert_eq!(told(&[&[(1, 0)], &[(2, 100)], &[(3, 250)]], zero), [false, false, true]);
        // Packet 3 was acknowledged.
        assert_eq!(told(&[&[(1, 0), (2, 100)], &[(4, 250)]], zero), [false, false]);
        // The earlier packets are those of a space that is looked at later.
        assert_eq!(told(&[&[(2, 100), (3, 250)], &[(1, 0)]], zero), [false, true]);
    }

    #[test]
    fn it_is_told_again_only_after_as_long_again() {
        let losses: [&[(u64, u64)]; 4] =
            [&[(1, 0), (2, 250)], &[(3, 260)], &[(4, 490)], &[(5, 491)]];
        assert_eq!(told(&losses, Some(ms(0))), [true, false, false, true]);
    }

    #[test]
    fn a_packet_of_the_row_that_arrives_late_ends_it() {
        let mut watch = PersistentCongestion::default();
        assert!(!watch.on_lost(&records(&[(1, 0), (2, 100)]), Some(ms(0)), TIMEOUT));
        watch.on_late(&records(&[(2, 100)]));
        assert!(!watch.on_lost(&records(&[(3, 250)]), Some(ms(0)), TIMEOUT));
        watch.on_late(&records(&[(2, 100)]));
        assert!(watch.on_lost(&records(&[(4, 491)]), Some(ms(0)), TIMEOUT));
    }
}
