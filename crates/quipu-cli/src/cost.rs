//! `quipu cost`.

use std::sync::Arc;
use std::time::Instant;

use quipu_lab::run::Clock;
use quipu_study::cost;

use crate::args::CostOptions;
use crate::failure::Failure;
use crate::own::Own;
use crate::scenario::Given;
use crate::{print, progress};

pub(crate) fn run(options: &CostOptions, own: &Own<'_>) -> Result<(), Failure> {
    let mut plans = Vec::with_capacity(options.files.len());
    for file in &options.files {
        let mut given = Given::load(Some(file))?;
        given.set("runs", "--runs", options.runs.as_deref())?;
        given.assign(&options.set)?;
        let plan = given.plan(own)?;
        if plan.pages.is_empty() {
            let file = file.display();
            return Err(Failure::Usage(format!("{file}: pages are missing; expected one or more")));
        }
        plans.push(plan);
    }
    let clock = clock();
    for plan in plans {
        let bar = progress::bar(plan.cells().count() as u64);
        let costs = cost::measure(&plan, &clock, &|done| bar.set_position(done as u64));
        bar.finish_and_clear();
        print(&costs.map_err(|error| Failure::run(error.to_string()))?.to_string())?;
    }
    Ok(())
}

/// The time of this machine, in nanoseconds since now.
#[expect(clippy::disallowed_methods, reason = "what is measured here is real time, not a result")]
fn clock() -> Clock {
    let start = Instant::now();
    // 584 years pass before the nanoseconds do not fit.
    Arc::new(move || start.elapsed().as_nanos() as u64)
}
