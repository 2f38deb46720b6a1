//! How long servers thought.
//!
//! A wait is a round trip, thinking, and the time in which the connection carried other responses first. Where no other response
//! was on its way when this one could have been, thinking is all but the round trip, exactly. Else it is hidden behind them, and
//! anything from nothing to that.
//!
//! An answer that a server makes comes ahead of less urgent responses, behind what is in the buffers already: while it did
//! not come, the server most likely thought. Else it most likely took it the time in which nothing arrived; pauses of a round trip are those of a
//! sender that must wait for acknowledgements. A file most likely took it what it takes for the files of the same host in the
//! median. Where nothing at all is known, it took what it takes in the recordings that come with the library.

use std::collections::BTreeMap;

use quipu_base::Duration;

use super::phases::{Phase, Phases, merged};
use super::view::View;
use crate::page::ObjectKind;
use crate::page::discovery::MAX_DELAY;
use crate::page::object::host_of;
use crate::page::select::{Draft, millis};
use crate::page::stated_priority::recorded_priority;

/// Bytes of a request's body from which its sending may take longer than thinking. Our choice.
const UPLOAD: f64 = 4_000.0;

/// A pause of a connection is one of its sender if it is so long, about the shortest retransmission timeout of TCP, and so
/// many responses are due. Our choice.
const STALL: Duration = Duration::from_millis(150);
const MANY: usize = 4;

/// So many plain thoughts about files of a host tell what is usual there. Our choice.
const ENOUGH: usize = 3;

/// Thinking about a file of which nothing is known: the median of the means of what is known exactly in the thirteen
/// recordings that come with the library and have three such files or more. Means, as thinking adds up along chains.
const FILE: Duration = Duration::from_millis(17);

/// The same of answers.
const ANSWER: Duration = Duration::from_millis(48);

/// The time that a server thought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Thought {
    /// Nothing hid it.
    plain: bool,
    pub(super) low: Duration,
    pub(super) likely: Duration,
    pub(super) high: Duration,
}

/// By draft of the first view, as all of them tell.
pub(super) fn thoughts(views: &[View<'_, '_>]) -> Vec<Thought> {
    let all: Vec<Vec<Thought>> =
        views.iter().map(|view| of_load(view.drafts, &view.phases)).collect();
    let joined = |child: usize| {
        let known = views.iter().zip(&all);
        let known = known.filter_map(|(view, thoughts)| thoughts.get(view.here(child)?).copied());
        known.reduce(Thought::and).unwrap_or_default()
    };
    (0..views.first().map_or(0, |first| first.drafts.len())).map(joined).collect()
}

impl Thought {
    /// The same thinking, seen in a slower load too, which tells it if it is hidden in this one.
    fn and(self, slower: Thought) -> Thought {
        let told = if slower.plain && !self.plain { slower } else { self };
        let high = self.high.min(slower.high).max(told.likely);
        Thought { low: told.low.min(slower.likely), high, ..told }
    }
}

