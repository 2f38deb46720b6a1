//! What planners share that look through streams with the test of ECF.

use quipu_base::Bytes;

use super::by_stream::ByStream;
use crate::key::{PathKey, StreamKey};
use crate::path::{Choice, IdleProbe, MinRtt, Parcel, Race, Verdict, rest_unless_stuck};
use crate::seam::decision::{Note, Notes};
use crate::seam::event::Event;
use crate::seam::view::{Class, PathView, View};
use crate::stream::Turn;

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
}

/// What these planners keep: the answer that holds until the next event, which streams wait for
/// which path, and how much is looked at.
#[derive(Clone, Debug)]
pub(super) struct Looks {
    beta: f64,
    /// Most streams looked at.
    pub(super) visits: usize,
    pub(super) answer: Option<Answer>,
    /// The flag `waiting` of each stream: the fast path that it waits for.
    waits: ByStream<PathKey>,
    probe: IdleProbe,
}

impl Looks {
    /// `beta`: how much longer a stream waits once it does. `visits`: most streams looked at; zero:
    /// all.
    pub(super) fn new(beta: f64, visits: usize, probe: IdleProbe) -> Self {
        let visits = if visits == 0 { usize::MAX } else { visits };
        Looks { beta, visits, answer: None, waits: ByStream::default(), probe }
    }

    /// To be told every event, before anything is made of it.
    pub(super) fn on_event(&mut self, event: &Event<'_>) {
        self.answer = None;
        self.probe.on_event(event);
        if let Event::Closed(stream) = *event {
            self.waits.remove(stream);
        }
    }

    /// The turn of the stream answered.
    pub(super) fn turn(&self) -> Option<Turn> {
        self.answer.map(|answer| Turn::unlimited(answer.stream))
    }

    /// True if a stream waits for `fast`.
    pub(super) fn waits(&self, stream: StreamKey, fast: PathKey) -> bool {
        self.waits.get(stream) == Some(fast)
    }

    /// The test of ECF for a stream with `on_fast` bytes to send on the path `fast`, or `on_slow` on
    /// the open one. Who waits does so for longer from then on.
    pub(super) fn verdict(
        &mut self,
        (fast, race): (&PathView, &Race),
        stream: StreamKey,
        [on_fast, on_slow]: [Bytes; 2],
        notes: &mut Notes,
    ) -> Verdict {
        notes.add(|| Note {
            label: "bytes until done",
            path: Some(fast.key),
            stream: Some(stream),
            score: on_fast.0 as f64,
        });
        let patience = if self.waits(stream, fast.key) { self.beta } else { 0.0 };
        let verdict = race.verdict(on_fast, on_slow, patience);
        match verdict {
            Verdict::Wait => self.waits.set(stream, fast.key),
            Verdict::Send => self.waits.remove(stream),
            Verdict::SendFew => {}
        }
        verdict
    }

    /// The path for a parcel: that of the answer, if it speaks of the parcel; the open path of least
    /// round-trip time for lost bytes and for those that go out of turn.
    pub(super) fn select(&self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        let lost = matches!(parcel.class, Class::Lost { .. });
        let choice = self
            .answer
            .filter(|answer| answer.stream == parcel.stream && !lost)
            .and_then(|answer| answer.choice);
        choice.unwrap_or_else(|| match MinRtt::pick(view, notes) {
            Some(open) => Choice::Now(open.key),
            None => rest_unless_stuck(parcel, view),
        })
    }

    /// An idle path to refresh.
    pub(super) fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.probe.due(view)
    }
}
