//! What may be answered, judged by the view alone.

use quipu_base::{Bytes, Offset};
use quipu_policy::path::eligible;
use quipu_policy::{Ask, Class, Decision, PathKey, PathState, Span, StreamKey, View};

use super::books::Books;

impl Books {
    /// What is wrong with an answer.
    pub(super) fn on_answer(
        &self,
        ask: Ask,
        decision: Decision,
        view: &View<'_>,
    ) -> Option<&'static str> {
        match decision {
            Decision::Send { path, stream, from, max } => {
                check_path(ask, path, view).or_else(|| check_send(stream, from, max, view))
            }
            Decision::Copy { path, stream, span } => check_path(ask, path, view)
                .or_else(|| (!self.declares_copies()).then_some("copies were not declared"))
                .or_else(|| check_copy(stream, span, view)),
            Decision::Probe { path } => {
                let usable = view.paths.get(path).is_some_and(|it| it.state == PathState::Usable);
                (!usable || ask != Ask::Packet).then_some("no path to probe")
            }
            Decision::Wait { .. } if ask != Ask::Packet => Some("waits with a packet open"),
            Decision::Wait { until, .. } if until <= view.now => Some("waits for the past"),
            Decision::Wait { .. } if self.lost_could_go(view) => Some("lost bytes wait"),
            Decision::Wait { .. } | Decision::Idle => {
                let idle = ask == Ask::Packet
                    && view.paths.usable().nth(1).is_none()
                    && view.paths.open(view.now).next().is_some()
                    && self.something_could_go(view);
                idle.then_some("nothing goes though the one usable path is open")
            }
        }
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

fn check_path(ask: Ask, path: PathKey, view: &View<'_>) -> Option<&'static str> {
    match ask {
        Ask::Packet => {
            let open = view.paths.get(path).is_some_and(|it| it.is_open(view.now));
            (!open).then_some("the path is not open")
        }
        Ask::Fill { path: open, .. } => (open != path).then_some("another packet is open"),
    }
}

fn check_send(
    stream: StreamKey,
    from: Option<Offset>,
    max: Bytes,
    view: &View<'_>,
) -> Option<&'static str> {
    let Some(state) = view.streams.get(stream) else { return Some("no such stream") };
    if !state.is_ready() {
        return Some("the stream is not ready");
    }
    let run = view.streams.pending_from(stream, from.unwrap_or(Offset::ZERO));
    let Some(run) = run else { return Some("nothing is pending there") };
    if from.is_some_and(|from| from != run.span.start) {
        return Some("the first byte is not pending");
    }
    let allowed = state.high_sent.advanced(view.conn.credit).since(run.span.start);
    let none = max.is_zero() || allowed.is_zero();
    (none && !run.span.is_empty()).then_some("no byte may go")
}

fn check_copy(stream: StreamKey, span: Span, view: &View<'_>) -> Option<&'static str> {
    if view.streams.get(stream).is_none() {
        return Some("no such stream");
    }
    let found = view.streams.unacked_from(stream, span.start);
    let copyable = span.is_empty() || found.is_some_and(|run| run.start == span.start);
    (!copyable).then_some("the bytes to copy are not in flight")
}
