//! `quipu compare --world emulated`: every load in real time over emulated links, one after the other.

mod server;

use std::sync::atomic::Ordering;
use std::thread;

use quipu_emu::{Emulation, HostId, Report, Settings};
use quipu_lab::batch::Batch;
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::run::logs::QlogFolder;
use quipu_record::{Output, RunRecord, write_whole};
use quipu_scenario::split_hash;
use quipu_tokio::{Endpoint, tokio};
use serde_json::{Value, json};

use self::server::PageServer;
use super::client::Client;
use super::ways::ways;
use super::{Kept, batch_of, conclude, prepare};
use crate::args::{BatchOptions, CompareOptions, ScenarioOptions, UplinkOptions};
use crate::emulate::{Emulated, enter};
use crate::failure::Failure;
use crate::own::Own;
use crate::page_loads::{self, Server};
use crate::scenario::Given;
use crate::{live, progress, stop};

/// What says so on the command line.
const OPTION: &str = "--world emulated";

/// How often a load is made that is void, with the first time. Our choice.
const ATTEMPTS: u32 = 3;

/// The file of results with what the emulator says of each load.
const FILE: &str = "emulation.json";

/// Compares policies over the emulated links of a scenario.
pub(super) fn run(
    options: &CompareOptions,
    mut given: Given,
    own: &Own<'_>,
) -> Result<(), Failure> {
    let BatchOptions { jobs, range, qlog_runs, .. } = &options.batch;
    let ScenarioOptions { transport, tls, host, series, .. } = &options.scenario;
    for (is_given, option, expected) in [
        (jobs.is_some(), "--jobs", "none, as one load is made after the other,"),
        (*range, "--range", "none"),
        (qlog_runs.is_some(), "--qlog-runs", "none"),
        (transport.is_some(), "--transport", "none"),
        (tls.is_some(), "--tls", "none"),
        (host.is_some(), "--host", "none, as hosts are real,"),
        (series.is_some(), "--series", "none"),
    ] {
        page_loads::refuse(is_given, option, expected, OPTION)?;
    }
    // Before anything has a thread.
    enter()?;
    let Kept { output, logs } = prepare(options, &mut given, OPTION)?;
    let plan = given.told_plan(own)?.emulated();
    stop::on_request(&plan.stop)?;
    let comparison = Comparison { plan: &plan, own, logs: logs.as_ref() };
    let (batch, reports) = comparison.run()?;
    if let Some(output) = &output {
        write(output, &plan, &reports)?;
    }
    conclude(options, &plan, &batch, Kept { output, logs }, own)
}

/// A load, which time it was made, and what the emulator says of it.
type Told = (Cell, u32, Report);

struct Comparison<'a> {
    plan: &'a Plan,
    own: &'a Own<'a>,
    logs: Option<&'a QlogFolder>,
}

impl Comparison<'_> {
    /// Makes all loads in their order, until they are done or the user wants to stop.
    fn run(&self) -> Result<(Batch, Vec<Told>), Failure> {
        let cells = self.plan.interleaved();
        let bar = progress::bar(cells.len() as u64);
        let (mut finished, mut failed, mut reports) = (Vec::new(), Vec::new(), Vec::new());
        let mut sites: Vec<Option<Site>> = self.plan.networks.iter().map(|_| None).collect();
        'cells: for cell in cells {
            let Some(slot) = sites.get_mut(cell.network) else { continue };
            let site = match slot {
                Some(site) => site,
                None => match Site::start(self.plan, cell) {
                    Ok(site) => slot.insert(site),
                    // Of networks that come later the finished loads of others stay.
                    Err(error) if finished.is_empty() => return Err(error),
                    Err(error) => {
                        failed.push((cell, error.reason()));
                        bar.inc(1);
                        continue;
                    }
                },
            };
            for attempt in 1..=ATTEMPTS {
                let loaded = site.load(self, cell);
                if self.plan.stop.load(Ordering::Relaxed) {
                    break 'cells;
                }
                let report = match site.emulation.report() {
                    Ok(report) => report,
                    Err(error) => {
                        failed.push((cell, error.to_string()));
                        break;
                    }
                };
                let void = report.void.join("; ");
                reports.push((cell, attempt, report));
                match loaded {
                    Ok(record) if void.is_empty() => finished.push((cell, record)),
                    Ok(_) if attempt < ATTEMPTS => continue,
                    Ok(_) => failed.push((cell, format!("void {ATTEMPTS} times: {void}"))),
                    Err(error) => failed.push((cell, error.reason())),
                }
                break;
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok((batch_of(self.plan, finished, failed), reports))
    }
}

