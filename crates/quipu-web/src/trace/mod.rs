//! Traces of Chromium: when the main thread of a page was busy, with what, and what it asked for.
//!
//! [`read`] takes what "Save profile" of the developer tools, Lighthouse and WebPageTest write: `{"traceEvents": […]}`
//! or the list alone. [`read_recording`] and [`read_recordings`] take those that `quipu page record` puts into a HAR
//! file. [`Activity`] has the result. Unknown events and fields are passed over; what they say of a load is the business of others.

mod error;
mod event;
pub(crate) mod lenient;
mod load;
pub(crate) mod read;
mod spans;

use std::collections::BTreeMap;
use std::sync::Arc;

use quipu_base::{Bytes, Duration, SignedDuration};

pub use error::TraceError;
pub use event::{ARGUMENTS, is_read};
use read::RecordedPage;

/// The largest file that is read, in bytes: 512 MiB. Our choice; traces with screenshots and samples of scripts have up
/// to 200 MB.
pub const MAX_FILE_BYTES: usize = 512 << 20;

/// The most events that a trace may have, of any kind. Our choice; a minute of a busy page has about a million.
pub const MAX_EVENTS: usize = 5_000_000;

/// What a browser did during one load, by its trace. Times count from the trace's first event that is read, unless
/// [`Activity::counted_from`] or [`Activity::shifted`] say otherwise.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Activity {
    clock: Duration,
    work: Vec<Work>,
    /// For each interval, how long all before it took.
    before: Vec<Duration>,
    requests: Vec<TracedRequest>,
    timers: Vec<Timer>,
}

/// A time in which the main thread did one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// Its start.
    pub start: Duration,
    /// Its end, after the start.
    pub end: Duration,
    /// What was done: of nested events the innermost.
    pub kind: WorkKind,
    /// The script, style sheet or document that it was done for, if the event names it.
    pub url: Option<Arc<str>>,
}

/// What a main thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum WorkKind {
    /// Parsing of HTML and style sheets.
    Parse,
    /// Compiling and running scripts.
    Script,
    /// Computing styles.
    Style,
    /// Layout.
    Layout,
    /// Painting, up to what is handed to the compositor.
    Paint,
    /// What is left of the task of a timer without the script in it.
    Timer,
    /// A task without any of these.
    Other,
}

/// A timer of a script that fired. One that repeats is there once each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timer {
    /// Its number in its document.
    pub id: i64,
    /// When it was set, if the trace tells.
    pub installed: Option<Duration>,
    /// How long it was set for, if the trace tells.
    pub timeout: Option<Duration>,
    /// Whether it fires again and again.
    pub repeats: bool,
    /// When it fired.
    pub fired: Duration,
    /// When what it did was done.
    pub ended: Duration,
}

/// A request in a trace. Each hop of a redirect is one, with the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedRequest {
    /// Chromium's id, the `_requestId` of HAR files.
    pub id: Arc<str>,
    /// Its URL.
    pub url: Arc<str>,
    /// When it was asked for.
    pub asked: Duration,
    /// When the renderer had the head of the response.
    pub answered: Option<Duration>,
    /// When it was complete or failed: the network's time where the trace tells it, else the renderer's.
    pub finished: Option<Duration>,
    /// When the renderer took what part of the body, in encoded bytes. Chromium may tell no bytes of a part before the
    /// end.
    pub arrivals: Vec<(Duration, Bytes)>,
}

/// Reads a trace: UTF-8 JSON, with or without a byte order mark.
///
/// # Errors
/// If the file is too large, compressed, cut short, not JSON, not a trace, has too many events, or none of them
/// is of a renderer's main thread.
pub fn read(file: &[u8]) -> Result<Activity, TraceError> {
    check_file(file)?;
    load::activity(read::events(file)?)
}

/// Reads the trace in a recording of `quipu page record`: of the load named `wanted`, by its id or its number from 1,
/// else of the first. Times count from the start of the load, that of its `startedDateTime`. `None` if the load has no
/// trace, as in all HAR files of others.
///
/// # Errors
/// As of [`read`]; or if the file has no such load.
pub fn read_recording(file: &[u8], wanted: Option<&str>) -> Result<Option<Activity>, TraceError> {
    check_file(file)?;
    let mut pages = read::recorded(file)?;
    let number = |wanted: &str| wanted.parse::<usize>().ok()?.checked_sub(1);
    let index = match wanted {
        None => 0,
        Some(wanted) => pages
            .iter()
            .position(|page| page.id.as_deref() == Some(wanted))
            .or_else(|| number(wanted))
            .filter(|&index| index < pages.len().max(1))
            .ok_or_else(|| TraceError::NoSuchLoad {
                asked: wanted.to_owned(),
                known: pages
                    .iter()
                    .filter_map(|page| Some(page.id.as_deref()?.to_owned()))
                    .collect(),
            })?,
    };
    pages.get_mut(index).map_or(Ok(None), of_load)
}

/// The traces in a recording of `quipu page record`, by the ids of their loads. A load whose trace has no main thread, as
/// of a browser that stopped early, has none.
///
/// # Errors
/// As of [`read`] otherwise.
pub fn read_recordings(file: &[u8]) -> Result<BTreeMap<Arc<str>, Activity>, TraceError> {
    check_file(file)?;
    let mut traces = BTreeMap::new();
    for mut page in read::recorded(file)? {
        let activity = match of_load(&mut page) {
            Err(TraceError::NoMainThread) => None,
            activity => activity?,
        };
        if let (Some(activity), Some(id)) = (activity, page.id) {
            traces.insert(id, activity);
        }
    }
    Ok(traces)
}

