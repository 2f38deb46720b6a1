//! noq-proto as a node: several paths, RFC 10069.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use noq_proto::congestion::NewRenoConfig;
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionId, DatagramEvent, Dir, EcnCodepoint,
    Endpoint, EndpointConfig, Event, FourTuple, MtuDiscoveryConfig, PathEvent, PathId, PathStatus,
    ServerConfig, StreamEvent, StreamId, Transmit, TransportConfig, VarInt,
};
use quipu_base::{Instant, Role};
use quipu_sim::{Envelope, Node, Outgoing};
use quipu_testkit::{Action, ByteStream, Exchange, ExchangeNode, SERVER_NAME, Script};

use crate::peer::STREAM_WINDOW;
use crate::{Clock, PeerConfig, SeededConnectionIds};

/// Most paths at a time; the peer may use path identifiers below it.
const MAX_PATHS: u32 = 8;

/// A path without an answer for this long is given up, and what was lost on it goes elsewhere. By
/// default the engine never gives one up: it resends on the dead path alone until the connection
/// times out.
const PATH_IDLE_TIMEOUT: Duration = Duration::from_secs(3);
/// Keeps idle paths alive; below [`PATH_IDLE_TIMEOUT`].
const PATH_KEEP_ALIVE: Duration = Duration::from_secs(1);

/// A noq-proto endpoint with one connection and one exchange. A client opens a path for each of
/// its addresses once the handshake is confirmed.
pub struct NoqNode {
    config: PeerConfig,
    clock: Clock,
    endpoint_config: Arc<EndpointConfig>,
    server_config: Option<Arc<ServerConfig>>,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    exchange: Exchange,
    script: Script,
    /// The address that it moved away from.
    left: Option<SocketAddr>,
    failure: Option<String>,
    /// Whether the server took what was sent early, once that is known.
    early_data: Option<bool>,
    established_paths: usize,
    /// What the endpoint itself answers.
    responses: VecDeque<(Envelope, Vec<u8>)>,
    buffer: Vec<u8>,
    deadline: Option<Instant>,
}

