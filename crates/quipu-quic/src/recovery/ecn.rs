//! Explicit congestion notification of one path: whether packets are marked ECT(0), and whether the
//! peer's counts can be believed. <https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2>

use quipu_base::{Duration, Instant};

use super::SentRecord;
use crate::wire::EcnCounts;

/// Packets that are marked at first, before the peer has confirmed any.
/// <https://www.rfc-editor.org/rfc/rfc9000#appendix-A.4>
const TESTING_PACKETS: u8 = 10;

/// After the first failure so long without marks until the path is tested again; twice as long after
/// each further one. Our choice.
const FIRST_RETRY: Duration = Duration::from_secs(60);
/// The longest time without marks between two tests; our choice.
const LAST_RETRY: Duration = Duration::from_secs(3_600);

/// What is marked and believed on one path, in its 1-RTT packet number space.
#[derive(Clone, Debug)]
pub(crate) struct EcnPath {
    state: State,
    /// Packets ever sent with ECT(0): the peer counts them from the start of the space.
    sent: u64,
    /// What the peer last reported.
    counts: EcnCounts,
    /// When the present test began: packets that left before say nothing of it.
    tested_from: Instant,
    /// Packets of the present test, and those among them that were declared lost.
    marked: u64,
    lost: u64,
    /// How long no packet is marked after the next failure.
    retry_after: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It was not asked for.
    Off,
    /// So many more packets are marked.
    Testing(u8),
    /// No packet is marked until one of those of the test is acknowledged.
    Unknown,
    /// Marks arrive.
    Capable,
    /// The path or the peer did not carry marks; it is tested again from this instant on.
    Failed(Instant),
}

impl EcnPath {
    /// A path that is tested if `wanted`, and else never marked.
    pub(crate) fn new(wanted: bool) -> Self {
        EcnPath {
            state: if wanted { State::Testing(TESTING_PACKETS) } else { State::Off },
            sent: 0,
            counts: EcnCounts { ect0: 0, ect1: 0, ce: 0 },
            tested_from: Instant::ZERO,
            marked: 0,
            lost: 0,
            retry_after: FIRST_RETRY,
        }
    }

    /// From now on the path leads through another network, which is tested anew if `wanted`. What
    /// the peer counts goes on, since it counts for the packet number space.
    pub(crate) fn restart(&mut self, now: Instant, wanted: bool) {
        self.state = if wanted { State::Testing(TESTING_PACKETS) } else { State::Off };
        self.tested_from = now;
        (self.marked, self.lost) = (0, 0);
        self.retry_after = FIRST_RETRY;
    }

    /// A packet leaves: whether it is marked ECT(0).
    pub(crate) fn on_sent(&mut self, now: Instant) -> bool {
        let marked = match self.state {
            State::Off | State::Unknown => false,
            State::Capable => true,
            State::Failed(until) if now < until => false,
            // https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.2
            //# Even if validation fails, an endpoint MAY revalidate ECN for the same path at any later
            //# time in the connection.
            State::Failed(_) => {
                self.test(now);
                true
            }
            State::Testing(left) => {
                self.state = if left > 1 { State::Testing(left - 1) } else { State::Unknown };
                true
            }
        };
        self.sent += u64::from(marked);
        self.marked += u64::from(marked);
        marked
    }

    /// A test begins with the packet that leaves now.
    fn test(&mut self, now: Instant) {
        self.state = State::Testing(TESTING_PACKETS - 1);
        self.tested_from = now;
        (self.marked, self.lost) = (0, 0);
    }

    // https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.2
    //# If validation fails, then the endpoint MUST disable ECN. Network routing and path elements can
    //# change mid-connection; an endpoint MUST disable ECN if validation later fails.
    fn fail(&mut self, now: Instant) {
        self.state = State::Failed(now + self.retry_after);
        self.retry_after = self.retry_after.saturating_mul(2).min(LAST_RETRY);
    }

    /// Packets were declared lost. If all that were marked for the test were, the path drops what
    /// is marked.
    pub(crate) fn on_lost(&mut self, now: Instant, lost: &[SentRecord]) {
        let of_test = |record: &&SentRecord| record.ect && record.sent_at >= self.tested_from;
        self.lost += lost.iter().filter(of_test).count() as u64;
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2
        //# If all packets marked with non-zero ECN codepoints are subsequently lost, it can disable
        //# marking on the assumption that the marking caused the loss.
        if self.state == State::Unknown && self.lost >= self.marked {
            self.fail(now);
        }
    }

