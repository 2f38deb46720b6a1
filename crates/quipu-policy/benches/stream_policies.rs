//! Time per decision of every stream policy: a turn is asked for, taken and placed.
//!
//! Variants: 10 and 1,000 ready streams on a flat tree of mixed weights; 1,000 streams of which 99 %
//! are blocked; and `edge`, where a blocked stream becomes ready and stops again per decision.
//! The budget is 200 ns per decision with 1,000 streams.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use quipu_base::{Bytes, Instant, Offset, PathId, Seed};
use quipu_policy::conformance::World;
use quipu_policy::registry::Part;
use quipu_policy::{
    BuildContext, Event, Kind, Layer, NodeId, Notes, PathKey, Piece, Priority, PriorityEdit,
    Registry, Span, StreamKey, StreamPolicy, Turn,
};
use std::hint::black_box;

const POLICIES: [&str; 9] = [
    "rr",
    "fifo",
    "wrr:mode=fluid",
    "wrr:mode=quantum",
    "swrr:mode=scaled",
    "swrr:mode=as-published",
    "swrr:mode=smooth",
    "dwrr:mode=paper",
    "dwrr:mode=code",
];

const WEIGHTS: [u16; 5] = [256, 220, 183, 147, 110];
const PAYLOAD: Bytes = Bytes(1_200);
const PATH: PathKey = PathKey { slot: 0, id: PathId(0) };

/// A policy that knows `streams` streams, of which every `ready_every`-th is ready.
fn setup(
    text: &str,
    streams: usize,
    ready_every: usize,
) -> (Box<dyn StreamPolicy>, World, Vec<StreamKey>) {
    let part = Part::read(&Registry::builtin(), Layer::Stream, text).expect("a known policy");
    let built = part.build(&mut BuildContext::new(Seed::new(1))).expect("it builds");
    let mut policy = built.stream.expect("a stream policy");
    let mut world = World::new(Bytes::MAX);
    let mut keys = Vec::new();
    for index in 0..streams {
        let key = world.streams.open(Instant::ZERO, Priority::default(), Bytes(u64::MAX >> 2));
        world.streams.write(key, Bytes(1 << 50));
        policy.on_event(&Event::Opened(key), &world.view());
        let node = NodeId(index as u64);
        let weight = WEIGHTS[index % WEIGHTS.len()];
        for edit in [
            PriorityEdit::Insert { node, parent: NodeId::ROOT, weight, exclusive: false },
            PriorityEdit::Attach { node, stream: key.id },
        ] {
            for edit in world.priorities.apply(&edit, Some(key)).expect("a valid edit") {
                policy.on_event(&Event::Tree(edit), &world.view());
            }
        }
        policy.on_event(&Event::Written(key), &world.view());
        if index % ready_every == 0 {
            policy.on_event(&Event::Ready(key), &world.view());
        }
        keys.push(key);
    }
    (policy, world, keys)
}

fn decide(policy: &mut dyn StreamPolicy, world: &World) {
    let view = world.view();
    let turn = policy.next(&view, &mut Notes::off()).expect("a stream is ready");
    let taken = Turn { stream: turn.stream, max: turn.max.min(PAYLOAD) };
    policy.on_taken(taken, Kind::Fresh, &view);
    let span = Span::from_len(Offset::ZERO, taken.max);
    let piece = Piece { stream: turn.stream, span, kind: Kind::Fresh };
    policy.on_event(&Event::Placed { path: PATH, piece }, &view);
}

fn decisions(criterion: &mut Criterion) {
    for text in POLICIES {
        let mut group = criterion.benchmark_group(text);
        for (name, streams, ready_every) in
            [("10", 10, 1), ("1000", 1_000, 1), ("1000-blocked-99%", 1_000, 100)]
        {
            let (mut policy, world, _) = setup(text, streams, ready_every);
            group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                bencher.iter(|| decide(black_box(&mut *policy), &world));
            });
        }
        let (mut policy, world, keys) = setup(text, 1_000, 100);
        let mut index = 0;
        group.bench_function(BenchmarkId::from_parameter("1000-blocked-99%-edge"), |bencher| {
            bencher.iter(|| {
                index = (index + 7) % keys.len();
                let flickers = keys[if index % 100 == 0 { index + 1 } else { index }];
                let view = world.view();
                policy.on_event(&Event::Ready(flickers), &view);
                decide(black_box(&mut *policy), &world);
                policy.on_event(&Event::Stopped(flickers), &view);
            });
        });
        group.finish();
    }
}

criterion_group!(benches, decisions);
criterion_main!(benches);
