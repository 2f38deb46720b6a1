//! Many connections at one endpoint, whose places are used again.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use quipu_base::{Duration, Instant, Rate, Role, Seed, StreamDirection, StreamId};
use quipu_link::LinkConfig;
use quipu_null_tls::{NullClient, NullServer};
use quipu_quic::endpoint::{ClientConfig, ServerConfig};
use quipu_quic::{
    Arrival, Connection, ConnectionEvent, ConnectionHandle, Endpoint, Route, TransportConfig,
};
use quipu_sim::{Envelope, Interface, Node, Outgoing, World, WorldConfig, address};
use quipu_testkit::{ALPN, SERVER_NAME, SimOutbox, Strict, plain_policies, server_address};

const CLIENTS: u16 = 50;
const ROUNDS: u16 = 3;
const REQUEST: usize = 2000;
const RESPONSE: usize = 60_000;

/// What a client asks for in a round, and what it gets: its own bytes.
fn message(client: u16, round: u16, len: usize) -> Vec<u8> {
    let salt = usize::from(client) * 31 + usize::from(round) * 101;
    (0..len).map(|at| (salt + at + at / 251) as u8).collect()
}

/// One host: a server of all, or one client.
struct Host {
    role: Role,
    endpoint: Endpoint,
    connect: Option<(ClientConfig, Vec<SocketAddr>)>,
    client: u16,
    /// Rounds that were begun.
    round: u16,
    begins_at: Instant,
    /// What came on the stream of a connection so far.
    received: BTreeMap<ConnectionHandle, Vec<u8>>,
    done: BTreeSet<(u16, u16)>,
    accepted: usize,
    most_at_once: usize,
}

impl Host {
    fn new(role: Role, client: u16, addresses: Vec<SocketAddr>) -> Self {
        let seed = Seed::new(5).child("host", u64::from(client));
        let mut endpoint = Endpoint::seeded(seed.stream("endpoint", 0));
        let transport = Arc::new(TransportConfig::default());
        let connect = role.is_client().then(|| {
            let tls = Arc::new(NullClient::new(&[ALPN]).unwrap());
            let transport = Arc::clone(&transport);
            (ClientConfig::new(tls, transport, plain_policies()), addresses)
        });
        if !role.is_client() {
            let tls = Arc::new(NullServer::new(&[ALPN]).unwrap());
            let config = ServerConfig::new(tls, transport, plain_policies());
            // Some have closed, and come again before their last connection is gone.
            endpoint.listen(config.with_max_connections(2 * usize::from(CLIENTS))).unwrap();
        }
        Host {
            role,
            endpoint,
            connect,
            client,
            round: 0,
            begins_at: Instant::ZERO + Duration::from_millis(u64::from(client) * 3),
            received: BTreeMap::new(),
            done: BTreeSet::new(),
            accepted: 0,
            most_at_once: 0,
        }
    }

    fn connect(&mut self, now: Instant) {
        let Some((config, addresses)) = &self.connect else { return };
        let idle = self.endpoint.handles().next().is_none();
        if idle && self.round < ROUNDS && now >= self.begins_at {
            self.round += 1;
            let route = Route::new(addresses[0], server_address());
            let handle = self.endpoint.connect(now, config, SERVER_NAME, route).unwrap();
            self.received.insert(handle, Vec::new());
        }
    }

    fn advance(&mut self, now: Instant) {
        self.connect(now);
        while let Some(handle) = self.endpoint.accept() {
            self.accepted += 1;
            let before = self.received.insert(handle, Vec::new());
            assert!(before.is_none(), "a place is used again after it was left");
        }
        let handles: Vec<_> = self.endpoint.handles().collect();
        self.most_at_once = self.most_at_once.max(handles.len());
        for handle in handles {
            while let Some(event) = self.endpoint.connection_mut(handle).unwrap().poll() {
                self.on_event(now, handle, event);
            }
            if self.endpoint.connection(handle).is_some_and(Connection::is_closed) {
                self.endpoint.remove(handle);
                self.received.remove(&handle);
            }
        }
    }