    /// An ACK frame came that newly acknowledges `acked` and reports `counts`. `increases`:
    /// it acknowledges a larger packet number than all before; only then do the counts say anything. How
    /// many packets it newly reports as marked CE.
    pub(crate) fn on_acked(
        &mut self,
        now: Instant,
        acked: &[SentRecord],
        counts: Option<EcnCounts>,
        increases: bool,
    ) -> u64 {
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.1
        //# An endpoint MUST NOT fail ECN validation as a result of processing an ACK frame that
        //# does not increase the largest acknowledged packet number.
        if self.state == State::Off || !increases {
            return 0;
        }
        if let State::Failed(_) = self.state {
            // What comes late of the last test is no news of the next one.
            self.counts = counts.unwrap_or(self.counts);
            return 0;
        }
        let newly_acked = acked.iter().filter(|record| record.ect).count() as u64;
        let Some(told) = counts else {
            // https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.1
            //# If an ACK frame newly acknowledges a packet that the endpoint sent
            //# with either the ECT(0) or ECT(1) codepoint set, ECN validation fails
            //# if the corresponding ECN counts are not present in the ACK frame.
            if newly_acked > 0 {
                self.fail(now);
            }
            return 0;
        };
        let before = std::mem::replace(&mut self.counts, told);
        let marks = told.ce.checked_sub(before.ce);
        let arrived = told.ect0.checked_sub(before.ect0).zip(marks).map(|(ect0, ce)| ect0 + ce);
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.1
        //# ECN validation also fails if the sum of the increase in ECT(0) and
        //# ECN-CE counts is less than the number of newly acknowledged packets
        //# that were originally sent with an ECT(0) marking. [...]
        //# ECN validation can fail if the received total count for either ECT(0)
        //# or ECT(1) exceeds the total number of packets sent with each
        //# corresponding ECT codepoint.
        let sound = arrived.is_some_and(|arrived| arrived >= newly_acked)
            && told.ect0.saturating_add(told.ce) <= self.sent
            // None is sent as ECT(1): the path changes the marks. What it did before an earlier test
            // failed stays in the count.
            && told.ect1 == before.ect1;
        if !sound {
            self.fail(now);
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
    use quipu_base::PacketNumber;

    const NOW: Instant = Instant::ZERO;

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
        assert!((0..count).all(|_| path.on_sent(NOW)));
        path
    }

    #[test]
    fn ten_packets_are_marked_and_more_once_one_is_confirmed() {
        let mut path = after_sending(10);
        assert!(!path.on_sent(NOW));
        assert_eq!(path.on_acked(NOW, &records(2, true), counts(2, 0, 0), true), 0);
        assert!(path.on_sent(NOW));
    }

    #[test]
    fn new_marks_are_told_once() {
        let mut path = after_sending(10);
        assert_eq!(path.on_acked(NOW, &records(4, true), counts(2, 0, 2), true), 2);
        assert_eq!(path.on_acked(NOW, &records(1, true), counts(3, 0, 2), true), 0);
        // An acknowledgement that was overtaken says nothing.
        assert_eq!(path.on_acked(NOW, &records(1, true), counts(0, 0, 0), false), 0);
        assert_eq!(path.state, State::Capable);
    }

    #[test]
    fn counts_that_cannot_be_end_the_marking() {
        let wrong = [None, counts(1, 0, 0), counts(0, 2, 0), counts(11, 0, 0), counts(2, 1, 0)];
        for counts in wrong {
            let mut path = after_sending(10);
            assert_eq!(path.on_acked(NOW, &records(2, true), counts, true), 0);
            assert!(!path.on_sent(NOW), "{counts:?}");
        }
    }

    #[test]
    fn counts_that_fall_end_the_marking() {
        let mut path = after_sending(10);
        path.on_acked(NOW, &records(4, true), counts(4, 0, 0), true);
        path.on_acked(NOW, &records(1, true), counts(3, 0, 2), true);
        assert!(!path.on_sent(NOW));
    }

    #[test]
    fn a_path_that_drops_all_that_is_marked_is_not_marked_again() {
        let mut path = after_sending(10);
        path.on_lost(NOW, &records(9, true));
        path.on_lost(NOW, &records(5, false));
        assert_eq!(path.state, State::Unknown);
        path.on_lost(NOW, &records(1, true));
        assert_eq!(path.on_acked(NOW, &records(3, false), None, true), 0);
        assert_eq!(path.state, State::Failed(NOW + FIRST_RETRY));
    }

    fn after(path: &mut EcnPath, wait: Duration) -> Instant {
        match path.state {
            State::Failed(until) => until + wait,
            state => panic!("{state:?}"),
        }
    }

    #[test]
    fn after_a_failure_the_path_is_tested_again_ever_more_rarely() {
        let mut path = after_sending(10);
        let mut now = NOW;
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            path.on_acked(now, &records(2, true), None, true);
            let due = after(&mut path, Duration::ZERO);
            assert_eq!(due - now, Duration::from_secs(60 * minutes));
            assert!(!path.on_sent(due - Duration::from_nanos(1)));
            now = due;
            assert!((0..10).all(|_| path.on_sent(now)));
            assert!(!path.on_sent(now), "ten packets again");
        }
    }

