//! Our engine as a node of the simulator.

use std::net::SocketAddr;
use std::sync::Arc;

use quipu_base::{Duration, Instant, PathId, Role, Seed, StreamDirection, StreamId};
use quipu_null_tls::{NullClient, NullServer};
use quipu_policy::{BuildContext, PolicySpec, Registry};
use quipu_quic::endpoint::{
    Admission, ClientConfig, Closed, EndpointConfig, PolicyFactory, ServerConfig, TokenConfig,
};
use quipu_quic::error::ErrorCode;
use quipu_quic::recorder::RecorderFactory;
use quipu_quic::tls::rustls::{RustlsClient, RustlsServer, provider, reset_key, token_key};
use quipu_quic::tls::{ClientTls, EarlyData, SECRET_LENGTH, ServerTls};
use quipu_quic::token_store::TokenStore;
use quipu_quic::{
    Arrival, Connection, ConnectionEvent, ConnectionHandle, Endpoint, Outbox, Route, Transmit,
    TransportConfig,
};
use quipu_sim::{Envelope, Node, Outgoing};

use crate::{
    ALPN, Action, ByteStream, Exchange, ExchangeNode, Identity, Plan, SERVER_NAME, Scenario,
    Script, SharedTls, Strict, client_address, server_address,
};

/// What TLS a node speaks.
#[derive(Clone, Debug)]
pub enum Tls {
    /// Without arithmetic; certificate chain of so many bytes.
    Null {
        /// Bytes of the certificate chain.
        chain: usize,
    },
    /// rustls with this identity.
    Rustls(Identity),
    /// rustls with configurations that other connections share.
    Shared(SharedTls),
    /// Without arithmetic; both ends are shared with other connections.
    SharedNull(NullClient, NullServer),
}

impl Tls {
    /// TLS of a client, which trusts the server that [`Tls::server`] makes.
    ///
    /// # Panics
    /// If the identity is of no use: this is for tests.
    pub fn client(&self) -> Arc<dyn ClientTls> {
        match self {
            Tls::Null { .. } => Arc::new(NullClient::new(&[ALPN]).expect("a valid name")),
            Tls::Rustls(identity) => {
                let config = identity.client_tls().expect("a valid identity");
                Arc::new(RustlsClient::new(Arc::new(config)).expect("usable with QUIC"))
            }
            Tls::Shared(shared) => {
                let config = Arc::clone(&shared.client);
                Arc::new(RustlsClient::new(config).expect("usable with QUIC"))
            }
            Tls::SharedNull(client, _) => Arc::new(client.clone()),
        }
    }

    /// TLS of a server.
    ///
    /// # Panics
    /// If the chain or the identity is of no use: this is for tests.
    pub fn server(&self) -> Arc<dyn ServerTls> {
        match self {
            Tls::Null { chain } => Arc::new(
                NullServer::new(&[ALPN])
                    .and_then(|server| server.with_certificate_chain(*chain))
                    .expect("a valid chain"),
            ),
            Tls::Rustls(identity) => {
                let config = identity.server_tls().expect("a valid identity");
                Arc::new(RustlsServer::new(Arc::new(config)).expect("usable with QUIC"))
            }
            Tls::Shared(shared) => {
                let config = Arc::clone(&shared.server);
                Arc::new(RustlsServer::new(config).expect("usable with QUIC"))
            }
            Tls::SharedNull(_, server) => Arc::new(server.clone()),
        }
    }
}

/// How to make a node.
#[derive(Clone)]
pub struct NodeConfig {
    /// Which side.
    pub role: Role,
    /// The node's own addresses, one for each path, the handshake's first.
    pub local: Vec<SocketAddr>,
    /// The server's address.
    pub server: SocketAddr,
    /// TLS.
    pub tls: Tls,
    /// Settings of the transport.
    pub transport: TransportConfig,
    /// Policies of each connection.
    pub policies: PolicyFactory,
    /// What each side sends.
    pub plan: Plan,
    /// Seed of the node.
    pub seed: Seed,
    /// What to do when.
    pub actions: Vec<(Instant, Action)>,
    /// A server asks its clients to prove their addresses, and gives them tokens to do so later.
    pub retry: bool,
    /// A client keeps and shows tokens of servers here.
    pub tokens: Option<Arc<dyn TokenStore>>,
    /// The endpoint has a key for stateless resets.
    pub resets: bool,
}

