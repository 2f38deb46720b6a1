//! Time per acknowledgement of every acknowledgement policy: one that arrives is told and may feed
//! the estimate, one that leaves is given a route.
//!
//! Variants: 2, 8 and 32 paths; no policy reads streams. With `min-owd`, `copies` is the case where
//! every acknowledgement comes on two paths and is measured.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use quipu_base::{Bytes, Duration, PacketNumber, PathId, Seed};
use quipu_policy::conformance::World;
use quipu_policy::registry::Part;
use quipu_policy::{AckPolicy, BuildContext, Event, Layer, PathKey, Registry};
use std::hint::black_box;

const POLICIES: [&str; 5] = ["own", "min-rtt", "any", "all", "min-owd"];

fn build(text: &str) -> Box<dyn AckPolicy> {
    let part = Part::read(&Registry::builtin(), Layer::Ack, text).expect("a known policy");
    let built = part.build(&mut BuildContext::new(Seed::new(1))).expect("it builds");
    built.ack.expect("an acknowledgement policy")
}

fn setup(paths: u32) -> (World, Vec<PathKey>) {
    let mut world = World::new(Bytes::MAX);
    world.conn.return_paths = true;
    let keys: Vec<PathKey> =
        (0..paths).map(|id| world.add_path(PathId(id)).expect("a free slot")).collect();
    for (&key, millis) in keys.iter().zip(20..) {
        world.set_path(key, |path| path.srtt = Some(Duration::from_millis(millis)));
    }
    (world, keys)
}

/// One acknowledgement of `data` comes on each of `on`, and one leaves.
fn exchange(
    policy: &mut dyn AckPolicy,
    world: &World,
    data: PathKey,
    on: &[PathKey],
    largest: PacketNumber,
) {
    let view = world.view();
    for (index, &arrived_on) in on.iter().enumerate() {
        black_box(policy.takes_sample(data, arrived_on));
        let since_sent = Duration::from_millis(20);
        let advances = index == 0;
        let event = Event::AckSeen { data, arrived_on, largest, since_sent, advances };
        policy.on_event(&event, &view);
    }
    black_box(policy.route(data, &view));
    policy.on_event(&Event::AckSent(data), &view);
}

fn acknowledgements(criterion: &mut Criterion) {
    for text in POLICIES {
        let mut group = criterion.benchmark_group(text);
        for paths in [2, 8, 32] {
            let (world, keys) = setup(paths);
            let mut policy = build(text);
            let mut number = 0;
            group.bench_function(BenchmarkId::from_parameter(paths), |bencher| {
                bencher.iter(|| {
                    number += 1;
                    let data = keys[number % keys.len()];
                    let largest = PacketNumber(number as u64);
                    exchange(black_box(&mut *policy), &world, data, &[data], largest);
                });
            });
        }
        group.finish();
    }
    let (world, keys) = setup(8);
    let mut policy = build("min-owd");
    let mut number = 0;
    criterion.bench_function("min-owd/copies", |bencher| {
        bencher.iter(|| {
            number += 1;
            let largest = PacketNumber(number);
            exchange(black_box(&mut *policy), &world, keys[0], &keys[..2], largest);
        });
    });
}

criterion_group!(benches, acknowledgements);
criterion_main!(benches);
