//! `quipu run`.

use quipu_lab::policies::Registry;

use crate::args::RunOptions;
use crate::failure::Failure;
use crate::scenario::Given;
use crate::sweep;

pub(crate) fn run(options: &RunOptions, registry: &Registry) -> Result<(), Failure> {
    let mut given = Given::load(Some(&options.file))?;
    given.set("runs", "--runs", options.runs.as_deref())?;
    given.assign(&options.set)?;
    let mut plan = given.plan(registry)?;
    sweep::run(&mut plan, &options.sweep, options.sort)
}
