//! The files of a result: one scenario, one summary, a table of each kind of record, and time series
//! where they are asked for.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use thiserror::Error;

use super::{ObjectRecord, PathRecord, RunRecord, StreamRecord, Summary, series, traffic_files};
use crate::pages::RunPage;
use crate::plan::{Cell, Plan};
use crate::scenario::{ScenarioError, Series};

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

/// The files that a result may have beside those of traffic, in the order in which they are written.
pub(super) const NAMES: [&str; 7] = [
    "scenario.toml",
    "summary.json",
    "runs.csv",
    "objects.csv",
    "paths.csv",
    "streams.csv",
    series::NAME,
];

const RUNS: [&str; 21] = [
    "page",
    "network",
    "policy",
    "run",
    "visit",
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
];
const OBJECTS: [&str; 15] = [
    "page",
    "network",
    "policy",
    "run",
    "visit",
    "object",
    "url",
    "body_bytes",
    "held",
    "stream",
    "requested_at_ns",
    "first_byte_at_ns",
    "completed_at_ns",
    "since_page_start_ns",
    "since_request_ns",
];
const PATHS: [&str; 15] = [
    "page",
    "network",
    "policy",
    "run",
    "visit",
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
const STREAMS: [&str; 12] = [
    "page",
    "network",
    "policy",
    "run",
    "visit",
    "stream",
    "latency_ns",
    "objects",
    "bytes",
    "first_byte_at_ns",
    "completed_at_ns",
    "since_page_start_ns",
];

/// Writes all files of a result into `directory`, which exists.
pub(super) fn write_all(
    directory: &Path,
    plan: &Plan,
    finished: &[(Cell, RunRecord)],
    summary: &Summary,
) -> Result<(), FileError> {
    let [scenario, summary_file, runs, objects, paths, streams, _] = NAMES;
    let text = plan.scenario.to_toml()?;
    write(directory, scenario, |file| file.write_all(text.as_bytes()))?;
    write(directory, summary_file, |file| {
        serde_json::to_writer_pretty(&mut *file, summary)?;
        file.write_all(b"\n")
    })?;
    table(directory, runs, &RUNS, finished, |rows, cell, record| {
        rows.write_record(row(&place(plan, cell), record, run_row(record)))
    })?;
    table(directory, objects, &OBJECTS, finished, |rows, cell, record| {
        if record.objects.is_empty() {
            return Ok(());
        }
        let page = plan.visit(*cell, record.visit).map_err(std::io::Error::other)?;
        let place = place(plan, cell);
        let mut objects = record.objects.iter();
        objects.try_for_each(|object| {
            rows.write_record(row(&place, record, object_row(&page, object)))
        })
    })?;
    table(directory, paths, &PATHS, finished, |rows, cell, record| {
        let place = place(plan, cell);
        let mut paths = record.paths.iter();
        paths
            .try_for_each(|path| rows.write_record(row(&place, record, path_row(plan, cell, path))))
    })?;
    if finished.iter().any(|(_, record)| !record.streams.is_empty()) {
        table(directory, streams, &STREAMS, finished, |rows, cell, record| {
            let place = place(plan, cell);
            let mut streams = record.streams.iter();
            streams.try_for_each(|it| rows.write_record(row(&place, record, stream_row(it))))
        })?;
    }
    if plan.scenario.has_traffic() {
        traffic_files::write_all(directory, plan, finished)?;
    }
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

type Rows<'a> = csv::Writer<&'a mut BufWriter<File>>;

pub(super) fn table(
    directory: &Path,
    name: &str,
    header: &[&str],
    finished: &[(Cell, RunRecord)],
    row: impl Fn(&mut Rows<'_>, &Cell, &RunRecord) -> csv::Result<()>,
) -> Result<(), FileError> {
    write(directory, name, |file| {
        let mut rows = csv::Writer::from_writer(file);
        rows.write_record(header)?;
        for (cell, record) in finished {
            row(&mut rows, cell, record)?;
        }
        rows.flush()
    })
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

/// A row about the load of `record`, or a part of it.
fn row(
    place: &[String; 4],
    record: &RunRecord,
    rest: impl IntoIterator<Item = String>,
) -> Vec<String> {
    place.iter().cloned().chain([record.visit.to_string()]).chain(rest).collect()
}

fn run_row(record: &RunRecord) -> impl Iterator<Item = String> {
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
    ];
    numbers.into_iter().map(|number| number.to_string())
}

fn object_row(page: &RunPage, object: &ObjectRecord) -> [String; 10] {
    let url = page.url(object.object);
    [
        object.object.to_string(),
        url.to_owned(),
        object.body.0.to_string(),
        object.held.to_string(),
        object.stream.map(|stream| stream.to_string()).unwrap_or_default(),
        object.requested_at.as_nanos().to_string(),
        object.first_byte_at.as_nanos().to_string(),
        object.completed_at.as_nanos().to_string(),
        object.since_page_start.as_nanos().to_string(),
        object.since_request.as_nanos().to_string(),
    ]
}

fn stream_row(stream: &StreamRecord) -> [String; 7] {
    let latency = stream.latency.map(|latency| latency.as_nanos().to_string());
    [
        stream.stream.to_string(),
        latency.unwrap_or_default(),
        stream.objects.to_string(),
        stream.bytes.0.to_string(),
        stream.first_byte_at.as_nanos().to_string(),
        stream.completed_at.as_nanos().to_string(),
        stream.since_page_start.as_nanos().to_string(),
    ]
}

fn path_row(plan: &Plan, cell: &Cell, path: &PathRecord) -> [String; 10] {
    let paths = &plan.networks[cell.network].network.paths;
    let index = usize::try_from(path.path).ok();
    let name = index.and_then(|index| paths.get(index)).map_or("", |spec| &spec.name);
    [
        path.end.to_string(),
        path.path.to_string(),
        name.to_owned(),
        path.packets_sent.to_string(),
        path.datagrams_received.to_string(),
        path.bytes_sent.0.to_string(),
        path.bytes_resent.0.to_string(),
        path.bytes_copies.0.to_string(),
        path.bytes_lost.0.to_string(),
        path.bytes_spurious.0.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_tells_of_every_file_and_column() {
        let guide = include_str!("../../../../docs/results.md");
        let columns = [&RUNS[..], &OBJECTS, &PATHS, &STREAMS, &series::COLUMNS].concat();
        for name in NAMES.iter().chain(&columns) {
            assert!(guide.contains(&format!("`{name}`")), "{name}");
        }
    }
}
