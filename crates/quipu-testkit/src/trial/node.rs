//! One end of a trial: our engine with its application.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use quipu_base::{Duration, Instant, PathId, Role, Seed};
use quipu_null_tls::{NullClient, NullResetKey, NullServer};
use quipu_quic::endpoint::{ClientConfig, Closed, EndpointConfig, ServerConfig};
use quipu_quic::error::ErrorCode;
use quipu_quic::tls::{ClientTls, ServerTls};
use quipu_quic::{
    Arrival, Connection, ConnectionEvent, ConnectionHandle, Drain, Endpoint, Outbox, Route,
    Transmit,
};
use quipu_sim::{Envelope, Node, Outgoing};

use super::application::Application;
use super::clock::Clock;
use super::news::News;
use super::{Op, Rule, Trial};
use crate::forge::{Book, Meter, Tap, Vault};
use crate::node::patient;
use crate::{Middlebox, SERVER_NAME, SimOutbox, Strict, Watch, server_address};

/// The code with which trials close.
pub(crate) const CLOSE_CODE: u64 = 9;

/// As many datagrams at one instant are taken for a loop without end.
const MOST_AT_ONCE: usize = 10_000;

/// Bytes that a connection may hold when it is dropped, with all that it has learnt of its paths, beside
/// what its application wrote and the peer may not have: that is held until then, whether the connection
/// is over or not.
const MOST_HELD: i64 = 400_000;

/// Bytes that an endpoint may hold without connections.
const MOST_HELD_BY_ENDPOINT: i64 = 16_000;

/// What somebody knows who has the keys of an end and sees all datagrams.
pub(super) type SharedBook = Rc<RefCell<Book>>;

/// One end.
pub(crate) struct TrialNode {
    role: Role,
    endpoint: Endpoint,
    handle: Option<ConnectionHandle>,
    batch: usize,
    /// Of the one connection's policies.
    pub(crate) watch: Watch,
    /// The client's addresses that are not in use, per link.
    free: Vec<Vec<SocketAddr>>,
    /// Under which address the client opened a path.
    pub(crate) addresses: Vec<(PathId, SocketAddr)>,
    pub(crate) application: Application,
    /// The client opens the paths of these links when the handshake is confirmed.
    to_open: std::ops::Range<usize>,
    client: Option<ClientConfig>,
    /// The client's addresses, per link.
    links: Vec<Vec<SocketAddr>>,
    /// What stands before it.
    middlebox: Middlebox,
    clock: Clock,
    /// The world's time when it was last heard of.
    world: Instant,
    /// Until when the socket takes nothing over which link.
    blocked: Vec<(usize, Instant)>,
    /// What the application was told of paths.
    pub(super) news: News,
    /// It forgot its connection.
    pub(super) is_lost: bool,
    /// Somebody uses the keys of one of the ends.
    pub(super) is_hostile: bool,
    /// Its keys, if somebody uses them.
    pub(super) vault: Option<Vault>,
    /// Those who see what it sends.
    books: Vec<SharedBook>,
    /// A deadline was served, and what came of it is not known yet.
    served: bool,
    /// A deadline that was served and of which nothing came.
    pub(crate) stuck: Option<Instant>,
}

