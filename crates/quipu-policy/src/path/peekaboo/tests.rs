use super::*;
use crate::conformance::World;
use crate::path::testing::{MS, fill, fresh, lost, piece, sent, waits_on, world_of};
use quipu_base::{Bytes, Seed};

/// A full fast path of 20 ms and an open slow one of 100 ms.
fn scene() -> (World, PathKey, PathKey) {
    let (mut world, paths) = world_of(&[20, 100]);
    fill(&mut world, paths[0]);
    (world, paths[0], paths[1])
}

fn policy(learning: Learning) -> Peekaboo {
    Peekaboo::new(learning, Seed::new(1).stream("peekaboo", 0), IdleProbe::default())
}

/// Without flips.
const STEADY: Learning = Learning { flip_wait: 0.0, flip_send: 0.0, ..Learning::DEFAULT };

fn select(policy: &mut Peekaboo, world: &World) -> Choice {
    let choice = policy.select(&fresh(&[]), &world.view(), &mut Notes::off());
    let again = policy.select(&fresh(&[]), &world.view(), &mut Notes::off());
    assert_eq!(choice, again, "asking draws nothing");
    choice
}

fn leaves(policy: &mut Peekaboo, world: &World, path: PathKey, pn: u64) {
    policy.on_event(&Event::Sent(sent(path, pn, &[piece(0, 1_200)])), &world.view());
}

fn arrives(policy: &mut Peekaboo, world: &mut World, path: PathKey, pn: u64, after_ms: u64) {
    world.now += MS.saturating_mul(after_ms);
    policy.on_event(&Event::Acked(sent(path, pn, &[])), &world.view());
}

#[test]
fn knowing_nothing_it_sends() {
    let (world, _, slow) = scene();
    assert_eq!(select(&mut policy(STEADY), &world), Choice::Now(slow));
}

#[test]
fn having_decided_to_wait_it_waits_until_the_fast_path_opens() {
    let (mut world, fast, slow) = scene();
    let always = Learning { flip_send: 1.0, ..STEADY };
    let mut policy = policy(always);
    assert_eq!(waits_on(select(&mut policy, &world)), Some(fast));
    let decided = policy.decided;
    world.now += MS;
    leaves(&mut policy, &world, slow, 0);
    assert_eq!(waits_on(select(&mut policy, &world)), Some(fast));
    assert_eq!(policy.decided, decided, "no new decision");
    world.set_path(fast, |path| path.in_flight = Bytes::ZERO);
    assert_eq!(select(&mut policy, &world), Choice::Now(fast));
    leaves(&mut policy, &world, fast, 7);
    assert_eq!(policy.decided, None);
    arrives(&mut policy, &mut world, fast, 7, 20);
    let context = decided.unwrap().context;
    assert!(policy.wait.upper_bound(&context, 0.0) > 0.5, "waiting was worth something");
    assert_eq!(policy.send.upper_bound(&context, 0.0), 0.0);
}

#[test]
fn it_learns_to_wait_where_the_slow_path_earns_little() {
    let (mut world, fast, slow) = scene();
    let mut policy = policy(STEADY);
    let mut waits = Vec::new();
    for pn in 0..60 {
        let choice = select(&mut policy, &world);
        match choice {
            Choice::Now(path) => {
                assert_eq!(path, slow);
                leaves(&mut policy, &world, slow, pn);
                arrives(&mut policy, &mut world, slow, pn, 100);
            }
            _ => {
                world.set_path(fast, |path| path.in_flight = Bytes::ZERO);
                assert_eq!(select(&mut policy, &world), Choice::Now(fast));
                leaves(&mut policy, &world, fast, pn);
                fill(&mut world, fast);
                arrives(&mut policy, &mut world, fast, pn, 25);
            }
        }
        waits.push(waits_on(choice).is_some());
    }
    assert!(!waits[0]);
    assert!(waits[40..].iter().all(|waits| *waits), "{waits:?}");
}

#[test]
fn a_lost_packet_earns_nothing_and_counts_once() {
    let (mut world, _, slow) = scene();
    let mut policy = policy(STEADY);
    select(&mut policy, &world);
    let context = policy.decided.unwrap().context;
    let unsure = policy.send.upper_bound(&context, 1.0);
    leaves(&mut policy, &world, slow, 0);
    policy.on_event(&Event::Lost(sent(slow, 0, &[])), &world.view());
    let known = policy.send.upper_bound(&context, 1.0);
    assert!(known < unsure);
    arrives(&mut policy, &mut world, slow, 0, 100);
    assert_eq!(policy.send.upper_bound(&context, 1.0), known, "a late acknowledgement");
}

#[test]
fn lost_bytes_open_fast_paths_and_those_that_do_not_answer_ask_no_model() {
    let (mut world, fast, slow) = scene();
    let mut policy = policy(Learning { flip_send: 1.0, ..STEADY });
    let choice = policy.select(&lost(fast), &world.view(), &mut Notes::off());
    assert_eq!((choice, policy.decided), (Choice::Now(slow), None));
    assert_eq!(waits_on(select(&mut policy, &world)), Some(fast));
    world.set_path(fast, |path| path.pto_count = 1);
    assert_eq!(select(&mut policy, &world), Choice::Now(slow));
    assert_eq!(policy.decided, None, "the wait is over");
}

#[test]
fn flips_are_as_frequent_as_told_and_the_same_for_the_same_seed() {
    let run = |flip_send: f64| {
        let (world, _, slow) = scene();
        let mut policy = policy(Learning { flip_send, ..STEADY });
        let waits = (0..2_000).map(|pn| {
            let waits = waits_on(select(&mut policy, &world)).is_some();
            policy.decided = None;
            leaves(&mut policy, &world, slow, pn);
            waits
        });
        waits.collect::<Vec<_>>()
    };
    let waits = run(0.1);
    let share = waits.iter().filter(|waits| **waits).count();
    assert!((160..240).contains(&share), "{share} of 2,000");
    assert_eq!(waits, run(0.1));
}

#[test]
fn contexts_are_within_one_and_equal_when_asked_again() {
    let (mut world, fast, slow) = scene();
    let mut policy = policy(STEADY);
    for (cwnd, rtt) in [(12_000, 20), (60_000, 0), (1_200, 3_600_000), (0, 50)] {
        world.set_path(fast, |path| {
            path.cwnd = Bytes(cwnd);
            path.latest_rtt = Some(MS.saturating_mul(rtt));
        });
        let view = world.view();
        let path = |key| view.paths.get(key).unwrap();
        let context = policy.context(path(fast), path(slow), &view);
        assert!(context.iter().all(|number| (0.0..=1.0).contains(number)), "{context:?}");
        assert_eq!(policy.context(path(fast), path(slow), &view), context);
    }
}
