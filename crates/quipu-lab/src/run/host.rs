//! The nodes of a run, as the simulator sees them.

use quipu_base::Instant;
use quipu_http::byte_stream::Mux;
use quipu_quic::Connection;
use quipu_sim::{Envelope, Node, Outgoing};

use super::RunError;
use super::client::Browser;
use super::cross::{CrossSender, CrossSink};
use super::engine::SetupError;
use super::flow::FlowEnd;
use super::loading::Loading;
use super::raw::{self, RawEnd};
use super::server::Site;
use crate::plan::{Cell, Plan};
use crate::results::RunRecord;

/// A node of the world.
pub(super) enum Host {
    /// The end that loads the page.
    Client(Box<Browser>),
    /// The end that has it.
    Server(Box<Site>),
    /// Either end of a page without HTTP.
    Raw(Box<RawEnd>),
    /// An end of a flow.
    Flow(Box<FlowEnd>),
    /// A sender of cross traffic.
    Sender(Box<CrossSender>),
    /// Where cross traffic ends.
    Sink(CrossSink),
}

impl Host {
    /// The nodes that load the page of `cell`: the client, the server.
    pub(super) fn pair(plan: &Plan, cell: Cell) -> Result<[Host; 2], SetupError> {
        if plan.scenario.http.is_raw() {
            return Ok(raw::ends(plan, cell)?.map(|end| Host::Raw(Box::new(end))));
        }
        Ok([
            Host::Client(Box::new(Browser::new(plan, cell)?)),
            Host::Server(Box::new(Site::new(plan, cell)?)),
        ])
    }

    /// True if the page of visit `visit` is there, or never will be.
    pub(super) fn is_done(&self, visit: u32) -> bool {
        match self {
            Host::Client(browser) => browser.is_done(visit),
            Host::Server(site) => site.has_failed(),
            Host::Raw(end) => end.is_done(),
            Host::Flow(_) | Host::Sender(_) | Host::Sink(_) => false,
        }
    }

    /// True if it cannot go on.
    pub(super) fn has_failed(&self) -> bool {
        match self {
            Host::Client(browser) => browser.has_failed(),
            Host::Server(site) => site.has_failed(),
            Host::Raw(end) => end.has_failed(),
            Host::Flow(_) | Host::Sender(_) | Host::Sink(_) => false,
        }
    }

    /// Why it failed, if it did.
    pub(super) fn take_error(&mut self) -> Option<RunError> {
        match self {
            Host::Client(browser) => browser.take_error(),
            Host::Server(site) => site.take_error(),
            Host::Raw(end) => end.take_error(),
            Host::Flow(flow) => flow.take_error(),
            Host::Sender(_) | Host::Sink(_) => None,
        }
    }

    /// The connection, once there is one.
    pub(super) fn connection(&self) -> Option<&Connection> {
        match self {
            Host::Client(browser) => browser.connection(),
            Host::Server(site) => site.connection(),
            Host::Raw(end) => end.connection(),
            Host::Flow(flow) => flow.connection(),
            Host::Sender(_) | Host::Sink(_) => None,
        }
    }

    /// The connection, if it carries the page.
    pub(super) fn page_connection(&self) -> Option<&Connection> {
        match self {
            Host::Flow(_) => None,
            _ => self.connection(),
        }
    }

    /// The page of visit `visit` as it arrived, at the end that loads it.
    pub(super) fn loading(&self, visit: u32) -> Option<&Loading> {
        match self {
            Host::Client(browser) => browser.loading(visit),
            Host::Raw(end) => end.loading(),
            Host::Server(_) | Host::Flow(_) | Host::Sender(_) | Host::Sink(_) => None,
        }
    }

    /// Adds to the record of a load what only this node knows.
    pub(super) fn complete_record(&self, record: &mut RunRecord) {
        if let Host::Raw(end) = self {
            end.complete_record(record);
        }
    }

    /// Decisions that HTTP over one byte stream took in place of its stream policy.
    pub(super) fn overridden(&self) -> u64 {
        match self {
            Host::Server(site) => site.mux().map_or(0, Mux::overridden),
            _ => 0,
        }
    }
}

impl Node for Host {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        match self {
            Host::Client(browser) => browser.handle_datagram(now, envelope, payload),
            Host::Server(site) => site.handle_datagram(now, envelope, payload),
            Host::Raw(end) => end.handle_datagram(now, envelope, payload),
            Host::Flow(flow) => flow.handle_datagram(now, envelope, payload),
            Host::Sender(_) => {}
            Host::Sink(sink) => sink.handle_datagram(payload),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Host::Client(browser) => browser.handle_timeout(now),
            Host::Server(site) => site.handle_timeout(now),
            Host::Raw(end) => end.handle_timeout(now),
            Host::Flow(flow) => flow.handle_timeout(now),
            Host::Sender(sender) => sender.handle_timeout(now),
            Host::Sink(_) => {}
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        match self {
            Host::Client(browser) => browser.poll_transmit(now, out),
            Host::Server(site) => site.poll_transmit(now, out),
            Host::Raw(end) => end.poll_transmit(now, out),
            Host::Flow(flow) => flow.poll_transmit(now, out),
            Host::Sender(sender) => sender.poll_transmit(out),
            Host::Sink(_) => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Host::Client(browser) => browser.poll_timeout(),
            Host::Server(site) => site.poll_timeout(),
            Host::Raw(end) => end.poll_timeout(),
            Host::Flow(flow) => flow.poll_timeout(),
            Host::Sender(sender) => sender.poll_timeout(),
            Host::Sink(_) => None,
        }
    }
}
