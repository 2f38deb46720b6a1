//! The client: a browser that loads a session's pages over one connection, or one for each origin.

use quipu_base::{Instant, Role};
use quipu_http::byte_stream::Mux;
use quipu_http::transport::quic::Carrier as _;
use quipu_quic::ConnectionEvent;
use quipu_sim::Outgoing;

use super::application::Application;
use super::engine::ConnectionPlan;
use super::error::{RunError, SetupError};
use super::instruments::Setting;
use super::origins::Origins;
use super::pairs::PageLine;
use super::party::{Party, open_paths};
use super::requests::Requests;
use super::visits::Visits;
use super::wire::{Wire, mux};
use crate::loading::Loading;
use quipu_scenario::Start;

/// A browser, its connections and its load.
pub(super) struct Browser {
    party: Party,
    start: Start,
    /// When the first connection is opened, and with a cold start the first page asked for.
    start_at: Instant,
    origins: Origins,
    /// The connections, by number of origin.
    lines: Vec<Line>,
    visits: Visits,
    /// Pages of which it has told that they are there.
    told: u32,
}

/// A connection to the server of an origin, and what goes over it.
struct Line {
    /// Paths of the network that are not usable yet.
    paths_missing: usize,
    /// What HTTP puts into the one byte stream, if that carries it.
    mux: Option<Mux>,
    requests: Requests,
    /// Whether anything was done since the browser last sent.
    active: bool,
}

impl Browser {
    /// The browser of a client that needs the servers of `origins`, over the pairs of hosts `pairs`.
    pub(super) fn new(
        setting: Setting<'_>,
        client: u32,
        origins: Origins,
        pairs: impl Iterator<Item = u16>,
    ) -> Result<Browser, SetupError> {
        let Setting { plan, cell, .. } = setting;
        let start_at = plan.client_start(cell.run, client);
        let mut lines = Vec::with_capacity(origins.count());
        let mut party: Option<Party> = None;
        for (line, pair) in (0..origins.count()).zip(pairs) {
            let page_line = PageLine { client, line, pair };
            let connection = ConnectionPlan::of_page(setting, page_line);
            match &mut party {
                None => party = Some(connection.client(start_at)?),
                Some(party) => connection.add_to(party)?,
            }
            lines.push(Line {
                paths_missing: party.as_ref().map_or(0, |party| party.paths_to_open(line)),
                mux: mux(setting, page_line, Role::Client)?,
                requests: Requests::new(&plan.browser, &plan.scenario, setting.http())
                    .of_origin(origins.name(line).cloned())
                    .told_to(setting.arrivals(page_line)),
                active: true,
            });
        }
        let mut browser = Browser {
            party: party.ok_or(SetupError::NoOrigin)?,
            start: plan.scenario.transport.start,
            start_at,
            origins,
            lines,
            visits: Visits::new(plan, cell, client)?,
            told: 0,
        };
        if let Start::Warm(objects) = browser.start {
            browser.lines[0].requests.warm_up(objects);
        }
        browser.begin_cold(Instant::ZERO)?;
        Ok(browser)
    }

    /// With a cold start, asks for the first page if it is time to. True if it did.
    fn begin_cold(&mut self, now: Instant) -> Result<bool, SetupError> {
        let begins = self.start == Start::Cold && !self.visits.has_begun() && self.start_at <= now;
        if begins {
            // The first request opens the connection: the page's time counts from here.
            self.visits.begin(now);
            self.collect(now)?;
        }
        Ok(begins)
    }

    /// Takes what the load wants; the first object of an origin opens the connection to it.
    fn collect(&mut self, now: Instant) -> Result<(), SetupError> {
        while let Some(object) = self.visits.poll_request(now) {
            let line = self.origins.number_of(object);
            self.lines[line].requests.ask(object);
            self.party.open(line, now)?;
        }
        Ok(())
    }

    /// Takes what came over connection `line`. True if there was something.
    fn receive(&mut self, line: usize, now: Instant) -> Result<bool, RunError> {
        let Some((connection, routes)) = self.party.parts(line) else { return Ok(false) };
        let Line { paths_missing, mux, requests, active } = &mut self.lines[line];
        *active = true;
        let mut streams = Wire::new(connection, mux.as_mut(), now);
        let mut news = false;
        while let Some(event) = streams.connection().poll() {
            news = true;
            if let ConnectionEvent::PathUp(_) = event {
                *paths_missing = paths_missing.saturating_sub(1);
            }
            requests.on_event(&mut streams, event, &mut self.visits)?;
        }
        open_paths(streams.connection(), routes, now);
        Ok(news)
    }

    /// Sends the requests that can be sent.
    fn send(&mut self, now: Instant) -> Result<(), RunError> {
        self.collect(now)?;
        let several = self.party.has_several();
        for (index, line) in self.lines.iter_mut().enumerate() {
            if several && !line.requests.has_work(&self.visits) {
                continue;
            }
            let Some((connection, _)) = self.party.parts(index) else { continue };
            line.active = true;
            let mut streams = Wire::new(connection, line.mux.as_mut(), now);
            line.requests.send(&mut streams, &self.visits)?;
        }
        Ok(())
    }

    /// Lets bodies go into the byte streams; true if some did.
    fn fill(&mut self, now: Instant) -> bool {
        let mut filled = false;
        for (index, line) in self.lines.iter_mut().enumerate() {
            if let Some(mux) = line.mux.as_mut().filter(|_| line.active)
                && let Some((connection, _)) = self.party.parts(index)
            {
                filled |= Wire::new(connection, Some(mux), now).fill();
            }
        }
        filled
    }

    /// True once the page of visit `visit` is there, or never will be.
    pub(super) fn is_done(&self, visit: u32) -> bool {
        self.has_failed() || self.visits.is_finished(visit)
    }

    /// The page of visit `visit` as it arrived.
    pub(super) fn loading(&self, visit: u32) -> Option<&Loading> {
        self.visits.load(visit)
    }
}

impl Application for Browser {
    fn party(&self) -> &Party {
        &self.party
    }

    fn party_mut(&mut self) -> &mut Party {
        &mut self.party
    }

    fn act(&mut self, now: Instant) -> Result<(), RunError> {
        let mut news = self.party.dial(now)?;
        news |= self.begin_cold(now)?;
        for line in 0..self.lines.len() {
            if self.party.take_touched(line) {
                news |= self.receive(line, now)?;
            }
        }
        // Most packets bring the browser nothing: they are out of order, or acknowledge.
        news |= self.visits.poll_timeout().is_some_and(|at| at <= now);
        if !news {
            return Ok(());
        }
        if self.visits.handle_timeout(now) {
            for line in &mut self.lines {
                line.requests.next_page();
            }
        }
        let ready = match self.start {
            Start::Cold => false,
            // The other connections are opened by their first request.
            Start::PathsReady | Start::Warm(_) => {
                self.lines[0].requests.is_warm() && self.lines[0].paths_missing == 0
            }
        };
        if ready && !self.visits.has_begun() {
            self.visits.begin(now);
        }
        self.send(now)?;
        while self.visits.is_finished(self.told) {
            self.told += 1;
            self.party.tell_news();
        }
        Ok(())
    }

    fn next_at(&self) -> Option<Instant> {
        self.visits.poll_timeout()
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.fill(now);
        loop {
            self.party.poll_transmit(now, out);
            if !self.fill(now) {
                break;
            }
        }
        if self.party.has_several() {
            self.lines.iter_mut().for_each(|line| line.active = false);
        }
    }
}