impl TrialNode {
    /// An end of `trial`. `addresses`: the client's, per link; `tls`: of both.
    pub(crate) fn new(
        trial: &Trial,
        role: Role,
        addresses: &[Vec<SocketAddr>],
        tls: &(NullClient, NullServer),
    ) -> Self {
        let mut endpoint = endpoint(role, 0);
        let transport = Arc::new(trial.transport());
        let chosen = &trial.policies[usize::from(!role.is_client())];
        let watch = Watch::new(chosen).expect("a choice of policies");
        let vault = trial.forges(role).then(Vault::default);
        let client = role.is_client().then(|| {
            let mut tls: Arc<dyn ClientTls> = Arc::new(tls.0.clone());
            if let Some(vault) = &vault {
                tls = Arc::new(Tap::new(tls, vault.clone()));
            }
            ClientConfig::new(tls, Arc::clone(&transport), watch.policies())
                .with_handshake_timeout(Duration::ZERO)
        });
        if !role.is_client() {
            let mut tls: Arc<dyn ServerTls> = Arc::new(tls.1.clone());
            if let Some(vault) = &vault {
                tls = Arc::new(Tap::new(tls, vault.clone()));
            }
            let config = ServerConfig::new(tls, transport, watch.policies());
            endpoint.listen(config.with_admission(patient())).expect("a valid transport");
        }
        let mut free: Vec<Vec<SocketAddr>> = addresses.to_vec();
        free.iter_mut().for_each(|of_link| of_link.reverse());
        TrialNode {
            role,
            endpoint,
            handle: None,
            batch: trial.batch.min(MOST_AT_ONCE),
            watch,
            free,
            addresses: Vec::new(),
            application: Application::new(role, trial.is_hostile()),
            to_open: 1..trial.paths.len(),
            client,
            links: addresses.to_vec(),
            middlebox: match role {
                Role::Client => trial.middlebox(addresses),
                Role::Server => Middlebox::default(),
            },
            clock: Clock::default(),
            world: Instant::ZERO,
            blocked: Vec::new(),
            news: News::default(),
            is_lost: false,
            is_hostile: trial.is_hostile(),
            vault,
            books: Vec::new(),
            served: false,
            stuck: None,
        }
    }

    /// What it sends is read by those who keep these books.
    pub(super) fn be_seen_by(&mut self, books: &[SharedBook]) {
        self.books = books.to_vec();
    }

