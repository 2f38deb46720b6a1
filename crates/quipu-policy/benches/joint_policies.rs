//! Nanoseconds per decision of the joint policies.
//!
//! Variants: 10 and 1,000 streams, all with credit; 1,000 of which 99 % are blocked; each with both
//! paths open, and with the fast one full, where a policy plans or looks at other streams.
//!
//! - `packet`: a decision with its `Placed` and `Sent`, over the naive tables of the conformance
//!   suite, whose cost is in the number; `none` is that cost, with the plainest policies. Plans and
//!   looks at other streams are in it, amortised.
//! - `decide`: the question asked again, without an event.
//! - `anew`: the question after a measurement of a path: what a look at the streams, or a check of
//!   the plans, costs. As built, SA-ECF looks at half of the streams then, and all of them wait.
//! - `batch of 10`: ten packets, then a measurement and the end of the send batch; a tenth of it is
//!   the cost of a packet, with that of an allotment made anew.
//! - `next batch`: the question after a measurement and the end of a send batch, for policies that
//!   allot: what an allotment made anew costs. SEC orders all ready streams and works out the
//!   first row; a row more is a `fill`, over 2 and 8 paths.
//! - `paths change`: the question after the status of a path was told: PStream splits all ready
//!   streams anew, the others do what they do for the next batch, and MS-HS places all streams.

mod scene;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use quipu_base::{Bytes, Duration, Rate};
use quipu_policy::joint::waterfill::{Pipe, fill};
use scene::{Load, Scene};

const POLICIES: [(&str, &str); 14] = [
    ("none", "stream=rr path=minrtt"),
    ("sa-ecf", "joint=sa-ecf"),
    ("sa-ecf:mode=as-built", "joint=sa-ecf:mode=as-built"),
    ("srpt-ecf", "joint=srpt-ecf"),
    ("pw-pats", "joint=pw-pats"),
    ("pw-pats:alpha=0,s_min=0", "joint=pw-pats:alpha=0,s_min=0"),
    ("hbes", "joint=hbes"),
    ("hbes:order=wrr", "joint=hbes:order=wrr"),
    ("sec", "joint=sec"),
    ("sec:unknown=buffered", "joint=sec:unknown=buffered"),
    ("sec:queue=paper,clamp=paper", "joint=sec:queue=paper,clamp=paper,unknown=buffered"),
    ("pstream", "joint=pstream"),
    ("fstream", "joint=fstream"),
    ("ms-hs", "joint=ms-hs"),
];

/// Those that allot.
const ALLOTTING: [&str; 4] = ["sec", "pstream", "fstream", "ms-hs"];

fn joints(criterion: &mut Criterion) {
    for (name, spec) in POLICIES {
        for (streams, ready_every) in [(10, 1), (1_000, 1), (1_000, 100)] {
            for full in [false, true] {
                let blocked = if ready_every > 1 { ", 99 % blocked" } else { "" };
                let state = if full { "fast path full" } else { "both open" };
                let name = format!("{name}, {streams} streams{blocked}, {state}");
                let mut scene = Scene::new(spec, Load { streams, ready_every, full });
                scene.decide();
                criterion.bench_function(&format!("decide/{name}"), |bencher| {
                    bencher.iter(|| black_box(scene.decide()));
                });
                criterion.bench_function(&format!("anew/{name}"), |bencher| {
                    bencher.iter(|| black_box(scene.decide_anew()));
                });
                let mut pn = 0;
                criterion.bench_function(&format!("packet/{name}"), |bencher| {
                    bencher.iter(|| {
                        pn += 1;
                        black_box(scene.packet(pn))
                    });
                });
                if !ALLOTTING.iter().any(|allotting| name.starts_with(allotting)) {
                    continue;
                }
                criterion.bench_function(&format!("batch of 10/{name}"), |bencher| {
                    bencher.iter(|| {
                        for _ in 0..10 {
                            pn += 1;
                            black_box(scene.packet(pn));
                        }
                        scene.end_batch();
                    });
                });
                criterion.bench_function(&format!("next batch/{name}"), |bencher| {
                    bencher.iter(|| {
                        scene.end_batch();
                        black_box(scene.decide())
                    });
                });
                criterion.bench_function(&format!("paths change/{name}"), |bencher| {
                    bencher.iter(|| {
                        scene.change_paths();
                        black_box(scene.decide())
                    });
                });
            }
        }
    }
}

fn fills(criterion: &mut Criterion) {
    for paths in [2, 8] {
        let pipes: Vec<Pipe> = (1..=paths)
            .map(|path| {
                let delay = Duration::from_millis(20 * path);
                Pipe::new(delay, Rate::from_bytes_per_sec(125_000 * path))
            })
            .collect();
        criterion.bench_function(&format!("fill/{paths} paths"), |bencher| {
            bencher.iter(|| black_box(fill(black_box(Bytes(100_000)), &pipes)));
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_millis(500));
    targets = joints, fills
}
criterion_main!(benches);
