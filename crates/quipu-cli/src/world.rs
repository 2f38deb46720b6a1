//! Runs in the world that a command was asked for.

use std::sync::Arc;

use quipu_lab::plan::Maker;
use quipu_lab::table::Order;
use quipu_scenario::{Discovery, Push, Scenario, Stack, Start};

use crate::args::{BatchOptions, PriorityOption, WorldOptions};
#[cfg(not(target_os = "linux"))]
pub(crate) use crate::elsewhere::Emulator;
#[cfg(target_os = "linux")]
pub(crate) use crate::emulated::Emulator;
use crate::failure::Failure;
use crate::foreign::ForeignStacks;
use crate::own::Own;
use crate::scenario::Given;
use crate::{batch, logs, page_loads, scenario, stop};

/// What makes the runs, if they are not simulated. To be called before this process has another thread.
///
/// # Errors
/// If links cannot be emulated here, or the options do not go together.
pub(crate) fn maker(options: WorldOptions) -> Result<Option<Arc<Emulator>>, Failure> {
    let priority = options.emulated()?;
    priority.map(|priority| Emulator::new(priority, None)).transpose()
}

/// The same as what makes runs of any plan.
pub(crate) fn as_maker(emulator: &Arc<Emulator>) -> Arc<dyn Maker> {
    Arc::clone(emulator) as Arc<dyn Maker>
}

/// Makes all runs of a scenario over emulated links, writes their results if that was asked for, and prints their
/// tables. `priority` is that of what carries packets.
pub(crate) fn run_emulated(
    given: Given,
    (options, order): (&BatchOptions, Order),
    priority: PriorityOption,
    own: &Own<'_>,
) -> Result<(), Failure> {
    let BatchOptions { jobs, range, qlog_runs, out, force, .. } = options;
    refuse_simulated([
        (jobs.is_some(), "--jobs", "none, as one load is made after the other,"),
        (*range, "--range", "none"),
        (qlog_runs.is_some(), "--qlog-runs", "none"),
    ])?;
    check(&given.scenario, &own.stacks)?;
    let output = scenario::prepare_output(&given.scenario, out.as_deref(), *force)?;
    let logs = logs::of_real_time(&options.logs, "quipu")?;
    let emulator = Emulator::new(priority, logs)?;
    let plan = given.told_plan(own)?.emulated(as_maker(&emulator));
    stop::on_request(&plan.stop)?;
    emulator.start(&plan)?;
    let batch = batch::with_progress(&plan, Default::default(), None, &plan.stop, None)?;
    if let Some(output) = &output {
        emulator.write(output.folder())?;
    }
    let logged = emulator.logged();
    drop(emulator);
    batch::conclude(&plan, &batch, output, logged, (options, order), own)
}

/// Fails if one of the options, each with whether it was given and what was expected, is for simulated runs alone.
pub(crate) fn refuse_simulated<const N: usize>(
    options: [(bool, &str, &str); N],
) -> Result<(), Failure> {
    options.into_iter().try_for_each(|(is_given, option, expected)| {
        page_loads::refuse(is_given, option, expected, page_loads::EMULATED)
    })
}

/// Checks that a scenario asks for nothing that only simulated runs can be, nor for a stack beside `stacks`, those of other
/// libraries that this program has.
///
/// # Errors
/// If it does.
pub(crate) fn check(scenario: &Scenario, stacks: &ForeignStacks) -> Result<(), Failure> {
    let usual = Scenario::default();
    let transport = &scenario.transport;
    let refused = [
        (scenario.has_traffic(), "flows", "pages alone"),
        (scenario.clients.count > 1, "clients", "one"),
        (scenario.host != usual.host, "host", "none, as hosts are real,"),
        (scenario.series != usual.series, "series", "none"),
        (
            transport.request_limit != usual.transport.request_limit,
            "transport.request_limit",
            "the default",
        ),
        (scenario.push != Push::None, "push", "none"),
        // Servers think for as long as is likely.
        (scenario.compute != usual.compute, "compute", "likely"),
    ];
    refuse_simulated(refused)?;
    page_loads::check_load(scenario, page_loads::EMULATED)?;
    check_browsers(scenario)?;
    stacks.check(scenario)
}

/// Checks that a scenario with a browser among its stacks asks for nothing that only the model of one can be.
fn check_browsers(scenario: &Scenario) -> Result<(), Failure> {
    let browser = scenario.stack.iter().find(|stack| matches!(stack, Stack::Browser(_)));
    let Some(browser) = browser else { return Ok(()) };
    let option = format!("--stack {browser}");
    let is_cold = scenario.transport.start == Start::Cold;
    page_loads::refuse(!is_cold, "start", "cold", &option)?;
    let is_recorded = scenario.discovery == Discovery::Recorded;
    page_loads::refuse(!is_recorded, "discovery", "recorded", &option)
}
