//! Many connections behind the same sockets: which datagram is for whom, who wants to send, whose
//! deadline is next.
//!
//! The parts, each with state of its own: connections with all that finds them (`table`, made of
//! `slab`, `routes` and `deadlines`), limits (`admission`), clients that wait for the application
//! (`incoming`), 0-RTT packets of clients that are not known yet (`early`), and answers that belong
//! to no connection (`responses`). `opening` makes connections;
//! `first` looks at datagrams that no connection knows.

use std::sync::Arc;

use quipu_base::{Duration, Instant, PathId, Random};

use crate::config::ConfigError;
use crate::connection::{Arrival, Connection, ConnectionEvent, Drain};
use crate::outbox::Outbox;
use crate::random::{Randomness, Secure, SecureSource, Seeded};
use crate::recorder::RecorderFactory;
use crate::wire::ConnectionId;

mod admission;
mod config;
mod deadlines;
mod early;
mod first;
mod incoming;
mod opening;
mod replay;
mod resets;
mod responses;
mod routes;
mod slab;
mod table;
mod tokens;

pub use admission::Admission;
pub use config::{ClientConfig, Closed, ConnectError, EndpointConfig, PolicyFactory, ServerConfig};
pub use incoming::Incoming;
pub use slab::ConnectionHandle;
pub use tokens::{TokenConfig, TokenState};

use early::EarlyDatagrams;
use first::Stranger;
use incoming::Waiting;
use opening::{Accepted, Server};
use resets::Rate;
use responses::Responses;
use routes::{Target, destination};
use table::Table;
use tokens::Tokens;

/// What an endpoint holds, in numbers. All but connections of the application's own making are what
/// others can make grow, and limits hold each: see [`Admission`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Connections, those that are closing included.
    pub connections: usize,
    /// Connections whose clients have not proved their addresses.
    pub unvalidated: usize,
    /// Sources of clients that have; see [`Admission::max_per_source`].
    pub sources: usize,
    /// Connection IDs that datagrams may come to.
    pub connection_ids: usize,
    /// Stateless reset tokens of peers that count.
    pub reset_tokens: usize,
    /// Connections that want to be called at some time.
    pub deadlines: usize,
    /// Clients that wait for the application's decision.
    pub waiting: usize,
    /// Bytes of their datagrams.
    pub waiting_bytes: usize,
    /// Connections that the application has yet to take with [`Endpoint::accept`], or that ended
    /// before it did.
    pub accepted: usize,
    /// Datagrams of 0-RTT packets that overtook the first packet of their client.
    pub early: usize,
    /// Answers to strangers that wait to be sent.
    pub responses: usize,
    /// Places of connections that were looked at since the endpoint was made, which stands for work.
    /// Zero in release builds.
    pub looked_at: u64,
}

/// Connections that share sockets. Drive it like a connection: datagrams and time in, then
/// [`Endpoint::poll_transmit`], then the deadline of [`Endpoint::poll_timeout`].
pub struct Endpoint {
    config: EndpointConfig,
    random: Box<dyn Randomness>,
    server: Option<Server>,
    table: Table,
    accepted: Accepted,
    waiting: Waiting,
    early: EarlyDatagrams,
    responses: Responses,
    /// Of stateless resets that we send.
    resets: Rate,
    ignored: u64,
    recorders: Option<RecorderFactory>,
    /// A first packet is opened here.
    scratch: Vec<u8>,
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
        let resets = Rate::new(config.resets_per_second);
        Endpoint {
            table: Table::new(config.closed),
            config,
            random,
            server: None,
            accepted: Accepted::default(),
            waiting: Waiting::default(),
            early: EarlyDatagrams::default(),
            responses: Responses::default(),
            resets,
            ignored: 0,
            recorders: None,
            scratch: Vec::new(),
        }
    }

    /// Each connection from now on has the recorder that `recorders` makes for it, if any.
    pub fn record(&mut self, recorders: RecorderFactory) {
        self.recorders = Some(recorders);
    }

    /// Accepts connections from now on.
    ///
    /// # Errors
    /// If a setting is invalid.
    pub fn listen(&mut self, config: ServerConfig) -> Result<(), ConfigError> {
        config.transport.validate()?;
        config.tokens.validate()?;
        let tokens = Tokens::new(config.tokens.clone());
        self.server = Some(Server { config: Arc::new(config), tokens });
        Ok(())
    }

    /// It is `unix_time` now, which tokens are dated with: see [`TokenConfig::unix_time`].
    pub fn set_unix_time(&mut self, now: Instant, unix_time: Duration) {
        if let Some(server) = &mut self.server {
            server.tokens.set_unix_time(now, unix_time);
        }
    }

    /// A connection; `None` once it is gone.
    pub fn connection(&self, handle: ConnectionHandle) -> Option<&Connection> {
        self.table.get(handle)
    }

    /// The same, to call it; it is polled in the next [`Endpoint::poll_transmit`].
    pub fn connection_mut(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.table.get_mut(handle)
    }

    /// Drops a connection, closed or not: the peer is not told. A connection that is over needs no
    /// call of this, unless [`EndpointConfig::closed`] says so: it goes when the application has
    /// taken [`ConnectionEvent::Closed`], or had closed it itself.
    pub fn remove(&mut self, handle: ConnectionHandle) -> Option<Connection> {
        self.table.remove(handle)
    }

    /// Handles of all connections.
    pub fn handles(&self) -> impl Iterator<Item = ConnectionHandle> + '_ {
        self.table.handles()
    }

    /// What it holds at present.
    pub fn held(&self) -> Held {
        let mut held = Held {
            waiting: self.waiting.len(),
            waiting_bytes: self.waiting.bytes(),
            accepted: self.accepted.len(),
            early: self.early.len(),
            responses: self.responses.len(),
            ..Held::default()
        };
        self.table.count(&mut held);
        held
    }

    /// The connection ID that a datagram is addressed by, as far as the first packet tells; `None` if it
    /// cannot be for this endpoint.
    pub fn destination(&self, datagram: &[u8]) -> Option<ConnectionId> {
        destination(datagram, self.config.connection_ids.length())
    }

    /// True if a datagram is addressed to one of its connections. Of several endpoints behind one address at
    /// most one says so.
    pub fn holds(&self, datagram: &[u8]) -> bool {
        self.destination(datagram).is_some_and(|dcid| self.table.is_taken(&dcid))
    }

    /// Datagrams that were for no connection.
    pub fn ignored_datagrams(&self) -> u64 {
        self.ignored
    }
}

