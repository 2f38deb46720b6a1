//! One load in full: what each path carried of each object and when, and time series of all paths.
//!
//! Results store the times of every object, but not every packet of every run. Since a run is the same
//! each time, the one that somebody wants to see is run again ([`replay`]) and looked at meanwhile:
//! [`plan_of`] makes the plan of a result from its `scenario.toml`, [`find`] the cell of a run from the
//! names that its tables have. A result of another version may differ: [`Detail::compare`] tells.
//!
//! [`recording`] writes it as a HAR file, for the viewers of others.
//!
//! What is here is for drawing. It is bounded, whatever the load: [`Options`] says how.

mod find;
mod recording;
mod segments;
mod series;

use quipu_base::{Bytes, Duration, Instant};
use quipu_web::page::{ObjectId, ObjectKind};
use thiserror::Error;

pub use self::find::{RunName, find, plan_of};
pub use self::recording::recording;
use crate::batch::Runner;
use crate::pages::PageLoadError;
use crate::plan::{Cell, Plan, PlanError};
use crate::run::{Arrival, Arrivals, Instruments, RunError};
use quipu_record::{Detail, ObjectDetail, ObjectRecord, RunRecord};
use quipu_scenario::{Discovery, ScenarioError, Series};

/// Which load of a run, and how finely it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Number of the page in the client's session, from 0.
    pub visit: u32,
    /// Number of the client, from 0.
    pub client: u32,
    /// Points of time that each path's series has at most: 2 or more.
    pub points: u32,
    /// Segments that an object has at most; one for each path that carried some of it in any case.
    pub segments: usize,
    /// Characters of a URL at most; what is longer loses its middle.
    pub url: usize,
    /// Connections whose series are told at most.
    pub connections: usize,
    /// Bytes that the whole run may carry: those of all bodies, or of flows alone what links carry in
    /// their time. Beyond, it is not run.
    pub bytes: Bytes,
}

impl Default for Options {
    /// The first page of the first client; 200 points, 24 segments, URLs of 200 characters, 16
    /// connections, runs of at most 1 GiB: our choices.
    fn default() -> Self {
        Options {
            visit: 0,
            client: 0,
            points: 200,
            segments: 24,
            url: 200,
            connections: 16,
            bytes: Bytes(1 << 30),
        }
    }
}

/// A load that cannot be replayed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DetailError {
    /// The scenario has no such run, page or client.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The scenario cannot be run.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The page cannot be read.
    #[error(transparent)]
    Page(#[from] PageLoadError),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The run is too long to be done by the way.
    #[error("the run may carry {bytes}; expected at most {most} for a replay")]
    TooLarge {
        /// Bytes of all bodies, or what links may carry.
        bytes: Bytes,
        /// The most that the options allow.
        most: Bytes,
    },
}

/// Runs `cell` of `plan` again, and tells all of one load of it. Nothing is logged or timed.
///
/// # Errors
/// If the plan has no such cell, visit or client, the run is too large, or it fails.
pub fn replay(plan: &Plan, cell: Cell, options: &Options) -> Result<Detail, DetailError> {
    find::check(plan, cell, options)?;
    let arrivals = Arrivals::of_client(options.client);
    let looked_at = plan.with_series(Series::None);
    let runner = Runner::with_instruments(&looked_at, Instruments::of_arrivals(arrivals.clone()));
    let records = runner.run_session(cell)?.into_iter();
    let mut chosen =
        records.filter(|record| (record.visit, record.client) == (options.visit, options.client));
    // It was checked that there is such a load.
    let missing = || RunError::Unfinished { at: Instant::ZERO, open: 0, objects: 0 };
    let record = chosen.next().ok_or_else(missing)?;

    let start = |object: &ObjectRecord| object.completed_at - object.since_page_start;
    let began_at = record.objects.first().map_or(Instant::ZERO, start);
    let objects = objects(plan, cell, options, &record, began_at, &arrivals)?;
    let span = series::Span::of(plan, cell, options, &record, began_at);
    let (series, series_left_out) = series::series(plan, cell, options, &span)?;
    let network = &plan.networks[cell.network].network;
    Ok(Detail {
        name: plan.name_of(cell),
        record,
        paths: network.paths.iter().map(|path| path.name.clone()).collect(),
        began_at,
        objects,
        series,
        every: span.every,
        series_left_out,
    })
}

