//! The phases of requests, and what each connection carried when.

use std::collections::BTreeMap;

use quipu_base::{Bytes, Duration};

use crate::page::object::host_of;
use crate::page::select::{Draft, millis};

/// What ends within this time of another's start may have held it up: recorders round to a millisecond.
pub(super) const SLACK: Duration = Duration::from_millis(1);

/// Bytes of a response that tell the rate at which it arrived. Our choice.
const SOME_SIZE: f64 = 20_000.0;

/// Bytes on the wire of two full packets.
const TWO_PACKETS: f64 = 3_000.0;

/// No pause is taken for none beyond this. Our choice.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// When each request was sent and answered, by draft.
pub(super) struct Phases {
    pub(super) all: Vec<Phase>,
    /// Pauses that are none: so long may a link take for two packets.
    pub(super) pause: Duration,
    /// Times in which some request was open, whichever.
    flights: Vec<(Duration, Duration)>,
    /// By draft whose recording tells it: when which share of its body had come, in order.
    curves: BTreeMap<usize, Vec<(Duration, f64)>>,
}

/// One request. Times count as the drafts' do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    pub(super) start: Duration,
    pub(super) sent: Duration,
    pub(super) first_byte: Duration,
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
        Phases { all, pause, flights: merged(&spans), curves }
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

    /// How much of a span of time passed with no request open.
    pub(super) fn idle(&self, from: Duration, to: Duration) -> Duration {
        let mut idle = to.saturating_sub(from);
        let first = self.flights.partition_point(|(_, end)| *end <= from);
        for (start, end) in &self.flights[first..] {
            if *start >= to {
                break;
            }
            let busy = (*end).min(to).saturating_sub((*start).max(from));
            idle = idle.saturating_sub(busy);
        }
        idle
    }
}

fn phase(draft: &Draft<'_>, connection: usize) -> Phase {
    let timings = &draft.entry.timings;
    let before = [timings.blocked, timings.dns, timings.connect, timings.send];
    let before = before.into_iter().map(millis).fold(Duration::ZERO, |sum, time| sum + time);
    let sent = (draft.start + before).min(draft.end);
    let first_byte = (sent + millis(timings.wait)).min(draft.end);
    Phase { start: draft.start, sent, first_byte, end: draft.end, connection }
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
