//! Whole exchanges of our engine with itself.

use quipu_base::{Bytes, Duration, Instant, PathId, Rate, Role};
use quipu_link::{LinkConfig, Outage};
use quipu_testkit::{Action, Failure, NodeConfig, Outcome, Plan, QuicNode, Scenario, Tls};

const MEGABYTE: u64 = 1_000_000;

fn path(mbit: u64, one_way_millis: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(mbit), Duration::from_millis(one_way_millis))
}

fn run(scenario: &Scenario) -> Outcome {
    let node =
        |role| Box::new(QuicNode::new(NodeConfig::new(scenario, role, Tls::Null { chain: 3000 })));
    let outcome = scenario.run(node(Role::Client), node(Role::Server));
    let outcome = outcome.expect("the exchange ends");
    println!("{} in {}", outcome.goodput, outcome.finished_at);
    for (up, down) in &outcome.links {
        println!(
            "up {} dropped {}; down {} dropped {}",
            up.offered.datagrams,
            up.dropped().datagrams,
            down.offered.datagrams,
            down.dropped().datagrams
        );
    }
    outcome
}

#[test]
fn a_small_object_arrives() {
    run(&Scenario::new(Plan::download(1000), vec![path(20, 20)]));
}

#[test]
fn ten_megabytes_arrive_at_the_rate_of_the_link() {
    let outcome = run(&Scenario::new(Plan::download(10 * MEGABYTE), vec![path(20, 20)]));
    assert!(outcome.goodput > Rate::from_mbit_per_sec(18), "{}", outcome.goodput);
}

#[test]
fn ten_megabytes_arrive_under_loss() {
    let paths = vec![path(20, 20).with_loss(0.01)];
    run(&Scenario::new(Plan::both_ways(10 * MEGABYTE), paths));
}

#[test]
fn two_paths_carry_more_than_one() {
    let outcome =
        run(&Scenario::new(Plan::download(10 * MEGABYTE), vec![path(20, 20), path(20, 10)]));
    assert!(outcome.goodput > Rate::from_mbit_per_sec(32), "{}", outcome.goodput);
}

#[test]
fn the_only_validated_path_stays() {
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    let cut = path(20, 20).with_outage(Outage::between(at(0), at(1500)));
    let paths = vec![path(20, 20), cut];
    let scenario = Scenario::new(Plan::both_ways(10 * MEGABYTE), paths);
    let node = |role, actions| {
        let config = NodeConfig::new(&scenario, role, Tls::Null { chain: 3000 });
        Box::new(QuicNode::new(NodeConfig { actions, ..config }))
    };
    // Tried again after each input, it succeeds once the other path is validated.
    let abandon = vec![(at(200), Action::Abandon(PathId(0)))];
    let outcome = scenario.run(node(Role::Client, abandon), node(Role::Server, Vec::new()));
    let outcome = outcome.expect("the exchange ends");
    assert_eq!(outcome.client_paths, 1);
    let (up, _) = outcome.links[0];
    assert!(up.offered.bytes > Bytes(2 * MEGABYTE), "{}", up.offered.bytes);
}

#[test]
fn a_transfer_that_ends_early_fails_whether_it_is_checked_or_not() {
    let plan = |bytes: u64, checked: bool| {
        let plan = Plan::download(bytes);
        let plan = if checked { plan } else { plan.unchecked() };
        Scenario::new(plan, vec![path(20, 20)])
    };
    for checked in [true, false] {
        let (asked, sent) = (plan(100_000, checked), plan(99_999, checked));
        let node = |scenario: &Scenario, role| {
            Box::new(QuicNode::new(NodeConfig::new(scenario, role, Tls::Null { chain: 3000 })))
        };
        let failure = asked.run(node(&asked, Role::Client), node(&sent, Role::Server)).err();
        assert!(
            matches!(failure, Some(Failure::WrongBytes { received: Bytes(99_999), .. })),
            "{failure:?}"
        );
    }
}
