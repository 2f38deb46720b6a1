use proptest::prelude::*;
use quipu_base::{Bytes, PacketNumber, PathId, SignedDuration};

use super::*;
use crate::conformance::World;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Two usable paths whose round-trip times vary by 2 ms, and a peer with the extension.
fn world() -> (World, [PathKey; 2]) {
    let mut world = World::new(Bytes(1_000));
    world.conn.return_paths = true;
    let paths = [0, 1].map(|id| world.add_path(PathId(id)).unwrap());
    for (path, srtt) in paths.into_iter().zip([90, 60]) {
        world.set_path(path, |path| {
            path.srtt = Some(ms(srtt));
            path.rttvar = ms(2);
        });
    }
    (world, paths)
}

/// An acknowledgement of path `data` up to `largest` comes on `on` after `took`.
fn seen(
    data: PathKey,
    on: PathKey,
    largest: u64,
    took: Duration,
    advances: bool,
) -> Event<'static> {
    let largest = PacketNumber(largest);
    Event::AckSeen { data, arrived_on: on, largest, since_sent: took, advances }
}

/// One acknowledgement of `data` comes on both paths, after so many milliseconds each.
fn copies(
    policy: &mut MinOwd,
    world: &World,
    data: PathKey,
    largest: u64,
    took: [(PathKey, u64); 2],
) {
    let mut took = took;
    took.sort_by_key(|(_, took)| *took);
    for (index, (on, took)) in took.into_iter().enumerate() {
        policy.on_event(&seen(data, on, largest, ms(took), index == 0), &world.view());
    }
}

#[test]
fn without_the_extension_it_is_own() {
    let (mut world, [slow, fast]) = world();
    world.conn.return_paths = false;
    let mut policy = MinOwd::default();
    assert_eq!(policy.route(slow, &world.view()).on, PathSet::only(slow));
    for largest in 1..20 {
        copies(&mut policy, &world, slow, largest, [(slow, 90), (fast, 20)]);
    }
    assert_eq!(policy.advice(&world.view()), None);
    assert!(policy.takes_sample(slow, slow) && policy.takes_sample(slow, fast));
}

#[test]
fn the_next_acknowledgement_goes_on_all_paths_every_three_seconds_and_for_a_new_path() {
    let (mut world, [first, second]) = world();
    let both = PathSet::only(first).with(second);
    let mut policy = MinOwd::default();
    let probes = |policy: &mut MinOwd, world: &World, data| {
        let on = policy.route(data, &world.view()).on;
        assert_eq!(policy.route(data, &world.view()).on, on, "asked twice");
        policy.on_event(&Event::AckSent(data), &world.view());
        assert!(on == both || on == PathSet::only(data));
        on == both
    };
    assert!(probes(&mut policy, &world, first));
    assert!(!probes(&mut policy, &world, first));
    assert!(probes(&mut policy, &world, second), "each path on its own");
    world.now += ms(2_999);
    assert!(!probes(&mut policy, &world, first));
    world.now += ms(1);
    assert!(probes(&mut policy, &world, first));
    assert!(!probes(&mut policy, &world, first));
    policy.on_event(&Event::PathUp(second), &world.view());
    assert!(probes(&mut policy, &world, first));
}

#[test]
fn a_lone_path_is_not_probed() {
    let (mut world, [first, second]) = world();
    world.set_path(second, |path| path.state = PathState::Suspect);
    let mut policy = MinOwd::default();
    assert_eq!(policy.route(first, &world.view()).on, PathSet::only(first));
    policy.on_event(&Event::AckSent(first), &world.view());
    world.set_path(second, |path| path.state = PathState::Usable);
    assert_eq!(policy.route(first, &world.view()).on.len(), 2, "it was not probed before");
}

#[test]
fn a_faster_way_back_is_asked_for_once_and_used_when_it_is_seen() {
    let (world, [slow, fast]) = world();
    let mut policy = MinOwd::default();
    copies(&mut policy, &world, slow, 1, [(slow, 90), (fast, 50)]);
    assert_eq!(policy.advice(&world.view()), Some(vec![(slow, fast)]));
    assert_eq!(policy.advice(&world.view()), None);
    copies(&mut policy, &world, slow, 2, [(slow, 90), (fast, 50)]);
    assert_eq!(policy.advice(&world.view()), None, "it was asked for already");
    for largest in 3..6 {
        assert!(policy.takes_sample(slow, slow) && !policy.takes_sample(slow, fast));
        policy.on_event(&seen(slow, fast, largest, ms(50), true), &world.view());
        // Those sent before on the old way still come, and tell nothing new.
        policy.on_event(&seen(slow, slow, largest - 1, ms(90), false), &world.view());
    }
    assert!(policy.takes_sample(slow, fast) && !policy.takes_sample(slow, slow));
}

