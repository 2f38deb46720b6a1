//! Whole page loads under every kind of fault, with every policy: every object arrives complete
//! and byte-correct, or the run is an error.
//!
//! `cargo test` does a slice; `QUIPU_LOADS=1000 cargo test --release -p quipu-lab --test lab loads` all.

use quipu_base::{Duration, Instant, Seed};
use quipu_lab::batch::run_session;
use quipu_lab::plan::{Cell, Plan};
use quipu_scenario::{
    Clients, Network, Origins, OutageSpec, OwnLinks, PathSpec, Priorities, Scenario,
};
use rand::RngExt;

/// Loads that `cargo test` does.
const SLICE: u64 = 60;
/// Further ones that it does: those that once failed. 923: both paths silent, as answers to the
/// probes of the living one returned on the dead one.
const FOUND: [u64; 1] = [923];

const STREAMS: [&str; 12] = [
    "rr",
    "rr:unit=frame",
    "fifo",
    "fifo:retx_first=false",
    "wrr",
    "wrr:mode=quantum",
    "swrr",
    "swrr:mode=as-published",
    "swrr:mode=smooth",
    "dwrr",
    "dwrr:mode=code",
    "wrr:mode=fluid",
];

const PATHS: [&str; 21] = [
    "minrtt",
    "path-rr",
    "single:id=0",
    "single:id=1",
    "ecf",
    "pats:bind=late",
    "pats:bind=early",
    "pats:bind=literal",
    "redundant",
    "lowrtt",
    "path-wrr",
    "path-wrr:by=bandwidth",
    "blest",
    "blest:estimate=linux",
    "otias",
    "stms",
    "dems",
    "backup",
    "backup:standby=open",
    "rap",
    "peekaboo",
];

const RESENDS: [&str; 5] = ["rank", "first", "mp-quic", "xquic", "picoquic"];

const FAULTS: [&str; 12] = [
    "none",
    "loss 1.5%",
    "loss 3%",
    "loss 10%",
    "reordering",
    "duplication",
    "uplink of path 0 blackholed",
    "downlink of path 1 blackholed",
    "downlink of path 0 blackholed",
    "path 0 flapping",
    "path 0 cut for good",
    "path 1 cut for good",
];

fn path(fields: &str) -> PathSpec {
    fields.parse().unwrap()
}

/// Two paths like `wifi+lte`, but slower, so that a load lasts; with one fault.
fn network(fault: &str, seed: Seed) -> Network {
    let mut random = seed.stream("faults", 0);
    let mut instant = || Duration::from_micros(random.random_range(1_000..1_500_000));
    let fields = match fault {
        "loss 1.5%" => ",loss=1.5%",
        "loss 3%" => ",loss=3%",
        "loss 10%" => ",loss=10%",
        "reordering" => ",reorder=5%+8ms",
        "duplication" => ",duplicate=5%+1ms",
        _ => "",
    };
    let mut paths = vec![
        path(&format!("rate=12mbit,delay=15ms{fields}")),
        path(&format!("rate=8mbit,delay=10ms{fields}")),
    ];
    let from = instant();
    let for_good = OutageSpec { from, until: None };
    let mut links = paths.iter_mut().filter_map(PathSpec::own_links_mut).collect::<Vec<_>>();
    match fault {
        "uplink of path 0 blackholed" => links[0].up.outages = vec![for_good],
        "downlink of path 0 blackholed" => links[0].down.outages = vec![for_good],
        "downlink of path 1 blackholed" => links[1].down.outages = vec![for_good],
        "path 0 flapping" => {
            let outages: Vec<OutageSpec> = (0..40)
                .map(|n| {
                    let from = Duration::from_millis(200 + 700 * n);
                    OutageSpec { from, until: Some(from + Duration::from_millis(300)) }
                })
                .collect();
            links[0].up.outages = outages.clone();
            links[0].down.outages = outages;
        }
        "path 0 cut for good" | "path 1 cut for good" => {
            let victim = usize::from(fault.contains('1'));
            links[victim].up.outages = vec![for_good];
            links[victim].down.outages = vec![for_good];
        }
        _ => {}
    }
    // The handshake needs its path: a fault of path 0 begins after it.
    let OwnLinks { up, down } = &mut *links[0];
    for outage in up.outages.iter_mut().chain(&mut down.outages) {
        outage.from = outage.from.max(Duration::from_millis(150));
    }
    Network::from_links(paths)
}

