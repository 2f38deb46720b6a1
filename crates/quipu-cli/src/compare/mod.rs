//! `quipu compare`; `live` is over real uplinks.

mod live;

use quipu_lab::batch::Batch;
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::results::{failure, summary};
use quipu_lab::run::logs::QlogFolder;
use quipu_lab::table::Order;
use quipu_record::{Output, RunRecord};

use crate::args::{BatchOptions, CompareOptions, LiveLogOptions, ScenarioOptions, WorldChoice};
use crate::failure::Failure;
use crate::own::Own;
use crate::scenario::Given;
use crate::{batch, logs, page_loads, scenario, world};

pub(crate) fn run(options: &CompareOptions, own: &Own<'_>) -> Result<(), Failure> {
    if let Some(url) = &options.live.live {
        return live::run(options, url, given(options)?, own);
    }
    if options.world.world == WorldChoice::Emulated {
        let ScenarioOptions { http, tls, host, .. } = &options.scenario;
        world::refuse_simulated([
            (tls.is_some(), "--tls", "none"),
            (host.is_some(), "--host", "none, as hosts are real,"),
        ])?;
        let how = (&options.batch, order(options));
        return world::run_emulated(given(options)?, http.as_deref(), how, own);
    }
    let plans = given(options)?.plans(own, options.batch.range)?;
    batch::run(&plans, &options.batch, order(options), own)
}

fn given(options: &CompareOptions) -> Result<Given, Failure> {
    let mut given = scenario::build(&options.scenario)?;
    let fields = [
        ("runs", "--runs", &options.runs),
        ("policies.stream", "--stream", &options.stream),
        ("policies.path", "--path", &options.path),
        ("policies.joint", "--joint", &options.joint),
    ];
    for (field, option, value) in fields {
        given.set(field, option, value.as_deref())?;
    }
    given.scenario.policies.baselines &= !options.no_baselines;
    Ok(given)
}

fn order(options: &CompareOptions) -> Order {
    Order { sort: options.sort, top: options.top.map(usize::from) }
}

/// Where a comparison in real time is kept: its results and its logs.
struct Kept {
    output: Option<Output>,
    logs: Option<QlogFolder>,
}

/// Sets what a comparison in real time means, which `option` asked for, and refuses what only a simulated one can be.
fn prepare(options: &CompareOptions, given: &mut Given, option: &str) -> Result<Kept, Failure> {
    page_loads::over_h3(given, options.scenario.http.as_deref(), option)?;
    given.set("transport.tls", option, Some("rustls"))?;
    page_loads::refuse(given.scenario.has_traffic(), "flows", "pages alone", option)?;
    page_loads::refuse(given.scenario.clients.count > 1, "clients", "one", option)?;
    page_loads::check(&given.scenario, option)?;
    let BatchOptions { out, force, logs, .. } = &options.batch;
    let output = scenario::prepare_output(&given.scenario, out.as_deref(), *force)?;
    let (qlog, qlog_version) = (logs.qlog.clone(), logs.qlog_version.clone());
    let logs = logs::of_sockets(&LiveLogOptions { qlog, qlog_version }, "quipu compare")?;
    Ok(Kept { output, logs })
}

/// Writes and prints what came of it.
fn conclude(
    options: &CompareOptions,
    plan: &Plan,
    batch: &Batch,
    Kept { output, logs }: Kept,
    own: &Own<'_>,
) -> Result<(), Failure> {
    let logged = logs.map_or(Ok(()), |logs| logs.finish().map(drop).map_err(Failure::run));
    batch::conclude(plan, batch, output, logged, (&options.batch, order(options)), own)
}

/// What came of all loads, in the order of the plan.
fn batch_of(
    plan: &Plan,
    mut finished: Vec<(Cell, RunRecord)>,
    mut failed: Vec<(Cell, String)>,
) -> Batch {
    finished.sort_by_key(|(cell, _)| *cell);
    failed.sort_by_key(|(cell, _)| *cell);
    let failures = failed.into_iter().map(|(cell, reason)| failure(plan, cell, reason));
    let summary = summary(plan, &finished, failures.collect());
    Batch { finished, summary }
}
