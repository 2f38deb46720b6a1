use super::*;
use crate::conformance::World;
use crate::priority::Priority;
use quipu_base::PathId;

/// Two open paths and a stream of 5,000 pending bytes.
struct Scene {
    world: World,
    paths: [PathKey; 2],
    stream: StreamKey,
    referee: Referee,
}

impl Scene {
    fn new() -> Self {
        let mut world = World::new(Bytes(100_000));
        let paths = [0, 1].map(|id| world.add_path(PathId(id)).unwrap());
        let stream = world.streams.open(Instant::ZERO, Priority::default(), Bytes(50_000));
        world.streams.write(stream, Bytes(5_000));
        world.recount();
        Scene { world, paths, stream, referee: Referee::new() }
    }

    fn check(&mut self, ask: Ask, decision: Decision) -> Result<Checked, Refusal> {
        self.referee.check(ask, decision, &self.world.view())
    }

    fn packet(&mut self, decision: Decision) -> Result<Checked, Refusal> {
        self.check(Ask::Packet, decision)
    }

    fn probe(&mut self, path: PathKey) -> Result<Checked, Refusal> {
        let checked = self.packet(Decision::Probe { path });
        if let Ok(Checked::Probe(path)) = checked {
            self.referee.on_probe(path);
        }
        checked
    }

    fn send(&self, from: Option<u64>, max: u64) -> Decision {
        let (path, stream) = (self.paths[0], self.stream);
        Decision::Send { path, stream, from: from.map(Offset), max: Bytes(max) }
    }

    fn pass(&mut self, ms: u64) {
        self.world.now += Duration::from_millis(ms);
        self.referee.start_drain(self.world.now);
    }
}

fn span(start: u64, end: u64) -> Span {
    Span::new(Offset(start), Offset(end))
}

#[test]
fn a_path_is_probed_once_in_a_drain_and_again_in_the_next() {
    let mut scene = Scene::new();
    let [first, second] = scene.paths;
    scene.referee.start_drain(scene.world.now);
    assert_eq!(scene.probe(first), Ok(Checked::Probe(first)));
    assert_eq!(scene.probe(first), Err(Refusal::MustNotProbe(first)));
    assert_eq!(scene.probe(second), Ok(Checked::Probe(second)));
    // A full outbox interrupts; the same instant goes on with the same drain.
    scene.referee.start_drain(scene.world.now);
    assert_eq!(scene.probe(first), Err(Refusal::MustNotProbe(first)));
    scene.referee.end_drain();
    scene.referee.start_drain(scene.world.now);
    assert_eq!(scene.probe(first), Ok(Checked::Probe(first)));
    scene.pass(1);
    assert_eq!(scene.probe(first), Ok(Checked::Probe(first)));
}

#[test]
fn a_probe_that_was_not_sent_may_be_asked_for_again() {
    let mut scene = Scene::new();
    let probe = Decision::Probe { path: scene.paths[0] };
    assert!(scene.packet(probe).is_ok());
    assert!(scene.packet(probe).is_ok(), "the outbox was full");
}

#[test]
fn a_path_that_is_not_open_is_not_probed() {
    let mut scene = Scene::new();
    let path = scene.paths[0];
    let closings: [fn(&mut crate::PathView); 6] = [
        |path| path.state = crate::PathState::Suspect,
        |path| path.state = crate::PathState::Validating,
        |path| path.in_flight = path.cwnd,
        |path| path.release_at = Instant::from_nanos(1),
        |path| path.amplification_limited = true,
        |path| path.blocked = true,
    ];
    for close in closings {
        let before = scene.world.paths.clone();
        scene.world.set_path(path, close);
        assert_eq!(scene.probe(path), Err(Refusal::PathClosed(path)));
        scene.world.paths = before;
    }
    scene.world.paths.remove(path);
    assert_eq!(scene.probe(path), Err(Refusal::PathClosed(path)));
}

#[test]
fn a_fill_takes_frames_of_its_path_alone() {
    let mut scene = Scene::new();
    let [path, other] = scene.paths;
    let ask = Ask::Fill { path, space: Bytes(300) };
    let fill = scene.check(ask, scene.send(None, 1_200));
    let placement = Placement { stream: scene.stream, span: span(0, 300), copy: false };
    assert_eq!(fill, Ok(Checked::Frame(path, placement)));
    let probe = |path| Decision::Probe { path };
    assert_eq!(scene.check(ask, probe(path)), Err(Refusal::MustNotProbe(path)));
    assert_eq!(scene.check(ask, probe(other)), Err(Refusal::OtherPath(other)));
    let wait = Decision::Wait { until: Instant::from_nanos(9), on: None };
    assert_eq!(scene.check(ask, wait), Err(Refusal::MustNotWait));
    assert_eq!(scene.check(ask, Decision::Idle), Ok(Checked::Rest));
}