/// A network that is emulated, and a server for each page.
struct Site {
    emulation: Emulation,
    client: HostId,
    servers: Vec<PageServer>,
    /// The interfaces of the client.
    interfaces: Vec<String>,
}

impl Site {
    fn start(plan: &Plan, cell: Cell) -> Result<Site, Failure> {
        let Emulated { topology, links } = Emulated::new(plan, whole(plan, cell))?;
        let emulation = Emulation::start(&topology, links, &Settings::default());
        let emulation = emulation.map_err(Failure::run)?;
        let none = || Failure::Run("the network has no hosts".to_owned());
        let client = *topology.clients().first().ok_or_else(none)?;
        let host = *topology.servers().first().ok_or_else(none)?;
        let address = topology.addresses(host, 0).0;
        let host = emulation.host(host).ok_or_else(none)?;
        let servers = plan.scenario.pages.iter().zip(443_u16..).map(|(page, port)| {
            PageServer::start(host, split_hash(page).0, (address, port).into())
        });
        let servers = servers.collect::<Result<Vec<PageServer>, Failure>>()?;
        let paths = plan.networks[cell.network].network.paths.len();
        let interfaces = (0..paths).map(|path| format!("path{path}")).collect();
        Ok(Site { emulation, client, servers, interfaces })
    }

    /// The load of `cell`, over links that begin with it.
    fn load(&mut self, of: &Comparison<'_>, cell: Cell) -> Result<RunRecord, Failure> {
        let Comparison { plan, own, logs } = *of;
        let links = Emulated::new(plan, whole(plan, cell))?.links;
        let Site { emulation, client, servers, interfaces } = self;
        let (client, page) = (*client, &servers[cell.page]);
        let uplinks =
            UplinkOptions { via: interfaces.clone(), pin: Some(page.pin.clone()), ca: None };
        let work = || {
            // Sockets are of the network of the thread that opens them, and so are those of threads that it starts.
            let host = emulation.host(client);
            host.map_or(Ok(()), |host| host.enter()).map_err(Failure::run)?;
            let runtime = live::runtime()?;
            let loaded = runtime.block_on(async {
                let server = Server::of(&page.url(), &uplinks)?;
                let control = live::bind(Endpoint::client(), &uplinks.via)?;
                let addresses = server.addresses().await?;
                let (ways, addresses) = ways(control.uplinks(), &uplinks.via, addresses);
                let registry = own.registry;
                let vias = &uplinks.via;
                let client =
                    Client { server, registry, control, addresses, vias, ways, logs, plan };
                let begin = || emulation.renew(links).map(drop).map_err(Failure::run);
                let loaded = tokio::select! {
                    loaded = client.load(cell, begin) => loaded,
                    () = live::asked_to_stop(&plan.stop) => Err(Failure::Interrupted),
                };
                client.control.wait_idle_for(live::FAREWELL).await;
                loaded
            });
            drop(runtime);
            loaded
        };
        let joined = thread::scope(|scope| scope.spawn(work).join());
        joined.unwrap_or_else(|_| Err(Failure::Run("the client's thread ended".to_owned())))
    }
}

/// The same load over all paths: those that a load does not use are there all the same.
fn whole(plan: &Plan, cell: Cell) -> Cell {
    let policies = &plan.networks[cell.network].policies;
    let policy = policies.iter().position(|row| row.alone.is_none()).unwrap_or(cell.policy);
    Cell { policy, ..cell }
}

/// Writes what the emulator says of each load.
fn write(output: &Output, plan: &Plan, reports: &[Told]) -> Result<(), Failure> {
    let told = |(cell, attempt, report): &Told| -> Value {
        let network = &plan.networks[cell.network];
        json!({
            "page": plan.page_name(cell.page),
            "network": network.network.name,
            "policy": network.policies[cell.policy].label,
            "run": cell.run,
            "attempt": attempt,
            "report": report,
        })
    };
    let all: Vec<Value> = reports.iter().map(told).collect();
    let text = serde_json::to_string_pretty(&all).map_err(Failure::run)?;
    let file = output.folder().join(FILE);
    write_whole(&file, text + "\n").map_err(|error| Failure::Run(format!("{FILE}: {error}")))
}
