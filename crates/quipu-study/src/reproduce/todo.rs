//! What is to be run for some ids, and what an earlier call has kept.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use super::job::Job;
use quipu_lab::base::{Seed, shuffle};
use quipu_lab::plan::Cell;
use quipu_record::OutputError;
use quipu_record::verdict::{Judged, RuleVerdict, VERDICTS};
use quipu_scenario::ScenarioError;

/// Where results go, and how.
#[derive(Clone, Debug)]
pub struct Place {
    /// The folder; each id has one of its own within.
    pub out: PathBuf,
    /// Whether what is there is run again.
    pub force: bool,
    /// Threads; `None` is one per core. Results do not depend on it.
    pub jobs: Option<usize>,
    /// How often rules are judged once more with policies exchanged by chance.
    pub deals: u32,
}

/// What happens meanwhile.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A run ended.
    Run,
    /// An id was run and judged.
    Judged(&'a Judged),
}

/// Results cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// The files of an id cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The file system refused.
    #[error("cannot write {file}: {source}")]
    Io {
        /// The file or folder.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder of an id has something else.
    #[error("{0} is not a result of `quipu reproduce`; --force replaces it")]
    Foreign(PathBuf),
    /// A scenario cannot be written out.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// What is there already, and what is still to be run.
#[derive(Debug)]
pub struct Todo {
    pub(super) jobs: Vec<Job>,
    /// For each job what an earlier call found.
    kept: Vec<Option<Judged>>,
    pub(super) tasks: Vec<Task>,
}

/// A run, and all that want it: positions of jobs, of their units, and of cells of these.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) cell: Cell,
    pub(super) wanted_by: Vec<[usize; 3]>,
}

impl Todo {
    /// Sees what of `jobs` is done in the folder of `place`. A run that several jobs want is made once.
    ///
    /// # Errors
    /// If a folder has something else.
    pub fn new(jobs: Vec<Job>, place: &Place) -> Result<Todo, ReproduceError> {
        let kept: Vec<Option<Judged>> =
            jobs.iter().map(|job| if place.force { None } else { done(job, place) }).collect();
        let mut tasks: Vec<Task> = Vec::new();
        let mut known: BTreeMap<u128, usize> = BTreeMap::new();
        // Flows run long and are few: first, so that no core waits for one at the end.
        let is_flows = |job: &Job| job.case.scenario.pages.is_empty();
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_by_key(|&index| !is_flows(&jobs[index]));
        for index in order {
            let (job, folder) = (&jobs[index], place.out.join(&jobs[index].case.id));
            if kept[index].is_some() {
                continue;
            }
            if !place.force && is_foreign(&folder) {
                return Err(ReproduceError::Foreign(folder));
            }
            let mut slots = vec![0; job.units.len()];
            for ((unit, cell), key) in job.cells().zip(job.keys()?) {
                let wanted = [index, unit, slots[unit]];
                slots[unit] += 1;
                match key.and_then(|key| known.get(&key)) {
                    Some(&task) => tasks[task].wanted_by.push(wanted),
                    None => {
                        known.extend(key.map(|key| (key, tasks.len())));
                        tasks.push(Task { cell, wanted_by: vec![wanted] });
                    }
                }
            }
        }
        if let Some(first) = jobs.first().filter(|job| job.is_made_in_turns()) {
            // Whatever changes with time befalls all alike.
            let seed = first.units[0].plan.scenario.seed;
            shuffle(&mut tasks, &mut Seed::new(seed).stream("order", 0));
            tasks.sort_by_key(|task| task.cell.run);
        }
        Ok(Todo { jobs, kept, tasks })
    }

    /// Runs that are still to be made.
    pub fn runs(&self) -> usize {
        self.tasks.len()
    }

    /// Threads that make them, where each core would have one: one if runs are made in turns.
    pub(super) fn threads(&self, cores: usize) -> usize {
        if self.jobs.iter().any(Job::is_made_in_turns) { 1 } else { cores }
    }

    /// Ids that are done already.
    pub fn kept(&self) -> impl Iterator<Item = &Judged> {
        self.kept.iter().flatten()
    }
}

/// What an earlier call found for `job`, if everything that decides it is the same.
fn done(job: &Job, place: &Place) -> Option<Judged> {
    let judged = read(&place.out.join(&job.case.id))?;
    let dealt = |rule: &RuleVerdict| {
        place.deals == 0 || rule.by_chance.is_some_and(|found| found.deals == place.deals)
    };
    let same = judged.fingerprint == job.fingerprint && judged.rules.iter().all(dealt);
    (same && judged.failures.is_empty()).then_some(judged)
}

/// What was found for the id whose folder this is.
pub(super) fn read(folder: &Path) -> Option<Judged> {
    serde_json::from_str(&fs::read_to_string(folder.join(VERDICTS)).ok()?).ok()
}

fn is_foreign(folder: &Path) -> bool {
    let has_any = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    (has_any || folder.is_file()) && !folder.join(VERDICTS).is_file()
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked ends the whole call anyway.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn remove(folder: &Path) -> Result<(), ReproduceError> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(ReproduceError::Io { file: folder.to_owned(), source })
        }
        _ => Ok(()),
    }
}
