//! `quipu run`.

use crate::args::RunOptions;
use crate::batch;
use crate::failure::Failure;
use crate::own::Own;
use crate::scenario::Given;

pub(crate) fn run(options: &RunOptions, own: &Own<'_>) -> Result<(), Failure> {
    let mut given = Given::load(Some(&options.file))?;
    given.set("runs", "--runs", options.runs.as_deref())?;
    given.assign(&options.set)?;
    let plans = given.plans(own, options.batch.range)?;
    batch::run(&plans, &options.batch, options.sort)
}
