//! quinn-proto as a node: one path, RFC 9000.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::congestion::NewRenoConfig;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionId, DatagramEvent, Dir, EcnCodepoint,
    Endpoint, EndpointConfig, Event, MtuDiscoveryConfig, ServerConfig, StreamEvent, StreamId,
    Transmit, TransportConfig, VarInt,
};
use quipu_base::{Instant, Role};
use quipu_sim::{Envelope, Node, Outgoing};
use quipu_testkit::{Action, ByteStream, Exchange, ExchangeNode, SERVER_NAME, Script};

use crate::peer::STREAM_WINDOW;
use crate::{Clock, PeerConfig, SeededConnectionIds};

/// A quinn-proto endpoint with one connection and one exchange.
pub struct QuinnNode {
    config: PeerConfig,
    clock: Clock,
    endpoint_config: Arc<EndpointConfig>,
    server_config: Option<Arc<ServerConfig>>,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    exchange: Exchange,
    script: Script,
    failure: Option<String>,
    /// Whether the server took what was sent early, once that is known.
    early_data: Option<bool>,
    /// What the endpoint itself answers.
    responses: VecDeque<(Envelope, Vec<u8>)>,
    buffer: Vec<u8>,
    deadline: Option<Instant>,
}

impl QuinnNode {
    /// A client that connects at the start of the run, or a server that waits for one.
    ///
    /// # Errors
    /// If TLS cannot be set up, or the engine refuses to connect.
    pub fn new(config: PeerConfig) -> Result<Self, Box<dyn std::error::Error>> {
        let transport = Arc::new(transport(config.mtu_discovery));
        let mut endpoint_config = EndpointConfig::default();
        let ids = SeededConnectionIds::new(config.seed);
        endpoint_config.cid_generator(move || Box::new(ids.clone()));
        endpoint_config.rng_seed(Some(config.rng_seed()));
        let server_config = match config.role {
            Role::Client => None,
            Role::Server => {
                let tls = QuicServerConfig::try_from(Arc::clone(&config.tls.server))?;
                let mut server_config = ServerConfig::with_crypto(Arc::new(tls));
                server_config.transport_config(transport.clone());
                server_config.preferred_address_v4(config.preferred());
                if config.tokens.is_some() {
                    crate::tokens::quinn_server(&mut server_config);
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
            None,
        );
        let connection = match config.role {
            Role::Server => None,
            Role::Client => {
                let tls = QuicClientConfig::try_from(Arc::clone(&config.tls.client))?;
                let mut client_config = ClientConfig::new(Arc::new(tls));
                client_config.transport_config(transport);
                if let Some(tokens) = &config.tokens {
                    client_config.token_store(tokens.quinn.clone());
                }
                let first_id = config.seed.number("initial-dcid", 0).to_le_bytes();
                client_config
                    .initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&first_id)));
                let now = clock.to_std(Instant::ZERO);
                Some(endpoint.connect(now, client_config, config.server, SERVER_NAME)?)
            }
        };
        Ok(QuinnNode {
            clock,
            endpoint_config,
            server_config,
            endpoint,
            connection,
            stream: None,
            exchange: Exchange::new(config.plan, config.role),
            script: Script::new(&config.actions),
            failure: None,
            early_data: None,
            responses: VecDeque::new(),
            buffer: Vec::new(),
            deadline: None,
            config,
        })
    }

    fn accept(&mut self, incoming: quinn_proto::Incoming, now: std::time::Instant) {
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
    fn handle_events(&mut self) -> bool {
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
        let (config, mut restarts) = (&mut self.config, false);
        self.script.run(virtual_now, |action| {
            match action {
                Action::Migrate(to) => {
                    if to >= config.local.len() {
                        return false;
                    }
                    config.local.swap(0, to);
                    connection.local_address_changed();
                }
                Action::Restart => restarts = true,
                // The engine has one path only.
                Action::Abandon(_) => return false,
                // Nor a policy that would be told.
                Action::Block(_) | Action::TellQuality(_) | Action::Unblock(_) => return false,
                Action::Close => connection.close(now, VarInt::from_u32(0), "done".into()),
                Action::UpdateKeys => connection.force_key_update(),
            }
            true
        });
        if restarts {
            let server = self.server_config.clone();
            self.endpoint = Endpoint::new(
                Arc::clone(&self.endpoint_config),
                server,
                self.config.mtu_discovery,
                None,
            );
            (self.connection, self.stream, self.deadline) = (None, None, None);
        }
    }
}

impl Node for QuinnNode {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        let now = self.clock.to_std(now);
        self.buffer.clear();
        let event = self.endpoint.handle(
            now,
            envelope.remote,
            Some(envelope.local.ip()),
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
            let any = self.handle_events();
            let Some((_, connection)) = &mut self.connection else { return };
            if let Some(id) = self.stream {
                self.exchange.drive(now, &mut QuinnStream { connection, id });
            }
            let mut sent = false;
            loop {
                self.buffer.clear();
                let now = self.clock.to_std(now);
                let Some(transmit) = connection.poll_transmit(now, 1, &mut self.buffer) else {
                    break;
                };
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

impl ExchangeNode for QuinnNode {
    fn exchange(&self) -> Option<&Exchange> {
        self.connection.is_some().then_some(&self.exchange)
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn early_data(&self) -> Option<bool> {
        self.early_data
    }

    fn datagram_size(&self) -> Option<u16> {
        self.connection.as_ref().map(|(_, connection)| connection.stats().path.current_mtu)
    }
}

struct QuinnStream<'a> {
    connection: &'a mut Connection,
    id: StreamId,
}

impl ByteStream for QuinnStream<'_> {
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
        .stream_receive_window(STREAM_WINDOW.into());
    transport
}

fn envelope(config: &PeerConfig, transmit: &Transmit) -> Envelope {
    // A client has one address at a time: the one that it moved to last.
    let from = transmit.src_ip.filter(|_| !config.role.is_client());
    Envelope {
        local: config.local_address(from),
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
