//! The tables of a result: one of each kind of record. Each stands in one place, in [`loads`] or
//! [`traffic`]: its columns, what they mean, and the values of its rows.

#[cfg(test)]
mod guide;
mod loads;
mod sheet;
mod traffic;

use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::file::FileError;
use crate::names::RunNames;
use crate::place::{PLACE, lead_of};
use crate::run::RunRecord;
use crate::tables::{Column, Form, Kind, TableFile, Value, columns};
use crate::{networks, series};

pub(crate) use sheet::{Always, Sheet, sheet};

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

/// What follows [`PLACE`] where rows are about one load.
static LOAD: [Column; 2] = columns! {
    /// number of the page in the client's session, from 0; 0 unless `session` says more
    visit: Whole,
    /// number of the client, from 0; 0 unless `clients` says more
    client: Whole,
};

/// All tables, in the order in which they are written.
static SHEETS: [&Sheet; 10] = [
    &loads::RUNS,
    &loads::OBJECTS,
    &loads::PATHS,
    &loads::RADIOS,
    &loads::CONNECTIONS,
    &loads::STREAMS,
    &traffic::FLOWS,
    &traffic::FLOW_PATHS,
    &traffic::LINKS,
    &traffic::CROSS,
];

fn sheets() -> impl Iterator<Item = &'static Sheet> {
    SHEETS.into_iter()
}

/// Names of all tables.
pub fn table_names() -> impl Iterator<Item = &'static str> {
    sheets().map(|sheet| sheet.name)
}

/// Names of the own columns of the table of runs.
#[cfg(test)]
pub(crate) fn runs_columns() -> impl Iterator<Item = &'static str> {
    loads::RUNS.columns.iter().map(|column| &*column.name)
}

/// All columns of tables of runs and networks.
fn all_columns() -> impl Iterator<Item = &'static Column> {
    let columns = sheets().flat_map(|sheet| sheet.columns);
    columns.chain(&PLACE).chain(&LOAD).chain(&networks::COLUMNS)
}

/// Names of all columns of tables.
pub fn known_columns() -> Vec<&'static str> {
    let names = all_columns().map(|column| &*column.name);
    names.chain(["point", "runs_planned", "runs_finished", "runs_failed"]).collect()
}

/// What the values of the column of that name are, in whichever table it is; `None` if none has it.
pub fn column_kind(name: &str) -> Option<Kind> {
    let mut columns = all_columns().chain(&series::COLUMNS);
    columns.find(|column| column.name == name).map(|column| column.kind)
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
        let always = |always| match always {
            Always::Yes => true,
            Always::WithTraffic => traffic,
            Always::No => false,
        };
        for (sheet, form, file) in files.iter_mut().filter(|(sheet, ..)| always(sheet.always)) {
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
    let of_load = LOAD.iter().filter(|_| sheet.of_loads);
    let columns = PLACE.iter().chain(fields).chain(of_load).chain(sheet.columns);
    let columns: Vec<Column> = columns.cloned().collect();
    let file = form.file(sheet.name);
    let made = TableFile::create(&directory.join(&file), form, &columns);
    made.map_err(|source| FileError::Write { file, source })
}
