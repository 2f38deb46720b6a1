//! Nanoseconds per decision of a pair, with 10 and 1,000 streams.
//!
//! `decide` is the plain question, asked again and again: the aim is below 90 ns. `packet` is a
//! decision with its `Placed` and `Sent`, over the naive tables of the conformance suite, whose
//! cost is in the number.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use quipu_base::{Bytes, Duration, Instant, Offset, PacketNumber, PathId, Seed};
use quipu_policy::conformance::World;
use quipu_policy::registry::{PolicySpec, Registry};
use quipu_policy::{
    Ask, BuildContext, Decision, Event, Joint, Kind, Notes, PathKey, Piece, Priority, SentPacket,
    Span, StreamKey,
};

struct Scene {
    world: World,
    joint: Box<dyn Joint>,
}

impl Scene {
    /// Two paths of 20 and 100 ms; if `full`, the window of the fast one is closed.
    fn new(path: &str, streams: u32, full: bool) -> Self {
        let registry = Registry::builtin();
        let spec = PolicySpec::parse(&registry, &format!("stream=rr path={path}"))
            .expect("known policies");
        let joint = spec.build(&BuildContext::new(Seed::new(1))).expect("they build").joint;
        let mut scene = Scene { world: World::new(Bytes(1 << 60)), joint };
        for (id, rtt) in [(0, 20), (1, 100)] {
            let key = scene.world.add_path(PathId(id)).expect("a free slot");
            scene.world.set_path(key, |path| {
                path.srtt = Some(Duration::from_millis(rtt));
                path.cwnd = Bytes(60_000);
                path.in_flight = if full && id == 0 { path.cwnd } else { Bytes::ZERO };
            });
            scene.tell(Event::PathUp(key));
        }
        for _ in 0..streams {
            let table = &mut scene.world.streams;
            let key = table.open(Instant::ZERO, Priority::default(), Bytes(1 << 60));
            table.write(key, Bytes(1 << 50));
            for event in [Event::Opened(key), Event::Written(key), Event::Ready(key)] {
                scene.tell(event);
            }
        }
        scene.world.recount();
        scene
    }

    fn tell(&mut self, event: Event<'_>) {
        self.joint.on_event(&event, &self.world.view());
    }

    fn decide(&mut self) -> Decision {
        self.joint.decide(Ask::Packet, &self.world.view(), &mut Notes::off())
    }

    /// Sends what is decided; every packet is acknowledged to the table at once, so that it stays
    /// small.
    fn packet(&mut self, pn: u64) -> Option<(PathKey, StreamKey)> {
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

fn pairs(criterion: &mut Criterion) {
    for streams in [10, 1_000] {
        for (path, full) in
            [("minrtt", false), ("ecf", false), ("ecf", true), ("pats", false), ("pats", true)]
        {
            let state = if full { "fast path full" } else { "both open" };
            let name = format!("{path}, {streams} streams, {state}");
            let mut scene = Scene::new(path, streams, full);
            scene.decide();
            criterion.bench_function(&format!("decide/{name}"), |bencher| {
                bencher.iter(|| black_box(scene.decide()));
            });
            let mut pn = 0;
            criterion.bench_function(&format!("packet/{name}"), |bencher| {
                bencher.iter(|| {
                    pn += 1;
                    black_box(scene.packet(pn))
                });
            });
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(std::time::Duration::from_secs(1));
    targets = pairs
}
criterion_main!(benches);
