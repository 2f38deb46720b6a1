//! The links of a run, and the routes of each pair of a client and a server over them.

use std::net::SocketAddr;

use quipu_base::{Bytes, Duration};
use quipu_link::LinkConfig;
use quipu_sim::{
    Interface, LinkId, Node, NodeId, Observer, PathLinks, TopologyError, World, address,
};

use super::RunError;
use crate::scenario::{LinkError, LinkSpec, Network, OwnLinks};

/// The links of a network in a world: those that all pairs of hosts share, and what it takes to
/// connect a pair.
///
/// A queue told in bandwidth-delay products, as the default is, has those of the round trip over the
/// whole path, access links included: twice the delays in its direction. A link that several paths
/// lead over counts the longest. Our choice.
pub(super) struct Topology {
    paths: Vec<Path>,
}

struct Path {
    shared: PathLinks,
    access: Option<Access>,
}

/// Each of the access links in one direction.
struct Access {
    up: LinkConfig,
    down: LinkConfig,
}

/// Addresses of a pair of hosts on path `path` of the network: of the client, of the server. Those
/// of at most 32,767 pairs and 256 paths differ.
pub(super) fn addresses(pair: u16, path: usize) -> [SocketAddr; 2] {
    let interface = u8::try_from(path).unwrap_or(u8::MAX);
    let client = pair.saturating_mul(2).saturating_add(1);
    [address(client, interface, 50_000), address(client.saturating_add(1), interface, 443)]
}

impl Topology {
    /// Adds the shared links of `network` to `world`, path by path, the uplink first. Each datagram
    /// takes `overhead` bytes on a link above its UDP payload.
    ///
    /// # Errors
    /// If a path names a bottleneck that is none, or a link is none.
    pub(super) fn new<N: Node, O: Observer>(
        world: &mut World<N, O>,
        network: &Network,
        overhead: Bytes,
    ) -> Result<Topology, RunError> {
        let config = |link: &LinkSpec, one_way: Duration| {
            link.config_on(overhead, one_way.saturating_mul(2))
        };
        let owners = (0..network.paths.len()).map(|index| network.bottleneck(index));
        let owners = owners.collect::<Result<Vec<usize>, LinkError>>()?;
        let mut paths: Vec<Path> = Vec::with_capacity(owners.len());
        for (index, (path, &owner)) in network.paths.iter().zip(&owners).enumerate() {
            let Some(OwnLinks { up, down }) = network.paths[owner].own_links() else { continue };
            let shared = if owner == index {
                let users = network.paths.iter().zip(&owners).filter(|(_, of)| **of == index);
                let longest = users.map(|(path, _)| path.access_delay()).max().unwrap_or_default();
                PathLinks {
                    up: world.add_link(&config(up, up.delay + longest))?,
                    down: world.add_link(&config(down, down.delay + longest))?,
                }
            } else {
                paths[owner].shared
            };
            let access = path.access.as_ref().map(|access| Access {
                up: config(access, up.delay + path.access_delay()),
                down: config(access, down.delay + path.access_delay()),
            });
            paths.push(Path { shared, access });
        }
        Ok(Topology { paths })
    }

    /// The links of path `path` that all pairs share.
    pub(super) fn shared(&self, path: usize) -> PathLinks {
        self.paths[path].shared
    }

    /// Connects a pair of hosts by `paths` of the network: adds their access links, and routes
    /// between their [`addresses`].
    ///
    /// # Errors
    /// If the pair has been connected before.
    pub(super) fn join<N: Node, O: Observer>(
        &self,
        world: &mut World<N, O>,
        client: NodeId,
        server: NodeId,
        pair: u16,
        paths: impl IntoIterator<Item = usize>,
    ) -> Result<(), TopologyError> {
        for index in paths {
            let [local, remote] = addresses(pair, index);
            let client = Interface { node: client, address: local };
            let server = Interface { node: server, address: remote };
            let access = self.paths[index].access.as_ref();
            let PathLinks { up, down } = self.shared(index);
            let up = series(world, access.map(|access| &access.up), up)?;
            let down = series(world, access.map(|access| &access.down), down)?;
            world.add_route(client, server, &up)?;
            world.add_route(server, client, &down)?;
        }
        Ok(())
    }
}

/// The links in one direction: the shared one, between two access links if there are any.
fn series<N: Node, O: Observer>(
    world: &mut World<N, O>,
    access: Option<&LinkConfig>,
    shared: LinkId,
) -> Result<Vec<LinkId>, TopologyError> {
    Ok(match access {
        None => vec![shared],
        Some(access) => vec![world.add_link(access)?, shared, world.add_link(access)?],
    })
}

