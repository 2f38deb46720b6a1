//! A link that the crates do not know: `cargo run --example own_link`.
//!
//! A link of one's own is a node between the two hosts. This one is a satellite's: every second it
//! hands over, drops what arrives for 20 ms, and has another delay from then on. Look at `Handover`;
//! the engine knows nothing of it, and its round-trip times in the end show it.

use std::collections::VecDeque;
use std::error::Error;

use quipu_base::{Duration, Instant, Rate, Role, Seed};
use quipu_link::LinkConfig;
use quipu_quic::TransportConfig;
use quipu_sim::{Envelope, Interface, Node, Outgoing, World, WorldConfig, address};
use quipu_testkit::{
    ExchangeNode, NodeConfig, Plan, QuicNode, Tls, client_address, plain_policies, server_address,
};

const PERIOD: Duration = Duration::from_secs(1);
const BLIND: Duration = Duration::from_millis(20);

/// Holds each datagram for the delay of the satellite above, then passes it on.
struct Handover {
    held: VecDeque<(Instant, Envelope, Vec<u8>)>,
    dropped: u64,
}

impl Handover {
    /// The delay at `now`; `None` while the antenna turns.
    fn delay(now: Instant) -> Option<Duration> {
        let nanos = now.as_nanos();
        let satellite = nanos / PERIOD.as_nanos();
        let turns = nanos % PERIOD.as_nanos() < BLIND.as_nanos();
        let delay = [20, 35, 15, 28][(satellite % 4) as usize];
        (!turns || satellite == 0).then_some(Duration::from_millis(delay))
    }
}

impl Node for Handover {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        let Some(delay) = Handover::delay(now) else {
            self.dropped += 1;
            return;
        };
        // What came from the one side goes to the other.
        let to_server = envelope.remote == client_address(0);
        let (local, remote) =
            if to_server { (outer(), server_address()) } else { (inner(), client_address(0)) };
        // A lower delay lets nothing overtake.
        let at = self.held.back().map_or(now + delay, |(last, ..)| (now + delay).max(*last));
        self.held.push_back((at, Envelope { local, remote, ..*envelope }, payload.to_vec()));
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        while self.held.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, envelope, payload)) = self.held.pop_front() else { return };
            out.buffer()[..payload.len()].copy_from_slice(&payload);
            out.send(&envelope, payload.len());
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.held.front().map(|(at, ..)| *at)
    }
}

/// Any of the three nodes.
enum Host {
    End(Box<QuicNode>),
    Link(Handover),
}

impl Host {
    fn node(&self) -> &dyn Node {
        match self {
            Host::End(node) => &**node,
            Host::Link(node) => node,
        }
    }

    fn node_mut(&mut self) -> &mut dyn Node {
        match self {
            Host::End(node) => &mut **node,
            Host::Link(node) => node,
        }
    }
}

impl Node for Host {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        self.node_mut().handle_datagram(now, envelope, payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.node_mut().handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.node_mut().poll_transmit(now, out);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.node().poll_timeout()
    }
}

/// The link's address on the client's side.
fn inner() -> std::net::SocketAddr {
    address(3, 0, 443)
}

/// The link's address on the server's side.
fn outer() -> std::net::SocketAddr {
    address(3, 1, 50_000)
}

fn main() -> Result<(), Box<dyn Error>> {
    let seed = Seed::new(1);
    let end = |role, local, server| {
        Host::End(Box::new(QuicNode::new(NodeConfig {
            role,
            local: vec![local],
            server,
            tls: Tls::Null { chain: 3_000 },
            transport: TransportConfig::default(),
            policies: plain_policies(),
            plan: Plan::download(10_000_000),
            seed: seed.child("node", u64::from(role.is_client())),
            actions: Vec::new(),
            retry: false,
            tokens: None,
            resets: false,
        })))
    };
    let mut world = World::new(WorldConfig::new(seed));
    // To the client, the link is the server.
    let client = world.add_node(end(Role::Client, client_address(0), inner()));
    let server = world.add_node(end(Role::Server, server_address(), server_address()));
    let link = world.add_node(Host::Link(Handover { held: VecDeque::new(), dropped: 0 }));
    let interface = |node, address| Interface { node, address };
    // The rate is that of the antenna; the cable behind the link is perfect.
    let antenna = LinkConfig::new(Rate::from_mbit_per_sec(20), Duration::ZERO);
    let cable = LinkConfig::default();
    let (near, far) = (interface(link, inner()), interface(link, outer()));
    world.add_path(interface(client, client_address(0)), near, &antenna, &antenna)?;
    world.add_path(far, interface(server, server_address()), &cable, &cable)?;

    for second in 1..=60 {
        let end = Instant::ZERO + Duration::from_secs(second);
        world.run_until(end)?;
        let Host::End(node) = world.node(client) else { unreachable!("the client is an end") };
        let Host::End(sender) = world.node(server) else { unreachable!("the server is an end") };
        let Host::Link(link) = world.node(link) else { unreachable!("the link is the link") };
        let received = node.exchange().map_or(0, |exchange| exchange.received().0);
        let rtt = sender.connection().and_then(|c| c.path_views().next()?.latest_rtt);
        println!(
            "{end}: {received:>8} B received, {} datagrams dropped, last round trip {}",
            link.dropped,
            rtt.unwrap_or(Duration::ZERO)
        );
        if node.exchange().is_some_and(|exchange| exchange.received_all_at().is_some()) {
            return Ok(());
        }
    }
    Err("the download did not end within a minute".into())
}
