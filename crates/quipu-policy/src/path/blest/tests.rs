use super::*;
use crate::conformance::World;
use crate::path::testing::{MS, fill, fresh, lost, piece, waits_on, world_of};

/// A full fast path of 20 ms and twelve packets, a slow one of 100 ms with twenty in flight; `window`
/// bytes shared by both.
fn scene(window: u64) -> (World, PathKey, PathKey) {
    let (mut world, paths) = world_of(&[20, 100]);
    let (fast, slow) = (paths[0], paths[1]);
    world.set_path(fast, |path| path.cwnd = Bytes(14_400));
    fill(&mut world, fast);
    world.set_path(slow, |path| {
        path.cwnd = Bytes(60_000);
        path.in_flight = Bytes(24_000);
    });
    world.conn.credit = Bytes(window) - world.conn.in_flight;
    (world, fast, slow)
}

fn select(policy: &mut Blest, world: &World) -> Choice {
    policy.select(&fresh(&[]), &world.view(), &mut Notes::off())
}

#[test]
fn the_fast_path_could_send_84_000_bytes_meanwhile() {
    let (world, fast, slow) = scene(240_000);
    let path = |key| world.paths.get(key).unwrap();
    assert_eq!(Blest::default().overtaking(path(fast), path(slow)), Some(84_000.0));
}

#[test]
fn it_waits_if_the_window_has_no_room_for_them() {
    for (window, waits) in [(240_000, false), (109_200, false), (109_199, true), (72_000, true)] {
        let (world, fast, slow) = scene(window);
        let choice = select(&mut Blest::default(), &world);
        if waits {
            assert_eq!(waits_on(choice), Some(fast), "{window}");
        } else {
            assert_eq!(choice, Choice::Now(slow), "{window}");
        }
    }
}

#[test]
fn a_greater_lambda_waits_earlier() {
    let (world, fast, _) = scene(120_000);
    assert_eq!(waits_on(select(&mut Blest::default(), &world)), None);
    let lambda = Lambda { start: 1.2, ..Lambda::PAPER };
    let mut blest = Blest::new(Estimate::Paper, lambda, IdleProbe::default());
    assert_eq!(waits_on(select(&mut blest, &world)), Some(fast));
}

#[test]
fn the_credit_of_a_stream_alone_counts_if_it_is_less() {
    let (mut world, fast, slow) = scene(240_000);
    let credit = Bytes(72_000) - world.conn.in_flight;
    let stream = world.streams.open(Instant::ZERO, Default::default(), credit);
    world.streams.write(stream, Bytes(500_000));
    world.recount();
    let parcel = Parcel { stream, ..fresh(&[]) };
    let mut blest = Blest::default();
    let choice = blest.select(&parcel, &world.view(), &mut Notes::off());
    assert_eq!(waits_on(choice), Some(fast));
    let other = world.streams.open(Instant::ZERO, Default::default(), Bytes(500_000));
    world.streams.write(other, Bytes(500_000));
    world.recount();
    let choice = blest.select(&parcel, &world.view(), &mut Notes::off());
    assert_eq!(choice, Choice::Now(slow), "two streams share the connection's");
}

#[test]
fn lost_bytes_and_paths_that_do_not_answer_are_not_waited_for() {
    let (mut world, fast, slow) = scene(72_000);
    let mut blest = Blest::default();
    let choice = blest.select(&lost(slow), &world.view(), &mut Notes::off());
    assert_eq!(choice, Choice::Now(slow));
    world.set_path(fast, |path| path.pto_count = 1);
    assert_eq!(select(&mut blest, &world), Choice::Now(slow));
}

fn linux() -> Blest {
    Blest::new(Estimate::Linux, Lambda::LINUX, IdleProbe::default())
}

#[test]
fn the_linux_form_counts_whole_round_trips_and_doubles_in_slow_start() {
    let (mut world, fast, slow) = scene(240_000);
    let blest = linux();
    let overtaking = |world: &World| {
        blest.overtaking(world.paths.get(fast).unwrap(), world.paths.get(slow).unwrap())
    };
    // Six round trips of 20 ms begin within 100 ms: 12 packets times 2^6 - 1.
    assert_eq!(overtaking(&world), Some(1_200.0 * 12.0 * 63.0));
    // In congestion avoidance the window is at least a packet above the threshold: (12 + 2) · 6.
    world.set_path(fast, |path| path.ssthresh = Some(Bytes(6_000)));
    assert_eq!(overtaking(&world), Some(1_200.0 * 84.0));
    world.set_path(fast, |path| path.ssthresh = Some(Bytes(24_000)));
    assert_eq!(overtaking(&world), Some(1_200.0 * (21.0 + 2.0) * 6.0));
}

#[test]
fn a_slow_path_lingers_longer_the_more_is_in_flight() {
    let (mut world, _, slow) = scene(240_000);
    let mut blest = linux();
    let at = |ms: u64| Some(MS.saturating_mul(ms));
    for ms in [80, 160] {
        world.set_path(slow, |path| path.srtt = at(ms));
        blest.on_event(&Event::PathMeasured(slow), &world.view());
    }
    world.set_path(slow, |path| path.srtt = at(100));
    let linger =
        |world: &World| Some(blest.linger(world.paths.get(slow).unwrap(), MS.saturating_mul(100)));
    // With the packet itself, 25,200 of 60,000 bytes: 80 ms and 42 % of 80 ms.
    assert_eq!(linger(&world), Some(Duration::from_micros(113_600)));
    world.set_path(slow, |path| path.in_flight = Bytes::ZERO);
    assert_eq!(linger(&world), at(100), "never less than the present time");
    fill(&mut world, slow);
    assert_eq!(linger(&world), at(160));
}

#[test]
fn lambda_moves_once_per_least_round_trip_time_of_the_slow_path() {
    let (mut world, ..) = scene(240_000);
    let mut blest = linux();
    let mut step = |world: &mut World, ms: u64, blocked: u64| {
        world.now += MS.saturating_mul(ms);
        world.conn.window_blocked += blocked;
        select(&mut blest, world);
        select(&mut blest, world);
        let piece = piece(0, 1_200);
        let path = world.paths.iter().next().unwrap().key;
        blest.on_event(&Event::Placed { path, piece }, &world.view());
        (blest.lambda * 100.0).round() as u32
    };
    assert_eq!(step(&mut world, 100, 0), 119);
    assert_eq!(step(&mut world, 99, 1), 119, "too early");
    assert_eq!(step(&mut world, 1, 0), 123, "it was blocked since");
    assert_eq!(step(&mut world, 100, 0), 122);
    for _ in 0..40 {
        step(&mut world, 100, 0);
    }
    assert_eq!(step(&mut world, 100, 0), 100, "the least");
    for _ in 0..9 {
        step(&mut world, 100, 1);
    }
    assert_eq!(step(&mut world, 100, 1), 130, "the greatest");
}