#[cfg(test)]
mod tests {
    use quipu_base::{Instant, Seed};
    use quipu_sim::{Envelope, Outgoing, WorldConfig};

    use super::*;

    /// Sends what it has when it is polled, and remembers when something came.
    #[derive(Default)]
    struct Host {
        outbox: Vec<Envelope>,
        received_at: Vec<Instant>,
    }

    impl Node for Host {
        fn handle_datagram(&mut self, now: Instant, _envelope: &Envelope, _payload: &mut [u8]) {
            self.received_at.push(now);
        }

        fn handle_timeout(&mut self, _now: Instant) {}

        fn poll_transmit(&mut self, _now: Instant, out: &mut Outgoing<'_>) {
            for envelope in self.outbox.drain(..) {
                out.send(&envelope, 1_222);
            }
        }

        fn poll_timeout(&self) -> Option<Instant> {
            None
        }
    }

    const DUMBBELL: &str = r#"
        name = "dumbbell"
        paths = [
            { name = "near", down = { rate = "10mbit", delay = "1ms" }, up = { delay = "2ms" } },
            { name = "far", bottleneck = "near", access = { rate = "10mbit", delay = "45ms" } },
        ]
    "#;

    fn world() -> World<Host> {
        let config = WorldConfig::new(Seed::new(1));
        World::new(WorldConfig { host_jitter: Duration::ZERO, ..config })
    }

    fn micros(world: &World<Host>, node: NodeId) -> Vec<u64> {
        let times = &world.node(node).received_at;
        times.iter().map(|at| (*at - Instant::ZERO).as_micros()).collect()
    }

    #[test]
    fn pairs_meet_at_the_bottleneck_and_nowhere_else() {
        let network: Network = toml::from_str(DUMBBELL).unwrap();
        let mut world = world();
        let topology = Topology::new(&mut world, &network, Bytes(28)).unwrap();
        let pairs = [0, 1].map(|pair| {
            let [client, server] = [(); 2].map(|()| world.add_node(Host::default()));
            topology.join(&mut world, client, server, pair, [1]).unwrap();
            let [here, there] = addresses(pair, 1);
            world.update(client, |host, _| {
                host.outbox.push(Envelope { local: here, remote: there, ecn: 0 });
            });
            world.update(server, |host, _| {
                host.outbox.push(Envelope { local: there, remote: here, ecn: 0 });
            });
            (client, server)
        });
        world.run_until(Instant::ZERO + Duration::from_secs(1)).unwrap();
        // Three links of 1 ms for 1,250 B, two delays of 45 ms, and 1 or 2 ms; the second pair's
        // waits for the first's at the shared link, but not behind it.
        let times = pairs.map(|(client, server)| (micros(&world, client), micros(&world, server)));
        assert_eq!(times, [(vec![94_000], vec![95_000]), (vec![95_000], vec![96_000])]);
        assert_eq!(topology.shared(0), topology.shared(1));
        let carried = world.link_stats(topology.shared(0).down).unwrap();
        assert_eq!(carried.delivered.datagrams, 2);
    }

    #[test]
    fn queues_count_the_round_trip_over_all_links() {
        let network: Network = toml::from_str(DUMBBELL).unwrap();
        let mut world = world();
        let topology = Topology::new(&mut world, &network, Bytes(28)).unwrap();
        let [client, server] = [(); 2].map(|()| world.add_node(Host::default()));
        topology.join(&mut world, client, server, 0, [0]).unwrap();
        let [here, there] = addresses(0, 0);
        let envelope = Envelope { local: here, remote: there, ecn: 0 };
        world.update(client, |host, _| host.outbox = vec![envelope; 1_000]);
        world.run_until(Instant::ZERO + Duration::from_secs(1)).unwrap();
        // 2 × 10 Mbit/s × 2 × (2 + 2 × 45) ms = 460,000 B, which hold 368 of 1,250 B.
        assert_eq!(world.node(server).received_at.len(), 368);
    }

    #[test]
    fn each_pair_has_addresses_of_its_own() {
        let [client, server] = addresses(0, 3);
        assert_eq!((client, server), (address(1, 3, 50_000), address(2, 3, 443)));
        assert_eq!(addresses(1, 0), [address(3, 0, 50_000), address(4, 0, 443)]);
        assert_ne!(addresses(32_766, 0), addresses(32_765, 0));
        assert_eq!(addresses(32_767, 0)[1], address(u16::MAX, 0, 443));
    }
}
