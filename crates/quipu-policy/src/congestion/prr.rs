//! Proportional rate reduction: how fast a path goes on sending while it recovers from a loss.

use quipu_base::{Bytes, Instant};

use super::{AckedInfo, Controller, LostInfo, PathChange, Peers, Published, SentInfo};

/// A loss-based controller whose window, after a loss, falls with what is acknowledged instead of
/// at once: while packets sent before the loss are outstanding, the window is what is in flight and
/// what may leave now. Without it the sender is silent until enough has been acknowledged.
///
/// The reduced window of the inner controller is the target. Congestion events told by ECN marks
/// begin a reduction too. Amounts are bytes; the bound in which sending resumes is the slow-start
/// one (SSRB), one datagram more if the acknowledgement came without a further loss.
///
/// Source: RFC 9937, section 6; confidence high.
/// <https://www.rfc-editor.org/rfc/rfc9937#section-6>
pub(super) struct ProportionalReduction {
    inner: Box<dyn Controller>,
    datagram_size: Bytes,
    /// Bytes in flight when the controller was last told.
    in_flight: Bytes,
    recovery: Option<Recovery>,
}

/// A reduction in progress.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// Packets sent after this end it once they are acknowledged.
    began_at: Instant,
    /// Bytes in flight when it began, the lost ones included: `RecoverFS`. At least the target, so
    /// that no more leaves than was acknowledged.
    flight: u64,
    /// The window to end with: `ssthresh`.
    target: Bytes,
    /// Bytes acknowledged since: `prr_delivered`.
    delivered: Bytes,
    /// Bytes sent since: `prr_out`.
    sent: Bytes,
    window: Bytes,
}

impl ProportionalReduction {
    pub(super) fn new(inner: Box<dyn Controller>, datagram_size: Bytes) -> Self {
        ProportionalReduction { inner, datagram_size, in_flight: Bytes::ZERO, recovery: None }
    }

    /// The inner controller's window was `before`, and an event that took `lost` bytes out of flight
    /// has been told to it. True if its window fell: packets that left up to `now` are outstanding.
    fn follow(&mut self, now: Instant, before: Bytes, lost: Bytes) -> bool {
        let target = self.inner.published().cwnd;
        let fell = target < before;
        if fell {
            self.recovery = Some(Recovery {
                began_at: now,
                flight: (self.in_flight + lost).max(target).0.max(1),
                target,
                delivered: Bytes::ZERO,
                sent: Bytes::ZERO,
                // One packet goes at once in place of what was lost.
                window: self.in_flight + self.datagram_size.min(lost),
            });
        }
        fell
    }
}

/// `controller` with it, if the parameter says so.
pub(crate) fn wrap(
    wanted: bool,
    datagram_size: Bytes,
    controller: impl Controller + 'static,
) -> Box<dyn Controller> {
    if wanted {
        Box::new(ProportionalReduction::new(Box::new(controller), datagram_size))
    } else {
        Box::new(controller)
    }
}

impl Recovery {
    /// An acknowledgement of `acked` bytes came, after which `in_flight` are in flight.
    fn on_acked(&mut self, acked: Bytes, in_flight: Bytes, datagram: Bytes) {
        self.delivered += acked;
        let may_leave = if in_flight > self.target {
            let share = u128::from(self.delivered.0) * u128::from(self.target.0);
            let share = share.div_ceil(u128::from(self.flight));
            Bytes(u64::try_from(share).unwrap_or(u64::MAX)).saturating_sub(self.sent)
        } else {
            let limit = self.delivered.saturating_sub(self.sent).max(acked) + datagram;
            limit.min(self.target.saturating_sub(in_flight))
        };
        self.window = in_flight + may_leave;
    }
}

impl Controller for ProportionalReduction {
    fn on_sent(&mut self, sent: &SentInfo, peers: &Peers<'_>) {
        self.inner.on_sent(sent, peers);
        self.in_flight = sent.in_flight;
        if let Some(recovery) = &mut self.recovery {
            recovery.sent += sent.bytes;
        }
    }

    fn on_acked(&mut self, acked: &AckedInfo<'_>, peers: &Peers<'_>) {
        self.inner.on_acked(acked, peers);
        self.in_flight = acked.in_flight;
        let Some(recovery) = &mut self.recovery else { return };
        if acked.packets.last().is_some_and(|newest| newest.sent_at > recovery.began_at) {
            self.recovery = None;
            return;
        }
        let bytes = acked.packets.iter().map(|packet| packet.bytes).sum();
        recovery.on_acked(bytes, acked.in_flight, self.datagram_size);
    }

    fn on_lost(&mut self, lost: &LostInfo<'_>, peers: &Peers<'_>) {
        let before = self.inner.published().cwnd;
        self.inner.on_lost(lost, peers);
        self.in_flight = lost.in_flight;
        if lost.persistent {
            self.recovery = None;
        } else if !self.follow(lost.now, before, lost.bytes)
            && let Some(recovery) = &mut self.recovery
        {
            // What was lost makes no room.
            recovery.window = recovery.window.saturating_sub(lost.bytes);
        }
    }