impl NoqNode {
    /// A client that connects at the start of the run, or a server that waits for one.
    ///
    /// # Errors
    /// If TLS cannot be set up, or the engine refuses to connect.
    pub fn new(config: PeerConfig) -> Result<Self, Box<dyn std::error::Error>> {
        let transport = Arc::new(transport(config.mtu_discovery));
        let mut endpoint_config = EndpointConfig::default();
        let ids = SeededConnectionIds::new(config.seed);
        endpoint_config.cid_generator(Arc::new(move || Box::new(ids.clone())));
        endpoint_config.rng_seed(Some(config.rng_seed()));
        let server_config = match config.role {
            Role::Client => None,
            Role::Server => {
                let tls = QuicServerConfig::try_from(Arc::clone(&config.tls.server))?;
                let mut server_config = ServerConfig::with_crypto(Arc::new(tls));
                server_config.transport_config(transport.clone());
                server_config.preferred_address_v4(config.preferred());
                if config.tokens.is_some() {
                    crate::tokens::noq_server(&mut server_config);
                }
                Some(Arc::new(server_config))
            }
        };
        let clock = Clock::new();
        let endpoint_config = Arc::new(endpoint_config);
        let mut endpoint = Endpoint::new(
            Arc::clone(&endpoint_config),
            server_config.clone(),
            config.mtu_discovery,
        );
        let connection = match config.role {
            Role::Server => None,
            Role::Client => {
                let tls = QuicClientConfig::try_from(Arc::clone(&config.tls.client))?;
                let mut client_config = ClientConfig::new(Arc::new(tls));
                client_config.transport_config(transport);
                if let Some(tokens) = &config.tokens {
                    client_config.token_store(tokens.noq.clone());
                }
                let first_id = config.seed.number("initial-dcid", 0).to_le_bytes();
                client_config
                    .initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&first_id)));
                let now = clock.to_std(Instant::ZERO);
                Some(endpoint.connect(now, client_config, config.server, SERVER_NAME)?)
            }
        };
        Ok(NoqNode {
            clock,
            endpoint_config,
            server_config,
            endpoint,
            connection,
            stream: None,
            exchange: Exchange::new(config.plan, config.role),
            script: Script::new(&config.actions),
            left: None,
            failure: None,
            early_data: None,
            established_paths: 1,
            responses: VecDeque::new(),
            buffer: Vec::new(),
            deadline: None,
            config,
        })
    }

    fn accept(&mut self, incoming: noq_proto::Incoming, now: std::time::Instant) {
        if self.connection.is_some() {
            self.endpoint.ignore(incoming);
            return;
        }
        self.buffer.clear();
        if self.config.retry && !incoming.remote_address_validated() {
            if let Ok(transmit) = self.endpoint.retry(incoming, &mut self.buffer) {
                self.respond(&transmit);
            }
            return;
        }
        match self.endpoint.accept(incoming, now, &mut self.buffer, None) {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => {
                self.failure = Some(error.cause.to_string());
                if let Some(transmit) = error.response {
                    self.respond(&transmit);
                }
            }
        }
    }

    /// A client that remembers the server begins before the handshake is over.
    fn send_early(&mut self) {
        if let Some((_, connection)) = &mut self.connection
            && connection.is_handshaking()
            && connection.has_0rtt()
            && self.config.role.is_client()
            && self.stream.is_none()
        {
            self.stream = connection.streams().open(Dir::Bi);
        }
    }

    /// Keeps what the endpoint answers until the node may send.
    fn respond(&mut self, transmit: &Transmit) {
        let payload = self.buffer[..transmit.size].to_vec();
        self.responses.push_back((envelope(&self.config, transmit), payload));
    }

    /// Passes events between endpoint, connection and application; true if there were any.
    fn handle_events(&mut self, now: std::time::Instant) -> bool {
        let Some((handle, connection)) = &mut self.connection else { return false };
        let mut any = false;
        while let Some(event) = connection.poll_endpoint_events() {
            any = true;
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            any = true;
            match event {
                Event::Connected if self.config.role.is_client() => {
                    self.early_data = self.stream.map(|_| connection.accepted_0rtt());
                    if self.early_data != Some(true) {
                        // What was sent too early is sent again.
                        self.exchange = Exchange::new(self.config.plan, self.config.role);
                        self.stream = connection.streams().open(Dir::Bi);
                    }
                }
                // Before this the peer's connection IDs for further paths are not there, and each
                // failed attempt would send a PATH_CIDS_BLOCKED.
                Event::HandshakeConfirmed
                    if self.config.role.is_client() && connection.is_multipath_negotiated() =>
                {
                    for local in self.config.local.iter().skip(1) {
                        let addresses = FourTuple::new(self.config.server, Some(local.ip()));
                        let opened = connection.open_path(addresses, PathStatus::Available, now);
                        if let Err(error) = opened {
                            self.failure = Some(format!("cannot open a path: {error}"));
                        }
                    }
                }
                Event::Path(PathEvent::Established { .. }) => self.established_paths += 1,
                Event::Path(PathEvent::Abandoned { .. }) => self.established_paths -= 1,
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    self.stream = connection.streams().accept(Dir::Bi);
                }
                Event::ConnectionLost { reason } => self.failure = Some(reason.to_string()),
                _ => {}
            }
        }
        any
    }

    /// Does what the script asks for by now.
    fn act(&mut self, virtual_now: Instant) {
        let Some((_, connection)) = &mut self.connection else {
            // What is due waits for a connection.
            return self.script.run(virtual_now, |_| false);
        };
        let now = self.clock.to_std(virtual_now);
        let mut restarts = false;
        let config = &mut self.config;
        self.script.run(virtual_now, |action| {
            match action {
                Action::Migrate(to) => {
                    // Among several paths, another is opened instead.
                    if connection.is_multipath_negotiated() || to >= config.local.len() {
                        return false;
                    }
                    config.local.swap(0, to);
                    self.left = config.local.get(to).copied();
                    connection.handle_network_change(None, now);
                }
                Action::Restart => restarts = true,
                Action::Abandon(path) => {
                    let id = PathId::from(path.0);
                    return connection.close_path(now, id, VarInt::from_u32(0)).is_ok();
                }
                Action::Close => connection.close(now, VarInt::from_u32(0), "done".into()),
                Action::UpdateKeys => connection.force_key_update(),
                // The engine has no policy that would be told.
                Action::Block(_) | Action::TellQuality(_) | Action::Unblock(_) => return false,
            }
            true
        });
        if restarts {
            let server = self.server_config.clone();
            self.endpoint =
                Endpoint::new(Arc::clone(&self.endpoint_config), server, self.config.mtu_discovery);
            (self.connection, self.stream, self.deadline) = (None, None, None);
        }
    }
}

