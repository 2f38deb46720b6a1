use quipu_base::Duration;

use crate::joint::allotting::Allotting;
use crate::joint::at_start::*;
use crate::joint::lanes::{Bandwidth, DelayTerm, Estimator};
use crate::joint::planned::Planned;
use crate::joint::testing::Scene;
use crate::path::IdleProbe;
use crate::reinject::ResendRules;
use crate::seam::decision::Decision;
use crate::stream::Pack;

type FScene = Scene<Planned<Allotting<AtStart>>>;

/// 375 and 875 kB/s.
fn scene() -> FScene {
    let estimator = Estimator { delay: DelayTerm::Arrival, bandwidth: Bandwidth::Window };
    let probe = IdleProbe::new(Duration::ZERO);
    let allotting = Allotting::new(AtStart::fstream(), estimator, probe);
    let mut scene = Scene::new(allotting.planned(ResendRules::default(), Pack::One));
    scene.world.set_path(scene.fast, |path| path.cwnd = Bytes(7_500));
    scene.world.set_path(scene.slow, |path| path.cwnd = Bytes(87_500));
    scene
}

fn paths(scene: &FScene, stream: StreamKey) -> Vec<PathKey> {
    scene.joint.planner.allotter().left(stream).iter().map(|&(path, _)| path).collect()
}

#[test]
fn each_stream_takes_the_path_on_which_it_arrives_first() {
    let mut scene = scene();
    // 277 ms on the fast path, 164 on the slow one.
    let first = scene.open(100_000);
    scene.ask();
    assert_eq!(paths(&scene, first), [scene.slow]);
    // 277 ms on the fast path, 279 on half of the slow one.
    let second = scene.open(100_000);
    scene.ask();
    assert_eq!(paths(&scene, second), [scene.fast]);
    // 37 ms on half of the fast path, 61 on half of the slow one.
    let third = scene.open(5_000);
    scene.ask();
    assert_eq!(paths(&scene, third), [scene.fast]);
}

#[test]
fn a_heavy_stream_counts_on_more_of_a_path() {
    let mut scene = scene();
    let root = crate::NodeId::ROOT;
    let first = scene.open_at(root, 16, 100_000);
    scene.ask();
    assert_eq!(paths(&scene, first), [scene.slow]);
    // 277 ms on the fast path, 172 on sixteen parts of seventeen of the slow one.
    let heavy = scene.open_at(root, 256, 100_000);
    scene.ask();
    assert_eq!(paths(&scene, heavy), [scene.slow]);
}

#[test]
fn with_fewer_streams_than_paths_a_path_stays_idle() {
    let mut scene = scene();
    let stream = scene.open(200_000);
    while let Some((path, sent)) = scene.send() {
        assert_eq!((path, sent), (scene.slow, stream));
    }
    let until = scene.world.now + Duration::from_millis(100);
    assert_eq!(scene.ask(), Decision::Wait { until, on: Some(scene.slow) });
    scene.world.now = until;
    scene.tell(crate::Event::Woken);
    assert_eq!(scene.send(), Some((scene.fast, stream)), "the slow path does not answer");
}

#[test]
fn a_stream_leaves_its_path_only_when_that_leaves() {
    let mut scene = scene();
    let stream = scene.open(100_000);
    scene.ask();
    scene.world.set_path(scene.slow, |path| path.srtt = Some(Duration::from_secs(2)));
    scene.tell(crate::Event::PathMeasured(scene.slow));
    scene.tell(crate::Event::Drained);
    scene.ask();
    assert_eq!(paths(&scene, stream), [scene.slow]);
    scene.world.paths.remove(scene.slow);
    scene.tell(crate::Event::PathGone(scene.slow));
    assert_eq!(scene.send(), Some((scene.fast, stream)));
    assert_eq!(paths(&scene, stream), [scene.fast]);
}

#[test]
fn a_finished_stream_leaves_its_share_to_the_next() {
    let mut scene = scene();
    let first = scene.open(12_000);
    let second = scene.open(100_000);
    scene.ask();
    // 42 ms on the fast path; then 277 there or 164 on the slow one.
    assert_eq!(paths(&scene, first), [scene.fast]);
    assert_eq!(paths(&scene, second), [scene.slow]);
    while !scene.joint.planner.allotter().left(first).is_empty() {
        scene.world.set_path(scene.fast, |path| path.in_flight = Bytes::ZERO);
        scene.send();
    }
    assert_eq!(scene.joint.planner.allotter().queues.weight_on(scene.fast), 0);
    assert_eq!(scene.joint.planner.allotter().queues.weight_on(scene.slow), 16);
}

#[test]
fn streams_that_begin_before_the_first_sample_are_bound_after_it() {
    let mut scene = scene();
    scene.world.set_path(scene.slow, |path| path.srtt = None);
    let stream = scene.open(100_000);
    scene.ask();
    assert_eq!(paths(&scene, stream), [scene.fast, scene.slow]);
    scene.world.set_path(scene.slow, |path| path.srtt = Some(Duration::from_millis(100)));
    scene.tell(crate::Event::PathMeasured(scene.slow));
    scene.tell(crate::Event::Drained);
    scene.ask();
    assert_eq!(paths(&scene, stream), [scene.slow]);
}
