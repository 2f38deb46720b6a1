//! The tables of a result folder: runs, objects, paths, flows, links.

use std::path::Path;

use quipu_record::Metric;

use super::places::Places;
use super::table::{Bad, Rows};
use crate::notices::{Notices, clean};
use crate::results::{Cell, Flow, Link, Load, Results};

/// A folder with tables.
pub(crate) struct Folder<'a> {
    /// Where.
    pub(crate) path: &'a Path,
    /// What notices call it; empty if it is the only one.
    pub(crate) label: &'a str,
    /// Fields that all its rows have.
    pub(crate) fixed: &'a [(String, String)],
}

/// Columns between which a sweep has those of its fields.
const BEFORE_FIELDS: &str = "run";
const AFTER_FIELDS: &str = "visit";

/// Fields that a sweep may have.
const MOST_FIELDS: usize = 12;

/// The fields that the tables of a folder have beyond page, network, policy and run.
pub(crate) fn fields(folder: &Folder<'_>, notices: &mut Notices) -> Vec<String> {
    let Some(rows) = Rows::open(folder.path, folder.label, "runs.csv", notices) else {
        return Vec::new();
    };
    let (Some(from), Some(until)) = (rows.find(BEFORE_FIELDS), rows.find(AFTER_FIELDS)) else {
        return Vec::new();
    };
    rows.header()
        .get(from + 1..until)
        .unwrap_or_default()
        .iter()
        .take(MOST_FIELDS)
        .cloned()
        .collect()
}

/// Reads all tables of `folder` into `results`, whose fields are known.
pub(crate) fn read(folder: &Folder<'_>, results: &mut Results, notices: &mut Notices) {
    runs(folder, results, notices);
    objects(folder, results, notices);
    paths(folder, results, notices);
    flows(folder, results, notices);
    links(folder, results, notices);
    streams(folder, results, notices);
}

fn runs(folder: &Folder<'_>, results: &mut Results, notices: &mut Notices) {
    let file = Needs { file: "runs.csv", needed: ["run"], wanted: [] };
    let mut positions = None;
    each(folder, &file, results, notices, |rows, cell, [run], []| {
        let columns = positions.get_or_insert_with(|| RunColumns::find(rows));
        let run = rows.number(run)?;
        let mut load = Load::new(
            run,
            optional(rows, columns.client)?.unwrap_or_default(),
            optional(rows, columns.visit)?.unwrap_or_default(),
        );
        for &(metric, value, bound) in &columns.metrics {
            load.set(metric, optional(rows, value)?);
            load.set_bound(metric, optional(rows, bound)?);
        }
        cell.loads.push(load);
        Ok(())
    });
}

/// Where `runs.csv` has what, as far as it has it.
struct RunColumns {
    client: Option<usize>,
    visit: Option<usize>,
    /// Metrics of loads with the columns of their values and of their bounds.
    metrics: Vec<(Metric, Option<usize>, Option<usize>)>,
}

impl RunColumns {
    fn find(rows: &Rows) -> RunColumns {
        let find = |name: Option<&str>| name.and_then(|name| rows.find(name));
        let metrics = Metric::of_loads().map(|(metric, of)| {
            (metric, find(of.column), find(of.bound.map(|bound| bound.column)))
        });
        let metrics = metrics.collect();
        RunColumns { client: rows.find("client"), visit: rows.find("visit"), metrics }
    }
}

fn objects(folder: &Folder<'_>, results: &mut Results, notices: &mut Notices) {
    let (needed, wanted) = (["since_page_start_ns"], ["object", "url"]);
    let file = Needs { file: "objects.csv", needed, wanted };
    let mut known = 0;
    each(folder, &file, results, notices, |rows, cell, [completed], [object, url]| {
        let completed = rows.number(completed)?;
        cell.objects.add(completed);
        let Some(object) = optional(rows, object)? else { return Ok(()) };
        match cell.object_means.get_mut(&object) {
            Some(mean) => mean.add(completed),
            None if known < MOST_OBJECT_MEANS => {
                known += 1;
                let url = url.map(|url| clean(&rows.text(url))).unwrap_or_default();
                let mean = cell.object_means.entry(object).or_default();
                mean.url = url;
                mean.add(completed);
            }
            None => {}
        }
        Ok(())
    });
}

fn paths(folder: &Folder<'_>, results: &mut Results, notices: &mut Notices) {
    let needed = ["end", "name", "bytes_sent"];
    let file = Needs { file: "paths.csv", needed, wanted: [] };
    each(folder, &file, results, notices, |rows, cell, [end, name, sent], []| {
        if rows.bytes(end) != b"server" {
            return Ok(());
        }
        let sent = rows.number(sent)?;
        let name = rows.text(name);
        match cell.sent.iter().position(|(known, _)| *known == name) {
            Some(position) => cell.sent[position].1 = cell.sent[position].1.saturating_add(sent),
            None if cell.sent.len() < MOST_PARTS => cell.sent.push((clean(&name), sent)),
            None => {}
        }
        Ok(())
    });
}

