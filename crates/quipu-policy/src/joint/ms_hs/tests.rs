use quipu_base::Duration;

use super::*;
use crate::joint::allotting::Allotting;
use crate::joint::lanes::{Bandwidth, DelayTerm, Estimator};
use crate::joint::planned::Planned;
use crate::joint::testing::Scene;
use crate::path::IdleProbe;
use crate::priority::Priority;
use crate::reinject::ResendRules;
use crate::seam::decision::Decision;
use crate::stream::Pack;

type MsScene = Scene<Planned<Allotting<MsHs>>>;

/// 375 and 875 kB/s, 10 and 50 ms.
fn scene() -> MsScene {
    let estimator = Estimator { delay: DelayTerm::Arrival, bandwidth: Bandwidth::Window };
    let probe = IdleProbe::new(Duration::ZERO);
    let allotting = Allotting::new(MsHs::default(), estimator, probe);
    let mut scene = Scene::new(allotting.planned(ResendRules::default(), Pack::One));
    scene.world.set_path(scene.fast, |path| path.cwnd = Bytes(7_500));
    scene.world.set_path(scene.slow, |path| path.cwnd = Bytes(87_500));
    scene
}

fn urge(scene: &mut MsScene, stream: StreamKey, urgency: u8) {
    scene.world.streams.set_priority(stream, Priority { urgency, ..Priority::default() });
    scene.tell(Event::Reprioritised(stream));
}

fn paths(scene: &MsScene, stream: StreamKey) -> Vec<PathKey> {
    scene.joint.planner.allotter().paths_of(stream).collect()
}

#[test]
fn a_short_critical_stream_uses_only_the_path_that_speeds_it_up() {
    let mut scene = scene();
    // Until 10 ms and 5 kB at 1,250 kB/s.
    let short = scene.open(5_000);
    urge(&mut scene, short, 1);
    let other = scene.open(5_000);
    scene.ask();
    assert_eq!(paths(&scene, short), [scene.fast]);
    assert_eq!(paths(&scene, other), [scene.fast, scene.slow]);
}

#[test]
fn a_long_critical_stream_uses_all_paths_until_little_is_left() {
    let mut scene = scene();
    // 50 kB take 40 ms, which the slow path is behind.
    let stream = scene.open(51_200);
    urge(&mut scene, stream, 2);
    scene.fill_window(scene.fast);
    assert_eq!(scene.send(), Some((scene.slow, stream)));
    assert_eq!(scene.send(), Some((scene.slow, stream)));
    scene.tell(Event::PathMeasured(scene.slow));
    scene.tell(Event::Drained);
    assert!(matches!(scene.ask(), Decision::Wait { on, .. } if on == Some(scene.fast)));
    assert_eq!(paths(&scene, stream), [scene.fast]);
}

#[test]
fn critical_streams_go_first_and_the_others_take_what_they_leave() {
    let mut scene = scene();
    let other = scene.open(50_000);
    let critical = scene.open(3_600);
    urge(&mut scene, critical, 0);
    let sent: Vec<_> = (0..7).filter_map(|_| scene.send()).collect();
    let (fast, slow) = (scene.fast, scene.slow);
    assert_eq!(sent[..3], [(fast, critical); 3]);
    assert_eq!(sent[3..6], [(fast, other); 3]);
    assert_eq!(sent[6], (slow, other));
}

#[test]
fn a_stream_that_becomes_critical_overtakes() {
    let mut scene = scene();
    let first = scene.open(50_000);
    let second = scene.open(2_400);
    assert_eq!(scene.send(), Some((scene.fast, first)));
    urge(&mut scene, second, 1);
    assert_eq!(scene.send(), Some((scene.fast, second)));
    urge(&mut scene, second, 5);
    assert_eq!(scene.send(), Some((scene.fast, second)), "by weight it is behind");
    assert_eq!(scene.send(), Some((scene.fast, first)));
}
