//! What the network does to the mock engine's packets: acknowledgement, loss, silence, time.

use quipu_base::{Bytes, Duration, Instant, PacketNumber};

use super::MockEngine;
use crate::conformance::world::Flight;
use crate::key::{PathKey, Span, StreamKey};
use crate::seam::event::Event;
use crate::seam::view::{Kind, PathState, Piece, StreamTable};

/// <https://www.rfc-editor.org/rfc/rfc9002#section-6.1.1>: kPacketThreshold.
const PACKET_THRESHOLD: u64 = 3;
/// <https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2>: the initial round-trip time.
const INITIAL_RTT: Duration = Duration::from_millis(333);
/// Packets that a pacer lets go at once, and the pause after them.
const PACED_BURST: u32 = 10;
const PACED_PAUSE: Duration = Duration::from_millis(1);
/// The mock's windows, in packets.
const LARGEST_WINDOW: u64 = 200;
const LEAST_WINDOW: u64 = 2;

/// A path's way through the network, and the engine's timers of it.
#[derive(Clone, Debug)]
pub(in crate::conformance) struct Link {
    pub(in crate::conformance) rtt: Duration,
    pub(in crate::conformance) silent: bool,
    /// So many of the next packets are lost.
    pub(in crate::conformance) to_lose: u32,
    pub(in crate::conformance) paced: bool,
    pub(in crate::conformance) next_pn: u64,
    burst: u32,
    largest_acked: Option<PacketNumber>,
    last_acked_at: Option<Instant>,
    pub(in crate::conformance) pto_at: Option<Instant>,
}

impl Link {
    pub(in crate::conformance) fn new(rtt: Duration) -> Self {
        Link {
            rtt,
            silent: false,
            to_lose: 0,
            paced: false,
            next_pn: 0,
            burst: 0,
            largest_acked: None,
            last_acked_at: None,
            pto_at: None,
        }
    }

    /// A packet leaves: when its acknowledgement arrives, and when the pacer lets the next go.
    pub(in crate::conformance) fn on_sent(&mut self, now: Instant) -> (Option<Instant>, Instant) {
        self.next_pn += 1;
        self.burst += 1;
        let pause = self.paced && self.burst >= PACED_BURST;
        if pause {
            self.burst = 0;
        }
        let lost = self.silent || self.to_lose > 0;
        self.to_lose = self.to_lose.saturating_sub(1);
        let acked_at = (!lost).then_some(now + self.rtt);
        (acked_at, if pause { now + PACED_PAUSE } else { now })
    }
}

/// Bytes that became pending again: of which stream, which, lost on which path.
type Requeued = Vec<(StreamKey, Span)>;

impl MockEngine {
    fn link(&mut self, path: PathKey) -> Option<&mut Link> {
        self.links.get_mut(path.index())?.as_mut()
    }

    fn path_keys(&self) -> Vec<PathKey> {
        self.world.paths.iter().map(|path| path.key).collect()
    }

    /// Lets time pass up to `end`, sending whenever something came.
    pub(in crate::conformance) fn pass(&mut self, end: Instant) {
        loop {
            self.send(None);
            let Some(next) = self.next_timer().filter(|&next| next <= end) else { break };
            self.world.now = self.world.now.max(next);
            self.fire();
        }
        self.world.now = self.world.now.max(end);
        self.send(None);
    }

    /// Fires the next timer, whenever that is; `false` if there is none.
    pub(in crate::conformance) fn step(&mut self) -> bool {
        self.send(None);
        let Some(next) = self.next_timer() else { return false };
        self.world.now = self.world.now.max(next);
        self.fire();
        true
    }

    fn next_timer(&self) -> Option<Instant> {
        let links = self.links.iter().flatten().filter_map(|link| link.pto_at);
        let acks =
            self.world.paths.iter().flat_map(|path| {
                self.world.flights.on(path.key).filter_map(|flight| flight.acked_at)
            });
        links.chain(acks).chain(self.wake_at).min()
    }

    fn fire(&mut self) {
        let now = self.world.now;
        for path in self.path_keys() {
            self.acknowledge(path);
            if self.link(path).and_then(|link| link.pto_at).is_some_and(|at| at <= now) {
                self.probe_timeout(path);
            }
        }
        if self.wake_at.is_some_and(|at| at <= now) {
            self.wake_at = None;
            self.tell(Event::Woken);
        }
    }

    /// One ACK frame with all that is due on a path.
    fn acknowledge(&mut self, path: PathKey) {
        let now = self.world.now;
        let acked =
            self.world.flights.take(path, |flight| flight.acked_at.is_some_and(|at| at <= now));
        let Some(newest) = acked.last() else { return };
        let sample = now - newest.sent_at;
        let Some(link) = self.link(path) else { return };
        let largest = link.largest_acked.max(Some(newest.pn));
        link.largest_acked = largest;
        link.last_acked_at = Some(now);
        let revived =
            self.world.paths.get(path).is_some_and(|view| view.state == PathState::Suspect);
        let newest_pn = newest.pn;
        self.measure(path, sample, acked.iter().map(|flight| flight.bytes).sum());
        let mut closed = Vec::new();
        for flight in &acked {
            closed.extend(self.world.acknowledge(flight));
        }
        let late = sample.scaled(9, 8);
        let is_lost = |flight: &Flight| {
            largest.is_some_and(|largest| {
                flight.pn.0 + PACKET_THRESHOLD <= largest.0
                    || (flight.pn < largest && flight.sent_at + late <= now)
            })
        };
        let lost = self.world.flights.take(path, is_lost);
        let requeued = self.world.lose(&lost);
        if !lost.is_empty() {
            let bytes: Bytes = lost.iter().map(|flight| flight.bytes).sum();
            self.world.set_path(path, |path| {
                path.in_flight -= bytes;
                path.cwnd = Bytes(path.cwnd.0 / 2).max(Bytes(path.payload.0 * LEAST_WINDOW));
            });
        }
        self.arm_pto(path);
        self.world.recount();
        self.tell(Event::PathMeasured(path));
        if revived {
            self.tell(Event::PathRevived(path));
        }
        for flight in &acked {
            self.tell(Event::Acked(flight.as_sent()));
        }
        for flight in &lost {
            self.tell(Event::Lost(flight.as_sent()));
        }
        self.tell_requeued(path, requeued);
        self.tell(Event::AckSeen {
            data: path,
            arrived_on: path,
            largest: newest_pn,
            since_sent: sample,
            advances: true,
        });
        for stream in closed {
            self.world.priorities.detach(stream);
            self.tell_closed(stream);
        }
        self.tell_edges(None);
    }

