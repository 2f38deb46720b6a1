//! Our engine with foreign ones in rough networks: loss, reordering, duplicates, outages, forged
//! datagrams, paths abandoned and keys updated at any time. Everything still arrives.

mod common;

use common::path;
use quipu_base::{Duration, Instant, PathId, Role, Seed};
use quipu_interop::{NoqNode, PeerConfig, QuinnNode};
use quipu_link::{Duplicate, LinkConfig, Outage, Reorder};
use quipu_testkit::{
    Action, ExchangeNode, Hostile, Identity, Mischief, NodeConfig, Plan, QuicNode, Scenario, Tls,
};

/// Exchanges of each pair of engines.
const ROUNDS: u64 = 150;

/// What a seed makes of the network and the nodes.
struct Case {
    scenario: Scenario,
    mischief: Mischief,
    /// Of one of the nodes.
    actions: Vec<(Instant, Action)>,
    /// Whether they are those of ours.
    ours_acts: bool,
}

fn rough(seed: Seed, path_number: u64, link: LinkConfig) -> LinkConfig {
    let draw = |name, end: u64| seed.number(name, path_number) % end;
    let mut link = link.with_loss(draw("loss", 4) as f64 / 100.0);
    if draw("reorders", 2) == 1 {
        let extra = Duration::from_millis(5 + draw("extra", 40));
        link.reorder = Some(Reorder { share: 0.05, extra });
    }
    if draw("duplicates", 2) == 1 {
        link.duplicate = Some(Duplicate { share: 0.05, after: Duration::from_millis(10) });
    }
    if draw("fails", 4) == 1 {
        let from = Instant::ZERO + Duration::from_millis(300 + draw("from", 1000));
        let until = from + Duration::from_millis(50 + draw("length", 900));
        link = link.with_outage(Outage::between(from, until));
    }
    link
}

fn case(seed: u64, paths: u64) -> Case {
    let seed = Seed::new(seed);
    let draw = |name, end: u64| seed.number(name, 0) % end;
    let link = |number| {
        let link = path(5 + draw("rate", 20), 5 + seed.number("delay", number) % 40);
        rough(seed, number, link)
    };
    let links: Vec<_> = (0..paths).map(link).collect();
    let plan = Plan::both_ways(1_000_000);
    let mut actions = Vec::new();
    let mut act = |name, action| {
        let at = Instant::ZERO + Duration::from_millis(400 + draw(name, 1200));
        actions.push((at, action));
    };
    act("updates at", Action::UpdateKeys);
    if paths > 1 && draw("abandons", 2) == 1 {
        act("abandons at", Action::Abandon(PathId(draw("which", paths) as u32)));
    }
    Case {
        scenario: Scenario { seed, ..Scenario::new(plan, links) },
        mischief: Mischief::around([0, 10][draw("mischief", 2) as usize]),
        actions,
        ours_acts: draw("who", 2) == 1,
    }
}

/// Makes a node of a foreign engine.
type MakePeer = fn(PeerConfig) -> Box<dyn ExchangeNode>;

fn exchange(name: &str, paths: u64, make: MakePeer) {
    let identity = Identity::generate().expect("a certificate");
    for seed in 0..ROUNDS {
        for our_role in [Role::Client, Role::Server] {
            let case = case(seed, paths);
            let scenario = &case.scenario;
            let actions = |acts| if acts { case.actions.clone() } else { Vec::new() };
            let ours = NodeConfig {
                actions: actions(case.ours_acts),
                ..NodeConfig::new(scenario, our_role, Tls::Rustls(identity.clone()))
            };
            let ours = Hostile::new(QuicNode::new(ours), case.mischief, scenario.seed);
            let foreign = make(PeerConfig {
                actions: actions(!case.ours_acts),
                ..PeerConfig::new(scenario, our_role.peer(), &identity)
            });
            let (client, server): (Box<dyn ExchangeNode>, Box<dyn ExchangeNode>) = match our_role {
                Role::Client => (Box::new(ours), foreign),
                Role::Server => (foreign, Box::new(ours)),
            };
            let outcome = scenario.run(client, server);
            outcome.unwrap_or_else(|failure| {
                panic!("{name}, seed {seed}, ours is {our_role:?}: {failure}")
            });
        }
    }
}

fn quinn(config: PeerConfig) -> Box<dyn ExchangeNode> {
    Box::new(QuinnNode::new(config).expect("the engine starts"))
}

fn noq(config: PeerConfig) -> Box<dyn ExchangeNode> {
    Box::new(NoqNode::new(config).expect("the engine starts"))
}

#[test]
fn with_quinn_on_one_path() {
    exchange("quinn", 1, quinn);
}

#[test]
fn with_noq_on_one_path() {
    exchange("noq", 1, noq);
}

#[test]
fn with_noq_on_two_paths() {
    exchange("noq, two paths", 2, noq);
}

#[test]
fn with_noq_on_three_paths() {
    exchange("noq, three paths", 3, noq);
}