impl Node for NoqNode {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        // The engine would go back to any address to which something comes.
        if self.left == Some(envelope.local) {
            return;
        }
        let now = self.clock.to_std(now);
        self.buffer.clear();
        let event = self.endpoint.handle(
            now,
            FourTuple::new(envelope.remote, Some(envelope.local.ip())),
            EcnCodepoint::from_bits(envelope.ecn),
            BytesMut::from(&*payload),
            &mut self.buffer,
        );
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(incoming, now),
            Some(DatagramEvent::Response(transmit)) => self.respond(&transmit),
            None => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(self.clock.to_std(now));
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.send_early();
        for (envelope, payload) in self.responses.drain(..) {
            send(out, &envelope, &payload);
        }
        self.act(now);
        loop {
            let any = self.handle_events(self.clock.to_std(now));
            let Some((_, connection)) = &mut self.connection else { return };
            if let Some(id) = self.stream {
                self.exchange.drive(now, &mut NoqStream { connection, id });
            }
            let mut sent = false;
            loop {
                self.buffer.clear();
                let now = self.clock.to_std(now);
                let transmit = connection.poll_transmit(now, NonZeroUsize::MIN, &mut self.buffer);
                let Some(transmit) = transmit else { break };
                sent = true;
                send(out, &envelope(&self.config, &transmit), &self.buffer);
            }
            self.deadline = connection.poll_timeout().map(|at| self.clock.from_std(at));
            if !any && !sent {
                return;
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.deadline, self.script.next_at()].into_iter().flatten().min()
    }
}

impl ExchangeNode for NoqNode {
    fn exchange(&self) -> Option<&Exchange> {
        self.connection.is_some().then_some(&self.exchange)
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn early_data(&self) -> Option<bool> {
        self.early_data
    }

    fn established_paths(&self) -> usize {
        self.established_paths
    }

    fn datagram_size(&self) -> Option<u16> {
        // The least of all paths: that of the first one while there is no other.
        self.connection.as_ref().map(|(_, connection)| connection.current_mtu())
    }
}

struct NoqStream<'a> {
    connection: &'a mut Connection,
    id: StreamId,
}

impl ByteStream for NoqStream<'_> {
    fn write(&mut self, data: &bytes::Bytes) -> usize {
        // An error is a blocked stream, or one whose connection's loss is told elsewhere.
        self.connection.send_stream(self.id).write(data).unwrap_or(0)
    }

    fn finish(&mut self) {
        // Fails only on a stream that the peer has stopped.
        let _ = self.connection.send_stream(self.id).finish();
    }

    fn read(&mut self, sink: &mut dyn FnMut(&[u8])) -> bool {
        let mut stream = self.connection.recv_stream(self.id);
        let Ok(mut chunks) = stream.read(true) else { return false };
        let ended = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => sink(&chunk.bytes),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        // The node is polled after each input in any case.
        let _ = chunks.finalize();
        ended
    }
}

fn transport(mtu_discovery: bool) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(Arc::new(NewRenoConfig::default()))
        .mtu_discovery_config(mtu_discovery.then(MtuDiscoveryConfig::default))
        .stream_receive_window(STREAM_WINDOW.into())
        .max_concurrent_multipath_paths(MAX_PATHS)
        .default_path_max_idle_timeout(Some(PATH_IDLE_TIMEOUT))
        .default_path_keep_alive_interval(Some(PATH_KEEP_ALIVE));
    transport
}

fn envelope(config: &PeerConfig, transmit: &Transmit) -> Envelope {
    Envelope {
        local: config.local_address(transmit.src_ip),
        remote: transmit.destination,
        ecn: transmit.ecn.map_or(0, |ecn| ecn as u8),
    }
}

fn send(out: &mut Outgoing<'_>, envelope: &Envelope, payload: &[u8]) {
    if let Some(buffer) = out.buffer().get_mut(..payload.len()) {
        buffer.copy_from_slice(payload);
    }
    out.send(envelope, payload.len());
}
