//! Where runs become results: each id's runs are gathered, judged, and written when they are whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::agreement::{Number, agreement, is_swept, numbers};
use super::chance::by_chance;
use super::data;
use super::docs;
use super::job::{Job, in_words};
use super::places::Unit;
use super::result_table;
use super::select::{OfSeries, Runs, of_series};
use super::todo::{Place, Progress, ReproduceError, Task, Todo, lock, remove};
use super::verdict::{bounds, judge};
use quipu_lab::batch::Runner;
use quipu_lab::plan::Cell;
use quipu_lab::results::{self, part_of, place};
use quipu_lab::run::RunError;
use quipu_record::verdict::{Judged, RuleVerdict, Setting, Untested, VERDICTS};
use quipu_record::{Failure, Output, OutputError, RunRecord, SeriesPart};
use quipu_scenario::Series;
use quipu_scenario::experiment::{OpenSetting, Rule, Untestable};

/// The number of each claim in each combination of settings.
const SETTINGS: &str = "settings.csv";

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

/// What results say of a setting that the paper leaves open.
fn noted(setting: &OpenSetting) -> Setting {
    Setting {
        name: setting.name.clone(),
        about: setting.about.clone(),
        values: setting.values.iter().map(|value| value.name.clone()).collect(),
    }
}

/// What results say of a claim that cannot be tested.
fn untested(claim: &Untestable) -> Untested {
    let Untestable { claim, reported, because } = claim.clone();
    Untested { claim, reported, because }
}

/// Where runs become results.
pub(super) struct Workshop<'a> {
    jobs: &'a [Job],
    /// For each job those of its units.
    runners: Vec<Vec<Runner<'a>>>,
    out: &'a Path,
    deals: u32,
    partial: PathBuf,
    states: Vec<Mutex<State<'a>>>,
}

