//! One end under attack: an endpoint with its application, driven by hand and measured.

use std::net::SocketAddr;
use std::sync::Arc;

use quipu_base::{Instant, Role, Seed};
use quipu_null_tls::NullTokenKey;
use quipu_quic::connection::CloseReason;
use quipu_quic::endpoint::{Admission, ClientConfig, PolicyFactory, ServerConfig, TokenConfig};
use quipu_quic::tls::{ClientStart, ClientTls, ServerTls};
use quipu_quic::transport_parameters::TransportParameters;
use quipu_quic::wire::{ConnectionId, Version};
use quipu_quic::{
    Arrival, Connection, ConnectionEvent, ConnectionHandle, Drain, Endpoint, Outbox, Route,
    Transmit, TransportConfig,
};

use super::tap::{EditParameters, Tap, Vault};
use crate::{SERVER_NAME, Tls, client_address, plain_policies, server_address};

/// Bytes that an end sends at most before they are taken away.
const ARENA: usize = 512 << 10;
/// Datagrams, the same.
const MOST_DATAGRAMS: usize = 1024;
/// The longest datagram.
const LONGEST: usize = 65_527;
/// As often an end is polled for one input; more is taken for a loop without end.
const MOST_POLLS: usize = 256;

/// Memory that a piece of work took and kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    /// Bytes that it holds now and did not hold before.
    pub held: i64,
    /// The most bytes that it held while it ran, above those before.
    pub peak: u64,
    /// How often it asked for memory.
    pub count: u64,
}

/// Does a piece of work and says what memory it took: that of a test binary with a counting
/// allocator.
pub type Meter = fn(&mut dyn FnMut()) -> Allocated;

/// Measures nothing.
pub fn unmetered(work: &mut dyn FnMut()) -> Allocated {
    work();
    Allocated::default()
}

/// What an end did, all its connections together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Datagrams that it received.
    pub datagrams_in: u64,
    /// Their UDP payload in bytes.
    pub bytes_in: u64,
    /// Datagrams that it sent.
    pub datagrams_out: u64,
    /// Their UDP payload in bytes.
    pub bytes_out: u64,
    /// Bytes of memory that it holds, as far as it is measured.
    pub held: i64,
    /// The most that it held.
    pub peak: i64,
    /// How often it asked for memory.
    pub allocations: u64,
}

impl Work {
    /// What was done since `before`; the peak is that of all time.
    pub fn since(self, before: Work) -> Work {
        Work {
            datagrams_in: self.datagrams_in - before.datagrams_in,
            bytes_in: self.bytes_in - before.bytes_in,
            datagrams_out: self.datagrams_out - before.datagrams_out,
            bytes_out: self.bytes_out - before.bytes_out,
            held: self.held - before.held,
            peak: self.peak - before.held,
            allocations: self.allocations - before.allocations,
        }
    }
}

/// What an application does with an event of its connection.
pub type Application = Box<dyn FnMut(&mut Connection, Instant, &ConnectionEvent)>;

/// How to make the ends of a connection.
#[derive(Clone)]
pub struct Setup {
    /// TLS of both ends.
    pub tls: Tls,
    /// Transport of the client.
    pub client: TransportConfig,
    /// Transport of the server.
    pub server: TransportConfig,
    /// Policies of both.
    pub policies: PolicyFactory,
    /// What an end declares instead of its transport parameters.
    pub declare: [Option<EditParameters>; 2],
    /// Packets that may fail to open, in place of the limit of the AEAD.
    pub integrity_limit: Option<u64>,
    /// Connections that the server has at a time.
    pub max_connections: usize,
    /// The server asks each client for another try, by a Retry packet.
    pub retries: bool,
    /// Seed of both endpoints.
    pub seed: Seed,
    /// Measures both.
    pub meter: Meter,
    /// The application polls and reads, or leaves everything where it is.
    pub reads: bool,
}

impl Default for Setup {
    /// Null TLS, the transport's defaults, the plainest policies.
    fn default() -> Self {
        Setup {
            tls: Tls::Null { chain: 1000 },
            client: TransportConfig::default(),
            server: TransportConfig::default(),
            policies: plain_policies(),
            declare: [None, None],
            integrity_limit: None,
            max_connections: 100,
            retries: false,
            seed: Seed::new(1),
            meter: unmetered,
            reads: true,
        }
    }
}

