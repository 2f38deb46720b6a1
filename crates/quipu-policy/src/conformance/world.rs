//! All that a view shows, in one place that can be changed by hand.

use std::collections::VecDeque;

use quipu_base::{Bytes, Duration, Instant, PacketNumber, PathId, PerMille};

use super::streams::Streams;
use crate::key::{PathKey, Span, StreamKey};
use crate::priority::Priorities;
use crate::seam::view::{
    Class, ConnView, Kind, PathState, PathStatus, PathView, Paths, Piece, SentPacket, SentTable,
    StreamTable, View,
};

/// What a view shows: for unit tests that set it up by hand, and for the mock engine.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The present.
    pub now: Instant,
    /// The connection as a whole.
    pub conn: ConnView,
    /// Every path.
    pub paths: Paths,
    /// Every stream.
    pub streams: Streams,
    /// Packets in flight.
    pub flights: Flights,
    /// The dependency tree.
    pub priorities: Priorities,
}

/// Packets in flight, by path slot, in packet-number order.
#[derive(Clone, Debug, Default)]
pub struct Flights {
    by_path: Vec<VecDeque<Flight>>,
}

/// A packet in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flight {
    /// Where.
    pub path: PathKey,
    /// Its number.
    pub pn: PacketNumber,
    /// Its size.
    pub bytes: Bytes,
    /// When it left.
    pub sent_at: Instant,
    /// Its frames.
    pub pieces: Vec<Piece>,
    /// Which of them told the end of their stream.
    pub fins: Vec<bool>,
    /// True while its loss would make bytes pending: not once its path was suspected, and never
    /// for a probe, which repeats bytes of another packet.
    pub counts: bool,
    /// When the acknowledgement arrives; `None` if it never does.
    pub acked_at: Option<Instant>,
}

impl Flight {
    /// As a policy sees it.
    pub fn as_sent(&self) -> SentPacket<'_> {
        SentPacket {
            path: self.path,
            pn: self.pn,
            bytes: self.bytes,
            sent_at: self.sent_at,
            pieces: &self.pieces,
        }
    }
}

impl World {
    /// A connection with `credit` and nothing else.
    pub fn new(credit: Bytes) -> Self {
        let conn = ConnView { credit, ..ConnView::default() };
        World { conn, ..World::default() }
    }

    /// Borrows everything.
    pub fn view(&self) -> View<'_> {
        View {
            now: self.now,
            conn: &self.conn,
            paths: &self.paths,
            streams: &self.streams,
            sent: &self.flights,
            priorities: &self.priorities,
        }
    }

    /// Adds a usable path in the lowest free slot: a window of ten packets, no sample of the
    /// round-trip time, validated just now. `None` if there are too many.
    pub fn add_path(&mut self, id: PathId) -> Option<PathKey> {
        let slot = (0..Paths::MAX as u8).find(|&slot| self.paths.by_slot(slot).is_none())?;
        let key = PathKey { slot, id };
        self.paths.insert(PathView {
            key,
            state: PathState::Usable,
            status: PathStatus::Available,
            packets_sent: 0,
            last_sent_at: Some(self.now),
            pto_count: 0,
            srtt: None,
            rttvar: Duration::ZERO,
            min_rtt: None,
            latest_rtt: None,
            cwnd: Bytes(12_000),
            ssthresh: None,
            in_flight: Bytes::ZERO,
            release_at: Instant::ZERO,
            rate: None,
            limited: false,
            amplification_limited: false,
            blocked: false,
            loss: PerMille(0),
            payload: Bytes(1_200),
        });
        Some(key)
    }

    /// Changes a path, if it lives.
    pub fn set_path(&mut self, key: PathKey, change: impl FnOnce(&mut PathView)) {
        if let Some(path) = self.paths.get_mut(key) {
            change(path);
        }
        self.recount();
    }

    /// Brings the connection's sums up to date, credit excepted.
    pub fn recount(&mut self) {
        self.conn.unsent = self.streams.unsent();
        self.conn.ready = self.streams.iter().filter(|stream| stream.is_ready()).count() as u32;
        self.conn.in_flight = self.paths.iter().map(|path| path.in_flight).sum();
    }

    /// Writes a frame's bytes off what is pending; credit and sums follow. Returns the piece, and
    /// whether it told the end of its stream.
    pub fn place(&mut self, stream: StreamKey, span: Span, copy: bool) -> (Piece, bool) {
        let run = self.streams.pending_from(stream, span.start);
        let again = run.is_some_and(|run| match run.class {
            Class::Lost { .. } => run.span.start == span.start,
            _ => span.is_empty() && self.streams.is_end_lost(stream),
        });
        let high_sent = self.streams.get(stream).map(|view| view.high_sent).unwrap_or_default();
        let fin = self.streams.place(stream, span, copy);
        let kind = match (copy, again) {
            (true, _) => Kind::Copy,
            (false, true) => Kind::Again,
            (false, false) => Kind::Fresh,
        };
        if !copy {
            self.conn.credit -= span.end.since(high_sent);
        }
        (Piece { stream, span, kind }, fin)
    }

    /// The peer has a packet. Returns the streams that are over with it: the table shows them no
    /// more, and the tree forgets them when that is told.
    pub fn acknowledge(&mut self, flight: &Flight) -> Vec<StreamKey> {
        let mut closed = Vec::new();
        for (piece, &fin) in flight.pieces.iter().zip(&flight.fins) {
            if self.streams.acknowledge(piece.stream, piece.span, fin, flight.counts) {
                closed.push(piece.stream);
            }
        }
        closed
    }

    /// Packets count as in flight no more. Returns what is pending again, by (stream, offset).
    pub fn lose(&mut self, lost: &[Flight]) -> Vec<(StreamKey, Span)> {
        let mut requeued = Vec::new();
        for flight in lost.iter().filter(|flight| flight.counts) {
            for (piece, &fin) in flight.pieces.iter().zip(&flight.fins) {
                let mut spans = Vec::new();
                self.streams.lose(piece.stream, piece.span, fin, flight.path, &mut spans);
                requeued.extend(spans.into_iter().map(|span| (piece.stream, span)));
            }
        }
        requeued.sort();
        requeued.dedup();
        requeued
    }

    /// All that is in flight on a path counts no more, though it may yet be acknowledged. Returns
    /// what is pending again, by (stream, offset).
    pub fn lose_path(&mut self, path: PathKey) -> Vec<(StreamKey, Span)> {
        let flights: Vec<Flight> = self.flights.on(path).cloned().collect();
        for flight in self.flights.on_mut(path) {
            flight.counts = false;
        }
        self.lose(&flights)
    }
}

