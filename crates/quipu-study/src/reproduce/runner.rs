//! Runs ids on all cores, judges each as soon as its runs are there, and keeps what is done.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use super::docs;
use super::job::Job;
use super::workshop::Workshop;
use quipu_lab::plan::Cell;
use quipu_record::OutputError;
use quipu_record::verdict::{Judged, RuleVerdict, VERDICTS};
use quipu_scenario::ScenarioError;

/// Where folders are before they are whole.
const PARTIAL: &str = ".partial";

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
    tasks: Vec<Task>,
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
        Ok(Todo { jobs, kept, tasks })
    }

    /// Runs that are still to be made.
    pub fn runs(&self) -> usize {
        self.tasks.len()
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
fn read(folder: &Path) -> Option<Judged> {
    serde_json::from_str(&fs::read_to_string(folder.join(VERDICTS)).ok()?).ok()
}

fn is_foreign(folder: &Path) -> bool {
    let has_any = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    (has_any || folder.is_file()) && !folder.join(VERDICTS).is_file()
}

/// Runs what is to be run. When `cancelled` is set, runs that have begun are given up and no more begin;
/// ids that are whole by then are kept. Gives what was found, in the order of the jobs.
///
/// # Errors
/// If results cannot be written.
pub fn reproduce(
    mut todo: Todo,
    place: &Place,
    cancelled: &Arc<AtomicBool>,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Vec<Judged>, ReproduceError> {
    for unit in todo.jobs.iter_mut().flat_map(|job| &mut job.units) {
        unit.plan.stop = Arc::clone(cancelled);
    }
    let partial = place.out.join(PARTIAL);
    let failed = |file: &Path| {
        let file = file.to_owned();
        move |source| ReproduceError::Io { file, source }
    };
    // What an earlier call that was killed has left.
    remove(&partial)?;
    fs::create_dir_all(&partial).map_err(failed(&partial))?;
    let workshop = Workshop::new(&todo, place, partial.clone());
    let next = AtomicUsize::new(0);
    let problem: Mutex<Option<ReproduceError>> = Mutex::new(None);
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = place.jobs.unwrap_or(cores).clamp(1, todo.tasks.len().max(1));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !cancelled.load(Ordering::Relaxed) && lock(&problem).is_none() {
                    let Some(task) = todo.tasks.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        return;
                    };
                    if let Err(error) = workshop.run(task, cancelled, progress) {
                        lock(&problem).get_or_insert(error);
                    }
                }
            });
        }
    });
    drop(workshop);
    remove(&partial)?;
    if let Some(error) = problem.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    // As they are on disk, whether they were run now or before.
    let all: Vec<Judged> = todo.jobs.iter().filter_map(|job| read_same(job, &place.out)).collect();
    docs::write_set(&place.out, &all)
        .map_err(|(file, source)| ReproduceError::Io { file, source })?;
    Ok(all)
}

/// What was found for `job`, runs that failed included.
fn read_same(job: &Job, out: &Path) -> Option<Judged> {
    read(&out.join(&job.case.id)).filter(|judged| judged.fingerprint == job.fingerprint)
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
