//! Engines by name, links, and a run that tells how it went; [`matrix`] has all engines in both roles.
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod matrix;

use quipu_base::{Duration, Rate, Role};
use quipu_interop::{NoqNode, PeerConfig, QuinnNode};
use quipu_link::LinkConfig;
use quipu_testkit::{ExchangeNode, Identity, NodeConfig, Outcome, QuicNode, Scenario, Tls};

pub(crate) const MEGABYTES: u64 = 1_000_000;

/// Makes one side of an exchange.
pub(crate) type MakeNode<'a> = &'a dyn Fn(&Scenario, Role, &Identity) -> Box<dyn ExchangeNode>;

pub(crate) fn quinn(scenario: &Scenario, role: Role, identity: &Identity) -> Box<dyn ExchangeNode> {
    let config = PeerConfig::new(scenario, role, identity);
    Box::new(QuinnNode::new(config).expect("the engine starts"))
}

pub(crate) fn noq(scenario: &Scenario, role: Role, identity: &Identity) -> Box<dyn ExchangeNode> {
    let config = PeerConfig::new(scenario, role, identity);
    Box::new(NoqNode::new(config).expect("the engine starts"))
}

/// Our engine under rustls.
pub(crate) fn ours(scenario: &Scenario, role: Role, identity: &Identity) -> Box<dyn ExchangeNode> {
    let tls = Tls::Rustls(identity.clone());
    Box::new(QuicNode::new(NodeConfig::new(scenario, role, tls)))
}

pub(crate) fn path(mbit: u64, one_way_millis: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(mbit), Duration::from_millis(one_way_millis))
}

/// Runs the exchange, prints how it went, and returns that.
pub(crate) fn run(
    name: &str,
    scenario: &Scenario,
    client: MakeNode<'_>,
    server: MakeNode<'_>,
) -> Outcome {
    let identity = Identity::generate().expect("a certificate");
    let client = client(scenario, Role::Client, &identity);
    let server = server(scenario, Role::Server, &identity);
    let outcome =
        scenario.run(client, server).unwrap_or_else(|failure| panic!("{name}: {failure}"));
    println!("{name}: {} in {}", outcome.goodput, outcome.finished_at);
    for (index, (up, down)) in outcome.links.iter().enumerate() {
        println!(
            "  path {index}: up {} datagrams of {}, {} dropped; down {} of {}, {} dropped",
            up.offered.datagrams,
            up.offered.bytes,
            up.dropped().datagrams,
            down.offered.datagrams,
            down.offered.bytes,
            down.dropped().datagrams,
        );
    }
    outcome
}

pub(crate) fn mbit(outcome: &Outcome) -> f64 {
    outcome.goodput.bits_per_sec() as f64 / 1e6
}