    fn on_change(&mut self, change: PathChange, peers: &Peers<'_>) {
        let before = self.inner.published().cwnd;
        self.inner.on_change(change, peers);
        match change {
            PathChange::DatagramSize(size) | PathChange::PathMtu(size) => {
                self.datagram_size = size;
            }
            PathChange::EcnCongestion { now, .. } => {
                self.follow(now, before, Bytes::ZERO);
            }
            // The reduction was undone.
            PathChange::SpuriousLoss { .. } if self.inner.published().cwnd > before => {
                self.recovery = None;
            }
            _ => {}
        }
    }

    fn published(&self) -> Published {
        let inner = self.inner.published();
        match &self.recovery {
            None => inner,
            Some(recovery) => {
                let least = self.datagram_size.saturating_mul(2);
                Published { cwnd: recovery.window.max(least), state: "recovery", ..inner }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{AckedPacket, NewReno};
    use crate::key::PathKey;
    use quipu_base::PathId;

    const SIZE: Bytes = Bytes(1_000);

    fn peers() -> Peers<'static> {
        Peers { own: PathKey { slot: 0, id: PathId(0) }, all: &[] }
    }

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// A sender with as much to send as the window lets go.
    struct Sender {
        controller: ProportionalReduction,
        in_flight: Bytes,
        sent: u64,
    }

    impl Sender {
        fn new(packets: u32) -> Sender {
            let inner = Box::new(NewReno::new(packets, SIZE));
            let mut sender = Sender {
                controller: ProportionalReduction::new(inner, SIZE),
                in_flight: Bytes::ZERO,
                sent: 0,
            };
            sender.fill(0);
            sender
        }

        fn fill(&mut self, ms: u64) -> u64 {
            let before = self.sent;
            while self.in_flight + SIZE <= self.controller.published().cwnd {
                self.in_flight += SIZE;
                self.sent += 1;
                let (now, in_flight) = (at(ms), self.in_flight);
                let info = SentInfo { now, bytes: SIZE, in_flight, limited: false };
                self.controller.on_sent(&info, &peers());
            }
            self.sent - before
        }

        fn ack(&mut self, ms: u64, sent_ms: u64) {
            let prior_in_flight = self.in_flight;
            self.in_flight -= SIZE;
            let info = AckedInfo {
                now: at(ms),
                packets: &[AckedPacket { sent_at: at(sent_ms), bytes: SIZE }],
                prior_in_flight,
                in_flight: self.in_flight,
                limited: true,
                srtt: None,
                min_rtt: None,
                latest_rtt: None,
                rate: None,
                delivered: Bytes::ZERO,
                lost: Bytes::ZERO,
            };
            self.controller.on_acked(&info, &peers());
        }

        fn lose(&mut self, ms: u64, packets: u64) {
            let bytes = SIZE.saturating_mul(packets);
            self.in_flight -= bytes;
            let info = LostInfo {
                now: at(ms),
                packets: &[],
                bytes,
                lost: bytes,
                newest_sent_at: at(0),
                in_flight: self.in_flight,
                persistent: false,
            };
            self.controller.on_lost(&info, &peers());
        }
    }

    /// One of 20 packets is lost: of the 19 that are acknowledged, every other lets one leave, and
    /// the round ends with half the window in flight.
    #[test]
    fn one_packet_leaves_for_every_two_acknowledged() {
        let mut sender = Sender::new(20);
        sender.lose(100, 1);
        let mut left = sender.fill(100);
        assert_eq!(left, 1, "the retransmission goes at once");
        for packet in 0..19 {
            sender.ack(101 + packet, 0);
            left += sender.fill(101 + packet);
            assert!(left <= packet.div_ceil(2) + 1, "{left} after {packet}");
        }
        assert_eq!(sender.in_flight, Bytes(10_000));
        // The next round trip: the window is the reduced one.
        sender.ack(200, 101);
        assert_eq!(sender.controller.published().cwnd, Bytes(10_000));
        assert_eq!(sender.controller.published().state, "congestion avoidance");
    }

    /// 16 of 20 are lost: what is left is below the target, and grows as in slow start, by no more
    /// than is acknowledged and one datagram each.
    #[test]
    fn after_heavy_loss_the_flight_grows_back_by_slow_start() {
        let mut sender = Sender::new(20);
        sender.lose(100, 16);
        assert_eq!(sender.fill(100), 1);
        for packet in 0..4 {
            sender.ack(101 + packet, 0);
            assert!(sender.fill(101 + packet) <= 2);
        }
        assert!(sender.in_flight <= Bytes(10_000));
        assert!(sender.in_flight >= Bytes(5_000), "{:?}", sender.in_flight);
    }

    #[test]
    fn a_further_loss_makes_no_room() {
        let mut sender = Sender::new(20);
        sender.lose(100, 1);
        sender.fill(100);
        sender.lose(101, 2);
        assert_eq!(sender.fill(101), 0);
    }
}
