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

#[cfg(test)]
mod tests {
    use quipu_base::{Bytes, PathId, StreamId};
    use quipu_policy::conformance::World;
    use quipu_policy::{Class, StreamKey};

    use super::*;

    /// Answers with a place, and counts how often it is asked.
    struct Fixed(usize, std::sync::Arc<std::sync::atomic::AtomicUsize>);

    impl Decider for Fixed {
        fn decide(&mut self, _observation: &Observation, _view: &View<'_>) -> usize {
            self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            self.0
        }
    }

    /// Two paths, of which the second is full and the faster one.
    fn world() -> (World, [PathKey; 2]) {
        let mut world = World::new(Bytes(1_000_000));
        let keys = [0, 1].map(|id| world.add_path(PathId(id)).unwrap());
        for (key, rtt) in keys.into_iter().zip([50, 20]) {
            world.set_path(key, |path| path.srtt = Some(Duration::from_millis(rtt)));
        }
        world.set_path(keys[1], |path| path.in_flight = path.cwnd);
        (world, keys)
    }

    /// The answer to a parcel of that class, and whether the decider was asked.
    fn answer(world: &World, place: usize, class: Class) -> (Choice, usize) {
        let asked = std::sync::Arc::default();
        let mut policy = Choosing::new(Fixed(place, std::sync::Arc::clone(&asked)));
        let stream = StreamKey { slot: 0, id: StreamId(0) };
        let parcel = Parcel { stream, len: Bytes(1_200), class, back_fits: false, committed: &[] };
        let choice = policy.select(&parcel, &world.view(), &mut Notes::default());
        (choice, asked.load(std::sync::atomic::Ordering::Relaxed))
    }

    #[test]
    fn an_open_path_is_taken_and_a_full_one_waited_for() {
        let (world, keys) = world();
        assert_eq!(answer(&world, 0, Class::Fresh), (Choice::Now(keys[0]), 1));
        let (choice, _) = answer(&world, 1, Class::Fresh);
        assert!(matches!(choice, Choice::Wait { on, .. } if on == Some(keys[1])), "{choice:?}");
    }

    #[test]
    fn an_answer_that_is_not_allowed_is_the_open_path_of_least_round_trip_time() {
        let (mut world, keys) = world();
        for place in [2, 4, usize::MAX] {
            assert_eq!(answer(&world, place, Class::Fresh), (Choice::Now(keys[0]), 1));
        }
        world.set_path(keys[1], |path| path.in_flight = Bytes(0));
        assert_eq!(answer(&world, 9, Class::Fresh), (Choice::Now(keys[1]), 1));
    }

    #[test]
    fn nobody_is_asked_where_there_is_nothing_to_decide() {
        let (mut world, keys) = world();
        let lost = Class::Lost { origin: keys[1] };
        assert_eq!(answer(&world, 1, lost), (Choice::Now(keys[0]), 0));
        world.set_path(keys[0], |path| path.in_flight = path.cwnd);
        assert_eq!(answer(&world, 1, Class::Fresh), (Choice::None, 0));
    }
}
