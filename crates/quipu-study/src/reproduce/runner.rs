//! Runs ids on all cores, judges each as soon as its runs are there, and keeps what is done.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use super::chance::by_chance;
use super::data;
use super::docs;
use super::job::Job;
use super::select::{OfSeries, Runs, of_series};
use super::verdict::{bounds, judge};
use quipu_lab::batch::Runner;
use quipu_lab::plan::Cell;
use quipu_lab::results::{self, part_of, place};
use quipu_lab::run::RunError;
use quipu_record::verdict::{Judged, RuleVerdict, VERDICTS};
use quipu_record::{Failure, Output, OutputError, RunRecord};
use quipu_scenario::{ScenarioError, Series};

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
    jobs: Vec<Job>,
    /// For each job what an earlier call found.
    kept: Vec<Option<Judged>>,
    tasks: Vec<Task>,
}

/// A run, and all that want it: positions of jobs, of their units, and of cells of these.
#[derive(Debug)]
struct Task {
    cell: Cell,
    wanted_by: Vec<[usize; 3]>,
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

/// What a run gave; shared by all that want it.
type Records = Arc<Result<Vec<RunRecord>, String>>;

/// What there is of a job so far.
struct State<'a> {
    /// For each unit the records of each cell.
    slots: Vec<Vec<Option<Records>>>,
    /// For each unit what time series gave.
    series: Vec<BTreeMap<Cell, OfSeries<'a>>>,
    outputs: Vec<Option<Arc<Output>>>,
    missing: usize,
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked ends the whole call anyway.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove(folder: &Path) -> Result<(), ReproduceError> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(ReproduceError::Io { file: folder.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Where runs become results.
struct Workshop<'a> {
    jobs: &'a [Job],
    /// For each job those of its units.
    runners: Vec<Vec<Runner<'a>>>,
    out: &'a Path,
    deals: u32,
    partial: PathBuf,
    states: Vec<Mutex<State<'a>>>,
}

impl<'a> Workshop<'a> {
    fn new(todo: &'a Todo, place: &'a Place, partial: PathBuf) -> Self {
        let state = |job: &Job| {
            let cells = |unit: &super::places::Unit| unit.plan.cells().count();
            let slots: Vec<Vec<Option<Records>>> =
                job.units.iter().map(|unit| vec![None; cells(unit)]).collect();
            let missing = slots.iter().map(Vec::len).sum();
            let units = job.units.len();
            let (series, outputs) = (vec![BTreeMap::new(); units], vec![None; units]);
            Mutex::new(State { slots, series, outputs, missing })
        };
        let states = todo.jobs.iter().map(state).collect();
        let of_job = |job: &'a Job| job.units.iter().map(|unit| Runner::new(&unit.plan)).collect();
        let runners = todo.jobs.iter().map(of_job).collect();
        Workshop { jobs: &todo.jobs, runners, out: &place.out, deals: place.deals, partial, states }
    }

    /// Where the files of a unit are before its id is whole.
    fn folder(&self, job: usize, unit: usize) -> PathBuf {
        self.partial.join(&self.jobs[job].case.id).join(unit.to_string())
    }

    /// Makes the run of `task` and gives it to all that want it.
    fn run(
        &self,
        task: &Task,
        cancelled: &AtomicBool,
        progress: &(dyn Fn(Progress<'_>) + Sync),
    ) -> Result<(), ReproduceError> {
        let Some(&[job, unit, _]) = task.wanted_by.first() else { return Ok(()) };
        let plan = &self.jobs[job].units[unit].plan;
        let (records, series) = if plan.scenario.series == Series::None {
            let records = self.runners[job][unit].run_session(task.cell);
            (Arc::new(records.map_err(|error| error.to_string())), None)
        } else {
            self.run_sampled(job, unit, task.cell)?
        };
        if records.is_err() && cancelled.load(Ordering::Relaxed) {
            return Ok(());
        }
        progress(Progress::Run);
        for &[job, unit, slot] in &task.wanted_by {
            let mut state = lock(&self.states[job]);
            state.slots[unit][slot] = Some(Arc::clone(&records));
            if let Some(series) = &series {
                state.series[unit].insert(task.cell, series.clone());
            }
            state.missing -= 1;
            if state.missing == 0 {
                let whole = State {
                    slots: std::mem::take(&mut state.slots),
                    series: std::mem::take(&mut state.series),
                    outputs: std::mem::take(&mut state.outputs),
                    missing: 0,
                };
                drop(state);
                progress(Progress::Judged(&self.finish(job, whole)?));
            }
        }
        Ok(())
    }

    /// A run with its time series, which goes into a file and through the metrics that look at it.
    fn run_sampled(
        &self,
        job: usize,
        unit: usize,
        cell: Cell,
    ) -> Result<(Records, Option<OfSeries<'a>>), ReproduceError> {
        let jobs: &'a [Job] = self.jobs;
        let Job { units, series, .. } = &jobs[job];
        let plan = &units[unit].plan;
        let output = {
            let mut state = lock(&self.states[job]);
            match &state.outputs[unit] {
                Some(output) => Arc::clone(output),
                None => {
                    let output = Arc::new(Output::prepare(&self.folder(job, unit), true)?);
                    state.outputs[unit] = Some(Arc::clone(&output));
                    output
                }
            }
        };
        let mut part =
            output.series_part(&part_of(cell), place(plan, cell)).map_err(OutputError::from)?;
        let mut rows = Vec::new();
        let records = self.runners[job][unit].run_sampled(cell, &mut |row| {
            if !series.is_empty() {
                rows.push(row.clone());
            }
            part.write(row)
        });
        let records = records.and_then(|records| {
            part.finish().map_err(RunError::Series)?;
            Ok(records)
        });
        let records = Arc::new(records.map_err(|error| error.to_string()));
        Ok((records, Some(of_series(plan, cell, &rows, series))))
    }

    /// Writes everything about a job whose runs are all there, and judges it.
    fn finish(&self, index: usize, mut state: State<'a>) -> Result<Judged, ReproduceError> {
        let job = &self.jobs[index];
        let mut finished = Vec::new();
        let mut failures = Vec::new();
        let mut from_bound = Vec::new();
        for (number, unit) in job.units.iter().enumerate() {
            let mut good = Vec::new();
            let mut bad = Vec::new();
            let slots = std::mem::take(&mut state.slots[number]);
            for (cell, records) in unit.plan.cells().zip(slots) {
                match records.map(Arc::unwrap_or_clone) {
                    Some(Ok(records)) => {
                        good.extend(records.into_iter().map(|record| (cell, record)));
                    }
                    Some(Err(reason)) => bad.push(results::failure(&unit.plan, cell, reason)),
                    None => {}
                }
            }
            failures.extend(bad.iter().map(|failure| {
                let Failure { page, network, policy, run, reason } = failure;
                format!("{page} over {network} with {policy}, run {run}: {reason}")
            }));
            let summary = results::summary(&unit.plan, &good, bad);
            if unit.variant.is_none() {
                from_bound = bounds(&summary);
            }
            let output = match state.outputs[number].take().map(Arc::try_unwrap) {
                Some(Ok(output)) => output,
                // No run holds it any more, as all have ended.
                Some(Err(_)) | None => Output::prepare(&self.folder(index, number), true)?,
            };
            results::write(output, &unit.plan, &good, &summary)?;
            finished.push(good);
        }
        let runs: Vec<Runs<'_>> = job
            .units
            .iter()
            .zip(finished.iter().zip(&state.series))
            .map(|(unit, (finished, series))| Runs {
                plan: &unit.plan,
                finished,
                series,
                dealt: None,
            })
            .collect();
        let case = &job.case;
        let experiment = &case.experiment;
        let first_visits = finished.iter().flatten().filter(|(_, record)| record.is_first());
        let mut rules: Vec<RuleVerdict> =
            experiment.rules.iter().map(|rule| judge(rule, &job.units, &runs)).collect();
        if self.deals > 0 {
            let found = by_chance(&experiment.rules, &job.units, &runs, self.deals);
            for (rule, found) in rules.iter_mut().zip(found) {
                rule.by_chance = Some(found);
            }
        }
        let judged = Judged {
            id: case.id.clone(),
            paper: experiment.paper,
            figure: experiment.figure.clone(),
            title: experiment.title.clone(),
            reported: experiment.reported.clone(),
            note: experiment.note.clone(),
            file: case.file.clone(),
            provenance: job.provenance(),
            fingerprint: job.fingerprint.clone(),
            quick: job.quick,
            seed: job.units[0].plan.scenario.seed,
            runs: first_visits.count(),
            failures,
            rules,
            data: data::beside(&job.numbers, &job.units[0], &runs[0]),
            bounds: from_bound,
        };
        self.publish(index, &judged)?;
        Ok(judged)
    }

    /// Puts the folders of all units together and gives the whole its name.
    fn publish(&self, index: usize, judged: &Judged) -> Result<(), ReproduceError> {
        let job = &self.jobs[index];
        let main = self.folder(index, 0);
        let renamed = |from: &Path, to: &Path| {
            let failed = |source| ReproduceError::Io { file: to.to_owned(), source };
            fs::rename(from, to).map_err(failed)
        };
        for (number, unit) in job.units.iter().enumerate() {
            if let Some(variant) = &unit.variant {
                renamed(&self.folder(index, number), &main.join(variant))?;
            }
        }
        let file = main.join(VERDICTS);
        let text = docs::json(judged);
        fs::write(&file, text).map_err(|source| ReproduceError::Io { file, source })?;
        let target = self.out.join(&judged.id);
        if target.is_file() {
            let failed = |source| ReproduceError::Io { file: target.clone(), source };
            fs::remove_file(&target).map_err(failed)?;
        }
        remove(&target)?;
        renamed(&main, &target)
    }
}
