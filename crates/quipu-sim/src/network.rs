//! Which links lead from one address to another.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use quipu_base::{Bytes, Duration, Instant, Seed};
use quipu_link::radio::Transmitter;
use quipu_link::{
    AnyLink, Departure, FlowKey, HostJitter, InvalidConfig, InvalidCosts, LinkConfig, LinkStats,
    Offer, Verdict,
};

#[cfg(doc)]
use crate::EventQueue;
use crate::{Envelope, NodeId};

/// Links that a route may have; a datagram keeps its place on the route in 16 bits.
const MOST_LINKS: usize = u16::MAX as usize;

/// As many routes of a node are looked at one after the other.
const FEW_ROUTES: usize = 8;

/// A link of one world: one direction, counted from zero in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

/// A node at one of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The node.
    pub node: NodeId,
    /// The address, port included.
    pub address: SocketAddr,
}

/// The two links of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathLinks {
    /// From the client to the server.
    pub up: LinkId,
    /// From the server to the client.
    pub down: LinkId,
}

/// What a world has between its nodes, for another driver of the same links.
#[derive(Debug)]
pub struct Wiring {
    /// The links, in the order in which they were added.
    pub links: Vec<AnyLink>,
    /// The shortest delay of each, without jitter.
    pub least_delays: Vec<Duration>,
    /// The routes, in the order in which they were added.
    pub routes: Vec<WiredRoute>,
}

/// The way of datagrams from one address to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WiredRoute {
    /// The sender's address.
    pub from: SocketAddr,
    /// The receiver's address.
    pub to: SocketAddr,
    /// Positions of the links, in order; one at least.
    pub links: Vec<usize>,
}

/// A topology cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// A link's configuration makes no link.
    #[error(transparent)]
    Link(#[from] InvalidConfig),
    /// A host has costs that no host can have.
    #[error(transparent)]
    Host(#[from] InvalidCosts),
    /// The two addresses are already connected in this direction.
    #[error("route from {from} to {to} exists, expected one for each pair of addresses")]
    DuplicateRoute {
        /// Where datagrams come from.
        from: SocketAddr,
        /// Where they go to.
        to: SocketAddr,
    },
    /// The route has no link, or more than a datagram can count.
    #[error("route from {from} to {to} has {links} links, expected 1 to 65535")]
    RouteLength {
        /// Where datagrams come from.
        from: SocketAddr,
        /// Where they go to.
        to: SocketAddr,
        /// How many links it has.
        links: usize,
    },
    /// The node is not one of this world.
    #[error("node {node} is unknown, expected one of the world's {nodes} nodes")]
    UnknownNode {
        /// Index of the node asked for.
        node: usize,
        /// Number of nodes in the world.
        nodes: usize,
    },
    /// The link is not one of this world.
    #[error("link {link} is unknown, expected one of the world's {links} links")]
    UnknownLink {
        /// Index of the link asked for.
        link: usize,
        /// Number of links in the world.
        links: usize,
    },
}

/// A private IPv4 address, 10.x.y.z: `x.y` is the host and `z` its interface.
pub const fn address(host: u16, interface: u8, port: u16) -> SocketAddr {
    let [high, low] = host.to_be_bytes();
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, high, low, interface)), port)
}

/// All links, and the routes over them.
#[derive(Debug)]
pub(crate) struct Network {
    seed: Seed,
    host_jitter: Duration,
    links: Vec<AnyLink>,
    /// The shortest delay of each link.
    least_delays: Vec<Duration>,
    routes: Vec<Route>,
    /// Per node, the routes that start there, sorted by their addresses.
    from_node: Vec<Vec<RouteKey>>,
}

#[derive(Debug)]
struct Route {
    /// The node that sends over it.
    sender: NodeId,
    from: SocketAddr,
    to: Interface,
    first: LinkId,
    /// The links behind the first, in order.
    rest: Box<[LinkId]>,
    /// Its place among all routes.
    index: u32,
    /// What links that keep flows apart know the route by.
    flow: FlowKey,
    host: HostJitter,
}

#[derive(Clone, Copy, Debug)]
struct RouteKey {
    from: SocketAddr,
    to: SocketAddr,
    route: u32,
}

/// A link's answer, and what follows from it.
pub(crate) struct Forwarded {
    pub(crate) link: LinkId,
    pub(crate) verdict: Verdict,
    /// When the datagram comes to the next link or, if this was the last, when the receiving node
    /// handles it, host jitter included; and the same of its copy.
    pub(crate) comes_at: Option<Instant>,
    pub(crate) copy_comes_at: Option<Instant>,
    /// Whether this was the last link.
    pub(crate) is_last: bool,
    /// The lane of events in which the datagram follows others: see [`EventQueue::push_in`].
    pub(crate) lane: u32,
}

/// Where a route ends.
pub(crate) struct Destination {
    pub(crate) node: NodeId,
    /// The last link.
    pub(crate) link: LinkId,
    /// As the receiver sees it.
    pub(crate) envelope: Envelope,
}

