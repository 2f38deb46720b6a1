//! Which hypothesis explains the start of each request.
//!
//! Of one load, the one that leaves the least delay without explanation. Of several, the one that leaves the same delay in all of
//! them. That delay is computing or a timer. Beyond it nothing is known of what was going on meanwhile: at least the time
//! in which no request at all was open was not the network's, nor that in which the main thread was busy, if a trace tells;
//! and at most all time since the one who is named asked.

use quipu_base::{Bytes, Duration};

use super::hypotheses::Hypothesis;
use super::phases::SLACK;
use super::timers;
use super::view::View;
use crate::page::compute::Compute;
use crate::page::discovery::MAX_DELAY;
use crate::page::{Discovery, Gap};

/// A place in a document is known to so much of it, and so much of the time in which it arrived. Our choice.
const PLACE_ERROR: f64 = 0.1;

/// Of several loads, how much a delay that is the same in all of them counts against one that is not. Our choice.
const SAME_DELAY: f64 = 0.02;

/// No browser computes for so long without asking for anything in most cases: something else was waited for. Our choice.
const LONG: Duration = Duration::from_millis(500);

/// What was chosen for a draft.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) discovery: Discovery,
    pub(super) waits_for: Vec<usize>,
    pub(super) gap: Gap,
}

/// The choice for each draft of the first view.
pub(super) fn choose(views: &[View<'_, '_>], compute: Compute) -> Vec<Chosen> {
    let Some(first) = views.first() else { return Vec::new() };
    (0..first.drafts.len()).map(|child| choice(views, first, child, compute)).collect()
}

fn choice(views: &[View<'_, '_>], first: &View<'_, '_>, child: usize, compute: Compute) -> Chosen {
    let mut hypotheses = first.hypotheses(child);
    let best = match compute {
        Compute::High | Compute::AsRecorded => 0,
        Compute::Low | Compute::Likely => {
            // What another load names need not have been there in the first.
            let others = views.iter().skip(1).flat_map(|view| view.hypotheses(child));
            hypotheses.extend(others.map(|other| Hypothesis { named: false, ..other }));
            let found = best(views, child, &hypotheses);
            let left = left(first, child, &hypotheses[found]);
            if left.is_none_or(|left| left.delay <= LONG) {
                found
            } else {
                hypotheses.extend(first.strangers(child));
                best(views, child, &hypotheses)
            }
        }
    };
    let chosen = hypotheses.swap_remove(best);
    let gap = gap(views, child, &chosen, compute);
    let Hypothesis { discovery, waits_for, .. } = chosen;
    Chosen { discovery: moved(first, discovery, compute), waits_for, gap }
}

/// The delay that a hypothesis leaves: the least of all loads, since nothing makes it shorter, and as much of it a
/// timer's as any of them tells.
fn gap(views: &[View<'_, '_>], child: usize, chosen: &Hypothesis, compute: Compute) -> Gap {
    let mut least = None;
    let mut timer = Duration::ZERO;
    let mut delays = Vec::with_capacity(views.len());
    for view in views {
        let Some((left, here)) = left(view, child, chosen).zip(view.here(child)) else { continue };
        delays.push(left.delay);
        let told = view.timer(here, left.since, left.start).min(left.delay);
        timer = timer.max(told);
        let delay = match compute {
            Compute::Low => (view.own(left.since, left.start) + told).min(left.delay),
            _ => left.delay,
        };
        least = Some(least.map_or(delay, |least: Duration| least.min(delay)));
    }
    if !views.iter().all(View::is_traced) && timers::is_same(&delays) {
        timer = delays.iter().copied().min().unwrap_or_default();
        least = Some(timer);
    }
    let least = least.unwrap_or_default().min(MAX_DELAY);
    let timer = timer.min(least);
    Gap { computing: least.saturating_sub(timer), timer }
}

/// Position of the best hypothesis. There is at least one.
fn best(views: &[View<'_, '_>], child: usize, hypotheses: &[Hypothesis]) -> usize {
    let mut best = (0, f64::INFINITY);
    for (position, hypothesis) in hypotheses.iter().enumerate() {
        let doubt = hypothesis.doubt;
        let of =
            |view: &View<'_, '_>| view.here(child).is_some().then(|| left(view, child, hypothesis));
        // One load in which it does not hold is enough.
        let delays: Option<Vec<f64>> = views
            .iter()
            .filter_map(of)
            .map(|left| left.map(|left| left.delay.as_secs_f64()))
            .collect();
        let Some(delays) = delays else { continue };
        let least = delays.iter().copied().fold(f64::INFINITY, f64::min);
        let most = delays.iter().copied().fold(0.0, f64::max);
        let weight = match delays.len() {
            1 => most,
            _ => most - least + SAME_DELAY * least,
        };
        if weight * doubt < best.1 {
            best = (position, weight * doubt);
        }
    }
    best.0
}

/// What a hypothesis leaves without explanation in one load.
struct Left {
    /// When all of it was there.
    since: Duration,
    start: Duration,
    delay: Duration,
}

/// `None` if the load has not all of it, or not all of it was there when `child` started. Positions are those of the
/// first load.
fn left(view: &View<'_, '_>, child: usize, hypothesis: &Hypothesis) -> Option<Left> {
    let child = view.here(child)?;
    let start = view.phases.all[child].start;
    // So nothing waits for itself: all that is not named was asked for earlier.
    let here = |there: usize| {
        let here = view.here(there)?;
        let earlier = hypothesis.named || view.phases.all[here].start < start;
        (earlier && here != child).then_some(here)
    };
    let (mut since, tolerance) = match hypothesis.discovery {
        Discovery::Root => return Some(Left { since: start, start, delay: Duration::ZERO }),
        Discovery::ParserOffset { parent, offset } => parsed(view, here(parent.index())?, offset),
        Discovery::AfterCompletion { parent } => {
            let end = view.phases.all[here(parent.index())?].end;
            if !hypothesis.named && end > start + SLACK {
                return None;
            }
            (end, SLACK)
        }
    };
    for &need in &hypothesis.waits_for {
        let phase = view.phases.all[here(need)?];
        if phase.end > start + SLACK || phase.start >= start {
            return None;
        }
        since = since.max(phase.end);
    }
    let delay = start.saturating_sub(since);
    let delay = if delay <= tolerance { Duration::ZERO } else { delay };
    Some(Left { since, start, delay })
}

/// When the bytes up to a place in a document had arrived, and how exactly that is known.
fn parsed(view: &View<'_, '_>, document: usize, offset: Bytes) -> (Duration, Duration) {
    let whole = view.drafts[document].sizes.body;
    let phase = view.phases.all[document];
    let span = phase.end.saturating_sub(phase.first_byte).as_secs_f64();
    let tolerance = SLACK + Duration::from_secs_f64(span * PLACE_ERROR);
    (view.phases.arrival(document, offset, whole), tolerance)
}

/// The same place in a document, as early or as late as it may be.
fn moved(first: &View<'_, '_>, discovery: Discovery, compute: Compute) -> Discovery {
    let Discovery::ParserOffset { parent, offset } = discovery else { return discovery };
    let whole = first.drafts[parent.index()].sizes.body;
    let error = Bytes((whole.0 as f64 * PLACE_ERROR) as u64);
    let offset = match compute {
        // What comes with the head is not looked for in the body.
        _ if offset.is_zero() => offset,
        Compute::Low => offset.saturating_sub(error),
        Compute::High => (offset + error).min(whole),
        Compute::AsRecorded | Compute::Likely => offset,
    };
    Discovery::ParserOffset { parent, offset }
}
