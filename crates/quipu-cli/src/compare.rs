//! `quipu compare`.

use quipu_lab::plan::Plan;
use quipu_lab::policies::Registry;

use crate::args::CompareOptions;
use crate::failure::Failure;
use crate::{scenario, sweep};

pub(crate) fn run(options: &CompareOptions, registry: &Registry) -> Result<(), Failure> {
    let mut plan = plan(options, registry)?;
    sweep::run(&mut plan, &options.sweep, options.sort)
}

fn plan(options: &CompareOptions, registry: &Registry) -> Result<Plan, Failure> {
    let mut scenario = scenario::build(&options.scenario)?;
    let fields = [
        ("runs", &options.runs),
        ("policies.stream", &options.stream),
        ("policies.path", &options.path),
        ("policies.joint", &options.joint),
    ];
    for (field, value) in fields {
        scenario = scenario::set(scenario, field, value.as_deref())?;
    }
    scenario.policies.baselines &= !options.no_baselines;
    Plan::with_registry(scenario, registry).map_err(Failure::usage)
}
