//! The files of a sweep: tables, summary, points, networks and status, made from the store.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::points::{Point, Sweep};
use super::status::{State, Status};
use super::store::{Outcome, StoreError};
use super::summary::{Line, SUMMARY, SummaryFile};
use super::todo::{STORE, SweepError, Todo};
use quipu_lab::plan::Cell;
use quipu_lab::results::{add_networks, copy_inputs, failure, named, summary};
use quipu_record::{
    Column, Failure, FileError, Form, INPUTS, Kind, NetworksFile, RunRecord, TableFile, Tables,
    Value, replace_folder, table_names,
};
use quipu_scenario::Inputs;

/// The complete file.
const SWEEP: &str = "sweep.toml";
const NETWORKS: &str = "networks.csv";
const POINTS: &str = "points.csv";
/// Runs that one thread reads at a time.
const CHUNK: usize = 64;

/// What was written, for whoever tells of it.
#[derive(Debug)]
pub struct Written {
    /// Page times of each page, network and policy at each point, in their order.
    pub(super) lines: Vec<Line>,
    /// The status at the end.
    pub status: Status,
    /// Runs that failed, in words, at most ten.
    pub failures: Vec<String>,
}

/// A folder for files until all are there.
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        // If it cannot be removed, nobody can help.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Files that a sweep has, in the order in which they are put into place.
fn names() -> impl Iterator<Item = String> {
    let tables =
        table_names().flat_map(|name| [Form::Csv, Form::Parquet].map(|form| form.file(name)));
    let others = [SWEEP, SUMMARY, NETWORKS, POINTS].map(str::to_owned);
    others.into_iter().chain(tables)
}

fn failed(file: &str) -> impl FnOnce(std::io::Error) -> FileError + use<> {
    let file = file.to_owned();
    move |source| FileError::Write { file, source }
}

