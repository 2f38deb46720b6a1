//! Hosts that are emulated, with the servers of pages, for loads one after the other.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::thread;

use quipu_emu::{Emulation, EmulationError, HostId, Links, Report, Settings, Topology};
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::run::logs::QlogFolder;
use quipu_record::RunRecord;
use quipu_scenario::{BrowserStack, Stack, split_hash};

use super::asked::{Job, LogsOf};
use super::client::{Outcome, PageClient};
use super::server::{PageServer, Served};
use super::{browser, kernel, stack};
use crate::emulate::Emulated;
use crate::failure::Failure;

/// The port of the first page's server.
const FIRST_PORT: u16 = 443;

/// Servers of pages that a site has, one for each page, stack and length of certificates; our choice.
const MOST_SERVERS: u16 = 16;

/// One client and one server host, a process that loads pages, and those that have them.
#[derive(Debug)]
pub(super) struct Site {
    /// Started with its first load.
    loads: Option<PageClient>,
    topology: Topology,
    emulation: Emulation,
    links: usize,
    client: HostId,
    server: HostId,
    servers: Vec<PageServer>,
    /// Whether Multipath TCP uses all paths.
    multipath: bool,
    /// The interfaces of the client.
    interfaces: Vec<String>,
}

impl Site {
    /// The position of the one of `sites` where the run of `cell` can be made; else what is to be started for it.
    ///
    /// # Errors
    /// If the network cannot be emulated.
    pub(super) fn fitting(
        sites: &[Site],
        plan: &Plan,
        cell: Cell,
    ) -> Result<Result<usize, Box<Emulated>>, Failure> {
        let emulated = Emulated::new(plan, cell)?;
        let served = served(plan, cell);
        let found = sites.iter().position(|site| {
            let same = (&site.topology, site.links) == (&emulated.topology, emulated.links.len());
            let room = site.servers.len() < usize::from(MOST_SERVERS);
            same && (room || site.servers.iter().any(|server| server.serves(served)))
        });
        Ok(found.ok_or_else(|| Box::new(emulated)))
    }

    /// Starts the hosts.
    ///
    /// # Errors
    /// If links cannot be emulated here.
    pub(super) fn start(
        Emulated { topology, links }: Emulated,
        settings: &Settings,
    ) -> Result<Site, Failure> {
        let client = *topology.clients().first().ok_or_else(no_hosts)?;
        let server = *topology.servers().first().ok_or_else(no_hosts)?;
        let paths = topology.paths_of(client).into_iter();
        let interfaces = paths.map(|path| format!("path{path}")).collect();
        let count = links.len();
        let emulation = Emulation::start(&topology, links, settings);
        let emulation = emulation.map_err(Failure::run)?;
        Ok(Site {
            loads: None,
            topology,
            emulation,
            links: count,
            client,
            server,
            servers: Vec::new(),
            multipath: false,
            interfaces,
        })
    }

    /// The server of the page of `cell`, which is started if there is none.
    ///
    /// # Errors
    /// If it does not start.
    pub(super) fn server(&mut self, plan: &Plan, cell: Cell) -> Result<&PageServer, Failure> {
        let served = served(plan, cell);
        let known = self.servers.iter().position(|server| server.serves(served));
        let position = match known {
            Some(position) => position,
            None => {
                let host = self.emulation.host(self.server).ok_or_else(no_hosts)?;
                if served.stack.kernel().is_some_and(|stack| stack.is_multipath())
                    && !self.multipath
                {
                    let client = self.emulation.host(self.client).ok_or_else(no_hosts)?;
                    let ends = ((self.client, client), (self.server, host));
                    kernel::use_all_paths(&self.topology, ends.0, ends.1)?;
                    self.multipath = true;
                }
                // There are few.
                let port = FIRST_PORT + self.servers.len() as u16;
                let address = self.topology.addresses(self.server, 0).0;
                self.servers.push(PageServer::start(host, served, (address, port).into())?);
                self.servers.len() - 1
            }
        };
        Ok(&self.servers[position])
    }

