//! A scene for tests of reinjection: one stream of 50,000 bytes over some paths.

use quipu_base::{Bytes, Duration, Instant, Offset, PacketNumber, PathId};

use super::Reinject;
use crate::conformance::World;
use crate::key::{PathKey, Span, StreamKey};
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{PathState, Piece, SentPacket};

pub(crate) struct Scene<R> {
    pub(crate) world: World,
    pub(crate) policy: R,
    pub(crate) stream: StreamKey,
    pub(crate) paths: Vec<PathKey>,
}

impl<R: Reinject> Scene<R> {
    /// Paths of these round-trip times in milliseconds.
    pub(crate) fn new(policy: R, rtts: &[u64]) -> Self {
        let mut world = World::new(Bytes(1_000_000));
        let paths: Vec<PathKey> =
            (0..rtts.len() as u32).map(|id| world.add_path(PathId(id)).unwrap()).collect();
        for (path, rtt) in paths.iter().zip(rtts) {
            world.set_path(*path, |path| path.srtt = Some(Duration::from_millis(*rtt)));
        }
        let stream = world.streams.open(Instant::ZERO, Default::default(), Bytes(1_000_000));
        world.streams.write(stream, Bytes(50_000));
        let mut scene = Scene { world, policy, stream, paths };
        for path in scene.paths.clone() {
            scene.tell(Event::PathUp(path));
        }
        scene
    }

    pub(crate) fn tell(&mut self, event: Event<'_>) {
        self.policy.on_event(&event, &self.world.view());
    }

    pub(crate) fn send(&mut self, path: usize, start: u64, end: u64, copy: bool) {
        self.send_of(self.stream, path, start, end, copy);
    }

    /// A packet leaves and is in flight.
    pub(crate) fn send_of(
        &mut self,
        stream: StreamKey,
        path: usize,
        start: u64,
        end: u64,
        copy: bool,
    ) {
        let path = self.paths[path];
        let (piece, _) = self.world.place(stream, span(start, end), copy);
        self.world.set_path(path, |path| {
            path.packets_sent += 1;
            path.in_flight += piece.span.len();
        });
        self.tell(Event::Placed { path, piece });
        let sent_at = self.world.now;
        self.tell(Event::Sent(SentPacket { sent_at, ..packet(path, &[piece]) }));
    }

    pub(crate) fn acknowledge(&mut self, path: usize, start: u64, end: u64) {
        self.world.streams.acknowledge(self.stream, span(start, end), false, true);
        self.tell(Event::Acked(packet(self.paths[path], &[])));
    }

    /// Bytes are lost and pending again.
    pub(crate) fn lose(&mut self, path: usize, start: u64, end: u64) {
        let path = self.paths[path];
        self.world.streams.lose(self.stream, span(start, end), false, path, &mut Vec::new());
        self.tell(Event::Lost(packet(path, &[])));
    }

    /// A path falls under suspicion, and the bytes on it are pending again.
    pub(crate) fn suspect(&mut self, path: usize, start: u64, end: u64) {
        let origin = self.paths[path];
        let (stream, span) = (self.stream, span(start, end));
        self.world.set_path(origin, |path| path.state = PathState::Suspect);
        self.tell(Event::PathSuspect(origin));
        self.world.streams.lose(stream, span, false, origin, &mut Vec::new());
        self.tell(Event::Requeued { stream, span, origin });
    }

    /// A suspect path answers.
    pub(crate) fn revive(&mut self, path: usize) {
        let path = self.paths[path];
        self.world.set_path(path, |path| path.state = PathState::Usable);
        self.tell(Event::PathRevived(path));
    }

    /// The copy that goes next: path, start, end. `busy`: the stream has bytes of its own to send.
    pub(crate) fn next(&mut self, busy: bool) -> Option<(usize, u64, u64)> {
        self.next_instead_of(busy.then_some(self.stream))
    }

    pub(crate) fn next_instead_of(
        &mut self,
        stream: Option<StreamKey>,
    ) -> Option<(usize, u64, u64)> {
        let copy = self.policy.next(stream, &self.world.view(), &mut Notes::off());
        let again = self.policy.next(stream, &self.world.view(), &mut Notes::off());
        assert_eq!(copy, again, "asking moves nothing");
        copy.map(|(path, _, span)| (path.index(), span.start.0, span.end.0))
    }
}

fn span(start: u64, end: u64) -> Span {
    Span::new(Offset(start), Offset(end))
}

fn packet(path: PathKey, pieces: &[Piece]) -> SentPacket<'_> {
    let (pn, bytes) = (PacketNumber(0), Bytes(1_240));
    SentPacket { path, pn, bytes, sent_at: Instant::ZERO, pieces }
}
