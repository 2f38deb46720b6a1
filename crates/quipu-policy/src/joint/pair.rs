//! A stream policy and a path policy, composed.

use quipu_base::Bytes;

use super::planned::Planned;
use super::planner::Planner;
use crate::key::{PathKey, StreamKey};
use crate::path::{Choice, Parcel, PathPolicy, TakeBack};
use crate::reinject::ResendRules;
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, PathView, View};
use crate::stream::{Pack, StreamPolicy, Turn};

/// A [`StreamPolicy`] that orders and a [`PathPolicy`] that places, as one [`Joint`](super::Joint):
/// see [`Planned`] for what happens per packet.
pub type Pair = Planned<StreamAndPath>;

/// The [`Planner`] of a [`Pair`].
pub struct StreamAndPath {
    stream: Box<dyn StreamPolicy>,
    path: Box<dyn PathPolicy>,
}

impl Planned<StreamAndPath> {
    /// Composes the two. `resend` tells how lost bytes go again, `pack` how many streams may share
    /// a packet.
    pub fn new(
        stream: Box<dyn StreamPolicy>,
        path: Box<dyn PathPolicy>,
        resend: ResendRules,
        pack: Pack,
    ) -> Self {
        Planned::of(StreamAndPath { stream, path }, resend, pack)
    }
}

impl PathPolicy for StreamAndPath {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        self.path.select(parcel, view, notes)
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.stream.on_event(event, view);
        self.path.on_event(event, view);
    }

    fn fill(&mut self, path: PathKey, parcel: &Parcel<'_>, view: &View<'_>) -> bool {
        self.path.fill(path, parcel, view)
    }

    fn commit_limit(&self, view: &View<'_>) -> Bytes {
        self.path.commit_limit(view)
    }

    fn take_back(&mut self, view: &View<'_>) -> TakeBack {
        self.path.take_back(view)
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.path.probe(view)
    }

    fn rebinds(&self) -> bool {
        self.path.rebinds()
    }

    fn stays_on(&self, path: &PathView) -> bool {
        self.path.stays_on(path)
    }
}

impl Planner for StreamAndPath {
    fn next(
        &mut self,
        _filling: Option<PathKey>,
        view: &View<'_>,
        notes: &mut Notes,
    ) -> Option<Turn> {
        self.stream.next(view, notes)
    }

    fn on_taken(&mut self, turn: Turn, kind: Kind, view: &View<'_>) {
        self.stream.on_taken(turn, kind, view);
    }

    fn on_returned(&mut self, turn: Turn, view: &View<'_>) {
        self.stream.on_returned(turn, view);
    }

    fn order(&self) -> u64 {
        self.stream.order()
    }

    fn repeats(&self, stream: StreamKey, path: &PathView) -> bool {
        self.path.stays_on(path) && self.stream.stays_with(stream)
    }
}

#[cfg(test)]
mod tests;
