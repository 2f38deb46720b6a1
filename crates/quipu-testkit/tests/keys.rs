//! Key updates in mid-transfer.

use quipu_base::{Duration, Instant, Rate, Role};
use quipu_link::{Duplicate, LinkConfig, Outage, Reorder};
use quipu_testkit::{Action, Identity, NodeConfig, Outcome, Plan, QuicNode, Scenario, Tls};

fn path(mbit: u64, one_way_millis: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(mbit), Duration::from_millis(one_way_millis))
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Runs the exchange; client and server update their keys at these milliseconds.
fn run(scenario: &Scenario, tls: &Tls, client: &[u64], server: &[u64]) -> Outcome {
    let node = |role: Role, millis: &[u64]| {
        let actions = millis.iter().map(|&millis| (at(millis), Action::UpdateKeys)).collect();
        let config = NodeConfig::new(scenario, role, tls.clone());
        Box::new(QuicNode::new(NodeConfig { actions, ..config }))
    };
    let outcome = scenario.run(node(Role::Client, client), node(Role::Server, server));
    outcome.expect("the exchange ends")
}

fn kinds_of_tls() -> [Tls; 2] {
    [Tls::Null { chain: 3000 }, Tls::Rustls(Identity::generate().expect("a certificate"))]
}

#[test]
fn either_end_updates_again_and_again() {
    let paths = vec![path(20, 20), path(20, 10)];
    let scenario = Scenario::new(Plan::both_ways(20_000_000), paths);
    for tls in kinds_of_tls() {
        let outcome = run(&scenario, &tls, &[300, 2300], &[1300, 3300]);
        assert_eq!(outcome.key_updates, [4, 4]);
    }
}

#[test]
fn both_ends_update_at_once() {
    let scenario = Scenario::new(Plan::both_ways(5_000_000), vec![path(20, 20)]);
    for tls in kinds_of_tls() {
        let outcome = run(&scenario, &tls, &[500, 1500], &[500, 1501]);
        assert_eq!(outcome.key_updates, [2, 2]);
    }
}

#[test]
fn packets_of_the_phase_before_are_read_when_they_come_late() {
    let rough = LinkConfig {
        reorder: Some(Reorder { share: 0.1, extra: Duration::from_millis(30) }),
        duplicate: Some(Duplicate { share: 0.1, after: Duration::from_millis(15) }),
        ..path(20, 20).with_loss(0.01)
    };
    let scenario = Scenario::new(Plan::both_ways(5_000_000), vec![rough]);
    for tls in kinds_of_tls() {
        let outcome = run(&scenario, &tls, &[500, 2000], &[1000]);
        assert_eq!(outcome.key_updates, [3, 3]);
    }
}

#[test]
fn a_peer_that_hears_of_the_update_late_is_still_read() {
    // The client updates while nothing gets through to the server, for far more than three probe
    // timeouts: the server's packets are of the phase before all that time. So little
    // is downloaded that the client sends acknowledgements only, and repeats none.
    let mut scenario = Scenario::new(Plan::download(400_000), vec![path(20, 20)]);
    scenario.up = vec![(0, path(20, 20).with_outage(Outage::between(at(150), at(3000))))];
    for tls in kinds_of_tls() {
        let outcome = run(&scenario, &tls, &[160], &[]);
        assert_eq!(outcome.key_updates, [1, 1]);
    }
}