impl Flights {
    /// A packet left.
    pub fn push(&mut self, flight: Flight) {
        let slot = flight.path.index();
        if self.by_path.len() <= slot {
            self.by_path.resize_with(slot + 1, VecDeque::new);
        }
        self.by_path[slot].push_back(flight);
    }

    /// Packets in flight on a path.
    pub fn on(&self, path: PathKey) -> impl DoubleEndedIterator<Item = &Flight> {
        self.by_path.get(path.index()).into_iter().flatten().filter(move |it| it.path == path)
    }

    /// The same, to change them.
    pub fn on_mut(&mut self, path: PathKey) -> impl Iterator<Item = &mut Flight> {
        self.by_path.get_mut(path.index()).into_iter().flatten().filter(move |it| it.path == path)
    }

    /// Takes out the packets on a path that `which` names, in packet-number order.
    pub fn take(&mut self, path: PathKey, which: impl Fn(&Flight) -> bool) -> Vec<Flight> {
        let Some(queue) = self.by_path.get_mut(path.index()) else { return Vec::new() };
        let (taken, kept) =
            queue.drain(..).partition(|flight| flight.path == path && which(flight));
        *queue = kept;
        taken.into()
    }
}

impl SentTable for Flights {
    fn next_sent(&self, path: PathKey, after: Option<PacketNumber>) -> Option<SentPacket<'_>> {
        self.on(path).find(|flight| after.is_none_or(|pn| flight.pn > pn)).map(Flight::as_sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::priority::Priority;
    use quipu_base::Offset;

    #[test]
    fn the_end_of_a_stream_goes_again_after_its_loss() {
        let mut world = World::new(Bytes(1000));
        let path = world.add_path(PathId(0)).unwrap();
        let key = world.streams.open(Instant::ZERO, Priority::default(), Bytes(1000));
        world.streams.finish(key);
        let end = Span::new(Offset::ZERO, Offset::ZERO);
        let (first, fin) = world.place(key, end, false);
        assert_eq!((first.kind, fin), (Kind::Fresh, true));
        world.flights.push(Flight {
            path,
            pn: PacketNumber(0),
            bytes: Bytes(40),
            sent_at: Instant::ZERO,
            pieces: vec![first],
            fins: vec![fin],
            counts: true,
            acked_at: None,
        });
        assert_eq!(world.lose_path(path), [(key, end)]);
        assert_eq!(world.lose_path(path), [], "it counts no more");
        let (again, fin) = world.place(key, end, false);
        assert_eq!((again.kind, fin), (Kind::Again, true));
    }
}