    fn on_event(&mut self, now: Instant, handle: ConnectionHandle, event: ConnectionEvent) {
        let connection = self.endpoint.connection_mut(handle).unwrap();
        match event {
            ConnectionEvent::Connected if self.role.is_client() => {
                let stream = connection.open_stream(now, StreamDirection::Bidirectional).unwrap();
                let request = message(self.client, self.round, REQUEST);
                let mut head = self.client.to_be_bytes().to_vec();
                head.extend(self.round.to_be_bytes());
                head.extend(request);
                connection.write(now, stream, head.into()).unwrap();
                connection.finish(now, stream).unwrap();
            }
            ConnectionEvent::Confirmed if self.role.is_client() => {
                let local = self.connect.as_ref().unwrap().1[1];
                let route = Route::new(local, server_address());
                connection.open_path(now, route).unwrap();
            }
            ConnectionEvent::Readable(stream) => {
                let received = self.received.get_mut(&handle).unwrap();
                let read = connection.read(now, stream, &mut |bytes| received.extend(bytes));
                if read.unwrap().end {
                    self.on_message(now, handle, stream);
                }
            }
            _ => {}
        }
    }

    fn on_message(&mut self, now: Instant, handle: ConnectionHandle, stream: StreamId) {
        let connection = self.endpoint.connection_mut(handle).unwrap();
        let received = &self.received[&handle];
        if self.role.is_client() {
            assert!(*received == message(self.client, self.round, RESPONSE), "another's bytes");
            self.done.insert((self.client, self.round));
            connection.close(now, 0, b"");
            return;
        }
        let (head, request) = received.split_at(4);
        let client = u16::from_be_bytes([head[0], head[1]]);
        let round = u16::from_be_bytes([head[2], head[3]]);
        assert!(request == message(client, round, REQUEST), "another's bytes");
        assert!(self.done.insert((client, round)), "each round comes once");
        connection.write(now, stream, message(client, round, RESPONSE).into()).unwrap();
        connection.finish(now, stream).unwrap();
    }
}

impl Node for Host {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        let route = Route::new(envelope.local, envelope.remote);
        self.endpoint.handle_datagram(now, Arrival { route, ecn: envelope.ecn }, payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.advance(now);
        self.endpoint.poll_transmit(now, &mut Strict::new(SimOutbox(out)));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let idle = self.connect.is_some() && self.endpoint.handles().next().is_none();
        let begins_at = (idle && self.round < ROUNDS).then_some(self.begins_at);
        [self.endpoint.poll_timeout(), begins_at].into_iter().flatten().min()
    }
}

/// Fifty clients share two links; each asks, is answered, closes and comes again, three times.
#[test]
fn fifty_clients_come_three_times_and_leave_nothing_behind() {
    let mut world = World::new(WorldConfig::new(Seed::new(3)));
    let server = world.add_node(Host::new(Role::Server, CLIENTS, Vec::new()));
    let there = Interface { node: server, address: server_address() };
    let links = [5, 20].map(|millis| {
        let link = LinkConfig::new(Rate::from_mbit_per_sec(50), Duration::from_millis(millis))
            .with_loss(0.005);
        (world.add_link(&link).unwrap(), world.add_link(&link).unwrap())
    });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let addresses = [0, 1].map(|interface| address(100 + client, interface, 50_000));
            let node = world.add_node(Host::new(Role::Client, client, addresses.to_vec()));
            for (address, (up, down)) in addresses.into_iter().zip(links) {
                let here = Interface { node, address };
                world.add_route(here, there, &[up]).unwrap();
                world.add_route(there, here, &[down]).unwrap();
            }
            node
        })
        .collect();
    // All is over long before, the idle timeouts of those whose close was lost included.
    world.run_until(Instant::ZERO + Duration::from_secs(120)).unwrap();
    for client in clients {
        let host = world.node(client);
        assert_eq!(host.done.len(), usize::from(ROUNDS), "client {}", host.client);
        assert_eq!(host.poll_timeout(), None);
    }
    let host = world.node(server);
    assert_eq!(host.done.len(), usize::from(CLIENTS * ROUNDS));
    assert!(host.accepted >= usize::from(CLIENTS * ROUNDS));
    assert!(host.most_at_once > 30, "{} at once", host.most_at_once);
    assert!(host.endpoint.handles().next().is_none(), "a connection is left");
    assert_eq!(host.poll_timeout(), None);
}
