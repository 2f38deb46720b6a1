//! One of the two parties to a connection: an endpoint, its one connection, and a client's paths
//! that are yet to be opened.

use std::collections::VecDeque;

use quipu_base::Instant;
use quipu_quic::endpoint::ClientConfig;
use quipu_quic::{Connection, ConnectionHandle, Endpoint, Route};
use quipu_sim::{Envelope, Outgoing};

use super::engine::{SetupError, SimOutbox, arrival};

/// The name of every server.
const SERVER_NAME: &str = "page.test";

/// An endpoint with one connection. Drive it as a node of the world.
pub(super) struct Party {
    endpoint: Endpoint,
    handle: Option<ConnectionHandle>,
    /// A client's, until it has opened the connection: when it does, and with what.
    dial: Option<(Instant, ClientConfig)>,
    /// A client's: what is to be opened, in order; the connection itself opens the first.
    routes: VecDeque<Route>,
}

impl Party {
    /// A client that opens its connection at `start` over the first of `routes`, and paths over the
    /// others as soon as it may.
    pub(super) fn client(
        endpoint: Endpoint,
        config: ClientConfig,
        start: Instant,
        routes: VecDeque<Route>,
    ) -> Result<Party, SetupError> {
        let mut party = Party { endpoint, handle: None, dial: Some((start, config)), routes };
        party.dial(Instant::ZERO)?;
        Ok(party)
    }

    /// A server whose `endpoint` listens.
    pub(super) fn server(endpoint: Endpoint) -> Party {
        Party { endpoint, handle: None, dial: None, routes: VecDeque::new() }
    }

    /// Opens the connection if it is time to.
    pub(super) fn dial(&mut self, now: Instant) -> Result<(), SetupError> {
        if let Some((_, config)) = self.dial.take_if(|(start, _)| *start <= now)
            && let Some(route) = self.routes.pop_front()
        {
            self.handle = Some(self.endpoint.connect(now, &config, SERVER_NAME, route)?);
        }
        Ok(())
    }

    pub(super) fn handle_datagram(&mut self, now: Instant, from: &Envelope, payload: &mut [u8]) {
        self.endpoint.handle_datagram(now, arrival(from), payload);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.endpoint.poll_transmit(now, &mut SimOutbox(out));
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let start = self.dial.as_ref().map(|(start, _)| *start);
        self.endpoint.poll_timeout().into_iter().chain(start).min()
    }

    /// Paths that are yet to be opened, without the first.
    pub(super) fn paths_to_open(&self) -> usize {
        self.routes.len().saturating_sub(usize::from(self.dial.is_some()))
    }

    pub(super) fn connection(&self) -> Option<&Connection> {
        self.endpoint.connection(self.handle?)
    }

    /// The connection, to call it, and a client's routes for [`open_paths`]. A server's is there
    /// once its client has called.
    pub(super) fn parts(&mut self) -> Option<(&mut Connection, &mut VecDeque<Route>)> {
        if self.handle.is_none() {
            self.handle = self.endpoint.accept();
        }
        Some((self.endpoint.connection_mut(self.handle?)?, &mut self.routes))
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
