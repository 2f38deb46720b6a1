//! Managed queues in front of flows that fill them, and of pages beside those. Each test reads its
//! scenario file in `experiments/` and runs it with fewer runs than it asks for.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use quipu_lab::base::Duration;
use quipu_lab::batch::{run_all, run_sampled, run_session};
use quipu_lab::plan::Plan;
use quipu_record::{Metric, Summary};
use quipu_scenario::units::Unit;
use quipu_scenario::{Scenario, Series};

fn load(file: &str) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/congestion");
    Scenario::load(&folder.join(file)).unwrap()
}

fn measured(scenario: Scenario) -> Summary {
    let plan = Plan::new(scenario).unwrap();
    let batch = run_all(&plan, None, &AtomicBool::new(false), &|_| {}, &run_session).unwrap();
    assert!(batch.summary.complete, "{:?}", batch.summary.failures);
    batch.summary
}

/// Per network and controller: the network, what 95 % of the round trips do not exceed in
/// milliseconds, the goodput in megabits per second, and packets lost in a million.
fn bulk(change: impl FnOnce(&mut Scenario)) -> Vec<(String, u64, f64, u64)> {
    let mut scenario = load("queues.toml");
    (scenario.runs, scenario.duration) = (1, Duration::from_secs(30));
    change(&mut scenario);
    let rows = measured(scenario).sharing.into_iter().map(|sharing| {
        let flow = &sharing.flows[0];
        let p95 = flow.rtt_p95_ns.unwrap().median / 1_000_000;
        let goodput = flow.goodput.median as f64 / 1e6;
        println!("{} {}: {p95} ms, {goodput:.2} Mb/s", sharing.network, flow.congestion);
        (sharing.network, p95, goodput, flow.lost_per_million.median)
    });
    rows.collect()
}

#[test]
fn a_managed_queue_keeps_round_trips_short_for_little_goodput() {
    let rows = bulk(|_| {});
    assert_eq!(rows.len(), 4 * 2);
    let (deep, managed) = rows.split_at(2);
    for ((_, p95, goodput, _), index) in deep.iter().zip(0..) {
        assert!(*p95 > 500 && *goodput > 9.0, "{rows:?}");
        for (name, managed_p95, managed_goodput, lost) in managed.iter().skip(index).step_by(2) {
            assert!(*managed_p95 < 100, "{name}: {rows:?}");
            assert!(*managed_goodput > 0.8 * goodput, "{name}: {rows:?}");
            assert!(*lost > 0, "{name}: {rows:?}");
        }
    }
}

#[test]
fn marks_keep_round_trips_short_without_a_loss() {
    let rows = bulk(|scenario| {
        scenario.transport.ecn = true;
        scenario.policies.congestion = "newreno".to_owned();
        scenario.networks.remove(0);
    });
    for (name, p95, goodput, lost) in &rows {
        assert!(*p95 < 100 && *goodput > 7.5, "{name}: {rows:?}");
        // PIE drops where its probability is above 10 %, as at the end of slow start.
        assert!(*lost == 0 || name == "pie", "{name}: {rows:?}");
    }
}

#[test]
fn the_queue_of_a_series_is_the_one_that_waits() {
    let mut scenario = load("queues.toml");
    (scenario.runs, scenario.duration) = (1, Duration::from_secs(15));
    scenario.policies.congestion = "newreno".to_owned();
    scenario.networks.retain(|network| network.name == "codel");
    scenario.series = Series::read("10ms").unwrap();
    let plan = Plan::new(scenario).unwrap();
    let mut queues = Vec::new();
    run_sampled(&plan, plan.cells().next().unwrap(), &mut |row| {
        if row.path.is_some() && row.at >= quipu_lab::base::Instant::from_nanos(10_000_000_000) {
            queues.extend(row.queue_down.map(|bytes| bytes.0));
        }
        Ok(())
    })
    .unwrap();
    queues.sort_unstable();
    // 5 ms at 10 Mb/s are 6,250 B.
    let half = queues[queues.len() / 2];
    assert!((1_000..20_000).contains(&half), "{half}");
}

#[test]
fn a_page_does_not_wait_for_a_bulk_flow_behind_fq_codel() {
    let mut scenario = load("page-beside-bulk.toml");
    scenario.runs = 2;
    let summary = measured(scenario);
    let time = |network: &str| {
        let row = summary.rows.iter().find(|row| row.network == network).unwrap();
        let metric = row.metrics.iter().find(|metric| metric.metric == Metric::PageTime).unwrap();
        Duration::from_nanos(metric.median)
    };
    let (deep, apart) = (time("drop-tail"), time("fq-codel"));
    println!("page beside bulk: drop-tail {deep}, fq-codel {apart}");
    assert!(apart.saturating_mul(2) < deep, "{apart} against {deep}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let mut scenario = load("queues.toml");
        (scenario.runs, scenario.duration) = (1, Duration::from_secs(12));
        scenario.policies.congestion = "cubic".to_owned();
        measured(scenario).sharing
    };
    assert_eq!(run(), run());
}
