//! One load in full: what each path carried of each object and when, and time series of all paths.

use std::fmt;
use std::sync::Arc;

use quipu_base::{Bytes, Duration, Instant};

use crate::run::{Bounds, End, RunRecord};
use crate::series::SeriesRow;

/// One load in full.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
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
    /// Its type, such as `image`.
    pub kind: String,
    /// Number of the connection that it came over; 0 unless each origin has one.
    pub connection: u32,
    /// Bytes of the body.
    pub body: Bytes,
    /// Whether the page's time waits for it.
    pub held: bool,
    /// Whether the server pushed it.
    pub pushed: bool,
    /// Its priority in the recording, such as `High`; empty if there is none.
    pub priority: String,
    /// Positions of the objects that its request waited for, the one that led to it first; none where all
    /// objects are requested at once.
    pub needs: Vec<u32>,
    /// When the browser had all that its request waited for: the request without the computing and the timers
    /// before it.
    pub discovered: Duration,
    /// When it was asked for; if it was pushed, when its promise came.
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

/// One connection over the time of the load, as the end that sends the data saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionSeries {
    /// Its name: `page`, `page:3` of the fourth client, `page@HOST` of a further origin; that of a flow.
    pub flow: Arc<str>,
    /// The end that sends.
    pub end: End,
    /// Its paths, in order of their identifiers.
    pub paths: Vec<PathSeries>,
}

/// One path of a connection over the time of the load.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSeries {
    /// Its position in the network.
    pub path: u32,
    /// Its name there.
    pub name: String,
    /// Its state every [`Detail::every`], in order of time and in the time of the
    /// run, from when the sender has the path.
    pub rows: Vec<SeriesRow>,
}
