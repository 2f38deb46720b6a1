//! The nodes of a run, as the simulator sees them.

use quipu_base::Instant;
use quipu_sim::{Envelope, Node, Outgoing};

use super::client::Browser;
use super::cross::{CrossSender, CrossSink};
use super::flow::FlowEnd;
use super::server::Site;

/// A node of the world.
pub(super) enum Host {
    /// The end that loads the page.
    Client(Box<Browser>),
    /// The end that has it.
    Server(Box<Site>),
    /// An end of a flow.
    Flow(Box<FlowEnd>),
    /// A sender of cross traffic.
    Sender(Box<CrossSender>),
    /// Where cross traffic ends.
    Sink(CrossSink),
}

impl Host {
    /// True if nothing is left to wait for.
    pub(super) fn is_done(&self) -> bool {
        matches!(self, Host::Client(browser) if browser.is_done())
    }

    /// True if the server cannot go on.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self, Host::Server(site) if site.has_failed())
    }
}

impl Node for Host {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        match self {
            Host::Client(browser) => browser.handle_datagram(now, envelope, payload),
            Host::Server(site) => site.handle_datagram(now, envelope, payload),
            Host::Flow(flow) => flow.handle_datagram(now, envelope, payload),
            Host::Sender(_) => {}
            Host::Sink(sink) => sink.handle_datagram(payload),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Host::Client(browser) => browser.handle_timeout(now),
            Host::Server(site) => site.handle_timeout(now),
            Host::Flow(flow) => flow.handle_timeout(now),
            Host::Sender(sender) => sender.handle_timeout(now),
            Host::Sink(_) => {}
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        match self {
            Host::Client(browser) => browser.poll_transmit(now, out),
            Host::Server(site) => site.poll_transmit(now, out),
            Host::Flow(flow) => flow.poll_transmit(now, out),
            Host::Sender(sender) => sender.poll_transmit(out),
            Host::Sink(_) => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Host::Client(browser) => browser.poll_timeout(),
            Host::Server(site) => site.poll_timeout(),
            Host::Flow(flow) => flow.poll_timeout(),
            Host::Sender(sender) => sender.poll_timeout(),
            Host::Sink(_) => None,
        }
    }
}
