//! Our engine under rustls with foreign engines, in both roles.

mod common;

use common::{MEGABYTES, MakeNode, mbit, noq, ours, path, quinn, run};
use quipu_base::{Bytes, Duration, Instant, PathId, Role};
use quipu_interop::{NoqNode, PeerConfig, QuinnNode};
use quipu_link::Outage;
use quipu_testkit::{
    Action, ExchangeNode, Failure, Identity, NodeConfig, Outcome, Plan, QuicNode, Scenario, Tls,
    policies,
};

/// Ten megabytes each way without loss and with one percent, in both roles.
fn exchange_both_ways(name: &str, foreign: MakeNode<'_>) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for loss in [0.0, 0.01] {
        let paths = vec![path(20, 20).with_loss(loss)];
        let scenario = Scenario::new(Plan::both_ways(10 * MEGABYTES), paths);
        let percent = 100.0 * loss;
        let label = format!("{name} from ours, {percent} % loss");
        outcomes.push(run(&label, &scenario, &ours, foreign));
        let label = format!("ours from {name}, {percent} % loss");
        outcomes.push(run(&label, &scenario, foreign, &ours));
    }
    outcomes
}

#[test]
fn ours_and_quinn_exchange_ten_megabytes_both_ways() {
    exchange_both_ways("quinn", &quinn);
}

#[test]
fn ours_and_noq_exchange_ten_megabytes_both_ways() {
    exchange_both_ways("noq", &noq);
}

/// Ten megabytes each way over two paths; both must carry data in both directions.
fn over_two_paths(name: &str, client: MakeNode<'_>, server: MakeNode<'_>) -> Outcome {
    let paths = vec![path(20, 20), path(20, 10)];
    let scenario = Scenario::new(Plan::both_ways(10 * MEGABYTES), paths);
    let outcome = run(name, &scenario, client, server);
    for (index, (up, down)) in outcome.links.iter().enumerate() {
        for (direction, link) in [("up", up), ("down", down)] {
            let carried = link.delivered.bytes;
            assert!(carried > Bytes(MEGABYTES), "path {index} {direction} carried {carried}");
        }
    }
    outcome
}

/// The same, where a side abandons path `id` after a second.
fn abandon_one(name: &str, id: u32, client: MakeNode<'_>, server: MakeNode<'_>) {
    let outcome = over_two_paths(name, client, server);
    assert_eq!(outcome.client_paths, 1, "one path is left");
    let (up, down) = outcome.links[id as usize];
    for link in [up, down] {
        // 20 Mbit/s for a second are 2.5 MB.
        let offered = link.offered.bytes;
        assert!(offered < Bytes(4 * MEGABYTES), "the abandoned path was offered {offered}");
    }
}

/// One action a second after the start.
fn after_a_second(action: Action) -> Vec<(Instant, Action)> {
    vec![(Instant::ZERO + Duration::from_secs(1), action)]
}

#[test]
fn ours_and_noq_use_two_paths() {
    for (name, client, server) in [
        ("noq serves ours", &ours as MakeNode<'_>, &noq as MakeNode<'_>),
        ("ours serves noq", &noq, &ours),
    ] {
        let outcome = over_two_paths(name, client, server);
        assert_eq!(outcome.client_paths, 2, "{name}");
        assert!(mbit(&outcome) > 45.0, "{name}: {}", outcome.goodput);
    }
}

/// noq does not know our extension: with `min-owd` we fall back to `min-rtt`.
#[test]
fn noq_takes_acknowledgements_whichever_way_they_return() {
    for ack in ["min-rtt", "any", "all", "min-owd"] {
        let ours = |scenario: &Scenario, role, identity: &Identity| -> Box<dyn ExchangeNode> {
            let policies = policies(&format!("ack={ack}"));
            let tls = Tls::Rustls(identity.clone());
            let config = NodeConfig { policies, ..NodeConfig::new(scenario, role, tls) };
            Box::new(QuicNode::new(config))
        };
        for (name, client, server) in [
            ("noq serves ours", &ours as MakeNode<'_>, &noq as MakeNode<'_>),
            ("ours serves noq", &noq, &ours),
        ] {
            let outcome = over_two_paths(&format!("{name}, {ack}"), client, server);
            assert_eq!(outcome.client_paths, 2, "{name}, {ack}");
            assert!(mbit(&outcome) > 45.0, "{name}, {ack}: {}", outcome.goodput);
        }
    }
}

