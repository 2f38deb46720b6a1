//! The files of a result: one scenario, one summary, a table of each kind of record, and time series
//! where they are asked for.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use thiserror::Error;

use super::networks::{self, NetworksFile};
use super::tables::{Column, Form, TableFile, Value};
use super::{End, RunRecord, Summary, series, traffic_files};
use crate::plan::{Cell, Plan};
use quipu_scenario::{Scenario, ScenarioError, Series};

/// A file of a result could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file system refused.
    #[error("cannot write {file}: {source}")]
    Write {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// The scenario cannot be written out.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// The complete scenario.
pub(super) const SCENARIO: &str = "scenario.toml";
/// What the runs say together.
pub(super) const SUMMARY: &str = "summary.json";

/// The files that a result may have.
pub(super) fn names() -> impl Iterator<Item = String> {
    let tables = sheets().map(|sheet| Form::Csv.file(sheet.name));
    let others = [SCENARIO, SUMMARY, networks::NAME, series::NAME].map(str::to_owned);
    others.into_iter().chain(tables)
}

/// What the rows of every table begin with: see [`place`].
pub(super) const PLACE: [&str; 4] = ["page", "network", "policy", "run"];
/// What follows it where rows are about one load.
const LOAD: [&str; 2] = ["visit", "client"];

const RUNS: [&str; 20] = [
    "connect_time_ns",
    "page_time_ns",
    "object_index_ns",
    "byte_index_ns",
    "critical_time_ns",
    "ended_at_ns",
    "objects",
    "packets_sent",
    "bytes_sent",
    "bytes_resent",
    "bytes_copies",
    "bytes_lost",
    "bytes_spurious",
    "path_switches",
    "refused",
    "overridden",
    "page_fluid_bound_ns",
    "page_bound_ns",
    "critical_fluid_bound_ns",
    "critical_bound_ns",
];

const OBJECTS: [&str; 13] = [
    "object",
    "connection",
    "url",
    "body_bytes",
    "held",
    "stream",
    "requested_at_ns",
    "first_byte_at_ns",
    "completed_at_ns",
    "since_page_start_ns",
    "since_request_ns",
    "fluid_bound_ns",
    "bound_ns",
];

const PATHS: [&str; 11] = [
    "connection",
    "end",
    "path",
    "name",
    "packets_sent",
    "datagrams_received",
    "bytes_sent",
    "bytes_resent",
    "bytes_copies",
    "bytes_lost",
    "bytes_spurious",
];

const STREAMS: [&str; 7] = [
    "stream",
    "latency_ns",
    "objects",
    "bytes",
    "first_byte_at_ns",
    "completed_at_ns",
    "since_page_start_ns",
];

const CONNECTIONS: [&str; 6] =
    ["connection", "origin", "opened_at_ns", "connected_at_ns", "objects", "body_bytes"];

/// A table of results: its name, whether its rows are about single loads, its columns, when it is
/// there even without a row, and its rows of one record.
pub(super) struct Sheet {
    pub(super) name: &'static str,
    pub(super) of_loads: bool,
    pub(super) columns: &'static [&'static str],
    pub(super) always: fn(&Scenario) -> bool,
    pub(super) rows: RowsOf,
}

