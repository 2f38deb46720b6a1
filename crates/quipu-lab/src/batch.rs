//! All runs of a plan, on all cores, with the same results on any number of them.

mod runner;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rayon::prelude::*;
use thiserror::Error;

use crate::plan::{Cell, Plan};
use crate::results::{failure, summary};
use quipu_record::{RunRecord, Summary};
pub use runner::{Runner, WrittenRunError, run, run_sampled, run_session};

/// What the runs of a plan gave.
#[derive(Debug)]
pub struct Batch {
    /// The runs that ended well, in the order of the plan's cells, each page of a session by itself.
    pub finished: Vec<(Cell, RunRecord)>,
    /// The summary of them.
    pub summary: Summary,
}

/// The threads for the runs could not be started.
#[derive(Debug, Error)]
#[error("cannot start {jobs} threads: {reason}")]
pub struct ThreadsError {
    /// How many threads.
    pub jobs: usize,
    /// Why.
    pub reason: String,
}

/// What runs a cell: a record for each page of its session.
pub type Run<'a, E> = dyn Fn(&Plan, Cell) -> Result<Vec<RunRecord>, E> + Sync + 'a;

/// Runs every cell of `plan` by `run` on `jobs` threads; `None` is one per core. Runs that are not simulated are
/// made one after the other, [interleaved](Plan::interleaved).
///
/// `progress` is called after each run with the number of runs done. When `cancelled` is set, no more
/// runs begin, and those that fail from then on are taken for stopped: with it as [`Plan::stop`] none
/// goes on.
///
/// # Errors
/// If the threads cannot be started. A run that fails is a [`Failure`](quipu_record::Failure) in the summary.
pub fn run_all<E: std::fmt::Display>(
    plan: &Plan,
    jobs: Option<usize>,
    cancelled: &AtomicBool,
    progress: &(dyn Fn(usize) + Sync),
    run: &Run<'_, E>,
) -> Result<Batch, ThreadsError> {
    let (cells, jobs) = match plan.maker {
        Some(_) => (plan.interleaved(), Some(1)),
        None => (plan.cells().collect(), jobs),
    };
    let done = AtomicUsize::new(0);
    let one = |cell: &Cell| {
        if cancelled.load(Ordering::Relaxed) {
            return None;
        }
        let result = run(plan, *cell).map_err(|error| error.to_string());
        if result.is_err() && cancelled.load(Ordering::Relaxed) {
            return None;
        }
        progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        Some((*cell, result))
    };
    // 0 lets rayon take one thread per core.
    let jobs = jobs.unwrap_or(0);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .build()
        .map_err(|error| ThreadsError { jobs, reason: error.to_string() })?;
    // An indexed parallel iterator collects in order, whichever thread is first.
    let mut outcomes: Vec<_> = pool.install(|| cells.par_iter().with_max_len(1).map(one).collect());
    outcomes.sort_by_key(|outcome| outcome.as_ref().map(|(cell, _)| *cell));

    let mut finished = Vec::with_capacity(outcomes.len());
    let mut failures = Vec::new();
    for (cell, result) in outcomes.into_iter().flatten() {
        match result {
            Ok(records) => finished.extend(records.into_iter().map(|record| (cell, record))),
            Err(reason) => failures.push(failure(plan, cell, reason)),
        }
    }
    let summary = pool.install(|| summary(plan, &finished, failures));
    Ok(Batch { finished, summary })
}

#[cfg(test)]
mod tests;
