//! The phases of requests, and what each connection carried when.

use std::collections::BTreeMap;

use quipu_base::{Bytes, Duration};

use crate::page::object::host_of;
use crate::page::select::{Draft, asked, millis};

/// What ends within this time of another's start may have held it up: recorders round to a millisecond.
pub(super) const SLACK: Duration = Duration::from_millis(1);

/// Bytes of a response that tell the rate at which it arrived. Our choice.
const SOME_SIZE: f64 = 20_000.0;

/// Bytes on the wire of two full packets.
const TWO_PACKETS: f64 = 3_000.0;

/// The largest record of TLS: servers often put the begin of a body into one with the head of its response, and
/// nothing of a record is there before all of it is. <https://www.rfc-editor.org/rfc/rfc8446#section-5.1>
const RECORD: f64 = 16_384.0;

/// Small bodies tell whether records come as a whole if they had to take so long, in seconds, there are so many, and they
/// took less than this share of it. Our choice.
const SHORTEST: f64 = 0.004;
const FEWEST: usize = 3;
const AT_ONCE: f64 = 0.25;

/// Bytes that wait in buffers in front of a link that is busy. Our choice.
const BUFFERED: f64 = 65_536.0;

/// No pause is taken for none beyond this. Our choice.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// When each request was sent and answered, by draft.
pub(super) struct Phases {
    pub(super) all: Vec<Phase>,
    /// Pauses that are none: so long may a link take for two packets.
    pub(super) pause: Duration,
    /// How long what is in buffers takes to arrive.
    pub(super) buffered: Duration,
    /// Times in which some request was open, whichever.
    flights: Vec<(Duration, Duration)>,
    /// By draft whose recording tells it: when which share of its body had come, in order.
    curves: BTreeMap<usize, Vec<(Duration, f64)>>,
}

/// One request. Times count as the drafts' do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    /// When it was asked for.
    pub(super) start: Duration,
    pub(super) sent: Duration,
    pub(super) first_byte: Duration,
    /// When the response most likely began to come: records of TLS are there as a whole.
    pub(super) began: Duration,
    pub(super) end: Duration,
    /// Number of the connection.
    pub(super) connection: usize,
}

impl Phases {
    pub(super) fn of(drafts: &[Draft<'_>]) -> Phases {
        let mut connections: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut all = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let next = connections.len();
            let connection = *connections.entry(connection_of(draft)).or_insert(next);
            all.push(phase(draft, connection));
        }
        let mut spans: Vec<(Duration, Duration)> =
            all.iter().map(|phase: &Phase| (phase.start, phase.end)).collect();
        spans.sort_unstable();
        let pause = pause(drafts, &all);
        let curve = |(at, draft): (usize, &Draft<'_>)| Some((at, curve(draft)?));
        let curves = drafts.iter().enumerate().filter_map(curve).collect();
        if let Some(rate) = rate_of_records(drafts, &all) {
            for (draft, phase) in drafts.iter().zip(&mut all) {
                phase.began = phase.first_byte.saturating_sub(with_head(draft, phase, rate));
            }
        }
        let rate = usual_rate(bodies(drafts, &all).map(|(bytes, took)| (bytes, took, bytes)));
        let buffered = rate.map_or(0.0, |rate| BUFFERED / rate);
        let buffered = Duration::from_secs_f64(buffered);
        Phases { all, pause, buffered, flights: merged(&spans), curves }
    }

    /// When `offset` bytes of a body of `whole` had arrived: as recorded, or as if it arrived evenly.
    pub(super) fn arrival(&self, draft: usize, offset: Bytes, whole: Bytes) -> Duration {
        let phase = self.all[draft];
        let share = if whole.is_zero() { 1.0 } else { offset.0 as f64 / whole.0 as f64 };
        if let Some(curve) = self.curves.get(&draft) {
            let point = curve.partition_point(|(_, come)| *come < share);
            return curve.get(point).map_or(phase.end, |(time, _)| *time);
        }
        let span = phase.end.saturating_sub(phase.first_byte).as_secs_f64();
        phase.first_byte + Duration::from_secs_f64(span * share.clamp(0.0, 1.0))
    }

    /// Bytes of a body of `whole` that had arrived at `time`.
    pub(super) fn arrived(&self, draft: usize, time: Duration, whole: Bytes) -> Bytes {
        let phase = self.all[draft];
        let share = if let Some(curve) = self.curves.get(&draft) {
            let points = curve.partition_point(|(come, _)| *come <= time);
            points.checked_sub(1).map_or(0.0, |last| curve[last].1)
        } else {
            let span = phase.end.saturating_sub(phase.first_byte).as_secs_f64();
            let passed = time.saturating_sub(phase.first_byte).as_secs_f64();
            if span > 0.0 { (passed / span).min(1.0) } else { 1.0 }
        };
        Bytes((whole.0 as f64 * share) as u64)
    }

    /// The parts of a span of time in which some request was open.
    pub(super) fn open(
        &self,
        from: Duration,
        to: Duration,
    ) -> impl Iterator<Item = (Duration, Duration)> {
        let first = self.flights.partition_point(|(_, end)| *end <= from);
        let flights = self.flights[first..].iter().take_while(move |(start, _)| *start < to);
        flights.map(move |&(start, end)| (start.max(from), end.min(to)))
    }
}

fn phase(draft: &Draft<'_>, connection: usize) -> Phase {
    let timings = &draft.entry.timings;
    let before = [timings.blocked, timings.dns, timings.connect, timings.send];
    let before = before.into_iter().map(millis).fold(Duration::ZERO, |sum, time| sum + time);
    let sent = (draft.start + before).min(draft.end);
    let first_byte = (sent + millis(timings.wait)).min(draft.end);
    Phase { start: asked(draft), sent, first_byte, began: first_byte, end: draft.end, connection }
}

/// When which share of a body had come, if the recording tells.
fn curve(draft: &Draft<'_>) -> Option<Vec<(Duration, f64)>> {
    let points = &draft.entry.arrivals;
    let whole: f64 = points.iter().map(|(_, bytes)| bytes.max(0.0)).sum();
    if !(whole > 0.0 && whole.is_finite()) {
        return None;
    }
    let mut come = 0.0;
    let mut last = Duration::ZERO;
    let point = |(time, bytes): &(f64, f64)| {
        come += bytes.max(0.0);
        last = last.max(draft.start + millis(Some(*time)));
        (last.min(draft.end), come / whole)
    };
    Some(points.iter().map(point).collect())
}

/// The time of two packets at the highest rate at which a response of some size arrived.
fn pause(drafts: &[Draft<'_>], phases: &[Phase]) -> Duration {
    let rates = drafts.iter().zip(phases).filter_map(|(draft, phase)| {
        let span = phase.end.saturating_sub(phase.first_byte).as_secs_f64();
        let bytes = draft.sizes.body.0 as f64;
        (bytes >= SOME_SIZE && span > 0.0).then(|| bytes / span)
    });
    let rate = rates.fold(0.0, f64::max);
    let packets = if rate > 0.0 { TWO_PACKETS / rate } else { 0.0 };
    Duration::from_secs_f64(packets).clamp(SLACK, LONGEST_PAUSE)
}

/// How much of the wait for a response was for the begin of its body, which came with the head: what its body took less
/// than it had to at `rate`.
fn with_head(draft: &Draft<'_>, phase: &Phase, rate: f64) -> Duration {
    let had_to = Duration::from_secs_f64(draft.sizes.body.0 as f64 / rate);
    let less = had_to.saturating_sub(phase.end.saturating_sub(phase.first_byte));
    less.min(Duration::from_secs_f64(RECORD / rate))
        .min(phase.first_byte.saturating_sub(phase.sent))
}

/// Bytes of each body, and how long they took, in seconds.
fn bodies<'a>(
    drafts: &'a [Draft<'_>],
    phases: &'a [Phase],
) -> impl Iterator<Item = (f64, f64)> + 'a {
    drafts.iter().zip(phases).map(|(draft, phase)| {
        let took = phase.end.saturating_sub(phase.first_byte);
        (draft.sizes.body.0 as f64, took.as_secs_f64())
    })
}

