//! Hosts that are emulated, with the servers of pages, for loads one after the other.

use std::thread;

use quipu_emu::{Emulation, EmulationError, HostId, Report, Settings, Topology};
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::policies::Registry;
use quipu_lab::run::logs::QlogFolder;
use quipu_record::RunRecord;
use quipu_scenario::{ForeignChoice, Stack, Start, split_hash};
use quipu_tokio::{Endpoint, tokio};

use super::server::{PageServer, Served};
use super::{browser, kernel, other};
use crate::args::UplinkOptions;
use crate::emulate::Emulated;
use crate::failure::Failure;
use crate::foreign::{Connecting, ForeignStacks, Way};
use crate::live;
use crate::page_loads::{Client, Server, Setup, ways};

/// The port of the first page's server.
const FIRST_PORT: u16 = 443;

/// Servers of pages that a site has, one for each page, stack and length of certificates; our choice.
const MOST_SERVERS: u16 = 16;

/// What a load is made with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Means<'a> {
    pub(super) registry: &'a Registry,
    /// What the program brings beside Quipu's stack and those of the kernel.
    pub(super) stacks: &'a ForeignStacks,
    /// Where the client's connections are logged.
    pub(super) logs: Option<&'a QlogFolder>,
    /// Of emulations that are started for it.
    pub(super) settings: &'a Settings,
}

/// One client and one server host, and processes there that have pages.
#[derive(Debug)]
pub(super) struct Site {
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
        let none = || Failure::Run("the network has no hosts".to_owned());
        let client = *topology.clients().first().ok_or_else(none)?;
        let server = *topology.servers().first().ok_or_else(none)?;
        let paths = topology.paths_of(client).into_iter();
        let interfaces = paths.map(|path| format!("path{path}")).collect();
        let count = links.len();
        let emulation = Emulation::start(&topology, links, settings);
        let emulation = emulation.map_err(Failure::run)?;
        Ok(Site {
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
                let none = || Failure::Run("the network has no hosts".to_owned());
                let host = self.emulation.host(self.server).ok_or_else(none)?;
                if served.stack.kernel().is_some_and(|stack| stack.is_multipath())
                    && !self.multipath
                {
                    let client = self.emulation.host(self.client).ok_or_else(none)?;
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

    /// The paths from the client to the servers at that port.
    fn ways(&self, port: u16) -> Vec<Way> {
        let (topology, client, server) = (&self.topology, self.client, self.server);
        let paths = topology.paths_of(client).into_iter();
        let way = |path| {
            let server = (topology.addresses(server, path).0, port).into();
            Way { local: topology.addresses(client, path).0.into(), server }
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
    /// If it fails.
    pub(super) fn load(
        &mut self,
        plan: &Plan,
        cell: Cell,
        means: Means<'_>,
    ) -> Result<RunRecord, Failure> {
        let links = Emulated::new(plan, cell)?.links;
        let (url, address, pin, key) = {
            let server = self.server(plan, cell)?;
            (server.url(), server.address(), server.pin.clone(), server.key.clone())
        };
        let stack = stack(plan, cell);
        let ways = self.ways(address.port());
        let Site { emulation, client, interfaces, .. } = self;
        let client = *client;
        // Paths are called as in the network, of which this may be one path alone.
        let named = |mut record: RunRecord| {
            for counted in &mut record.paths {
                counted.path = plan.run_network(cell).position(counted.path);
            }
            record
        };
        let uplinks = UplinkOptions { via: interfaces.clone(), pin: Some(pin.clone()), ca: None };
        let work = || {
            // Sockets are of the network of the thread that opens them, and so are those of threads that it starts.
            let host = emulation.host(client);
            host.map_or(Ok(()), |host| host.enter()).map_err(Failure::run)?;
            let begin = || emulation.renew(links).map(drop).map_err(Failure::run);
            let others = other::Load { plan, cell, interfaces, server: address };
            let loaded = match stack {
                Stack::Quipu => within(load(plan, cell, means, (&url, &uplinks), begin)),
                Stack::Kernel(stack) => {
                    within(others.run(begin, kernel::connect(stack, address, &pin)))
                }
                Stack::Foreign(stack) => {
                    within(others.run(begin, connect(means, plan, stack, (ways, &pin))))
                }
                Stack::Browser(stack) => {
                    let served = browser::Served { address, key: &key };
                    browser::load((plan, cell), stack, served, interfaces, begin)
                }
            };
            loaded.map(named)
        };
        let joined = thread::scope(|scope| scope.spawn(work).join());
        joined.unwrap_or_else(|_| Err(Failure::Run("the client's thread ended".to_owned())))
    }
}

/// Makes a load in a runtime of its own.
fn within(loading: impl Future<Output = Result<RunRecord, Failure>>) -> Result<RunRecord, Failure> {
    live::runtime_of(Some(1))?.block_on(loading)
}

async fn load(
    plan: &Plan,
    cell: Cell,
    means: Means<'_>,
    (url, uplinks): (&str, &UplinkOptions),
    begin: impl FnOnce() -> Result<(), Failure>,
) -> Result<RunRecord, Failure> {
    let Means { registry, logs, .. } = means;
    let server = Server::of(url, uplinks)?;
    let control = live::bind(Endpoint::client(), &uplinks.via)?;
    let addresses = server.addresses().await?;
    let (ways, addresses) = ways(control.uplinks(), &uplinks.via, addresses);
    let vias = &uplinks.via;
    // As many as the network has.
    let paths = u32::try_from(ways.len()).unwrap_or(u32::MAX);
    let setup = Some(Setup::of(&plan.scenario, paths)?);
    let client = Client { server, registry, control, addresses, vias, ways, logs, plan, setup };
    let loaded = tokio::select! {
        loaded = client.load(cell, begin) => loaded,
        () = live::asked_to_stop(&plan.stop) => Err(Failure::Interrupted),
    };
    client.control.wait_idle_for(live::FAREWELL).await;
    loaded
}

/// A connection of a stack that the program brings, over all of `ways` if it uses several.
async fn connect(
    means: Means<'_>,
    plan: &Plan,
    choice: ForeignChoice,
    (mut ways, pin): (Vec<Way>, &str),
) -> Result<quipu_live::Client, Failure> {
    if !choice.is_multipath() {
        ways.truncate(1);
    }
    let mut to = Connecting::new(ways, pin.parse().map_err(Failure::run)?);
    to.congestion = choice.congestion;
    to.waits_for_paths = plan.scenario.transport.start != Start::Cold;
    let connected = means.stacks.of(choice)?.connect(to).await;
    connected.map(quipu_live::Client::Foreign).map_err(Failure::run)
}

/// What carries the page of `cell`.
fn stack(plan: &Plan, cell: Cell) -> Stack {
    plan.networks[cell.network].policies[cell.policy].stack
}

/// What the server of `cell` is started for.
fn served(plan: &Plan, cell: Cell) -> Served<'_> {
    let page = plan.scenario.pages.get(cell.page).map_or("", |page| split_hash(page).0);
    Served { page, stack: stack(plan, cell), chain: plan.scenario.transport.certificate_chain }
}