impl Setup {
    /// The same without multipath.
    #[must_use]
    pub fn on_one_path(mut self) -> Self {
        self.client.max_paths = 1;
        self.server.max_paths = 1;
        self
    }

    /// The end of `role` declares what `edit` makes of its transport parameters.
    #[must_use]
    pub fn declaring(
        mut self,
        role: Role,
        edit: impl Fn(&mut TransportParameters) + Send + Sync + 'static,
    ) -> Self {
        self.declare[index(role)] = Some(Arc::new(move |encoded: &[u8]| {
            let mut parameters =
                TransportParameters::read(encoded, role).expect("an end declares what can be read");
            edit(&mut parameters);
            parameters.encode()
        }));
        self
    }

    /// The ClientHello of a client with this connection ID, which declares the transport parameters
    /// of an honest one.
    ///
    /// # Panics
    /// If TLS cannot start.
    pub fn client_hello(&self, scid: ConnectionId) -> Vec<u8> {
        let parameters = TransportParameters {
            initial_source_connection_id: Some(scid),
            initial_max_data: self.client.connection_window,
            initial_max_streams_bidi: self.client.max_streams,
            ..TransportParameters::default()
        };
        let session = self.tls.client().start(&ClientStart {
            server_name: SERVER_NAME,
            version: Version::V1,
            may_change: false,
            parameters: &parameters.encode(),
            early_data: false,
        });
        let mut hello = Vec::new();
        session.expect("a session starts").write(&mut hello);
        hello
    }

    fn tap<T: ?Sized>(&self, role: Role, tls: Arc<T>, vault: Vault) -> Tap<T> {
        Tap::new(tls, vault)
            .declaring(self.declare[index(role)].clone())
            .with_integrity_limit(self.integrity_limit)
    }

    fn transport(&self, role: Role) -> Arc<TransportConfig> {
        Arc::new(if role.is_client() { self.client.clone() } else { self.server.clone() })
    }
}

pub(super) const fn index(role: Role) -> usize {
    if role.is_client() { 0 } else { 1 }
}

/// Datagrams that an end sent, in memory that it does not count as its own.
struct Arena {
    bytes: Vec<u8>,
    used: usize,
    sent: Vec<(Transmit, usize)>,
}

impl Arena {
    fn new() -> Self {
        let sent = Vec::with_capacity(MOST_DATAGRAMS);
        Arena { bytes: vec![0; ARENA], used: 0, sent }
    }
}

impl Outbox for Arena {
    fn has_room(&self) -> bool {
        self.used + LONGEST <= self.bytes.len() && self.sent.len() < MOST_DATAGRAMS
    }

    fn buffer(&mut self, size: usize) -> &mut [u8] {
        let end = (self.used + size).min(self.bytes.len());
        &mut self.bytes[self.used..end]
    }

    fn send(&mut self, transmit: Transmit) {
        self.sent.push((transmit, self.used));
        self.used += transmit.len;
    }
}

/// A datagram that an end sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// From where to where, as its sender sees it.
    pub route: Route,
    /// Its ECN bits.
    pub ecn: u8,
    /// Its UDP payload.
    pub bytes: Vec<u8>,
}

/// One end with an endpoint of its own.
pub struct End {
    role: Role,
    endpoint: Endpoint,
    handle: Option<ConnectionHandle>,
    vault: Vault,
    arena: Arena,
    application: Option<Application>,
    reads: bool,
    meter: Meter,
    work: Work,
    /// The first deadline that was served without effect.
    stuck: Option<Instant>,
    confirmed: bool,
    /// Why its first connection ended, once its application knows.
    closed: Option<CloseReason>,
}

