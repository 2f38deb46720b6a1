//! Endpoints: sockets with the connections behind them.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use quipu_base::{Bytes, Duration, Role};
use quipu_quic::ConfigError;
use quipu_quic::connection_ids::RandomIds;
use quipu_quic::endpoint::{ClientConfig, EndpointConfig, ServerConfig};
use quipu_quic::recorder::RecorderFactory;
use quipu_quic::tls::rustls::{provider, secure_source};
use tokio::runtime::Handle;

use crate::batches::SendCounters;
use crate::changes::Changes;
use crate::clock::Clock;
use crate::connecting;
use crate::connection::Connection;
use crate::driver::drive;
use crate::engine::{Engine, Parts};
use crate::error::{BindError, ConnectError};
use crate::incoming::Incoming;
use crate::recording::Recording;
use crate::shards::Shards;
use crate::socket::{KERNEL_BUFFER, Sharing, Socket, wildcards};
use crate::spans;
use crate::state::Shared;
use crate::timer::Timer;
use crate::uplink::{Uplink, Via, resolve};
use crate::watch::watch;

/// Tries to find a port that is free in both families.
const PORT_TRIES: usize = 16;

/// Sockets with the connections behind them. Clones are the same endpoint.
///
/// A task of the runtime that it is made in drives it, until nobody holds the endpoint any more and
/// all its connections have ended.
#[derive(Clone)]
pub struct Endpoint {
    shared: Arc<Shared>,
    /// Drops with the last clone.
    _holder: Arc<Holder>,
    /// What a client leaves by, as it was named; empty: as the host's routes say.
    vias: Arc<[Via]>,
    /// The same as it was when the client was bound.
    uplinks: Arc<[Uplink]>,
}

struct Holder(Arc<Shared>);

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.act(|state, _| state.abandoned = true);
    }
}

/// What an endpoint did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Connections, those that are closing included.
    pub connections: usize,
    /// Clients that wait for [`Endpoint::accept`].
    pub waiting: usize,
    /// Times that its task was woken. An idle endpoint sleeps.
    pub wakeups: u64,
    /// Calls of the kernel that brought datagrams.
    pub receive_calls: u64,
    /// Datagrams that came.
    pub datagrams_received: u64,
    /// Datagrams that other shards received and gave it: see [`ServerBuilder::bind_shards`].
    pub datagrams_given: u64,
    /// Bytes of those, of UDP payload.
    pub bytes_received: u64,
    /// Datagrams that were for no connection.
    pub ignored: u64,
    /// What was sent.
    pub sent: SendCounters,
}

/// What both kinds of endpoints are made of.
#[derive(Clone)]
struct Settings {
    config: EndpointConfig,
    recorders: Option<RecorderFactory>,
    recording: Option<Recording>,
    kernel_buffer: Bytes,
}

impl Default for Settings {
    fn default() -> Self {
        let config = EndpointConfig::default();
        Settings { config, recorders: None, recording: None, kernel_buffer: KERNEL_BUFFER }
    }
}

/// How a client is made.
#[derive(Clone, Default)]
pub struct ClientBuilder {
    vias: Vec<Via>,
    settings: Settings,
}

/// How a server is made.
#[derive(Clone)]
pub struct ServerBuilder {
    server: ServerConfig,
    addresses: Vec<SocketAddr>,
    settings: Settings,
}

impl ClientBuilder {
    /// It leaves by that, too. Without any it leaves as the host's routes say, and has one path.
    #[must_use]
    pub fn via(mut self, via: Via) -> Self {
        self.vias.push(via);
        self
    }

    /// Connection IDs, reset keys and what else all connections share.
    #[must_use]
    pub fn config(mut self, config: EndpointConfig) -> Self {
        self.settings.config = config;
        self
    }

    /// Connections have recorders that `recorders` makes.
    #[must_use]
    pub fn record(mut self, recorders: RecorderFactory) -> Self {
        self.settings.recorders = Some(recorders);
        self
    }

