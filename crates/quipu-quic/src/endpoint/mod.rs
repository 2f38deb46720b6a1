//! Many connections behind the same sockets: which datagram is for whom, who wants to send, whose
//! deadline is next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use quipu_base::{Instant, PathId, Random, Role};

use crate::config::ConfigError;
use crate::connection::{Arrival, Connection, Drain, EndpointEvent, KeyRing, Setup, parameters};
use crate::outbox::{Outbox, Transmit};
use crate::random::{NoRandomness, Randomness, Secure, SecureSource, Seeded};
use crate::recorder::{RecorderFactory, Started};
use crate::route::Route;
use crate::tls::{InitialSecrets, Session};
use crate::wire::header::{Packet, write_version_negotiation};
use crate::wire::{ConnectionId, PacketKind, Version, Writer};

mod config;

pub use config::{ClientConfig, ConnectError, EndpointConfig, PolicyFactory, ServerConfig};

/// Datagrams without a connection that wait to be sent.
const MAX_RESPONSES: usize = 64;

/// Connection IDs drawn until one is unused. Our choice: as many in vain mean that the generator
/// gives too few different ones.
const MAX_DRAWS: usize = 64;

/// A connection of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionHandle(usize);

/// One place in the list of connections.
struct Slot {
    connection: Connection,
    cids: BTreeSet<ConnectionId>,
    deadline: Option<Instant>,
    dirty: bool,
}

/// Connections that share sockets. Drive it like a connection: datagrams and time in, then
/// [`Endpoint::poll_transmit`], then the deadline of [`Endpoint::poll_timeout`].
pub struct Endpoint {
    config: EndpointConfig,
    random: Box<dyn Randomness>,
    server: Option<ServerConfig>,
    slots: Vec<Option<Slot>>,
    routes: BTreeMap<ConnectionId, (ConnectionHandle, PathId)>,
    /// The connection ID looked up last: most datagrams are for it again.
    last: Option<(ConnectionId, ConnectionHandle, PathId)>,
    deadlines: BTreeSet<(Instant, ConnectionHandle)>,
    dirty: VecDeque<ConnectionHandle>,
    /// Connections with paths whose sockets take nothing at present.
    blocked: BTreeSet<ConnectionHandle>,
    accepted: VecDeque<ConnectionHandle>,
    responses: VecDeque<(Route, Vec<u8>)>,
    ignored: u64,
    recorders: Option<RecorderFactory>,
}

