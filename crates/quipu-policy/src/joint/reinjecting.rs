//! Any joint policy, with copies.

use quipu_base::{Bytes, Instant};

use super::Joint;
use crate::key::{PathKey, Span, StreamKey};
use crate::reinject::Reinject;
use crate::seam::decision::{Ask, DecidedBy, Decision, Notes};
use crate::seam::event::Event;
use crate::seam::view::View;

/// Asks `inner`, shows the answer's stream to `reinject`, and answers its copy or the answer. That
/// works because deciding charges nothing.
///
/// Into the space left in a packet a copy goes only if `inner` has nothing more for it and the copy
/// is for that path.
pub struct Reinjecting {
    inner: Box<dyn Joint>,
    reinject: Box<dyn Reinject>,
}

impl Reinjecting {
    /// `inner` with the copies of `reinject`.
    pub fn new(inner: Box<dyn Joint>, reinject: Box<dyn Reinject>) -> Self {
        Reinjecting { inner, reinject }
    }
}

impl Joint for Reinjecting {
    fn decide(&mut self, ask: Ask, view: &View<'_>, notes: &mut Notes) -> Decision {
        let answer = self.inner.decide(ask, view, notes);
        if !self.reinject.armed() {
            return answer;
        }
        let instead_of = match answer {
            Decision::Send { stream, .. } => Some(stream),
            Decision::Wait { .. } | Decision::Idle => None,
            Decision::Copy { .. } | Decision::Probe { .. } => return answer,
        };
        match ask {
            Ask::Packet => match self.reinject.next(instead_of, view, notes) {
                Some(copy) => answer_copy(copy, notes),
                None => answer,
            },
            Ask::Fill { .. } if instead_of.is_some() => answer,
            Ask::Fill { path: open, .. } => match self.reinject.next(None, view, notes) {
                Some(copy) if copy.0 == open => answer_copy(copy, notes),
                _ => answer,
            },
        }
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.inner.on_event(event, view);
        self.reinject.on_event(event, view);
    }

    fn has_copies(&self) -> bool {
        self.inner.has_copies() || self.reinject.armed()
    }

    fn control_path(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.inner.control_path(view)
    }

    fn wake_at(&self) -> Option<Instant> {
        [self.inner.wake_at(), self.reinject.wake_at()].into_iter().flatten().min()
    }

    fn committed(&self, path: PathKey) -> Bytes {
        self.inner.committed(path)
    }
}

fn answer_copy((path, stream, span): (PathKey, StreamKey, Span), notes: &mut Notes) -> Decision {
    notes.answered_by(DecidedBy::Reinjection);
    Decision::Copy { path, stream, span }
}