#[test]
fn a_gain_within_margin_or_variation_changes_nothing() {
    for (variation, gain, asks) in [(2, 5, false), (2, 6, true), (20, 20, false), (20, 21, true)] {
        let (mut world, [slow, fast]) = world();
        world.set_path(slow, |path| path.rttvar = ms(variation));
        let mut policy = MinOwd::default();
        copies(&mut policy, &world, slow, 1, [(slow, 90), (fast, 90 - gain)]);
        assert_eq!(policy.advice(&world.view()).is_some(), asks, "{gain} ms, {variation} ms");
    }
}

#[test]
fn a_queue_on_the_way_there_is_no_gain_on_the_way_back() {
    let (mut world, [slow, fast]) = world();
    let mut policy = MinOwd::default();
    // The queue grows by 10 ms per packet; copies come together.
    for largest in 0..50 {
        let took = 50 + 10 * largest;
        world.now += ms(10);
        if largest % 10 == 0 {
            copies(&mut policy, &world, slow, largest, [(slow, took), (fast, took - 2)]);
        } else {
            policy.on_event(&seen(slow, slow, largest, ms(took), true), &world.view());
        }
    }
    assert_eq!(policy.advice(&world.view()), None);
}

#[test]
fn copies_that_others_overtook_do_not_count() {
    let (world, [slow, fast]) = world();
    let mut policy = MinOwd::default();
    policy.on_event(&seen(slow, slow, 7, ms(90), true), &world.view());
    policy.on_event(&seen(slow, slow, 9, ms(90), true), &world.view());
    policy.on_event(&seen(slow, fast, 9, ms(90), false), &world.view());
    policy.on_event(&seen(slow, fast, 7, ms(10), false), &world.view());
    assert_eq!(policy.advice(&world.view()), None);
}

#[test]
fn an_estimate_that_is_not_renewed_is_forgotten() {
    let (mut world, [slow, fast]) = world();
    world.set_path(slow, |path| path.rttvar = ms(60));
    let mut policy = MinOwd::default();
    copies(&mut policy, &world, slow, 1, [(slow, 90), (fast, 40)]);
    world.set_path(slow, |path| path.rttvar = ms(2));
    world.now += MinOwd::PROBE_INTERVAL.saturating_mul(3);
    policy.on_event(&seen(slow, slow, 2, ms(90), true), &world.view());
    assert_eq!(policy.advice(&world.view()), None);
    copies(&mut policy, &world, slow, 3, [(slow, 90), (fast, 40)]);
    assert!(policy.advice(&world.view()).is_some());
}

#[test]
fn the_advised_way_is_taken_until_its_probe_timeout() {
    let (mut world, [first, second]) = world();
    let mut policy = MinOwd::default();
    policy.on_event(&Event::AckSent(first), &world.view());
    let pairs = [(first, second)];
    let on = |policy: &mut MinOwd, world: &World| policy.route(first, &world.view()).on;
    policy.on_event(&Event::ReturnAdvice(&pairs), &world.view());
    assert_eq!(on(&mut policy, &world), PathSet::only(second));
    policy.on_event(&Event::Pto(first), &world.view());
    assert_eq!(on(&mut policy, &world), PathSet::only(second), "not the return path's");
    policy.on_event(&Event::Pto(second), &world.view());
    assert_eq!(on(&mut policy, &world), PathSet::only(first));
    policy.on_event(&Event::ReturnAdvice(&pairs), &world.view());
    world.paths.remove(second);
    policy.on_event(&Event::PathGone(second), &world.view());
    assert_eq!(on(&mut policy, &world), PathSet::only(first));
}

#[test]
fn the_sender_withdraws_its_advice_when_the_return_path_falls_silent() {
    let (mut world, [slow, fast]) = world();
    let mut policy = MinOwd::default();
    copies(&mut policy, &world, slow, 1, [(slow, 90), (fast, 50)]);
    policy.on_event(&seen(fast, fast, 1, ms(20), true), &world.view());
    assert!(policy.advice(&world.view()).is_some());
    world.set_path(fast, |path| path.state = PathState::Suspect);
    policy.on_event(&Event::PathSuspect(fast), &world.view());
    assert_eq!(policy.advice(&world.view()), Some(vec![(slow, slow), (fast, fast)]));
    policy.on_event(&Event::PathGone(fast), &world.view());
    policy.on_event(&seen(slow, slow, 2, ms(90), true), &world.view());
    assert_eq!(policy.advice(&world.view()), None);
}

