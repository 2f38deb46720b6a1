//! `quipu compare`.

use quipu_lab::plan::Plan;

use crate::args::CompareOptions;
use crate::failure::Failure;
use crate::own::Own;
use crate::{batch, scenario};

pub(crate) fn run(options: &CompareOptions, own: &Own<'_>) -> Result<(), Failure> {
    let plan = plan(options, own)?;
    batch::run(&plan, &options.batch, options.sort)
}

fn plan(options: &CompareOptions, own: &Own<'_>) -> Result<Plan, Failure> {
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
    given.plan(own)
}
