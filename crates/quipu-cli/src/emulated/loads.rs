//! What the process of a client does: it makes the loads that it is asked for, one after the other.

use std::io::{self, BufRead, Write as _};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quipu_lab::plan::{Cell, Plan};
use quipu_lab::run::logs::QlogFolder;
use quipu_record::RunRecord;
use quipu_scenario::{ForeignChoice, Scenario, Stack, Start};
use quipu_tokio::{Endpoint, tokio};

use super::asked::{Answer, Asked, Job, LogsOf};
use super::{kernel, other, stack};
use crate::args::UplinkOptions;
use crate::failure::Failure;
use crate::foreign::{Connecting, Way};
use crate::own::Own;
use crate::page_loads::{Client, Server, Setup, ways};
use crate::{live, stop};

/// Makes the loads that standard input asks for, until it ends.
///
/// # Errors
/// If it cannot be understood, or nobody listens.
pub(crate) fn run(own: &Own<'_>) -> Result<(), Failure> {
    let stop = Arc::default();
    stop::on_request(&stop)?;
    let mut known: Option<(String, Plan)> = None;
    while let Some(asked) = heard()? {
        let Asked::Load(job) = asked else { return Err(unexpected()) };
        let plan = match known.take() {
            Some((text, plan)) if text == job.scenario => Ok(plan),
            _ => plan_of(&job.scenario, own, &stop),
        };
        let (loaded, unlogged) = match plan {
            Ok(plan) => {
                let (_, plan) = known.insert((job.scenario.clone(), plan));
                load(plan, &job, own)
            }
            Err(failure) => (Err(failure), None),
        };
        let loaded = loaded.map(Box::new).map_err(Failure::reason);
        tell(&Answer::Over { loaded, unlogged })?;
    }
    Ok(())
}

/// The next line of standard input; `None`: it has ended.
fn heard() -> Result<Option<Asked>, Failure> {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line).map_err(Failure::run)? {
        0 => Ok(None),
        _ => serde_json::from_str(&line).map(Some).map_err(|error| {
            Failure::Usage(format!("this is no load: {error}; loads are asked for by emulations"))
        }),
    }
}

fn unexpected() -> Failure {
    Failure::Usage("expected a load".to_owned())
}

fn tell(answer: &Answer) -> Result<(), Failure> {
    let mut line = serde_json::to_vec(answer).map_err(Failure::run)?;
    line.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&line).and_then(|()| output.flush()).map_err(Failure::run)
}

/// Tells that all is there, and waits until links begin.
fn begin() -> Result<(), Failure> {
    tell(&Answer::Ready)?;
    match heard()? {
        Some(Asked::Begin) => Ok(()),
        Some(Asked::Load(_)) => Err(unexpected()),
        None => Err(Failure::Interrupted),
    }
}

fn plan_of(text: &str, own: &Own<'_>, stop: &Arc<AtomicBool>) -> Result<Plan, Failure> {
    let scenario = Scenario::from_toml(text, "scenario.toml").map_err(Failure::usage)?;
    let mut plan = Plan::with_registry(scenario, own.registry).map_err(Failure::usage)?;
    plan.stop = Arc::clone(stop);
    Ok(plan)
}

/// Makes a load, and tells why it could not be logged.
fn load(plan: &Plan, job: &Job, own: &Own<'_>) -> (Result<RunRecord, Failure>, Option<String>) {
    let logs = job.logs.as_ref().map(folder).transpose();
    let (cell, logs) = match cell_of(plan, job).and_then(|cell| Ok((cell, logs?))) {
        Ok(known) => known,
        Err(failure) => return (Err(failure), None),
    };
    let loading = Load { plan, job, own, cell };
    // Files have their names when their connections are gone, with all that runs here.
    let loaded =
        live::runtime_of(Some(1)).and_then(|runtime| runtime.block_on(loading.make(logs.as_ref())));
    let unlogged = logs.and_then(|logs| logs.finish().err()).map(|error| error.to_string());
    (loaded, unlogged)
}

/// The run, if the plan has its page, network and policy.
fn cell_of(plan: &Plan, job: &Job) -> Result<Cell, Failure> {
    let cell = Cell::from(job.cell);
    let policies = plan.networks.get(cell.network).map_or(0, |network| network.policies.len());
    let is_known = cell.policy < policies && cell.page < plan.page_count();
    is_known.then_some(cell).ok_or_else(|| Failure::Usage(format!("the scenario has no {cell:?}")))
}

fn folder(LogsOf { folder, form, title }: &LogsOf) -> Result<QlogFolder, Failure> {
    let form = form.parse().map_err(Failure::usage)?;
    QlogFolder::create(folder, form, title).map_err(Failure::usage)
}

/// One load.
struct Load<'a> {
    plan: &'a Plan,
    job: &'a Job,
    own: &'a Own<'a>,
    cell: Cell,
}

impl Load<'_> {
    async fn make(&self, logs: Option<&QlogFolder>) -> Result<RunRecord, Failure> {
        let Load { plan, job, cell, .. } = *self;
        let (interfaces, server) = (job.interfaces.as_slice(), job.address);
        let others = other::Load { plan, cell, interfaces, server };
        match stack(plan, cell) {
            Stack::Quipu => self.with_own_stack(logs).await,
            Stack::Kernel(stack) => {
                others.run(begin, kernel::connect(stack, server, &job.pin)).await
            }
            Stack::Foreign(stack) => others.run(begin, self.connect(stack)).await,
            Stack::Browser(_) => Err(Failure::Run("browsers are clients of their own".to_owned())),
        }
    }

    async fn with_own_stack(&self, logs: Option<&QlogFolder>) -> Result<RunRecord, Failure> {
        let Load { plan, job, own, cell } = *self;
        let vias = &job.interfaces;
        let uplinks = UplinkOptions { via: vias.clone(), pin: Some(job.pin.clone()), ca: None };
        let server = Server::of(&format!("https://{}", job.address), &uplinks)?;
        let control = live::bind(Endpoint::client(), vias)?;
        let addresses = server.addresses().await?;
        let (ways, addresses) = ways(control.uplinks(), vias, addresses);
        // As many as the network has.
        let paths = u32::try_from(ways.len()).unwrap_or(u32::MAX);
        let setup = Some(Setup::of(&plan.scenario, paths)?);
        let registry = own.registry;
        let client = Client { server, registry, control, addresses, vias, ways, logs, plan, setup };
        let loaded = tokio::select! {
            loaded = client.load(cell, begin) => loaded,
            () = live::asked_to_stop(&plan.stop) => Err(Failure::Interrupted),
        };
        client.control.wait_idle_for(live::FAREWELL).await;
        loaded
    }

    /// A connection of a stack that the program brings, over all paths if it uses several.
    async fn connect(&self, choice: ForeignChoice) -> Result<quipu_live::Client, Failure> {
        let Load { plan, job, own, .. } = *self;
        let mut ways: Vec<Way> =
            job.ways.iter().map(|&(local, server)| Way { local, server }).collect();
        if !choice.is_multipath() {
            ways.truncate(1);
        }
        let mut to = Connecting::new(ways, job.pin.parse().map_err(Failure::run)?);
        to.congestion = choice.congestion;
        to.waits_for_paths = plan.scenario.transport.start != Start::Cold;
        let connected = own.stacks.of(choice)?.connect(to).await;
        connected.map(quipu_live::Client::Foreign).map_err(Failure::run)
    }
}
