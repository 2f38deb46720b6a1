//! The nodes of a run, as the simulator sees them.

use quipu_base::Instant;
use quipu_http::byte_stream::Mux;
use quipu_quic::Connection;
use quipu_sim::{Envelope, Node, Outgoing};

use super::application::Application;
use super::bell::Bell;
use super::client::Browser;
use super::cross::{CrossSender, CrossSink};
use super::error::{RunError, SetupError};
use super::flow::FlowEnd;
use super::instruments::Setting;
use super::origins::Origins;
use super::pairs::PageLine;
use super::radios::Radios;
use super::raw::{self, RawEnd};
use super::server::Site;
use crate::loading::Loading;
use quipu_record::RunRecord;
use quipu_record::energy::RadioRecord;

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
    /// The nodes of one client and of its servers, the client first: `pairs` are the pairs of hosts of
    /// its connections. They ring `bell` when there is something to take stock of.
    pub(super) fn of_client(
        setting: Setting<'_>,
        client: u32,
        origins: &Origins,
        pairs: &[u16],
        bell: &Bell,
    ) -> Result<Vec<Host>, SetupError> {
        let line = |(line, &pair)| PageLine { client, line, pair };
        let mut lines = pairs.iter().enumerate().map(line);
        let mut hosts = if setting.scenario().http.is_raw() {
            let first = lines.next().ok_or(SetupError::NoOrigin)?;
            raw::ends(setting, first)?.map(|end| Host::Raw(Box::new(end))).into()
        } else {
            let pairs = pairs.iter().copied();
            let browser = Browser::new(setting, client, origins.clone(), pairs)?;
            let mut hosts = vec![Host::Client(Box::new(browser))];
            for line in lines {
                hosts.push(Host::Server(Box::new(Site::new(setting, line)?)));
            }
            hosts
        };
        for application in hosts.iter_mut().filter_map(Host::application_mut) {
            application.party_mut().attach(bell);
        }
        let network = &setting.network().network;
        if let Some(radios) = Radios::of(network, setting.scenario().link_overhead)
            && let Some(client) = hosts.first_mut().and_then(Host::application_mut)
        {
            client.party_mut().count_radios(radios);
        }
        Ok(hosts)
    }

    fn application(&self) -> Option<&dyn Application> {
        match self {
            Host::Client(browser) => Some(&**browser),
            Host::Server(site) => Some(&**site),
            Host::Raw(end) => Some(&**end),
            Host::Flow(flow) => Some(&**flow),
            Host::Sender(_) | Host::Sink(_) => None,
        }
    }

    fn application_mut(&mut self) -> Option<&mut dyn Application> {
        match self {
            Host::Client(browser) => Some(&mut **browser),
            Host::Server(site) => Some(&mut **site),
            Host::Raw(end) => Some(&mut **end),
            Host::Flow(flow) => Some(&mut **flow),
            Host::Sender(_) | Host::Sink(_) => None,
        }
    }

    /// True if the page of visit `visit` is there, or never will be.
    pub(super) fn is_done(&self, visit: u32) -> bool {
        match self {
            Host::Client(browser) => browser.is_done(visit),
            Host::Raw(end) => end.is_done(),
            Host::Server(_) => self.has_failed(),
            Host::Flow(_) | Host::Sender(_) | Host::Sink(_) => false,
        }
    }

    /// True if it cannot go on.
    pub(super) fn has_failed(&self) -> bool {
        self.application().is_some_and(Application::has_failed)
    }

    /// Why it failed, if it did.
    pub(super) fn take_error(&mut self) -> Option<RunError> {
        self.application_mut()?.take_error()
    }

    /// Connection `line` of its own, once there is one; mostly there is only number 0.
    pub(super) fn connection(&self, line: usize) -> Option<&Connection> {
        self.application()?.connection(line)
    }

    /// What the paths cost a client, if that is counted.
    pub(super) fn radio_records(&self) -> Vec<RadioRecord> {
        self.application().map_or_else(Vec::new, |it| it.party().radio_records())
    }

    /// When it opened connection `line`, if it did and is no server.
    pub(super) fn opened_at(&self, line: usize) -> Option<Instant> {
        self.application()?.party().opens_at(line)
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
        let mut buffer: Box<[u8]> = (&*payload).into();
        self.handle_buffer(now, envelope, &mut buffer, payload.len());
    }

    fn handle_buffer(
        &mut self,
        now: Instant,
        envelope: &Envelope,
        buffer: &mut Box<[u8]>,
        length: usize,
    ) {
        if let Host::Sink(sink) = self {
            sink.handle_datagram(buffer.get(..length).unwrap_or_default());
        } else if let Some(application) = self.application_mut() {
            application.handle_buffer(now, envelope, buffer, length);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Host::Sender(sender) = self {
            sender.handle_timeout(now);
        } else if let Some(application) = self.application_mut() {
            application.handle_timeout(now);
        }
    }

    fn handle_unblocked(&mut self, _now: Instant) {
        if let Some(application) = self.application_mut() {
            application.handle_unblocked();
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        if let Host::Sender(sender) = self {
            sender.poll_transmit(out);
        } else if let Some(application) = self.application_mut() {
            application.poll_transmit(now, out);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Host::Sender(sender) => sender.poll_timeout(),
            _ => self.application()?.poll_timeout(),
        }
    }
}
