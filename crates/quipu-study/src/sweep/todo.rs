//! What of a sweep is still to be run, and how: on all cores, each run kept as soon as it is there.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

use super::points::Sweep;
use super::shard::Shard;
use super::status::{STATUS, State, Status};
use super::store::{Store, StoreError};
use crate::run_key::run_keys;
use quipu_lab::batch::Runner;
use quipu_lab::plan::{Cell, Plan};
use quipu_record::FileError;
use quipu_scenario::ScenarioError;

/// The folder of the store in that of the results.
pub(super) const STORE: &str = "store";

/// Where results go, and how.
#[derive(Clone, Debug)]
pub struct Place {
    /// The folder of results.
    pub out: PathBuf,
    /// Folders of other results of sweeps, whose runs count as done.
    pub from: Vec<PathBuf>,
    /// Whether what is kept in `out` is run again.
    pub force: bool,
    /// Threads; `None` is one per core. Results do not depend on it.
    pub jobs: Option<usize>,
    /// The part that is run; `None` is all, and then the tables are written.
    pub shard: Option<Shard>,
}

/// A sweep cannot be run or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SweepError {
    /// The folder has something else.
    #[error("{} is not empty and no result of `quipu sweep`; expected another folder", .0.display())]
    Foreign(PathBuf),
    /// There is no store.
    #[error("{} has no runs of a sweep; expected a folder that `quipu sweep --out` has written", .0.display())]
    NoStore(PathBuf),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A scenario cannot be written out.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Threads cannot be started.
    #[error("cannot start {jobs} threads: {reason}")]
    Threads {
        /// How many.
        jobs: usize,
        /// Why.
        reason: String,
    },
}

/// A run that is missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    point: usize,
    cell: Cell,
    pub(super) key: u128,
}

/// Makes a run of a plan, and answers whether it counts.
pub type Within<'w> = dyn Fn(&Plan, &mut dyn FnMut()) -> bool + Sync + 'w;

/// A sweep and what of it is kept.
#[derive(Debug)]
pub struct Todo {
    pub(super) sweep: Sweep,
    pub(super) place: Place,
    /// Keys of all runs of each point, in the order of its cells.
    pub(super) keys: Vec<Vec<u128>>,
    pub(super) store: Store,
    pub(super) tasks: Vec<Task>,
    /// Runs that only another folder has.
    elsewhere: Vec<u128>,
    /// Runs in real time that failed.
    again: Vec<String>,
    status: Status,
}

impl Todo {
    /// Sees what of `sweep` is kept, in the folder of `place` and in the others that it names. Changes
    /// nothing.
    ///
    /// # Errors
    /// If the folder has something else, or a store cannot be read.
    pub fn new(sweep: Sweep, place: Place) -> Result<Todo, SweepError> {
        let folder = place.out.join(STORE);
        if is_foreign(&place.out) {
            return Err(SweepError::Foreign(place.out));
        }
        if let Some(none) = place.from.iter().find(|from| !from.join(STORE).is_dir()) {
            return Err(SweepError::NoStore(none.clone()));
        }
        let keys = sweep.points.iter().map(|point| run_keys(&point.plan));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let others: Vec<PathBuf> = place.from.iter().map(|from| from.join(STORE)).collect();
        // There is none without a point; else the keys have it.
        let frame = sweep.program().frame().unwrap_or_default();
        let store = match place.force {
            // What is there counts for nothing.
            true => Store::open(&folder.join("none"), &others, frame)?,
            false => Store::open(&folder, &others, frame)?,
        };
        let planned = sweep.runs();
        let status = Status::new(
            (sweep.provenance(), sweep.world()),
            sweep.points.len(),
            planned,
            place.shard,
        );
        let mut todo = Todo {
            sweep,
            place,
            keys,
            store,
            tasks: Vec::new(),
            elsewhere: Vec::new(),
            again: Vec::new(),
            status,
        };
        todo.look();
        Ok(todo)
    }

    /// Takes stock of the store.
    fn look(&mut self) {
        let (mut done, mut failed) = (0, 0);
        let mut wanted = BTreeMap::new();
        let mut elsewhere = BTreeMap::new();
        self.tasks.clear();
        for (index, (point, keys)) in self.sweep.points.iter().zip(&self.keys).enumerate() {
            for (cell, &key) in point.plan.cells().zip(keys) {
                match self.store.outcome(key) {
                    Some(true) => failed += 1,
                    Some(false) => done += 1,
                    // Several points may ask for the same run.
                    None if wanted.insert(key, ()).is_none() => {
                        self.tasks.push(Task { point: index, cell, key });
                    }
                    None => {}
                }
                if self.store.is_elsewhere(key) {
                    elsewhere.insert(key, ());
                }
            }
        }
        if self.sweep.is_made_in_turns() {
            // Whatever changes with time befalls all points alike; keys are in no order, and depend on the seed.
            self.tasks.sort_by_key(|task| (task.cell.run, task.key));
        }
        self.elsewhere = elsewhere.into_keys().collect();
        self.status = self.status.clone().with(State::Running, done, failed);
    }

    /// The sweep.
    pub fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// How far it is.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// What is to be said of the store, a line each.
    pub fn notes(&self) -> &[String] {
        self.store.notes()
    }

    fn own_tasks(&self) -> impl Iterator<Item = &Task> {
        let own = |task: &&Task| self.place.shard.is_none_or(|shard| shard.has(task.key));
        self.tasks.iter().filter(own)
    }

