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

mod scene;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use scene::{Load, Scene};

const POLICIES: [(&str, &str); 8] = [
    ("none", "stream=rr path=minrtt"),
    ("sa-ecf", "joint=sa-ecf"),
    ("sa-ecf:mode=as-built", "joint=sa-ecf:mode=as-built"),
    ("srpt-ecf", "joint=srpt-ecf"),
    ("pw-pats", "joint=pw-pats"),
    ("pw-pats:alpha=0,s_min=0", "joint=pw-pats:alpha=0,s_min=0"),
    ("hbes", "joint=hbes"),
    ("hbes:order=wrr", "joint=hbes:order=wrr"),
];

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
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_millis(500));
    targets = joints
}
criterion_main!(benches);
