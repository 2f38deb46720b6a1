//! What planners share that look through streams with the test of ECF.

use super::by_stream::ByStream;
use crate::path::{Choice, MinRtt, Parcel, Verdict, rest_unless_stuck};
use crate::seam::decision::Notes;
use crate::seam::key::{PathKey, StreamKey};
use crate::seam::view::{Class, View};

/// Stream and path in one; it holds until the next event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) stream: StreamKey,
    /// `None`: no path is open.
    pub(super) choice: Option<Choice>,
}

impl Answer {
    /// The stream goes now.
    pub(super) fn now(stream: StreamKey, path: PathKey) -> Self {
        Answer { stream, choice: Some(Choice::Now(path)) }
    }

    /// No path is open.
    pub(super) fn rest(stream: StreamKey) -> Self {
        Answer { stream, choice: None }
    }

    /// The path for a parcel: that of the answer, if it speaks of the parcel; the open path of least
    /// round-trip time for lost bytes and for those that go out of turn.
    pub(super) fn select(
        answer: Option<Answer>,
        parcel: &Parcel<'_>,
        view: &View<'_>,
        notes: &mut Notes,
    ) -> Choice {
        let lost = matches!(parcel.class, Class::Lost { .. });
        let choice = answer
            .filter(|answer| answer.stream == parcel.stream && !lost)
            .and_then(|answer| answer.choice);
        choice.unwrap_or_else(|| match MinRtt::pick(view, notes) {
            Some(open) => Choice::Now(open.key),
            None => rest_unless_stuck(parcel, view),
        })
    }
}

/// The flag `waiting` of each stream, with the fast path that it waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamWaits(ByStream<PathKey>);

impl StreamWaits {
    /// `beta` for a stream that has waited for `fast`, else zero.
    pub(super) fn patience(&self, stream: StreamKey, fast: PathKey, beta: f64) -> f64 {
        if self.0.get(stream) == Some(fast) { beta } else { 0.0 }
    }

    /// Takes note of what was found.
    pub(super) fn note(&mut self, stream: StreamKey, fast: PathKey, verdict: Verdict) {
        match verdict {
            Verdict::Wait => self.0.set(stream, fast),
            Verdict::Send => self.0.remove(stream),
            Verdict::SendFew => {}
        }
    }

    /// A stream closed.
    pub(super) fn forget(&mut self, stream: StreamKey) {
        self.0.remove(stream);
    }
}
