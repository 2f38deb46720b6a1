//! Loads as HAR files.

use std::collections::BTreeMap;

use quipu_base::{Duration, Instant};
use quipu_web::page::ObjectId;
use quipu_web::recording::{Recorded, Recording, write};

use super::{DetailError, Options, replay};
use crate::plan::{Cell, Plan};
use quipu_record::{Detail, RunRecord};
use quipu_scenario::Discovery;

/// The loads of the first client in `cell`, run again and written as a HAR file, a page for each visit: what a
/// browser would have recorded, and which path carried what; with who asked for what, unless `initiators` are
/// not wanted.
///
/// # Errors
/// As [`replay`].
pub fn recording(plan: &Plan, cell: Cell, initiators: bool) -> Result<String, DetailError> {
    let mut details = Vec::new();
    for visit in 0..plan.scenario.session {
        let options = Options { visit, ..Options::default() };
        let page = plan.visit_of(cell, options.client, visit)?;
        details.push((page, replay(plan, cell, &options)?));
    }
    let first = details.first().map_or(Instant::ZERO, |(_, detail)| detail.began_at);
    let opened = plan.client_start(cell.run, Options::default().client);
    let loads: Vec<Recording<'_>> = details
        .iter()
        .map(|(page, detail)| Recording {
            page: &page.page,
            title: detail.name.clone(),
            began: detail.began_at.saturating_since(first),
            on_load: detail.record.page_time,
            objects: objects(detail, opened),
            // Where all is asked for at once nobody found anything.
            initiators: initiators && plan.scenario.discovery == Discovery::Recorded,
        })
        .collect();
    Ok(write(&loads, env!("CARGO_PKG_VERSION")))
}

/// The objects of a load whose client opened its first connection at `opened`.
fn objects(detail: &Detail, opened: Instant) -> Vec<Recorded> {
    let connected = connected(&detail.record, opened);
    let path = |position: u32| {
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        detail.paths.get(position).cloned().unwrap_or_default()
    };
    let object = |object: &quipu_record::ObjectDetail| Recorded {
        object: ObjectId(object.object),
        connection: object.connection,
        connected: connected
            .get(&object.connection)
            .map(|at| at.saturating_since(detail.began_at))
            .filter(|at| *at > Duration::ZERO),
        requested: object.requested,
        first_byte: object.first_byte,
        completed: object.completed,
        pushed: object.pushed,
        carried: object.carried.iter().map(|it| (path(it.path), it.bytes)).collect(),
        segments: object
            .segments
            .iter()
            .map(|it| (path(it.path), it.from, it.to, it.bytes))
            .collect(),
    };
    detail.objects.iter().map(object).collect()
}

/// When the handshake of each connection ended, by its number.
fn connected(record: &RunRecord, opened: Instant) -> BTreeMap<u32, Instant> {
    let known = record.connections.iter();
    let known = known.filter_map(|it| Some((it.connection, it.connected_at?)));
    let mut all: BTreeMap<u32, Instant> = known.collect();
    all.entry(0).or_insert(opened + record.connect_time);
    all
}