    fn measure(&mut self, path: PathKey, sample: Duration, bytes: Bytes) {
        self.world.set_path(path, |path| {
            path.in_flight -= bytes;
            let deviation = path.srtt.map_or(sample.divided_by(2), |srtt| {
                let kept = path.rttvar.scaled(3, 4);
                kept + srtt.abs_diff(sample).divided_by(4)
            });
            path.rttvar = deviation;
            let srtt = path.srtt.map_or(sample, |srtt| srtt.scaled(7, 8) + sample.divided_by(8));
            path.srtt = Some(srtt);
            path.latest_rtt = Some(sample);
            path.min_rtt = Some(path.min_rtt.map_or(sample, |least| least.min(sample)));
            path.pto_count = 0;
            path.cwnd =
                (path.cwnd + bytes).min(Bytes(path.payload.0 * LARGEST_WINDOW)).max(path.cwnd);
            if path.state == PathState::Suspect {
                path.state = PathState::Usable;
            }
        });
    }

    fn tell_requeued(&mut self, origin: PathKey, requeued: Requeued) {
        for (stream, span) in requeued {
            if self.world.streams.get(stream).is_some() {
                self.tell(Event::Requeued { stream, span, origin });
            }
        }
    }

    /// Sets the probe timer by the packets in flight.
    pub(in crate::conformance) fn arm_pto(&mut self, path: PathKey) {
        let newest = self.world.flights.on(path).next_back().map(|flight| flight.sent_at);
        let Some(view) = self.world.paths.get(path) else { return };
        let rtt = view.srtt.unwrap_or(INITIAL_RTT) + view.rttvar.saturating_mul(4);
        let wait = (rtt + Duration::from_millis(1)).saturating_mul(1 << view.pto_count.min(12));
        if let Some(link) = self.link(path) {
            link.pto_at = newest.map(|sent_at| sent_at + wait);
        }
    }

    /// A probe timeout: the path may fall under suspicion, and a probe leaves.
    fn probe_timeout(&mut self, path: PathKey) {
        let Some((oldest, frame)) = self.world.flights.on(path).next().map(|oldest| {
            let frame = oldest.pieces.iter().find_map(|piece| {
                let sent = self.world.streams.unacked_from(piece.stream, piece.span.start)?;
                Some((piece.stream, sent.intersection(piece.span)?))
            });
            (oldest.sent_at, frame)
        }) else {
            return;
        };
        let answered = self.world.paths.usable().any(|other| {
            let link = self.links.get(other.key.index()).and_then(Option::as_ref);
            other.key != path
                && link.and_then(|link| link.last_acked_at).is_some_and(|at| at > oldest)
        });
        let was_usable =
            self.world.paths.get(path).is_some_and(|view| view.state == PathState::Usable);
        let suspect = answered && was_usable;
        self.world.set_path(path, |path| path.pto_count += 1);
        let mut requeued = Requeued::new();
        if suspect {
            self.world.set_path(path, |path| path.state = PathState::Suspect);
            requeued = self.world.lose_path(path);
        }
        self.world.recount();
        self.tell(Event::Pto(path));
        if suspect {
            self.tell(Event::PathSuspect(path));
        }
        self.tell_requeued(path, requeued);
        self.tell_edges(None);
        self.send_probe(path, frame);
    }

    /// A probe carries a copy of the oldest bytes, else a PING. The bytes are those of another
    /// packet: the probe's own loss asks for nothing.
    fn send_probe(&mut self, path: PathKey, frame: Option<(StreamKey, Span)>) {
        let (mut pieces, mut fins) = (Vec::new(), Vec::new());
        if let Some((stream, span)) = frame {
            pieces.push(Piece { stream, span, kind: Kind::Copy });
            fins.push(self.world.streams.ends_at(stream, span.end));
        }
        let bytes = Bytes(40 + frame.map_or(0, |(_, span)| span.len().0));
        self.world.recount();
        self.close_packet(path, bytes, pieces, fins, false);
        self.tell_edges(None);
    }

    /// A path is abandoned.
    pub(in crate::conformance) fn remove_path(&mut self, path: PathKey) {
        let lost = self.world.flights.take(path, |_| true);
        let requeued = self.world.lose(&lost);
        self.world.paths.remove(path);
        if let Some(link) = self.links.get_mut(path.index()) {
            *link = None;
        }
        self.world.recount();
        self.tell(Event::PathGone(path));
        self.tell_requeued(path, requeued);
        self.tell_edges(None);
    }
}
