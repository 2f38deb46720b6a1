//! Null TLS stands in for rustls: an exchange has the same datagrams at the same times.

use quipu_base::{Duration, Rate, Role};
use quipu_link::LinkConfig;
use quipu_testkit::{Identity, NodeConfig, Outcome, Plan, QuicNode, Scenario, Tls};

fn path(mbit: u64, one_way_millis: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(mbit), Duration::from_millis(one_way_millis))
}

fn run(scenario: &Scenario, tls: &Tls) -> Outcome {
    let node = |role| Box::new(QuicNode::new(NodeConfig::new(scenario, role, tls.clone())));
    scenario.run(node(Role::Client), node(Role::Server)).expect("the exchange ends")
}

#[test]
fn an_exchange_is_the_same_under_rustls_and_under_null_tls() {
    let identity = Identity::generate().expect("a certificate");
    let null = Tls::Null { chain: identity.certificate_length() };
    let rustls = Tls::Rustls(identity);
    for paths in [
        vec![path(20, 20)],
        vec![path(20, 20).with_loss(0.01)],
        vec![path(20, 20).with_loss(0.01), path(10, 30).with_loss(0.01)],
    ] {
        let scenario = Scenario::new(Plan::both_ways(3_000_000), paths);
        let (null, rustls) = (run(&scenario, &null), run(&scenario, &rustls));
        println!("null {}, rustls {}", null.finished_at, rustls.finished_at);
        assert_eq!(null.links, rustls.links);
        assert_eq!(null.finished_at, rustls.finished_at);
        assert_eq!(null.trace, rustls.trace, "sizes and times of all datagrams");
    }
}
