use super::*;
use crate::conformance::World;
use crate::key::StreamKey;
use quipu_base::{Instant, PathId, StreamId};

const MS: Duration = Duration::from_millis(1);

fn two_paths() -> (World, PathKey, PathKey) {
    let mut world = World::new(Bytes(1_000_000));
    let fast = world.add_path(PathId(0)).unwrap();
    let slow = world.add_path(PathId(1)).unwrap();
    world.set_path(fast, |path| path.srtt = Some(MS.saturating_mul(20)));
    world.set_path(slow, |path| path.srtt = Some(MS.saturating_mul(100)));
    (world, fast, slow)
}

fn parcel(committed: &[Bytes]) -> Parcel<'_> {
    Parcel {
        stream: StreamKey { slot: 0, id: StreamId(0) },
        len: Bytes(1_200),
        class: Class::Fresh,
        back_fits: false,
        committed,
    }
}

fn select(policy: &mut Pats, world: &World, committed: &[Bytes]) -> Choice {
    policy.select(&parcel(committed), &world.view(), &mut Notes::off())
}

#[test]
fn arrival_counts_the_windows_ahead_and_half_a_round_trip() {
    let (mut world, fast, _) = two_paths();
    let arrival = |world: &World, queue: u64| {
        Pats::arrival(Bytes(queue), world.paths.get(fast).unwrap()).unwrap()
    };
    let expected = |ms: u64| MS.saturating_mul(ms);
    assert_eq!([1_200, 24_000, 60_000].map(|q| arrival(&world, q)), [10, 30, 90].map(expected));
    world.set_path(fast, |path| path.in_flight = Bytes(12_000));
    assert_eq!([1_200, 24_000, 60_000].map(|q| arrival(&world, q)), [30, 50, 110].map(expected));
}

#[test]
fn a_full_fast_path_is_planned_for_until_a_slow_one_delivers_earlier() {
    let (mut world, fast, slow) = two_paths();
    let mut pats = Pats::default();
    assert_eq!(select(&mut pats, &world, &[]), Choice::Now(fast));
    world.set_path(fast, |path| path.in_flight = Bytes(12_000));
    assert_eq!(select(&mut pats, &world, &[Bytes(0)]), Choice::Later(fast));
    // Two windows planned: the packet would arrive in the third round, after 70 ms.
    assert_eq!(select(&mut pats, &world, &[Bytes(22_800)]), Choice::Later(fast), "50 ms, a tie");
    assert_eq!(select(&mut pats, &world, &[Bytes(24_000)]), Choice::Now(slow));
}

#[test]
fn the_literal_reading_is_minrtt() {
    let (mut world, fast, slow) = two_paths();
    let mut pats = Pats::new(Bind::Literal, 0.0, true, IdleProbe::default());
    assert_eq!(select(&mut pats, &world, &[]), Choice::Now(fast));
    world.set_path(fast, |path| path.in_flight = Bytes(12_000));
    assert_eq!(select(&mut pats, &world, &[]), Choice::Now(slow));
    assert_eq!(pats.commit_limit(&world.view()), Bytes::ZERO);
}

#[test]
fn plans_are_bounded_by_the_windows() {
    let (world, ..) = two_paths();
    let early = Pats::new(Bind::Early, 0.0, true, IdleProbe::default());
    assert_eq!(early.commit_limit(&world.view()), Bytes(24_000));
    assert_eq!(Pats::default().commit_limit(&world.view()), Bytes(48_000));
}

#[test]
fn plans_are_made_anew_when_an_estimate_moved() {
    for (bind, kept, moved) in [(Bind::Late, 22, 23), (Bind::Early, 25, 26)] {
        let (mut world, fast, _) = two_paths();
        world.set_path(fast, |path| path.in_flight = Bytes(12_000));
        let mut pats = Pats::new(bind, 0.0, true, IdleProbe::default());
        assert_eq!(select(&mut pats, &world, &[]), Choice::Later(fast));
        world.set_path(fast, |path| path.srtt = Some(MS.saturating_mul(kept)));
        assert_eq!(pats.take_back(&world.view()), TakeBack::Nothing);
        world.set_path(fast, |path| path.srtt = Some(MS.saturating_mul(moved)));
        assert_eq!(pats.take_back(&world.view()), TakeBack::All);
        assert_eq!(pats.take_back(&world.view()), TakeBack::Nothing);
        world.set_path(fast, |path| path.cwnd = Bytes(14_000));
        let expected = if bind == Bind::Late { TakeBack::All } else { TakeBack::Nothing };
        assert_eq!(pats.take_back(&world.view()), expected);
        world.add_path(PathId(9));
        assert_eq!(pats.take_back(&world.view()), TakeBack::All, "a path came");
    }
}

#[test]
fn an_open_path_without_a_sample_is_used_before_anything_is_planned() {
    let (mut world, fast, slow) = two_paths();
    world.set_path(fast, |path| path.in_flight = Bytes(12_000));
    world.set_path(slow, |path| path.srtt = None);
    assert_eq!(select(&mut Pats::default(), &world, &[]), Choice::Now(slow));
}

#[test]
fn nothing_is_planned_for_a_path_that_does_not_answer() {
    let (mut world, fast, slow) = two_paths();
    world.set_path(fast, |path| {
        path.in_flight = Bytes(12_000);
        path.pto_count = 1;
    });
    assert_eq!(select(&mut Pats::default(), &world, &[]), Choice::Now(slow));
}

#[test]
fn a_path_held_by_its_pacer_alone_is_planned_for() {
    let (mut world, fast, _) = two_paths();
    world.set_path(fast, |path| path.release_at = Instant::from_nanos(1_000));
    assert_eq!(select(&mut Pats::default(), &world, &[]), Choice::Later(fast));
}
