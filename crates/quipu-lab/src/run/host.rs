//! The two nodes of a run, as the simulator sees them.

use quipu_base::Instant;
use quipu_sim::{Envelope, Node, Outgoing};

use super::client::Browser;
use super::server::Site;

/// A node of the world.
pub(super) enum Host {
    /// The end that loads the page.
    Client(Box<Browser>),
    /// The end that has it.
    Server(Box<Site>),
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
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Host::Client(browser) => browser.handle_timeout(now),
            Host::Server(site) => site.handle_timeout(now),
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        match self {
            Host::Client(browser) => browser.poll_transmit(now, out),
            Host::Server(site) => site.poll_transmit(now, out),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Host::Client(browser) => browser.poll_timeout(),
            Host::Server(site) => site.poll_timeout(),
        }
    }
}