/// Removes what processes that were killed have left.
fn sweep_up(store: &Path) {
    let is_left = |name: &str| {
        let number = name.strip_prefix(PARTIAL).and_then(|number| number.parse::<u32>().ok());
        // Where there is no such folder nobody can know.
        number.is_some_and(|id| {
            Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{id}")).exists()
        })
    };
    for entry in fs::read_dir(store).into_iter().flatten().flatten() {
        if is_left(&entry.file_name().to_string_lossy()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// How folders begin that are not whole.
const PARTIAL: &str = "partial-";

impl Todo {
    /// Writes the files of the result from what is kept; of a shard only how far it is, as the others'
    /// runs may still come.
    ///
    /// # Errors
    /// If a file cannot be written, or what is kept cannot be read.
    pub fn write(&self) -> Result<Option<Written>, SweepError> {
        if self.place.shard.is_some() {
            self.status().write(&self.place.out)?;
            return Ok(None);
        }
        let jobs = self.threads();
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(jobs)
            .build()
            .map_err(|error| SweepError::Threads { jobs, reason: error.to_string() })?;
        pool.install(|| write(self)).map(Some)
    }
}

/// Writes all files, first beside the store, then each takes its name.
fn write(todo: &Todo) -> Result<Written, SweepError> {
    let (sweep, out) = (&todo.sweep, &todo.place.out);
    let store = out.join(STORE);
    sweep_up(&store);
    let partial = Partial(store.join(format!("{PARTIAL}{}", std::process::id())));
    fs::create_dir_all(&partial.0).map_err(failed(&partial.0.display().to_string()))?;
    let folder = &partial.0;
    let mut inputs = Inputs::default();
    fs::write(folder.join(SWEEP), sweep.to_toml(&mut inputs)?).map_err(failed(SWEEP))?;
    copy_inputs(folder, &inputs)?;

    let forms = [Form::Csv, Form::Parquet];
    let mut tables =
        Tables::create(folder, sweep.scenario.has_traffic(), &forms, sweep.columns.clone())?;
    let of_networks = |index: &usize| sweep.columns[*index].clone();
    let network_columns: Vec<Column> = sweep.of_networks.iter().map(of_networks).collect();
    let mut networks = NetworksFile::create(folder, &network_columns)?;
    let mut known_networks = BTreeSet::new();
    let mut points = points_file(folder, sweep)?;
    let mut file = SummaryFile::create(folder, todo)?;
    for (index, point) in sweep.points.iter().enumerate() {
        let values = point.cells(&sweep.columns);
        let (finished, failures) = outcomes(todo, index)?;
        tables.add(&named(&point.plan, &finished), &values)?;
        // Of points that have the same networks the first tells them.
        let of_networks = sweep.of_networks.iter();
        if known_networks
            .insert(of_networks.clone().map(|&at| &point.texts()[at]).collect::<Vec<_>>())
        {
            add_networks(
                &mut networks,
                &point.plan,
                &of_networks.map(|&at| values[at]).collect::<Vec<_>>(),
            )?;
        }
        let planned = todo.keys[index].len() as u64;
        let done = finished.iter().filter(|(_, record)| record.is_first()).count() as u64;
        let counts = [planned, done, failures.len() as u64].map(Value::Whole);
        let lead: Vec<Value<'_>> =
            [Value::Whole(index as u64)].into_iter().chain(values.iter().copied()).collect();
        points.write(&lead, &counts).map_err(failed(POINTS))?;
        let told = summary(&point.plan, &finished, failures);
        file.add(index, point, told)?;
    }
    tables.finish()?;
    networks.finish()?;
    points.finish().map_err(failed(POINTS))?;
    let (lines, failures) = file.finish()?;

    // Until all have their names the folder is not what it was, nor what it will be.
    Status { state: State::Running, ..todo.status().clone() }.write(out)?;
    for name in names() {
        let (from, to) = (folder.join(&name), out.join(&name));
        let result = if from.exists() { fs::rename(from, to) } else { fs::remove_file(to) };
        match result {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            result => result.map_err(failed(&name))?,
        }
    }
    replace_folder(folder, out, INPUTS).map_err(failed(INPUTS))?;
    todo.status().write(out)?;
    Ok(Written { lines, status: todo.status().clone(), failures })
}

fn points_file(folder: &Path, sweep: &Sweep) -> Result<TableFile, FileError> {
    let whole = |name: &str| Column::new(name.to_owned(), Kind::Whole);
    let mut columns = vec![whole("point")];
    columns.extend_from_slice(&sweep.columns);
    columns.extend(["runs_planned", "runs_finished", "runs_failed"].map(whole));
    TableFile::create(&folder.join(POINTS), Form::Csv, &columns).map_err(failed(POINTS))
}

type Outcomes = (Vec<(Cell, RunRecord)>, Vec<Failure>);

/// What came of the runs of a point, as far as they are kept, in the order of its cells.
fn outcomes(todo: &Todo, index: usize) -> Result<Outcomes, StoreError> {
    let Point { plan, .. } = &todo.sweep.points[index];
    let cells: Vec<(Cell, u128)> = plan.cells().zip(todo.keys[index].iter().copied()).collect();
    let read = |chunk: &[(Cell, u128)]| {
        let mut reader = todo.store.reader();
        let one =
            |(cell, key): &(Cell, u128)| Ok(reader.read(*key)?.map(|outcome| (*cell, outcome)));
        chunk.iter().map(one).collect::<Result<Vec<Option<(Cell, Outcome)>>, StoreError>>()
    };
    let chunks = cells.par_chunks(CHUNK).map(read).collect::<Result<Vec<_>, _>>()?;
    let (mut finished, mut failures) = (Vec::new(), Vec::new());
    for (cell, outcome) in chunks.into_iter().flatten().flatten() {
        match outcome {
            Ok(records) => finished.extend(records.into_iter().map(|record| (cell, record))),
            Err(reason) => failures.push(failure(plan, cell, reason)),
        }
    }
    Ok((finished, failures))
}
