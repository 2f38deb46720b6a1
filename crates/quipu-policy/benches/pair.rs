//! Nanoseconds per decision of a pair, with 10 and 1,000 streams.
//!
//! `decide` is the plain question, asked again and again: the aim is below 90 ns. `packet` is a
//! decision with its `Placed` and `Sent`, over the naive tables of the conformance suite, whose
//! cost is in the number.

mod scene;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use scene::{Load, Scene};

fn pairs(criterion: &mut Criterion) {
    for streams in [10, 1_000] {
        for (path, full) in
            [("minrtt", false), ("ecf", false), ("ecf", true), ("pats", false), ("pats", true)]
        {
            let state = if full { "fast path full" } else { "both open" };
            let name = format!("{path}, {streams} streams, {state}");
            let load = Load { streams, ready_every: 1, full };
            let mut scene = Scene::new(&format!("stream=rr path={path}"), load);
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