/// What a driver calls.
impl Endpoint {
    /// A datagram came; it is opened in place. Returns the connection that it is for.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        arrival: Arrival,
        datagram: &mut [u8],
    ) -> Option<ConnectionHandle> {
        let arrival = Arrival { route: arrival.route.canonical(), ..arrival };
        let dcid = destination(datagram, self.config.connection_ids.length());
        if let Some(target) = dcid.and_then(|dcid| self.table.target(&dcid)) {
            self.table.deliver(now, target, arrival, datagram);
            return Some(target.handle);
        }
        match self.handle_unknown(now, arrival, datagram) {
            Stranger::Opens(handle) => {
                self.accepted.push(handle, &self.table);
                let target = Target { handle, path: PathId::ZERO };
                self.table.deliver(now, target, arrival, datagram);
                self.deliver_early(now, handle, dcid);
                Some(handle)
            }
            Stranger::Resets(handle) => Some(handle),
            Stranger::Ignored => None,
        }
    }

    /// A client is known now that sent to `dcid`: what overtook its first packet is read.
    fn deliver_early(
        &mut self,
        now: Instant,
        handle: ConnectionHandle,
        dcid: Option<ConnectionId>,
    ) {
        let Some(dcid) = dcid else { return };
        for (arrival, mut datagram) in self.early.take(now, &dcid) {
            let target = Target { handle, path: PathId::ZERO };
            self.table.deliver(now, target, arrival, &mut datagram);
        }
    }

    /// The same of a datagram in the first `length` bytes of `buffer`.
    ///
    /// A connection keeps the buffer instead of copying stream data out of it where that is most of
    /// what it holds. `buffer` is another one then, of the same length and with any content: whoever
    /// receives into buffers of one length saves a copy of nearly all bytes.
    pub fn handle_buffer(
        &mut self,
        now: Instant,
        arrival: Arrival,
        buffer: &mut Box<[u8]>,
        length: usize,
    ) -> Option<ConnectionHandle> {
        let datagram = buffer.get_mut(..length)?;
        let dcid = destination(datagram, self.config.connection_ids.length());
        let Some(target) = dcid.and_then(|dcid| self.table.target(&dcid)) else {
            return self.handle_datagram(now, arrival, datagram);
        };
        let arrival = Arrival { route: arrival.route.canonical(), ..arrival };
        self.table.deliver_buffer(now, target, arrival, buffer, length);
        Some(target.handle)
    }

    /// Writes all datagrams that can go now. After [`Drain::Full`], call again when the outbox has
    /// room; after [`Drain::Blocked`], call [`Endpoint::handle_unblocked`] when a blocked route takes
    /// datagrams again.
    pub fn poll_transmit(&mut self, now: Instant, outbox: &mut dyn Outbox) -> Drain {
        let responses = self.responses.poll_transmit(outbox);
        if responses == Drain::Full {
            return Drain::Full;
        }
        match self.table.poll_transmit(now, outbox) {
            Drain::Rest => responses,
            drain => drain,
        }
    }

    /// The next event of a connection that the last [`Endpoint::poll_transmit`] looked at, which are
    /// those that anything happened to since the one before: for drivers of many connections, which
    /// need not ask each. Take all events before the next poll; those that were left are told once
    /// their connection is looked at again.
    ///
    /// Unlike [`Connection::poll`] by way of [`Endpoint::connection_mut`], this does not have the
    /// connection polled again.
    pub fn poll_event(&mut self) -> Option<(ConnectionHandle, ConnectionEvent)> {
        self.table.poll_event()
    }

    /// A connection that is over, and was in the endpoint until now: only of one whose
    /// [configuration](EndpointConfig::closed) is [`Closed::HandedOver`]. All are to be taken after each
    /// [`Endpoint::poll_transmit`].
    pub fn poll_closed(&mut self) -> Option<(ConnectionHandle, Connection)> {
        self.table.poll_closed()
    }

    /// A route that was blocked takes datagrams again: call [`Endpoint::poll_transmit`] next.
    pub fn handle_unblocked(&mut self) {
        self.table.handle_unblocked();
    }

    /// When [`Endpoint::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        Instant::earlier(self.table.deadline(), self.waiting.deadline())
    }

    /// Time has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.table.handle_timeout(now);
        self.waiting.handle_timeout(now);
        // That of the table is one of connections, which have a look at theirs.
        debug_assert!(self.waiting.deadline().is_none_or(|at| at > now), "a deadline stood still");
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("connections", &self.table.len()).finish_non_exhaustive()
    }
}
