//! What may be answered, judged by the view alone.

use quipu_base::{Bytes, Offset};
use quipu_policy::path::eligible;
use quipu_policy::{Ask, Class, Decision, Referee, StreamKey, View};

use super::books::Books;

impl Books {
    /// What is wrong with an answer.
    pub(super) fn on_answer(
        &self,
        ask: Ask,
        decision: Decision,
        view: &View<'_>,
    ) -> Option<String> {
        if matches!(decision, Decision::Copy { .. }) && !self.declares_copies() {
            return Some("copies were not declared".to_owned());
        }
        // One that remembers nothing: waits and probes are judged one by one.
        if let Err(refusal) = Referee::new().check(ask, decision, view) {
            return Some(format!("{refusal:?}"));
        }
        let what = match decision {
            Decision::Send { .. } | Decision::Copy { .. } | Decision::Probe { .. } => return None,
            Decision::Wait { until, .. } if until <= view.now => Some("waits for the past"),
            Decision::Wait { .. } if self.lost_could_go(view) => Some("lost bytes wait"),
            Decision::Wait { .. } | Decision::Idle => {
                let idle = ask == Ask::Packet
                    && view.paths.usable().nth(1).is_none()
                    && view.paths.open(view.now).next().is_some()
                    && self.something_could_go(view);
                idle.then_some("nothing goes though the one usable path is open")
            }
        };
        what.map(str::to_owned)
    }

    /// Plans stay within what is pending and within credit.
    pub(super) fn check_plans(&self, planned: Bytes, view: &View<'_>) -> Option<String> {
        let streams = || self.streams().filter_map(|key| view.streams.get(key));
        let pending: Bytes = streams().map(|stream| stream.sendable).sum();
        let free: Bytes = streams().map(|stream| stream.free).sum();
        let affordable = free + view.conn.credit;
        (planned > pending || planned > affordable)
            .then(|| format!("{planned} planned of {pending} pending and {affordable} credit"))
    }

    fn lost_could_go(&self, view: &View<'_>) -> bool {
        eligible(view.paths).any(|path| path.is_open(view.now))
            && self.streams().any(|stream| has_lost(stream, view))
    }

    fn something_could_go(&self, view: &View<'_>) -> bool {
        self.streams().filter_map(|key| view.streams.get(key)).any(|stream| {
            !stream.free.is_zero()
                || stream.bare_fin
                || (!stream.sendable.is_zero() && !view.conn.credit.is_zero())
        })
    }
}

fn has_lost(stream: StreamKey, view: &View<'_>) -> bool {
    let mut at = Offset::ZERO;
    while let Some(run) = view.streams.pending_from(stream, at) {
        if matches!(run.class, Class::Lost { .. }) {
            return true;
        }
        if run.span.is_empty() || run.class == Class::Fresh {
            return false;
        }
        at = run.span.end;
    }
    false
}