/// The rate at which bodies came behind their first record, in bytes per second, if heads of responses seem to have
/// come in one record with the begin of their bodies: then small bodies were there at once.
fn rate_of_records(drafts: &[Draft<'_>], phases: &[Phase]) -> Option<f64> {
    let all = || bodies(drafts, phases);
    let usual = usual_rate(all().map(|(bytes, took)| (bytes, took, bytes)))?;
    // How long small bodies took, as a share of what they had to.
    let small = all().filter(|(bytes, _)| *bytes <= RECORD && bytes / usual >= SHORTEST);
    let mut shares: Vec<f64> = small.map(|(bytes, took)| took * usual / bytes).collect();
    shares.sort_by(f64::total_cmp);
    let median = shares.get(shares.len() / 2).filter(|_| shares.len() >= FEWEST)?;
    let behind = all().map(|(bytes, took)| (bytes, took, bytes - RECORD));
    (*median < AT_ONCE).then(|| usual_rate(behind)).flatten()
}

/// The rate of bodies of some size, given their bytes, how long they took, and how many bytes came meanwhile: that of
/// three quarters of the bytes or of fewer, as what waited for a lost packet comes all at once.
fn usual_rate(bodies: impl Iterator<Item = (f64, f64, f64)>) -> Option<f64> {
    let some = bodies.filter(|(bytes, took, _)| *bytes >= SOME_SIZE && *took > 0.0);
    let mut rates: Vec<(f64, f64)> = some.map(|(bytes, took, came)| (came / took, bytes)).collect();
    rates.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let all: f64 = rates.iter().map(|(_, bytes)| bytes).sum();
    let mut slower = 0.0;
    let mut slower = |bytes: f64| {
        slower += bytes;
        slower
    };
    rates.iter().find(|(_, bytes)| slower(*bytes) >= 0.75 * all).map(|(rate, _)| *rate)
}

/// What tells connections apart: a number of the recorder, or the host. Firefox writes the port for a number.
fn connection_of<'a>(draft: &Draft<'a>) -> (&'a str, &'a str) {
    let host = host_of(draft.url);
    let entry = draft.entry;
    match entry.socket.as_deref().or(entry.connection.as_deref()) {
        Some("443" | "80" | "0" | "-1") | None => (host, ""),
        Some(number) => ("", number),
    }
}

/// Spans that overlap, as one; `spans` are sorted.
pub(super) fn merged(spans: &[(Duration, Duration)]) -> Vec<(Duration, Duration)> {
    let mut merged: Vec<(Duration, Duration)> = Vec::new();
    for &(start, end) in spans {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}