impl Endpoint {
    /// An endpoint without connections. Everything random that it and its connections send comes
    /// from `source`, which is that of the TLS provider:
    /// [`tls::rustls::secure_source`](crate::tls::rustls::secure_source).
    ///
    /// # Errors
    /// If a setting is invalid.
    pub fn new(config: EndpointConfig, source: Arc<dyn SecureSource>) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self::with_randomness(config, Box::new(Secure::new(source))))
    }

    /// An endpoint for virtual time, with the default settings: whatever it sends repeats with the
    /// seed of `random`. Its connection IDs, tokens and challenges can be predicted, so it must
    /// never meet a network.
    pub fn seeded(random: Random) -> Self {
        Self::with_randomness(EndpointConfig::default(), Box::new(Seeded(random)))
    }

    /// The same with these settings.
    ///
    /// # Errors
    /// If a setting is invalid.
    pub fn seeded_with(config: EndpointConfig, random: Random) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self::with_randomness(config, Box::new(Seeded(random))))
    }

    fn with_randomness(config: EndpointConfig, random: Box<dyn Randomness>) -> Self {
        Endpoint {
            config,
            random,
            server: None,
            slots: Vec::new(),
            routes: BTreeMap::new(),
            last: None,
            deadlines: BTreeSet::new(),
            dirty: VecDeque::new(),
            blocked: BTreeSet::new(),
            accepted: VecDeque::new(),
            responses: VecDeque::new(),
            ignored: 0,
            recorders: None,
        }
    }

    /// Each connection from now on has the recorder that `recorders` makes for it, if any.
    pub fn record(&mut self, recorders: RecorderFactory) {
        self.recorders = Some(recorders);
    }

    /// Accepts connections from now on.
    ///
    /// # Errors
    /// If a setting of the transport cannot be.
    pub fn listen(&mut self, config: ServerConfig) -> Result<(), ConfigError> {
        config.transport.validate()?;
        self.server = Some(config);
        Ok(())
    }

    /// Opens a connection to the server of that name.
    ///
    /// # Errors
    /// If the configuration or the name is wrong; nothing is sent then.
    pub fn connect(
        &mut self,
        now: Instant,
        config: &ClientConfig,
        server_name: &str,
        route: Route,
    ) -> Result<ConnectionHandle, ConnectError> {
        config.transport.validate()?;
        let route = route.canonical();
        let local_cid = self.unused_cid()?;
        let remote_cid = self.first_dcid()?;
        let own = parameters(Role::Client, &config.transport, local_cid, None);
        let session = config.tls.start(server_name, &own.encode())?;
        let secrets: Arc<dyn InitialSecrets> = config.tls.clone();
        let started =
            Started { role: Role::Client, route, local_cid, remote_cid, original_dcid: remote_cid };
        let setup = Setup {
            recorder: self.recorders.as_ref().and_then(|make| make(&started)),
            role: Role::Client,
            config: Arc::clone(&config.transport),
            policies: (config.policies)(),
            session,
            keys: KeyRing::new(secrets.initial_keys(&remote_cid, Role::Client)),
            route,
            local_cid,
            remote_cid,
            original_dcid: remote_cid,
            random: self.random.child()?,
            connection_ids: Arc::clone(&self.config.connection_ids),
            initial_secrets: Some(secrets),
        };
        let handle = self.insert(Connection::new(now, setup));
        self.add_route(local_cid, handle, PathId::ZERO);
        Ok(handle)
    }

    /// A datagram came; it is opened in place. Returns the connection that it is for.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        arrival: Arrival,
        datagram: &mut [u8],
    ) -> Option<ConnectionHandle> {
        let arrival = Arrival { route: arrival.route.canonical(), ..arrival };
        let known = self.lookup(datagram);
        let (handle, path) = match known {
            Some(found) => found,
            None => (self.accept_first(now, arrival, datagram)?, PathId::ZERO),
        };
        let slot = self.slots.get_mut(handle.0)?.as_mut()?;
        slot.connection.handle_datagram(now, arrival, path, datagram);
        if known.is_none() {
            // A first packet that does not open is nobody's: its connection IDs may be forged.
            // https://www.rfc-editor.org/rfc/rfc9000#section-5.2
            //# Invalid packets that lack strong integrity protection, such as Initial,
            //# Retry, or Version Negotiation, MAY be discarded.
            if !slot.connection.has_opened_packet() {
                self.remove(handle);
                self.ignored += 1;
                return None;
            }
            self.accepted.push_back(handle);
        }
        self.touch(handle);
        Some(handle)
    }

    /// The next connection that a client opened.
    pub fn accept(&mut self) -> Option<ConnectionHandle> {
        self.accepted.pop_front()
    }

    /// A connection.
    pub fn connection(&self, handle: ConnectionHandle) -> Option<&Connection> {
        Some(&self.slots.get(handle.0)?.as_ref()?.connection)
    }

    /// The same, to call it; it is polled in the next [`Endpoint::poll_transmit`].
    pub fn connection_mut(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.touch(handle);
        Some(&mut self.slots.get_mut(handle.0)?.as_mut()?.connection)
    }

    /// Drops a connection, closed or not.
    pub fn remove(&mut self, handle: ConnectionHandle) -> Option<Connection> {
        let slot = self.slots.get_mut(handle.0)?.take()?;
        for cid in &slot.cids {
            self.routes.remove(cid);
        }
        self.last = None;
        if let Some(deadline) = slot.deadline {
            self.deadlines.remove(&(deadline, handle));
        }
        self.accepted.retain(|other| *other != handle);
        self.blocked.remove(&handle);
        Some(slot.connection)
    }

    /// Handles of all connections.
    pub fn handles(&self) -> impl Iterator<Item = ConnectionHandle> + '_ {
        let live = self.slots.iter().enumerate().filter(|(_, slot)| slot.is_some());
        live.map(|(index, _)| ConnectionHandle(index))
    }

    /// Datagrams that were for no connection.
    pub fn ignored_datagrams(&self) -> u64 {
        self.ignored
    }

    /// Writes all datagrams that can go now. After [`Drain::Full`], call again when the outbox has
    /// room; after [`Drain::Blocked`], call [`Endpoint::handle_unblocked`] when a blocked route takes
    /// datagrams again.
    pub fn poll_transmit(&mut self, now: Instant, outbox: &mut dyn Outbox) -> Drain {
        let mut blocked = false;
        for _ in 0..self.responses.len() {
            let key = quipu_policy::PathKey { slot: 0, id: PathId::ZERO };
            if !outbox.has_room() {
                return Drain::Full;
            }
            let Some((route, response)) = self.responses.front() else { break };
            if outbox.is_blocked(route) {
                blocked = true;
                self.responses.rotate_left(1);
                continue;
            }
            if let Some(place) = outbox.buffer(response.len()).get_mut(..response.len()) {
                place.copy_from_slice(response);
                let len = response.len();
                outbox.send(Transmit { path: key, route: *route, ecn: 0, len });
            }
            self.responses.pop_front();
        }
        while let Some(&handle) = self.dirty.front() {
            if let Some(slot) = self.slots.get_mut(handle.0).and_then(Option::as_mut) {
                let drain = slot.connection.poll_transmit(now, outbox);
                // Also of a connection that is not done: its connection IDs are on their way.
                self.settle(handle);
                match drain {
                    Drain::Full => return Drain::Full,
                    Drain::Blocked => self.blocked.insert(handle),
                    Drain::Rest => self.blocked.remove(&handle),
                };
                if let Some(slot) = self.slots.get_mut(handle.0).and_then(Option::as_mut) {
                    slot.dirty = false;
                }
            }
            self.dirty.pop_front();
        }
        if blocked || !self.blocked.is_empty() { Drain::Blocked } else { Drain::Rest }
    }

    /// A route that was blocked takes datagrams again: call [`Endpoint::poll_transmit`] next.
    pub fn handle_unblocked(&mut self) {
        for handle in std::mem::take(&mut self.blocked) {
            self.touch(handle);
        }
    }

    /// When [`Endpoint::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Time has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, handle)) = self.deadlines.first() {
            if at > now {
                return;
            }
            self.deadlines.pop_first();
            if let Some(slot) = self.slots.get_mut(handle.0).and_then(Option::as_mut) {
                slot.deadline = None;
                slot.connection.handle_timeout(now);
            }
            self.touch(handle);
        }
    }

    /// Brings routes and deadline of a connection up to date after it was polled.
    fn settle(&mut self, handle: ConnectionHandle) {
        let Some(slot) = self.slots.get_mut(handle.0).and_then(Option::as_mut) else { return };
        while let Some(event) = slot.connection.poll_endpoint_event() {
            match event {
                EndpointEvent::Issued(cid, path) => {
                    slot.cids.insert(cid);
                    self.routes.insert(cid, (handle, path));
                }
                // https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
                //# When an endpoint issues a connection ID, it MUST accept packets that carry
                //# this connection ID for the duration of the connection or until its peer
                //# invalidates the connection ID via a RETIRE_CONNECTION_ID frame (Section
                //# 19.16).
                EndpointEvent::Retired(cid) => {
                    slot.cids.remove(&cid);
                    self.routes.remove(&cid);
                    self.last = None;
                }
            }
        }
        let deadline = slot.connection.poll_timeout();
        if deadline != slot.deadline {
            if let Some(before) = slot.deadline {
                self.deadlines.remove(&(before, handle));
            }
            if let Some(deadline) = deadline {
                self.deadlines.insert((deadline, handle));
            }
            slot.deadline = deadline;
        }
    }

    fn touch(&mut self, handle: ConnectionHandle) {
        if let Some(slot) = self.slots.get_mut(handle.0).and_then(Option::as_mut)
            && !std::mem::replace(&mut slot.dirty, true)
        {
            self.dirty.push_back(handle);
        }
    }

    fn insert(&mut self, connection: Connection) -> ConnectionHandle {
        let slot = Slot { connection, cids: BTreeSet::new(), deadline: None, dirty: false };
        let free = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        let handle = ConnectionHandle(free);
        if free == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[free] = Some(slot);
        self.touch(handle);
        handle
    }

    fn add_route(&mut self, cid: ConnectionId, handle: ConnectionHandle, path: PathId) {
        self.routes.insert(cid, (handle, path));
        if let Some(slot) = self.slots.get_mut(handle.0).and_then(Option::as_mut) {
            slot.cids.insert(cid);
        }
    }

    /// The connection and path of a datagram's first packet.
    fn lookup(&mut self, datagram: &[u8]) -> Option<(ConnectionHandle, PathId)> {
        let dcid = destination(datagram, self.config.connection_ids.length())?;
        if let Some((cid, handle, path)) = &self.last
            && *cid == dcid
        {
            return Some((*handle, *path));
        }
        let &(handle, path) = self.routes.get(&dcid)?;
        self.last = Some((dcid, handle, path));
        Some((handle, path))
    }

    /// A datagram for no connection: a client's first, or nothing for us.
    fn accept_first(
        &mut self,
        now: Instant,
        arrival: Arrival,
        datagram: &[u8],
    ) -> Option<ConnectionHandle> {
        let packet = Packet::parse(datagram, self.config.connection_ids.length()).ok();
        // https://www.rfc-editor.org/rfc/rfc9000#section-14.1
        //# A server MUST discard an Initial packet that is carried in a UDP
        //# datagram with a payload that is smaller than the smallest allowed
        //# maximum datagram size of 1200 bytes.
        let long_enough = datagram.len() >= crate::wire::header::MIN_INITIAL_DATAGRAM;
        let handle = match packet {
            Some(Packet::Protected(header))
                if long_enough
                    && header.kind == PacketKind::Initial
                    // https://www.rfc-editor.org/rfc/rfc9000#section-7.2
                    //# This Destination Connection ID MUST be at least 8 bytes in length.
                    && header.dcid.length() >= 8 =>
            {
                // https://www.rfc-editor.org/rfc/rfc9000#section-7.2
                //# A server MUST set the Destination Connection ID it uses for sending packets
                //# based on the first received Initial packet.
                self.accept_initial(now, arrival, header.dcid, header.scid)
            }
            // https://www.rfc-editor.org/rfc/rfc9000#section-5.2.2
            //# If a server receives a packet that indicates an unsupported version and if the
            //# packet is large enough to initiate a new connection for any supported version, the
            //# server SHOULD send a Version Negotiation packet as described in Section 6.1.
            //# Servers MUST drop smaller packets that specify unsupported versions. Servers
            //# SHOULD respond with a Version Negotiation packet, provided that the datagram is
            //# sufficiently long.
            Some(Packet::UnknownVersion { dcid, scid, .. }) if long_enough => {
                // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
                //# A server MUST NOT send more than one Version Negotiation packet in response to
                //# a single UDP datagram.
                self.negotiate_version(arrival.route, dcid, scid);
                None
            }
            // https://www.rfc-editor.org/rfc/rfc9000#section-5.2.2
            //# Clients are not able to send Handshake packets prior to receiving a server
            //# response, so servers SHOULD ignore any such packets. Servers MUST drop incoming
            //# packets under all other circumstances.
            // https://www.rfc-editor.org/rfc/rfc9000#section-6.1
            //# An endpoint MUST NOT send a Version Negotiation packet in response to receiving a
            //# Version Negotiation packet.
            _ => None,
        };
        if handle.is_none() {
            self.ignored += 1;
        }
        handle
    }

    fn accept_initial(
        &mut self,
        now: Instant,
        arrival: Arrival,
        original_dcid: ConnectionId,
        remote_cid: ConnectionId,
    ) -> Option<ConnectionHandle> {
        let config = self.server.clone()?;
        if self.slots.iter().flatten().count() >= config.max_connections {
            return None;
        }
        let local_cid = self.unused_cid().ok()?;
        let own = parameters(Role::Server, &config.transport, local_cid, Some(original_dcid));
        let session: Box<dyn Session> = config.tls.start(&own.encode()).ok()?;
        let started = Started {
            role: Role::Server,
            route: arrival.route,
            local_cid,
            remote_cid,
            original_dcid,
        };
        let setup = Setup {
            recorder: self.recorders.as_ref().and_then(|make| make(&started)),
            role: Role::Server,
            config: Arc::clone(&config.transport),
            policies: (config.policies)(),
            session,
            keys: KeyRing::new(config.tls.initial_keys(&original_dcid, Role::Server)),
            route: arrival.route,
            local_cid,
            remote_cid,
            original_dcid,
            random: self.random.child().ok()?,
            connection_ids: Arc::clone(&self.config.connection_ids),
            initial_secrets: None,
        };
        let handle = self.insert(Connection::new(now, setup));
        self.add_route(local_cid, handle, PathId::ZERO);
        self.add_route(original_dcid, handle, PathId::ZERO);
        Some(handle)
    }

    /// <https://www.rfc-editor.org/rfc/rfc9000#section-6.1>
    fn negotiate_version(&mut self, route: Route, dcid: &[u8], scid: &[u8]) {
        if self.server.is_none() || self.responses.len() >= MAX_RESPONSES {
            return;
        }
        let mut buffer = vec![0; 1 + 4 + 1 + scid.len() + 1 + dcid.len() + 4];
        let Ok([random, ..]) = self.random.draw::<4>() else { return };
        let random = random & 0x7f;
        let mut writer = Writer::new(&mut buffer);
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
        //# The server MUST include the value from the Source Connection ID field of the packet it
        //# receives in the Destination Connection ID field. The value for Source Connection ID
        //# MUST be copied from the Destination Connection ID of the received packet, which is
        //# initially randomly selected by a client.
        if write_version_negotiation(&mut writer, random, scid, dcid, &[Version::V1]).is_ok() {
            self.responses.push_back((route, buffer));
        }
    }

    /// A connection ID that no connection has.
    fn unused_cid(&mut self) -> Result<ConnectionId, NoRandomness> {
        for _ in 0..MAX_DRAWS {
            let cid = self.config.connection_ids.generate(&mut *self.random)?;
            if !self.routes.contains_key(&cid) {
                return Ok(cid);
            }
        }
        Err(NoRandomness)
    }

    /// The destination of a client's first packet, until the server has chosen one.
    fn first_dcid(&mut self) -> Result<ConnectionId, NoRandomness> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-7.2
        // At least eight bytes, which nobody can predict; how long ours are makes no difference.
        let bytes = self.random.draw::<8>()?;
        Ok(ConnectionId::new(&bytes).unwrap_or_default())
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("connections", &self.slots.len()).finish_non_exhaustive()
    }
}

/// The destination connection ID of a datagram's first packet. `local_length`: of ours.
fn destination(datagram: &[u8], local_length: usize) -> Option<ConnectionId> {
    let (&first, rest) = datagram.split_first()?;
    if first & 0x80 == 0 {
        return ConnectionId::new(rest.get(..local_length)?);
    }
    let length = usize::from(*datagram.get(5)?);
    ConnectionId::new(datagram.get(6..6 + length)?)
}
