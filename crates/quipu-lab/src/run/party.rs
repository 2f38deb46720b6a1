//! What every application over connections has: an endpoint, its connections, and a client's paths
//! that are yet to be opened.

use std::collections::VecDeque;

use quipu_base::Instant;
use quipu_quic::endpoint::ClientConfig;
use quipu_quic::{Arrival, Connection, ConnectionHandle, Endpoint, Outbox, Route, Transmit};
use quipu_sim::{Envelope, Outgoing};

use super::bell::Bell;
use super::error::{RunError, SetupError};
use super::radios::Radios;
use quipu_record::energy::RadioRecord;

/// The name of every server.
const SERVER_NAME: &str = "page.test";

/// An endpoint and its connections: mostly one; several of a client that loads from several servers.
/// Drive it as a node of the world.
pub(super) struct Party {
    endpoint: Endpoint,
    /// The connections, in the order in which they were planned; at least one.
    lines: Vec<Line>,
    /// Why the application cannot go on.
    failure: Option<RunError>,
    bell: Bell,
    /// A client's: what its paths cost, if that is counted.
    radios: Option<Radios>,
}

/// A connection, or one that may be opened.
#[derive(Default)]
struct Line {
    handle: Option<ConnectionHandle>,
    /// A client's, until it has opened the connection: with what.
    config: Option<ClientConfig>,
    /// A client's: when it opens the connection, or did, if that is known.
    opens_at: Option<Instant>,
    /// A client's: what is to be opened, in order; the connection itself opens the first.
    routes: VecDeque<Route>,
    /// Whether something came since [`Party::take_touched`], or its time did.
    touched: bool,
}

impl Line {
    /// When it is to be opened, if it is not open.
    fn dials_at(&self) -> Option<Instant> {
        self.opens_at.filter(|_| self.config.is_some())
    }
}

impl Party {
    /// A client that opens its first connection at `start` over the first of `routes`, and paths over
    /// the others as soon as it may.
    pub(super) fn client(
        endpoint: Endpoint,
        config: ClientConfig,
        start: Instant,
        routes: VecDeque<Route>,
    ) -> Result<Party, SetupError> {
        let mut party = Party {
            endpoint,
            lines: Vec::new(),
            failure: None,
            bell: Bell::default(),
            radios: None,
        };
        party.add_line(config, routes);
        party.lines[0].opens_at = Some(start);
        party.dial(Instant::ZERO)?;
        Ok(party)
    }

    /// A server whose `endpoint` listens.
    pub(super) fn server(endpoint: Endpoint) -> Party {
        let lines = vec![Line::default()];
        Party { endpoint, lines, failure: None, bell: Bell::default(), radios: None }
    }

    /// A client may open one more connection, over `routes`, by [`Party::open`].
    pub(super) fn add_line(&mut self, config: ClientConfig, routes: VecDeque<Route>) {
        self.lines.push(Line { config: Some(config), routes, ..Line::default() });
    }

    /// Rings `bell` when the application tells news or fails.
    pub(super) fn attach(&mut self, bell: &Bell) {
        self.bell = bell.clone();
    }

    /// Counts what the paths cost from now on.
    pub(super) fn count_radios(&mut self, radios: Radios) {
        self.radios = Some(radios);
    }

    /// What the paths cost so far, if that is counted.
    pub(super) fn radio_records(&self) -> Vec<RadioRecord> {
        self.radios.as_ref().map_or_else(Vec::new, Radios::records)
    }

    /// The application has something to take stock of.
    pub(super) fn tell_news(&self) {
        self.bell.ring();
    }

    /// Opens the connections that it is time to open. True if there were any.
    pub(super) fn dial(&mut self, now: Instant) -> Result<bool, SetupError> {
        let mut opened = false;
        for line in &mut self.lines {
            if line.dials_at().is_some_and(|start| start <= now)
                && let Some(route) = line.routes.pop_front()
                && let Some(config) = line.config.take()
            {
                line.touched = true;
                line.handle = Some(self.endpoint.connect(now, &config, SERVER_NAME, route)?);
                opened = true;
            }
        }
        Ok(opened)
    }

    /// Opens connection `line` now, unless it is open or will be at its time.
    pub(super) fn open(&mut self, line: usize, now: Instant) -> Result<(), SetupError> {
        match self.lines.get_mut(line) {
            Some(line) if line.opens_at.is_none() => line.opens_at = Some(now),
            _ => return Ok(()),
        }
        self.dial(now).map(|_| ())
    }