impl Network {
    pub(crate) fn new(seed: Seed, host_jitter: Duration) -> Self {
        let (links, least_delays) = (Vec::new(), Vec::new());
        let (routes, from_node) = (Vec::new(), Vec::new());
        Network { seed, host_jitter, links, least_delays, routes, from_node }
    }

    /// Makes room for the routes of one more node.
    pub(crate) fn add_node(&mut self) {
        self.from_node.push(Vec::new());
    }

    pub(crate) fn add_link(&mut self, config: &LinkConfig) -> Result<LinkId, TopologyError> {
        let index = self.links.len();
        let seed = self.seed.child("link", index as u64);
        self.links.push(AnyLink::new(config, seed)?);
        self.least_delays.push(config.least_delay());
        Ok(LinkId(index as u32))
    }

    pub(crate) fn add_radio_link(
        &mut self,
        config: &LinkConfig,
        transmitter: Transmitter,
    ) -> Result<LinkId, TopologyError> {
        let index = self.links.len();
        let seed = self.seed.child("link", index as u64);
        self.links.push(AnyLink::over_radio(config, seed, transmitter)?);
        self.least_delays.push(config.least_delay());
        Ok(LinkId(index as u32))
    }

    pub(crate) fn seed(&self) -> Seed {
        self.seed
    }

    pub(crate) fn add_route(
        &mut self,
        from: Interface,
        to: Interface,
        links: &[LinkId],
    ) -> Result<(), TopologyError> {
        let nodes = self.from_node.len();
        for node in [from.node, to.node].map(NodeId::index) {
            if node >= nodes {
                return Err(TopologyError::UnknownNode { node, nodes });
            }
        }
        let [first, rest @ ..] = links else {
            return Err(TopologyError::RouteLength {
                from: from.address,
                to: to.address,
                links: 0,
            });
        };
        if links.len() > MOST_LINKS {
            let links = links.len();
            return Err(TopologyError::RouteLength { from: from.address, to: to.address, links });
        }
        for &link in links {
            self.link(link)?;
        }
        let keys = &mut self.from_node[from.node.index()];
        let wanted = (from.address, to.address);
        let Err(position) = keys.binary_search_by(|key| (key.from, key.to).cmp(&wanted)) else {
            return Err(TopologyError::DuplicateRoute { from: from.address, to: to.address });
        };
        let index = self.routes.len();
        let route = index as u32;
        keys.insert(position, RouteKey { from: from.address, to: to.address, route });
        let random = self.seed.stream("host.jitter", index as u64);
        let host = HostJitter::new(self.host_jitter, random);
        let flow = FlowKey::between(from.address, to.address);
        let (sender, from, first, rest) = (from.node, from.address, *first, rest.into());
        self.routes.push(Route { sender, from, to, first, rest, index: route, flow, host });
        Ok(())
    }

    /// The route that a node's datagram takes.
    #[inline]
    pub(crate) fn route(&self, node: NodeId, envelope: &Envelope) -> Option<u32> {
        let keys = self.from_node.get(node.index())?;
        let wanted = (envelope.local, envelope.remote);
        // Most nodes have an interface or two: whether addresses are the same is told sooner than
        // which comes first.
        if keys.len() <= FEW_ROUTES {
            let key = keys.iter().find(|key| (key.from, key.to) == wanted)?;
            return Some(key.route);
        }
        let position = keys.binary_search_by(|key| (key.from, key.to).cmp(&wanted)).ok()?;
        Some(keys[position].route)
    }

    /// Offers a datagram of `payload` bytes to the first link of `route`, which must come from
    /// [`Self::route`]. `None` if that has a managed queue, which [`Self::enqueue`] offers to.
    #[inline]
    pub(crate) fn forward(
        &mut self,
        now: Instant,
        route: u32,
        payload: Bytes,
        ecn: u8,
    ) -> Option<Forwarded> {
        let route = &mut self.routes[route as usize];
        let link = route.first;
        let AnyLink::Plain(plain) = &mut self.links[link.index()] else { return None };
        let verdict = plain.offer(now, payload, ecn);
        Some(route.follow(link, verdict, route.rest.is_empty()))
    }

    /// As [`Self::forward`], for the link `hop` places behind the first, of which there must be
    /// as many.
    pub(crate) fn forward_behind(
        &mut self,
        now: Instant,
        route: u32,
        hop: u16,
        payload: Bytes,
        ecn: u8,
    ) -> Option<Forwarded> {
        let route = &mut self.routes[route as usize];
        let hop = usize::from(hop);
        let link = route.rest[hop - 1];
        let AnyLink::Plain(plain) = &mut self.links[link.index()] else { return None };
        let verdict = plain.offer(now, payload, ecn);
        Some(route.follow(link, verdict, hop == route.rest.len()))
    }