    /// Notes all that the engine is given, for a [`replay`](crate::replay).
    #[must_use]
    pub fn record_inputs(mut self, recording: &Recording) -> Self {
        self.settings.recording = Some(recording.clone());
        self
    }

    /// Bytes that the kernel is asked to keep for each socket and direction; it may keep less. Default
    /// 4 MiB.
    #[must_use]
    pub fn kernel_buffer(mut self, bytes: Bytes) -> Self {
        self.settings.kernel_buffer = bytes;
        self
    }

    /// Opens the sockets: one for each uplink, bound to its interface and address. An address that cannot be
    /// bound, such as one that is still being checked, is left out if the same [`Via`] has another that can; it
    /// becomes a path later.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn bind(self) -> Result<Endpoint, BindError> {
        let _runtime = Handle::try_current().map_err(|_| BindError::NoRuntime)?;
        let named = self.vias.iter().map(|via| resolve(std::slice::from_ref(via)));
        let named = named.collect::<Result<Vec<_>, _>>()?;
        let buffer = self.settings.kernel_buffer;
        let bind = |uplink: &Uplink| Socket::leave_by(uplink.clone(), buffer);
        let (uplinks, sockets) = bind_uplinks(named, bind)?;
        let mut endpoint = Endpoint::start(self.settings, None, uplinks, sockets)?;
        endpoint.vias = self.vias.into();
        Ok(endpoint)
    }
}

/// The uplinks that can be bound, with what `bind` makes of them: at least one of each list.
fn bind_uplinks<S>(
    named: Vec<Vec<Uplink>>,
    bind: impl Fn(&Uplink) -> Result<S, BindError>,
) -> Result<(Vec<Uplink>, Vec<S>), BindError> {
    let mut bound: Vec<(Uplink, S)> = Vec::new();
    for uplinks in named {
        let (mut any, mut failed) = (false, None);
        for uplink in uplinks {
            if bound.iter().any(|(other, _)| other.address == uplink.address) {
                any = true;
                continue;
            }
            match bind(&uplink) {
                Ok(socket) => {
                    bound.push((uplink, socket));
                    any = true;
                }
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed.filter(|_| !any) {
            return Err(error);
        }
    }
    Ok(bound.into_iter().unzip())
}

impl ServerBuilder {
    /// It listens there, too. An unspecified address, such as `[::]:443`, stands for all addresses of
    /// both families; port 0 for one that the host chooses.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.addresses.push(address);
        self
    }

    /// Connection IDs, reset keys and what else all connections share.
    #[must_use]
    pub fn config(mut self, config: EndpointConfig) -> Self {
        self.settings.config = config;
        self
    }

    /// Connections have recorders that `recorders` makes.
    #[must_use]
    pub fn record(mut self, recorders: RecorderFactory) -> Self {
        self.settings.recorders = Some(recorders);
        self
    }

    /// Notes all that the engine is given, for a [`replay`](crate::replay).
    #[must_use]
    pub fn record_inputs(mut self, recording: &Recording) -> Self {
        self.settings.recording = Some(recording.clone());
        self
    }

    /// Bytes that the kernel is asked to keep for each socket and direction; it may keep less. Default
    /// 4 MiB.
    #[must_use]
    pub fn kernel_buffer(mut self, bytes: Bytes) -> Self {
        self.settings.kernel_buffer = bytes;
        self
    }

    /// Opens the sockets.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn bind(self) -> Result<Endpoint, BindError> {
        let sockets = self.open(Sharing::Alone)?;
        Endpoint::start(self.settings, Some(self.server), Vec::new(), sockets)
    }

    /// Opens `count` servers that share the addresses, so that they use as many processors, from 1 to 256.
    /// Each has sockets, a task and limits of its own, and is to be accepted from; a connection stays where
    /// it began. The system spreads clients over them (SO_REUSEPORT; Linux evenly, others may give
    /// all to one). Datagrams of a client that moved may come to another one, which gives them to the
    /// right one: connection IDs are [`RandomIds`] for that, of the configured length.
    ///
    /// # Errors
    /// See [`BindError`]. Inputs of shards cannot be [recorded](ServerBuilder::record_inputs).
    pub fn bind_shards(self, count: u16) -> Result<Vec<Endpoint>, BindError> {
        if self.settings.recording.is_some() {
            let (field, value, expected) = ("record_inputs", "set".into(), "none, with shards");
            return Err(ConfigError { field, value, expected }.into());
        }
        let ids = RandomIds::new(self.settings.config.connection_ids.length())?;
        let (mut endpoints, mut all_ids) = (Vec::new(), Vec::new());
        // Checks the count, too.
        ids.for_shard(0, count)?;
        let first = self.open(Sharing::First)?;
        // The others have the ports that the host chose for the first.
        let (addresses, buffer) = (first.iter().map(Socket::local), self.settings.kernel_buffer);
        let addresses: Vec<_> = addresses.collect();
        let mut first = Some(first);
        for index in 0..=u8::try_from(count - 1).unwrap_or(u8::MAX) {
            let next = || {
                let sockets = addresses.iter();
                sockets.map(|address| Socket::listen(*address, buffer, Sharing::Next)).collect()
            };
            let sockets = first.take().map_or_else(next, Ok)?;
            let ids = ids.for_shard(index, count)?;
            let mut settings = self.settings.clone();
            settings.config.connection_ids = Arc::new(ids);
            endpoints.push(Endpoint::start(
                settings,
                Some(self.server.clone()),
                Vec::new(),
                sockets,
            )?);
            all_ids.push(ids);
        }
        let all: Arc<[Weak<Shared>]> =
            endpoints.iter().map(|endpoint| Arc::downgrade(&endpoint.shared)).collect();
        for (own, (endpoint, ids)) in endpoints.iter().zip(all_ids).enumerate() {
            // It is empty before.
            let _ = endpoint.shared.shards.set(Shards::new(ids, own, Arc::clone(&all)));
        }
        Ok(endpoints)
    }

    /// Opens the sockets of one server.
    fn open(&self, sharing: Sharing) -> Result<Vec<Socket>, BindError> {
        let _runtime = Handle::try_current().map_err(|_| BindError::NoRuntime)?;
        let buffer = self.settings.kernel_buffer;
        let mut sockets = Vec::new();
        for &address in &self.addresses {
            if address.ip().is_unspecified() {
                sockets.extend(listen_everywhere(address.port(), buffer, sharing)?);
            } else {
                sockets.push(Socket::listen(address, buffer, sharing)?);
            }
        }
        Ok(sockets)
    }
}

