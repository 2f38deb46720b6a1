//! What logging costs: a transfer in the simulator without a recorder, with one that drops all it
//! is told, and with qlog files of both ends in either form, on the file system of the temporary
//! folder.
//!
//! `cargo bench -p quipu-testkit --bench qlog`; elements are packets, as in `packets`.

use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use quipu_base::{Duration, Instant, Rate, Role};
use quipu_link::LinkConfig;
use quipu_qlog::{Form, QlogFolder};
use quipu_quic::recorder::{Event, Recorder, RecorderFactory};
use quipu_testkit::{NodeConfig, Plan, QuicNode, Scenario, Tls};
use tempfile::TempDir;

/// Hears everything and keeps nothing.
struct Deaf;

impl Recorder for Deaf {
    fn record(&mut self, _now: Instant, _event: &Event<'_>) {}
}

/// Runs a transfer of 4 MB over two paths; the number of packets that arrived.
fn run(recorders: Option<&RecorderFactory>) -> u64 {
    let path = |mbit, millis| {
        LinkConfig::new(Rate::from_mbit_per_sec(mbit), Duration::from_millis(millis))
    };
    let scenario = Scenario::new(Plan::download(4_000_000), vec![path(10, 5), path(10, 10)]);
    let node = |role| {
        let config = NodeConfig::new(&scenario, role, Tls::Null { chain: 3_000 });
        let node = QuicNode::new(config).unwatched();
        Box::new(match recorders {
            Some(recorders) => node.recorded(Arc::clone(recorders)),
            None => node,
        })
    };
    let outcome = scenario.run(node(Role::Client), node(Role::Server)).expect("the transfer ends");
    let links = outcome.links.iter();
    links.map(|(up, down)| up.delivered.datagrams + down.delivered.datagrams).sum()
}

fn logging(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("logging");
    group.throughput(Throughput::Elements(run(None))).sample_size(20);
    group.bench_function("off", |bencher| bencher.iter(|| run(None)));
    let deaf: RecorderFactory = Arc::new(|_| Some(Box::new(Deaf)));
    group.bench_function("heard", |bencher| bencher.iter(|| run(Some(&deaf))));
    for form in [Form::Current, Form::Version03] {
        group.bench_function(format!("qlog {form}"), |bencher| {
            // The folder is made before and removed after what is measured.
            let folder = || tempfile::tempdir().expect("a folder");
            let logged = |folder: TempDir| {
                let logs = QlogFolder::create(folder.path(), form, "bench").expect("a folder");
                run(Some(&logs.recorders()));
                logs.finish().expect("the files are written");
                folder
            };
            bencher.iter_batched(folder, logged, BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, logging);
criterion_main!(benches);
