//! NewReno as RFC 9002 states it.

use quipu_base::Bytes;

use super::reno::RenoWindow;
use super::slow_start::SlowStartExit;
use super::{AckedInfo, Controller, LostInfo, PathChange, Peers, Published, SentInfo};

/// NewReno. <https://www.rfc-editor.org/rfc/rfc9002#section-7>
#[derive(Clone, Debug)]
pub struct NewReno {
    window: RenoWindow,
    beta: f64,
}

impl NewReno {
    /// A controller with a window of `initial_packets` datagrams of `datagram_size` bytes.
    pub fn new(initial_packets: u32, datagram_size: Bytes) -> Self {
        NewReno::with(initial_packets, datagram_size, SlowStartExit::Loss, BETA)
    }

    /// The same whose slow start ends by `exit`, and of whose window a congestion event leaves the
    /// part `beta`, 0 to 1.
    pub(crate) fn with(
        initial_packets: u32,
        datagram_size: Bytes,
        exit: SlowStartExit,
        beta: f64,
    ) -> Self {
        NewReno { window: RenoWindow::new(initial_packets, datagram_size, exit), beta }
    }

    fn kept(&self) -> Bytes {
        self.window.part(self.beta)
    }
}

/// What RFC 9002 leaves of the window.
/// <https://www.rfc-editor.org/rfc/rfc9002#section-7.3.2>
pub(crate) const BETA: f64 = 0.5;

impl Controller for NewReno {
    fn on_sent(&mut self, sent: &SentInfo, _peers: &Peers<'_>) {
        self.window.on_sent(sent);
    }

    fn on_acked(&mut self, acked: &AckedInfo<'_>, _peers: &Peers<'_>) {
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.3.3
        //# A sender in congestion avoidance uses an Additive Increase Multiplicative Decrease
        //# (AIMD) approach that MUST limit the increase to the congestion window to at most one
        //# maximum datagram size for each congestion window that is acknowledged.
        self.window.on_acked(acked, |window, bytes| window.grow_in_avoidance(bytes, 1.0));
    }

    fn on_lost(&mut self, lost: &LostInfo<'_>, _peers: &Peers<'_>) {
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.3.2
        //# On entering a recovery period, a sender MUST set the slow start threshold to half the
        //# value of the congestion window when loss is detected.
        self.window.on_lost(lost, self.kept());
    }

    fn on_change(&mut self, change: PathChange, _peers: &Peers<'_>) {
        self.window.on_change(change, self.kept());
    }

    fn published(&self) -> Published {
        self.window.published()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::AckedPacket;
    use crate::key::PathKey;
    use quipu_base::{Instant, PathId};

    const SIZE: Bytes = Bytes(1200);

    fn peers() -> Peers<'static> {
        Peers { own: PathKey { slot: 0, id: PathId(0) }, all: &[] }
    }

    fn ack(controller: &mut NewReno, sent_ms: u64, packets: usize, limited: bool) {
        let sent_at = Instant::from_nanos(sent_ms * 1_000_000);
        let packets = vec![AckedPacket { sent_at, bytes: SIZE }; packets];
        controller.on_acked(
            &AckedInfo {
                rate: None,
                delivered: Bytes(0),
                lost: Bytes(0),
                now: sent_at,
                packets: &packets,
                prior_in_flight: Bytes(0),
                in_flight: Bytes(0),
                limited,
                srtt: None,
                min_rtt: None,
                latest_rtt: None,
            },
            &peers(),
        );
    }

    fn lose(controller: &mut NewReno, now_ms: u64, sent_ms: u64, persistent: bool) {
        controller.on_lost(
            &LostInfo {
                packets: &[],
                lost: Bytes(0),
                now: Instant::from_nanos(now_ms * 1_000_000),
                bytes: SIZE,
                newest_sent_at: Instant::from_nanos(sent_ms * 1_000_000),
                in_flight: Bytes(0),
                persistent,
            },
            &peers(),
        );
    }

    #[test]
    fn slow_start_grows_by_what_was_acknowledged() {
        let mut controller = NewReno::new(10, SIZE);
        ack(&mut controller, 1, 10, false);
        assert_eq!(controller.published().cwnd, Bytes(24_000));
    }

