//! Acknowledgements and the loss timer of one packet number space: what they settle, and what they
//! say of the path that carries it.

use quipu_base::{Bytes, Duration, Instant, PacketNumber};
use quipu_policy::congestion::{
    AckedInfo, AckedPacket, LostInfo, LostPacket, PathChange, Peers, Published, RateSample,
};
use quipu_policy::{PathKey, PathState, PathView};

use super::return_way::WayChange;
use super::{
    PathRecovery, SentPackets, SentRecord, Settled, Thresholds, of_epoch, take_rtt_sample,
};
use crate::counters::PathCounters;
use crate::wire::frame::Ack;

/// A packet number space, with the path that carries it: found once for all that is done.
pub(crate) struct SpaceRecovery<'p> {
    pub(crate) sent: &'p mut SentPackets,
    pub(crate) path: &'p mut PathRecovery,
    /// The space is that of the path's 1-RTT packets.
    pub(crate) is_one_rtt: bool,
    pub(crate) counters: &'p mut PathCounters,
    /// `None` once the path is abandoned: its window and estimates are of no use any more.
    pub(crate) view: Option<&'p mut PathView>,
    /// What the controllers of all paths last published.
    pub(crate) published: &'p mut [(PathKey, Published)],
    /// Size of a full datagram.
    pub(crate) datagram: Bytes,
}

/// An ACK or PATH_ACK frame, and what is to be known to read it.
pub(crate) struct Acknowledgement<'a> {
    pub(crate) now: Instant,
    pub(crate) ack: &'a Ack<'a>,
    /// The path that brought it.
    pub(crate) arrived_on: PathKey,
    /// When it came: its packet may have waited for keys.
    pub(crate) came_at: Instant,
    /// What of the peer's delay counts.
    pub(crate) delay: Duration,
    /// The peer is known to have validated our address, this frame included.
    pub(crate) validated: bool,
    /// The peer's `max_ack_delay`.
    pub(crate) max_ack_delay: Duration,
}

/// The peer acknowledged a packet that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeverSent;

