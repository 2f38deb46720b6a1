//! A connection for benchmarks: two paths, and streams without end.

use quipu_base::{Bytes, Duration, Instant, Offset, PacketNumber, PathId, Seed};
use quipu_policy::conformance::World;
use quipu_policy::registry::{PolicySpec, Registry};
use quipu_policy::{
    Ask, BuildContext, Decision, Event, Joint, Kind, NodeId, Notes, PathKey, Piece, Priority,
    PriorityEdit, SentPacket, Span, StreamKey,
};

const WEIGHTS: [u16; 5] = [256, 220, 183, 147, 110];

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Streams in all.
    pub(crate) streams: usize,
    /// Every so manyth has credit; the others are blocked.
    pub(crate) ready_every: usize,
    /// True: the window of the fast path is closed.
    pub(crate) full: bool,
}

/// Paths of 20 and 100 ms, and a flat tree of mixed weights.
pub(crate) struct Scene {
    world: World,
    joint: Box<dyn Joint>,
    fast: PathKey,
}

impl Scene {
    /// The policies that `spec` names.
    pub(crate) fn new(spec: &str, load: Load) -> Self {
        let spec = PolicySpec::parse(&Registry::builtin(), spec).expect("known policies");
        let joint = spec.build(&BuildContext::new(Seed::new(1))).expect("they build").joint;
        let mut world = World::new(Bytes(1 << 60));
        let [fast, slow] = [0, 1].map(|id| world.add_path(PathId(id)).expect("a free slot"));
        for (key, rtt) in [(fast, 20), (slow, 100)] {
            world.set_path(key, |path| {
                path.srtt = Some(Duration::from_millis(rtt));
                path.cwnd = Bytes(if key == fast { 60_000 } else { 120_000 });
                path.in_flight = if load.full && key == fast { path.cwnd } else { Bytes::ZERO };
            });
        }
        let mut scene = Scene { world, joint, fast };
        scene.tell(Event::PathUp(fast));
        scene.tell(Event::PathUp(slow));
        for index in 0..load.streams {
            scene.open(index, index % load.ready_every == 0);
        }
        scene.world.recount();
        scene
    }

    fn open(&mut self, index: usize, ready: bool) {
        let credit = if ready { Bytes(1 << 60) } else { Bytes::ZERO };
        let key = self.world.streams.open(Instant::ZERO, Priority::default(), credit);
        self.tell(Event::Opened(key));
        let node = NodeId(key.id.0);
        let weight = WEIGHTS[index % WEIGHTS.len()];
        for edit in [
            PriorityEdit::Insert { node, parent: NodeId::ROOT, weight, exclusive: false },
            PriorityEdit::Attach { node, stream: key.id },
        ] {
            for edit in self.world.priorities.apply(&edit, Some(key)).expect("a valid edit") {
                self.tell(Event::Tree(edit));
            }
        }
        self.world.streams.write(key, Bytes(1 << 50));
        self.tell(Event::Written(key));
        if ready {
            self.tell(Event::Ready(key));
        }
    }

    fn tell(&mut self, event: Event<'_>) {
        self.joint.on_event(&event, &self.world.view());
    }

    /// The plain question.
    pub(crate) fn decide(&mut self) -> Decision {
        self.joint.decide(Ask::Packet, &self.world.view(), &mut Notes::off())
    }

    /// The question after an event that may change the answer.
    #[allow(dead_code, reason = "not every benchmark asks it")]
    pub(crate) fn decide_anew(&mut self) -> Decision {
        self.tell(Event::PathMeasured(self.fast));
        self.decide()
    }

    /// A send batch ends, and a path was measured.
    #[allow(dead_code, reason = "not every benchmark has batches")]
    pub(crate) fn end_batch(&mut self) {
        self.tell(Event::PathMeasured(self.fast));
        self.tell(Event::Drained);
    }

    /// The status of a path is told.
    #[allow(dead_code, reason = "not every benchmark changes paths")]
    pub(crate) fn change_paths(&mut self) {
        self.tell(Event::PathStatus(self.fast));
    }

    /// Sends what is decided; every packet is acknowledged to the table at once, so that it stays
    /// small.
    pub(crate) fn packet(&mut self, pn: u64) -> Option<(PathKey, StreamKey)> {
        let Decision::Send { path, stream, from, max } = self.decide() else { return None };
        let span = Span::from_len(from.unwrap_or(Offset::ZERO), max.min(Bytes(1_200)));
        self.world.streams.place(stream, span, false);
        let piece = Piece { stream, span, kind: Kind::Fresh };
        self.tell(Event::Placed { path, piece });
        self.world.streams.acknowledge(stream, span, false, true);
        self.tell(Event::Sent(SentPacket {
            path,
            pn: PacketNumber(pn),
            bytes: Bytes(1_240),
            sent_at: self.world.now,
            pieces: &[piece],
        }));
        Some((path, stream))
    }
}
