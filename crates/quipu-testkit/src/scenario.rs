//! Two nodes, some paths between them, and one exchange.

use std::net::SocketAddr;

use quipu_base::{Bytes, Duration, Instant, Rate, Role, Seed};
use quipu_link::{LinkConfig, LinkStats};
use quipu_sim::{
    EventHash, Interface, PathLinks, RunEnd, RunError, TopologyError, World, WorldConfig, address,
};

use crate::{Behind, Exchange, ExchangeNode, Middlebox, Plan};

/// An exchange between a client and a server over one or more paths.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What each side sends.
    pub plan: Plan,
    /// One path for each link, used in both directions; the handshake's first.
    pub paths: Vec<LinkConfig>,
    /// What differs from client to server: the number of a path, and its link in that direction.
    pub up: Vec<(usize, LinkConfig)>,
    /// The link, used in both directions, between the client's first address and another one of the server, to
    /// which it may ask its clients to move.
    pub preferred: Option<LinkConfig>,
    /// What stands before the client.
    pub middlebox: Middlebox,
    /// Seed of links and engines.
    pub seed: Seed,
    /// The exchange has to be over by then.
    pub limit: Duration,
}

/// How an exchange went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// When both sides had received everything.
    pub finished_at: Instant,
    /// Received bytes of both directions per time, from the start of the connection on.
    pub goodput: Rate,
    /// Per path, what the links from client to server and back have seen; last those of the server's
    /// preferred address, if it has one.
    pub links: Vec<(LinkStats, LinkStats)>,
    /// Hash of the times and sizes of all datagrams.
    pub trace: u64,
    /// The longest time between two arrivals of bytes, at client and server.
    pub longest_stalls: [Duration; 2],
    /// Paths that the client had established in the end.
    pub client_paths: usize,
    /// Whether the server took the client's early data, as far as the client tells.
    pub early_data: Option<bool>,
    /// Whether the client and the server say that a session was resumed, as far as their engines tell.
    pub resumed: [Option<bool>; 2],
    /// Size of full datagrams that the client and the server sent on the first path in the end, as far
    /// as their engines tell.
    pub datagram_sizes: [Option<u16>; 2],
    /// Key updates that the client and the server saw, as far as their engines tell.
    pub key_updates: [u64; 2],
}

/// An exchange did not succeed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The network cannot be built.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The simulator stopped the run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A side lost its connection.
    #[error("{role:?} lost its connection: {reason}")]
    ConnectionLost {
        /// Which side.
        role: Role,
        /// The engine's words.
        reason: String,
    },
    /// The time was up, or nothing would ever have happened again.
    #[error("{end:?} at {now}: server has {uploaded}, client {downloaded}")]
    Unfinished {
        /// Why the run ended.
        end: RunEnd,
        /// When it ended.
        now: Instant,
        /// What the server had received.
        uploaded: Bytes,
        /// What the client had received.
        downloaded: Bytes,
    },
    /// A side received other bytes than its peer sent.
    #[error(
        "{role:?} received {received} with hash {found:016x}, expected {sent} with {expected:016x}"
    )]
    WrongBytes {
        /// Which side.
        role: Role,
        /// How much its peer sent.
        sent: Bytes,
        /// How much it received.
        received: Bytes,
        /// Their hash.
        found: u64,
        /// The hash of what the peer sent.
        expected: u64,
    },
}

/// The client's address on a path.
pub fn client_address(path: u8) -> SocketAddr {
    address(1, path, 50_000)
}

/// The server's address, at which every connection begins.
pub fn server_address() -> SocketAddr {
    address(2, 0, 443)
}

/// The address to which a server may ask its client to move, if there is a [link](Scenario::preferred) to it.
pub fn preferred_address() -> SocketAddr {
    address(2, 1, 443)
}

impl<N: ExchangeNode + ?Sized> ExchangeNode for Box<N> {
    fn exchange(&self) -> Option<&Exchange> {
        (**self).exchange()
    }

    fn failure(&self) -> Option<&str> {
        (**self).failure()
    }

    fn established_paths(&self) -> usize {
        (**self).established_paths()
    }

    fn key_updates(&self) -> u64 {
        (**self).key_updates()
    }

    fn early_data(&self) -> Option<bool> {
        (**self).early_data()
    }

    fn resumed(&self) -> Option<bool> {
        (**self).resumed()
    }

    fn datagram_size(&self) -> Option<u16> {
        (**self).datagram_size()
    }
}

impl Scenario {
    /// One exchange over these paths, to be done within ten minutes of virtual time.
    pub fn new(plan: Plan, paths: Vec<LinkConfig>) -> Self {
        Scenario {
            plan,
            paths,
            up: Vec::new(),
            preferred: None,
            middlebox: Middlebox::default(),
            seed: Seed::new(1),
            limit: Duration::from_secs(600),
        }
    }