    /// The connection, once there is one.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        self.endpoint.connection(self.handle?)
    }

    /// When this end wants to be woken, by the world's time.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.endpoint.poll_timeout().map(|at| self.clock.world_at(self.world, at))
    }

    /// Does one operation of this end.
    pub(crate) fn apply(&mut self, world: Instant, op: &Op) {
        self.world = world;
        match *op {
            Op::OpenPath(link) => return self.open_path(self.clock.shows(world), link),
            Op::Block(_, link, millis) => {
                self.blocked.push((link, world + Duration::from_millis(millis)));
                return;
            }
            Op::Leap(_, millis) => return self.clock.leap(Duration::from_millis(millis)),
            Op::Stand(_, millis) => {
                return self.clock.stand(world, Duration::from_millis(millis));
            }
            _ => {}
        }
        let now = self.clock.shows(world);
        match *op {
            Op::Move(nth, link, is_gone) => return self.move_path(now, nth, link, is_gone),
            Op::Restart(_) => return self.restart(),
            _ => {}
        }
        let Some(connection) = self.handle.and_then(|h| self.endpoint.connection_mut(h)) else {
            return;
        };
        match op {
            Op::Abandon(_, nth) => {
                let path = connection.path_views().nth(*nth).map(|view| view.key.id);
                if let Some(path) = path {
                    connection.abandon_path(now, path, ErrorCode::APPLICATION_ABANDON_PATH);
                }
            }
            Op::Ping(_, nth) => {
                let path = connection.path_views().nth(*nth).map(|view| view.key.id);
                if let Some(path) = path {
                    connection.ping(now, path);
                }
            }
            Op::UpdateKeys(_) => {
                connection.update_keys();
            }
            Op::Policies(_, text) => {
                let policies = self.watch.replace(0, text).expect("a choice of policies");
                connection.set_policies(now, policies);
            }
            Op::Close(_) => connection.close(now, CLOSE_CODE, b"done"),
            op => self.application.apply(connection, now, op),
        }
    }

    /// Drops the connection, and then the endpoint, though it should have nothing left; what it has.
    pub(crate) fn forget(&mut self, meter: Meter) -> Option<Rule> {
        if let Some(handle) = self.handle.take() {
            let mut connection = self.endpoint.remove(handle);
            let freed = -meter(&mut || drop(connection.take())).held;
            let most = MOST_HELD.saturating_add_unsigned(self.application.kept());
            if freed > most {
                return Some(Rule::Memory { what: "a connection", held: freed, most });
            }
        }
        let left = self.endpoint.handles().count();
        let deadline = self.endpoint.poll_timeout();
        if left > 0 || deadline.is_some() {
            let what = format!("{left} connections, a deadline at {deadline:?}");
            return Some(Rule::Left { what });
        }
        let mut old = Some(std::mem::replace(&mut self.endpoint, endpoint(self.role, 9)));
        let (held, most) = (-meter(&mut || drop(old.take())).held, MOST_HELD_BY_ENDPOINT);
        (held > most).then_some(Rule::Memory { what: "an endpoint", held, most })
    }

    /// The host starts anew, if there is a connection to forget.
    fn restart(&mut self) {
        if self.connection().is_some_and(Connection::is_connected) {
            self.endpoint = endpoint(self.role, 1);
            self.handle = None;
            self.is_lost = true;
        }
    }

    fn move_path(&mut self, now: Instant, nth: usize, link: usize, is_gone: bool) {
        let Some(connection) = self.handle.and_then(|h| self.endpoint.connection_mut(h)) else {
            return;
        };
        let Some(&local) = self.free.get(link).and_then(|of_link| of_link.last()) else { return };
        let Some(path) = connection.path_views().nth(nth).map(|view| view.key.id) else { return };
        let route = Route::new(local, server_address());
        let moved = if is_gone {
            connection.rebind(now, path, route)
        } else {
            connection.migrate(now, path, route)
        };
        if moved.is_ok() {
            self.free[link].pop();
        }
    }

    /// Everything is ended and read from now on.
    pub(crate) fn wind_up(&mut self, world: Instant) {
        self.world = world;
        let now = self.clock.shows(world);
        let connection = self.handle.and_then(|h| self.endpoint.connection_mut(h));
        self.application.wind_up(connection, now);
    }

    fn connect(&mut self, now: Instant) {
        let Some(config) = self.client.take() else { return };
        let local = self.free[0].pop().expect("a link has addresses");
        let route = Route::new(local, server_address());
        let handle = self.endpoint.connect(now, &config, SERVER_NAME, route);
        self.handle = Some(handle.expect("a valid configuration"));
        self.addresses.push((PathId::ZERO, local));
    }

    fn open_path(&mut self, now: Instant, link: usize) {
        let Some(connection) = self.handle.and_then(|h| self.endpoint.connection_mut(h)) else {
            return;
        };
        let Some(&local) = self.free.get(link).and_then(|of_link| of_link.last()) else { return };
        let route = Route::new(local, server_address());
        if let Ok(path) = connection.open_path(now, route) {
            self.free[link].pop();
            self.addresses.push((path, local));
        }
    }

    fn advance(&mut self, now: Instant) {
        self.connect(now);
        if self.handle.is_none() && !self.is_lost {
            self.handle = self.endpoint.accept();
        }
        let mut confirmed = false;
        if let Some(connection) = self.handle.and_then(|h| self.endpoint.connection_mut(h)) {
            while let Some(event) = connection.poll() {
                confirmed |= event == ConnectionEvent::Confirmed;
                self.news.hear(&event);
                self.application.on_event(connection, now, &event);
            }
        }
        if confirmed && self.role.is_client() {
            for link in self.to_open.clone() {
                self.open_path(now, link);
            }
        }
    }

    /// Where the client is reached on a path.
    pub(super) fn seen_at(&self, world: Instant, path: PathId) -> Option<SocketAddr> {
        let route = self.connection()?.route(path)?;
        Some(self.middlebox.outside(world, route.local))
    }

    /// How a datagram of `length` bytes arrives, if the middlebox lets it pass.
    fn arrival(&mut self, world: Instant, envelope: &Envelope, length: usize) -> Option<Arrival> {
        self.world = world;
        let local = self.middlebox.inside(world, envelope.local)?;
        let passes = self.middlebox.passes(world, local, length);
        passes.then(|| Arrival { route: Route::new(local, envelope.remote), ecn: envelope.ecn })
    }
}