impl NodeConfig {
    /// What the node of `role` needs to take part in `scenario`: the transport's defaults and the
    /// plainest policies.
    pub fn new(scenario: &Scenario, role: Role, tls: Tls) -> Self {
        NodeConfig {
            role,
            local: scenario.addresses(role),
            server: server_address(),
            tls,
            transport: TransportConfig::default(),
            policies: plain_policies(),
            plan: scenario.plan,
            seed: scenario.peer_seed(role),
            actions: Vec::new(),
            retry: false,
            tokens: None,
            resets: false,
        }
    }

    /// An endpoint of that kind, whose closed connections stay. Its keys are those of every other.
    fn endpoint(&self, nth: u64) -> Endpoint {
        let key = reset_key(&provider(), &[7; SECRET_LENGTH]).expect("a suite of TLS 1.3");
        let config = EndpointConfig {
            closed: Closed::Kept,
            reset_key: self.resets.then_some(key),
            ..EndpointConfig::default()
        };
        let random = self.seed.stream("endpoint", nth);
        let mut endpoint = Endpoint::seeded_with(config, random).expect("a valid configuration");
        if self.role == Role::Server {
            endpoint.listen(self.server_config()).expect("a valid transport");
        }
        endpoint
    }

    fn server_config(&self) -> ServerConfig {
        let transport = Arc::new(self.transport.clone());
        let server = ServerConfig::new(self.tls.server(), transport, Arc::clone(&self.policies));
        if !self.retry {
            return server.with_admission(patient());
        }
        let key = token_key(&provider(), &[8; SECRET_LENGTH]).expect("an AEAD with long keys");
        let admission = Admission { max_unvalidated: 0, ..patient() };
        server.with_admission(admission).with_tokens(TokenConfig::with_key(key))
    }
}

/// Our engine with one [`Exchange`] over the client's first stream.
pub struct QuicNode {
    config: NodeConfig,
    endpoint: Endpoint,
    handle: Option<ConnectionHandle>,
    stream: Option<StreamId>,
    exchange: Exchange,
    script: Script,
    failure: Option<String>,
    established: usize,
    events: Vec<(Instant, ConnectionEvent)>,
    started: bool,
    /// How often it was restarted.
    restarts: u64,
    /// The engine is held to the contract of its outbox, by [`Strict`].
    strict: bool,
    /// The client's addresses on paths whose sockets take nothing at present.
    blocked: Vec<SocketAddr>,
}

/// An outbox some of whose routes are blocked: those from or to these addresses.
pub struct Blocking<'a, O> {
    /// Where all else goes.
    pub inner: O,
    /// Addresses of either end.
    pub blocked: &'a [SocketAddr],
}

impl<O: Outbox> Outbox for Blocking<'_, O> {
    fn has_room(&self) -> bool {
        self.inner.has_room()
    }

    fn is_blocked(&self, route: &Route) -> bool {
        self.blocked.iter().any(|address| [route.local, route.remote].contains(address))
    }

    fn buffer(&mut self, size: usize) -> &mut [u8] {
        self.inner.buffer(size)
    }

    fn send(&mut self, transmit: Transmit) {
        self.inner.send(transmit);
    }
}

/// The simulator's buffers as an outbox of the engine.
pub struct SimOutbox<'a, 'b>(pub &'a mut Outgoing<'b>);

impl Outbox for SimOutbox<'_, '_> {
    fn has_room(&self) -> bool {
        true
    }

    fn buffer(&mut self, _size: usize) -> &mut [u8] {
        self.0.buffer()
    }

    fn send(&mut self, transmit: Transmit) {
        let Route { local, remote, .. } = transmit.route;
        self.0.send(&Envelope { local, remote, ecn: transmit.ecn }, transmit.len);
    }
}

/// Lets in a hundred clients, however long their handshakes take: networks of tests fall silent for
/// longer than servers have patience.
pub(crate) fn patient() -> Admission {
    let handshake_timeout = Duration::ZERO;
    Admission { max_connections: 100, handshake_timeout, ..Admission::default() }
}

