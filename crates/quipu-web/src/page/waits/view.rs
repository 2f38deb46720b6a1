//! A load as seen from another one of the same page.

use std::collections::BTreeMap;

use quipu_base::Duration;

use super::Linked;
use super::hypotheses::{Hypothesis, Rules};
use super::phases::Phases;
use super::timers::Timers;
use crate::page::discovery::id_of;
use crate::page::select::Draft;
use crate::page::{Discovery, ObjectId};
use crate::trace::Activity;

/// A load, and which of its drafts is which of the first load's.
pub(super) struct View<'a, 'b> {
    pub(super) drafts: &'a [Draft<'b>],
    pub(super) phases: Phases,
    rules: Rules<'a, 'b>,
    timers: Timers,
    activity: Option<&'a Activity>,
    /// By draft of the first load, the position here; and back.
    here: Vec<Option<usize>>,
    there: Vec<Option<usize>>,
}

impl<'a, 'b> View<'a, 'b> {
    /// The view of `load` from `first`, which may be the same.
    pub(super) fn new(first: &Linked<'_, '_>, load: &Linked<'a, 'b>) -> View<'a, 'b> {
        let phases = Phases::of(load.drafts);
        let rules = Rules::new(load.drafts, load.known, &phases, load.main);
        let timers = Timers::of(load.drafts, &phases, load.activity);
        let here = same_urls(first.drafts, load.drafts);
        let mut there = vec![None; load.drafts.len()];
        for (from, to) in here.iter().enumerate() {
            if let Some(to) = to {
                there[*to] = Some(from);
            }
        }
        View { drafts: load.drafts, phases, rules, timers, activity: load.activity, here, there }
    }

    /// Whether a trace tells what the browser did.
    pub(super) fn is_traced(&self) -> bool {
        self.activity.is_some()
    }

    /// How much of a span of time was certainly the browser's own: no request was open, or its main thread was busy as
    /// its trace tells.
    pub(super) fn own(&self, from: Duration, to: Duration) -> Duration {
        let of_network = |(start, end): (Duration, Duration)| {
            let busy = self.activity.map_or(Duration::ZERO, |activity| activity.busy(start, end));
            end.saturating_sub(start).saturating_sub(busy)
        };
        let network = self.phases.open(from, to).map(of_network);
        network.fold(to.saturating_sub(from), Duration::saturating_sub)
    }

    /// How much of the delay of a draft, by its position here, was a timer.
    pub(super) fn timer(&self, here: usize, since: Duration, start: Duration) -> Duration {
        self.timers.during(here, since, start, self.activity)
    }

    /// Position here of a draft of the first load.
    pub(super) fn here(&self, there: usize) -> Option<usize> {
        self.here.get(there).copied().flatten()
    }

    /// What a draft of the first load may have waited for, by what is known here, in positions of the first load.
    pub(super) fn hypotheses(&self, child: usize) -> Vec<Hypothesis> {
        let Some(here) = self.here(child) else { return Vec::new() };
        let found = self.rules.of(&self.phases, here).into_iter();
        found.filter_map(|hypothesis| self.seen_from_there(hypothesis)).collect()
    }

    /// The same of what no rule names.
    pub(super) fn strangers(&self, child: usize) -> Vec<Hypothesis> {
        let Some(here) = self.here(child) else { return Vec::new() };
        let found = self.rules.strangers(&self.phases, here).into_iter();
        found.filter_map(|hypothesis| self.seen_from_there(hypothesis)).collect()
    }

    fn seen_from_there(&self, hypothesis: Hypothesis) -> Option<Hypothesis> {
        let there = |here: usize| self.there.get(here).copied().flatten();
        let id = |here: ObjectId| there(here.index()).map(id_of);
        let discovery = match hypothesis.discovery {
            Discovery::Root => Discovery::Root,
            Discovery::ParserOffset { parent, offset } => {
                Discovery::ParserOffset { parent: id(parent)?, offset }
            }
            Discovery::AfterCompletion { parent } => {
                Discovery::AfterCompletion { parent: id(parent)? }
            }
        };
        let waits_for = hypothesis.waits_for.into_iter().map(there).collect::<Option<Vec<_>>>()?;
        Some(Hypothesis { discovery, waits_for, ..hypothesis })
    }
}

/// By draft of `from`, the one of `to` with the same URL: the first with the first, the second with the second.
fn same_urls(from: &[Draft<'_>], to: &[Draft<'_>]) -> Vec<Option<usize>> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, draft) in to.iter().enumerate().rev() {
        places.entry(draft.url).or_default().push(at);
    }
    from.iter().map(|draft| places.get_mut(draft.url).and_then(Vec::pop)).collect()
}
