//! Two ends in virtual time, which a test may look into and act on.

use quipu_base::{Duration, Instant, PathId, Rate, Role};
use quipu_link::{LinkConfig, LinkStats};
use quipu_quic::{Connection, TransportConfig};
use quipu_sim::{Interface, LinkId, NodeId, World, WorldConfig};
use quipu_testkit::{
    ExchangeNode, NodeConfig, Plan, QuicNode, Scenario, Tls, client_address, plain_policies,
    server_address,
};

pub(crate) const FIRST: PathId = PathId(0);

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) const fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// So many Mbit/s and ms one way.
pub(crate) fn link(mbit: u64, one_way: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(mbit), ms(one_way))
}

/// What the two ends are made of.
pub(crate) struct Setup {
    pub(crate) plan: Plan,
    /// Links from client to server and back.
    pub(crate) links: Vec<[LinkConfig; 2]>,
    /// Settings of client and server.
    pub(crate) transport: [TransportConfig; 2],
}

impl Setup {
    /// The same link in both directions of each path, and the same settings at both ends.
    pub(crate) fn new(plan: Plan, links: Vec<LinkConfig>, transport: TransportConfig) -> Self {
        let links = links.into_iter().map(|link| [link.clone(), link]).collect();
        Setup { plan, links, transport: [transport.clone(), transport] }
    }

    pub(crate) fn start(self) -> Run {
        let Setup { plan, links, transport } = self;
        let scenario = Scenario::new(plan, links.iter().map(|pair| pair[0].clone()).collect());
        let mut world = World::new(WorldConfig::new(scenario.seed));
        let [client, server] = transport;
        let ends = [(Role::Client, client), (Role::Server, server)].map(|(role, transport)| {
            world.add_node(QuicNode::new(NodeConfig {
                policies: plain_policies(),
                transport,
                ..NodeConfig::new(&scenario, role, Tls::Null { chain: 3000 })
            }))
        });
        let there = Interface { node: ends[1], address: server_address() };
        let links = (0..).zip(&links).map(|(path, [up, down])| {
            let here = Interface { node: ends[0], address: client_address(path) };
            let path = world.add_path(here, there, up, down).unwrap();
            [path.up, path.down]
        });
        let links = links.collect();
        Run { world, ends, links }
    }
}

/// Both ends at some instant.
pub(crate) struct Run {
    pub(crate) world: World<QuicNode>,
    ends: [NodeId; 2],
    links: Vec<[LinkId; 2]>,
}

impl Run {
    /// To that instant; neither end may have lost the connection.
    pub(crate) fn until(&mut self, now: Instant) -> &mut Self {
        self.world.run_until(now).unwrap();
        for id in self.ends {
            assert_eq!(self.world.node(id).failure(), None);
        }
        self
    }

    /// To that instant, whatever happens.
    pub(crate) fn until_any(&mut self, now: Instant) -> &mut Self {
        self.world.run_until(now).unwrap();
        self
    }

    /// Until both ends have all bytes: when that was.
    pub(crate) fn until_done(&mut self) -> Instant {
        let ends = self.ends;
        let done = |world: &World<QuicNode>| {
            ends.iter().all(|&id| {
                world.node(id).exchange().is_some_and(|side| side.received_all_at().is_some())
            })
        };
        self.world.run_while(at(600_000), |world| !done(world)).unwrap();
        assert!(done(&self.world), "not done by {}", self.world.now());
        self.world.now()
    }

    fn id(&self, role: Role) -> NodeId {
        self.ends[usize::from(!role.is_client())]
    }

    pub(crate) fn end(&self, role: Role) -> &QuicNode {
        self.world.node(self.id(role))
    }

    pub(crate) fn connection(&self, role: Role) -> &Connection {
        self.end(role).connection().unwrap()
    }

    /// Lets a test act on the connection of one end.
    pub(crate) fn act<R>(
        &mut self,
        role: Role,
        act: impl FnOnce(&mut Connection, Instant) -> R,
    ) -> R {
        let mut result = None;
        self.world.update(self.id(role), |node, now| {
            result = Some(act(node.connection_mut().unwrap(), now));
        });
        result.unwrap()
    }

    /// What the link from an end has seen on a path.
    pub(crate) fn link(&self, from: Role, path: usize) -> LinkStats {
        let link = self.links[path][usize::from(!from.is_client())];
        *self.world.link_stats(link).unwrap()
    }

    /// The size of full datagrams that an end sends on its first path.
    pub(crate) fn size(&self, role: Role) -> u16 {
        self.connection(role).datagram_size(FIRST).unwrap()
    }
}