impl<'a> Workshop<'a> {
    /// For everything of `todo`; files are in `partial` before they are whole.
    pub(super) fn new(todo: &'a Todo, place: &'a Place, partial: PathBuf) -> Self {
        let state = |job: &Job| {
            let slots: Vec<Vec<Option<Records>>> =
                job.units.iter().map(|unit| vec![None; unit.cells.len()]).collect();
            let missing = slots.iter().map(Vec::len).sum();
            let units = job.units.len();
            let (series, outputs) = (vec![BTreeMap::new(); units], vec![None; units]);
            Mutex::new(State { slots, series, outputs, missing })
        };
        let states = todo.jobs.iter().map(state).collect();
        let of_job = |job: &'a Job| {
            let named = job.named_units().len();
            let runner = |(index, unit): (usize, &'a Unit)| {
                let runner = Runner::new(&unit.plan);
                if index < named { runner } else { runner.without_bounds() }
            };
            job.units.iter().enumerate().map(runner).collect()
        };
        let runners = todo.jobs.iter().map(of_job).collect();
        Workshop { jobs: &todo.jobs, runners, out: &place.out, deals: place.deals, partial, states }
    }

    /// Where the files of a unit are before its id is whole.
    fn folder(&self, job: usize, unit: usize) -> PathBuf {
        self.partial.join(&self.jobs[job].case.id).join(unit.to_string())
    }

    /// Makes the run of `task` and gives it to all that want it.
    pub(super) fn run(
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
        // Combinations of settings have no folder.
        let mut part = match unit < self.jobs[job].named_units().len() {
            true => Some(self.series_part(job, unit, cell)?),
            false => None,
        };
        let mut rows = Vec::new();
        let records = self.runners[job][unit].run_sampled(cell, &mut |row| {
            if !series.is_empty() {
                rows.push(row.clone());
            }
            part.as_mut().map_or(Ok(()), |part| part.write(row))
        });
        let records = records.and_then(|records| {
            part.map_or(Ok(()), SeriesPart::finish).map_err(RunError::Series)?;
            Ok(records)
        });
        let records = Arc::new(records.map_err(|error| error.to_string()));
        Ok((records, Some(of_series(plan, cell, &rows, series))))
    }

    /// Where the time series of a run goes.
    fn series_part(
        &self,
        job: usize,
        unit: usize,
        cell: Cell,
    ) -> Result<SeriesPart<fs::File>, ReproduceError> {
        let plan = &self.jobs[job].units[unit].plan;
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
        let part = output.series_part(&part_of(cell), place(plan, cell));
        Ok(part.map_err(OutputError::from)?)
    }

    /// Writes everything about a job whose runs are all there, and judges it.
    fn finish(&self, index: usize, mut state: State<'a>) -> Result<Judged, ReproduceError> {
        let job = &self.jobs[index];
        let named = job.named_units();
        let mut finished = Vec::new();
        let mut failures = Vec::new();
        let mut from_bound = Vec::new();
        for (number, unit) in job.units.iter().enumerate() {
            let mut good = Vec::new();
            let mut bad = Vec::new();
            let slots = std::mem::take(&mut state.slots[number]);
            for (cell, records) in unit.cells.iter().zip(slots) {
                match records.map(Arc::unwrap_or_clone) {
                    Some(Ok(records)) => {
                        good.extend(records.into_iter().map(|record| (*cell, record)));
                    }
                    Some(Err(reason)) => bad.push(results::failure(&unit.plan, *cell, reason)),
                    None => {}
                }
            }
            let setting = job.combinations.iter().find(|it| it.unit == number && number > 0);
            let setting = setting.map_or(String::new(), |combination| {
                format!(", {}", in_words(&job.case.experiment.settings, &combination.chosen))
            });
            failures.extend(bad.iter().map(|failure| {
                let Failure { page, network, policy, run, reason } = failure;
                format!("{page} over {network} with {policy}, run {run}{setting}: {reason}")
            }));
            if number < named.len() {
                let summary = results::summary(&unit.plan, &good, bad);
                if number == 0 {
                    from_bound = bounds(&summary);
                }
                let output = match state.outputs[number].take().map(Arc::try_unwrap) {
                    Some(Ok(output)) => output,
                    // No run holds it any more, as all have ended.
                    Some(Err(_)) | None => Output::prepare(&self.folder(index, number), true)?,
                };
                results::write(output, &unit.plan, &good, &summary)?;
            }
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
        let of_named = &runs[..named.len()];
        let mut rules: Vec<RuleVerdict> =
            experiment.rules.iter().map(|rule| judge(rule, named, of_named)).collect();
        let mut swept: Vec<(&Rule, Vec<Number>)> = Vec::new();
        for (rule, verdict) in experiment.rules.iter().zip(&mut rules) {
            if is_swept(rule) && !job.combinations.is_empty() {
                let numbers = numbers(rule, &job.combinations, &job.units, &runs);
                verdict.agreement = Some(agreement(rule, &experiment.settings, &numbers));
                swept.push((rule, numbers));
            }
        }
        if self.deals > 0 {
            let found = by_chance(&experiment.rules, named, of_named, self.deals);
            for (rule, found) in rules.iter_mut().zip(found) {
                rule.by_chance = Some(found);
            }
        }
        let tables = experiment.tables.iter();
        let tables = tables.map(|table| result_table::numbers(table, named, of_named));
        let judged = Judged {
            id: case.id.clone(),
            paper: experiment.paper,
            figure: experiment.figure.clone(),
            title: experiment.title.clone(),
            reported: experiment.reported.clone(),
            note: experiment.note.clone(),
            file: case.file.clone(),
            provenance: job.provenance(),
            world: job.units[0].plan.world.name().to_owned(),
            fingerprint: job.fingerprint.clone(),
            quick: job.effort.has_few_runs(),
            seed: job.units[0].plan.scenario.seed,
            runs: first_visits.count(),
            failures,
            rules,
            settings: experiment.settings.iter().map(noted).collect(),
            untestable: experiment.untestable.iter().map(untested).collect(),
            data: data::beside(&job.numbers, &job.units[0], &runs[0]),
            tables: tables.collect(),
            bounds: from_bound,
        };
        let settings = docs::settings_table(&experiment.settings, &swept);
        self.publish(index, &judged, settings)?;
        Ok(judged)
    }

    /// Puts the folders of all units together and gives the whole its name.
    fn publish(
        &self,
        index: usize,
        judged: &Judged,
        settings: Option<String>,
    ) -> Result<(), ReproduceError> {
        let job = &self.jobs[index];
        let main = self.folder(index, 0);
        let renamed = |from: &Path, to: &Path| {
            let failed = |source| ReproduceError::Io { file: to.to_owned(), source };
            fs::rename(from, to).map_err(failed)
        };
        for (number, unit) in job.named_units().iter().enumerate() {
            if let Some(variant) = &unit.variant {
                renamed(&self.folder(index, number), &main.join(variant))?;
            }
        }
        let files = [(VERDICTS, Some(docs::json(judged))), (SETTINGS, settings)];
        for (name, text) in files {
            let (Some(text), file) = (text, main.join(name)) else { continue };
            fs::write(&file, text).map_err(|source| ReproduceError::Io { file, source })?;
        }
        let target = self.out.join(&judged.id);
        if target.is_file() {
            let failed = |source| ReproduceError::Io { file: target.clone(), source };
            fs::remove_file(&target).map_err(failed)?;
        }
        remove(&target)?;
        renamed(&main, &target)
    }
}
