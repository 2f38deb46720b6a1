//! Two paths carry 10 MB, and one is cut on the way: `cargo run --example two_paths_one_fails`.
//!
//! Look at what the connection tells after the cut, at the bytes of each path, and at the time:
//! it lies between that of two paths and that of one.

use std::error::Error;

use quipu_base::{Duration, Instant, Rate, Role, Seed};
use quipu_link::{LinkConfig, Outage};
use quipu_quic::{ConnectionEvent, TransportConfig};
use quipu_sim::{Interface, World, WorldConfig};
use quipu_testkit::{
    ExchangeNode, NodeConfig, Plan, QuicNode, Tls, client_address, plain_policies, server_address,
};

fn main() -> Result<(), Box<dyn Error>> {
    let wifi = LinkConfig::new(Rate::from_mbit_per_sec(20), Duration::from_millis(10));
    let lte = LinkConfig::new(Rate::from_mbit_per_sec(10), Duration::from_millis(25));
    let cut = wifi.clone().with_outage(Outage::for_good(Instant::ZERO + Duration::from_secs(1)));

    download("Wi-Fi and LTE", &[wifi, lte.clone()])?;
    download("LTE alone", std::slice::from_ref(&lte))?;
    download("Wi-Fi, cut after one second, and LTE", &[cut, lte])
}

fn download(title: &str, links: &[LinkConfig]) -> Result<(), Box<dyn Error>> {
    let seed = Seed::new(1);
    let node = |role: Role| {
        QuicNode::new(NodeConfig {
            role,
            local: match role {
                Role::Client => (0..).zip(links).map(|(path, _)| client_address(path)).collect(),
                Role::Server => vec![server_address()],
            },
            server: server_address(),
            tls: Tls::Null { chain: 3_000 },
            transport: TransportConfig::default(),
            policies: plain_policies(),
            plan: Plan::download(10_000_000),
            seed: seed.child("node", u64::from(role.is_client())),
            actions: Vec::new(),
            retry: false,
            tokens: None,
            resets: false,
        })
    };
    let mut world = World::new(WorldConfig::new(seed));
    let (client, server) = (world.add_node(node(Role::Client)), world.add_node(node(Role::Server)));
    let there = Interface { node: server, address: server_address() };
    for (path, link) in (0..).zip(links) {
        let here = Interface { node: client, address: client_address(path) };
        world.add_path(here, there, link, link)?;
    }

    let has_all = |node: &QuicNode| node.exchange().is_some_and(|e| e.received_all_at().is_some());
    let limit = Instant::ZERO + Duration::from_secs(60);
    world.run_while(limit, |world| !has_all(world.node(client)))?;

    println!("{title}: done after {}", world.now());
    let connection = world.node(server).connection().ok_or("there is no connection")?;
    for (path, counters) in connection.path_counters() {
        let (sent, lost) = (counters.bytes_sent, counters.bytes_lost);
        println!("  {path}: the server sent {sent} B, lost {lost} B");
    }
    for (at, event) in world.node(server).events() {
        if matches!(event, ConnectionEvent::PathSuspect(_) | ConnectionEvent::PathGone(_)) {
            println!("  {at} the server tells: {event:?}");
        }
    }
    println!();
    Ok(())
}
