//! The tables of a result: one of each kind of record.

use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::file::FileError;
use crate::names::{Place, RunNames};
use crate::run::RunRecord;
use crate::tables::{Column, Form, TableFile, Value};
use crate::{networks, series, traffic_sheets};

/// The complete scenario.
pub const SCENARIO: &str = "scenario.toml";
/// What the runs say together.
pub const SUMMARY: &str = "summary.json";

/// The files that a result may have.
pub fn names() -> impl Iterator<Item = String> {
    let tables = sheets().map(|sheet| Form::Csv.file(sheet.name));
    let others = [SCENARIO, SUMMARY, networks::NAME, series::NAME].map(str::to_owned);
    others.into_iter().chain(tables)
}

/// What the rows of every table begin with: names of page, network and policy, and the number of the run.
pub(crate) const PLACE: [&str; 4] = ["page", "network", "policy", "run"];
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
/// there even without a row (told whether there is traffic), and its rows of one record.
pub(crate) struct Sheet {
    pub(crate) name: &'static str,
    pub(crate) of_loads: bool,
    pub(crate) columns: &'static [&'static str],
    pub(crate) always: fn(bool) -> bool,
    pub(crate) rows: RowsOf,
}

/// The rows that a table has of a record: each is handed on.
pub(crate) type RowsOf =
    fn(&dyn RunNames, &RunRecord, &mut dyn FnMut(&[Value<'_>]) -> io::Result<()>) -> io::Result<()>;

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
pub(crate) fn sheets() -> impl Iterator<Item = &'static Sheet> {
    SHEETS.iter().chain(&traffic_sheets::SHEETS)
}

/// Names of all tables.
pub fn table_names() -> impl Iterator<Item = &'static str> {
    sheets().map(|sheet| sheet.name)
}

/// Names of all columns of tables.
pub fn known_columns() -> Vec<&'static str> {
    let columns = sheets().flat_map(|sheet| sheet.columns).copied();
    let others = [&PLACE[..], &LOAD, &networks::COLUMNS].concat();
    columns.chain(others).chain(["point", "runs_planned", "runs_finished", "runs_failed"]).collect()
}

/// The tables of a result, open to be written.
pub struct Tables {
    directory: PathBuf,
    /// Columns behind the first four.
    fields: Vec<Column>,
    files: Vec<(&'static Sheet, Form, Option<TableFile>)>,
}

impl Tables {
    /// Files in `directory`, which exists, of runs in `forms`, beside which there is `traffic` or none; with `fields` as
    /// further columns behind page, network, policy and run.
    ///
    /// # Errors
    /// If one cannot be made.
    pub fn create(
        directory: &Path,
        traffic: bool,
        forms: &[Form],
        fields: Vec<Column>,
    ) -> Result<Tables, FileError> {
        let files = sheets().flat_map(|sheet| forms.iter().map(move |form| (sheet, *form, None)));
        let files = files.collect();
        let mut tables = Tables { directory: directory.to_owned(), fields, files };
        let Tables { directory, fields, files } = &mut tables;
        for (sheet, form, file) in files.iter_mut().filter(|(sheet, ..)| (sheet.always)(traffic)) {
            *file = Some(open(directory, sheet, *form, fields)?);
        }
        Ok(tables)
    }

    /// Adds the rows of `finished`, runs with their names, which have the values `values` of the
    /// further columns.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn add<N: RunNames>(
        &mut self,
        finished: &[(N, &RunRecord)],
        values: &[Value<'_>],
    ) -> Result<(), FileError> {
        let Tables { directory, fields, files } = self;
        let (directory, fields) = (&*directory, &*fields);
        // Each file by itself, so that all cores may write.
        files.par_iter_mut().try_for_each(|(sheet, form, file)| {
            let mut broken: Option<FileError> = None;
            for (names, record) in finished {
                let mut lead = Vec::with_capacity(PLACE.len() + values.len() + LOAD.len());
                lead.extend(lead_of(names));
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
                let written = (sheet.rows)(names, record, &mut hand_on);
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
    pub fn finish(self) -> Result<(), FileError> {
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

/// What every row begins with, as values.
fn lead_of(names: &dyn RunNames) -> [Value<'_>; 4] {
    let Place { page, network, policy, run } = names.place();
    [Value::Text(page), Value::Text(network), Value::Text(policy), Value::Whole(run.into())]
}

type HandOn<'h> = dyn FnMut(&[Value<'_>]) -> io::Result<()> + 'h;

fn run_rows(_: &dyn RunNames, record: &RunRecord, row: &mut HandOn<'_>) -> io::Result<()> {
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

fn object_rows(names: &dyn RunNames, record: &RunRecord, row: &mut HandOn<'_>) -> io::Result<()> {
    if record.objects.is_empty() {
        return Ok(());
    }
    let page = names.objects(record.client, record.visit)?;
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

fn connection_rows(_: &dyn RunNames, record: &RunRecord, row: &mut HandOn<'_>) -> io::Result<()> {
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

fn stream_rows(_: &dyn RunNames, record: &RunRecord, row: &mut HandOn<'_>) -> io::Result<()> {
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

fn path_rows(names: &dyn RunNames, record: &RunRecord, row: &mut HandOn<'_>) -> io::Result<()> {
    record.paths.iter().try_for_each(|path| {
        row(&[
            Value::Whole(path.connection.into()),
            Value::Text(path.end.name()),
            Value::Whole(path.path.into()),
            Value::Text(names.path(path.path)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_tells_of_every_file_and_column() {
        let guide = include_str!("../../../docs/results.md");
        let columns = [&PLACE[..], &LOAD, &networks::COLUMNS, &series::COLUMNS].concat();
        let columns = columns.into_iter().chain(sheets().flat_map(|sheet| sheet.columns).copied());
        for name in names().chain(columns.map(str::to_owned)) {
            assert!(guide.contains(&format!("`{name}`")), "{name}");
        }
    }
}
