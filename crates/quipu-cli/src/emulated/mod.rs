//! Runs over emulated links: this program's client and server as processes, in real time, for all commands that make runs
//! of plans.

mod asked;
mod browser;
mod client;
mod kernel;
pub(crate) mod loads;
mod measured;
mod other;
mod server;
mod site;
mod told;
mod voids;

use std::process::Command;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use quipu_emu::Settings;
use quipu_lab::plan::{Cell, MakeError, Maker, Plan};
use quipu_lab::run::logs::QlogFolder;
use quipu_record::RunRecord;
use quipu_scenario::Stack;

use self::client::Outcome;
use self::site::Site;
use self::told::Told;
use self::voids::Voids;
use crate::args::PriorityOption;
use crate::emulate::enter;
use crate::failure::Failure;
use crate::own;

/// Emulations that are kept for the next load, each with its hosts and servers; our choice.
const SITES: usize = 8;

/// Makes runs over emulated links, one after the other.
#[derive(Debug)]
pub(crate) struct Emulator {
    /// Where clients log their connections.
    logs: Option<QlogFolder>,
    /// Of each emulation.
    settings: Settings,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The last used is the last.
    sites: Vec<Site>,
    told: Vec<Told>,
    voids: Voids,
    /// Why a client could not log its connections, the first time.
    unlogged: Option<String>,
}

impl Emulator {
    /// With that priority of what carries packets. `logs` are of clients. To be called before this process has another
    /// thread.
    ///
    /// # Errors
    /// If this user may not emulate links.
    pub(crate) fn new(
        PriorityOption { priority }: PriorityOption,
        logs: Option<QlogFolder>,
    ) -> Result<Arc<Emulator>, Failure> {
        enter()?;
        let settings = Settings { priority, ..Settings::default() };
        Ok(Arc::new(Emulator { logs, settings, state: Mutex::default() }))
    }

    /// Starts what the first run of `plan` needs, so that what is missing here is told before any run.
    ///
    /// # Errors
    /// If links cannot be emulated here, the page cannot be served, or there is no browser for a row that needs one.
    pub(crate) fn start(&self, plan: &Plan) -> Result<(), Failure> {
        if plan.rows().any(|row| matches!(row.stack, Stack::Browser(_))) {
            quipu_recorder::find_browser().map_err(Failure::usage)?;
        }
        let Some(cell) = plan.interleaved().first().copied() else { return Ok(()) };
        self.with(|state| state.site(plan, cell, &self.settings)?.server(plan, cell).map(drop))
    }

    /// Makes sure that all logs were written.
    ///
    /// # Errors
    /// If one was not: the first.
    pub(crate) fn logged(&self) -> Result<(), Failure> {
        self.with(|state| state.unlogged.take()).map_or(Ok(()), |reason| Err(Failure::Run(reason)))
    }

    fn with<T>(&self, call: impl FnOnce(&mut State) -> T) -> T {
        // One run is made after the other, by whichever thread.
        call(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the emulator says of each load since the last call.
    fn told(&self) -> Vec<Told> {
        self.with(|state| std::mem::take(&mut state.told))
    }
}

impl Maker for Emulator {
    fn make(&self, plan: &Plan, cell: Cell) -> Result<Vec<RunRecord>, MakeError> {
        let made = self.with(|state| state.make(plan, cell, (&self.settings, self.logs.as_ref())));
        made.map(|record| vec![record]).map_err(MakeError)
    }
}

impl State {
    /// The emulation for the run of `cell`, and its links as new.
    fn site(&mut self, plan: &Plan, cell: Cell, settings: &Settings) -> Result<&mut Site, Failure> {
        let found = Site::fitting(&self.sites, plan, cell)?;
        let site = match found {
            Ok(position) => self.sites.remove(position),
            Err(emulated) => {
                if self.sites.len() >= SITES {
                    self.sites.remove(0);
                }
                Site::start(*emulated, settings)?
            }
        };
        self.sites.push(site);
        let last = self.sites.len() - 1;
        Ok(&mut self.sites[last])
    }

    /// The load of `cell`, made again while it is void.
    fn make(
        &mut self,
        plan: &Plan,
        cell: Cell,
        how: (&Settings, Option<&QlogFolder>),
    ) -> Result<RunRecord, String> {
        let mut voids = std::mem::take(&mut self.voids);
        let attempt = |number| self.attempt(plan, cell, how, number);
        let made = voids.counted(attempt, |warning| eprintln!("warning: {warning}"));
        self.voids = voids;
        made
    }

    /// The load of `cell` for the `number`-th time, and why it is void, if it is.
    fn attempt(
        &mut self,
        plan: &Plan,
        cell: Cell,
        (settings, logs): (&Settings, Option<&QlogFolder>),
        number: u32,
    ) -> Result<(Vec<String>, Result<RunRecord, String>), String> {
        let site = self.site(plan, cell, settings).map_err(Failure::reason)?;
        let outcome = site.load(plan, cell, logs);
        if plan.stop.load(Ordering::Relaxed) {
            return Err("stopped".to_owned());
        }
        let report = site.report().map_err(|error| error.to_string())?;
        let void = report.void.clone();
        self.told.push(Told::new(plan, cell, number, report));
        let loaded = match outcome {
            Ok(Outcome { loaded, unlogged }) => {
                self.unlogged = self.unlogged.take().or(unlogged);
                loaded
            }
            Err(failure) => Err(failure.reason()),
        };
        Ok((void, loaded))
    }
}

/// What carries the page of `cell`.
fn stack(plan: &Plan, cell: Cell) -> Stack {
    plan.networks[cell.network].policies[cell.policy].stack
}

/// This program, for a host. Its allocator asks for no huge pages: the kernel clears two megabytes at once, in the middle of
/// a load, where processes are as young as these.
fn own_command() -> Result<Command, Failure> {
    let mut command = own::command()?;
    command.env("MIMALLOC_ALLOW_THP", "0");
    Ok(command)
}
