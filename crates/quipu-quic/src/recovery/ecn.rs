//! Explicit congestion notification of one path: whether packets are marked ECT(0), and whether the
//! peer's counts can be believed. <https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2>

use super::SentRecord;
use crate::wire::EcnCounts;

/// Packets that are marked at first, before the peer has confirmed any.
/// <https://www.rfc-editor.org/rfc/rfc9000#appendix-A.4>
const TESTING_PACKETS: u8 = 10;

/// What is marked and believed on one path, in its 1-RTT packet number space.
#[derive(Clone, Debug)]
pub(crate) struct EcnPath {
    state: State,
    /// Packets sent with ECT(0).
    sent: u64,
    /// Those among them that were declared lost.
    lost: u64,
    /// What the peer last reported.
    counts: EcnCounts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It was not asked for, or the path or the peer do not carry marks.
    Off,
    /// So many more packets are marked.
    Testing(u8),
    /// No packet is marked until one of those of the test is acknowledged.
    Unknown,
    /// Marks arrive.
    Capable,
}

impl EcnPath {
    /// A path that is tested if `wanted`, and else never marked.
    pub(crate) fn new(wanted: bool) -> Self {
        EcnPath {
            state: if wanted { State::Testing(TESTING_PACKETS) } else { State::Off },
            sent: 0,
            lost: 0,
            counts: EcnCounts { ect0: 0, ect1: 0, ce: 0 },
        }
    }

    /// A packet leaves: whether it is marked ECT(0).
    pub(crate) fn on_sent(&mut self) -> bool {
        let marked = match self.state {
            State::Off | State::Unknown => false,
            State::Capable => true,
            State::Testing(left) => {
                self.state = if left > 1 { State::Testing(left - 1) } else { State::Unknown };
                true
            }
        };
        self.sent += u64::from(marked);
        marked
    }

    /// Packets were declared lost. If all that were marked for the test were, the path drops what
    /// is marked.
    pub(crate) fn on_lost(&mut self, lost: &[SentRecord]) {
        self.lost += lost.iter().filter(|record| record.ect).count() as u64;
        if self.state == State::Unknown && self.lost >= self.sent {
            self.state = State::Off;
        }
    }

    /// An ACK frame came that newly acknowledges `acked` and reports `counts`. `advances`: its
    /// largest packet number is newly acknowledged; only then do the counts say anything. How many
    /// packets it newly reports as marked CE.
    pub(crate) fn on_acked(
        &mut self,
        acked: &[SentRecord],
        counts: Option<EcnCounts>,
        advances: bool,
    ) -> u64 {
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.1
        //# An endpoint MUST NOT fail ECN validation as a result of processing an ACK frame that
        //# does not increase the largest acknowledged packet number.
        if self.state == State::Off || !advances {
            return 0;
        }
        let newly_acked = acked.iter().filter(|record| record.ect).count() as u64;
        let Some(now) = counts else {
            // https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.1
            //# If an ACK frame newly acknowledges a packet that the endpoint sent
            //# with either the ECT(0) or ECT(1) codepoint set, ECN validation fails
            //# if the corresponding ECN counts are not present in the ACK frame.
            if newly_acked > 0 {
                self.state = State::Off;
            }
            return 0;
        };
        let before = std::mem::replace(&mut self.counts, now);
        let marks = now.ce.checked_sub(before.ce);
        let arrived = now.ect0.checked_sub(before.ect0).zip(marks).map(|(ect0, ce)| ect0 + ce);
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.1
        //# ECN validation also fails if the sum of the increase in ECT(0) and
        //# ECN-CE counts is less than the number of newly acknowledged packets
        //# that were originally sent with an ECT(0) marking. [...]
        //# ECN validation can fail if the received total count for either ECT(0)
        //# or ECT(1) exceeds the total number of packets sent with each
        //# corresponding ECT codepoint.
        let sound = arrived.is_some_and(|arrived| arrived >= newly_acked)
            && now.ect0.saturating_add(now.ce) <= self.sent
            && now.ect1 == 0;
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.2
        //# If validation fails, then the endpoint MUST disable ECN. Network routing and path
        //# elements can change mid-connection; an endpoint MUST disable ECN if validation later
        //# fails.
        if !sound {
            self.state = State::Off;
            return 0;
        }
        if newly_acked > 0 {
            self.state = State::Capable;
        }
        marks.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_base::{Instant, PacketNumber};

    fn records(count: u64, ect: bool) -> Vec<SentRecord> {
        let record = |number| {
            let mut record = SentRecord::new(PacketNumber(number), Instant::ZERO);
            record.ect = ect;
            record
        };
        (0..count).map(record).collect()
    }

    fn counts(ect0: u64, ect1: u64, ce: u64) -> Option<EcnCounts> {
        Some(EcnCounts { ect0, ect1, ce })
    }

    fn after_sending(count: u64) -> EcnPath {
        let mut path = EcnPath::new(true);
        assert!((0..count).all(|_| path.on_sent()));
        path
    }

    #[test]
    fn ten_packets_are_marked_and_more_once_one_is_confirmed() {
        let mut path = after_sending(10);
        assert!(!path.on_sent());
        assert_eq!(path.on_acked(&records(2, true), counts(2, 0, 0), true), 0);
        assert!(path.on_sent());
    }

    #[test]
    fn new_marks_are_told_once() {
        let mut path = after_sending(10);
        assert_eq!(path.on_acked(&records(4, true), counts(2, 0, 2), true), 2);
        assert_eq!(path.on_acked(&records(1, true), counts(3, 0, 2), true), 0);
        // An acknowledgement that was overtaken says nothing.
        assert_eq!(path.on_acked(&records(1, true), counts(0, 0, 0), false), 0);
        assert_eq!(path.state, State::Capable);
    }

    #[test]
    fn counts_that_cannot_be_end_the_marking() {
        let wrong = [None, counts(1, 0, 0), counts(0, 2, 0), counts(11, 0, 0), counts(2, 1, 0)];
        for counts in wrong {
            let mut path = after_sending(10);
            assert_eq!(path.on_acked(&records(2, true), counts, true), 0);
            assert!(!path.on_sent(), "{counts:?}");
        }
    }

    #[test]
    fn counts_that_fall_end_the_marking() {
        let mut path = after_sending(10);
        path.on_acked(&records(4, true), counts(4, 0, 0), true);
        path.on_acked(&records(1, true), counts(3, 0, 2), true);
        assert!(!path.on_sent());
    }

    #[test]
    fn a_path_that_drops_all_that_is_marked_is_not_marked_again() {
        let mut path = after_sending(10);
        path.on_lost(&records(9, true));
        path.on_lost(&records(5, false));
        assert_eq!(path.state, State::Unknown);
        path.on_lost(&records(1, true));
        assert_eq!(path.on_acked(&records(3, false), None, true), 0);
        assert_eq!(path.state, State::Off);
    }
}