fn scenario(load: u64) -> (Scenario, &'static str) {
    let seed = Seed::new(load);
    let mut random = seed.stream("choice", 0);
    let fault = FAULTS[(load % FAULTS.len() as u64) as usize];
    let mut scenario = Scenario {
        seed: load,
        runs: 1,
        pages: vec!["framework-youtube".to_owned()],
        browser: ["chrome", "firefox", "safari", "none"][random.random_range(0..4)].to_owned(),
        time_limit: Duration::from_secs(120),
        networks: vec![network(fault, seed)],
        ..Scenario::default()
    };
    // Each fault with both kinds of priorities.
    if load / FAULTS.len() as u64 % 2 == 1 {
        scenario.priorities = Priorities::Urgency;
    }
    scenario.policies.stream = vec![STREAMS[random.random_range(0..STREAMS.len())].to_owned()];
    scenario.policies.path = vec![PATHS[random.random_range(0..PATHS.len())].to_owned()];
    scenario.policies.ack =
        ["own", "min-rtt", "any", "all", "min-owd"][random.random_range(0..5)].to_owned();
    scenario.policies.resend = RESENDS[random.random_range(0..RESENDS.len())].to_owned();
    scenario.policies.baselines = false;
    // `fifo` and `redundant` bring a rule of their own.
    if scenario.policies.stream[0].starts_with("fifo") {
        scenario.policies.resend = Scenario::default().policies.resend;
    }
    // A connection begins over path 0: where that ends for good, none may begin later.
    let ends_path_0 = ["uplink of path 0", "downlink of path 0", "path 0 cut"]
        .iter()
        .any(|it| fault.starts_with(it));
    if !FOUND.contains(&load) && !ends_path_0 {
        hosts(&mut scenario, seed);
    }
    (scenario, fault)
}

/// Several clients in one load of four, a server for each origin in one of three.
fn hosts(scenario: &mut Scenario, seed: Seed) {
    let mut random = seed.stream("hosts", 0);
    if random.random_range(0..4) == 0 {
        scenario.clients = Clients {
            servers: [None, Some(1), Some(2)][random.random_range(0..3)],
            spread: Duration::from_millis(random.random_range(0..800)),
            ..Clients::of(random.random_range(2..4))
        };
    }
    if random.random_range(0..3) == 0 {
        scenario.origins = Origins::Recorded;
        scenario.pages = vec!["amazon".to_owned()];
    }
}

#[test]
fn every_object_arrives_whole_whatever_the_fault_and_the_policy() {
    let loads = std::env::var("QUIPU_LOADS").map_or(SLICE, |text| text.parse().unwrap());
    let first = std::env::var("QUIPU_FIRST_LOAD").map_or(0, |text| text.parse().unwrap());
    let mut failures = Vec::new();
    let mut slowest = (Instant::ZERO, String::new());
    for load in (first..first + loads).chain(FOUND) {
        let (scenario, fault) = scenario(load);
        let policies = format!(
            "{} + {}, ack {}, resend {}, {} by {}, {} clients, {} origins",
            scenario.policies.stream[0],
            scenario.policies.path[0],
            scenario.policies.ack,
            scenario.policies.resend,
            scenario.browser,
            scenario.priorities,
            scenario.clients.count,
            scenario.origins,
        );
        let plan = Plan::new(scenario).unwrap();
        let cell = Cell { page: 0, network: 0, policy: 0, run: 0 };
        let name = format!("load {load}: {fault}, {policies}");
        match run_session(&plan, cell) {
            Ok(records) => {
                assert_eq!(records.len(), plan.scenario.clients.count as usize);
                let Some(record) = records.iter().max_by_key(|it| it.ended_at) else { continue };
                let refused: u64 = records.iter().map(|record| record.refused).sum();
                let overridden: u64 = records.iter().map(|record| record.overridden).sum();
                if (refused, overridden) != (0, 0) {
                    failures.push(format!("{name}: {refused} refused, {overridden} overridden"));
                }
                if record.ended_at > slowest.0 {
                    slowest = (record.ended_at, name);
                }
            }
            Err(error) => failures.push(format!("{name}: {error}")),
        }
    }
    println!("{loads} loads, the slowest ended at {}: {}", slowest.0, slowest.1);
    assert!(failures.is_empty(), "{} of {loads} failed:\n{}", failures.len(), failures.join("\n"));
}
