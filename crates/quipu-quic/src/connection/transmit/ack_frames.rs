//! Acknowledgements into packets: those that ride on others, and those that are due alone.

use quipu_base::{Duration, Instant, PathId};
use quipu_policy::{Event, PathKey, PathSet, PathState};

use super::Full;
use crate::connection::Connection;
use crate::connection::packet::PacketBuilder;
use crate::outbox::Outbox;
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

impl Connection {
    /// Acknowledgements that are due and that no packet carried.
    pub(super) fn send_left_over_acks(
        &mut self,
        now: Instant,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        for slot in 0..self.shared.paths.slots() {
            let Some(data) = self.shared.paths.get(slot) else { continue };
            if !data.received.wants_ack() || !data.received.is_due(now) {
                continue;
            }
            let key = data.key;
            let (lives, owed) = (data.lives(), data.ack_owed);
            // What is left of a round that the outbox had no room for, else a new one.
            let mut owed = if owed.is_empty() { self.ack_paths(now, key, lives) } else { owed };
            if owed.is_empty() {
                if let Some(data) = self.shared.paths.get_mut(slot) {
                    data.received.defer();
                }
                continue;
            }
            for other in 0..self.shared.paths.slots() {
                let Some(view) = self.shared.paths.views.by_slot(other) else { continue };
                let on = view.key;
                if !owed.contains(on) {
                    continue;
                }
                let sent = self.send_ack_packet(now, other, key, outbox);
                if sent.is_ok() {
                    owed = owed.without(on);
                }
                if let Some(data) = self.shared.paths.get_mut(slot) {
                    data.ack_owed = owed;
                }
                sent?;
            }
            self.note_ack_written(now, slot);
        }
        Ok(())
    }

    /// The paths on which an acknowledgement of `data`'s packets goes now.
    fn ack_paths(&mut self, now: Instant, data: PathKey, lives: bool) -> PathSet {
        let on = if lives {
            self.scheduler.ack_route(now, &self.shared, data).on
        } else {
            PathSet::EMPTY
        };
        let views = &self.shared.paths.views;
        let itself = views.get(data).map(|view| view.key).filter(|&key| self.carries_acks(key));
        let mut paths = PathSet::EMPTY;
        let mut answers = false;
        for view in views.iter().filter(|view| on.contains(view.key)) {
            if self.carries_acks(view.key) && view.state != PathState::Closing {
                paths = paths.with(view.key);
                answers |= self.suffices(view.key, data);
            }
        }
        // Else the acknowledgement also goes the way of its data, or, if that cannot carry it, the
        // best one.
        if !answers && let Some(path) = itself.or_else(|| views.least_srtt_usable()) {
            paths = paths.with(path);
        }
        paths
    }

    /// True if an acknowledgement of `data`'s packets need not go another way than on `path`: that
    /// path answers, and `data` was not asked by a probe whether it does.
    fn suffices(&self, path: PathKey, data: PathKey) -> bool {
        let answers = || self.shared.paths.views.get(path).is_some_and(|view| view.pto_count == 0);
        let probed = || self.shared.paths.get(data.slot).is_some_and(|data| data.probed);
        path == data || answers() && !probed()
    }

    /// True if a packet with an acknowledgement may leave on a path.
    fn carries_acks(&self, path: PathKey) -> bool {
        let data = self.shared.paths.get(path.slot);
        data.is_some_and(|data| data.amplification.allows(ACK_DATAGRAM))
            && self.ids.remote(path.id).is_some()
    }

    fn send_ack_packet(
        &mut self,
        now: Instant,
        slot: u8,
        data_path: PathKey,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        self.send_one_rtt(now, outbox, slot, ACK_DATAGRAM, |connection, packet| {
            connection.write_ack_of(now, data_path.slot, packet);
            connection.write_acks(now, packet);
            connection.ask_for_ack(now, slot, packet);
        })?;
        Ok(())
    }

