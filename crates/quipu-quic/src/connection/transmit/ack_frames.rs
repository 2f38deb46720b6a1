//! Acknowledgements into packets: those that ride on others, and those that are due alone.

use quipu_base::{Duration, Instant, PathId};
use quipu_policy::{Event, PathKey, PathSet, PathState};

use super::Full;
use crate::connection::Connection;
use crate::connection::cids::ConnectionIds;
use crate::connection::packet::PacketBuilder;
use crate::outbox::Outbox;
use crate::path::{PathData, PathRef, PathTable};
use crate::recovery::SentControl;
use crate::wire::Frame;
use crate::wire::frame::{AckRange, EcnCounts, write_ack};

/// Ranges written in one acknowledgement at most; our choice.
const MAX_ACK_RANGES: usize = 32;

/// Shortest time between checks of a path that only carries acknowledgements of others; our choice.
const RETURN_PATH_CHECK: quipu_base::Duration = Duration::from_millis(50);

/// Ranges from which on an acknowledgement asks to be acknowledged itself; our choice.
const PING_ABOVE_RANGES: usize = 8;

/// Size of a datagram with an acknowledgement and nothing else, at most; our choice.
const ACK_DATAGRAM: usize = 400;

/// An acknowledgement that waits.
#[derive(Clone, Copy)]
struct Owed {
    /// Whose packets it acknowledges.
    path: PathKey,
    due: bool,
    /// That path is not being abandoned: the policy is asked where the acknowledgement goes.
    lives: bool,
    /// Where it has yet to go in the present round; empty before one begins.
    on: PathSet,
    /// A probe asked whether that very path answers.
    probed: bool,
}

impl Owed {
    fn of(data: &PathData, now: Instant) -> Option<Owed> {
        data.packets.received.wants_ack().then(|| Owed {
            path: data.key,
            due: data.packets.received.is_due(now),
            lives: data.lives(),
            on: data.ack_owed,
            probed: data.probed,
        })
    }
}

/// What a packet does for an acknowledgement that waits.
enum Ride {
    /// It carries it, and it is owed as before.
    Also,
    /// It carries it, and it has yet to go on these paths.
    Then(PathSet),
}

impl Connection {
    /// Acknowledgements that are due and that no packet carried.
    pub(super) fn send_left_over_acks(
        &mut self,
        now: Instant,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        for slot in 0..self.shared.paths.slots() {
            let owed = self.shared.paths.get(slot).and_then(|data| Owed::of(data, now));
            let Some(owed) = owed.filter(|owed| owed.due) else { continue };
            // What is left of a round that the outbox had no room for, else a new one.
            let mut left = if owed.on.is_empty() { self.ack_paths(now, &owed) } else { owed.on };
            if left.is_empty() {
                // What a socket holds back stays due.
                if self.shared.paths.views.iter().any(|view| view.blocked) {
                    continue;
                }
                if let Some(data) = self.shared.paths.get_mut(slot) {
                    data.packets.received.defer();
                }
                continue;
            }
            let mut sent = false;
            for other in 0..self.shared.paths.slots() {
                let on = self.shared.paths.views.by_slot(other).map(|view| view.key);
                let Some(on) = on.filter(|&on| left.contains(on)) else { continue };
                // A round goes on without paths whose sockets take nothing.
                if self.shared.paths.at(other).is_some_and(|path| path.is_blocked()) {
                    left = left.without(on);
                    continue;
                }
                self.shared.paths.note_ack_left(slot, left);
                self.send_ack_packet(now, other, slot, outbox)?;
                left = left.without(on);
                sent = true;
            }
            if sent {
                self.note_ack_written(now, slot);
            }
        }
        Ok(())
    }

    /// The paths on which an acknowledgement goes now.
    fn ack_paths(&mut self, now: Instant, owed: &Owed) -> PathSet {
        let on = if owed.lives {
            self.scheduler.ack_route(now, &self.shared, owed.path).on
        } else {
            PathSet::EMPTY
        };
        let (table, ids) = (&self.shared.paths, &self.ids);
        let views = &table.views;
        let itself = Some(owed.path).filter(|&path| owed.lives && table.carries_acks(ids, path));
        let mut paths = PathSet::EMPTY;
        let mut answers = false;
        for view in views.iter().filter(|view| on.contains(view.key)) {
            if table.carries_acks(ids, view.key) && view.state != PathState::Closing {
                paths = paths.with(view.key);
                answers |= table.suffices(view.key, owed);
            }
        }
        // Else the acknowledgement also goes the way of its data, or, if that cannot carry it, the
        // best one.
        let best = || views.least_srtt_of(|view| table.carries_acks(ids, view.key));
        if !answers && let Some(path) = itself.or_else(best) {
            paths = paths.with(path);
        }
        paths
    }

