//! The links of a run, and the routes of each pair of a client and a server over them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::{IpAddr, SocketAddr};

use quipu_base::{Bytes, Duration};
use quipu_link::LinkConfig;
use quipu_link::radio::{AccessPoint, Medium};
use quipu_sim::{
    Interface, LinkId, Node, NodeId, Observer, PathLinks, TopologyError, World, address,
};

use super::error::RunError;
use quipu_scenario::{Direction, LinkError, LinkSpec, Network, OwnLinks, RadioSpec};

/// The links of a network in a world: those that all pairs of hosts share, and what it takes to
/// connect a pair.
///
/// A queue told in bandwidth-delay products, as the default is, has those of the round trip over the
/// whole path, access links included: twice the delays in its direction. A link that several paths
/// lead over counts the longest. Our choice.
pub(super) struct Topology {
    paths: Vec<Path>,
    /// What stations of the radio are made of, if a path leads over it.
    radio: Option<RadioSpec>,
    own: HostLinks,
}

/// A pair of hosts: which it is, and by whose access links its client and its server are reached.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    /// Number of the pair, which decides its addresses.
    pub(super) number: u16,
    /// Number of the client, whose access links and place on the radio all its pairs share. Clients of
    /// one pair alone have its number, and no other client has it.
    pub(super) client: u16,
    /// The same of the server, whose access links are its own.
    pub(super) server: u16,
    /// A further link in each direction, between the server and all its paths.
    pub(super) far: Option<LinkConfig>,
}

/// The links that belong to single hosts: whether it is a client, its number, where, and whether up.
#[derive(Default)]
struct HostLinks(BTreeMap<(bool, u16, Place, bool), LinkId>);

/// Where a link of a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Between the host and the shared links of a path.
    Access(usize),
    /// Between a client and the access point of a path.
    Air(usize),
    /// Between a server and all its paths.
    Far,
}

struct Path {
    shared: PathLinks,
    /// Links that the path names, in order from the server on.
    via: Vec<PathLinks>,
    access: Option<Access>,
    air: Option<Air>,
}

/// Each of the access links in one direction.
struct Access {
    up: LinkConfig,
    down: LinkConfig,
}

/// The radio between the path's links and the client.
struct Air {
    medium: Medium,
    access_point: AccessPoint,
    config: LinkConfig,
}

/// Addresses of a pair of hosts on path `path` of the network: of the client, of the server. Those
/// of at most 32,767 pairs and 256 paths differ.
pub(super) fn addresses(pair: u16, path: usize) -> [SocketAddr; 2] {
    let interface = u8::try_from(path).unwrap_or(u8::MAX);
    let client = pair.saturating_mul(2).saturating_add(1);
    [address(client, interface, 50_000), address(client.saturating_add(1), interface, 443)]
}

/// Position of the path to which the address of a host belongs; `None` if it is none of [`addresses`].
pub(super) fn path_of(address: SocketAddr) -> Option<usize> {
    match address.ip() {
        // 10.x.y.z: z is the interface.
        IpAddr::V4(ip) => ip.octets().last().map(|interface| usize::from(*interface)),
        IpAddr::V6(_) => None,
    }
}

