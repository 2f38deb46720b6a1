//! What a page did, out of the events of a whole browser.

use std::collections::BTreeMap;
use std::sync::Arc;

use quipu_base::{Bytes, Duration};

use super::event::{Event, Install, Phase, Thread, What};
use super::spans::{Span, flatten};
use super::{Activity, Timer, TraceError, TracedRequest, WorkKind};

/// The activity that `events` tell of, its times counted from the first event.
pub(super) fn activity(mut events: Vec<Event>) -> Result<Activity, TraceError> {
    // Stable: events of one time keep the order of the file.
    events.sort_by_key(|event| event.at);
    let main = main_thread(&events).ok_or(TraceError::NoMainThread)?;
    let clock = events
        .iter()
        .filter(|event| event.what != What::RendererMain)
        .map(|event| event.at)
        .min()
        .unwrap_or_default();
    let requests = requests(&events);
    let (spans, timers) = main_thread_spans(events, main);
    Ok(Activity::new(Duration::ZERO, flatten(spans), requests, timers).counted_from(clock))
}

/// The main thread of the page's renderer: of the threads that are called so, the one that loaded a main frame's
/// document, and of several the one that sent the most requests, then the one that worked the longest. Without
/// names, of all threads that work.
fn main_thread(events: &[Event]) -> Option<Thread> {
    #[derive(Default)]
    struct Candidate {
        named: bool,
        loaded: bool,
        requests: usize,
        busy: Duration,
        works: bool,
    }
    let mut threads: BTreeMap<Thread, Candidate> = BTreeMap::new();
    for event in events {
        let thread = threads.entry(event.thread).or_default();
        match &event.what {
            What::RendererMain => thread.named = true,
            What::MainDocument => thread.loaded = true,
            What::Send { .. } => thread.requests += 1,
            What::Work(kind, _) => {
                thread.works |= *kind != WorkKind::Other;
                if let Phase::Complete(length) = event.phase {
                    thread.busy += length;
                }
            }
            _ => {}
        }
    }
    let any_named = threads.values().any(|thread| thread.named);
    threads
        .into_iter()
        .filter(|(_, thread)| if any_named { thread.named } else { thread.works })
        .max_by_key(|(_, thread)| (thread.loaded, thread.requests, thread.busy))
        .map(|(thread, _)| thread)
}

/// The spans of the main thread, and the timers that fired on it.
fn main_thread_spans(events: Vec<Event>, main: Thread) -> (Vec<Span>, Vec<Timer>) {
    let mut spans = Vec::new();
    let mut timers = Timers::default();
    // Spans that have begun and not ended. One that never does is left out: its end is unknown.
    let mut open: Vec<(Duration, What)> = Vec::new();
    for event in events {
        if event.thread != main {
            continue;
        }
        match (event.phase, event.what) {
            (Phase::Begin, what) => open.push((event.at, what)),
            (Phase::End, ended) => {
                let begun = open.iter().rposition(|(_, what)| what.begins(&ended));
                if let Some((start, what)) = begun.and_then(|at| open.drain(at..).next()) {
                    add_span(&mut spans, &mut timers, (start, event.at), what);
                }
            }
            (Phase::Complete(length), what) => {
                add_span(&mut spans, &mut timers, (event.at, event.at + length), what);
            }
            (Phase::Instant, What::TimerInstall(install)) => timers.install(event.at, install),
            (Phase::Instant, _) => {}
        }
    }
    timers.fired.sort_by_key(|timer| timer.fired);
    (spans, timers.fired)
}

fn add_span(
    spans: &mut Vec<Span>,
    timers: &mut Timers,
    (start, end): (Duration, Duration),
    what: What,
) {
    let (kind, url) = match what {
        What::Work(kind, url) => (kind, url),
        What::TimerFire { frame, timer } => {
            timers.fire((start, end), frame, timer);
            (WorkKind::Timer, None)
        }
        _ => return,
    };
    spans.push(Span { start, end, kind, url });
}

/// A frame, and a number in it.
type TimerName = (Option<Arc<str>>, i64);

/// Timers that are set, and those that fired. A frame numbers its own.
#[derive(Default)]
struct Timers {
    set: BTreeMap<TimerName, (Duration, Install)>,
    fired: Vec<Timer>,
}

impl Timers {
    fn install(&mut self, at: Duration, install: Install) {
        self.set.insert((install.frame.clone(), install.timer), (at, install));
    }

    fn fire(&mut self, (fired, ended): (Duration, Duration), frame: Option<Arc<str>>, timer: i64) {
        let set = self.set.get(&(frame, timer));
        self.fired.push(Timer {
            id: timer,
            installed: set.map(|(at, _)| *at),
            timeout: set.and_then(|(_, install)| install.timeout),
            repeats: set.is_some_and(|(_, install)| install.repeats),
            fired,
            ended,
        });
    }
}

/// All requests, in order of being asked for; each hop of a redirect is one.
fn requests(events: &[Event]) -> Vec<TracedRequest> {
    let mut requests: Vec<TracedRequest> = Vec::new();
    // The browser tells of the document's request before the renderer, which does so once it has the answer.
    let mut announced: BTreeMap<Arc<str>, Duration> = BTreeMap::new();
    let mut latest: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for event in events {
        match &event.what {
            What::WillSend { id } => {
                announced.entry(id.clone()).or_insert(event.at);
            }
            What::Send { id, url } => {
                let asked = announced.remove(id).unwrap_or(event.at);
                if let Some(&hop) = latest.get(id) {
                    requests[hop].finished.get_or_insert(event.at);
                }
                latest.insert(id.clone(), requests.len());
                requests.push(TracedRequest {
                    id: id.clone(),
                    url: url.clone(),
                    asked,
                    answered: None,
                    finished: None,
                    arrivals: Vec::new(),
                });
            }
            What::Response { id } => {
                if let Some(request) = latest.get(id).and_then(|&at| requests.get_mut(at)) {
                    request.answered.get_or_insert(event.at);
                }
            }
            What::Data { id, bytes } => {
                if let Some(request) = latest.get(id).and_then(|&at| requests.get_mut(at)) {
                    request.arrivals.push((event.at, Bytes(*bytes)));
                }
            }
            What::Finish { id, at } => {
                if let Some(request) = latest.get(id).and_then(|&at| requests.get_mut(at)) {
                    // The network's time, where it is told: the renderer may be busy when it comes to know.
                    let known = at.filter(|&at| request.asked <= at && at <= event.at);
                    request.finished = Some(known.unwrap_or(event.at));
                }
            }
            _ => {}
        }
    }
    requests.sort_by_key(|request| request.asked);
    requests
}