impl Node for TrialNode {
    fn handle_datagram(&mut self, world: Instant, envelope: &Envelope, payload: &mut [u8]) {
        if let Some(arrival) = self.arrival(world, envelope, payload.len()) {
            self.endpoint.handle_datagram(self.clock.shows(world), arrival, payload);
        }
    }

    fn handle_buffer(
        &mut self,
        world: Instant,
        envelope: &Envelope,
        buffer: &mut Box<[u8]>,
        length: usize,
    ) {
        if let Some(arrival) = self.arrival(world, envelope, length) {
            self.endpoint.handle_buffer(self.clock.shows(world), arrival, buffer, length);
        }
    }

    fn handle_timeout(&mut self, world: Instant) {
        self.world = world;
        let now = self.clock.shows(world);
        self.served = self.endpoint.poll_timeout().is_some_and(|at| at <= now);
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, world: Instant, out: &mut Outgoing<'_>) {
        self.world = world;
        let now = self.clock.shows(world);
        let blocked = self.blocked.len();
        self.blocked.retain(|(_, until)| *until > world);
        if self.blocked.len() < blocked {
            self.endpoint.handle_unblocked();
        }
        self.advance(now);
        let mut sent = 0;
        loop {
            let blocked = self.blocked.iter().filter_map(|(link, _)| self.links.get(*link));
            let blocked: Vec<SocketAddr> = blocked.flatten().copied().collect();
            let batch = Batch { inner: SimOutbox(out), left: self.batch, blocked: &blocked };
            let mut outbox = Strict::new(batch);
            let drain = self.endpoint.poll_transmit(now, &mut outbox);
            sent += self.batch - outbox.inner().left;
            if drain != Drain::Full {
                break;
            }
            assert!(outbox.has_refused(), "stopped at {now} although there was room");
            assert!(sent < MOST_AT_ONCE, "{sent} datagrams at {now}, and more to come");
        }
        let (middlebox, books, role) = (&self.middlebox, &self.books, self.role);
        out.filter(|envelope, payload| {
            for book in books {
                book.borrow_mut().read(world, role, envelope.remote, payload);
            }
            let passes = middlebox.passes(world, envelope.local, payload.len());
            envelope.local = middlebox.outside(world, envelope.local);
            passes
        });
        let stands = self.endpoint.poll_timeout().is_some_and(|at| at <= now);
        if std::mem::take(&mut self.served) && sent == 0 && stands {
            self.stuck.get_or_insert(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let unblocked = self.blocked.iter().map(|(_, until)| *until).min();
        [self.deadline(), unblocked].into_iter().flatten().min()
    }
}

/// The endpoint of an end, which can reset the connections that one before it had, and keeps those that are
/// over.
fn endpoint(role: Role, start: u64) -> Endpoint {
    let seed = Seed::new(1).child("trial", u64::from(role.is_client()));
    let reset_key = Arc::new(NullResetKey::new(&[u8::from(role.is_client()); 32]));
    let config = EndpointConfig {
        closed: Closed::Kept,
        reset_key: Some(reset_key),
        ..EndpointConfig::default()
    };
    Endpoint::seeded_with(config, seed.stream("endpoint", start)).expect("a valid configuration")
}

/// An outbox that takes so many datagrams at a time, and none of some addresses of the client.
struct Batch<'a, 'b> {
    inner: SimOutbox<'a, 'b>,
    left: usize,
    blocked: &'a [SocketAddr],
}

impl Outbox for Batch<'_, '_> {
    fn has_room(&self) -> bool {
        self.left > 0
    }

    fn is_blocked(&self, route: &Route) -> bool {
        self.blocked.iter().any(|address| [route.local, route.remote].contains(address))
    }

    fn buffer(&mut self, size: usize) -> &mut [u8] {
        self.inner.buffer(size)
    }

    fn send(&mut self, transmit: Transmit) {
        self.left -= 1;
        self.inner.send(transmit);
    }
}
