//! Time per decision of every stream policy: a turn is asked for, taken and placed.
//!
//! Variants: 10 and 1,000 ready streams on a flat tree of mixed weights; 1,000 streams of which 99 %
//! are blocked; and `edge`, where a blocked stream becomes ready and stops again per decision.
//! The budget is 200 ns per decision with 1,000 streams.
//!
//! `fsp` computes its order at an edge only; `fsp-computation` is the cost of one, over streams on a
//! flat tree and on one of groups of ten. With `aging`, `srpt` ranks all ready streams anew on each of
//! 64 steps of its horizon, every 78 ms by default; `srpt-aging-step` is the cost of one.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use quipu_base::{Bytes, Duration, Instant, Offset, PathId, Seed, StreamId};
use quipu_policy::conformance::World;
use quipu_policy::registry::Part;
use quipu_policy::{
    BuildContext, Class, Event, Kind, Layer, NodeId, Notes, PathKey, Piece, Priority, PriorityEdit,
    Registry, Run, Span, StreamKey, StreamPolicy, StreamTable, StreamView, Turn, View,
};
use std::hint::black_box;

const POLICIES: [&str; 20] = [
    "rr",
    "fifo",
    "pfifo",
    "edf",
    "rfc9218",
    "rfc9218:mixed=fair",
    "rfc9218:starvation_guard=true",
    "strict",
    "strict:by=urgency",
    "srpt",
    "srpt:aging=true",
    "sjf",
    "fsp",
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

/// Streams of which all that was never sent is pending.
struct Streams(Vec<StreamView>);

impl StreamTable for Streams {
    fn get(&self, stream: StreamKey) -> Option<&StreamView> {
        self.0.get(stream.index()).filter(|view| view.key == stream)
    }

    fn pending_from(&self, stream: StreamKey, at: Offset) -> Option<Run> {
        let view = self.get(stream)?;
        let span = Span::new(view.high_sent.max(at), view.written);
        Some(Run { span, class: Class::Fresh })
    }

    fn pending_before(&self, _stream: StreamKey, _at: Offset) -> Option<Run> {
        None
    }

    fn unacked_from(&self, _stream: StreamKey, _at: Offset) -> Option<Span> {
        None
    }
}

/// A policy with all that it is shown.
struct Bench {
    policy: Box<dyn StreamPolicy>,
    world: World,
    streams: Streams,
}

impl Bench {
    /// A policy that knows `streams` streams, of which every `ready_every`-th is ready; they hang
    /// under the root, or under groups of ten.
    fn new(text: &str, streams: usize, ready_every: usize, grouped: bool) -> Self {
        let part = Part::read(&Registry::builtin(), Layer::Stream, text).expect("a known policy");
        let built = part.build(&mut BuildContext::new(Seed::new(1))).expect("it builds");
        let policy = built.stream.expect("a stream policy");
        let world = World::new(Bytes::MAX);
        let mut bench = Bench { policy, world, streams: Streams(Vec::new()) };
        for index in 0..streams {
            bench.open(index, grouped);
        }
        for index in (0..streams).step_by(ready_every) {
            bench.tell(&Event::Ready(bench.streams.0[index].key));
        }
        bench
    }

    fn open(&mut self, index: usize, grouped: bool) {
        let key = StreamKey { slot: index as u32, id: StreamId(index as u64 * 4) };
        let urgency = (index % 8) as u8;
        let bytes = Bytes((1 << 50) + index as u64 % 100);
        self.streams.0.push(StreamView {
            key,
            priority: Priority { urgency, incremental: index % 16 < 8, ..Priority::default() },
            seq: index as u64,
            opened_at: Instant::ZERO,
            size: None,
            written: Offset::ZERO.advanced(bytes),
            fin: false,
            high_sent: Offset::ZERO,
            credit_end: Offset(u64::MAX),
            sendable: bytes,
            free: Bytes::ZERO,
            bare_fin: false,
        });
        self.tell(&Event::Opened(key));
        let weight = WEIGHTS[index % WEIGHTS.len()];
        let group = NodeId(1_000_000 + index as u64 / 10);
        let mut parent = NodeId::ROOT;
        if grouped {
            if index.is_multiple_of(10) {
                self.edit(
                    PriorityEdit::Insert { node: group, parent, weight, exclusive: false },
                    key,
                );
            }
            parent = group;
        }
        let node = NodeId(index as u64);
        self.edit(PriorityEdit::Insert { node, parent, weight, exclusive: false }, key);
        self.edit(PriorityEdit::Attach { node, stream: key.id }, key);
        self.tell(&Event::Written(key));
    }

    fn edit(&mut self, edit: PriorityEdit, key: StreamKey) {
        for edit in self.world.priorities.apply(&edit, Some(key)).expect("a valid edit") {
            self.tell(&Event::Tree(edit));
        }
    }

    fn tell(&mut self, event: &Event<'_>) {
        let view = View { streams: &self.streams, ..self.world.view() };
        self.policy.on_event(event, &view);
    }

    fn next(&mut self) -> Turn {
        let view = View { streams: &self.streams, ..self.world.view() };
        black_box(&mut *self.policy).next(&view, &mut Notes::off()).expect("a stream is ready")
    }

    fn decide(&mut self) {
        let turn = self.next();
        let taken = Turn { stream: turn.stream, max: turn.max.min(PAYLOAD) };
        let sent = &mut self.streams.0[turn.stream.index()].high_sent;
        let span = Span::from_len(*sent, taken.max);
        *sent = span.end;
        let view = View { streams: &self.streams, ..self.world.view() };
        self.policy.on_taken(taken, Kind::Fresh, &view);
        let piece = Piece { stream: turn.stream, span, kind: Kind::Fresh };
        self.policy.on_event(&Event::Placed { path: PATH, piece }, &view);
    }
}

fn decisions(criterion: &mut Criterion) {
    for text in POLICIES {
        let mut group = criterion.benchmark_group(text);
        for (name, streams, ready_every) in
            [("10", 10, 1), ("1000", 1_000, 1), ("1000-blocked-99%", 1_000, 100)]
        {
            let mut bench = Bench::new(text, streams, ready_every, false);
            group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                bencher.iter(|| bench.decide());
            });
        }
        let mut bench = Bench::new(text, 1_000, 100, false);
        let mut index = 0;
        group.bench_function(BenchmarkId::from_parameter("1000-blocked-99%-edge"), |bencher| {
            bencher.iter(|| {
                index = (index + 7) % 1_000;
                let flickers = if index % 100 == 0 { index + 1 } else { index };
                let flickers = bench.streams.0[flickers].key;
                bench.tell(&Event::Ready(flickers));
                bench.decide();
                bench.tell(&Event::Stopped(flickers));
            });
        });
        group.finish();
    }
}

/// A stream's size is told again, which changes nothing, and the order is computed.
fn computations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fsp-computation");
    for (name, streams, grouped) in [
        ("10", 10, false),
        ("100", 100, false),
        ("1000", 1_000, false),
        ("1000-groups", 1_000, true),
    ] {
        let mut bench = Bench::new("fsp", streams, 1, grouped);
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| {
                bench.tell(&Event::Sized(bench.streams.0[0].key));
                black_box(bench.next())
            });
        });
    }
    group.finish();
}

/// Time passes to another step of the age, forth and back.
fn aging_steps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("srpt-aging-step");
    for streams in [10, 1_000] {
        let mut bench = Bench::new("srpt:aging=true,horizon=64s", streams, 1, false);
        let mut later = false;
        group.bench_function(BenchmarkId::from_parameter(streams), |bencher| {
            bencher.iter(|| {
                later = !later;
                bench.world.now = Instant::ZERO + Duration::from_secs(u64::from(later) * 20);
                black_box(bench.next())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, decisions, computations, aging_steps);
criterion_main!(benches);