/// The plainest policies: streams in turn, the path of least round-trip time, NewReno with ten
/// packets.
pub fn plain_policies() -> PolicyFactory {
    policies("")
}

/// Policies as text, such as `stream=wrr path=ecf:beta=0.5`; what is not given is the default.
///
/// # Panics
/// If the text is no choice of policies: this is for tests.
pub fn policies(text: &str) -> PolicyFactory {
    let registry = Registry::builtin();
    let spec = PolicySpec::parse(&registry, text).expect("a choice of policies");
    Arc::new(move || {
        spec.build(&BuildContext::new(Seed::new(1))).expect("a choice was built when read")
    })
}

impl QuicNode {
    /// A node that is ready to run.
    ///
    /// # Panics
    /// If the configuration is wrong: this is for tests.
    pub fn new(config: NodeConfig) -> Self {
        let endpoint = config.endpoint(0);
        QuicNode {
            strict: true,
            exchange: Exchange::new(config.plan, config.role),
            script: Script::new(&config.actions),
            config,
            endpoint,
            handle: None,
            stream: None,
            failure: None,
            established: 0,
            events: Vec::new(),
            started: false,
            restarts: 0,
            blocked: Vec::new(),
        }
    }

    /// The same node with recorders for its connections.
    #[must_use]
    pub fn recorded(mut self, recorders: RecorderFactory) -> Self {
        self.endpoint.record(recorders);
        self
    }

    /// The same node, whose engine is not held to the contract of its [`Outbox`]: for benches.
    #[must_use]
    pub fn unwatched(mut self) -> Self {
        self.strict = false;
        self
    }

    /// The connection, once there is one.
    pub fn connection(&self) -> Option<&Connection> {
        self.endpoint.connection(self.handle?)
    }

    /// The connection, once there is one, to ask something of it.
    pub fn connection_mut(&mut self) -> Option<&mut Connection> {
        self.endpoint.connection_mut(self.handle?)
    }

    /// What the connection told, and when.
    pub fn events(&self) -> &[(Instant, ConnectionEvent)] {
        &self.events
    }

    fn start(&mut self, now: Instant) {
        if std::mem::replace(&mut self.started, true) || self.config.role == Role::Server {
            return;
        }
        let transport = Arc::new(self.config.transport.clone());
        let policies = Arc::clone(&self.config.policies);
        let mut client = ClientConfig::new(self.config.tls.client(), transport, policies);
        client.tokens = self.config.tokens.clone();
        client.handshake_timeout = Duration::ZERO;
        let route = Route::new(self.config.local[0], self.config.server);
        let handle = self.endpoint.connect(now, &client, SERVER_NAME, route);
        self.handle = Some(handle.expect("a valid configuration"));
    }

