//! All runs of a plan, with a progress bar: what `quipu compare` and `quipu run` have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_lab::batch::{Batch, Runner, run_all};
use quipu_lab::plan::Plan;
use quipu_lab::run::Instruments;
use quipu_lab::table;
use quipu_record::{Metric, Output, computing_range};

use crate::args::BatchOptions;
use crate::failure::Failure;
use crate::scenario::Plans;
use crate::{logs, progress, scenario};

/// Runs the plan, writes its results if they are asked for, and prints its tables. After Ctrl-C, with
/// the runs that were finished. With a range, it is told what other readings of recordings turn.
pub(crate) fn run(
    Plans { plan, range }: &Plans,
    options: &BatchOptions,
    sort: Option<Metric>,
) -> Result<(), Failure> {
    let output = scenario::prepare_output(&plan.scenario, options.out.as_deref(), options.force)?;
    let logs = logs::of_many(plan, &options.logs, options.qlog_runs)?;
    let instruments = Instruments::default().with_logs(logs.clone());

    let cancelled = &*plan.stop;
    let flag = Arc::clone(&plan.stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .map_err(|error| Failure::Run(format!("cannot listen for Ctrl-C: {error}")))?;

    let mut batch = with_progress(plan, instruments, options.jobs, cancelled, output.as_ref())?;
    if let Some(range) = range {
        let mut others = Vec::with_capacity(range.len());
        for (compute, other) in range {
            let other =
                with_progress(other, Instruments::default(), options.jobs, cancelled, None)?;
            others.push((compute.to_string(), other.summary));
        }
        // Some runs alone would tell of turns that are none.
        if !cancelled.load(Ordering::Relaxed) {
            batch.summary.computing_range = Some(computing_range(&batch.summary, &others));
        }
    }
    if let Some(output) = output {
        quipu_lab::results::write(output, plan, &batch.finished, &batch.summary)
            .map_err(Failure::run)?;
    }
    logs::finish(logs.as_ref())?;
    crate::print(&table::compare(plan, &batch.summary, sort))?;
    if cancelled.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    match batch.summary.failures.len() {
        0 => Ok(()),
        failures => {
            let planned = batch.summary.runs_planned;
            Err(Failure::Run(format!("{failures} of {planned} runs failed")))
        }
    }
}

fn with_progress(
    plan: &Plan,
    instruments: Instruments,
    jobs: Option<u16>,
    cancelled: &AtomicBool,
    output: Option<&Output>,
) -> Result<Batch, Failure> {
    let bar = progress::bar(plan.cells().count() as u64);
    let jobs = jobs.map(usize::from);
    let runner = Runner::with_instruments(plan, instruments);
    let run = |_: &Plan, cell| runner.run_into(output, cell);
    let batch = run_all(plan, jobs, cancelled, &|_| bar.inc(1), &run);
    bar.finish_and_clear();
    batch.map_err(Failure::run)
}