#[test]
fn of_two_equally_fast_ways_the_lower_identifier_is_asked_for() {
    let (mut world, [slow, fast]) = world();
    let third = world.add_path(PathId(2)).unwrap();
    let mut policy = MinOwd::default();
    for on in [third, fast] {
        policy.on_event(&seen(slow, on, 1, ms(50), on == third), &world.view());
    }
    policy.on_event(&seen(slow, slow, 1, ms(90), false), &world.view());
    assert_eq!(policy.advice(&world.view()), Some(vec![(slow, fast)]));
}

#[test]
fn a_slot_used_again_brings_nothing_of_the_path_before() {
    let (mut world, [slow, fast]) = world();
    let mut policy = MinOwd::default();
    copies(&mut policy, &world, slow, 900, [(slow, 90), (fast, 50)]);
    policy.on_event(&Event::ReturnAdvice(&[(slow, fast)]), &world.view());
    world.paths.remove(slow);
    policy.on_event(&Event::PathGone(slow), &world.view());
    let next = world.add_path(PathId(5)).unwrap();
    assert_eq!(next.slot, slow.slot);
    policy.on_event(&Event::AckSent(next), &world.view());
    assert_eq!(policy.route(next, &world.view()).on, PathSet::only(next));
    copies(&mut policy, &world, next, 1, [(next, 90), (fast, 20)]);
    assert_eq!(policy.advice(&world.view()), Some(vec![(next, fast)]));
}

/// An acknowledgement as a script has it: path, largest, milliseconds, whether it advances.
type Step = (u8, u64, u64, bool);

/// What a sender knows, told by the whole history: the path in use, and by path how much longer
/// than that it takes, in nanoseconds.
fn naive(history: &[Step]) -> (u8, [Option<i64>; 3]) {
    let (mut in_use, mut elsewhere, mut since) = (0, 0, 0);
    let mut longer = [None; 3];
    let mut kept: Vec<Step> = Vec::new();
    for &(on, largest, took, advances) in history {
        if kept.iter().any(|step| step.0 == on && step.1 >= largest) {
            continue;
        }
        let mut copies = Vec::new();
        if on == in_use {
            // The last acknowledgement on each other path.
            for path in (0..3).filter(|&path| path != on) {
                let last = kept.iter().rfind(|step| step.0 == path);
                copies
                    .extend(last.filter(|step| step.1 == largest).map(|last| (path, last.2, took)));
            }
        } else {
            // Any acknowledgement on the path in use since it is that.
            let base = kept[since..].iter().find(|step| step.0 == in_use && step.1 == largest);
            copies.extend(base.map(|base| (on, took, base.2)));
        }
        kept.push((on, largest, took, advances));
        for &(path, took, base) in &copies {
            let sample = (took as i64 - base as i64) * 1_000_000;
            let mean = longer[usize::from(path)].map_or(sample, |mean: i64| mean / 2 + sample / 2);
            longer[usize::from(path)] = Some(mean);
        }
        if !copies.is_empty() || advances && on == in_use {
            elsewhere = 0;
        } else if advances {
            elsewhere += 1;
            if elsewhere == 3 {
                (in_use, elsewhere, since) = (on, 0, kept.len());
                longer = [None; 3];
            }
        }
    }
    (in_use, longer)
}

proptest! {
    #[test]
    fn estimates_equal_those_of_the_whole_history(
        history in proptest::collection::vec((0u8..3, 0u64..20, 1u64..200, any::<bool>()), 0..60),
    ) {
        let key = |on: u8| PathKey { slot: on, id: PathId(u32::from(on)) };
        let mut returns = Returns::new(key(0));
        for &(on, largest, took, advances) in &history {
            let seen = Sighting { largest: PacketNumber(largest), since_sent: ms(took) };
            returns.on_ack(Instant::ZERO, key(on), seen, advances);
        }
        let (in_use, longer) = naive(&history);
        prop_assert_eq!(returns.in_use, key(in_use));
        for (on, longer) in (0..3).zip(longer) {
            let known = returns.longer(key(on)).map(SignedDuration::as_nanos);
            prop_assert_eq!(known, longer, "path {}", on);
        }
    }
}