/// A wildcard socket for each family that the host has, on one port.
fn listen_everywhere(port: u16, buffer: Bytes, sharing: Sharing) -> Result<Vec<Socket>, BindError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let [v4, _] = wildcards(port);
        let first = Socket::listen(v4, buffer, sharing);
        let chosen = first.as_ref().map_or(port, |socket| socket.local().port());
        let [_, v6] = wildcards(chosen);
        match (first, Socket::listen(v6, buffer, sharing)) {
            (Ok(first), Ok(second)) => return Ok(vec![first, second]),
            // Another program has the port in the other family.
            (Ok(_), Err(BindError::InUse(_))) if port == 0 && tries < PORT_TRIES => {}
            (Err(error @ BindError::InUse(_)), _) | (Ok(_), Err(error @ BindError::InUse(_))) => {
                return Err(error);
            }
            // A host of one family.
            (Ok(only), Err(_)) | (Err(_), Ok(only)) => return Ok(vec![only]),
            (Err(error), Err(_)) => return Err(error),
        }
    }
}

impl Endpoint {
    /// A client, to be bound.
    pub fn client() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A server, to be bound. Every client that the limits of [`ServerConfig::admission`] let in waits
    /// for [`Endpoint::accept`].
    pub fn server(server: ServerConfig) -> ServerBuilder {
        ServerBuilder { server, addresses: Vec::new(), settings: Settings::default() }
    }