    /// A datagram came, in the first `length` bytes of a buffer that may be exchanged.
    pub(super) fn handle_buffer(
        &mut self,
        now: Instant,
        from: &Envelope,
        buffer: &mut Box<[u8]>,
        length: usize,
    ) {
        if let Some(radios) = &mut self.radios {
            radios.on_received(now, from.local, length);
        }
        let handle = self.endpoint.handle_buffer(now, arrival(from), buffer, length);
        if self.has_several() {
            let of = |line: &&mut Line| line.handle.is_some() && line.handle == handle;
            if let Some(line) = self.lines.iter_mut().find(of) {
                line.touched = true;
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.has_several() {
            for line in &mut self.lines {
                let connection = line.handle.and_then(|handle| self.endpoint.connection(handle));
                let due = connection.and_then(Connection::poll_timeout);
                line.touched |= due.is_some_and(|at| at <= now);
            }
        }
        self.endpoint.handle_timeout(now);
    }

    /// A socket that was full takes datagrams again.
    pub(super) fn handle_unblocked(&mut self) {
        self.endpoint.handle_unblocked();
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        let mut outbox = SimOutbox { out, now, radios: self.radios.as_mut() };
        self.endpoint.poll_transmit(now, &mut outbox);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let starts = self.lines.iter().map(Line::dials_at);
        starts.fold(self.endpoint.poll_timeout(), Instant::earlier)
    }

    /// The application cannot go on.
    pub(super) fn fail(&mut self, error: RunError) {
        self.failure = Some(error);
        self.bell.ring();
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    pub(super) fn take_error(&mut self) -> Option<RunError> {
        self.failure.take()
    }

    /// Whether there may be more than one connection.
    pub(super) fn has_several(&self) -> bool {
        self.lines.len() > 1
    }

    /// Whether anything came for connection `line` since this was last asked; always of the only one.
    pub(super) fn take_touched(&mut self, line: usize) -> bool {
        !self.has_several()
            || self.lines.get_mut(line).is_some_and(|line| std::mem::take(&mut line.touched))
    }

    /// Paths of connection `line` that are yet to be opened, without the first.
    pub(super) fn paths_to_open(&self, line: usize) -> usize {
        let line = self.lines.get(line);
        line.map_or(0, |line| line.routes.len().saturating_sub(usize::from(line.config.is_some())))
    }

    /// When connection `line` is opened, or was, if that is known.
    pub(super) fn opens_at(&self, line: usize) -> Option<Instant> {
        self.lines.get(line)?.opens_at
    }

    /// Connection `line`, once there is one.
    pub(super) fn connection(&self, line: usize) -> Option<&Connection> {
        self.endpoint.connection(self.lines.get(line)?.handle?)
    }

    /// Connection `line`, to call it, and a client's routes for [`open_paths`]. A server's is there
    /// once its client has called.
    pub(super) fn parts(&mut self, line: usize) -> Option<(&mut Connection, &mut VecDeque<Route>)> {
        let line = self.lines.get_mut(line)?;
        if line.handle.is_none() {
            line.handle = self.endpoint.accept();
        }
        Some((self.endpoint.connection_mut(line.handle?)?, &mut line.routes))
    }
}

/// Opens the paths that may be opened. Refused until the handshake is confirmed and the server has
/// sent connection IDs; to be asked again after each input.
pub(super) fn open_paths(connection: &mut Connection, routes: &mut VecDeque<Route>, now: Instant) {
    while let Some(&route) = routes.front()
        && connection.open_path(now, route).is_ok()
    {
        routes.pop_front();
    }
}

/// How the simulator's datagram came.
fn arrival(envelope: &Envelope) -> Arrival {
    let route = Route::new(envelope.local, envelope.remote);
    Arrival { route, ecn: envelope.ecn }
}

/// Hands the engine's datagrams to the simulator, as many as there are.
struct SimOutbox<'a, 'b> {
    out: &'a mut Outgoing<'b>,
    now: Instant,
    radios: Option<&'a mut Radios>,
}

impl Outbox for SimOutbox<'_, '_> {
    fn has_room(&self) -> bool {
        true
    }

    fn is_blocked(&self, route: &Route) -> bool {
        self.out.is_blocked(route.local)
    }

    fn buffer(&mut self, _size: usize) -> &mut [u8] {
        self.out.buffer()
    }

    fn send(&mut self, transmit: Transmit) {
        let Route { local, remote, .. } = transmit.route;
        if let Some(radios) = &mut self.radios {
            radios.on_sent(self.now, local, transmit.len);
        }
        self.out.send(&Envelope { local, remote, ecn: transmit.ecn }, transmit.len);
    }
}
