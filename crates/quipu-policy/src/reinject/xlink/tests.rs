use super::*;
use crate::priority::Priority;
use crate::reinject::testing::Scene;
use crate::seam::view::PathStatus;
use quipu_base::{Bytes, PerMille, Rate};

const MS: Duration = Duration::from_millis(1);

fn by_playback(order: CopyOrder) -> Xlink {
    Xlink::new(Need::Playback(Playback { order, ..Playback::DEFAULT }), CopyPaths::default())
}

fn by_deadline() -> Xlink {
    Xlink::new(Need::Deadline(Deadline::DEFAULT), CopyPaths::default())
}

/// 40 and 100 ms; 1,200 bytes in flight on each, on the slow one a millisecond longer.
fn scene(policy: Xlink) -> Scene<Xlink> {
    let mut scene = Scene::new(policy, &[40, 100]);
    scene.send(1, 0, 1_200, false);
    pass(&mut scene, 1);
    scene.send(0, 1_200, 2_400, false);
    scene
}

fn pass(scene: &mut Scene<Xlink>, ms: u64) {
    scene.world.now += MS.saturating_mul(ms);
}

fn play(scene: &mut Scene<Xlink>, ms: u64) {
    let quality =
        Quality { cached_frames: Some(ms), frames_per_second: Some(1_000), ..Quality::default() };
    scene.tell(Event::Quality(quality));
}

#[test]
fn what_is_left_to_play_is_the_less_of_frames_and_bytes() {
    let frames =
        Quality { cached_frames: Some(60), frames_per_second: Some(30), ..Quality::default() };
    assert_eq!(left_to_play(&frames), Some(MS.saturating_mul(2_000)));
    let bytes = Quality {
        cached_bytes: Some(Bytes(125_000)),
        play_rate: Some(Rate::from_mbit_per_sec(1)),
        ..frames
    };
    assert_eq!(left_to_play(&bytes), Some(MS.saturating_mul(1_000)));
    assert_eq!(left_to_play(&Quality { frames_per_second: Some(0), ..frames }), None);
    assert_eq!(left_to_play(&Quality::default()), None);
}

#[test]
fn copies_go_while_little_is_left_to_play() {
    let mut scene = scene(by_playback(CopyOrder::Append));
    let copy = Some((0, 0, 1_200));
    assert_eq!(scene.next(false), copy, "nothing was told");
    let slow = scene.paths[1];
    for (ms, srtt, rttvar, copied) in [
        (499, 100, 0, true),
        (500, 100, 0, false),
        (500, 400, 101, true),
        (2_000, 1_990, 11, true),
        (2_000, 1_990, 10, false),
        (2_001, 9_000, 0, false),
    ] {
        scene.world.set_path(slow, |path| {
            path.srtt = Some(MS.saturating_mul(srtt));
            path.rttvar = MS.saturating_mul(rttvar);
        });
        play(&mut scene, ms);
        assert_eq!(scene.next(false), copy.filter(|_| copied), "{ms} {srtt} {rttvar}");
    }
    assert!(!scene.policy.armed(), "more than enough is left");
    play(&mut scene, 1_000);
    assert!(scene.policy.armed());
}

#[test]
fn the_slowest_path_counts_only_while_it_has_bytes_in_flight() {
    let mut scene = scene(by_playback(CopyOrder::Append));
    let slow = scene.paths[1];
    scene.world.set_path(slow, |path| {
        path.srtt = Some(MS.saturating_mul(1_500));
        path.in_flight = Bytes::ZERO;
    });
    play(&mut scene, 1_000);
    assert_eq!(scene.next(false), None);
    scene.world.set_path(slow, |path| path.in_flight = Bytes(1_200));
    assert_eq!(scene.next(false), Some((0, 0, 1_200)));
}

#[test]
fn each_packet_is_copied_once_to_the_other_path_in_order_of_sending() {
    let mut scene = scene(by_playback(CopyOrder::Append));
    assert_eq!(scene.next(true), None, "fresh bytes go first");
    assert_eq!(scene.next(false), Some((0, 0, 1_200)));
    scene.send(0, 0, 1_000, true);
    assert_eq!(scene.next(false), Some((0, 1_000, 1_200)), "the copy was cut");
    scene.send(0, 1_000, 1_200, true);
    assert_eq!(scene.next(false), Some((1, 1_200, 2_400)));
    scene.send(1, 1_200, 2_400, true);
    assert_eq!(scene.next(false), None);
    assert!(!scene.policy.armed());
}

#[test]
fn what_was_lost_and_sent_again_may_be_copied_again() {
    let mut scene = scene(by_playback(CopyOrder::Append));
    scene.acknowledge(0, 1_200, 2_400);
    scene.lose(1, 0, 1_200);
    assert_eq!(scene.next(false), None, "pending bytes are no copies");
    scene.send(1, 0, 1_200, false);
    assert_eq!(scene.next(false), Some((0, 0, 1_200)));
}

