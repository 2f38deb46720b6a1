//! One load in full: what each path carried of each object and when, and time series of all paths.
//!
//! Results store the times of every object, but not every packet of every run. Since a run is the same
//! each time, the one that somebody wants to see is run again ([`replay`]) and looked at meanwhile:
//! [`plan_of`] makes the plan of a result from its `scenario.toml`, [`find`] the cell of a run from the
//! names that its tables have. A result of another version may differ: [`Detail::compare`] tells.
//!
//! What is here is for drawing. It is bounded, whatever the load: [`Options`] says how.

mod find;
mod segments;
mod series;

use std::fmt;

use quipu_base::{Bytes, Duration, Instant};
use quipu_web::page::ObjectId;
pub use quipu_web::page::ObjectKind;
use thiserror::Error;

pub use self::find::{RunName, find, plan_of};
pub use self::series::{ConnectionSeries, PathSeries};
use crate::pages::PageLoadError;
use crate::plan::{Cell, Plan, PlanError};
use crate::run::{Arrival, Arrivals, RunError, run_session};
use quipu_record::{Bounds, ObjectRecord, RunRecord};
use quipu_scenario::{ScenarioError, Series};

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

/// One load in full.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// Which run of the plan.
    pub cell: Cell,
    /// What messages call it, such as `wikipedia over wifi+lte with rr + minrtt, run 3`.
    pub name: String,
    /// What it measured: the same as in every run of the same cell. Without a page only the run's end
    /// and its traffic are there.
    pub record: RunRecord,
    /// Names of the network's paths, by position.
    pub paths: Vec<String>,
    /// When the page was asked for, in the time of the run: what times of objects count from. The start
    /// of the run if there is no page.
    pub began_at: Instant,
    /// The page's objects, in order of their ids; none without a page.
    pub objects: Vec<ObjectDetail>,
    /// Connections of the client that loads the page, then flows, as their senders saw them.
    pub series: Vec<ConnectionSeries>,
    /// The time between two points of these.
    pub every: Duration,
    /// Connections and flows whose series were left out, as there were too many.
    pub series_left_out: usize,
}

/// One object of the load. Times count from the start of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectDetail {
    /// Position in the page.
    pub object: u32,
    /// Its address, without control characters; of bounded length.
    pub url: String,
    /// Its type.
    pub kind: ObjectKind,
    /// Number of the connection that it came over; 0 unless each origin has one.
    pub connection: u32,
    /// Bytes of the body.
    pub body: Bytes,
    /// Whether the page's time waits for it.
    pub held: bool,
    /// When it was asked for.
    pub requested: Duration,
    /// When the first byte of its body, or the head of a body without bytes, was read.
    pub first_byte: Duration,
    /// When it was complete.
    pub completed: Duration,
    /// What `completed` cannot be below; zero where there is none.
    pub bound: Bounds,
    /// What each path carried of the body, by position of the path; only paths that carried some.
    pub carried: Vec<Carried>,
    /// When the paths carried it: in order of `from`, then of paths. Those of one path lie apart; those
    /// of different paths may overlap.
    pub segments: Vec<Segment>,
}

/// What a path carried of a body, as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Position of the path in the network.
    pub path: u32,
    /// Bytes that it brought first. Over all paths they are the body.
    pub bytes: Bytes,
    /// Bytes that it brought again: sent once more, or as a copy, when the first was not lost.
    pub again: Bytes,
}

/// A time in which a path brought bytes of a body, one packet soon after the other. Times count from
/// the start of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// When its first packet came.
    pub from: Duration,
    /// When its last packet came; the same if there was one.
    pub to: Duration,
    /// Position of the path in the network.
    pub path: u32,
    /// Bytes that had not come before; over all segments of an object they are its body.
    pub bytes: Bytes,
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

/// A replay that measured something else than the result: of another version, or of files that have
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The page time in the result.
    pub recorded: Duration,
    /// That of the replay.
    pub replayed: Duration,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { recorded, replayed } = self;
        let [recorded, replayed] = [recorded.as_nanos(), replayed.as_nanos()];
        write!(
            f,
            "the result has a page time of {recorded} ns, the replay {replayed} ns: the result is of \
             another version, or a file that its scenario names has changed"
        )
    }
}

impl Detail {
    /// Compares the page time with the `recorded` one.
    ///
    /// # Errors
    /// If they differ: then this is not the load that the result is about.
    pub fn compare(&self, recorded: Duration) -> Result<(), Mismatch> {
        let replayed = self.record.page_time;
        if recorded == replayed { Ok(()) } else { Err(Mismatch { recorded, replayed }) }
    }
}

/// Runs `cell` of `plan` again, and tells all of one load of it. Nothing is logged or timed.
///
/// # Errors
/// If the plan has no such cell, visit or client, the run is too large, or it fails.
pub fn replay(plan: &Plan, cell: Cell, options: &Options) -> Result<Detail, DetailError> {
    find::check(plan, cell, options)?;
    let arrivals = Arrivals::of_client(options.client);
    let records =
        run_session(&plan.looked_at(Series::None, Some(arrivals.clone())), cell)?.into_iter();
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
        cell,
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
    for arrival in arrivals.of_visit(options.visit) {
        let index = usize::try_from(arrival.object).unwrap_or(usize::MAX);
        if let Some(list) = of_object.get_mut(index) {
            list.push(arrival);
        }
    }
    let since = |at: Instant| at.saturating_since(began_at);
    let object = |object: &ObjectRecord| {
        let index = usize::try_from(object.object).unwrap_or(usize::MAX);
        let arrivals = of_object.get(index).map_or(&[][..], Vec::as_slice);
        let kind = page.page.object(ObjectId(object.object)).map(|object| object.kind);
        ObjectDetail {
            object: object.object,
            url: bounded(page.url(object.object), options.url),
            kind: kind.unwrap_or(ObjectKind::Other),
            connection: object.connection,
            body: object.body,
            held: object.held,
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