    /// Once in a round trip, an acknowledgement with many ranges asks for one itself, so that the
    /// peer's answer lets old ranges go. <https://www.rfc-editor.org/rfc/rfc9000#section-13.2.4>
    ///
    /// So does, now and then, one that returns on another path than that of its data: nothing else
    /// would tell that the return path is dead. Not for PINGs alone, or two such ends would go on
    /// asking each other. <https://www.rfc-editor.org/rfc/rfc9000#section-13.2.4>
    fn ask_for_ack(&mut self, now: Instant, slot: u8, packet: &mut PacketBuilder<'_>) {
        let many =
            self.shared.paths.iter().any(|data| data.received.range_count() > PING_ABOVE_RANGES);
        let own = packet.key();
        let foreign = |control: &SentControl| match control {
            SentControl::Ack { path, .. } if *path != own => Some(*path),
            _ => None,
        };
        let has_content = |path: PathKey| {
            let data = self.shared.paths.get(path.slot).filter(|data| data.key == path);
            data.is_some_and(|data| data.has_content)
        };
        let foreign: smallvec::SmallVec<[PathKey; 4]> =
            packet.record.controls.iter().filter_map(foreign).collect();
        let unwatched = foreign.iter().copied().any(has_content);
        let Some((data, view)) = self.shared.paths.pair_mut(slot) else { return };
        let rtt = view.srtt.unwrap_or(crate::recovery::INITIAL_RTT);
        let unwatched = unwatched && !data.sent.has_eliciting();
        let interval = if many { rtt } else { rtt.max(RETURN_PATH_CHECK) };
        let due = now - data.ack_pinged_at >= interval;
        if (many || unwatched) && due && view.state == PathState::Usable {
            data.ack_pinged_at = now;
            packet.write_eliciting(|writer| Frame::Ping.write(writer));
            for path in foreign {
                if let Some(data) = self.shared.paths.get_mut(path.slot) {
                    data.has_content = false;
                }
            }
        }
    }

    /// Writes the acknowledgements that are to travel on the packet's path.
    pub(in crate::connection) fn write_acks(
        &mut self,
        now: Instant,
        packet: &mut PacketBuilder<'_>,
    ) {
        for slot in 0..self.shared.paths.slots() {
            let Some(data) = self.shared.paths.get(slot) else { continue };
            let (key, due, lives) = (data.key, data.received.is_due(now), data.lives());
            if !data.received.wants_ack() || carries_ack_of(packet, key) {
                continue;
            }
            if !lives {
                if due && self.write_ack_of(now, slot, packet) {
                    self.note_ack_written(now, slot);
                }
                continue;
            }
            let route = self.scheduler.ack_route(now, &self.shared, key);
            if route.on.len() > 1 {
                if due {
                    self.write_copy(now, slot, packet);
                }
            } else if (route.ride || route.on.contains(packet.key()))
                && self.write_ack_of(now, slot, packet)
                && self.suffices(packet.key(), key)
            {
                self.note_ack_written(now, slot);
            }
        }
    }

    /// Writes an acknowledgement that goes on several paths, if it has yet to go on the packet's.
    fn write_copy(&mut self, now: Instant, slot: u8, packet: &mut PacketBuilder<'_>) {
        let Some((key, owed)) = self.shared.paths.get(slot).map(|data| (data.key, data.ack_owed))
        else {
            return;
        };
        let owed = if owed.is_empty() { self.ack_paths(now, key, true) } else { owed };
        if owed.contains(packet.key()) && self.write_ack_of(now, slot, packet) {
            self.note_copy_written(now, slot, owed.without(packet.key()));
        }
    }

    /// An acknowledgement was written on one of its paths; it has yet to go on those `left`.
    fn note_copy_written(&mut self, now: Instant, slot: u8, left: PathSet) {
        if left.is_empty() {
            self.note_ack_written(now, slot);
        } else if let Some(data) = self.shared.paths.get_mut(slot) {
            data.ack_owed = left;
        }
    }

    /// An acknowledgement of all that came on a path was written on every path that it goes on.
    fn note_ack_written(&mut self, now: Instant, slot: u8) {
        let Some(data) = self.shared.paths.get_mut(slot) else { return };
        data.ack_owed = PathSet::EMPTY;
        data.received.on_ack_written();
        if data.lives() {
            let event = Event::AckSent(data.key);
            self.scheduler.tell_ack_policy(now, &self.shared, event);
        }
    }

    fn write_ack_of(&mut self, now: Instant, slot: u8, packet: &mut PacketBuilder<'_>) -> bool {
        let multipath = self.multipath().is_some();
        let Some(data) = self.shared.paths.get_mut(slot) else { return false };
        let already = carries_ack_of(packet, data.key);
        if already || !data.received.has_news() && !data.received.wants_ack() {
            return already;
        }
        let path = multipath.then_some(data.key.id);
        let key = data.key;
        let written = write_ranges(&data.received, path, now, key, packet);
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
    let delay = received.ack_delay(now).as_micros() >> 3;
    let ecn = received.ecn_counts().map(|[ect0, ect1, ce]| EcnCounts { ect0, ect1, ce });
    let ranges = received.ranges().take(MAX_ACK_RANGES).map(|(first, last)| {
        AckRange::new(quipu_base::PacketNumber(first), quipu_base::PacketNumber(last))
    });
    let written = packet.write(|writer| write_ack(writer, path, delay, ranges, ecn).map(|_| ()));
    if written {
        packet.note_ack(SentControl::Ack { path: key, largest });
    }
    written
}
