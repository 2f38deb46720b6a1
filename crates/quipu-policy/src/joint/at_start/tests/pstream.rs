use quipu_base::{Duration, PathId};

use crate::joint::allotting::Allotting;
use crate::joint::at_start::*;
use crate::joint::lanes::{Bandwidth, DelayTerm, Estimator};
use crate::joint::planned::Planned;
use crate::joint::testing::Scene;
use crate::path::IdleProbe;
use crate::reinject::ResendRules;
use crate::stream::Pack;

/// 375 and 875 kB/s.
fn scene() -> Scene<Planned<Allotting<AtStart>>> {
    let estimator = Estimator { delay: DelayTerm::Arrival, bandwidth: Bandwidth::Window };
    let probe = IdleProbe::new(Duration::ZERO);
    let allotting = Allotting::new(AtStart::pstream(), estimator, probe);
    let mut scene = Scene::new(allotting.planned(ResendRules::default(), Pack::One));
    scene.world.set_path(scene.fast, |path| path.cwnd = Bytes(7_500));
    scene.world.set_path(scene.slow, |path| path.cwnd = Bytes(87_500));
    scene
}

fn left(scene: &Scene<Planned<Allotting<AtStart>>>, stream: StreamKey) -> Vec<u64> {
    scene.joint.planner.allotter().left(stream).iter().map(|(_, left)| left.0).collect()
}

#[test]
fn a_stream_alone_is_split_so_that_both_paths_arrive_together() {
    let mut scene = scene();
    let stream = scene.open(100_000);
    scene.ask();
    // Level (100 + 375·0.01 + 875·0.05)/1,250 = 118 ms.
    assert_eq!(left(&scene, stream), [375 * 108, 875 * 68]);
}

#[test]
fn a_stream_beside_another_counts_on_its_share() {
    let mut scene = scene();
    scene.open(100_000);
    scene.ask();
    let second = scene.open(20_000);
    scene.ask();
    // Half of each path: level (20 + 187.5·0.01 + 437.5·0.05)/625 = 70 ms.
    assert_eq!(left(&scene, second), [11_250, 8_750]);
}

#[test]
fn the_more_urgent_chooses_first() {
    let mut scene = scene();
    let early = scene.open(20_000);
    let urgent = scene.open(100_000);
    let priority = crate::priority::Priority { urgency: 1, ..Default::default() };
    scene.world.streams.set_priority(urgent, priority);
    scene.ask();
    assert_eq!(left(&scene, urgent), [375 * 108, 875 * 68], "as if it were alone");
    assert_eq!(left(&scene, early), [11_250, 8_750]);
}

#[test]
fn a_split_stands_when_estimates_move() {
    let mut scene = scene();
    let stream = scene.open(100_000);
    scene.ask();
    let before = left(&scene, stream);
    scene.world.set_path(scene.slow, |path| path.srtt = Some(Duration::from_secs(1)));
    scene.tell(crate::Event::PathMeasured(scene.slow));
    scene.tell(crate::Event::Drained);
    scene.ask();
    assert_eq!(left(&scene, stream), before);
}

#[test]
fn what_is_written_later_is_split_when_the_first_part_is_used_up() {
    let mut scene = scene();
    let stream = scene.open(1_200);
    assert_eq!(scene.send(), Some((scene.fast, stream)));
    scene.write(stream, 1_200);
    scene.tell(crate::Event::Ready(stream));
    assert_eq!(scene.send(), Some((scene.fast, stream)));
}

#[test]
fn all_is_split_anew_when_paths_leave_or_come() {
    let mut scene = scene();
    let stream = scene.open(100_000);
    scene.ask();
    scene.world.paths.remove(scene.fast);
    scene.tell(crate::Event::PathGone(scene.fast));
    scene.ask();
    assert_eq!(left(&scene, stream), [100_000]);
    let third = scene.world.add_path(PathId(2)).unwrap();
    scene.tell(crate::Event::PathUp(third));
    scene.ask();
    assert_eq!(left(&scene, stream), [u64::MAX, u64::MAX], "no limit without a sample");
    scene.world.set_path(third, |path| path.srtt = Some(Duration::from_millis(100)));
    scene.tell(crate::Event::PathMeasured(third));
    scene.tell(crate::Event::Drained);
    scene.ask();
    assert_eq!(left(&scene, stream).iter().sum::<u64>(), 100_000);
}

#[test]
fn streams_share_a_path_by_weight() {
    let mut scene = scene();
    let root = crate::NodeId::ROOT;
    let heavy = scene.open_at(root, 48, 100_000);
    let light = scene.open_at(root, 16, 100_000);
    scene.world.set_path(scene.fast, |path| path.cwnd = Bytes(1_200 * 40));
    scene.fill_window(scene.slow);
    let mut sent = [0, 0];
    for _ in 0..40 {
        let (path, stream) = scene.send().unwrap();
        assert_eq!(path, scene.fast);
        sent[usize::from(stream == light)] += 1;
    }
    assert_eq!(sent, [30, 10]);
    assert_ne!(heavy, light);
}