    #[test]
    fn a_second_test_counts_from_where_the_first_one_ended() {
        // The path bleached the first three, and changed one of the rest to ECT(1).
        let mut path = after_sending(10);
        assert_eq!(path.on_acked(NOW, &records(4, true), counts(0, 1, 0), true), 0);
        // Of the others in flight two arrive marked, of which nothing is believed.
        assert_eq!(path.on_acked(NOW, &records(3, true), counts(1, 1, 1), true), 0);
        let now = after(&mut path, Duration::ZERO);
        assert!(path.on_sent(now) && path.on_sent(now));
        let acked = |count| {
            let mut records = records(count, true);
            records.iter_mut().for_each(|record| record.sent_at = now);
            records
        };
        assert_eq!(path.on_acked(now, &acked(1), counts(2, 1, 1), true), 0);
        assert_eq!(path.state, State::Capable);
        assert_eq!(path.on_acked(now, &acked(1), counts(2, 1, 2), true), 1);
        // One more ECT(1), and it fails again.
        assert!(path.on_sent(now));
        path.on_acked(now, &acked(1), counts(3, 2, 2), true);
        assert!(matches!(path.state, State::Failed(_)));
    }

    #[test]
    fn losses_of_packets_from_before_a_test_do_not_count() {
        let mut path = after_sending(10);
        path.on_acked(NOW, &records(2, true), None, true);
        let now = after(&mut path, Duration::from_secs(1));
        assert!((0..10).all(|_| path.on_sent(now)));
        path.on_lost(now, &records(10, true));
        assert_eq!(path.state, State::Unknown);
    }

    #[test]
    fn another_network_is_tested_anew_while_the_peer_counts_on() {
        let mut path = after_sending(10);
        assert_eq!(path.on_acked(NOW, &records(10, true), counts(8, 0, 2), true), 2);
        path.restart(NOW, true);
        assert!((0..10).all(|_| path.on_sent(NOW)));
        assert!(!path.on_sent(NOW), "no more until one is acknowledged");
        assert_eq!(path.on_acked(NOW, &records(10, true), counts(17, 0, 3), true), 1);
        assert!(path.on_sent(NOW));
        path.restart(NOW, true);
        assert!((0..10).all(|_| path.on_sent(NOW)));
        path.on_lost(NOW, &records(10, true));
        assert_eq!(path.state, State::Failed(NOW + FIRST_RETRY), "it drops what is marked");
        path.restart(NOW, false);
        assert!(!path.on_sent(NOW + LAST_RETRY));
    }

    #[test]
    fn a_path_that_bleaches_later_is_no_longer_marked() {
        let mut path = after_sending(10);
        path.on_acked(NOW, &records(10, true), counts(10, 0, 0), true);
        assert!((0..20).all(|_| path.on_sent(NOW)));
        path.on_acked(NOW, &records(15, true), counts(25, 0, 0), true);
        // The last five arrive without their marks.
        path.on_acked(NOW, &records(5, true), counts(25, 0, 0), true);
        assert!(!path.on_sent(NOW));
    }
}