    /// Offers a datagram to the link `hop` places behind the first of `route`, if that has a managed
    /// queue: the link, and its answer.
    pub(crate) fn enqueue(
        &mut self,
        now: Instant,
        route: u32,
        hop: u16,
        payload: Bytes,
        ecn: u8,
    ) -> Option<(LinkId, Offer)> {
        let route = &self.routes[route as usize];
        let link = route.link(hop);
        let AnyLink::Managed(managed) = &mut self.links[link.index()] else { return None };
        Some((link, managed.offer(now, payload, ecn, route.flow)))
    }

    /// What has been decided by `now` about a datagram that waits in front of `link`.
    pub(crate) fn depart(&mut self, now: Instant, link: LinkId) -> Option<Departure> {
        self.links[link.index()].depart(now)
    }

    /// When [`Self::depart`] next has something to tell.
    pub(crate) fn next_departure(&self, link: LinkId) -> Option<Instant> {
        self.links[link.index()].next_departure()
    }

    /// What follows for a datagram on `route` that waited in front of the link `hop` places behind
    /// the first, from the `verdict` on it.
    pub(crate) fn follow(&mut self, route: u32, hop: u16, verdict: Verdict) -> Forwarded {
        let route = &mut self.routes[route as usize];
        let link = route.link(hop);
        route.follow(link, verdict, usize::from(hop) == route.rest.len())
    }

    /// Where `route`, which must come from [`Self::route`], ends.
    #[inline]
    pub(crate) fn destination(&self, route: u32, ecn: u8) -> Destination {
        let route = &self.routes[route as usize];
        let envelope = Envelope { local: route.to.address, remote: route.from, ecn };
        let link = route.rest.last().copied().unwrap_or(route.first);
        Destination { node: route.to.node, link, envelope }
    }

    /// The node that `route`, which must come from [`Self::route`], leads to.
    #[inline]
    pub(crate) fn receiver(&self, route: u32) -> NodeId {
        self.routes[route as usize].to.node
    }

    /// The node that sends over `route`, which must come from [`Self::route`].
    pub(crate) fn sender(&self, route: u32) -> NodeId {
        self.routes[route as usize].sender
    }

    /// What goes with a datagram on `route`, which must come from [`Self::route`], as its sender
    /// would see it.
    pub(crate) fn envelope(&self, route: u32, ecn: u8) -> Envelope {
        let route = &self.routes[route as usize];
        Envelope { local: route.from, remote: route.to.address, ecn }
    }

    pub(crate) fn stats(&self, link: LinkId) -> Result<&LinkStats, TopologyError> {
        self.link(link).map(AnyLink::stats)
    }

    pub(crate) fn queued(&self, now: Instant, link: LinkId) -> Result<Bytes, TopologyError> {
        self.link(link).map(|link| link.queued(now))
    }

    /// The links, in order, and the routes over them.
    pub(crate) fn into_wiring(self) -> Wiring {
        let wired = |route: Route| WiredRoute {
            from: route.from,
            to: route.to.address,
            links: std::iter::once(&route.first)
                .chain(&route.rest)
                .map(|link| link.index())
                .collect(),
        };
        let Network { links, least_delays, routes, .. } = self;
        Wiring { links, least_delays, routes: routes.into_iter().map(wired).collect() }
    }

    fn link(&self, link: LinkId) -> Result<&AnyLink, TopologyError> {
        let links = self.links.len();
        let unknown = TopologyError::UnknownLink { link: link.index(), links };
        self.links.get(link.index()).ok_or(unknown)
    }
}

impl Route {
    /// The link `hop` places behind the first, of which there must be as many.
    fn link(&self, hop: u16) -> LinkId {
        usize::from(hop).checked_sub(1).map_or(self.first, |place| self.rest[place])
    }

    /// What follows from the answer of one of its links.
    #[inline(always)]
    fn follow(&mut self, link: LinkId, verdict: Verdict, is_last: bool) -> Forwarded {
        let (comes_at, copy_comes_at) = match verdict {
            Verdict::Deliver { at, duplicate_at, .. } if is_last => {
                let handled_at = self.host.processed_at(at);
                // The copy takes as long as the original did.
                let copy_handled_at = duplicate_at.map(|copy_at| copy_at + (handled_at - at));
                (Some(handled_at), copy_handled_at)
            }
            Verdict::Deliver { at, duplicate_at, .. } => (Some(at), duplicate_at),
            Verdict::Dropped(_) => (None, None),
        };
        // A link delivers in order, and so does a host what comes over a route.
        let lane = if is_last { 2 * self.index } else { 2 * link.0 + 1 };
        Forwarded { link, verdict, comes_at, copy_comes_at, is_last, lane }
    }
}

impl LinkId {
    /// Position among the links of the world, from zero.
    pub const fn index(self) -> usize {
        // At least 32 bits wide on every platform that can hold a world.
        self.0 as usize
    }
}