/// The rows that a table has of a record: each is handed on.
pub(super) type RowsOf =
    fn(&Plan, Cell, &RunRecord, &mut dyn FnMut(&[Value<'_>]) -> io::Result<()>) -> io::Result<()>;

/// The tables, in the order in which they are written.
static SHEETS: [Sheet; 5] = [
    Sheet { name: "runs", of_loads: true, columns: &RUNS, always: |_| true, rows: run_rows },
    Sheet {
        name: "objects",
        of_loads: true,
        columns: &OBJECTS,
        always: |_| true,
        rows: object_rows,
    },
    Sheet { name: "paths", of_loads: true, columns: &PATHS, always: |_| true, rows: path_rows },
    Sheet {
        name: "connections",
        of_loads: true,
        columns: &CONNECTIONS,
        always: |_| false,
        rows: connection_rows,
    },
    Sheet {
        name: "streams",
        of_loads: true,
        columns: &STREAMS,
        always: |_| false,
        rows: stream_rows,
    },
];

/// All tables, those of traffic included.
pub(super) fn sheets() -> impl Iterator<Item = &'static Sheet> {
    SHEETS.iter().chain(&traffic_files::SHEETS)
}

/// Names of all tables.
pub(crate) fn table_names() -> impl Iterator<Item = &'static str> {
    sheets().map(|sheet| sheet.name)
}

/// Names of all columns of tables.
pub(crate) fn known_columns() -> Vec<&'static str> {
    let columns = sheets().flat_map(|sheet| sheet.columns).copied();
    let others = [&PLACE[..], &LOAD, &networks::COLUMNS].concat();
    columns.chain(others).chain(["point", "runs_planned", "runs_finished", "runs_failed"]).collect()
}

/// The tables of a result, open to be written.
pub(crate) struct Tables {
    directory: PathBuf,
    /// Columns behind the first four.
    fields: Vec<Column>,
    files: Vec<(&'static Sheet, Form, Option<TableFile>)>,
}

impl Tables {
    /// Files in `directory`, which exists, of runs of `scenario` in `forms`; with `fields` as
    /// further columns behind page, network, policy and run.
    ///
    /// # Errors
    /// If one cannot be made.
    pub(crate) fn create(
        directory: &Path,
        scenario: &Scenario,
        forms: &[Form],
        fields: Vec<Column>,
    ) -> Result<Tables, FileError> {
        let files = sheets().flat_map(|sheet| forms.iter().map(move |form| (sheet, *form, None)));
        let files = files.collect();
        let mut tables = Tables { directory: directory.to_owned(), fields, files };
        let Tables { directory, fields, files } = &mut tables;
        for (sheet, form, file) in files.iter_mut().filter(|(sheet, ..)| (sheet.always)(scenario)) {
            *file = Some(open(directory, sheet, *form, fields)?);
        }
        Ok(tables)
    }

    /// Adds the rows of `finished`, runs of `plan`, which have the values `values` of the further
    /// columns.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(crate) fn add(
        &mut self,
        plan: &Plan,
        finished: &[(Cell, RunRecord)],
        values: &[Value<'_>],
    ) -> Result<(), FileError> {
        let Tables { directory, fields, files } = self;
        let (directory, fields) = (&*directory, &*fields);
        // Each file by itself, so that all cores may write.
        files.par_iter_mut().try_for_each(|(sheet, form, file)| {
            let mut broken: Option<FileError> = None;
            for (cell, record) in finished {
                let mut lead = Vec::with_capacity(PLACE.len() + values.len() + LOAD.len());
                lead.extend(lead_of(plan, *cell));
                lead.extend_from_slice(values);
                if sheet.of_loads {
                    lead.extend([record.visit, record.client].map(|it| Value::Whole(it.into())));
                }
                let mut hand_on = |row: &[Value<'_>]| {
                    if file.is_none() {
                        match open(directory, sheet, *form, fields) {
                            Ok(new) => *file = Some(new),
                            Err(error) => {
                                broken = Some(error);
                                return Err(io::Error::other("the file cannot be made"));
                            }
                        }
                    }
                    file.as_mut().map_or(Ok(()), |file| file.write(&lead, row))
                };
                let written = (sheet.rows)(plan, *cell, record, &mut hand_on);
                written.map_err(|source| {
                    let file = form.file(sheet.name);
                    broken.take().unwrap_or(FileError::Write { file, source })
                })?;
            }
            Ok(())
        })
    }

