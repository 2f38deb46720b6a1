//! Many streams on one connection, and applications that ask for more than they may have.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeSet;
use std::sync::Arc;

use quipu_base::{Duration, Instant, Rate, Role, Seed, StreamDirection, StreamId};
use quipu_link::LinkConfig;
use quipu_null_tls::{NullClient, NullServer};
use quipu_quic::endpoint::{ClientConfig, ServerConfig};
use quipu_quic::{Arrival, ConnectionEvent, ConnectionHandle, Endpoint, Route, TransportConfig};
use quipu_sim::{Envelope, Interface, Node, Outgoing, World, WorldConfig};
use quipu_testkit::{
    ALPN, SERVER_NAME, SimOutbox, Strict, client_address, plain_policies, server_address,
};

const REQUEST: usize = 100;
const RESPONSE: usize = 300;

/// A client that wants so many streams and tries to open them whenever it runs, or its server.
struct Asking {
    role: Role,
    endpoint: Endpoint,
    handle: Option<ConnectionHandle>,
    connected: bool,
    to_open: u64,
    open: BTreeSet<StreamId>,
    done: u64,
    refused: u64,
    failure: Option<String>,
}

impl Asking {
    fn new(role: Role, to_open: u64, transport: TransportConfig) -> Self {
        let mut endpoint =
            Endpoint::seeded(Seed::new(1).stream("endpoint", u64::from(to_open > 0)));
        let mut handle = None;
        let transport = Arc::new(transport);
        if role.is_client() {
            let tls = Arc::new(NullClient::new(&[ALPN]).unwrap());
            let config = ClientConfig::new(tls, transport, plain_policies());
            let route = Route::new(client_address(0), server_address());
            handle = Some(endpoint.connect(Instant::ZERO, &config, SERVER_NAME, route).unwrap());
        } else {
            let tls = Arc::new(NullServer::new(&[ALPN]).unwrap());
            endpoint.listen(ServerConfig::new(tls, transport, plain_policies())).unwrap();
        }
        Asking {
            role,
            endpoint,
            handle,
            connected: false,
            to_open,
            open: BTreeSet::new(),
            done: 0,
            refused: 0,
            failure: None,
        }
    }

    fn advance(&mut self, now: Instant) {
        self.handle = self.handle.or_else(|| self.endpoint.accept());
        let Some(connection) = self.handle.and_then(|h| self.endpoint.connection_mut(h)) else {
            return;
        };
        while let Some(event) = connection.poll() {
            match event {
                ConnectionEvent::Connected => self.connected = true,
                ConnectionEvent::Readable(stream) => {
                    if !connection.read(now, stream, &mut |_| {}).unwrap().end {
                        continue;
                    }
                    self.done += 1;
                    self.open.remove(&stream);
                    if self.role == Role::Server {
                        connection.write(now, stream, vec![1; RESPONSE].into()).unwrap();
                        connection.finish(now, stream).unwrap();
                    }
                }
                ConnectionEvent::Closed(reason) => self.failure = Some(reason.to_string()),
                _ => {}
            }
        }
        while self.connected && self.to_open > 0 {
            let Some(stream) = connection.open_stream(now, StreamDirection::Bidirectional) else {
                self.refused += 1;
                break;
            };
            self.to_open -= 1;
            self.open.insert(stream);
            connection.write(now, stream, vec![0; REQUEST].into()).unwrap();
            connection.finish(now, stream).unwrap();
        }
    }
}

impl Node for Asking {
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
        self.endpoint.poll_timeout()
    }
}

/// An application that tries to open a stream whenever it runs is refused for most of the time; a
/// frame for each refusal would bring an acknowledgement, and that the next refusal.
#[test]
fn ten_thousand_streams_of_an_application_that_tries_again_make_no_storm() {
    const STREAMS: u64 = 10_000;
    let mut world = World::new(WorldConfig::new(Seed::new(1)));
    let transport = TransportConfig { max_streams: 100, ..TransportConfig::default() };
    let client = world.add_node(Asking::new(Role::Client, STREAMS, transport.clone()));
    let server = world.add_node(Asking::new(Role::Server, 0, transport));
    let link = LinkConfig::new(Rate::from_mbit_per_sec(100), Duration::from_millis(5));
    let here = Interface { node: client, address: client_address(0) };
    let there = Interface { node: server, address: server_address() };
    let links = world.add_path(here, there, &link, &link).unwrap();
    world
        .run_while(Instant::ZERO + Duration::from_secs(60), |world| {
            world.node(client).done < STREAMS
        })
        .unwrap();
    assert_eq!(world.node(client).failure, None);
    assert_eq!(world.node(client).done, STREAMS);
    let (up, down) = (world.link_stats(links.up).unwrap(), world.link_stats(links.down).unwrap());
    let (up, down) = (up.offered.datagrams, down.offered.datagrams);
    println!("{up} datagrams up, {down} down, {} refusals", world.node(client).refused);
    assert!(world.node(client).refused > 1_000, "{}", world.node(client).refused);
    // Packets are filled: 12 requests or 4 responses share one.
    assert!(up + down < STREAMS, "{up} up, {down} down");
}
