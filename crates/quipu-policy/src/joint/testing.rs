//! A joint policy with two paths and its streams, for unit tests: asked and told by hand.

use quipu_base::{Bytes, Duration, Instant, PathId};

use super::Joint;
use crate::conformance::World;
use crate::key::{PathKey, Span, StreamKey};
use crate::priority::{NodeId, Priority, PriorityEdit};
use crate::seam::decision::{Ask, Decision, Notes};
use crate::seam::event::Event;
use crate::seam::view::StreamTable;

/// Paths of 20 and 100 ms, ten packets of window each, and no streams.
pub(crate) struct Scene<J> {
    pub(crate) world: World,
    pub(crate) joint: J,
    pub(crate) fast: PathKey,
    pub(crate) slow: PathKey,
}

impl<J: Joint> Scene<J> {
    pub(crate) fn new(joint: J) -> Self {
        let mut world = World::new(Bytes(1_000_000));
        let fast = world.add_path(PathId(0)).unwrap();
        let slow = world.add_path(PathId(1)).unwrap();
        world.set_path(fast, |path| path.srtt = Some(Duration::from_millis(20)));
        world.set_path(slow, |path| path.srtt = Some(Duration::from_millis(100)));
        Scene { world, joint, fast, slow }
    }

    /// A stream with so many bytes under the root.
    pub(crate) fn open(&mut self, bytes: u64) -> StreamKey {
        let key = self.create();
        self.write(key, bytes);
        self.tell(Event::Ready(key));
        key
    }

    /// A stream with so many bytes and a node of that weight and parent.
    pub(crate) fn open_at(&mut self, parent: NodeId, weight: u16, bytes: u64) -> StreamKey {
        let stream = self.create();
        let node = NodeId(stream.id.0);
        for edit in [
            PriorityEdit::Insert { node, parent, weight, exclusive: false },
            PriorityEdit::Attach { node, stream: stream.id },
        ] {
            for edit in self.world.priorities.apply(&edit, Some(stream)).unwrap() {
                self.tell(Event::Tree(edit));
            }
        }
        let priority = Priority { node: self.world.priorities.key(node), ..Priority::default() };
        self.world.streams.set_priority(stream, priority);
        self.write(stream, bytes);
        self.tell(Event::Ready(stream));
        stream
    }

    /// The application tells that a stream will have what it has.
    pub(crate) fn size(&mut self, stream: StreamKey) {
        let written = self.world.streams.get(stream).unwrap().written;
        self.world.streams.set_size(stream, Bytes(written.0));
        self.tell(Event::Sized(stream));
    }

    fn create(&mut self) -> StreamKey {
        let key = self.world.streams.open(Instant::ZERO, Default::default(), Bytes(1_000_000));
        self.world.recount();
        self.tell(Event::Opened(key));
        key
    }

    /// More bytes for a stream; `Ready` is not told.
    pub(crate) fn write(&mut self, stream: StreamKey, bytes: u64) {
        self.world.streams.write(stream, Bytes(bytes));
        self.world.recount();
        self.tell(Event::Written(stream));
    }

    pub(crate) fn tell(&mut self, event: Event<'_>) {
        self.joint.on_event(&event, &self.world.view());
    }

    pub(crate) fn ask(&mut self) -> Decision {
        let answer = self.joint.decide(Ask::Packet, &self.world.view(), &mut Notes::off());
        let again = self.joint.decide(Ask::Packet, &self.world.view(), &mut Notes::off());
        assert_eq!(answer, again);
        answer
    }

    pub(crate) fn fill(&mut self, path: PathKey, space: u64) -> Decision {
        let ask = Ask::Fill { path, space: Bytes(space) };
        self.joint.decide(ask, &self.world.view(), &mut Notes::off())
    }

    pub(crate) fn place(&mut self, path: PathKey, stream: StreamKey, span: Span) {
        let (piece, _) = self.world.place(stream, span, false);
        self.world.set_path(path, |path| path.in_flight += span.len());
        self.tell(Event::Placed { path, piece });
    }

    /// Carries out what is answered, a packet of 1,200 bytes at most; `None` if nothing goes. Of a
    /// stream that has nothing left it tells.
    pub(crate) fn send(&mut self) -> Option<(PathKey, StreamKey)> {
        let answer = self.ask();
        let (path, stream, from) = sends(answer)?;
        let Decision::Send { max, .. } = answer else { return None };
        let run = {
            let view = self.world.view();
            view.streams.pending_from(stream, quipu_base::Offset(from))?
        };
        let span = Span::from_len(run.span.start, run.span.len().min(Bytes(1_200)).min(max));
        self.place(path, stream, span);
        let ready = self.world.view().streams.get(stream).is_some_and(|it| it.is_ready());
        if !ready {
            self.tell(Event::Stopped(stream));
        }
        Some((path, stream))
    }

    pub(crate) fn lose(&mut self, stream: StreamKey, span: Span, origin: PathKey) {
        self.world.streams.lose(stream, span, false, origin, &mut Vec::new());
        self.world.recount();
        self.tell(Event::Requeued { stream, span, origin });
    }

    pub(crate) fn fill_window(&mut self, path: PathKey) {
        self.world.set_path(path, |path| path.in_flight = path.cwnd);
    }
}

/// Path, stream and first byte of a `Send`.
pub(crate) fn sends(decision: Decision) -> Option<(PathKey, StreamKey, u64)> {
    match decision {
        Decision::Send { path, stream, from, .. } => {
            Some((path, stream, from.map_or(u64::MAX, |at| at.0)))
        }
        _ => None,
    }
}