    /// The address of the client and that of servers at that port on each path.
    fn ways(&self, port: u16) -> Vec<(IpAddr, SocketAddr)> {
        let (topology, client, server) = (&self.topology, self.client, self.server);
        let paths = topology.paths_of(client).into_iter();
        let way = |path| {
            let server = (topology.addresses(server, path).0, port).into();
            (topology.addresses(client, path).0.into(), server)
        };
        paths.map(way).collect()
    }

    /// What the emulator says of the last load.
    ///
    /// # Errors
    /// If the emulation has ended.
    pub(super) fn report(&self) -> Result<Report, EmulationError> {
        self.emulation.report()
    }

    /// The load of `cell`, over links that begin with it.
    ///
    /// # Errors
    /// If it cannot be made, or the user wants to stop.
    pub(super) fn load(
        &mut self,
        plan: &Plan,
        cell: Cell,
        logs: Option<&QlogFolder>,
    ) -> Result<Outcome, Failure> {
        let links = Emulated::new(plan, cell)?.links;
        let server = self.server(plan, cell)?;
        let (address, pin, key) = (server.address(), server.pin.clone(), server.key.clone());
        let mut outcome = match stack(plan, cell) {
            Stack::Browser(stack) => {
                let served = browser::Served { address, key: &key };
                let loaded = self.with_browser((plan, cell), stack, served, links)?;
                Outcome { loaded: Ok(loaded), unlogged: None }
            }
            Stack::Quipu | Stack::Kernel(_) | Stack::Foreign(_) => {
                let job = self.job((plan, cell), (address, pin), logs)?;
                self.with_client(job, &plan.stop, links)?
            }
        };
        // Paths are called as in the network, of which this may be one path alone.
        for counted in outcome.loaded.iter_mut().flat_map(|record| &mut record.paths) {
            counted.path = plan.run_network(cell).position(counted.path);
        }
        Ok(outcome)
    }

    /// What the client is asked for.
    fn job(
        &self,
        (plan, cell): (&Plan, Cell),
        (address, pin): (SocketAddr, String),
        logs: Option<&QlogFolder>,
    ) -> Result<Job, Failure> {
        Ok(Job {
            scenario: plan.scenario.to_toml().map_err(Failure::run)?,
            cell: cell.into(),
            address,
            pin,
            interfaces: self.interfaces.clone(),
            ways: self.ways(address.port()),
            logs: logs.map(|logs| LogsOf {
                folder: logs.path().to_owned(),
                form: logs.form().to_string(),
                title: logs.title().to_owned(),
            }),
        })
    }

    fn with_client(
        &mut self,
        job: Job,
        stop: &AtomicBool,
        links: Links,
    ) -> Result<Outcome, Failure> {
        let mut client = match self.loads.take() {
            Some(client) => client,
            None => PageClient::start(self.emulation.host(self.client).ok_or_else(no_hosts)?)?,
        };
        let emulation = &mut self.emulation;
        let begin = || emulation.renew(links).map(drop).map_err(Failure::run);
        let outcome = client.load(job, stop, begin)?;
        // It goes on unless something is wrong with it.
        self.loads = Some(client);
        Ok(outcome)
    }

    fn with_browser(
        &mut self,
        load: (&Plan, Cell),
        stack: BrowserStack,
        served: browser::Served<'_>,
        links: Links,
    ) -> Result<RunRecord, Failure> {
        let Site { emulation, client, interfaces, .. } = self;
        let client = *client;
        let work = || {
            // Programs that a thread starts are in its network.
            let host = emulation.host(client);
            host.map_or(Ok(()), |host| host.enter()).map_err(Failure::run)?;
            let begin = || emulation.renew(links).map(drop).map_err(Failure::run);
            browser::load(load, stack, served, interfaces, begin)
        };
        let joined = thread::scope(|scope| scope.spawn(work).join());
        joined.unwrap_or_else(|_| Err(Failure::Run("the browser's thread ended".to_owned())))
    }
}

fn no_hosts() -> Failure {
    Failure::Run("the network has no hosts".to_owned())
}

/// What the server of `cell` is started for.
fn served(plan: &Plan, cell: Cell) -> Served<'_> {
    let page = plan.scenario.pages.get(cell.page).map_or("", |page| split_hash(page).0);
    Served { page, stack: stack(plan, cell), chain: plan.scenario.transport.certificate_chain }
}
