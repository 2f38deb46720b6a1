//! Hosts, and the paths between them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quipu_base::Duration;

use crate::carry::Route;
use crate::error::TopologyError;
use crate::links::{LinkId, Links};

/// A host of an emulation: a client or a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(u32);

/// Clients and servers, and paths between them, over links that paths may share.
///
/// Path `i` of client `c` begins at its interface `pathI`, with the address 10.i.x.y, where x.y counts clients from
/// 0.1 to 249.250, and ends at that of the same name of server `s`, with 10.i.255.(s + 1). The same with
/// fd71:7569:7075:i::/64: clients are `0:0:0:(c + 1)` there, and servers `0:0:1:(s + 1)`. Each host has a default route
/// by each of its interfaces, that of the lowest number first.
///
/// A packet takes the path of the interface by which it leaves, whichever of the receiving host's addresses it is for:
/// a client may reach one address of a server over all of its paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    clients: Vec<HostId>,
    servers: Vec<HostId>,
    hosts: Vec<Kind>,
    /// By client, server and index.
    paths: BTreeMap<(HostId, HostId, u8), [Vec<LinkId>; 2]>,
}

/// What a host is, and its number among those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Client(u16),
    Server(u16),
}

/// An end of a path at a host: an interface.
pub(crate) type End = (HostId, u8);

/// What the carrier has to know of a topology.
pub(crate) struct Wiring {
    /// All interfaces, by their place the numbers of devices.
    pub(crate) ends: Vec<End>,
    pub(crate) routes: Vec<Route>,
    /// By device, then by host: the route of a packet to that.
    pub(crate) tables: Vec<Vec<Option<u32>>>,
    /// All addresses, with the host of each.
    pub(crate) addresses: Vec<(IpAddr, u32)>,
    /// The shortest time that a packet takes on any route, of those that take any.
    pub(crate) smallest_delay: Duration,
}

impl HostId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Topology {
    /// The most clients. Our choice: each is a namespace, a thread and a process.
    pub const MOST_CLIENTS: usize = 1_000;
    /// The most servers.
    pub const MOST_SERVERS: usize = 200;
    /// Paths have indices below this.
    pub const MOST_PATHS: u8 = 200;

    /// No hosts yet.
    pub fn new() -> Self {
        Topology::default()
    }

    /// Adds a client, which is called `client0` if it is the first one.
    ///
    /// # Errors
    /// If there are [`Topology::MOST_CLIENTS`] already.
    pub fn add_client(&mut self) -> Result<HostId, TopologyError> {
        bounded("clients", self.clients.len() + 1, Topology::MOST_CLIENTS)?;
        let id = self.add(Kind::Client(self.clients.len() as u16));
        self.clients.push(id);
        Ok(id)
    }

    /// Adds a server, which is called `server0` if it is the first one.
    ///
    /// # Errors
    /// If there are [`Topology::MOST_SERVERS`] already.
    pub fn add_server(&mut self) -> Result<HostId, TopologyError> {
        bounded("servers", self.servers.len() + 1, Topology::MOST_SERVERS)?;
        let id = self.add(Kind::Server(self.servers.len() as u16));
        self.servers.push(id);
        Ok(id)
    }

    fn add(&mut self, kind: Kind) -> HostId {
        self.hosts.push(kind);
        HostId(self.hosts.len() as u32 - 1)
    }

    /// Adds path `index` between a client and a server: packets to the server take the links `up` one after the other,
    /// and those to the client `down`. Links may be on several paths, which then share them.
    ///
    /// # Errors
    /// If the hosts are no client and server, have such a path already, or it has no links in a direction.
    pub fn add_path(
        &mut self,
        index: u8,
        client: HostId,
        server: HostId,
        up: &[LinkId],
        down: &[LinkId],
    ) -> Result<(), TopologyError> {
        bounded("paths", usize::from(index) + 1, usize::from(Topology::MOST_PATHS))?;
        let names = || (self.name(client), self.name(server));
        if !self.clients.contains(&client) || !self.servers.contains(&server) {
            let (client, server) = names();
            return Err(TopologyError::WrongEnds { path: index, client, server });
        }
        for (links, direction) in [(up, "up"), (down, "down")] {
            if links.is_empty() {
                return Err(TopologyError::NoLink { path: index, direction });
            }
        }
        if self.paths.contains_key(&(client, server, index)) {
            let (client, server) = names();
            return Err(TopologyError::DuplicatePath { path: index, client, server });
        }
        self.paths.insert((client, server, index), [up.to_vec(), down.to_vec()]);
        Ok(())
    }