    /// The addresses of one side: the client has one for each path, the server one, and perhaps one to which
    /// it asks clients to move.
    pub fn addresses(&self, role: Role) -> Vec<SocketAddr> {
        match role {
            Role::Client => self.path_numbers().map(client_address).collect(),
            Role::Server => {
                let preferred = self.preferred.as_ref().map(|_| preferred_address());
                std::iter::once(server_address()).chain(preferred).collect()
            }
        }
    }

    /// The seed of the engine of one side.
    pub fn peer_seed(&self, role: Role) -> Seed {
        self.seed.child("peer", u64::from(role.is_client()))
    }

    /// Lets two nodes meet until both have received everything.
    ///
    /// # Errors
    /// If anything kept them from it, or if other bytes arrived than were sent.
    pub fn run(
        &self,
        client: Box<dyn ExchangeNode>,
        server: Box<dyn ExchangeNode>,
    ) -> Result<Outcome, Failure> {
        let config = WorldConfig::new(self.seed);
        let mut world = World::with_observer(config, EventHash::without_payload());
        let client: Box<dyn ExchangeNode> = if self.middlebox.is_transparent() {
            client
        } else {
            Box::new(Behind::new(client, self.middlebox.clone()))
        };
        let (client, server) = (world.add_node(client), world.add_node(server));
        let there = Interface { node: server, address: server_address() };
        let mut links = Vec::new();
        for (path, link) in self.path_numbers().zip(&self.paths) {
            let here = Interface { node: client, address: client_address(path) };
            let up = self.up.iter().find(|(number, _)| *number == usize::from(path));
            let path = world.add_path(here, there, up.map_or(link, |(_, up)| up), link)?;
            links.push(path);
            let seen = self.middlebox.rebindings.iter();
            for rebinding in seen.filter(|rebinding| rebinding.inside == here.address) {
                let here = Interface { address: rebinding.outside, ..here };
                world.add_route(here, there, &[path.up])?;
                world.add_route(there, here, &[path.down])?;
            }
        }
        if let Some(link) = &self.preferred {
            let here = Interface { node: client, address: client_address(0) };
            let there = Interface { address: preferred_address(), ..there };
            links.push(world.add_path(here, there, link, link)?);
        }

        let end = world.run_while(Instant::ZERO + self.limit, |world| {
            let node = |id| -> &dyn ExchangeNode { &**world.node(id) };
            let lost = node(client).failure().or(node(server).failure()).is_some();
            let received_all = |id| -> bool {
                node(id).exchange().is_some_and(|side| side.received_all_at().is_some())
            };
            !(lost || received_all(client) && received_all(server))
        })?;
        let sides = [(Role::Client, &**world.node(client)), (Role::Server, &**world.node(server))];
        for (role, node) in sides {
            if let Some(reason) = node.failure() {
                return Err(Failure::ConnectionLost { role, reason: reason.to_owned() });
            }
        }
        let [downloaded, uploaded] = sides
            .map(|(_, node)| node.exchange().map_or(Bytes::ZERO, |exchange| exchange.received()));
        let now = world.now();
        if end != RunEnd::Condition {
            return Err(Failure::Unfinished { end, now, uploaded, downloaded });
        }
        for (role, node) in sides {
            let (sent, expected) = (self.plan.sent_by(role.peer()), self.plan.hash_of(role.peer()));
            let Some(exchange) = node.exchange() else { continue };
            let (found, received) = (exchange.received_hash(), exchange.received());
            // The hash of an unchecked plan says nothing.
            if (received, found) != (sent, expected) {
                return Err(Failure::WrongBytes { role, sent, received, found, expected });
            }
        }
        let stats = |path: &PathLinks| -> Result<(LinkStats, LinkStats), TopologyError> {
            Ok((*world.link_stats(path.up)?, *world.link_stats(path.down)?))
        };
        Ok(Outcome {
            finished_at: now,
            goodput: Rate::from_bytes_over(uploaded + downloaded, now - Instant::ZERO)
                .unwrap_or(Rate::ZERO),
            links: links.iter().map(stats).collect::<Result<_, _>>()?,
            trace: world.observer().value(),
            longest_stalls: sides.map(|(_, node)| {
                node.exchange().map_or(Duration::ZERO, |exchange| exchange.longest_stall())
            }),
            client_paths: world.node(client).established_paths(),
            early_data: world.node(client).early_data(),
            resumed: [client, server].map(|id| world.node(id).resumed()),
            datagram_sizes: [client, server].map(|id| world.node(id).datagram_size()),
            key_updates: [client, server].map(|id| world.node(id).key_updates()),
        })
    }

    /// The numbers of the paths, from zero.
    fn path_numbers(&self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).take(self.paths.len())
    }
}
