//! Our engine against itself and quinn against itself: the same goodput under the same rules.
//!
//! Both run NewReno from a window of ten datagrams of 1,200 bytes, acknowledge every second packet
//! and pace at 1.25 windows per round trip.
//!
//! What is left between them at 1 % loss, some 4 %, is quinn's NewReno: it counts acknowledged
//! bytes on through a loss, so that the halved window grows a datagram early, where RFC 9002
//! (appendix B) begins anew. Ours with quinn's count comes to 2.76 Mbit/s of quinn's 2.77.

mod common;

use common::{MEGABYTES, MakeNode, mbit, path, quinn};
use quipu_base::{Bytes, Role, Seed};
use quipu_quic::TransportConfig;
use quipu_testkit::{ExchangeNode, Identity, NodeConfig, Plan, QuicNode, Scenario, Tls};

/// Our engine with the settings that quinn has.
fn ours_as_quinn(scenario: &Scenario, role: Role, identity: &Identity) -> Box<dyn ExchangeNode> {
    let transport = TransportConfig {
        max_udp_payload: 1200,
        stream_window: Bytes(MEGABYTES),
        ..TransportConfig::default()
    };
    let config = NodeConfig::new(scenario, role, Tls::Rustls(identity.clone()));
    Box::new(QuicNode::new(NodeConfig { transport, ..config }))
}

/// Mbit/s of a download of ten megabytes over 20 Mbit/s and a round trip of 40 ms, seed by seed.
fn goodputs(engine: MakeNode<'_>, loss: f64, seeds: std::ops::Range<u64>) -> Vec<f64> {
    let identity = Identity::generate().expect("a certificate");
    let one = |seed| {
        let paths = vec![path(20, 20).with_loss(loss)];
        let plan = Plan::download(10 * MEGABYTES);
        let scenario = Scenario { seed: Seed::new(seed), ..Scenario::new(plan, paths) };
        let node = |role| engine(&scenario, role, &identity);
        let outcome = scenario.run(node(Role::Client), node(Role::Server));
        mbit(&outcome.expect("the download ends"))
    };
    seeds.map(one).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Prints both, and how far ours is from quinn in percent.
fn compare(loss: f64, seeds: std::ops::Range<u64>) -> f64 {
    let quinn = goodputs(&quinn, loss, seeds.clone());
    let ours = goodputs(&ours_as_quinn, loss, seeds);
    let percent = 100.0 * (mean(&ours) / mean(&quinn) - 1.0);
    println!(
        "loss {loss}: quinn {:.3} Mbit/s, ours {:.3}, {percent:+.2} %",
        mean(&quinn),
        mean(&ours)
    );
    println!("  quinn by seed {quinn:.2?}\n  ours by seed  {ours:.2?}");
    percent
}

#[test]
fn without_loss_ours_is_as_fast_as_quinn() {
    let percent = compare(0.0, 1..3);
    assert!(percent.abs() < 5.0, "{percent:+.2} %");
}

#[test]
fn with_one_percent_loss_ours_is_as_fast_as_quinn() {
    let percent = compare(0.01, 1..21);
    assert!(percent.abs() < 5.0, "{percent:+.2} %");
}
