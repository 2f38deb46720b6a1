//! Endpoints as a whole: what they answer to strangers, whom they let in, what they keep.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod accepting;
mod blocked;
mod costs;
mod dry;
mod places;
mod resets;
mod strangers;
mod tokens;
mod told;

use std::sync::Arc;

use quipu_base::{Duration, Instant, Seed};
use quipu_null_tls::{NullClient, NullServer};
use quipu_quic::endpoint::{ClientConfig, EndpointConfig, ServerConfig};
use quipu_quic::{
    Arrival, ConnectionEvent, ConnectionHandle, Endpoint, Outbox, Route, Transmit, TransportConfig,
};
use quipu_testkit::{ALPN, SERVER_NAME, plain_policies, server_address};

/// Keeps what is sent.
#[derive(Default)]
struct Sent {
    buffer: Vec<u8>,
    datagrams: Vec<(Route, Vec<u8>)>,
}

impl Outbox for Sent {
    fn has_room(&self) -> bool {
        true
    }

    fn buffer(&mut self, size: usize) -> &mut [u8] {
        self.buffer.resize(size, 0);
        &mut self.buffer
    }

    fn send(&mut self, transmit: Transmit) {
        self.datagrams.push((transmit.route, self.buffer[..transmit.len].to_vec()));
    }
}

/// A client and a server on a wire without delay and without loss.
struct Two {
    now: Instant,
    client: Endpoint,
    server: Endpoint,
    config: ClientConfig,
    /// Datagrams that went each way since the start.
    sent: [usize; 2],
}

impl Two {
    /// Null TLS on both sides; `change` changes what the server is made of.
    fn new(change: impl FnOnce(ServerConfig) -> ServerConfig) -> Self {
        Two::with_endpoints(EndpointConfig::default(), change)
    }

    /// The same with endpoints of that kind.
    fn with_endpoints(
        endpoints: EndpointConfig,
        change: impl FnOnce(ServerConfig) -> ServerConfig,
    ) -> Self {
        let endpoint = |name| {
            let random = Seed::new(1).stream(name, 0);
            Endpoint::seeded_with(endpoints.clone(), random).unwrap()
        };
        let mut server = endpoint("server");
        server.listen(change(plain_server())).unwrap();
        let transport = Arc::new(TransportConfig::default());
        let tls = Arc::new(NullClient::new(&[ALPN]).unwrap());
        Two {
            now: Instant::ZERO,
            client: endpoint("client"),
            server,
            config: ClientConfig::new(tls, transport, plain_policies()),
            sent: [0; 2],
        }
    }

    /// The client opens one more connection, from a port of its own.
    fn connect(&mut self, port: u16) -> ConnectionHandle {
        let route = Route::new(([10, 0, 0, 1], port).into(), server_address());
        self.client.connect(self.now, &self.config, SERVER_NAME, route).unwrap()
    }

    /// Datagrams go to and fro until nobody has any.
    fn settle(&mut self) {
        for _ in 0..100 {
            let there = self.client_sends();
            let back = self.server_sends();
            let silent = there.is_empty() && back.is_empty();
            for (route, mut datagram) in there {
                self.server.handle_datagram(self.now, reversed(route), &mut datagram);
            }
            for (route, mut datagram) in back {
                self.client.handle_datagram(self.now, reversed(route), &mut datagram);
            }
            if silent {
                return;
            }
        }
        unreachable!("they never stop");
    }

    fn client_sends(&mut self) -> Vec<(Route, Vec<u8>)> {
        let mut sent = Sent::default();
        self.client.poll_transmit(self.now, &mut sent);
        self.sent[0] += sent.datagrams.len();
        sent.datagrams
    }

    fn server_sends(&mut self) -> Vec<(Route, Vec<u8>)> {
        let mut sent = Sent::default();
        self.server.poll_transmit(self.now, &mut sent);
        self.sent[1] += sent.datagrams.len();
        sent.datagrams
    }

    /// Time passes, and all deadlines are served.
    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            self.settle();
            let deadlines = [self.client.poll_timeout(), self.server.poll_timeout()];
            match deadlines.into_iter().flatten().min().filter(|at| *at <= until) {
                Some(at) => self.now = self.now.max(at),
                None => break,
            }
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
        }
        self.now = until;
    }
}

/// What a server is made of: null TLS, the transport's defaults, the plainest policies.
fn plain_server() -> ServerConfig {
    let tls = Arc::new(NullServer::new(&[ALPN]).unwrap());
    ServerConfig::new(tls, Arc::new(TransportConfig::default()), plain_policies())
}

/// How a datagram arrives that was sent over `route`.
fn reversed(route: Route) -> Arrival {
    Arrival { route: Route::new(route.remote, route.local), ecn: 0 }
}

/// All events of a connection that wait.
fn events(endpoint: &mut Endpoint, handle: ConnectionHandle) -> Vec<ConnectionEvent> {
    let Some(connection) = endpoint.connection_mut(handle) else { return Vec::new() };
    std::iter::from_fn(|| connection.poll()).collect()
}