    /// Writes out all that is left.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(crate) fn finish(self) -> Result<(), FileError> {
        self.files.into_iter().try_for_each(|(sheet, form, file)| {
            let finished = file.map_or(Ok(()), TableFile::finish);
            finished.map_err(|source| FileError::Write { file: form.file(sheet.name), source })
        })
    }
}

fn open(
    directory: &Path,
    sheet: &Sheet,
    form: Form,
    fields: &[Column],
) -> Result<TableFile, FileError> {
    let mut columns: Vec<Column> = PLACE.iter().map(|name| Column::known(name)).collect();
    columns.extend_from_slice(fields);
    let of_load = LOAD.iter().filter(|_| sheet.of_loads);
    columns.extend(of_load.chain(sheet.columns).map(|name| Column::known(name)));
    let file = form.file(sheet.name);
    let made = TableFile::create(&directory.join(&file), form, &columns);
    made.map_err(|source| FileError::Write { file, source })
}

/// Writes all files of a result into `directory`, which exists.
pub(super) fn write_all(
    directory: &Path,
    plan: &Plan,
    finished: &[(Cell, RunRecord)],
    summary: &Summary,
) -> Result<(), FileError> {
    let text = plan.scenario.to_toml()?;
    write(directory, SCENARIO, |file| file.write_all(text.as_bytes()))?;
    write(directory, SUMMARY, |file| {
        serde_json::to_writer_pretty(&mut *file, summary)?;
        file.write_all(b"\n")
    })?;
    let mut tables = Tables::create(directory, &plan.scenario, &[Form::Csv], Vec::new())?;
    tables.add(plan, finished, &[])?;
    tables.finish()?;
    let mut networks = NetworksFile::create(directory, &[])?;
    networks.add(plan, &[])?;
    networks.finish()?;
    match plan.scenario.series {
        Series::None => Ok(()),
        Series::Every(_) => series::join(directory, finished),
    }
}

pub(super) fn write(
    directory: &Path,
    name: &str,
    fill: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<(), FileError> {
    let failed = |source| FileError::Write { file: name.to_owned(), source };
    let mut file = BufWriter::new(File::create(directory.join(name)).map_err(failed)?);
    fill(&mut file).and_then(|()| file.flush()).map_err(failed)
}

/// What every row begins with.
pub(super) fn place(plan: &Plan, cell: &Cell) -> [String; 4] {
    let network = &plan.networks[cell.network];
    [
        plan.page_name(cell.page).to_owned(),
        network.network.name.clone(),
        network.policies[cell.policy].label.clone(),
        cell.run.to_string(),
    ]
}

/// The same as values.
fn lead_of(plan: &Plan, cell: Cell) -> [Value<'_>; 4] {
    let network = &plan.networks[cell.network];
    [
        Value::Text(plan.page_name(cell.page)),
        Value::Text(&network.network.name),
        Value::Text(&network.policies[cell.policy].label),
        Value::Whole(cell.run.into()),
    ]
}

type HandOn<'h> = dyn FnMut(&[Value<'_>]) -> io::Result<()> + 'h;

fn run_rows(_: &Plan, _: Cell, record: &RunRecord, row: &mut HandOn<'_>) -> io::Result<()> {
    let numbers = [
        record.connect_time.as_nanos(),
        record.page_time.as_nanos(),
        record.object_index.as_nanos(),
        record.byte_index.as_nanos(),
        record.critical_time.as_nanos(),
        record.ended_at.as_nanos(),
        record.objects.len() as u64,
        record.sender_packets(),
        record.sender_total(|path| path.bytes_sent).0,
        record.sender_total(|path| path.bytes_resent).0,
        record.sender_total(|path| path.bytes_copies).0,
        record.sender_total(|path| path.bytes_lost).0,
        record.sender_total(|path| path.bytes_spurious).0,
        record.path_switches,
        record.refused,
        record.overridden,
        record.page_bound.fluid.as_nanos(),
        record.page_bound.tight.as_nanos(),
        record.critical_bound.fluid.as_nanos(),
        record.critical_bound.tight.as_nanos(),
    ];
    row(&numbers.map(Value::Whole))
}

