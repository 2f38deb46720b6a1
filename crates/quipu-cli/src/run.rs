//! `quipu run`.

use quipu_lab::plan::Plan;
use quipu_lab::policies::Registry;
use quipu_lab::scenario::Scenario;

use crate::args::RunOptions;
use crate::failure::Failure;
use crate::{scenario, sweep};

pub(crate) fn run(options: &RunOptions, registry: &Registry) -> Result<(), Failure> {
    let scenario = Scenario::load(&options.file).map_err(Failure::usage)?;
    let scenario = scenario::set(scenario, "runs", options.runs.as_deref())?;
    let scenario = scenario::assign(scenario, &options.set)?;
    let mut plan = Plan::with_registry(scenario, registry).map_err(Failure::usage)?;
    sweep::run(&mut plan, &options.sweep, options.sort)
}