    /// What makes the runs of each point.
    fn runners(&self) -> Vec<Runner<'_>> {
        self.sweep.points.iter().map(|point| Runner::new(&point.plan)).collect()
    }

    /// Runs that are to be made; of a shard, its own.
    pub fn runs(&self) -> usize {
        self.own_tasks().count()
    }

    /// At most `most` of the runs that are to be made, evenly over all, to see how long they take. What
    /// comes of them is not kept.
    pub fn rehearse(&self, most: usize) -> impl Iterator<Item = ()> + '_ {
        let tasks: Vec<&Task> = self.own_tasks().collect();
        let runners = self.runners();
        let count = most.min(tasks.len());
        (0..count).map(move |index| {
            // In the middle of each part.
            let task = tasks[(2 * index + 1) * tasks.len() / (2 * count)];
            // A run that fails takes its time too.
            let _ = runners[task.point].run_session(task.cell);
        })
    }

    /// Makes the runs that are missing, and keeps each as soon as it is there. When `cancelled` is set,
    /// runs that have begun are given up and no more begin. `progress` is called after each run.
    ///
    /// # Errors
    /// If results cannot be written.
    pub fn run(
        &mut self,
        cancelled: &Arc<AtomicBool>,
        progress: &(dyn Fn() + Sync),
    ) -> Result<(), SweepError> {
        self.run_within(cancelled, progress, &|_, run| {
            run();
            true
        })
    }

    /// The same, where `within` makes each run, by a call of what it is given beside its plan, and answers whether what
    /// came of it counts: otherwise it is not kept, and no more runs begin.
    ///
    /// # Errors
    /// If results cannot be written.
    pub fn run_within(
        &mut self,
        cancelled: &Arc<AtomicBool>,
        progress: &(dyn Fn() + Sync),
        within: &Within<'_>,
    ) -> Result<(), SweepError> {
        for point in &mut self.sweep.points {
            point.plan.stop = Arc::clone(cancelled);
        }
        self.begin()?;
        let tasks: Vec<&Task> = self.own_tasks().collect();
        let runners = self.runners();
        let next = AtomicUsize::new(0);
        let problem: Mutex<Option<StoreError>> = Mutex::new(None);
        let again: Mutex<Vec<String>> = Mutex::default();
        let in_turns = self.sweep.is_made_in_turns();
        let work = || {
            while !cancelled.load(Ordering::Relaxed) {
                let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                let mut outcome = None;
                let mut run = || outcome = Some(runners[task.point].run_session(task.cell));
                let counts = within(&self.sweep.points[task.point].plan, &mut run);
                let Some(outcome) = outcome.filter(|_| counts) else { return };
                let outcome = outcome.map_err(|error| error.to_string());
                if outcome.is_err() && cancelled.load(Ordering::Relaxed) {
                    return;
                }
                // A failure in real time, such as a run that is void, may be none the next time.
                if let (true, Err(reason)) = (in_turns, &outcome) {
                    let plan = &self.sweep.points[task.point].plan;
                    let failure = format!("{}: {reason}", plan.name_of(task.cell));
                    again.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
                    progress();
                    continue;
                }
                if let Err(error) = self.store.keep(task.key, &outcome) {
                    problem.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    return;
                }
                progress();
            }
        };
        let most = if in_turns { 1 } else { tasks.len().max(1) };
        let threads = self.threads().clamp(1, most);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
        let again = again.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = problem.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error.into());
        }
        self.again = again;
        self.settle()
    }

    /// Makes the folder one of a sweep under way: without what it had, if runs are to be made again, and with the runs of
    /// the other folders.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(&mut self) -> Result<(), SweepError> {
        let folder = self.place.out.join(STORE);
        if self.place.force {
            let removed = fs::remove_dir_all(&folder);
            match removed {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StoreError { file: folder, source }.into());
                }
                _ => {}
            }
            let others: Vec<PathBuf> =
                self.place.from.iter().map(|from| from.join(STORE)).collect();
            self.store = Store::open(&folder, &others, self.store.program())?;
        }
        self.status.write(&self.place.out)?;
        let mut reader = self.store.reader();
        for key in &self.elsewhere {
            self.store.take_over(*key, &mut reader)?;
        }
        Ok(())
    }

    /// Takes stock once runs were made or merged; [`Todo::write`] writes what there is by then.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub fn settle(&mut self) -> Result<(), SweepError> {
        self.store.sync()?;
        // What others have written meanwhile counts too.
        let folder = self.place.out.join(STORE);
        self.store = Store::open(&folder, &[], self.store.program())?;
        self.look();
        let state = if self.status.missing == 0 { State::Complete } else { State::Incomplete };
        self.status.state = state;
        Ok(())
    }

    /// Runs in real time that failed in the last [`Todo::run`], and why. They are not kept, and made again by the next.
    pub fn again(&self) -> &[String] {
        &self.again
    }

    /// Threads that work at once.
    pub(super) fn threads(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        self.place.jobs.unwrap_or(cores)
    }
}

/// Whether `out` has anything that no sweep has written.
fn is_foreign(out: &Path) -> bool {
    let has_any = fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some());
    let is_ours = out.join(STORE).is_dir() || out.join(STATUS).is_file();
    out.is_file() || (has_any && !is_ours)
}