    fn advance(&mut self, now: Instant) {
        if self.handle.is_none() {
            self.handle = self.endpoint.accept();
        }
        let Some(connection) = self.handle.and_then(|h| self.endpoint.connection_mut(h)) else {
            // What is due waits for a connection.
            self.script.run(now, |_| false);
            return;
        };
        while let Some(event) = connection.poll() {
            match &event {
                ConnectionEvent::EarlyData(EarlyData::Offered) => {
                    self.stream = connection.open_stream(now, StreamDirection::Bidirectional);
                }
                ConnectionEvent::Connected => {
                    if self.config.role == Role::Client && self.stream.is_none() {
                        self.stream = connection.open_stream(now, StreamDirection::Bidirectional);
                    }
                    self.established = 1;
                }
                ConnectionEvent::Confirmed if self.config.role == Role::Client => {
                    for &local in &self.config.local[1..] {
                        let route = Route::new(local, self.config.server);
                        // Fails against a peer without multipath, as some tests want.
                        let _ = connection.open_path(now, route);
                    }
                }
                ConnectionEvent::StreamOpened(stream) if self.stream.is_none() => {
                    self.stream = Some(*stream);
                }
                ConnectionEvent::PathUp(_) => self.established += 1,
                ConnectionEvent::PathGone(_) => self.established -= 1,
                ConnectionEvent::Closed(reason) => self.failure = Some(reason.to_string()),
                _ => {}
            }
            self.events.push((now, event));
        }
        let (mut unblocked, mut restarts) = (false, false);
        self.script.run(now, |action| match action {
            Action::Abandon(path) => {
                connection.abandon_path(now, path, ErrorCode::APPLICATION_ABANDON_PATH)
            }
            Action::Block(path) => {
                self.blocked.push(client_address(path));
                true
            }
            Action::Unblock(path) => {
                self.blocked.retain(|&address| address != client_address(path));
                unblocked = true;
                true
            }
            Action::UpdateKeys => connection.update_keys(),
            Action::TellQuality(quality) => {
                connection.tell_quality(now, quality);
                true
            }
            Action::Close => {
                connection.close(now, 0, b"done");
                true
            }
            Action::Restart => {
                restarts = true;
                true
            }
            Action::Migrate(to) => {
                let local = self.config.local.get(to);
                local.is_some_and(|&local| {
                    let route = Route::new(local, self.config.server);
                    connection.migrate(now, PathId::ZERO, route).is_ok()
                })
            }
        });
        if restarts {
            self.restarts += 1;
            self.endpoint = self.config.endpoint(self.restarts);
            (self.handle, self.stream) = (None, None);
            return;
        }
        if let Some(stream) = self.stream {
            self.exchange.drive(now, &mut EngineStream { connection, stream, now });
        }
        if unblocked {
            self.endpoint.handle_unblocked();
        }
    }
}

impl Node for QuicNode {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        let route = Route::new(envelope.local, envelope.remote);
        let arrival = Arrival { route, ecn: envelope.ecn };
        self.endpoint.handle_datagram(now, arrival, payload);
    }

    fn handle_buffer(
        &mut self,
        now: Instant,
        envelope: &Envelope,
        buffer: &mut Box<[u8]>,
        length: usize,
    ) {
        let route = Route::new(envelope.local, envelope.remote);
        let arrival = Arrival { route, ecn: envelope.ecn };
        self.endpoint.handle_buffer(now, arrival, buffer, length);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.start(now);
        self.advance(now);
        if self.strict {
            let inner = SimOutbox(out);
            let outbox = Blocking { inner, blocked: &self.blocked };
            self.endpoint.poll_transmit(now, &mut Strict::new(outbox));
        } else {
            self.endpoint.poll_transmit(now, &mut SimOutbox(out));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.endpoint.poll_timeout(), self.script.next_at()].into_iter().flatten().min()
    }
}

impl ExchangeNode for QuicNode {
    fn exchange(&self) -> Option<&Exchange> {
        self.stream.map(|_| &self.exchange)
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn established_paths(&self) -> usize {
        self.established
    }

    fn key_updates(&self) -> u64 {
        self.connection().map_or(0, Connection::key_updates)
    }

    fn early_data(&self) -> Option<bool> {
        match self.connection()?.early_data() {
            EarlyData::Accepted => Some(true),
            EarlyData::Rejected => Some(false),
            EarlyData::NotOffered | EarlyData::Offered => None,
        }
    }

    fn resumed(&self) -> Option<bool> {
        Some(self.connection()?.negotiated()?.resumed)
    }

    fn datagram_size(&self) -> Option<u16> {
        self.connection()?.datagram_size(PathId::ZERO)
    }
}

/// A stream of a connection for an exchange.
struct EngineStream<'a> {
    connection: &'a mut Connection,
    stream: StreamId,
    now: Instant,
}

impl ByteStream for EngineStream<'_> {
    fn write(&mut self, data: &bytes::Bytes) -> usize {
        // The exchange comes back after each input, so that nothing need be told of room.
        let room = data.len().min(self.connection.send_room(self.stream));
        self.connection.write(self.now, self.stream, data.slice(..room)).unwrap_or(0)
    }

    fn finish(&mut self) {
        let _ = self.connection.finish(self.now, self.stream);
    }

    fn read(&mut self, sink: &mut dyn FnMut(&[u8])) -> bool {
        self.connection.read(self.now, self.stream, sink).is_ok_and(|read| read.end)
    }
}
