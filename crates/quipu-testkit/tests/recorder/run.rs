//! The run that is recorded: two lossy paths, of which one dies and is abandoned.

use quipu_base::{Duration, Instant, PathId, Rate, Role, Seed};
use quipu_link::{LinkConfig, Outage};
use quipu_quic::PathCounters;
use quipu_quic::recorder::RecorderFactory;
use quipu_sim::{EventHash, Interface, World, WorldConfig};
use quipu_testkit::{
    Action, ExchangeNode, NodeConfig, Plan, QuicNode, Scenario, Tls, client_address, server_address,
};

/// What the engines counted: of the client, of the server.
pub(crate) struct Ran {
    pub(crate) counters: [Vec<(PathId, PathCounters)>; 2],
    /// Questions to the policies.
    pub(crate) asked: [u64; 2],
    /// Hash of all datagrams, bytes included.
    pub(crate) trace: u64,
    pub(crate) ended_at: Instant,
}

/// A download over two lossy paths; the first is cut after half a second, and later abandoned. The
/// recorders are the client's and the server's.
pub(crate) fn run(recorders: Option<[RecorderFactory; 2]>) -> Ran {
    let link = |mbit, millis| {
        LinkConfig::new(Rate::from_mbit_per_sec(mbit), Duration::from_millis(millis))
            .with_loss(0.01)
    };
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    let paths = vec![link(20, 10).with_outage(Outage::for_good(at(500))), link(10, 25)];
    let scenario = Scenario::new(Plan::download(2_000_000), paths);
    let [of_client, of_server] = match recorders {
        Some(recorders) => recorders.map(Some),
        None => [None, None],
    };
    let node = |role: Role, recorders: Option<RecorderFactory>| {
        let mut config = NodeConfig::new(&scenario, role, Tls::Null { chain: 3_000 });
        if role == Role::Client {
            config.actions =
                vec![(at(900), Action::Abandon(PathId(0))), (at(20_000), Action::Close)];
        }
        let node = QuicNode::new(config);
        match recorders {
            Some(recorders) => node.recorded(recorders),
            None => node,
        }
    };
    let config = WorldConfig::new(Seed::new(1));
    let mut world = World::with_observer(config, EventHash::with_payload());
    let client = world.add_node(node(Role::Client, of_client));
    let server = world.add_node(node(Role::Server, of_server));
    let there = Interface { node: server, address: server_address() };
    for (path, link) in (0..).zip(&scenario.paths) {
        let here = Interface { node: client, address: client_address(path) };
        world.add_path(here, there, link, link).unwrap();
    }
    let has_all = |node: &QuicNode| node.exchange().is_some_and(|e| e.received_all_at().is_some());
    world.run_while(at(19_000), |world| !has_all(world.node(client))).unwrap();
    assert!(has_all(world.node(client)));
    // An abandoned path's state is dropped after three probe timeouts, a closed connection's too.
    world.run_while(at(40_000), |_| true).unwrap();
    let ends = [client, server].map(|id| world.node(id).connection().unwrap());
    Ran {
        counters: ends.map(|connection| connection.path_counters()),
        asked: ends.map(|connection| connection.scheduler_counters().asked),
        trace: world.observer().value(),
        ended_at: world.now(),
    }
}
