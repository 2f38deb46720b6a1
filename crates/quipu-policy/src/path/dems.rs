//! DEMS: a chunk from both ends.

use quipu_base::Bytes;

use super::choose::{can_wait, eligible, rest_unless_stuck};
use super::drift::Drift;
use super::forecast::{earliest, head_start, windows};
use super::{Choice, Ecf, IdleProbe, MinRtt, Parcel, PathPolicy, TakeBack};
use crate::key::PathKey;
use crate::seam::decision::{Note, Notes};
use crate::seam::event::Event;
use crate::seam::view::{Class, PathView, View};

/// `dems`: one path sends a finished stream from its front, the others from its back, until they
/// meet.
///
/// The path `A` of least one-way delay takes the front. So that both ends arrive together, another
/// path `B` stops when no more than `Σ bw_f·(owd_B − owd_f)` bytes are left, over the paths `f`
/// faster than it; the rest is planned for `A`, and `B` is free for the next stream. `owd` is half the
/// smoothed round-trip time unless differences were measured on every path.
///
/// The published form has two paths. With more, ours has still two ends: all but `A` share the back.
///
/// A stream must be written to its end, and all of it fit the credit there is; else, and with fewer
/// than two paths that have samples, this is [`Ecf`]. Lost bytes take the open path of least
/// round-trip time. The copies of the tail are a part of their own,
/// [`TailCopies`](crate::reinject::TailCopies).
///
/// Source: Guo et al., "Accelerating multipath transport through balanced subflow completion" (DEMS),
/// MobiCom 2017, known by summaries only; confidence medium.
#[derive(Clone, Debug)]
pub struct Dems {
    /// For what cannot go from both ends.
    otherwise: Ecf,
    drift: Drift,
    probe: IdleProbe,
}

impl Dems {
    /// The policy.
    pub fn new(probe: IdleProbe) -> Self {
        let never = IdleProbe::new(quipu_base::Duration::ZERO);
        let otherwise = Ecf::new(Ecf::BETA, Default::default(), never);
        Dems { otherwise, drift: Drift::EIGHTH, probe }
    }

    /// The path that takes the front, if another one is there to take the back.
    fn front<'v>(view: &View<'v>) -> Option<&'v PathView> {
        let counts = |path: &PathView| can_wait(path) && path.srtt.is_some();
        let front = earliest(view, counts)?;
        let mut others = eligible(view.paths).filter(|path| path.key != front.key && counts(path));
        others.next().map(|_| front)
    }
}

impl Default for Dems {
    fn default() -> Self {
        Dems::new(IdleProbe::default())
    }
}

impl PathPolicy for Dems {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        let Some(open) = MinRtt::pick(view, notes) else { return rest_unless_stuck(parcel, view) };
        if matches!(parcel.class, Class::Lost { .. }) {
            return Choice::Now(open.key);
        }
        let ends = Dems::front(view).filter(|_| parcel.back_fits);
        let Some((front, stream)) = ends.zip(view.streams.get(parcel.stream)) else {
            return self.otherwise.select(parcel, view, notes);
        };
        if front.is_open(view.now) {
            return Choice::Now(front.key);
        }
        let faster = eligible(view.paths).filter(|path| path.key != open.key && can_wait(path));
        let left_to_front: f64 = faster.map(|fast| head_start(fast, open)).sum();
        let scores =
            [("bytes left", stream.sendable.0 as f64), ("left to the front", left_to_front)];
        for (label, score) in scores {
            notes.add(|| Note { label, path: Some(open.key), stream: Some(parcel.stream), score });
        }
        if stream.sendable.0 as f64 > left_to_front {
            return Choice::NowFromBack(open.key);
        }
        if parcel.committed.iter().all(|planned| planned.is_zero()) {
            self.drift.rest_on(view);
        }
        Choice::Later(front.key)
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.probe.on_event(event);
        self.otherwise.on_event(event, view);
    }

    /// The front of a stream does not fill what is left of a packet from its back.
    fn fill(&mut self, path: PathKey, parcel: &Parcel<'_>, view: &View<'_>) -> bool {
        let whole = view.streams.get(parcel.stream).is_some_and(|stream| stream.fin);
        !whole
            || matches!(parcel.class, Class::Lost { .. })
            || Dems::front(view).is_none_or(|front| front.key == path)
    }

    fn commit_limit(&self, view: &View<'_>) -> Bytes {
        windows(view)
    }

    fn take_back(&mut self, view: &View<'_>) -> TakeBack {
        if self.drift.moved(view) { TakeBack::All } else { TakeBack::Nothing }
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.probe.due(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::World;
    use crate::key::StreamKey;
    use crate::path::testing::{fill, fresh, lost, waits_on, world_of};
    use quipu_base::Instant;

    /// A finished stream of `bytes` over paths of 20 and 100 ms: 24 kB are left to the front.
    fn scene(bytes: u64) -> (World, Vec<PathKey>, StreamKey) {
        let (mut world, paths) = world_of(&[20, 100]);
        let stream = world.streams.open(Instant::ZERO, Default::default(), Bytes(1_000_000));
        world.streams.write(stream, Bytes(bytes));
        world.streams.finish(stream);
        world.recount();
        (world, paths, stream)
    }

    fn select(world: &World, stream: StreamKey, back_fits: bool) -> Choice {
        let parcel = Parcel { stream, back_fits, ..fresh(&[]) };
        Dems::default().select(&parcel, &world.view(), &mut Notes::off())
    }

    #[test]
    fn the_fast_path_takes_the_front_and_the_slow_one_the_back() {
        let (mut world, paths, stream) = scene(100_000);
        assert_eq!(select(&world, stream, true), Choice::Now(paths[0]));
        fill(&mut world, paths[0]);
        assert_eq!(select(&world, stream, true), Choice::NowFromBack(paths[1]));
    }

    #[test]
    fn the_slow_path_stops_when_the_rest_arrives_earlier_on_the_fast_one() {
        for (bytes, from_back) in [(24_001, true), (24_000, false)] {
            let (mut world, paths, stream) = scene(bytes);
            fill(&mut world, paths[0]);
            let expected =
                if from_back { Choice::NowFromBack(paths[1]) } else { Choice::Later(paths[0]) };
            assert_eq!(select(&world, stream, true), expected);
        }
    }

    #[test]
    fn a_stream_without_an_end_goes_as_by_ecf() {
        let (mut world, paths, stream) = scene(20_000);
        fill(&mut world, paths[0]);
        assert_eq!(waits_on(select(&world, stream, false)), Some(paths[0]));
    }

    #[test]
    fn lost_bytes_and_paths_that_do_not_answer_leave_both_ends() {
        let (mut world, paths, stream) = scene(100_000);
        fill(&mut world, paths[0]);
        let parcel = Parcel { stream, back_fits: true, ..lost(paths[0]) };
        let choice = Dems::default().select(&parcel, &world.view(), &mut Notes::off());
        assert_eq!(choice, Choice::Now(paths[1]));
        world.set_path(paths[0], |path| path.pto_count = 1);
        assert_eq!(select(&world, stream, true), Choice::Now(paths[1]));
    }

    #[test]
    fn what_is_left_of_a_packet_from_the_back_stays_empty() {
        let (world, paths, stream) = scene(100_000);
        let parcel = Parcel { stream, ..fresh(&[]) };
        let mut dems = Dems::default();
        assert!(dems.fill(paths[0], &parcel, &world.view()));
        assert!(!dems.fill(paths[1], &parcel, &world.view()));
    }
}
