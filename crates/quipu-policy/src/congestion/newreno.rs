//! NewReno as RFC 9002 states it.

use quipu_base::Bytes;

use super::reno::RenoWindow;
use super::{AckedInfo, Controller, LostInfo, PathChange, Peers, Published, SentInfo};

/// NewReno. <https://www.rfc-editor.org/rfc/rfc9002#section-7>
#[derive(Clone, Debug)]
pub struct NewReno(RenoWindow);

impl NewReno {
    /// A controller with a window of `initial_packets` datagrams of `datagram_size` bytes.
    pub fn new(initial_packets: u32, datagram_size: Bytes) -> Self {
        NewReno(RenoWindow::new(initial_packets, datagram_size))
    }

    fn half(&self) -> Bytes {
        Bytes(self.0.cwnd().0 / 2)
    }
}

impl Controller for NewReno {
    fn on_sent(&mut self, _sent: &SentInfo, _peers: &Peers<'_>) {}

    fn on_acked(&mut self, acked: &AckedInfo<'_>, _peers: &Peers<'_>) {
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.3.3
        //# A sender in congestion avoidance uses an Additive Increase Multiplicative Decrease
        //# (AIMD) approach that MUST limit the increase to the congestion window to at most one
        //# maximum datagram size for each congestion window that is acknowledged.
        self.0.on_acked(acked, |window, bytes| window.grow_in_avoidance(bytes, 1.0));
    }

    fn on_lost(&mut self, lost: &LostInfo<'_>, _peers: &Peers<'_>) {
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.3.2
        //# On entering a recovery period, a sender MUST set the slow start threshold to half the
        //# value of the congestion window when loss is detected.
        self.0.on_lost(lost, self.half());
    }

    fn on_change(&mut self, change: PathChange, _peers: &Peers<'_>) {
        self.0.on_change(change, self.half());
    }

    fn published(&self) -> Published {
        self.0.published()
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
    fn the_window_does_not_grow_while_it_is_not_what_limits() {
        let mut controller = NewReno::new(10, SIZE);
        ack(&mut controller, 1, 10, true);
        assert_eq!(controller.published().cwnd, Bytes(12_000));
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
}
