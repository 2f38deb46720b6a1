//! `quipu run`.

use quipu_lab::table::Order;

use crate::args::RunOptions;
use crate::batch;
use crate::failure::Failure;
use crate::own::Own;
use crate::scenario::Given;

pub(crate) fn run(options: &RunOptions, own: &Own<'_>) -> Result<(), Failure> {
    let mut given = Given::load(Some(&options.file))?;
    given.name_columns(options.trace_columns.as_deref())?;
    given.set("runs", "--runs", options.runs.as_deref())?;
    given.assign(&options.set)?;
    let plans = given.plans(own, options.batch.range)?;
    let order = Order { sort: options.sort, top: None };
    batch::run(&plans, &options.batch, order, own)
}
