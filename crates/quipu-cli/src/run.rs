//! `quipu run`.

use quipu_lab::table::Order;

use crate::args::RunOptions;
use crate::failure::Failure;
use crate::own::Own;
use crate::scenario::Given;
use crate::{batch, page_loads, world};

pub(crate) fn run(options: &RunOptions, own: &Own<'_>) -> Result<(), Failure> {
    let emulated = options.world.emulated()?;
    let mut given = Given::load(Some(&options.file))?;
    given.name_columns(options.trace_columns.as_deref())?;
    given.set("runs", "--runs", options.runs.as_deref())?;
    given.assign(&options.set)?;
    let order = Order { sort: options.sort, top: None };
    if let Some(priority) = emulated {
        return world::run_emulated(given, (&options.batch, order), priority, own);
    }
    page_loads::check_simulated(&given.scenario)?;
    let plans = given.plans(own, options.batch.range)?;
    batch::run(&plans, &options.batch, order, own)
}