impl SpaceRecovery<'_> {
    /// An acknowledgement came. `accepts` tells whether a round-trip sample may be taken by way of
    /// a path.
    ///
    /// # Errors
    /// [`NeverSent`]; nothing changes then.
    pub(crate) fn on_ack(
        &mut self,
        event: &Acknowledgement<'_>,
        accepts: impl Fn(PathKey) -> bool,
        settled: &mut Settled,
    ) -> Result<(), NeverSent> {
        let (now, ack) = (event.now, event.ack);
        let ranges = ack.ranges.iter().map(|range| (range.first.0, range.last.0));
        // https://www.rfc-editor.org/rfc/rfc9000#section-21.4
        // "An endpoint MAY skip packet numbers when sending packets to detect this behavior."
        if ack.largest() >= self.sent.next_pn() || self.sent.any_unused(ranges.clone()) {
            return Err(NeverSent);
        }
        let prior_in_flight = self.sent.in_flight();
        let largest_before = self.sent.largest_acked();
        let newest = self.sent.on_ack(ranges, &mut settled.acked, &mut settled.late);
        if settled.is_nothing_acked() {
            return Ok(());
        }
        let rtt = self.sample_rtt(event, newest, accepts, settled);
        self.on_alive(event, settled);
        self.note_late(now, largest_before, settled);
        self.detect_lost(now, settled);
        self.count(now, settled);
        let rate = self.sample_rate(event, settled);
        // The largest may be a packet that is never in flight, of which nothing is kept.
        let increases = largest_before.is_none_or(|before| ack.largest() > before);
        let marks = self.newly_marked(event, increases, settled);
        self.control_acked(now, settled, prior_in_flight, (rtt, rate), marks);
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.3
        //# Upon detecting losses, a sender MUST take appropriate congestion control action.
        self.control_lost(now, event.max_ack_delay, settled);
        self.publish(now);
        Ok(())
    }

    /// The loss timer fired: packets that are overdue are lost.
    pub(crate) fn on_loss_timer(
        &mut self,
        now: Instant,
        max_ack_delay: Duration,
        settled: &mut Settled,
    ) {
        self.detect_lost(now, settled);
        self.count(now, settled);
        self.control_lost(now, max_ack_delay, settled);
    }

    /// The probe of the path MTU with that number is in flight for too long: it is lost.
    pub(crate) fn on_mtu_probe_expired(
        &mut self,
        now: Instant,
        number: PacketNumber,
        settled: &mut Settled,
    ) {
        settled.lost.extend(self.sent.take(number));
        self.count(now, settled);
    }

    /// The probe timeout fired.
    pub(crate) fn on_probe_timeout(&mut self, now: Instant) {
        let Some(view) = self.view.as_deref_mut() else { return };
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
        //# When a PTO timer expires, the PTO backoff MUST be increased, resulting in the PTO
        //# period being set to twice its current value.
        view.pto_count += 1;
        self.path.on_probe_timeout(now);
        self.counters.probe_timeouts += 1;
    }

    fn sample_rtt(
        &mut self,
        event: &Acknowledgement<'_>,
        newest: Option<(PacketNumber, Instant)>,
        accepts: impl Fn(PathKey) -> bool,
        settled: &mut Settled,
    ) -> Option<Duration> {
        // https://www.rfc-editor.org/rfc/rfc9002#section-5.1
        //# An endpoint generates an RTT sample on receiving an ACK frame that meets the following
        //# two conditions: [...] the largest acknowledged packet number is newly acknowledged,
        //# and [...] at least one of the newly acknowledged packets was ack-eliciting.
        //# To avoid generating multiple RTT samples for a single packet, an ACK frame SHOULD NOT
        //# be used to update RTT estimates if it does not newly acknowledge the largest
        //# acknowledged packet.
        let (newest, sent_at) = newest?;
        let acked = of_epoch(&settled.acked, self.sent.epoch());
        // https://www.rfc-editor.org/rfc/rfc9002#section-5.1
        //# An RTT sample MUST NOT be generated on receiving an ACK frame that does not newly
        //# acknowledge at least one ack-eliciting packet.
        if !acked.iter().any(|record| record.ack_eliciting) {
            return None;
        }
        settled.sampled_sent_at = Some(sent_at);
        // https://www.rfc-editor.org/rfc/rfc9002#section-5.3
        //# In such cases, an endpoint SHOULD subtract such local delays from its RTT sample until
        //# the handshake is confirmed.
        let latest = event.came_at - sent_at;
        self.path.ack_times.note(newest, sent_at);
        if !accepts(event.arrived_on) {
            self.correct_rtt(event, latest);
            return None;
        }
        self.note_return_way(event, latest, accepts);
        let view = self.view.as_deref_mut()?;
        self.path.first_sample_at.get_or_insert(event.now);
        take_rtt_sample(view, latest, event.delay);
        Some(latest)
    }

    /// The policy refuses a sample of `latest`, because it came by a strange way. It counts all the
    /// same if it came later than the probe timeout: that is too short then. Each acknowledgement
    /// would end its backoff, and where all come by strange ways, probes would go for ever.
    fn correct_rtt(&mut self, event: &Acknowledgement<'_>, latest: Duration) {
        let Some(view) = self.view.as_deref_mut() else { return };
        if latest > self.path.rules.probe_timeout(view, event.max_ack_delay) {
            self.path.first_sample_at.get_or_insert(event.now);
            take_rtt_sample(view, latest, event.delay);
        }
    }

    /// A round-trip sample of `latest` is about to be taken. If acknowledgements return another way
    /// now, what was estimated of the old one is void, also for the probe timeout and persistent
    /// congestion where the way was changed on purpose.
    fn note_return_way(
        &mut self,
        event: &Acknowledgement<'_>,
        latest: Duration,
        accepts: impl Fn(PathKey) -> bool,
    ) {
        let Some(view) = self.view.as_deref_mut() else { return };
        let (now, way) = (event.now, &mut self.path.return_way);
        match way.on_sample(now, event.arrived_on, latest, view.srtt, |way| !accepts(way)) {
            WayChange::None => return,
            WayChange::Switched => {
                view.srtt = None;
                view.min_rtt = None;
                self.path.first_sample_at = None;
            }
            WayChange::Lasting(least) => view.min_rtt = Some(least),
        }
        self.path.on_change(now, PathChange::ReturnRoute, self.datagram, view, self.published);
    }

    /// Something that we sent on the path was acknowledged.
    fn on_alive(&mut self, event: &Acknowledgement<'_>, settled: &mut Settled) {
        let Some(view) = self.view.as_deref_mut() else { return };
        self.path.acked_at = Some(event.now);
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
        //# The PTO backoff factor is reset when an acknowledgment is received,
        //# except in the following case. [...] the PTO backoff is not reset at a
        //# client that is not yet certain that the server has finished
        //# validating the client's address.
        if !settled.acked.is_empty() && event.validated {
            view.pto_count = 0;
            self.path.probes_due = 0;
        }
        if view.state == PathState::Suspect {
            settled.revived = Some(view.key);
        }
    }

    /// Packets that were declared lost arrived after all: the thresholds were too low, and if that
    /// holds of a whole round of losses, the controller reduced its window for nothing.
    fn note_late(&mut self, now: Instant, largest: Option<PacketNumber>, settled: &Settled) {
        let late = of_epoch(&settled.late, self.sent.epoch());
        let path = &mut *self.path;
        if late.is_empty() {
            return;
        }
        path.persistent.on_late(late);
        let void_round = path.loss_round.on_late(late);
        let Some(view) = self.view.as_deref_mut() else { return };
        if self.is_one_rtt && path.rules.adapts_to_reordering {
            path.reordering.on_late(now, late, largest, &path.rules, view);
        }
        if let Some(since) = void_round.filter(|_| path.rules.undoes_spurious_reductions) {
            let change = PathChange::SpuriousLoss { since, now };
            path.on_change(now, change, self.datagram, view, self.published);
        }
    }

    fn detect_lost(&mut self, now: Instant, settled: &mut Settled) {
        let Some(view) = self.view.as_deref() else { return };
        let PathRecovery { rules, reordering, .. } = &*self.path;
        let delay = if self.is_one_rtt {
            reordering.loss_delay(rules, view)
        } else {
            rules.loss_delay(view)
        };
        let packets = self.path.packet_threshold(self.is_one_rtt);
        self.sent.detect_lost(now, &Thresholds { delay, packets }, &mut settled.lost);
    }

    /// Counts what was settled, and takes it off what is in flight.
    fn count(&mut self, now: Instant, settled: &mut Settled) {
        let sum = |records: &[SentRecord]| -> Bytes {
            records.iter().map(|record| Bytes(u64::from(record.bytes))).sum()
        };
        let (acked, late, lost) = (sum(&settled.acked), sum(&settled.late), sum(&settled.lost));
        let counters = &mut *self.counters;
        counters.packets_acked += (settled.acked.len() + settled.late.len()) as u64;
        counters.bytes_acked += acked.0 + late.0;
        counters.packets_spurious += settled.late.len() as u64;
        counters.bytes_spurious += late.0;
        counters.packets_lost += settled.lost.len() as u64;
        counters.bytes_lost += lost.0;
        for record in &settled.lost {
            counters.loss_detection += now - record.sent_at;
        }
        // What went to an earlier address of the path says nothing of this one.
        let epoch = self.sent.epoch();
        let here = |records: &[SentRecord], all: Bytes| {
            let here = of_epoch(records, epoch);
            (here.len(), if here.len() == records.len() { all } else { sum(here) })
        };
        let (acked, acked_bytes) = here(&settled.acked, acked);
        let (lost, lost_bytes) = here(&settled.lost, lost);
        self.path.delivery.on_lost(lost_bytes);
        // What was in flight on an abandoned path went off the count with its view.
        if let Some(view) = self.view.as_deref_mut() {
            settled.released = acked_bytes + lost_bytes;
            view.in_flight -= settled.released;
            let of_mtu = settled.lost.iter().filter(|record| record.mtu_probe).count();
            note_loss_share(view, acked, lost.saturating_sub(of_mtu));
        }
    }

    /// The delivery rate that this acknowledgement shows, if it does.
    fn sample_rate(
        &mut self,
        event: &Acknowledgement<'_>,
        settled: &Settled,
    ) -> Option<RateSample> {
        let view = self.view.as_deref_mut()?;
        let epoch = self.sent.epoch();
        let late = of_epoch(&settled.late, epoch).iter();
        let late = late.map(|record| Bytes(u64::from(record.bytes))).sum();
        let (by, acked) = (event.arrived_on.slot, of_epoch(&settled.acked, epoch));
        let sample = self.path.delivery.on_acked(event.now, by, acked, late, view.min_rtt);
        if let Some(sample) = &sample {
            view.limited = sample.limited;
            view.rate = self.path.delivery.rate();
        }
        sample
    }

    /// How many packets the acknowledgement newly reports as marked CE; `increases`: it acknowledges a larger
    /// packet number than all before.
    fn newly_marked(
        &mut self,
        event: &Acknowledgement<'_>,
        increases: bool,
        settled: &Settled,
    ) -> u64 {
        if !self.is_one_rtt {
            return 0;
        }
        let counts = event.ack.ecn;
        let marks = self.path.ecn.on_acked(event.now, &settled.acked, counts, increases);
        self.counters.packets_marked += marks;
        marks
    }

    /// The controller hears of what was acknowledged, of the samples that it gave, and of marks.
    fn control_acked(
        &mut self,
        now: Instant,
        settled: &mut Settled,
        prior_in_flight: Bytes,
        (latest_rtt, rate): (Option<Duration>, Option<RateSample>),
        marks: u64,
    ) {
        let packets = &mut settled.acked_packets;
        packets.clear();
        let acked = of_epoch(&settled.acked, self.sent.epoch());
        packets.extend(acked.iter().map(|record| AckedPacket {
            sent_at: record.sent_at,
            bytes: Bytes(u64::from(record.bytes)),
        }));
        let (Some(newest), Some(view)) = (packets.last(), self.view.as_deref_mut()) else { return };
        let path = &mut *self.path;
        let peers = Peers { own: path.key, all: self.published };
        let slack = self.datagram.saturating_mul(u64::from(path.burst_packets));
        let limited = path.is_held_back(now) && prior_in_flight + slack < view.cwnd;
        path.controller.on_acked(
            &AckedInfo {
                now,
                packets,
                prior_in_flight,
                in_flight: view.in_flight,
                limited,
                srtt: view.srtt,
                min_rtt: view.min_rtt,
                latest_rtt,
                rate,
                delivered: path.delivery.delivered(),
                lost: path.delivery.lost(),
            },
            &peers,
        );
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.1
        //# If a path has been validated to support Explicit Congestion
        //# Notification [...] QUIC treats a Congestion Experienced (CE) codepoint
        //# in the IP header as a signal of congestion.
        if marks > 0 {
            let change = PathChange::EcnCongestion { marks, sent_at: newest.sent_at, now };
            path.controller.on_change(change, &peers);
        }
    }

    /// The controller hears of what was declared lost.
    fn control_lost(&mut self, now: Instant, max_ack_delay: Duration, settled: &mut Settled) {
        let lost = of_epoch(&settled.lost, self.sent.epoch());
        // https://www.rfc-editor.org/rfc/rfc9000#section-14.4
        //# Loss of a QUIC packet that is carried in a PMTU probe is therefore not a reliable
        //# indication of congestion and SHOULD NOT trigger a congestion control reaction; see Item
        //# 7 in Section 3 of [DPLPMTUD].
        let signs = || lost.iter().filter(|record| !record.mtu_probe);
        let Some(newest) = signs().next_back() else { return };
        let packets = &mut settled.lost_packets;
        packets.clear();
        packets.extend(signs().map(|record| LostPacket {
            pn: record.pn,
            sent_at: record.sent_at,
            bytes: Bytes(u64::from(record.bytes)),
            in_flight_at_send: record.at_send.map_or(Bytes::ZERO, |counts| counts.in_flight),
            lost_at_send: record.at_send.map_or(Bytes::ZERO, |counts| counts.lost),
            limited: record.at_send.is_some_and(|counts| counts.limited),
        }));
        let Some(view) = self.view.as_deref_mut() else { return };
        let path = &mut *self.path;
        if self.is_one_rtt {
            path.ecn.on_lost(now, lost);
        }
        let probe_timeout = path.rules.probe_timeout(view, max_ack_delay);
        let persistent = path.persistent.on_lost(lost, path.first_sample_at, probe_timeout);
        if path.loss_round.on_lost(now, lost) {
            path.reordering.on_round();
        }
        let peers = Peers { own: path.key, all: self.published };
        path.controller.on_lost(
            &LostInfo {
                now,
                packets,
                bytes: packets.iter().map(|packet| packet.bytes).sum(),
                lost: path.delivery.lost(),
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
        self.publish(now);
    }

    fn publish(&mut self, now: Instant) {
        if let Some(view) = self.view.as_deref_mut() {
            self.path.publish(now, self.datagram, view, self.published);
        }
    }
}

/// Smooths the share of packets lost over about 256 packets; our choice.
fn note_loss_share(view: &mut PathView, acked: usize, lost: usize) {
    let total = acked + lost;
    if total == 0 {
        return;
    }
    let share = (lost * 1000 / total) as u64;
    let weight = (total as u64).min(256);
    let before = u64::from(view.loss.0);
    view.loss.0 = ((before * (256 - weight) + share * weight) / 256) as u16;
}

#[cfg(test)]
mod tests;