impl Topology {
    /// Adds the shared links of `network` to `world`, path by path, the uplink first. Each datagram
    /// takes `overhead` bytes on a link above its UDP payload.
    ///
    /// # Errors
    /// If the network is a real one, a path names a bottleneck that is none, or a link is none.
    pub(super) fn new<N: Node, O: Observer>(
        world: &mut World<N, O>,
        network: &Network,
        overhead: Bytes,
    ) -> Result<Topology, RunError> {
        if let Some(server) = &network.server {
            return Err(RunError::Real { server: server.clone() });
        }
        let config = |link: &LinkSpec, one_way: Duration| {
            link.config_on(overhead, one_way.saturating_mul(2))
        };
        let count = network.paths.len();
        let owners = (0..count).map(|index| network.bottleneck(index));
        let owners = owners.collect::<Result<Vec<usize>, LinkError>>()?;
        let mut paths: Vec<Path> = Vec::with_capacity(count);
        for (index, (path, &owner)) in network.paths.iter().zip(&owners).enumerate() {
            let Some(OwnLinks { up, down }) = network.paths[owner].own_links() else { continue };
            let shared = if owner == index {
                let longest =
                    |direction| network.longest_way(direction, |user| owners[user] == index);
                PathLinks {
                    up: world.add_link(&config(up, longest(Direction::Up)))?,
                    down: world.add_link(&config(down, longest(Direction::Down)))?,
                }
            } else {
                paths[owner].shared
            };
            let access = path.access.as_ref().map(|access| Access {
                up: config(
                    &access.clone().toward(Direction::Up),
                    network.one_way(index, Direction::Up),
                ),
                down: config(access, network.one_way(index, Direction::Down)),
            });
            paths.push(Path { shared, via: Vec::new(), access, air: None });
        }
        let routes = (0..count).map(|index| network.via(index));
        let routes = routes.collect::<Result<Vec<Vec<usize>>, LinkError>>()?;
        let mut named = Vec::with_capacity(network.links.len());
        for (place, links) in network.links.iter().enumerate() {
            let longest =
                |direction| network.longest_way(direction, |user| routes[user].contains(&place));
            let OwnLinks { up, down } = &links.links;
            named.push(PathLinks {
                up: world.add_link(&config(up, longest(Direction::Up)))?,
                down: world.add_link(&config(down, longest(Direction::Down)))?,
            });
        }
        let media = network.radio.as_ref().map_or(Ok(Vec::new()), RadioSpec::media)?;
        for (index, (path, route)) in paths.iter_mut().zip(&routes).enumerate() {
            path.via = route.iter().map(|place| named[*place]).collect();
            if let (Some(name), Some(radio)) = (&network.paths[index].radio, &network.radio) {
                let round_trip = network.round_trip(index)?;
                let (medium, access_point) = media[radio.access_point(name)?].clone();
                let config = radio.link(overhead, round_trip);
                path.air = Some(Air { medium, access_point, config });
            }
        }
        Ok(Topology { paths, radio: network.radio.clone(), own: HostLinks::default() })
    }

    /// The links of path `path` that all pairs share.
    pub(super) fn shared(&self, path: usize) -> PathLinks {
        self.paths[path].shared
    }

    /// Connects a pair of hosts, a client's node and a server's, by `paths` of the network: adds the
    /// access links that they do not have yet and those over the radio, and routes between their
    /// [`addresses`].
    ///
    /// # Errors
    /// If the pair has been connected before, or a station is none.
    pub(super) fn join<N: Node, O: Observer>(
        &mut self,
        world: &mut World<N, O>,
        [client, server]: [NodeId; 2],
        hosts: Hosts,
        paths: impl IntoIterator<Item = usize>,
    ) -> Result<(), RunError> {
        let far = hosts.far.as_ref();
        let [of_client, of_server] = [(true, hosts.client), (false, hosts.server)];
        for index in paths {
            let [local, remote] = addresses(hosts.number, index);
            let client = Interface { node: client, address: local };
            let server = Interface { node: server, address: remote };
            let Path { shared, via, access, air } = &self.paths[index];
            let access = access.as_ref();
            let (up, down) = (access.map(|access| &access.up), access.map(|access| &access.down));
            let place = Place::Access(index);
            let own = &mut self.own;
            let mut way_up = vec![own.link(world, of_client, place, Direction::Up, up)?];
            way_up.push(Some(shared.up));
            way_up.extend(via.iter().rev().map(|links| Some(links.up)));
            way_up.push(own.link(world, of_server, place, Direction::Up, up)?);
            way_up.push(own.link(world, of_server, Place::Far, Direction::Up, far)?);
            let mut way_down =
                vec![own.link(world, of_server, Place::Far, Direction::Down, far)?];
            way_down.push(own.link(world, of_server, place, Direction::Down, down)?);
            way_down.extend(via.iter().map(|links| Some(links.down)));
            way_down.push(Some(shared.down));
            way_down.push(own.link(world, of_client, place, Direction::Down, down)?);
            if let Some(air) = air {
                let links = own.over_air(world, air, self.radio.as_ref(), hosts.client, index)?;
                way_up.insert(0, Some(links.up));
                way_down.push(Some(links.down));
            }
            let links = |way: Vec<Option<LinkId>>| way.into_iter().flatten().collect::<Vec<_>>();
            world.add_route(client, server, &links(way_up))?;
            world.add_route(server, client, &links(way_down))?;
        }
        Ok(())
    }
}

