//! `quipu compare`.

use quipu_lab::plan::Plan;
use quipu_lab::policies::Registry;

use crate::args::CompareOptions;
use crate::failure::Failure;
use crate::{batch, scenario};

pub(crate) fn run(options: &CompareOptions, registry: &Registry) -> Result<(), Failure> {
    let mut plan = plan(options, registry)?;
    batch::run(&mut plan, &options.batch, options.sort)
}

fn plan(options: &CompareOptions, registry: &Registry) -> Result<Plan, Failure> {
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
    given.plan(registry)
}