impl End {
    /// The server of `setup`, which waits.
    pub fn server(setup: &Setup) -> Self {
        let mut end = End::new(Role::Server, setup);
        let tap: Tap<dyn ServerTls> =
            setup.tap(Role::Server, setup.tls.server(), end.vault.clone());
        let transport = setup.transport(Role::Server);
        let config = ServerConfig::new(Arc::new(tap), transport, Arc::clone(&setup.policies))
            .with_max_connections(setup.max_connections);
        let config = if setup.retries {
            let admission = Admission { max_unvalidated: 0, ..Admission::default() };
            let key = Arc::new(NullTokenKey::new(&[1; 32]));
            config.with_admission(admission).with_tokens(TokenConfig::with_key(key))
        } else {
            config
        };
        end.endpoint.listen(config).expect("a valid transport");
        end
    }

    /// The client of `setup`, which connects from its first address.
    pub fn client(now: Instant, setup: &Setup) -> Self {
        let mut end = End::new(Role::Client, setup);
        let tap: Tap<dyn ClientTls> =
            setup.tap(Role::Client, setup.tls.client(), end.vault.clone());
        let transport = setup.transport(Role::Client);
        let config = ClientConfig::new(Arc::new(tap), transport, Arc::clone(&setup.policies));
        let route = Route::new(client_address(0), server_address());
        let endpoint = &mut end.endpoint;
        let mut handle = None;
        let allocated = (setup.meter)(&mut || {
            handle = endpoint.connect(now, &config, SERVER_NAME, route).ok();
        });
        end.handle = Some(handle.expect("a valid configuration"));
        end.count(allocated);
        end
    }

    fn new(role: Role, setup: &Setup) -> Self {
        let name = if role.is_client() { "client" } else { "server" };
        End {
            role,
            endpoint: Endpoint::seeded(setup.seed.stream(name, 0)),
            handle: None,
            vault: Vault::default(),
            arena: Arena::new(),
            application: None,
            reads: setup.reads,
            meter: setup.meter,
            work: Work::default(),
            stuck: None,
            confirmed: false,
            closed: None,
        }
    }

    /// Which end.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Its keys.
    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    /// Its endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The same, to call it.
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// Lets its application do something with its first connection, and counts what that takes;
    /// `None` if there is no connection.
    pub fn act<R>(&mut self, act: impl FnOnce(&mut Connection) -> R) -> Option<R> {
        let handle = self.handle?;
        let endpoint = &mut self.endpoint;
        let (mut act, mut result) = (Some(act), None);
        let allocated = (self.meter)(&mut || {
            if let (Some(connection), Some(act)) = (endpoint.connection_mut(handle), act.take()) {
                result = Some(act(connection));
            }
        });
        self.count(allocated);
        result
    }

    /// Its first connection.
    pub fn connection(&self) -> Option<&Connection> {
        self.endpoint.connection(self.handle?)
    }

    /// The same, to call it.
    pub fn connection_mut(&mut self) -> Option<&mut Connection> {
        self.endpoint.connection_mut(self.handle?)
    }

    /// Why its first connection ended, if it did.
    pub fn close_reason(&self) -> Option<&CloseReason> {
        self.connection().and_then(Connection::close_reason).or(self.closed.as_ref())
    }

    /// True once its first connection is confirmed.
    pub fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// From now on `application` gets the events of the first connection, after which nothing is
    /// read by itself.
    pub fn serve(&mut self, application: Application) {
        self.application = Some(application);
        self.reads = false;
    }

    /// What it did so far.
    pub fn work(&self) -> Work {
        self.work
    }

    /// The first deadline that was served although nothing came of it and the next is no later.
    pub fn stuck(&self) -> Option<Instant> {
        self.stuck
    }

    /// When it wants to be woken.
    pub fn deadline(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    /// A datagram comes.
    pub fn receive(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]) {
        self.work.datagrams_in += 1;
        self.work.bytes_in += datagram.len() as u64;
        let endpoint = &mut self.endpoint;
        let allocated = (self.meter)(&mut || {
            endpoint.handle_datagram(now, arrival, datagram);
        });
        self.count(allocated);
    }

    /// Its deadline has come.
    pub fn wake(&mut self, now: Instant) {
        let endpoint = &mut self.endpoint;
        let allocated = (self.meter)(&mut || endpoint.handle_timeout(now));
        self.count(allocated);
    }