/// By draft of one load.
fn of_load(drafts: &[Draft<'_>], phases: &Phases) -> Vec<Thought> {
    let round_trips = round_trips(drafts, phases);
    let busy = Busy::of(drafts, phases);
    let mut thoughts = Vec::with_capacity(drafts.len());
    let mut spread = Spread::default();
    for (at, draft) in drafts.iter().enumerate() {
        let phase = phases.all[at];
        let round_trip = round_trips[at];
        let ready = phase.sent + round_trip;
        let passed = phase.first_byte.saturating_sub(ready).min(MAX_DELAY);
        // The shortest wait that was measured is a round trip and what came to it.
        let high = passed + Duration::from_nanos(round_trip.as_nanos() / 2);
        let known = phase.began.saturating_sub(ready).min(passed);
        let upload = draft.entry.request.body_size.unwrap_or(0.0) > UPLOAD;
        let thought = if busy.is_used(at, phase) || upload {
            let pause = phases.pause.max(round_trip);
            let idle = busy.idle(phase, ready, pause).max(unknown(draft)).min(known);
            let ahead = match sort(draft.kind) {
                Sort::Answer if !upload => {
                    busy.ahead(at, phase, ready).saturating_sub(phases.buffered)
                }
                _ => Duration::ZERO,
            };
            Thought { plain: false, low: Duration::ZERO, likely: idle.max(ahead), high }
        } else {
            let low = known.saturating_sub(phases.pause);
            Thought { plain: true, low, likely: known, high }
        };
        if sort(draft.kind) == Sort::File {
            spread.add(draft, &thought);
        }
        thoughts.push(thought);
    }
    let usual = spread.medians();
    for (draft, thought) in drafts.iter().zip(&mut thoughts) {
        if sort(draft.kind) == Sort::File && !thought.plain {
            let usual = usual.get(host_of(draft.url)).copied().unwrap_or(FILE);
            thought.likely = usual.min(thought.high);
        }
    }
    thoughts
}

/// The recording's round trip of each draft: the shortest connection set-up without TLS, or the shortest wait, of its
/// host or its connection.
fn round_trips(drafts: &[Draft<'_>], phases: &Phases) -> Vec<Duration> {
    let mut hosts: BTreeMap<&str, Duration> = BTreeMap::new();
    let mut connections: BTreeMap<usize, Duration> = BTreeMap::new();
    for (draft, phase) in drafts.iter().zip(&phases.all) {
        let timings = &draft.entry.timings;
        let (connect, tls) = (millis(timings.connect), millis(timings.ssl));
        let transport = connect.saturating_sub(tls);
        // Within half a millisecond, both started and ended together: that is QUIC.
        let quic = transport < Duration::from_micros(500) && !tls.is_zero();
        let set_up = if quic { tls } else { transport };
        for measured in [millis(timings.wait), set_up] {
            // Zero means that nothing was measured.
            if measured.is_zero() {
                continue;
            }
            let host = hosts.entry(host_of(draft.url)).or_insert(measured);
            *host = measured.min(*host);
            let connection = connections.entry(phase.connection).or_insert(measured);
            *connection = measured.min(*connection);
        }
    }
    let of = |(draft, phase): (&Draft<'_>, &super::phases::Phase)| {
        let host = hosts.get(host_of(draft.url)).copied();
        let connection = connections.get(&phase.connection).copied();
        let both = host.into_iter().chain(connection);
        both.min().unwrap_or_default()
    };
    drafts.iter().zip(&phases.all).map(of).collect()
}

/// Priorities of Chrome.
const URGENCIES: usize = 5;

/// How urgent a browser said that a response is, 0 for the most urgent.
fn urgency(draft: &Draft<'_>) -> Option<usize> {
    recorded_priority(draft).map(|priority| priority.last as usize)
}

/// What each connection did when.
struct Busy {
    /// By connection: times in which some response arrived.
    spans: Vec<Vec<(Duration, Duration)>>,
    /// By connection: times in which nothing arrived, for a lost packet most likely.
    stalls: Vec<Vec<(Duration, Duration)>>,
    /// By draft: when the last of the responses ended that had begun before it.
    until: Vec<Duration>,
    /// The same of those that are not less urgent.
    until_as_urgent: Vec<Duration>,
}

impl Busy {
    fn of(drafts: &[Draft<'_>], phases: &Phases) -> Busy {
        let mut order: Vec<usize> = (0..phases.all.len()).collect();
        order.sort_by_key(|&at| (phases.all[at].connection, phases.all[at].first_byte, at));
        let mut until = vec![Duration::ZERO; phases.all.len()];
        let mut until_as_urgent = until.clone();
        let mut spans = vec![Vec::new(); phases.all.len()];
        let mut stalls = spans.clone();
        let same = |&one: &usize, &other: &usize| {
            phases.all[one].connection == phases.all[other].connection
        };
        for connection in order.chunk_by(same) {
            // By priority; what has none is as urgent as any.
            let mut last = [Duration::ZERO; URGENCIES];
            let mut arrivals = Vec::with_capacity(connection.len());
            for &at in connection {
                let phase = phases.all[at];
                let urgency = urgency(&drafts[at]);
                let latest = |last: &[Duration]| last.iter().copied().max().unwrap_or_default();
                until[at] = latest(&last);
                until_as_urgent[at] = latest(&last[..=urgency.unwrap_or(URGENCIES - 1)]);
                let of_urgency = &mut last[urgency.unwrap_or(0)];
                *of_urgency = phase.end.max(*of_urgency);
                arrivals.push((phase.began, phase.end));
            }
            if let Some(&first) = connection.first() {
                arrivals.sort_unstable();
                let mut spans_here = merged(&arrivals);
                let of_connection = connection.iter().map(|&at| phases.all[at]);
                let stalls_here = stalls_between(&spans_here, of_connection);
                spans_here.extend(&stalls_here);
                spans_here.sort_unstable();
                spans[phases.all[first].connection] = merged(&spans_here);
                stalls[phases.all[first].connection] = stalls_here;
            }
        }
        Busy { spans, stalls, until, until_as_urgent }
    }

    /// True if others arrived when the response to `at` could have been on its way.
    fn is_used(&self, at: usize, phase: Phase) -> bool {
        self.until[at] > phase.sent
    }

    /// How long a response had not begun although nothing that is as urgent was in the way: servers that heed priorities
    /// send it first.
    fn ahead(&self, at: usize, phase: Phase, ready: Duration) -> Duration {
        let since = self.until_as_urgent[at].max(ready);
        let stalls = self.stalls[phase.connection].iter();
        let stalled = stalls.map(|&(from, to)| to.min(phase.began).saturating_sub(from.max(since)));
        let stalled = stalled.fold(Duration::ZERO, |sum, time| sum + time);
        phase.began.saturating_sub(since).saturating_sub(stalled)
    }

    /// How much of the time until the first byte passed with nothing arriving, without so much of each pause.
    fn idle(&self, phase: Phase, ready: Duration, pause: Duration) -> Duration {
        let spans = &self.spans[phase.connection];
        let mut since = ready;
        let mut idle = Duration::ZERO;
        let first = spans.partition_point(|(_, end)| *end <= ready);
        for &(start, end) in &spans[first..] {
            let start = start.min(phase.first_byte);
            idle += start.saturating_sub(since).saturating_sub(pause);
            since = since.max(end);
            if since >= phase.first_byte {
                break;
            }
        }
        idle
    }
}

/// The long pauses between `arrivals` of a connection in which many responses were due: a lost packet holds up all that
/// come after it.
fn stalls_between(
    arrivals: &[(Duration, Duration)],
    phases: impl Iterator<Item = Phase>,
) -> Vec<(Duration, Duration)> {
    let (mut sent, mut began): (Vec<Duration>, Vec<Duration>) =
        phases.map(|phase| (phase.sent, phase.began)).unzip();
    sent.sort_unstable();
    began.sort_unstable();
    let due = |time: Duration| {
        let before = |times: &[Duration]| times.partition_point(|&other| other <= time);
        before(&sent).saturating_sub(before(&began))
    };
    let pauses = arrivals.windows(2).map(|pair| (pair[0].1, pair[1].0));
    pauses.filter(|&(from, to)| to.saturating_sub(from) >= STALL && due(from) >= MANY).collect()
}

/// Thinking about files, by host.
#[derive(Default)]
struct Spread<'a>(BTreeMap<&'a str, Told>);

/// What nothing hid, and what the time tells in which nothing arrived.
#[derive(Default)]
struct Told {
    plain: Vec<Duration>,
    idle: Vec<Duration>,
}

/// What servers think about: files, or answers that they make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    File,
    Answer,
}

fn unknown(draft: &Draft<'_>) -> Duration {
    match sort(draft.kind) {
        Sort::File => FILE,
        Sort::Answer => ANSWER,
    }
}

fn sort(kind: ObjectKind) -> Sort {
    use ObjectKind::{Document, Fetch, Ping, Preflight, Xhr};
    match kind {
        Document | Fetch | Ping | Preflight | Xhr => Sort::Answer,
        _ => Sort::File,
    }
}

impl<'a> Spread<'a> {
    fn add(&mut self, draft: &Draft<'a>, thought: &Thought) {
        let told = self.0.entry(host_of(draft.url)).or_default();
        if thought.plain {
            told.plain.push(thought.likely);
        } else if thought.likely > FILE {
            told.idle.push(thought.likely);
        }
    }

    fn medians(self) -> BTreeMap<&'a str, Duration> {
        let median = |told: Told| {
            let mut thoughts = told.plain;
            // While many wait for a lost packet, nothing arrives either: so what is plain comes first.
            if thoughts.len() < ENOUGH {
                thoughts.extend(told.idle);
            }
            thoughts.sort_unstable();
            thoughts.get(thoughts.len().checked_sub(1)? / 2).copied()
        };
        self.0.into_iter().filter_map(|(host, told)| Some((host, median(told)?))).collect()
    }
}