    fn send_ack_packet(
        &mut self,
        now: Instant,
        slot: u8,
        acknowledged: u8,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        self.send_one_rtt(now, outbox, slot, ACK_DATAGRAM, |connection, packet| {
            let named = connection.multipath().is_some();
            connection.shared.paths.write_ack(now, acknowledged, named, packet);
            connection.write_acks(now, packet);
            connection.shared.paths.ask_for_ack(now, slot, packet);
        })?;
        Ok(())
    }

    /// Writes the acknowledgements that are to travel on the packet's path.
    pub(in crate::connection) fn write_acks(
        &mut self,
        now: Instant,
        packet: &mut PacketBuilder<'_>,
    ) {
        let named = self.multipath().is_some();
        for slot in 0..self.shared.paths.slots() {
            let owed = self.shared.paths.get(slot).and_then(|data| Owed::of(data, now));
            let Some(owed) = owed.filter(|owed| !carries_ack_of(packet, owed.path)) else {
                continue;
            };
            let Some(ride) = self.ride(now, &owed, packet.key()) else { continue };
            if !self.shared.paths.write_ack(now, slot, named, packet) {
                continue;
            }
            match ride {
                Ride::Also => {}
                Ride::Then(left) if left.is_empty() => self.note_ack_written(now, slot),
                Ride::Then(left) => self.shared.paths.note_ack_left(slot, left),
            }
        }
    }

    /// Whether an acknowledgement goes into a packet on the path `on`, and what is owed then.
    fn ride(&mut self, now: Instant, owed: &Owed, on: PathKey) -> Option<Ride> {
        if !owed.lives {
            // https://www.rfc-editor.org/rfc/rfc10069#section-3.4.3
            //# Endpoints SHOULD promptly send PATH_ACK frames for all unacknowledged packets
            //# received on an abandoned path if path state is still retained to do so.
            return owed.due.then_some(Ride::Then(PathSet::EMPTY));
        }
        let route = self.scheduler.ack_route(now, &self.shared, owed.path);
        if route.on.len() > 1 {
            // It goes on several paths, when it is due.
            if !owed.due {
                return None;
            }
            let paths = if owed.on.is_empty() { self.ack_paths(now, owed) } else { owed.on };
            return paths.contains(on).then(|| Ride::Then(paths.without(on)));
        }
        if !route.ride && !route.on.contains(on) {
            return None;
        }
        Some(if self.shared.paths.suffices(on, owed) {
            Ride::Then(PathSet::EMPTY)
        } else {
            Ride::Also
        })
    }

    /// An acknowledgement of all that came on a path was written on every path that it goes on.
    fn note_ack_written(&mut self, now: Instant, slot: u8) {
        let Some(data) = self.shared.paths.get_mut(slot) else { return };
        data.ack_owed = PathSet::EMPTY;
        data.packets.received.on_ack_written();
        if data.lives() {
            let event = Event::AckSent(data.key);
            self.scheduler.tell_ack_policy(now, &self.shared, event);
        }
    }
}

impl PathTable {
    /// True if an acknowledgement need not go another way than on `path`: that path answers, and
    /// no probe asked whether the acknowledged one does.
    fn suffices(&self, path: PathKey, owed: &Owed) -> bool {
        let answers = || self.views.get(path).is_some_and(|view| view.pto_count == 0);
        path == owed.path || !owed.probed && answers()
    }

