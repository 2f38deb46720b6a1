//! What moves a path's congestion controller, and what it moves: packets sent, acknowledged and
//! lost, ECN marks and rest go in; window and pace come out.

use quipu_base::{Bytes, Duration, Instant};
use quipu_policy::PathState;
use quipu_policy::congestion::{
    AckedInfo, AckedPacket, LostInfo, LostPacket, PathChange, RateSample,
};

use super::{Connection, Space};
use crate::recovery::{SentRecord, is_persistent_congestion};

/// Buffers used again from one acknowledgement to the next.
#[derive(Default)]
pub(super) struct ControlScratch {
    acked: Vec<AckedPacket>,
    lost: Vec<LostPacket>,
}

/// What one ACK frame says to the controller of the path whose packets it acknowledges.
pub(super) struct Acknowledged<'a> {
    /// Packets in flight that it settles, in packet-number order.
    pub(super) packets: &'a [SentRecord],
    /// Bytes in flight on the path before it.
    pub(super) prior_in_flight: Bytes,
    /// The round-trip sample that it gave.
    pub(super) rtt: Option<Duration>,
    /// The delivery-rate sample that it gave.
    pub(super) rate: Option<RateSample>,
    /// CE marks that it newly reports.
    pub(super) marks: u64,
}

impl Connection {
    /// An ACK frame came for packets of `space`: the controller hears of it, and of what it found
    /// `lost`.
    pub(super) fn control_congestion(
        &mut self,
        now: Instant,
        space: Space,
        acknowledged: &Acknowledged<'_>,
        lost: &[SentRecord],
    ) {
        let slot = space.slot();
        let packets = &mut self.control_scratch.acked;
        packets.clear();
        packets.extend(acknowledged.packets.iter().map(|record| AckedPacket {
            sent_at: record.sent_at,
            bytes: Bytes(u64::from(record.bytes)),
        }));
        let burst = u64::from(self.config.burst.packets);
        if let Some(newest) = packets.last()
            && let Some((data, view, peers)) = self.shared.paths.with_peers(slot)
        {
            let slack = data.datagram_bytes().saturating_mul(burst);
            let prior_in_flight = acknowledged.prior_in_flight;
            data.controller.on_acked(
                &AckedInfo {
                    now,
                    packets,
                    prior_in_flight,
                    in_flight: view.in_flight,
                    limited: data.app_limited && prior_in_flight + slack < view.cwnd,
                    srtt: view.srtt,
                    min_rtt: view.min_rtt,
                    latest_rtt: acknowledged.rtt,
                    rate: acknowledged.rate,
                    delivered: data.delivery.delivered(),
                    lost: data.delivery.lost(),
                },
                &peers,
            );
            // https://www.rfc-editor.org/rfc/rfc9002#section-7.1
            //# If a path has been validated to support Explicit Congestion
            //# Notification [...] QUIC treats a Congestion Experienced (CE) codepoint
            //# in the IP header as a signal of congestion.
            if acknowledged.marks > 0 {
                let (marks, sent_at) = (acknowledged.marks, newest.sent_at);
                let change = PathChange::EcnCongestion { marks, sent_at, now };
                data.controller.on_change(change, &peers);
            }
        }
        self.control_loss(now, space, lost);
        self.publish(now, slot);
    }

    /// Packets of `space` were declared lost: the controller hears of them.
    pub(super) fn control_loss(&mut self, now: Instant, space: Space, lost: &[SentRecord]) {
        let Some(newest) = lost.last() else { return };
        let slot = space.slot();
        let max_ack_delay = self.handshake.peer().max_ack_delay;
        let packets = &mut self.control_scratch.lost;
        packets.clear();
        packets.extend(lost.iter().map(|record| LostPacket {
            pn: record.pn,
            sent_at: record.sent_at,
            bytes: Bytes(u64::from(record.bytes)),
            in_flight_at_send: record.at_send.map_or(Bytes::ZERO, |counts| counts.in_flight),
            lost_at_send: record.at_send.map_or(Bytes::ZERO, |counts| counts.lost),
            limited: record.at_send.is_some_and(|counts| counts.limited),
        }));
        if let Some((data, view, peers)) = self.shared.paths.with_peers(slot) {
            if let Space::Data(_) = space {
                data.ecn.on_lost(lost);
            }
            let first_sample_at = data.first_sample_at;
            let persistent = is_persistent_congestion(lost, view, first_sample_at, max_ack_delay);
            data.controller.on_lost(
                &LostInfo {
                    now,
                    packets,
                    bytes: packets.iter().map(|packet| packet.bytes).sum(),
                    lost: data.delivery.lost(),
                    newest_sent_at: newest.sent_at,
                    in_flight: view.in_flight,
                    persistent,
                },
                &peers,
            );
            if persistent {
                // https://www.rfc-editor.org/rfc/rfc9002#section-5.2
                //# Endpoints SHOULD set the min_rtt to the newest RTT sample after
                //# persistent congestion is established.
                view.min_rtt = view.latest_rtt;
            }
        }
        self.publish(now, slot);
    }

    /// Something changed on a path: its controller hears of it.
    pub(super) fn control_change(&mut self, now: Instant, slot: u8, change: PathChange) {
        if let Some(mut path) = self.shared.paths.at_mut(slot) {
            path.change(now, change);
        }
    }

    /// Marks the paths that have window and pace left although nothing more goes now: what limits
    /// them is the application or a policy. When the pacer lets go of the next of the others.
    pub(super) fn mark_limited_paths(&mut self, now: Instant) -> Option<Instant> {
        let mut release_at: Option<Instant> = None;
        for slot in 0..self.shared.paths.slots() {
            let Some((data, view, peers)) = self.shared.paths.with_peers(slot) else { continue };
            view.limited = view.is_open(now);
            if view.limited {
                data.delivery.on_limited(view.in_flight);
                if !data.app_limited {
                    data.app_limited = true;
                    data.controller.on_change(PathChange::ApplicationLimited, &peers);
                }
                continue;
            }
            let held = view.state == PathState::Usable
                && view.release_at > now
                && view.room() >= view.payload;
            if held {
                release_at = Some(release_at.map_or(view.release_at, |at| at.min(view.release_at)));
            }
        }
        release_at
    }

    /// Copies what the controller of a path publishes to its view, and sets the pace.
    fn publish(&mut self, now: Instant, slot: u8) {
        if let Some(mut path) = self.shared.paths.at_mut(slot) {
            path.publish(now);
        }
    }
}