    /// The clients, in the order in which they were added.
    pub fn clients(&self) -> &[HostId] {
        &self.clients
    }

    /// The servers, in the order in which they were added.
    pub fn servers(&self) -> &[HostId] {
        &self.servers
    }

    /// The name of a host, such as `client0`.
    pub fn name(&self, host: HostId) -> String {
        match self.hosts.get(host.index()) {
            Some(Kind::Client(number)) => format!("client{number}"),
            Some(Kind::Server(number)) => format!("server{number}"),
            None => format!("host{} of another topology", host.0),
        }
    }

    /// The addresses of a host on a path, whether the path is there or not: of a host of another topology, unspecified
    /// ones.
    pub fn addresses(&self, host: HostId, path: u8) -> (Ipv4Addr, Ipv6Addr) {
        let (high, low, kind, number) = match self.hosts.get(host.index()) {
            // Below 250 each.
            Some(&Kind::Client(it)) => ((it / 250) as u8, (it % 250) as u8 + 1, 0, it + 1),
            Some(&Kind::Server(it)) => (255, it as u8 + 1, 1, it + 1),
            None => return (Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED),
        };
        (
            Ipv4Addr::new(10, path, high, low),
            Ipv6Addr::new(0xfd71, 0x7569, 0x7075, path.into(), 0, 0, kind, number),
        )
    }

    /// All hosts, in the order in which they were added.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = HostId> {
        (0..self.hosts.len() as u32).map(HostId)
    }

    /// Indices of the paths of which a host has an end, in order.
    pub fn paths_of(&self, host: HostId) -> Vec<u8> {
        let ends =
            self.paths.keys().filter(|(client, server, _)| [*client, *server].contains(&host));
        ends.map(|(.., index)| *index).collect::<BTreeSet<u8>>().into_iter().collect()
    }

    /// What the carrier has to know, with links that have to be there.
    pub(crate) fn wiring(&self, links: &Links) -> Result<Wiring, TopologyError> {
        let count = links.len();
        let used = self.paths.values().flatten().flatten();
        if let Some(link) = used.map(|link| link.index()).find(|link| *link >= count) {
            return Err(TopologyError::UnknownLink { link, links: count });
        }
        let mut ends = Vec::new();
        let mut addresses = Vec::new();
        for host in self.hosts() {
            for path in self.paths_of(host) {
                ends.push((host, path));
                let (v4, v6) = self.addresses(host, path);
                addresses.extend([(v4.into(), host.0), (v6.into(), host.0)]);
            }
        }
        let device = |end: End| ends.binary_search(&end).ok();
        let mut routes: Vec<Route> = Vec::new();
        let mut tables = vec![vec![None; self.hosts.len()]; ends.len()];
        for (&(client, server, path), [up, down]) in &self.paths {
            for (from, to, links) in [(client, server, up), (server, client, down)] {
                let (Some(at), Some(end)) = (device((from, path)), device((to, path))) else {
                    continue;
                };
                tables[at][to.index()] = Some(routes.len() as u32);
                routes.push(Route { links: links.clone(), to: end });
            }
        }
        let delay = |route: &Route| {
            let delays = route.links.iter().map(|link| links.least_delay(*link).as_nanos());
            Duration::from_nanos(delays.fold(0, u64::saturating_add))
        };
        let delays = routes.iter().map(delay).filter(|delay| !delay.is_zero());
        let smallest_delay = delays.min().unwrap_or(Duration::ZERO);
        Ok(Wiring { ends, routes, tables, addresses, smallest_delay })
    }
}