fn flows(folder: &Folder<'_>, results: &mut Results, notices: &mut Notices) {
    let needed = ["name", "direction", "bytes", "goodput_bit_per_s"];
    let wanted = ["congestion", "rtt_mean_ns"];
    let file = Needs { file: "flows.csv", needed, wanted };
    each(folder, &file, results, notices, |rows, cell, columns, [congestion, rtt]| {
        let [name, direction, bytes, goodput] = columns;
        let (bytes, goodput) = (rows.number(bytes)?, rows.optional(goodput)?);
        let rtt = optional(rows, rtt)?;
        let (name, direction) = (rows.text(name), rows.text(direction));
        let known = cell.flows.iter().position(|it| it.name == name && it.direction == direction);
        let position = match known {
            Some(position) => position,
            None if cell.flows.len() < MOST_PARTS => {
                cell.flows.push(Flow {
                    name: clean(&name),
                    direction: clean(&direction),
                    congestion: congestion.map(|it| clean(&rows.text(it))).unwrap_or_default(),
                    ..Flow::default()
                });
                cell.flows.len() - 1
            }
            None => return Ok(()),
        };
        let flow = &mut cell.flows[position];
        flow.bytes = flow.bytes.saturating_add(bytes);
        flow.goodput.extend(goodput);
        flow.rtt.extend(rtt);
        Ok(())
    });
}

fn streams(folder: &Folder<'_>, results: &mut Results, notices: &mut Notices) {
    let needed = ["stream", "since_page_start_ns"];
    let file = Needs { file: "streams.csv", needed, wanted: [] };
    each(folder, &file, results, notices, |rows, cell, [stream, time], []| {
        let (stream, time) = (rows.number(stream)?, rows.number(time)?);
        if cell.streams.len() < MOST_PARTS || cell.streams.contains_key(&stream) {
            cell.streams.entry(stream).or_default().push(time);
        }
        Ok(())
    });
}

fn links(folder: &Folder<'_>, results: &mut Results, notices: &mut Notices) {
    let needed = ["name", "direction", "bytes_delivered", "bytes_capacity"];
    let file = Needs { file: "links.csv", needed, wanted: ["datagrams_dropped"] };
    each(folder, &file, results, notices, |rows, cell, columns, [dropped]| {
        let [name, direction, delivered, capacity] = columns;
        let (delivered, capacity) = (rows.number(delivered)?, rows.optional(capacity)?);
        let dropped = optional(rows, dropped)?.unwrap_or_default();
        let (name, direction) = (rows.text(name), rows.text(direction));
        let known = cell.links.iter().position(|it| it.name == name && it.direction == direction);
        let position = match known {
            Some(position) => position,
            None if cell.links.len() < MOST_PARTS => {
                let (name, direction) = (clean(&name), clean(&direction));
                cell.links.push(Link { name, direction, ..Link::default() });
                cell.links.len() - 1
            }
            None => return Ok(()),
        };
        let link = &mut cell.links[position];
        link.delivered = link.delivered.saturating_add(delivered);
        link.capacity = link.capacity.saturating_add(capacity.unwrap_or_default());
        link.dropped = link.dropped.saturating_add(dropped);
        Ok(())
    });
}

/// Objects of all cells of a folder together whose means are kept.
const MOST_OBJECT_MEANS: usize = 40_000;

/// Paths, flows or links of a cell that are kept.
const MOST_PARTS: usize = 200;

/// A file and its columns beyond those of every table.
struct Needs<const N: usize, const W: usize> {
    file: &'static str,
    /// Without these it is left out.
    needed: [&'static str; N],
    /// These may be missing, as in files of other versions.
    wanted: [&'static str; W],
}

/// Calls `take` for each row of a file that has a cell; rows that it refuses are left out.
fn each<const N: usize, const W: usize>(
    folder: &Folder<'_>,
    needs: &Needs<N, W>,
    results: &mut Results,
    notices: &mut Notices,
    mut take: impl FnMut(&mut Rows, &mut Cell, [usize; N], [Option<usize>; W]) -> Result<(), Bad>,
) {
    let Some(mut rows) = Rows::open(folder.path, folder.label, needs.file, notices) else {
        return;
    };
    let Some(mut places) = Places::new(&rows, results, folder.fixed, notices) else { return };
    let Some(needed) = rows.need(needs.needed, notices) else { return };
    let wanted = needs.wanted.map(|column| rows.find(column));
    while rows.next() {
        let Some((scene, cell)) = places.of(&rows, results) else { continue };
        // What is refused is noted by the rows.
        let _ = take(&mut rows, &mut results.scenes[scene].cells[cell], needed, wanted);
    }
    places.finish(needs.file, notices);
    rows.finish(notices);
}

/// The whole number in `column`; `None` if there is no such column, or the cell is empty.
fn optional(rows: &mut Rows, column: Option<usize>) -> Result<Option<u64>, Bad> {
    column.map_or(Ok(None), |column| rows.optional(column))
}
