//! Several paths: what they carry together, and what happens when one dies.

use quipu_base::{Duration, Instant, Rate, Role, Seed};
use quipu_link::{LinkConfig, Outage, QueueLimit};
use quipu_quic::TransportConfig;
use quipu_testkit::{
    Failure, NodeConfig, Outcome, Plan, QuicNode, Scenario, Tls, plain_policies, server_address,
};
use rand_core::Rng;

const OBJECT: u64 = 10_000_000;

/// 20 Mbit/s, 20 ms round trip, a queue of one bandwidth-delay product.
fn path() -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(20), Duration::from_millis(10))
        .with_queue(QueueLimit::bandwidth_delay(1.0))
}

fn run(scenario: &Scenario) -> Result<Outcome, Failure> {
    let node = |role| {
        Box::new(QuicNode::new(NodeConfig {
            role,
            local: scenario.addresses(role),
            server: server_address(),
            tls: Tls::Null { chain: 3000 },
            transport: TransportConfig::default(),
            policies: plain_policies(),
            plan: scenario.plan,
            seed: scenario.peer_seed(role),
            actions: Vec::new(),
            retry: false,
            tokens: None,
            resets: false,
        }))
    };
    scenario.run(node(Role::Client), node(Role::Server))
}

#[test]
fn two_equal_paths_need_little_more_than_half_the_time_of_one() {
    let alone = run(&Scenario::new(Plan::download(OBJECT), vec![path()])).unwrap();
    let both = run(&Scenario::new(Plan::download(OBJECT), vec![path(), path()])).unwrap();
    let share = both.finished_at.as_nanos() as f64 / alone.finished_at.as_nanos() as f64;
    println!("alone {}, together {}: {share:.3}", alone.finished_at, both.finished_at);
    assert!(share <= 0.56, "{share}");
}

#[test]
fn after_a_cut_the_other_path_finishes_as_fast_as_it_could_alone() {
    let mut random = Seed::new(7).stream("cuts", 0);
    let scenario = Scenario::new(Plan::download(OBJECT), vec![path(), path()]);
    let whole = run(&scenario).unwrap().finished_at;
    // srtt + 4 · rttvar + 25 ms, with the queue full: at most 40 ms of round trip.
    let probe_timeout = Duration::from_millis(40 + 4 * 10 + 25);
    let mut least_spare = f64::INFINITY;
    for cut in 0..100 {
        let at =
            Instant::from_nanos(60_000_000 + random.next_u64() % (whole.as_nanos() - 100_000_000));
        let victim = cut % 2;
        let until_cut = Scenario { limit: at - Instant::ZERO, ..scenario.clone() };
        let downloaded = match run(&until_cut) {
            Err(Failure::Unfinished { downloaded, .. }) => downloaded.0,
            Ok(_) => continue,
            Err(other) => unreachable!("{other}"),
        };
        let mut paths = vec![path(), path()];
        paths[victim] = path().with_outage(Outage::for_good(at));
        let cut = run(&Scenario { paths, ..scenario.clone() })
            .unwrap_or_else(|failure| unreachable!("cut of path {victim} at {at}: {failure}"));
        let rest = run(&Scenario::new(Plan::download(OBJECT - downloaded), vec![path()])).unwrap();
        let bound = at + (rest.finished_at - Instant::ZERO) + probe_timeout.saturating_mul(3);
        let spare = bound.as_nanos() as f64 - cut.finished_at.as_nanos() as f64;
        least_spare = least_spare.min(spare / 1e6);
        assert!(
            cut.finished_at <= bound,
            "path {victim} cut at {at}: {} > {bound}",
            cut.finished_at
        );
    }
    println!("every load ended at least {least_spare:.1} ms before the bound");
}
