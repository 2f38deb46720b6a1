//! A path policy that asks for one of the places of an observation.

use quipu_base::Duration;
use quipu_policy::path::{IdleProbe, eligible, rest_unless_stuck, wait_for};
use quipu_policy::{Choice, Event, Notes, Parcel, PathKey, PathPolicy, View};

use crate::observation::{Observation, path_at};

/// What decides: a trained policy, or an environment's agent.
pub trait Decider: Send {
    /// The place of the path for the bytes, one of those that are allowed. Asked only if at least two are.
    fn decide(&mut self, observation: &Observation, view: &View<'_>) -> usize;
}

/// The path in the place that the [`Decider`] names: on it now if it is open, else a wait for it.
///
/// It is asked only while a path is open and two answers are allowed. In place of an answer that is not, the bytes take the
/// open path of least round-trip time.
pub struct Choosing<D> {
    decider: D,
    observation: Observation,
    probe: IdleProbe,
}

impl<D: Decider> Choosing<D> {
    /// The policy that asks `decider`. Idle paths are probed as with the policies that come with the program.
    pub fn new(decider: D) -> Choosing<D> {
        Choosing { decider, observation: Observation::default(), probe: IdleProbe::default() }
    }
}

impl<D: Decider> PathPolicy for Choosing<D> {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, _notes: &mut Notes) -> Choice {
        let open = eligible(view.paths).filter(|path| path.is_open(view.now));
        // The answer where a place is wrong, or none has an open path.
        let Some(otherwise) =
            open.min_by_key(|path| (path.srtt.unwrap_or(Duration::MAX), path.key))
        else {
            return rest_unless_stuck(parcel, view);
        };
        self.observation.take(Some(parcel), view);
        if self.observation.allowed.iter().filter(|allowed| **allowed).count() < 2 {
            return Choice::Now(otherwise.key);
        }
        let place = self.decider.decide(&self.observation, view);
        let is_allowed = self.observation.allowed.get(place) == Some(&true);
        match path_at(view, place).filter(|_| is_allowed) {
            Some(path) if path.is_open(view.now) => Choice::Now(path.key),
            Some(path) => wait_for(path, view),
            None => Choice::Now(otherwise.key),
        }
    }

    fn on_event(&mut self, event: &Event<'_>, _view: &View<'_>) {
        self.probe.on_event(event);
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.probe.due(view)
    }
}
