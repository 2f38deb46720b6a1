//! Links on which packets overtake each other: what that costs a sender, and what it learns.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use quipu_base::{Duration, Rate, Role};
use quipu_link::{LinkConfig, Reorder};
use quipu_quic::{PathCounters, RecoveryRules, TransportConfig};
use quipu_sim::{Interface, World, WorldConfig};
use quipu_testkit::{
    ExchangeNode, NodeConfig, Plan, QuicNode, Scenario, Tls, client_address, policies,
    server_address,
};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// 20 Mbit/s and 20 ms each way, with that share of packets so much later.
fn reordering(share: f64, extra: Duration) -> LinkConfig {
    let link = LinkConfig::new(Rate::from_mbit_per_sec(20), ms(20));
    LinkConfig { reorder: Some(Reorder { share, extra }), ..link }
}

/// How a download of 10 MB went at the server, and how long it took.
fn download(
    link: &LinkConfig,
    congestion: &str,
    recovery: RecoveryRules,
) -> (PathCounters, Duration) {
    let scenario = Scenario::new(Plan::download(10_000_000), vec![link.clone()]);
    let mut world = World::new(WorldConfig::new(scenario.seed));
    let transport = TransportConfig { recovery, ..TransportConfig::default() };
    let [client, server] = [Role::Client, Role::Server].map(|role| {
        let config = NodeConfig::new(&scenario, role, Tls::Null { chain: 3000 });
        let policies = policies(&format!("congestion={congestion}"));
        let transport = transport.clone();
        world.add_node(QuicNode::new(NodeConfig { transport, policies, ..config }))
    });
    let here = Interface { node: client, address: client_address(0) };
    let there = Interface { node: server, address: server_address() };
    world.add_path(here, there, link, link).unwrap();
    let received_all = |world: &World<QuicNode>| {
        let exchange = world.node(client).exchange();
        exchange.is_some_and(|exchange| exchange.received_all_at().is_some())
    };
    world
        .run_while(quipu_base::Instant::ZERO + scenario.limit, |world| !received_all(world))
        .unwrap();
    let counters = world.node(server).connection().unwrap().totals();
    (counters, world.now() - quipu_base::Instant::ZERO)
}

const FIXED: RecoveryRules = RecoveryRules {
    adapts_to_reordering: false,
    undoes_spurious_reductions: false,
    ..RecoveryRules::STANDARD
};

/// One packet in twenty is overtaken by about ten. The standard's thresholds take each for lost.
#[test]
fn a_sender_learns_how_far_packets_overtake_each_other() {
    let link = reordering(0.05, ms(5));
    for congestion in ["newreno", "cubic", "bbr", "bbr3", "olia"] {
        let (fixed, fixed_time) = download(&link, congestion, FIXED);
        let (learning, time) = download(&link, congestion, RecoveryRules::default());
        println!(
            "{congestion}: {} of {} losses spurious in {fixed_time}; learning: {} of {} in {time}",
            fixed.packets_spurious,
            fixed.packets_lost,
            learning.packets_spurious,
            learning.packets_lost
        );
        assert!(fixed.packets_spurious > 100, "{congestion}");
        assert!(learning.packets_spurious < 40, "{congestion}");
        assert!(time <= fixed_time, "{congestion}: {time}, {fixed_time}");
    }
}

/// The same when packets come later than the time threshold allows: 45 ms on 40 ms.
#[test]
fn a_sender_learns_how_late_packets_come() {
    let link = reordering(0.02, ms(25));
    let (fixed, fixed_time) = download(&link, "cubic", FIXED);
    let (learning, time) = download(&link, "cubic", RecoveryRules::default());
    println!(
        "{} spurious in {fixed_time}, {} in {time}",
        fixed.packets_spurious, learning.packets_spurious
    );
    assert!(learning.packets_spurious * 4 < fixed.packets_spurious);
    assert!(time.as_nanos() * 10 < fixed_time.as_nanos() * 9);
}

/// Undoing alone, with the standard's thresholds, restores the window.
#[test]
fn what_was_reduced_for_late_packets_is_restored() {
    let link = reordering(0.01, ms(5));
    for congestion in ["newreno", "cubic", "olia", "newreno:prr=true"] {
        let (_, kept) = download(&link, congestion, FIXED);
        let undoing = RecoveryRules { undoes_spurious_reductions: true, ..FIXED };
        let (counters, restored) = download(&link, congestion, undoing);
        println!(
            "{congestion}: {kept} reduced, {restored} restored, {} spurious",
            counters.packets_spurious
        );
        assert!(restored.as_nanos() * 10 < kept.as_nanos() * 9, "{congestion}: {restored}, {kept}");
    }
}

/// Where nothing overtakes, nothing changes.
#[test]
fn without_reordering_the_rules_make_no_difference() {
    let link = LinkConfig::new(Rate::from_mbit_per_sec(20), ms(20)).with_loss(0.01);
    assert_eq!(download(&link, "cubic", FIXED), download(&link, "cubic", RecoveryRules::default()));
}