    #[test]
    fn a_loss_leaves_the_part_of_the_window_that_is_asked_for() {
        for (beta, kept) in [(0.5, 6_000), (0.7, 8_400)] {
            let mut controller = NewReno::with(10, SIZE, SlowStartExit::Loss, beta);
            lose(&mut controller, 10, 1, false);
            assert!(controller.published().cwnd.0.abs_diff(kept) <= 1, "{beta}");
        }
    }

    #[test]
    fn the_window_does_not_grow_while_it_is_not_what_limits() {
        let mut controller = NewReno::new(10, SIZE);
        ack(&mut controller, 1, 10, true);
        assert_eq!(controller.published().cwnd, Bytes(12_000));
    }

    #[test]
    fn a_path_mtu_that_is_found_leaves_the_window_in_bytes_and_moves_its_minimum() {
        let mut controller = NewReno::new(10, SIZE);
        for (size, cwnd) in [(1_472, 12_000), (1_200, 12_000), (9_000, 18_000)] {
            controller.on_change(PathChange::PathMtu(Bytes(size)), &peers());
            assert_eq!(controller.published().cwnd, Bytes(cwnd));
        }
        // Before anything was measured the window is counted anew.
        let mut controller = NewReno::new(10, SIZE);
        controller.on_change(PathChange::DatagramSize(Bytes(1_350)), &peers());
        assert_eq!(controller.published().cwnd, Bytes(13_500));
    }

    #[test]
    fn one_loss_halves_once_per_round_trip() {
        let mut controller = NewReno::new(10, SIZE);
        lose(&mut controller, 50, 10, false);
        lose(&mut controller, 60, 40, false);
        assert_eq!(controller.published().cwnd, Bytes(6_000));
        ack(&mut controller, 45, 5, false);
        assert_eq!(controller.published().cwnd, Bytes(6_000));
        lose(&mut controller, 90, 70, false);
        assert_eq!(controller.published().cwnd, Bytes(3_000));
    }

    #[test]
    fn avoidance_grows_with_each_packet_by_nearly_a_datagram_per_window() {
        let mut controller = NewReno::new(10, SIZE);
        lose(&mut controller, 50, 10, false);
        // 6,000 + 240, each further packet a bit less.
        ack(&mut controller, 60, 1, false);
        assert_eq!(controller.published().cwnd, Bytes(6_240));
        ack(&mut controller, 60, 4, false);
        assert_eq!(controller.published().cwnd, Bytes(7_116));
    }

    #[test]
    fn persistent_congestion_falls_to_the_minimum() {
        let mut controller = NewReno::new(10, SIZE);
        lose(&mut controller, 50, 10, true);
        assert_eq!(controller.published().cwnd, Bytes(2_400));
    }

    #[test]
    fn a_reduction_for_nothing_is_undone_and_no_other() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let void = |ms| PathChange::SpuriousLoss { since: at(ms), now: at(200) };
        let mut controller = NewReno::new(10, SIZE);
        lose(&mut controller, 50, 10, false);
        controller.on_change(void(40), &peers());
        assert_eq!(controller.published().cwnd, Bytes(6_000));
        controller.on_change(void(50), &peers());
        assert_eq!(controller.published().cwnd, Bytes(12_000));
        assert_eq!(controller.published().ssthresh, None);
        // Once.
        controller.on_change(void(50), &peers());
        // A loss of a packet sent before counts again.
        lose(&mut controller, 60, 20, false);
        assert_eq!(controller.published().cwnd, Bytes(6_000));
        lose(&mut controller, 90, 70, true);
        controller.on_change(void(60), &peers());
        assert_eq!(controller.published().cwnd, Bytes(2_400), "of an earlier reduction");
        controller.on_change(void(90), &peers());
        assert_eq!(controller.published().cwnd, Bytes(6_000), "persistent congestion was none");
        assert_eq!(controller.published().ssthresh, Some(Bytes(6_000)));
    }

    #[test]
    fn marks_after_a_loss_keep_its_reduction() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut controller = NewReno::new(10, SIZE);
        lose(&mut controller, 50, 10, false);
        let marked = PathChange::EcnCongestion { marks: 1, sent_at: at(60), now: at(70) };
        controller.on_change(marked, &peers());
        let void = PathChange::SpuriousLoss { since: at(50), now: at(80) };
        controller.on_change(void, &peers());
        assert_eq!(controller.published().cwnd, Bytes(3_000));
    }
}