#[test]
fn the_rest_arrives_when_ours_abandons_a_path() {
    for id in [0, 1] {
        let ours = |scenario: &Scenario, role, identity: &Identity| -> Box<dyn ExchangeNode> {
            let tls = Tls::Rustls(identity.clone());
            let actions = after_a_second(Action::Abandon(PathId(id)));
            let config = NodeConfig { actions, ..NodeConfig::new(scenario, role, tls) };
            Box::new(QuicNode::new(config))
        };
        abandon_one(&format!("ours abandons path {id}, noq serves"), id, &ours, &noq);
        abandon_one(&format!("ours abandons path {id}, ours serves"), id, &noq, &ours);
    }
}

#[test]
fn the_rest_arrives_when_noq_abandons_a_path() {
    for id in [0, 1] {
        let noq = |scenario: &Scenario, role, identity: &Identity| -> Box<dyn ExchangeNode> {
            let actions = after_a_second(Action::Abandon(PathId(id)));
            let config = PeerConfig { actions, ..PeerConfig::new(scenario, role, identity) };
            Box::new(NoqNode::new(config).expect("the engine starts"))
        };
        abandon_one(&format!("noq abandons path {id}, noq serves"), id, &ours, &noq);
        abandon_one(&format!("noq abandons path {id}, ours serves"), id, &noq, &ours);
    }
}

/// Ours updates its keys after a second, the foreign engine after two, in mid-transfer. Both
/// foreign engines also do so of themselves, somewhere in their first thousand packets.
fn update_keys(name: &str, foreign: impl Fn(PeerConfig) -> Box<dyn ExchangeNode>) {
    let after = |seconds| vec![(Instant::ZERO + Duration::from_secs(seconds), Action::UpdateKeys)];
    let ours = |scenario: &Scenario, role, identity: &Identity| -> Box<dyn ExchangeNode> {
        let config = NodeConfig::new(scenario, role, Tls::Rustls(identity.clone()));
        Box::new(QuicNode::new(NodeConfig { actions: after(1), ..config }))
    };
    let foreign = |scenario: &Scenario, role, identity: &Identity| {
        let config = PeerConfig::new(scenario, role, identity);
        foreign(PeerConfig { actions: after(2), ..config })
    };
    let paths = vec![path(20, 20).with_loss(0.002)];
    let scenario = Scenario::new(Plan::both_ways(10 * MEGABYTES), paths);
    let outcome = run(&format!("key updates, {name} serves"), &scenario, &ours, &foreign);
    assert!(outcome.key_updates[0] >= 2, "{:?}", outcome.key_updates);
    let outcome = run(&format!("key updates, ours serves {name}"), &scenario, &foreign, &ours);
    assert!(outcome.key_updates[1] >= 2, "{:?}", outcome.key_updates);
}

#[test]
fn either_engine_updates_its_keys_in_mid_transfer() {
    update_keys("quinn", |config| Box::new(QuinnNode::new(config).expect("the engine starts")));
    update_keys("noq", |config| Box::new(NoqNode::new(config).expect("the engine starts")));
}

/// noq as client abandons its only path while the other is cut in its direction, so that our
/// server has none; the other opens again after so many milliseconds.
fn without_a_path(until_millis: u64) -> Result<Outcome, Failure> {
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    let paths = vec![path(20, 20), path(20, 20)];
    let cut = path(20, 20).with_outage(Outage::between(at(0), at(until_millis)));
    let up = vec![(1, cut)];
    let scenario = Scenario { up, ..Scenario::new(Plan::both_ways(MEGABYTES), paths) };
    let identity = Identity::generate().expect("a certificate");
    let actions = vec![(at(200), Action::Abandon(PathId(0)))];
    let client = PeerConfig { actions, ..PeerConfig::new(&scenario, Role::Client, &identity) };
    let client = NoqNode::new(client).expect("the engine starts");
    scenario.run(Box::new(client), ours(&scenario, Role::Server, &identity))
}

#[test]
fn our_server_waits_for_a_path_when_the_last_was_abandoned() {
    without_a_path(1000).expect("the exchange ends");
}

#[test]
fn our_server_closes_when_no_path_comes_after_the_last_was_abandoned() {
    let failure = without_a_path(60_000).expect_err("the connection ends");
    println!("{failure}");
    assert!(failure.to_string().contains("NO_VIABLE_PATH"), "{failure}");
}