#[test]
fn what_a_suspect_path_gave_up_is_not_copied_to_the_path_that_carries_it_now() {
    let mut scene = scene(Xlink::new(Need::Rest, CopyPaths::default()));
    scene.suspect(1, 0, 1_200);
    assert_eq!(scene.next(true), None, "the bytes go again first");
    scene.send(0, 0, 1_200, false);
    assert_eq!(scene.next(false), None, "no other path than the one that carries them");
    scene.revive(1);
    assert_eq!(scene.next(false), Some((1, 1_200, 2_400)));
    scene.send(1, 1_200, 2_400, true);
    assert_eq!(scene.next(false), Some((1, 0, 1_200)));
}

#[test]
fn copies_of_a_stream_go_before_fresh_bytes_of_lower_priority() {
    let mut scene = scene(by_playback(CopyOrder::Stream));
    let mut open = |urgency| {
        let priority = Priority { urgency, ..Priority::default() };
        let key = scene.world.streams.open(Instant::ZERO, priority, Bytes(100_000));
        scene.world.streams.write(key, Bytes(10_000));
        key
    };
    let (urgent, equal, idle) = (open(2), open(3), open(4));
    assert_eq!(scene.next_instead_of(Some(urgent)), None);
    assert_eq!(scene.next_instead_of(Some(equal)), None);
    assert_eq!(scene.next_instead_of(Some(idle)), Some((0, 0, 1_200)));
    scene.send_of(urgent, 0, 0, 1_200, false);
    assert_eq!(scene.next_instead_of(Some(equal)), Some((1, 0, 1_200)), "of the urgent stream");
}

#[test]
fn copies_of_a_first_frame_go_before_the_rest_of_their_stream() {
    let mut scene = scene(by_playback(CopyOrder::Frame(2_400)));
    assert_eq!(scene.next(true), Some((0, 0, 1_200)));
    scene.send(0, 0, 1_200, true);
    assert_eq!(scene.next(true), Some((1, 1_200, 2_400)));
    scene.send(1, 1_200, 2_400, true);
    scene.send(1, 2_400, 3_600, false);
    assert_eq!(scene.next(true), None);
    assert_eq!(scene.next(false), Some((0, 2_400, 3_600)));
}

#[test]
fn deadlines_follow_the_least_round_trip_time_within_bounds() {
    let after = |ms: u64| Deadline::DEFAULT.after(Some(MS.saturating_mul(ms)));
    assert_eq!(after(100), MS.saturating_mul(110));
    assert_eq!(after(10), MS.saturating_mul(20));
    assert_eq!(after(1_000), MS.saturating_mul(500));
    assert_eq!(Deadline::DEFAULT.after(None), MS.saturating_mul(500));
}

#[test]
fn past_its_deadline_a_packet_is_copied_before_anything_fresh() {
    let mut scene = scene(by_deadline());
    assert_eq!(scene.next(true), None);
    scene.tell(Event::Drained);
    let due = scene.world.now + MS.saturating_mul(43);
    assert_eq!(scene.policy.wake_at(), Some(due));
    pass(&mut scene, 42);
    assert_eq!(scene.next(false), None);
    pass(&mut scene, 1);
    assert_eq!(scene.next(true), Some((0, 0, 1_200)));
    scene.tell(Event::Drained);
    assert_eq!(scene.policy.wake_at(), Some(due + MS), "that of the fast path");
    pass(&mut scene, 1);
    scene.tell(Event::Drained);
    assert_eq!(scene.policy.wake_at(), None, "nothing falls due later");
}

#[test]
fn what_leaves_on_a_low_path_is_due_at_once() {
    for low_at_once in [true, false] {
        let deadline = Deadline { low_at_once, ..Deadline::DEFAULT };
        let mut scene = scene(Xlink::new(Need::Deadline(deadline), CopyPaths::default()));
        let slow = scene.paths[1];
        scene.world.set_path(slow, |path| path.loss = PerMille(301));
        assert_eq!(scene.next(true), low_at_once.then_some((0, 0, 1_200)));
    }
}

#[test]
fn at_rest_all_that_is_in_flight_is_copied() {
    let mut scene = scene(Xlink::new(Need::Rest, CopyPaths::default()));
    assert_eq!(scene.next(true), None);
    assert_eq!(scene.next(false), Some((0, 0, 1_200)));
}

#[test]
fn copies_take_standby_paths_and_the_original_only_if_told() {
    for (standby, original, expected) in [
        (false, false, None),
        (true, false, Some(0)),
        (false, true, Some(1)),
        (true, true, Some(0)),
    ] {
        let paths = CopyPaths { standby, original };
        let mut scene = Scene::new(Xlink::new(Need::Rest, paths), &[40, 100]);
        let idle = scene.paths[0];
        scene.world.set_path(idle, |path| path.status = PathStatus::Backup);
        scene.send(1, 0, 1_200, false);
        let target = scene.next(false).map(|(path, ..)| path);
        assert_eq!(target, expected, "standby {standby}, original {original}");
    }
}

#[test]
fn a_path_that_is_gone_takes_its_packets_along() {
    let mut scene = scene(Xlink::new(Need::Rest, CopyPaths::default()));
    scene.send(0, 0, 1_200, true);
    let gone = scene.paths[0];
    scene.world.paths.remove(gone);
    scene.tell(Event::PathGone(gone));
    assert_eq!(scene.next(false), None);
    assert!(!scene.policy.armed());
}
