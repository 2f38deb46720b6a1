//! What every foreign node is made of, and what every node of an exchange shows.

use std::net::{SocketAddr, SocketAddrV4};

use quipu_base::{Instant, Role, Seed};
use quipu_testkit::{Action, Identity, Plan, Scenario, SharedTls, server_address};

use crate::SharedTokens;

/// How to make a node with a foreign engine.
///
/// The engines run with NewReno, without MTU discovery (1,200 B of UDP payload) unless asked for it, with a stream
/// window of 1 MB, and with everything random that can be seeded drawn from `seed`.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// Which side the node is.
    pub role: Role,
    /// The node's own addresses, one for each path, the handshake's first. All have one port. The second one
    /// of a server is where it asks clients to move to.
    pub local: Vec<SocketAddr>,
    /// The server's address, which a client connects to.
    pub server: SocketAddr,
    /// How much each side sends.
    pub plan: Plan,
    /// Seed of the engine's own randomness.
    pub seed: Seed,
    /// What to do when.
    pub actions: Vec<(Instant, Action)>,
    /// A server answers the first packet of a client with Retry.
    pub retry: bool,
    /// The engine looks for the largest datagram that the path carries.
    pub mtu_discovery: bool,
    /// Address validation tokens, which other connections may share.
    pub tokens: Option<SharedTokens>,
    /// TLS of both sides, which other connections may share.
    pub tls: SharedTls,
}

impl PeerConfig {
    /// What a foreign node of `role` needs to take part in `scenario`.
    ///
    /// # Panics
    /// If the identity is of no use.
    pub fn new(scenario: &Scenario, role: Role, identity: &Identity) -> Self {
        PeerConfig {
            role,
            local: scenario.addresses(role),
            server: server_address(),
            plan: scenario.plan,
            seed: scenario.peer_seed(role),
            actions: Vec::new(),
            retry: false,
            tokens: None,
            mtu_discovery: false,
            tls: SharedTls::new(identity, false).expect("a valid identity"),
        }
    }

    /// The node's address with this IP address, or its first one.
    pub(crate) fn local_address(&self, ip: Option<std::net::IpAddr>) -> SocketAddr {
        let found = ip.and_then(|ip| self.local.iter().find(|local| local.ip() == ip));
        *found.or(self.local.first()).unwrap_or(&self.server)
    }

    /// Where a server asks its clients to move to.
    pub(crate) fn preferred(&self) -> Option<SocketAddrV4> {
        match self.local.get(1) {
            Some(SocketAddr::V4(address)) if !self.role.is_client() => Some(*address),
            _ => None,
        }
    }

    /// The seed of the engine's generator.
    pub(crate) fn rng_seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        for (index, word) in (0..).zip(seed.chunks_exact_mut(8)) {
            word.copy_from_slice(&self.seed.number("engine", index).to_le_bytes());
        }
        seed
    }
}

/// Stream receive window of the foreign engines in bytes. They give up when more than 1,024
/// separate pieces of a stream wait, so the window must not hold more packets than that.
pub(crate) const STREAM_WINDOW: u32 = 1_000_000;