/// The objects of the load that `record` measured.
fn objects(
    plan: &Plan,
    cell: Cell,
    options: &Options,
    record: &RunRecord,
    began_at: Instant,
    arrivals: &Arrivals,
) -> Result<Vec<ObjectDetail>, DetailError> {
    if record.objects.is_empty() {
        return Ok(Vec::new());
    }
    let page = plan.visit_of(cell, options.client, options.visit)?;
    let mut of_object: Vec<Vec<Arrival>> = vec![Vec::new(); page.page.objects().len()];
    let network = plan.run_network(cell);
    for arrival in arrivals.of_visit(options.visit) {
        let arrival = Arrival { path: network.position(arrival.path), ..arrival };
        let index = usize::try_from(arrival.object).unwrap_or(usize::MAX);
        if let Some(list) = of_object.get_mut(index) {
            list.push(arrival);
        }
    }
    let since = |at: Instant| at.saturating_since(began_at);
    let object = |object: &ObjectRecord| {
        let index = usize::try_from(object.object).unwrap_or(usize::MAX);
        let arrivals = of_object.get(index).map_or(&[][..], Vec::as_slice);
        let of_page = page.page.object(ObjectId(object.object));
        let kind = of_page.map(|object| object.kind);
        let priority = of_page.and_then(|object| object.priority);
        // Where all is requested at once nothing waits for anything.
        let waits = of_page.filter(|_| plan.scenario.discovery == Discovery::Recorded);
        let gap = waits.map_or(Duration::ZERO, |object| object.gap.total());
        ObjectDetail {
            object: object.object,
            url: bounded(page.url(object.object), options.url),
            kind: kind.unwrap_or(ObjectKind::Other).name().to_owned(),
            connection: object.connection,
            body: object.body,
            held: object.held,
            pushed: object.pushed,
            priority: priority.map_or(String::new(), |it| format!("{:?}", it.last)),
            needs: waits.map_or(Vec::new(), |object| object.needs().map(|need| need.0).collect()),
            discovered: since(object.requested_at).saturating_sub(gap),
            requested: since(object.requested_at),
            first_byte: since(object.first_byte_at),
            completed: since(object.completed_at),
            bound: object.bound,
            carried: segments::carried(arrivals),
            segments: segments::segments(arrivals, began_at, record.page_time, options.segments),
        }
    };
    Ok(record.objects.iter().map(object).collect())
}

/// `url` without control characters, of at most `most` characters: its start and its end.
fn bounded(url: &str, most: usize) -> String {
    let signs: Vec<char> =
        url.chars().map(|sign| if sign.is_control() { '?' } else { sign }).collect();
    if signs.len() <= most {
        return signs.into_iter().collect();
    }
    let kept = most.saturating_sub(1);
    let (front, back) = (kept - kept / 2, kept / 2);
    let parts = [&signs[..front], &['…'], &signs[signs.len() - back..]];
    parts.iter().flat_map(|part| part.iter()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_url_loses_its_middle() {
        assert_eq!(bounded("https://a.test/x", 16), "https://a.test/x");
        assert_eq!(bounded("https://a.test/xy", 16), "https://…test/xy");
        assert_eq!(bounded("https://a.test/ä\n\u{7f}", 100), "https://a.test/ä??");
        assert_eq!(["ab", "abc"].map(|url| bounded(url, 2)), ["ab", "a…"]);
        assert_eq!([0, 1].map(|most| bounded("abc", most)), ["…", "…"]);
    }
}
