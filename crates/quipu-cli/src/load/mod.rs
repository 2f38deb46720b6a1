//! `quipu load`; `live` is over real uplinks.

mod live;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use quipu_lab::batch::Runner;
use quipu_lab::detail::{Options, recording, replay};
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::run::Instruments;
use quipu_lab::table::{self, WaterfallOptions};
use quipu_record::{Carried, Output, RunRecord, write_whole};

use crate::args::{LoadOptions, PriorityOption, ScenarioOptions};
use crate::failure::Failure;
use crate::own::Own;
use crate::scenario::Given;
use crate::{logs, page_loads, scenario, stop, world};

pub(crate) fn run(options: &LoadOptions, own: &Own<'_>) -> Result<(), Failure> {
    let priority = options.world.emulated()?;
    let given = one_page(options)?;
    if let Some(url) = &options.live.live {
        return live::run(options, url, given, own);
    }
    if let Some(priority) = priority {
        return emulated(options, given, priority, own);
    }
    page_loads::check_simulated(&given.scenario)?;
    let plan = plan(options, given, own)?;
    let output = scenario::prepare_output(&plan.scenario, options.out.as_deref(), options.force)?;
    stop::on_request(&plan.stop)?;
    let logs = logs::of_one(&options.logs)?;
    let instruments = Instruments::default().with_logs(logs.clone());
    let runner = Runner::with_instruments(&plan, instruments);
    let cell = Cell { page: 0, network: 0, policy: 0, run: options.run };
    let records = runner.run_into(output.as_ref(), cell);
    if plan.stop.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    let records = records.map_err(Failure::run)?;
    logs::finish(logs.as_ref())?;
    if let Some(file) = &options.har {
        let har = recording(&plan, cell, true).map_err(Failure::run)?;
        write_whole(file, har)
            .map_err(|error| Failure::Run(format!("cannot write {}: {error}", file.display())))?;
    }
    conclude(options, &plan, records, output, own)
}

/// The load over emulated links.
fn emulated(
    options: &LoadOptions,
    given: Given,
    priority: PriorityOption,
    own: &Own<'_>,
) -> Result<(), Failure> {
    let ScenarioOptions { tls, host, .. } = &options.scenario;
    world::refuse_simulated([
        (tls.is_some(), "--tls", "none"),
        (host.is_some(), "--host", "none, as hosts are real,"),
        (options.har.is_some(), "--har", "none"),
    ])?;
    world::check(&given.scenario, &own.stacks)?;
    let logs = logs::of_real_time(&options.logs, "quipu load")?;
    let emulator = world::Emulator::new(priority, logs)?;
    let plan = plan(options, given, own)?.emulated(world::as_maker(&emulator));
    let output = scenario::prepare_output(&plan.scenario, options.out.as_deref(), options.force)?;
    stop::on_request(&plan.stop)?;
    let cell = Cell { page: 0, network: 0, policy: 0, run: options.run };
    let records = Runner::new(&plan).run_session(cell);
    if let Some(output) = &output {
        emulator.write(output.folder())?;
    }
    let logged = emulator.logged();
    drop(emulator);
    if plan.stop.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    logged?;
    conclude(options, &plan, records.map_err(Failure::run)?, output, own)
}

/// Writes and prints what was measured.
fn conclude(
    options: &LoadOptions,
    plan: &Plan,
    records: Vec<RunRecord>,
    output: Option<Output>,
    own: &Own<'_>,
) -> Result<(), Failure> {
    let cell = Cell { page: 0, network: 0, policy: 0, run: options.run };
    let finished: Vec<_> = records.into_iter().map(|record| (cell, record)).collect();
    if let Some(output) = output {
        let summary = quipu_lab::results::summary(plan, &finished, Vec::new());
        quipu_lab::results::write(output, plan, &finished, &summary).map_err(Failure::run)?;
    }
    let screen = own.terminal.screen;
    let options = WaterfallOptions { screen, rows: options.rows };
    let mut text = String::new();
    for (cell, record) in &finished {
        text.push_str(&screen.fold(&table::load_summary(plan, *cell, record)));
        // One drawing tells more than a thousand.
        if record.client == 0 {
            text.push('\n');
            let page = plan.visit(*cell, record.visit).map_err(Failure::run)?;
            let (carried, paths) = carried(plan, *cell);
            text.push_str(&table::waterfall(&page, record, &carried, &paths, options));
        }
    }
    crate::print(&text)
}

/// What each path brought of each object of the first client's load, which is run again for it, and the names of paths.
/// Nothing of a load that is too large to be looked at, nor of sessions, which would be run again for each of their pages.
fn carried(plan: &Plan, cell: Cell) -> (BTreeMap<u32, Vec<Carried>>, Vec<String>) {
    // Of a load in real time nobody looked on.
    let is_simulated = plan.maker.is_none();
    let detail = match plan.scenario.session {
        1 if is_simulated => replay(plan, cell, &Options::default()).ok(),
        _ => None,
    };
    let Some(detail) = detail else { return (BTreeMap::new(), Vec::new()) };
    let objects = detail.objects.into_iter();
    (objects.map(|object| (object.object, object.carried)).collect(), detail.paths)
}

/// The scenario with one page, one network and no more.
fn one_page(options: &LoadOptions) -> Result<Given, Failure> {
    let mut given = scenario::build(&options.scenario)?;
    let scenario = &mut given.scenario;
    if !scenario.has_pages() {
        let message = "the scenario has no page to load; give one by --page";
        return Err(Failure::Usage(message.to_owned()));
    }
    for (what, many) in [("--page", scenario.pages.len()), ("--network", scenario.networks.len())] {
        let given = options.scenario.page.len().max(options.scenario.network.len());
        if many > 1 && given > 1 {
            return Err(Failure::Usage(format!("{what}: one load takes one, not {many}")));
        }
    }
    scenario.pages.truncate(1);
    scenario.networks.truncate(1);
    scenario.policies.baselines = false;
    Ok(given)
}

/// The plan of a simulated load.
fn plan(options: &LoadOptions, mut given: Given, own: &Own<'_>) -> Result<Plan, Failure> {
    let scenario = &mut given.scenario;
    if options.out.is_some() {
        // The scenario that is written beside the results has this run as its last.
        scenario.runs = options.run.saturating_add(1);
    }
    match &options.joint {
        Some(joint) => {
            scenario.policies.stream.clear();
            scenario.policies.path.clear();
            scenario.policies.joint = vec![joint.clone()];
        }
        None => {
            scenario.policies.joint.clear();
            scenario.policies.stream = vec![options.stream.clone().unwrap_or("dwrr".to_owned())];
            scenario.policies.path = vec![options.path.clone().unwrap_or("minrtt".to_owned())];
        }
    }
    if options.har.is_some() && scenario.http.is_raw() {
        return Err(Failure::Usage("--har: raw streams have no requests".to_owned()));
    }
    let plan = given.told_plan(own)?;
    let policies = plan.networks.first().map_or(0, |network| network.policies.len());
    if policies > 1 {
        return Err(Failure::Usage(format!(
            "one load takes one choice of policies, not {policies}"
        )));
    }
    Ok(plan)
}
