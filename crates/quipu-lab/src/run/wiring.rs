//! The links of a run and the ways over them, for another driver than the simulator.

use quipu_base::{Bytes, Duration, Instant};
use quipu_link::AnyLink;
use quipu_sim::{Envelope, Node, Outgoing, World, WorldConfig};

use super::error::RunError;
use super::instruments::{Instruments, Setting};
use super::pairs::pair_of_page;
use super::topology::{Hosts, Topology};
use crate::plan::{Cell, Plan};

/// What lies between the clients of a run and their servers.
#[derive(Debug)]
pub struct Wiring {
    /// The links, each one direction, as new.
    pub links: Vec<AnyLink>,
    /// The shortest delay of each, without jitter.
    pub least_delays: Vec<Duration>,
    /// The ways over them.
    pub ways: Vec<Way>,
}

/// The way between a client and its server over a path of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Number of the client.
    pub client: u32,
    /// Number of its server, which other clients may have, too.
    pub server: u32,
    /// Position of the path in the network.
    pub path: usize,
    /// Positions of the links from the client to the server, in order; one at least. Links may be on several ways.
    pub up: Vec<usize>,
    /// The same from the server to the client.
    pub down: Vec<usize>,
}

/// The links of the run of `cell`, with the chance that they have in the simulated run, and the ways of all its
/// clients over them, each of which has one server for all origins. A datagram takes `overhead` bytes on a link
/// above what is said of its size.
///
/// # Errors
/// If the network is a real one, or a link is none.
pub fn wiring(plan: &Plan, cell: Cell, overhead: Bytes) -> Result<Wiring, RunError> {
    let scenario = &plan.scenario;
    let instruments = Instruments::default();
    let setting = Setting { plan, cell, instruments: &instruments };
    let seed = scenario.run_seed(cell.run);
    let mut world = World::new(WorldConfig::new(seed));
    let network = setting.network().network.for_run(seed);
    let mut topology = Topology::new(&mut world, &network, overhead)?;
    let paths = network.paths.len();
    let mut ends = Vec::new();
    for client in 0..scenario.clients.count {
        let server = scenario.clients.server_of(client);
        let number = |client| pair_of_page(plan, client, 0, 1);
        let (client_number, server_number) = (number(client), number(server));
        let hosts = Hosts {
            number: client_number,
            client: client_number,
            server: server_number,
            far: None,
        };
        let nodes = [world.add_node(Nobody), world.add_node(Nobody)];
        topology.join(&mut world, nodes, hosts, 0..paths)?;
        ends.extend((0..paths).map(|path| (client, server, path)));
    }
    let wired = world.into_wiring();
    let mut ways = Vec::with_capacity(ends.len());
    // A topology adds the way up and the way down of each path in turn.
    for (both, (client, server, path)) in wired.routes.chunks_exact(2).zip(ends) {
        if let [up, down] = both {
            let (up, down) = (up.links.clone(), down.links.clone());
            ways.push(Way { client, server, path, up, down });
        }
    }
    Ok(Wiring { links: wired.links, least_delays: wired.least_delays, ways })
}

/// A node that does nothing.
struct Nobody;

impl Node for Nobody {
    fn handle_datagram(&mut self, _now: Instant, _envelope: &Envelope, _payload: &mut [u8]) {}

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant, _out: &mut Outgoing<'_>) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use quipu_link::{Verdict, ecn};
    use quipu_scenario::Scenario;

    use super::*;

    const CELL: Cell = Cell { page: 0, network: 0, policy: 0, run: 0 };

    fn wired(file: &str) -> Wiring {
        let scenario = Scenario::from_toml(file, "a.toml").unwrap();
        let plan = Plan::new(scenario).unwrap();
        wiring(&plan, CELL, Bytes::ZERO).unwrap()
    }

    fn way((client, server, path): (u32, u32, usize), up: &[usize], down: &[usize]) -> Way {
        Way { client, server, path, up: up.to_vec(), down: down.to_vec() }
    }

    #[test]
    fn each_path_has_a_link_in_each_direction() {
        let wiring = wired(
            "[[networks]]\nname = \"two\"\npaths = [
            { name = \"a\", down = { rate = \"10mbit\", delay = \"10ms\" } },
            { name = \"b\", down = { rate = \"20mbit\", delay = \"30ms\" } },
        ]",
        );
        assert_eq!(wiring.ways, [way((0, 0, 0), &[0], &[1]), way((0, 0, 1), &[2], &[3])]);
        assert_eq!(wiring.links.len(), 4);
        let delays = [10, 10, 30, 30].map(Duration::from_millis);
        assert_eq!(wiring.least_delays, delays);
    }

    #[test]
    fn clients_share_bottlenecks_and_servers_and_have_access_links_of_their_own() {
        let wiring = wired("clients = { count = 2, servers = 1 }\n[[networks]]\nname = \"dumbbell\"\npaths = [
            { name = \"near\", down = { rate = \"10mbit\", delay = \"1ms\" } },
            { name = \"far\", bottleneck = \"near\", access = { rate = \"10mbit\", delay = \"45ms\" } },
        ]");
        let expected = [
            way((0, 0, 0), &[0], &[1]),
            way((0, 0, 1), &[2, 0, 3], &[4, 1, 5]),
            way((1, 0, 0), &[0], &[1]),
            way((1, 0, 1), &[6, 0, 3], &[4, 1, 7]),
        ];
        assert_eq!(wiring.ways, expected);
    }

    #[test]
    fn links_have_the_chance_and_the_sizes_that_the_simulator_gives_them() {
        let file = "[[networks]]\nname = \"lossy\"\npaths = [
            { name = \"a\", down = { rate = \"8mbit\", delay = \"10ms\", loss = 0.3, queue = \"unlimited\" } },
        ]";
        let scenario = Scenario::from_toml(file, "a.toml").unwrap();
        let plan = Plan::new(scenario).unwrap();
        let mut lost = Vec::new();
        for overhead in [Bytes::ZERO, Bytes(28)] {
            let mut links = wiring(&plan, CELL, overhead).unwrap().links;
            let AnyLink::Plain(link) = &mut links[1] else { panic!("a managed queue") };
            let size = Bytes(1_000) - overhead;
            let verdicts: Vec<Verdict> =
                (0..100).map(|_| link.offer(Instant::ZERO, size, ecn::NOT_ECT)).collect();
            // 1,000 B at 8 Mbit/s take 1 ms.
            for (nth, verdict) in (1..).zip(&verdicts) {
                if let Verdict::Deliver { at, .. } = verdict {
                    assert_eq!(at.as_nanos(), (nth + 10) * 1_000_000);
                }
            }
            lost.push(verdicts);
        }
        assert_eq!(lost[0], lost[1]);
        let network = &plan.networks[0].network.paths[0];
        let config =
            network.own_links().unwrap().down.config_on(Bytes::ZERO, quipu_base::Duration::ZERO);
        let mut alone = AnyLink::new(&config, plan.scenario.run_seed(0).child("link", 1)).unwrap();
        let AnyLink::Plain(alone) = &mut alone else { panic!("a managed queue") };
        let verdicts: Vec<Verdict> =
            (0..100).map(|_| alone.offer(Instant::ZERO, Bytes(1_000), ecn::NOT_ECT)).collect();
        assert_eq!(lost[0], verdicts);
    }
}