fn of_load(page: &mut RecordedPage) -> Result<Option<Activity>, TraceError> {
    let Some(collected) = page.events.take() else { return Ok(None) };
    let activity = load::activity(collected.events)?;
    Ok(Some(match page.offset {
        Some(millis) => activity.counted_from(event::micros(millis * 1e3)),
        None => activity,
    }))
}

pub(crate) fn check_file(file: &[u8]) -> Result<(), TraceError> {
    if file.len() > MAX_FILE_BYTES {
        return Err(TraceError::TooLarge { bytes: file.len(), limit: MAX_FILE_BYTES });
    }
    if file.starts_with(&[0x1f, 0x8b]) || file.starts_with(b"PK\x03\x04") {
        return Err(TraceError::Compressed);
    }
    Ok(())
}

impl Activity {
    fn new(
        clock: Duration,
        work: Vec<Work>,
        requests: Vec<TracedRequest>,
        timers: Vec<Timer>,
    ) -> Activity {
        let mut sum = Duration::ZERO;
        let mut before = Vec::with_capacity(work.len());
        for interval in &work {
            before.push(sum);
            sum += interval.end.saturating_sub(interval.start);
        }
        Activity { clock, work, before, requests, timers }
    }

    /// What the main thread did: disjoint intervals in order.
    pub fn work(&self) -> &[Work] {
        &self.work
    }

    /// What was asked for, by the page and its frames, in order.
    pub fn requests(&self) -> &[TracedRequest] {
        &self.requests
    }

    /// The timers that fired, in order.
    pub fn timers(&self) -> &[Timer] {
        &self.timers
    }

    /// What the trace's own clock read at time zero.
    pub fn clock(&self) -> Duration {
        self.clock
    }

    /// How long the main thread worked between `from` and `to`. Takes time logarithmic in the number of intervals.
    pub fn busy(&self, from: Duration, to: Duration) -> Duration {
        self.busy_until(to).saturating_sub(self.busy_until(from))
    }

    fn busy_until(&self, time: Duration) -> Duration {
        let begun = self.work.partition_point(|work| work.start < time);
        match begun.checked_sub(1).map(|last| (&self.work[last], self.before[last])) {
            Some((last, before)) => before + time.min(last.end).saturating_sub(last.start),
            None => Duration::ZERO,
        }
    }

    /// The same with all times later by `by`. What comes to lie before zero is cut off; requests are then asked for at
    /// zero.
    #[must_use]
    pub fn shifted(self, by: SignedDuration) -> Activity {
        let nanos = by.as_nanos();
        let length = Duration::from_nanos(nanos.unsigned_abs());
        let shift = |time: Duration| {
            if nanos < 0 { time.saturating_sub(length) } else { time + length }
        };
        let clock = if nanos < 0 { self.clock + length } else { self.clock.saturating_sub(length) };
        let mut work = self.work;
        for interval in &mut work {
            (interval.start, interval.end) = (shift(interval.start), shift(interval.end));
        }
        work.retain(|interval| interval.start < interval.end);
        let mut requests = self.requests;
        for request in &mut requests {
            request.asked = shift(request.asked);
            request.answered = request.answered.map(shift);
            request.finished = request.finished.map(shift);
            for (time, _) in &mut request.arrivals {
                *time = shift(*time);
            }
        }
        let mut timers = self.timers;
        for timer in &mut timers {
            timer.installed = timer.installed.map(shift);
            (timer.fired, timer.ended) = (shift(timer.fired), shift(timer.ended));
        }
        Activity::new(clock, work, requests, timers)
    }

    /// The same with times that count from when the trace's clock read `reading`. What was before is cut off.
    #[must_use]
    pub fn counted_from(self, reading: Duration) -> Activity {
        let by = self.clock.signed_sub(reading);
        self.shifted(by)
    }

    /// The same with times that count as those of `recorded`: the URLs of requests of the same load, with the times at
    /// which they were asked for. The shift is the median of those of all requests whose URL is in both exactly once,
    /// so that a few that are told otherwise do no harm; `None` if there is no such request.
    #[must_use]
    pub fn aligned<'a>(
        self,
        recorded: impl IntoIterator<Item = (&'a str, Duration)>,
    ) -> Option<Activity> {
        let by = self.shift_to(recorded)?;
        Some(self.shifted(by))
    }

    /// By how much times of `recorded` are later, as [`Activity::aligned`] has it.
    pub(crate) fn shift_to<'a>(
        &self,
        recorded: impl IntoIterator<Item = (&'a str, Duration)>,
    ) -> Option<SignedDuration> {
        let traced = once_each(self.requests.iter().map(|request| (&*request.url, request.asked)));
        let recorded = once_each(recorded.into_iter());
        let mut shifts: Vec<SignedDuration> = traced
            .iter()
            .filter_map(|(url, asked)| Some((*recorded.get(url)?)?.signed_sub((*asked)?)))
            .collect();
        shifts.sort_unstable();
        shifts.get(shifts.len() / 2).copied()
    }
}

/// The time of each URL that is there exactly once; `None` for others.
fn once_each<'a>(
    requests: impl Iterator<Item = (&'a str, Duration)>,
) -> BTreeMap<&'a str, Option<Duration>> {
    let mut times = BTreeMap::new();
    for (url, asked) in requests {
        times.entry(url).and_modify(|time| *time = None).or_insert(Some(asked));
    }
    times
}

#[cfg(test)]
mod tests;
