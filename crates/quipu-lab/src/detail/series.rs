//! The state of every path over the time of a load, as the sender knows it.

use std::collections::BTreeMap;
use std::sync::Arc;

use quipu_base::{Duration, Instant};

use super::{DetailError, Options};
use crate::plan::{Cell, Plan};
use crate::run::{Instruments, PAGE_FLOW, measure};
use quipu_record::{ConnectionSeries, End, PathSeries, RunRecord, SeriesRow};
use quipu_scenario::Series;

/// The least time between two points: the finest series that a scenario may ask for.
const LEAST: Duration = Duration::from_micros(10);

/// When points are taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    from: Instant,
    until: Instant,
    pub(super) every: Duration,
}

impl Span {
    /// The time of the load that `record` measured; that of the first page begins with the connection.
    pub(super) fn of(
        plan: &Plan,
        cell: Cell,
        options: &Options,
        record: &RunRecord,
        began_at: Instant,
    ) -> Span {
        let from = match (plan.pages.is_empty(), options.visit) {
            (true, _) => Instant::ZERO,
            (false, 0) => plan.client_start(cell.run, options.client).min(began_at),
            (false, _) => began_at,
        };
        let until = record.ended_at.max(from);
        let steps = u64::from(options.points.max(2) - 1);
        let every = Duration::from_nanos((until - from).as_nanos().div_ceil(steps)).max(LEAST);
        Span { from, until, every }
    }
}

/// The series of the connections that load the page for the client of `options`, then of flows; and how
/// many there were too many.
pub(super) fn series(
    plan: &Plan,
    cell: Cell,
    options: &Options,
    span: &Span,
) -> Result<(Vec<ConnectionSeries>, usize), DetailError> {
    let looked_at = plan.with_series(Series::Every(span.every));
    let own = match options.client {
        0 => PAGE_FLOW.to_owned(),
        client => format!("{PAGE_FLOW}:{client}"),
    };
    let mut all: BTreeMap<Place, BTreeMap<u32, Vec<SeriesRow>>> = BTreeMap::new();
    let mut left_out: BTreeMap<Place, ()> = BTreeMap::new();
    let mut take = |row: &SeriesRow| {
        let Some(path) = row.path else { return Ok(()) };
        let Some(place) = Place::of(plan, &own, row) else { return Ok(()) };
        if row.at < span.from || row.at > span.until {
            return Ok(());
        }
        if !all.contains_key(&place) && all.len() >= options.connections {
            left_out.insert(place, ());
            return Ok(());
        }
        all.entry(place).or_default().entry(path).or_default().push(row.clone());
        Ok(())
    };
    measure(&looked_at, cell, &Instruments::default(), Some(&mut take))?;
    let series = all.into_iter().map(|(place, paths)| {
        let of_path = |(id, rows): (u32, Vec<SeriesRow>)| {
            let path = place.position(plan, cell, id);
            let network = &plan.networks[cell.network].network;
            let name = usize::try_from(path).ok().and_then(|path| network.paths.get(path));
            let name = name.map_or_else(|| id.to_string(), |path| path.name.clone());
            PathSeries { path, name, rows }
        };
        let end = paths.values().flatten().next().map_or(End::Server, |row| row.end);
        let paths = paths.into_iter().map(of_path).collect();
        ConnectionSeries { flow: place.flow, end, paths }
    });
    Ok((series.collect(), left_out.len()))
}

/// A connection: those of pages come before flows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// Position of the flow in the scenario; `None` of a page.
    number: Option<usize>,
    flow: Arc<str>,
}

impl Place {
    /// The connection of `row`, if it is a flow or loads a page for the client whose first is `own`.
    fn of(plan: &Plan, own: &str, row: &SeriesRow) -> Option<Place> {
        let number = plan.scenario.flows.iter().position(|flow| flow.name == *row.flow);
        let rest = row.flow.strip_prefix(own);
        let is_own = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('@'));
        (number.is_some() || is_own).then(|| Place { number, flow: Arc::clone(&row.flow) })
    }

    /// The position in the network of the connection's path `id`.
    fn position(&self, plan: &Plan, cell: Cell, id: u32) -> u32 {
        let network = plan.run_network(cell);
        let paths = self.number.and_then(|number| network.flow_paths.get(number));
        let index = usize::try_from(id).unwrap_or(usize::MAX);
        let position = paths.and_then(|paths| paths.get(index)).copied();
        network.position(position.and_then(|position| u32::try_from(position).ok()).unwrap_or(id))
    }
}