impl Hosts {
    /// Two hosts that are in this pair alone.
    pub(super) fn of_pair(number: u16) -> Hosts {
        Hosts { number, client: number, server: number, far: None }
    }
}

impl HostLinks {
    /// A link of a host, made as `config` says if it is not there; none if `config` is none.
    fn link<N: Node, O: Observer>(
        &mut self,
        world: &mut World<N, O>,
        (is_client, number): (bool, u16),
        place: Place,
        direction: Direction,
        config: Option<&LinkConfig>,
    ) -> Result<Option<LinkId>, TopologyError> {
        let Some(config) = config else { return Ok(None) };
        let is_up = direction == Direction::Up;
        Ok(Some(match self.0.entry((is_client, number, place, is_up)) {
            Entry::Occupied(link) => *link.get(),
            Entry::Vacant(place) => *place.insert(world.add_link(config)?),
        }))
    }

    /// The links between the station of client `number` and the access point of path `index`, made if
    /// they are not there.
    fn over_air<N: Node, O: Observer>(
        &mut self,
        world: &mut World<N, O>,
        air: &Air,
        radio: Option<&RadioSpec>,
        number: u16,
        index: usize,
    ) -> Result<PathLinks, RunError> {
        let [up, down] = [true, false].map(|is_up| (true, number, Place::Air(index), is_up));
        if let (Some(&up), Some(&down)) = (self.0.get(&up), self.0.get(&down)) {
            return Ok(PathLinks { up, down });
        }
        let seed = world.seed();
        let none = || LinkError::Invalid("radio has no stations; expected one at least".to_owned());
        let station = radio.ok_or_else(none)?.station(number, seed)?;
        let client_seed = RadioSpec::pair_seed(number, index, seed);
        let joined = air.medium.join(&air.access_point, &station, client_seed);
        let [to_client, to_server] = joined.map_err(TopologyError::from)?;
        let links = PathLinks {
            up: world.add_radio_link(&air.config, to_server)?,
            down: world.add_radio_link(&air.config, to_client)?,
        };
        self.0.extend([(up, links.up), (down, links.down)]);
        Ok(links)
    }
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
        let mut topology = Topology::new(&mut world, &network, Bytes(28)).unwrap();
        let pairs = [0, 1].map(|pair| {
            let [client, server] = [(); 2].map(|()| world.add_node(Host::default()));
            let hosts = Hosts::of_pair(pair);
            topology.join(&mut world, [client, server], hosts, [1]).unwrap();
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
    fn pairs_of_one_client_share_its_access_links_and_a_far_server_is_far() {
        let network: Network = toml::from_str(DUMBBELL).unwrap();
        let mut world = world();
        let mut topology = Topology::new(&mut world, &network, Bytes(28)).unwrap();
        let [client, near, distant] = [(); 3].map(|()| world.add_node(Host::default()));
        let far = LinkConfig { delay: Duration::from_millis(20), ..LinkConfig::default() };
        for (server, number, far) in [(near, 0, None), (distant, 1, Some(far))] {
            let hosts = Hosts { number, client: 0, server: number, far };
            topology.join(&mut world, [client, server], hosts, [1]).unwrap();
            let [here, there] = addresses(number, 1);
            world.update(client, |host, _| {
                host.outbox.push(Envelope { local: here, remote: there, ecn: 0 });
            });
        }
        world.run_until(Instant::ZERO + Duration::from_secs(1)).unwrap();
        // As above, but the second waits at the client already, and goes 20 ms farther.
        assert_eq!(micros(&world, near), [95_000]);
        assert_eq!(micros(&world, distant), [116_000]);
        // The client's two, and four and two of the servers.
        assert_eq!(topology.own.0.len(), 2 + 2 + 2 + 2);
    }

    #[test]
    fn queues_count_the_round_trip_over_all_links() {
        let network: Network = toml::from_str(DUMBBELL).unwrap();
        let mut world = world();
        let mut topology = Topology::new(&mut world, &network, Bytes(28)).unwrap();
        let [client, server] = [(); 2].map(|()| world.add_node(Host::default()));
        topology.join(&mut world, [client, server], Hosts::of_pair(0), [0]).unwrap();
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
