//! The files of a result: one scenario, one summary, a table of each kind of record, and time series
//! where they are asked for.

use std::fs;
use std::io::Write;
use std::path::Path;

use quipu_record::{
    FileError, Form, NetworksFile, Output, OutputError, RunRecord, SCENARIO, SUMMARY, Summary,
    Tables, join_series, read_at_most, write_file,
};
use quipu_scenario::{Inputs, Series, changed, content_hash};

use super::names::{Named, part_of};
use super::networks::add_networks;
use crate::pages::MOST_BYTES;
use crate::plan::{Cell, Plan};

/// Writes the files of a result and gives the directory its name.
///
/// # Errors
/// If a file cannot be written, or the directory renamed; then nothing is left behind.
pub fn write(
    output: Output,
    plan: &Plan,
    finished: &[(Cell, RunRecord)],
    summary: &Summary,
) -> Result<(), OutputError> {
    write_all(output.folder(), plan, finished, summary)?;
    output.publish()
}

/// Writes all files of a result into `directory`, which exists.
fn write_all(
    directory: &Path,
    plan: &Plan,
    finished: &[(Cell, RunRecord)],
    summary: &Summary,
) -> Result<(), FileError> {
    let mut inputs = Inputs::default();
    let scenario = plan.scenario.with_inputs(&mut inputs);
    copy_inputs(directory, &inputs)?;
    let text = scenario.to_toml().map_err(|error| FileError::Scenario(error.to_string()))?;
    write_file(directory, SCENARIO, |file| file.write_all(text.as_bytes()))?;
    write_file(directory, SUMMARY, |file| {
        serde_json::to_writer_pretty(&mut *file, summary)?;
        file.write_all(b"\n")
    })?;
    let traffic = plan.scenario.has_traffic();
    let mut tables = Tables::create(directory, traffic, &[Form::Csv], Vec::new())?;
    tables.add(&named(plan, finished), &[])?;
    tables.finish()?;
    let mut networks = NetworksFile::create(directory, &[])?;
    add_networks(&mut networks, plan, &[])?;
    networks.finish()?;
    match plan.scenario.series {
        Series::None => Ok(()),
        Series::Every(_) => {
            // One for all loads of a run.
            let runs = finished.iter().filter(|(_, record)| record.is_first());
            join_series(directory, runs.map(|(cell, _)| part_of(*cell)))
        }
    }
}

/// Puts copies of all files of `inputs` into `directory`, which exists.
///
/// # Errors
/// If one cannot be read or written, or has another content than when it was read.
pub fn copy_inputs(directory: &Path, inputs: &Inputs) -> Result<(), FileError> {
    for input in inputs.files() {
        let failed = |source| FileError::Write { file: input.name.clone(), source };
        let unlike =
            |message: String| FileError::Input { file: input.path.display().to_string(), message };
        let bytes = read_at_most(&input.path, MOST_BYTES);
        let bytes = bytes.map_err(|error| unlike(format!("cannot be read: {error}")))?;
        let found = content_hash(bytes.as_deref().unwrap_or_default());
        let Some(bytes) = bytes.filter(|_| found == input.hash) else {
            return Err(unlike(changed(found, input.hash)));
        };
        let copy = directory.join(&input.name);
        fs::create_dir_all(copy.parent().unwrap_or(directory)).map_err(failed)?;
        fs::write(copy, bytes).map_err(failed)?;
    }
    Ok(())
}

/// Runs of `plan` with their names.
pub fn named<'a>(
    plan: &'a Plan,
    finished: &'a [(Cell, RunRecord)],
) -> Vec<(Named<'a>, &'a RunRecord)> {
    finished.iter().map(|(cell, record)| (Named { plan, cell: *cell }, record)).collect()
}