fn object_rows(
    plan: &Plan,
    cell: Cell,
    record: &RunRecord,
    row: &mut HandOn<'_>,
) -> io::Result<()> {
    if record.objects.is_empty() {
        return Ok(());
    }
    let page = plan.visit_of(cell, record.client, record.visit).map_err(io::Error::other)?;
    record.objects.iter().try_for_each(|object| {
        row(&[
            Value::Whole(object.object.into()),
            Value::Whole(object.connection.into()),
            Value::Text(page.url(object.object)),
            Value::Whole(object.body.0),
            Value::Flag(object.held),
            object.stream.map(u64::from).into(),
            Value::Whole(object.requested_at.as_nanos()),
            Value::Whole(object.first_byte_at.as_nanos()),
            Value::Whole(object.completed_at.as_nanos()),
            Value::Whole(object.since_page_start.as_nanos()),
            Value::Whole(object.since_request.as_nanos()),
            Value::Whole(object.bound.fluid.as_nanos()),
            Value::Whole(object.bound.tight.as_nanos()),
        ])
    })
}

fn connection_rows(_: &Plan, _: Cell, record: &RunRecord, row: &mut HandOn<'_>) -> io::Result<()> {
    record.connections.iter().try_for_each(|connection| {
        row(&[
            Value::Whole(connection.connection.into()),
            Value::Text(&connection.origin),
            Value::Whole(connection.opened_at.as_nanos()),
            connection.connected_at.map(|at| at.as_nanos()).into(),
            Value::Whole(connection.objects),
            Value::Whole(connection.body.0),
        ])
    })
}

fn stream_rows(_: &Plan, _: Cell, record: &RunRecord, row: &mut HandOn<'_>) -> io::Result<()> {
    record.streams.iter().try_for_each(|stream| {
        row(&[
            Value::Whole(stream.stream.into()),
            stream.latency.map(|latency| latency.as_nanos()).into(),
            Value::Whole(stream.objects),
            Value::Whole(stream.bytes.0),
            Value::Whole(stream.first_byte_at.as_nanos()),
            Value::Whole(stream.completed_at.as_nanos()),
            Value::Whole(stream.since_page_start.as_nanos()),
        ])
    })
}

fn path_rows(plan: &Plan, cell: Cell, record: &RunRecord, row: &mut HandOn<'_>) -> io::Result<()> {
    record.paths.iter().try_for_each(|path| {
        row(&[
            Value::Whole(path.connection.into()),
            Value::Text(match path.end {
                End::Server => "server",
                End::Client => "client",
            }),
            Value::Whole(path.path.into()),
            Value::Text(path_name(plan, cell, path.path)),
            Value::Whole(path.packets_sent),
            Value::Whole(path.datagrams_received),
            Value::Whole(path.bytes_sent.0),
            Value::Whole(path.bytes_resent.0),
            Value::Whole(path.bytes_copies.0),
            Value::Whole(path.bytes_lost.0),
            Value::Whole(path.bytes_spurious.0),
        ])
    })
}

/// The name of path `path` of the network of `cell`; empty if it has none.
pub(super) fn path_name(plan: &Plan, cell: Cell, path: u32) -> &str {
    let paths = &plan.networks[cell.network].network.paths;
    let index = usize::try_from(path).ok();
    index.and_then(|index| paths.get(index)).map_or("", |spec| &spec.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_tells_of_every_file_and_column() {
        let guide = include_str!("../../../../docs/results.md");
        let columns = [&PLACE[..], &LOAD, &networks::COLUMNS, &series::COLUMNS].concat();
        let columns = columns.into_iter().chain(sheets().flat_map(|sheet| sheet.columns).copied());
        for name in names().chain(columns.map(str::to_owned)) {
            assert!(guide.contains(&format!("`{name}`")), "{name}");
        }
    }
}