#[test]
fn bytes_are_cut_to_the_run_and_to_credit() {
    let mut scene = Scene::new();
    scene.world.place(scene.stream, span(1_000, 2_000), false);
    scene.world.conn.credit = Bytes(500);
    let (path, stream) = (scene.paths[0], scene.stream);
    let sent = |span| Ok(Checked::Frame(path, Placement { stream, span, copy: false }));
    assert_eq!(scene.packet(scene.send(None, 9_000)), sent(span(0, 1_000)));
    assert_eq!(scene.packet(scene.send(Some(2_000), 9_000)), sent(span(2_000, 2_500)));
    let refused = |refusal| Err(refusal);
    let not_pending = Refusal::NotPending(stream, Offset(1_500));
    assert_eq!(scene.packet(scene.send(Some(1_500), 9_000)), refused(not_pending));
    let nothing_left = Refusal::NothingLeft(stream);
    assert_eq!(scene.packet(scene.send(Some(2_500), 9_000)), refused(nothing_left));
    assert_eq!(scene.packet(scene.send(None, 0)), refused(nothing_left));
}

#[test]
fn copies_are_of_bytes_in_flight() {
    let mut scene = Scene::new();
    scene.world.place(scene.stream, span(0, 1_000), false);
    let (path, stream) = (scene.paths[0], scene.stream);
    let copy = |span| Decision::Copy { path, stream, span };
    let sent = Placement { stream, span: span(200, 1_000), copy: true };
    assert_eq!(scene.packet(copy(span(200, 1_100))), Ok(Checked::Frame(path, sent)));
    for bad in [span(1_000, 1_100), span(500, 500)] {
        assert_eq!(scene.packet(copy(bad)), Err(Refusal::NotInFlight(stream, bad)));
    }
}

#[test]
fn nothing_in_flight_allows_one_rest_of_a_round_trip_whatever_it_is_called() {
    let wait = Decision::Wait { until: Instant::from_nanos(u64::MAX), on: None };
    for rest in [wait, Decision::Idle] {
        let mut scene = Scene::new();
        for path in scene.paths {
            scene.world.set_path(path, |path| path.srtt = Some(Duration::from_millis(30)));
        }
        scene.pass(1);
        assert_eq!(scene.packet(rest), Ok(Checked::Rest));
        let limit = scene.world.now + Duration::from_millis(30);
        assert_eq!(scene.referee.wait_until(), Some(limit));
        scene.pass(29);
        assert_eq!(scene.packet(rest), Ok(Checked::Rest));
        scene.pass(1);
        assert_eq!(scene.packet(rest), Err(Refusal::MustNotWait));
        scene.referee.on_data_packet();
        assert_eq!(scene.packet(rest), Ok(Checked::Rest));
    }
}

/// A path that is to be used is paced for longer than the round trip of the backup path.
#[test]
fn who_spares_a_backup_path_may_rest_for_a_round_trip_of_the_others() {
    let mut scene = Scene::new();
    for (path, millis, status) in [(0, 400, PathStatus::Available), (1, 30, PathStatus::Backup)] {
        scene.world.set_path(scene.paths[path], |path| {
            path.srtt = Some(Duration::from_millis(millis));
            path.status = status;
        });
    }
    scene.pass(1);
    assert_eq!(scene.packet(Decision::Idle), Ok(Checked::Rest));
    scene.pass(399);
    assert_eq!(scene.packet(Decision::Idle), Ok(Checked::Rest));
    scene.pass(1);
    assert_eq!(scene.packet(Decision::Idle), Err(Refusal::MustNotWait));
}

/// The only path that is to be used is paced for longer than its round trip.
#[test]
fn who_waits_for_the_pacer_may_rest_until_it_lets_go() {
    let mut scene = Scene::new();
    let released = scene.world.now + Duration::from_millis(100);
    scene.world.set_path(scene.paths[0], |path| {
        path.srtt = Some(Duration::from_millis(30));
        path.release_at = released;
    });
    scene.world.set_path(scene.paths[1], |path| path.status = PathStatus::Backup);
    scene.pass(1);
    assert_eq!(scene.packet(Decision::Idle), Ok(Checked::Rest));
    assert_eq!(scene.referee.wait_until(), Some(released));
    scene.pass(98);
    assert_eq!(scene.packet(Decision::Idle), Ok(Checked::Rest));
    scene.pass(1);
    assert_eq!(scene.packet(Decision::Idle), Err(Refusal::MustNotWait));
}

#[test]
fn who_can_send_nothing_may_be_idle_for_ever() {
    let mut scene = Scene::new();
    scene.world.conn.credit = Bytes::ZERO;
    for _ in 0..10 {
        scene.pass(1_000);
        assert_eq!(scene.packet(Decision::Idle), Ok(Checked::Rest));
        assert_eq!(scene.referee.wait_until(), None);
    }
}

#[test]
fn the_engine_chooses_after_three_refusals_in_a_drain() {
    let mut referee = Referee::new();
    referee.start_drain(Instant::ZERO);
    let refusals: Vec<bool> = (0..4).map(|_| referee.on_refused()).collect();
    assert_eq!(refusals, [false, false, true, true]);
    referee.end_drain();
    referee.start_drain(Instant::ZERO);
    assert!(!referee.on_refused());
}