    /// Lets the application run, and the end send all that it wants to.
    pub fn run(&mut self, now: Instant) -> Vec<Sent> {
        let mut sent = Vec::new();
        for _ in 0..MOST_POLLS {
            self.run_application(now);
            let (endpoint, arena) = (&mut self.endpoint, &mut self.arena);
            let mut drain = Drain::Rest;
            let allocated = (self.meter)(&mut || drain = endpoint.poll_transmit(now, arena));
            self.count(allocated);
            let before = sent.len();
            for (transmit, at) in self.arena.sent.drain(..) {
                let bytes = self.arena.bytes[at..at + transmit.len].to_vec();
                sent.push(Sent { route: transmit.route, ecn: transmit.ecn, bytes });
            }
            self.arena.used = 0;
            let new = &sent[before..];
            self.work.datagrams_out += new.len() as u64;
            self.work.bytes_out += new.iter().map(|sent| sent.bytes.len() as u64).sum::<u64>();
            if drain == Drain::Rest {
                return sent;
            }
        }
        self.stuck.get_or_insert(now);
        sent
    }

    /// Serves the deadlines up to `until`; what it sent, and when.
    pub fn wait(&mut self, now: Instant, until: Instant) -> Vec<(Instant, Sent)> {
        let (mut now, mut sent, mut idle) = (now, Vec::new(), 0);
        while let Some(at) = self.deadline()
            && at <= until
        {
            now = now.max(at);
            self.wake(now);
            let more = self.run(now);
            // After a served deadline the next lies later, or something was sent.
            let moved = self.deadline().is_none_or(|next| next > now) || !more.is_empty();
            idle = if moved { 0 } else { idle + 1 };
            sent.extend(more.into_iter().map(|sent| (now, sent)));
            if idle > 0 {
                self.stuck.get_or_insert(now);
                break;
            }
        }
        sent
    }

    /// Drops all connections; what the end holds then is what it will hold for ever.
    pub fn drop_connections(&mut self) {
        let handles: Vec<_> = self.endpoint.handles().collect();
        let endpoint = &mut self.endpoint;
        let allocated = (self.meter)(&mut || {
            for &handle in &handles {
                drop(endpoint.remove(handle));
            }
        });
        self.count(allocated);
        self.handle = None;
    }

    fn run_application(&mut self, now: Instant) {
        while self.handle.is_none()
            && let Some(handle) = self.endpoint.accept()
        {
            self.handle = Some(handle);
        }
        let (handle, reads) = (self.handle, self.reads);
        let (endpoint, application) = (&mut self.endpoint, &mut self.application);
        let (confirmed, closed) = (&mut self.confirmed, &mut self.closed);
        let Some(handle) = handle else { return };
        let allocated = (self.meter)(&mut || {
            let Some(connection) = endpoint.connection_mut(handle) else { return };
            if !reads && application.is_none() && *confirmed {
                return;
            }
            while let Some(event) = connection.poll() {
                *confirmed |= event == ConnectionEvent::Confirmed;
                if let ConnectionEvent::Closed(reason) = &event {
                    *closed = Some(reason.clone());
                }
                if let Some(application) = application {
                    application(connection, now, &event);
                } else if let ConnectionEvent::Readable(stream) = event
                    && reads
                {
                    // Fails for a stream that was reset meanwhile.
                    let _ = connection.read(now, stream, &mut |_| {});
                }
                if !reads && application.is_none() && *confirmed {
                    break;
                }
            }
        });
        self.count(allocated);
    }

    fn count(&mut self, allocated: Allocated) {
        // A piece of work never takes as much as an `i64` counts.
        self.work.peak = self.work.peak.max(self.work.held + allocated.peak as i64);
        self.work.held += allocated.held;
        self.work.allocations += allocated.count;
    }
}

/// How a datagram that was sent over `route` arrives.
pub(super) fn arrival(route: Route, ecn: u8) -> Arrival {
    Arrival { route: Route::new(route.remote, route.local), ecn }
}

/// The first address of an end.
pub(super) fn first_address(role: Role) -> SocketAddr {
    if role.is_client() { client_address(0) } else { server_address() }
}
