//! Nanoseconds per decision of the path policies.
//!
//! - `select`: the plain question for a packet's worth of a finished stream, with 2 and 8 paths; all
//!   of them open, or the fastest one full, where a policy waits, plans or sends from the back.
//! - `event`: a packet leaves and is acknowledged, with its path measured: what a policy learns.
//! - `packet`: a decision of a pair with its `Placed` and `Sent`, over the naive tables of the
//!   conformance suite, whose cost is in the number (`minrtt` has next to none of its own); with 10
//!   and 1,000 streams, and with 1,000 of which 99 % are blocked.

mod scene;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use quipu_base::{Bytes, Duration, Instant, Offset, PacketNumber, PathId, Seed};
use quipu_policy::conformance::World;
use quipu_policy::registry::{Part, Registry};
use quipu_policy::{
    BuildContext, Choice, Class, Event, Kind, Layer, Notes, Parcel, PathKey, PathPolicy, Piece,
    SentPacket, Span, StreamKey,
};
use scene::{Load, Scene};

const POLICIES: [&str; 22] = [
    "minrtt",
    "lowrtt",
    "path-rr",
    "path-rr:by=packets",
    "path-wrr",
    "path-wrr:by=bandwidth",
    "single",
    "ecf",
    "blest",
    "blest:estimate=linux",
    "otias",
    "pats",
    "pats:bind=early",
    "pats:bind=literal",
    "stms",
    "dems",
    "redundant",
    "backup",
    "backup:standby=open",
    "backup:standby=last",
    "rap",
    "peekaboo",
];

/// Copies beside `minrtt`.
const REINJECTS: [&str; 5] = ["redundant", "xlink", "xlink:mode=deadline", "unprobed", "tail"];

/// A path policy with all that it is shown.
struct Bench {
    policy: Box<dyn PathPolicy>,
    world: World,
    stream: StreamKey,
    paths: Vec<PathKey>,
    committed: Vec<Bytes>,
    sent: u64,
}

impl Bench {
    /// Paths of 20 ms, 60 ms and so on, each with 12 kB in flight; the first one full if `full`.
    fn new(text: &str, paths: u32, full: bool) -> Self {
        let part = Part::read(&Registry::builtin(), Layer::Path, text).expect("a known policy");
        let built = part.build(&mut BuildContext::new(Seed::new(1))).expect("it builds");
        let mut world = World::new(Bytes(1 << 40));
        let paths: Vec<PathKey> =
            (0..paths).map(|id| world.add_path(PathId(id)).expect("a free slot")).collect();
        for (index, &key) in paths.iter().enumerate() {
            let rtt = Duration::from_millis(20 + 40 * index as u64);
            world.set_path(key, |path| {
                path.srtt = Some(rtt);
                path.latest_rtt = Some(rtt);
                path.cwnd = Bytes(60_000);
                path.in_flight = if full && index == 0 { path.cwnd } else { Bytes(12_000) };
            });
        }
        let stream = world.streams.open(Instant::ZERO, Default::default(), Bytes(1 << 40));
        world.streams.write(stream, Bytes(10_000_000));
        world.streams.finish(stream);
        world.recount();
        let committed = vec![Bytes::ZERO; paths.len()];
        let policy = built.path.expect("a path policy");
        let mut bench = Bench { policy, world, stream, paths, committed, sent: 0 };
        for path in bench.paths.clone() {
            bench.policy.on_event(&Event::PathUp(path), &bench.world.view());
            bench.policy.on_event(&Event::PathMeasured(path), &bench.world.view());
        }
        bench
    }

    fn select(&mut self) -> Choice {
        let parcel = Parcel {
            stream: self.stream,
            len: Bytes(1_200),
            class: Class::Fresh,
            back_fits: true,
            committed: &self.committed,
        };
        black_box(&mut *self.policy).select(&parcel, &self.world.view(), &mut Notes::off())
    }

    /// A decision, and the packet's life; on the slowest path if the decision names none.
    fn packet(&mut self) {
        let slowest = *self.paths.last().expect("there are paths");
        let path = match self.select() {
            Choice::Now(path) | Choice::NowFromBack(path) | Choice::Later(path) => path,
            Choice::Wait { .. } | Choice::None => slowest,
        };
        self.sent += 1;
        let span = Span::from_len(Offset(1_200 * self.sent), Bytes(1_200));
        let pieces = [Piece { stream: self.stream, span, kind: Kind::Fresh }];
        let sent_at = self.world.now;
        let pn = PacketNumber(self.sent);
        let packet = SentPacket { path, pn, bytes: Bytes(1_240), sent_at, pieces: &pieces };
        let view = self.world.view();
        for event in [
            Event::Placed { path, piece: pieces[0] },
            Event::Sent(packet),
            Event::PathMeasured(path),
            Event::Acked(packet),
        ] {
            self.policy.on_event(&event, &view);
        }
    }
}

fn selects(criterion: &mut Criterion) {
    for text in POLICIES {
        for paths in [2, 8] {
            for full in [false, true] {
                let state = if full { "fast path full" } else { "all open" };
                let name = format!("{text}, {paths} paths, {state}");
                let mut bench = Bench::new(text, paths, full);
                criterion.bench_function(&format!("select/{name}"), |bencher| {
                    bencher.iter(|| black_box(bench.select()));
                });
                criterion.bench_function(&format!("event/{name}"), |bencher| {
                    bencher.iter(|| bench.packet());
                });
            }
        }
    }
}

fn pairs(criterion: &mut Criterion) {
    let paths = POLICIES.iter().map(|path| format!("path={path}"));
    let copies = REINJECTS.iter().map(|copies| format!("path=minrtt reinject={copies}"));
    for text in paths.chain(copies) {
        for (streams, ready_every) in [(10, 1), (1_000, 1), (1_000, 100)] {
            for full in [false, true] {
                let blocked = if ready_every > 1 { ", 99 % blocked" } else { "" };
                let state = if full { "fast path full" } else { "both open" };
                let name = format!("{text}, {streams} streams{blocked}, {state}");
                let load = Load { streams, ready_every, full };
                let mut scene = Scene::new(&format!("stream=rr {text}"), load);
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
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10)
        .warm_up_time(std::time::Duration::from_millis(100))
        .measurement_time(std::time::Duration::from_millis(250));
    targets = selects, pairs
}
criterion_main!(benches);
