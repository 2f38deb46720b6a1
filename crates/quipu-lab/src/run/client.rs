//! The client: a browser that loads a session's pages over one connection.

use quipu_base::{Instant, Role};
use quipu_http::byte_stream::Mux;
use quipu_http::transport::quic::Carrier as _;
use quipu_quic::{Connection, ConnectionEvent};
use quipu_sim::{Envelope, Outgoing};

use super::RunError;
use super::engine::{ConnectionPlan, SetupError};
use super::loading::Loading;
use super::party::{Party, open_paths};
use super::requests::Requests;
use super::visits::Visits;
use super::wire::{Wire, http, mux};
use crate::plan::{Cell, Plan};
use crate::scenario::Start;

/// A browser, its connection and its load.
pub(super) struct Browser {
    party: Party,
    /// Paths of the network that are not usable yet.
    paths_missing: usize,
    start: Start,
    /// What HTTP puts into the one byte stream, if that carries it.
    mux: Option<Mux>,
    requests: Requests,
    visits: Visits,
    error: Option<RunError>,
}

impl Browser {
    pub(super) fn new(plan: &Plan, cell: Cell) -> Result<Browser, SetupError> {
        let party = ConnectionPlan::of_page(plan, cell).client(Instant::ZERO)?;
        let start = plan.scenario.transport.start;
        let mut browser = Browser {
            paths_missing: party.paths_to_open(),
            party,
            start,
            mux: mux(plan, cell, Role::Client)?,
            requests: Requests::new(&plan.browser, &plan.scenario, http(plan, cell)),
            visits: Visits::new(plan, cell)?,
            error: None,
        };
        match start {
            // The first request opens the connection: the page's time counts from here.
            Start::Cold => {
                browser.visits.begin(Instant::ZERO);
                browser.requests.collect(&mut browser.visits, Instant::ZERO);
            }
            Start::PathsReady => {}
            Start::Warm(objects) => browser.requests.warm_up(objects),
        }
        Ok(browser)
    }

    pub(super) fn handle_datagram(&mut self, now: Instant, from: &Envelope, payload: &mut [u8]) {
        self.party.handle_datagram(now, from, payload);
        self.drive(now);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.party.handle_timeout(now);
        self.drive(now);
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.fill(now);
        loop {
            self.party.poll_transmit(now, out);
            if !self.fill(now) {
                return;
            }
        }
    }

    /// Lets bodies go into the byte stream; true if some did.
    fn fill(&mut self, now: Instant) -> bool {
        let Some(mux) = &mut self.mux else { return false };
        let Some((connection, _)) = self.party.parts() else { return false };
        Wire::new(connection, Some(mux), now).fill()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.party.poll_timeout().into_iter().chain(self.visits.poll_timeout()).min()
    }

    /// True once the page of visit `visit` is there, or never will be.
    pub(super) fn is_done(&self, visit: u32) -> bool {
        self.error.is_some() || self.visits.is_finished(visit)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    pub(super) fn take_error(&mut self) -> Option<RunError> {
        self.error.take()
    }

    /// The page of visit `visit` as it arrived.
    pub(super) fn loading(&self, visit: u32) -> Option<&Loading> {
        self.visits.load(visit)
    }

    pub(super) fn connection(&self) -> Option<&Connection> {
        self.party.connection()
    }

    /// Does everything that can be done now.
    fn drive(&mut self, now: Instant) {
        if self.error.is_none() {
            self.error = self.try_drive(now).err();
        }
    }

    fn try_drive(&mut self, now: Instant) -> Result<(), RunError> {
        let Some((connection, routes)) = self.party.parts() else { return Ok(()) };
        let mut streams = Wire::new(connection, self.mux.as_mut(), now);
        while let Some(event) = streams.connection().poll() {
            if let ConnectionEvent::PathUp(_) = event {
                self.paths_missing = self.paths_missing.saturating_sub(1);
            }
            self.requests.on_event(&mut streams, event, &mut self.visits)?;
        }
        open_paths(streams.connection(), routes, now);
        if self.visits.handle_timeout(now) {
            self.requests.next_page();
        }
        let ready = match self.start {
            Start::Cold => false,
            Start::PathsReady | Start::Warm(_) => {
                self.requests.is_warm() && self.paths_missing == 0
            }
        };
        if ready && !self.visits.has_begun() {
            self.visits.begin(now);
        }
        self.requests.send(&mut streams, &mut self.visits)
    }
}