    fn start(
        Settings { config, recorders, recording, kernel_buffer }: Settings,
        server: Option<ServerConfig>,
        uplinks: Vec<Uplink>,
        sockets: Vec<Socket>,
    ) -> Result<Endpoint, BindError> {
        let runtime = Handle::try_current().map_err(|_| BindError::NoRuntime)?;
        let clock = Clock::start();
        let source = secure_source(&provider());
        let role = if server.is_some() { Role::Server } else { Role::Client };
        let server = server.map(|server| (server, Clock::unix_time()));
        let parts = Parts { config, source, server, recorders };
        let engine = Engine::new(parts, clock.now(), recording)?;
        let timer = Timer::new().map_err(BindError::Timer)?;
        let span = spans::of_endpoint(role, &sockets);
        let shared = Arc::new(Shared::new(engine, clock, kernel_buffer, span));
        for socket in sockets {
            shared.lock().add_socket(socket, clock.now());
        }
        // Without them the uplinks are looked at once a second.
        let changes = (!uplinks.is_empty()).then(|| Changes::new().ok()).flatten();
        runtime.spawn(drive(Arc::clone(&shared), timer, changes));
        let holder = Arc::new(Holder(Arc::clone(&shared)));
        Ok(Endpoint { shared, _holder: holder, vias: Arc::new([]), uplinks: uplinks.into() })
    }

    /// Opens a connection to the server at `remote`, whose certificate has to be for `server_name`.
    /// Returns when the handshake is complete.
    ///
    /// On Linux, it fails at once if the server's host answers that nobody has the port (ICMP port
    /// unreachable), of a datagram that it quotes. What else the network says of the handshake is told
    /// when it times out; nothing is heard once the server has answered.
    ///
    /// A client with several uplinks tries the next one every 250 ms, or as soon as one fails, until
    /// one gets an answer. The others become further paths as soon as both ends allow it, if the
    /// transport's `max_paths` does; [`Connection::path_events`] tells. So do uplinks that come later, and
    /// those that return: the host is asked which there are once a second, and on Linux whenever the kernel
    /// tells of a change. Paths of uplinks that are gone are abandoned; the last one, and the only one with a
    /// peer that allows no other, moves to an uplink that is left.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect(
        &self,
        config: &ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connection, ConnectError> {
        let (shared, uplinks) = (&self.shared, &self.uplinks);
        let connection = connecting::connect(shared, uplinks, config, remote, server_name).await?;
        self.watch(&connection, config, remote);
        Ok(connection)
    }

    /// The same, but if the transport has [`early_data`](quipu_quic::TransportConfig::early_data) and TLS the
    /// session of an earlier connection that allows it, this returns at once: streams may be opened and written
    /// before the handshake is over (0-RTT). Then uplinks are tried one after the other until the server is
    /// heard, beginning with the first, since what was written early is one connection's; the others become
    /// paths later. Each attempt takes a ticket of an earlier connection; without one, what was written goes
    /// once the handshake is complete. A server that was reached, but not heard, may act on it twice.
    /// [`Connection::early_data`] tells what became of it, and [`Connection::closed`] of a handshake that fails.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect_early(
        &self,
        config: &ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connection, ConnectError> {
        let (shared, uplinks) = (&self.shared, &self.uplinks);
        let connection =
            connecting::connect_early(shared, uplinks, config, remote, server_name).await?;
        self.watch(&connection, config, remote);
        Ok(connection)
    }

    /// Uplinks that come and go become paths, or the place to which the only path moves.
    fn watch(&self, connection: &Connection, config: &ClientConfig, remote: SocketAddr) {
        if !self.vias.is_empty() {
            let (vias, several) = (Arc::clone(&self.vias), config.transport.max_paths > 1);
            let shared = Arc::clone(&self.shared);
            tokio::spawn(watch(shared, connection.handle(), vias, remote, several));
        }
    }