    /// True if a packet with an acknowledgement may leave on a path.
    fn carries_acks(&self, ids: &ConnectionIds, path: PathKey) -> bool {
        let open = |path: PathRef<'_>| {
            !path.is_blocked() && path.data.addresses.active().amplification.allows(ACK_DATAGRAM)
        };
        self.at(path.slot).is_some_and(open) && ids.remote().active(path.id).is_some()
    }

    /// Once in a round trip, an acknowledgement with many ranges asks for one itself, so that the
    /// peer's answer lets old ranges go. <https://www.rfc-editor.org/rfc/rfc9000#section-13.2.4>
    ///
    /// So does, now and then, one that returns on another path than that of its data: nothing else
    /// would tell that the return path is dead. Not for PINGs alone, or two such ends would go on
    /// asking each other. <https://www.rfc-editor.org/rfc/rfc9000#section-13.2.4>
    fn ask_for_ack(&mut self, now: Instant, slot: u8, packet: &mut PacketBuilder<'_>) {
        let many = self.iter().any(|data| data.packets.received.range_count() > PING_ABOVE_RANGES);
        let own = packet.key();
        let foreign = |control: &SentControl| match control {
            SentControl::Ack { path, .. } if *path != own => Some(*path),
            _ => None,
        };
        let has_content = |path: PathKey| {
            let data = self.get(path.slot).filter(|data| data.key == path);
            data.is_some_and(|data| data.has_content)
        };
        let foreign: smallvec::SmallVec<[PathKey; 4]> =
            packet.record.controls.iter().filter_map(foreign).collect();
        let unwatched = foreign.iter().copied().any(has_content);
        let Some((data, view)) = self.pair_mut(slot) else { return };
        let rtt = data.recovery.rules().rtt(view);
        let unwatched = unwatched && !data.packets.sent.has_eliciting();
        let interval = if many { rtt } else { rtt.max(RETURN_PATH_CHECK) };
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
        //# In that case, an endpoint MUST NOT send an ack-eliciting frame in all packets that
        //# would otherwise be non-ack-eliciting, to avoid an infinite feedback loop of
        //# acknowledgments.
        let due = now - data.ack_pinged_at >= interval;
        if (many || unwatched) && due && view.state == PathState::Usable {
            data.ack_pinged_at = now;
            packet.write_eliciting(|writer| Frame::Ping.write(writer));
            for path in foreign {
                if let Some(data) = self.get_mut(path.slot) {
                    data.has_content = false;
                }
            }
        }
    }

    /// An acknowledgement has yet to go on the paths `left`.
    fn note_ack_left(&mut self, slot: u8, left: PathSet) {
        if let Some(data) = self.get_mut(slot) {
            data.ack_owed = left;
        }
    }

    /// Writes an acknowledgement of what came on the path in `slot`. True if the packet has it.
    /// `named`: the frame says of which path.
    fn write_ack(
        &mut self,
        now: Instant,
        slot: u8,
        named: bool,
        packet: &mut PacketBuilder<'_>,
    ) -> bool {
        let Some(data) = self.get_mut(slot) else { return false };
        let already = carries_ack_of(packet, data.key);
        if already || !data.packets.received.has_news() && !data.packets.received.wants_ack() {
            return already;
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.6
        //# For instance, packets that are protected with 1-RTT keys MUST be acknowledged in
        //# packets that are also protected with 1-RTT keys.
        //# Packets that a client sends with 0-RTT packet protection MUST be acknowledged by the
        //# server in packets protected by 1-RTT keys.
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.3
        //# An acknowledgment for a 1-RTT packet MUST be carried in a 1-RTT packet.
        // https://www.rfc-editor.org/rfc/rfc10069#section-2.3
        //# After the handshake concludes with support for the multipath extension, endpoints
        //# SHOULD use PATH_ACK frames instead of ACK frames, including for so far unacknowledged
        //# 0-RTT packets using path ID 0.
        let path = named.then_some(data.key.id);
        let key = data.key;
        let written = write_ranges(&data.packets.received, path, now, key, packet);
        data.probed &= !(written && packet.key() == key);
        written
    }
}

/// True if the packet has an acknowledgement of packets of `path`.
fn carries_ack_of(packet: &PacketBuilder<'_>, path: PathKey) -> bool {
    let of_path =
        |control: &SentControl| matches!(control, SentControl::Ack { path: of, .. } if *of == path);
    packet.record.controls.iter().any(of_path)
}

/// Writes an acknowledgement of what was received; true if it fit.
pub(super) fn write_ranges(
    received: &crate::recovery::Received,
    path: Option<PathId>,
    now: Instant,
    key: PathKey,
    packet: &mut PacketBuilder<'_>,
) -> bool {
    let Some(largest) = received.largest() else { return false };
    // Our ack_delay_exponent is the default of 3.
    // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.5
    //# An endpoint MUST NOT include delays that it does not control when populating the ACK Delay
    //# field in an ACK frame. When the measured acknowledgment delay is larger than its
    //# max_ack_delay, an endpoint SHOULD report the measured delay.
    let delay = received.ack_delay(now).as_micros() >> 3;
    let ecn = received.ecn_counts().map(|[ect0, ect1, ce]| EcnCounts { ect0, ect1, ce });
    // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.3
    //# ACK frames SHOULD always acknowledge the most recently received packets, and the more out
    //# of order the packets are, the more important it is to send an updated ACK frame quickly,
    //# to prevent the peer from declaring a packet as lost and spuriously retransmitting the
    //# frames it contains. A receiver SHOULD include an ACK Range containing the largest received
    //# packet number in every ACK frame.
    let ranges = received.ranges().take(MAX_ACK_RANGES).map(|(first, last)| {
        AckRange::new(quipu_base::PacketNumber(first), quipu_base::PacketNumber(last))
    });
    let written = packet.write(|writer| write_ack(writer, path, delay, ranges, ecn).map(|_| ()));
    if written {
        packet.note_ack(SentControl::Ack { path: key, largest });
    }
    written
}