fn bounded(what: &'static str, found: usize, most: usize) -> Result<(), TopologyError> {
    if found > most { Err(TopologyError::TooMany { what, found, most }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use quipu_base::{Rate, Seed};
    use quipu_link::LinkConfig;

    use super::*;

    fn links(delays: &[u64]) -> Links {
        let mut links = Links::new(Seed::new(1));
        for millis in delays {
            let delay = Duration::from_millis(*millis);
            links.add("l", &LinkConfig::new(Rate::from_mbit_per_sec(1), delay)).unwrap();
        }
        links
    }

    #[test]
    fn addresses_are_as_documented_and_all_differ() {
        let mut topology = Topology::new();
        let mut found = BTreeSet::new();
        let clients: Vec<_> =
            (0..Topology::MOST_CLIENTS).map(|_| topology.add_client().unwrap()).collect();
        let servers: Vec<_> =
            (0..Topology::MOST_SERVERS).map(|_| topology.add_server().unwrap()).collect();
        assert!(topology.add_client().is_err() && topology.add_server().is_err());
        for host in clients.iter().chain(&servers) {
            let (v4, v6) = topology.addresses(*host, 3);
            assert!(found.insert(IpAddr::from(v4)) && found.insert(IpAddr::from(v6)));
        }
        let of = |host, path| {
            let (v4, v6) = topology.addresses(host, path);
            format!("{v4} {v6}")
        };
        assert_eq!(of(clients[0], 0), "10.0.0.1 fd71:7569:7075::1");
        assert_eq!(of(clients[999], 3), "10.3.3.250 fd71:7569:7075:3::3e8");
        assert_eq!(of(servers[0], 1), "10.1.255.1 fd71:7569:7075:1::1:1");
        assert_eq!(topology.name(servers[7]), "server7");
    }

    #[test]
    fn two_clients_share_the_link_that_their_paths_name() {
        let links = links(&[5, 10, 1, 1]);
        let [up, down, own, other] = [0, 1, 2, 3].map(LinkId);
        let mut topology = Topology::new();
        let [one, two] = [(), ()].map(|()| topology.add_client().unwrap());
        let server = topology.add_server().unwrap();
        topology.add_path(0, one, server, &[own, up], &[down]).unwrap();
        topology.add_path(0, two, server, &[other, up], &[down]).unwrap();
        topology.add_path(1, one, server, &[own], &[down]).unwrap();
        let Wiring { ends, routes, tables, addresses, smallest_delay } =
            topology.wiring(&links).unwrap();
        assert_eq!(ends, [(one, 0), (one, 1), (two, 0), (server, 0), (server, 1)]);
        assert_eq!(addresses.len(), 10);
        assert_eq!(smallest_delay, Duration::from_millis(1));
        let route = |from: usize, to: HostId| {
            tables[from][to.index()].map(|route| routes[route as usize].clone())
        };
        assert_eq!(route(0, server), Some(Route { links: vec![own, up], to: 3 }));
        assert_eq!(route(2, server), Some(Route { links: vec![other, up], to: 3 }));
        assert_eq!(route(3, two), Some(Route { links: vec![down], to: 2 }));
        assert_eq!(route(4, one), Some(Route { links: vec![down], to: 1 }));
        assert_eq!((route(4, two), route(0, two)), (None, None));
    }

    #[test]
    fn paths_that_cannot_be_are_refused() {
        let links = links(&[1]);
        let mut topology = Topology::new();
        let (client, server) = (topology.add_client().unwrap(), topology.add_server().unwrap());
        let link = [LinkId(0)];
        let message = |result: Result<(), TopologyError>| result.unwrap_err().to_string();
        let wrong = topology.add_path(0, server, client, &link, &link);
        assert_eq!(
            message(wrong),
            "path 0 connects server0 with client0, expected a client and a server"
        );
        let none = topology.add_path(0, client, server, &link, &[]);
        assert_eq!(message(none), "path 0 has no link down, expected one at least");
        topology.add_path(0, client, server, &link, &link).unwrap();
        let again = topology.add_path(0, client, server, &link, &link);
        assert_eq!(message(again), "path 0 from client0 to server0 exists, expected each once");
        assert!(topology.add_path(200, client, server, &link, &link).is_err());
        topology.add_path(1, client, server, &link, &[LinkId(1)]).unwrap();
        let unknown = topology.wiring(&links).map(drop);
        assert_eq!(message(unknown), "a path leads over link 1, expected one of the 1 links");
    }
}