    /// The next client that wants a connection, to be decided about; `None` once the endpoint is
    /// closed. Cancelling loses none.
    pub async fn accept(&self) -> Option<Incoming> {
        loop {
            let notified = self.shared.incoming.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            {
                let mut state = self.shared.lock();
                if state.closed {
                    return None;
                }
                let now = self.shared.clock.now();
                if let Some(incoming) = state.engine.poll_incoming(now) {
                    return Some(Incoming::new(Arc::clone(&self.shared), incoming));
                }
            }
            notified.await;
        }
    }

    /// The addresses that its sockets are bound to, in the order in which they were made.
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        let state = self.shared.lock();
        state.batches.sockets().iter().map(|socket| socket.local()).collect()
    }

    /// The addresses that a client leaves by, as [`ClientBuilder::via`] named them.
    pub fn uplinks(&self) -> &[Uplink] {
        &self.uplinks
    }

    /// Closes all connections with `code` and `reason`, and lets nobody in any more. What was not
    /// delivered is lost: see [`Connection::close_when_delivered`].
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.shared.act(|state, now| {
            state.closed = true;
            for (&handle, entry) in &mut state.entries {
                if entry.ended.is_none()
                    && let Some(mut connection) = state.engine.call(now, handle)
                {
                    connection.close(now, code, reason);
                    entry.end_by_application(code);
                }
            }
        });
        self.shared.incoming.notify_waiters();
    }

    /// Waits until no connection is left, those that are closing included: their peers have been told
    /// then, as far as the network allows. For that, the runtime has to go on.
    pub async fn wait_idle(&self) {
        loop {
            let notified = self.shared.idle.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let connections = self.shared.act(|state, _| state.engine.held().connections);
            if connections == 0 || self.shared.lock().is_gone() {
                return;
            }
            notified.await;
        }
    }

    /// The same, for at most that long. True if none is left.
    pub async fn wait_idle_for(&self, limit: Duration) -> bool {
        let limit = crate::clock::std_duration(limit);
        tokio::time::timeout(limit, self.wait_idle()).await.is_ok()
    }

    /// What it did so far.
    pub fn stats(&self) -> EndpointStats {
        let state = self.shared.lock();
        let held = state.engine.held();
        EndpointStats {
            connections: held.connections,
            waiting: held.waiting,
            wakeups: state.counters.wakeups,
            receive_calls: state.counters.receive_calls,
            datagrams_received: state.counters.datagrams_received,
            datagrams_given: state.counters.datagrams_given,
            bytes_received: state.counters.bytes_received,
            ignored: state.engine.ignored_datagrams(),
            sent: state.batches.counters(),
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("local", &self.local_addresses()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_fail_while_another_of_what_was_named_can_be_bound() {
        let uplink = |host: u8| Uplink {
            interface: None,
            index: None,
            address: [127, 0, 0, host].into(),
            usable: crate::uplink::Usable::Yes,
        };
        let bound_but = |dead: &[u8], named: &[&[u8]]| {
            let bind = |of: &Uplink| match dead.iter().any(|host| *of == uplink(*host)) {
                true => Err(BindError::NoRuntime),
                false => Ok(of.address),
            };
            let named = named.iter().map(|hosts| hosts.iter().copied().map(uplink).collect());
            let (uplinks, addresses) = bind_uplinks(named.collect(), bind).ok()?;
            assert!(uplinks.iter().map(|uplink| uplink.address).eq(addresses));
            Some(uplinks)
        };
        assert_eq!(bound_but(&[1], &[&[1, 2]]), Some(vec![uplink(2)]));
        assert_eq!(bound_but(&[1, 2], &[&[1, 2]]), None);
        assert_eq!(bound_but(&[1], &[&[2], &[1]]), None, "it was named alone");
        assert_eq!(bound_but(&[1], &[&[2], &[1, 2]]), Some(vec![uplink(2)]));
        assert_eq!(bound_but(&[], &[&[2], &[1, 2]]), Some(vec![uplink(2), uplink(1)]));
        assert_eq!(bound_but(&[], &[]), Some(Vec::new()));
    }
}
