//! All runs of a plan, with a progress bar: what `quipu compare` and `quipu run` have in common.

use std::sync::atomic::{AtomicBool, Ordering};

use quipu_lab::batch::{Batch, Runner, run_all};
use quipu_lab::plan::Plan;
use quipu_lab::run::Instruments;
use quipu_lab::table::{self, Order};
use quipu_record::{Output, Summary, computing_range};

use crate::args::BatchOptions;
use crate::failure::Failure;
use crate::own::Own;
use crate::scenario::Plans;
use crate::terminal::{Format, Terminal, csv, json};
use crate::{logs, progress, scenario, stop};

/// Runs the plan, writes its results if they are asked for, and prints its tables. After Ctrl-C, with
/// the runs that were finished. With a range, it is told what other readings of recordings turn.
pub(crate) fn run(
    Plans { plan, range }: &Plans,
    options: &BatchOptions,
    order: Order,
    own: &Own<'_>,
) -> Result<(), Failure> {
    let output = scenario::prepare_output(&plan.scenario, options.out.as_deref(), options.force)?;
    let logs = logs::of_many(plan, &options.logs, options.qlog_runs)?;
    let instruments = Instruments::default().with_logs(logs.clone());

    let cancelled = &*plan.stop;
    stop::on_request(&plan.stop)?;

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
    let logged = logs::finish(logs.as_ref());
    conclude(plan, &batch, output, logged, (options, order), own)
}

/// Writes the results, if they are asked for, then tells whether logs could be written, and prints the tables. Fails
/// if a run did, or runs are missing after Ctrl-C.
pub(crate) fn conclude(
    plan: &Plan,
    batch: &Batch,
    output: Option<Output>,
    logged: Result<(), Failure>,
    (options, order): (&BatchOptions, Order),
    own: &Own<'_>,
) -> Result<(), Failure> {
    if let Some(output) = output {
        quipu_lab::results::write(output, plan, &batch.finished, &batch.summary)
            .map_err(Failure::run)?;
    }
    logged?;
    print(plan, &batch.summary, options, order, own.terminal)?;
    if plan.stop.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    let Some(first) = batch.summary.failures.first() else {
        return Ok(());
    };
    let (failed, planned) = (batch.summary.failures.len(), batch.summary.runs_planned);
    Err(Failure::Run(format!("{failed} of {planned} runs failed: {}", first.reason)))
}

/// Prints what came of it.
fn print(
    plan: &Plan,
    summary: &Summary,
    options: &BatchOptions,
    order: Order,
    terminal: Terminal,
) -> Result<(), Failure> {
    match options.format.format {
        Format::Table => crate::print(&table::compare(plan, summary, order, terminal.screen)),
        Format::Json => crate::print(&json(summary)),
        Format::Csv => crate::print(&csv_of(summary)),
    }
}

/// A row for each metric of each policy on each page and network.
fn csv_of(summary: &Summary) -> String {
    const HEADER: [&str; 13] = [
        "page",
        "network",
        "policy",
        "runs",
        "metric",
        "median",
        "p95",
        "ratio",
        "ratio_low",
        "ratio_high",
        "fluid_bound",
        "bound",
        "over_bound",
    ];
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let count = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let rows = summary.rows.iter().flat_map(|row| {
        row.metrics.iter().map(move |it| {
            vec![
                row.page.clone(),
                row.network.clone(),
                row.policy.clone(),
                row.runs.to_string(),
                it.metric.name().to_owned(),
                it.median.to_string(),
                it.p95.to_string(),
                number(it.ratio),
                number(it.ratio_low),
                number(it.ratio_high),
                count(it.fluid_bound),
                count(it.bound),
                number(it.over_bound),
            ]
        })
    });
    csv(HEADER.map(str::to_owned).to_vec(), rows)
}

/// Makes all runs, with a progress bar.
pub(crate) fn with_progress(
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
