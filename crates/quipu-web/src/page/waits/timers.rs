//! Which part of a delay is a timer's: a script waited for the time to pass. It is as long on every device.
//!
//! A trace tells it: the request was made in the task of a timer, which was set at a known time. Without one, a timer
//! is known by what it does:
//!
//! - in several loads, by the same delay whatever else moved: computing is never that exact;
//! - in one load, by requests to the same place in the same intervals: a loop;
//! - by the place asked for: loops of video players, and what counts how long a reader stays.

use std::collections::BTreeMap;

use quipu_base::Duration;

use super::phases::{Phases, SLACK};
use crate::page::object::host_of;
use crate::page::select::Draft;
use crate::trace::Activity;

/// No shorter delay is taken for a timer without a trace. Our choice.
const SHORTEST: Duration = Duration::from_millis(100);

/// Delays, and intervals, are the same if they differ by this share or less. Our choice.
const SAME: f64 = 0.01;

/// Requests that make a loop. Our choice.
const LOOP: usize = 4;

/// Ends of hosts that are asked again and again while a page is open, and nothing else: they count readers.
const COUNTING_HOSTS: [&str; 5] = [
    "ping.chartbeat.net",
    "hbopenbid.pubmatic.com",
    "bat.bing.com",
    "trc.taboola.com",
    "nr-data.net",
];

/// Last parts of paths that loops ask for: pieces of videos, and signs of life.
const LOOPING_NAMES: [&str; 6] =
    ["videoplayback", "heartbeat", "keepalive", "keep-alive", "ping", "poll"];

/// What is known of the timers of one load.
pub(super) struct Timers {
    /// By draft, the time in which a timer ran that then asked for it, as the trace tells.
    traced: Vec<Option<Ran>>,
    /// By draft, whether a loop asks for it, as times and names tell.
    looped: Vec<bool>,
}

/// A timer that fired.
#[derive(Clone, Copy, Debug)]
struct Ran {
    set: Option<Duration>,
    due: Option<Duration>,
    fired: Duration,
}

impl Timers {
    pub(super) fn of(drafts: &[Draft<'_>], phases: &Phases, activity: Option<&Activity>) -> Timers {
        let start = |at: usize| phases.all[at].start;
        let traced: Vec<Option<Ran>> = (0..drafts.len())
            .map(|at| activity.and_then(|activity| ran(activity, start(at))))
            .collect();
        let mut looped = vec![false; drafts.len()];
        if activity.is_none() {
            for (at, draft) in drafts.iter().enumerate() {
                looped[at] = draft.named.by_script && is_known_loop(draft.url);
            }
            for at in loops(drafts, phases) {
                looped[at] = true;
            }
        }
        Timers { traced, looped }
    }

    /// How much of the delay from `since` to `start` of a draft was a timer.
    pub(super) fn during(
        &self,
        draft: usize,
        since: Duration,
        start: Duration,
        activity: Option<&Activity>,
    ) -> Duration {
        if let Some(ran) = self.traced.get(draft).copied().flatten() {
            let from = ran.set.unwrap_or(since).max(since);
            // What is late did not wait for the time to pass.
            let to = ran.due.unwrap_or(ran.fired).min(ran.fired).min(start);
            let ran_for = to.saturating_sub(from);
            // Without the time at which it was set, work before it was perhaps not in it.
            let before = match (ran.set, activity) {
                (None, Some(activity)) => activity.busy(from, to),
                _ => Duration::ZERO,
            };
            return ran_for.saturating_sub(before);
        }
        let delay = start.saturating_sub(since);
        if self.looped[draft] && delay >= SHORTEST { delay } else { Duration::ZERO }
    }
}

/// The timer in whose task something was asked for at `time`.
fn ran(activity: &Activity, time: Duration) -> Option<Ran> {
    let timers = activity.timers();
    let begun = timers.partition_point(|timer| timer.fired <= time + SLACK);
    let timer = timers[..begun].last().filter(|timer| time <= timer.ended + SLACK)?;
    // One that repeats was set anew each time that it fired.
    let set = timer.installed.filter(|_| !timer.repeats);
    let due = set.and_then(|set| Some(set + timer.timeout?));
    Some(Ran { set, due, fired: timer.fired })
}

/// Whether a timer explains delays of several loads, all that there are: they are the same.
pub(super) fn is_same(delays: &[Duration]) -> bool {
    let (Some(&least), Some(&most)) = (delays.iter().min(), delays.iter().max()) else {
        return false;
    };
    let tolerance = SLACK.max(Duration::from_secs_f64(least.as_secs_f64() * SAME));
    delays.len() > 1 && least >= SHORTEST && most.saturating_sub(least) <= tolerance
}

fn is_known_loop(url: &str) -> bool {
    let host = host_of(url);
    let of_host = |known: &str| {
        host.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    COUNTING_HOSTS.iter().any(|known| of_host(known)) || LOOPING_NAMES.contains(&last_name(url))
}

/// The last part of the path of a URL.
fn last_name(url: &str) -> &str {
    let path = place_of(url);
    path.rsplit('/').next().unwrap_or(path)
}

/// A URL without its query.
fn place_of(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

/// Requests of scripts for the same place in the same intervals, but the first of each, which starts the loop.
fn loops(drafts: &[Draft<'_>], phases: &Phases) -> Vec<usize> {
    let mut places: BTreeMap<(&str, Option<usize>), Vec<usize>> = BTreeMap::new();
    for (at, draft) in drafts.iter().enumerate() {
        if draft.named.by_script {
            places.entry((place_of(draft.url), draft.parent)).or_default().push(at);
        }
    }
    let mut found = Vec::new();
    for mut asked in places.into_values().filter(|asked| asked.len() >= LOOP) {
        asked.sort_by_key(|&at| phases.all[at].start);
        let starts = || asked.iter().map(|&at| phases.all[at].start);
        let intervals: Vec<Duration> =
            starts().zip(starts().skip(1)).map(|(one, next)| next.saturating_sub(one)).collect();
        if is_same(&intervals) {
            found.extend(asked.into_iter().skip(1));
        }
    }
    found
}
