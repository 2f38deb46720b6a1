use super::*;
use crate::conformance::FirstCome;
use crate::joint::Joint;
use crate::joint::testing::{Scene, sends};
use crate::key::Span;
use crate::path::{Bind, IdleProbe, MinRtt, Pats, Single};
use crate::reinject::ResendPath;
use crate::seam::decision::Decision;
use crate::seam::view::{PathStatus, Piece, SentPacket};
use quipu_base::{Duration, Instant, Offset, PathId};

fn span(start: u64, end: u64) -> Span {
    Span::new(Offset(start), Offset(end))
}

/// Plans everything for one path, whatever its window.
struct OnlyLater(PathKey);

impl PathPolicy for OnlyLater {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, _notes: &mut Notes) -> Choice {
        match view.paths.get(self.0).filter(|path| path.is_open(view.now)) {
            Some(path) => Choice::Now(path.key),
            None if parcel.committed.first().is_some_and(|&planned| planned >= Bytes(2_400)) => {
                Choice::Now(PathKey { slot: 1, id: PathId(1) })
            }
            None => Choice::Later(self.0),
        }
    }

    fn commit_limit(&self, _view: &View<'_>) -> Bytes {
        Bytes(6_000)
    }
}

/// Sends everything on one path at once.
struct Fixed(PathKey);

impl PathPolicy for Fixed {
    fn select(&mut self, _parcel: &Parcel<'_>, _view: &View<'_>, _notes: &mut Notes) -> Choice {
        Choice::Now(self.0)
    }

    fn commit_limit(&self, _view: &View<'_>) -> Bytes {
        Bytes::MAX
    }
}

/// Says `Wait` for a second to everything.
struct OnlyWait;

impl PathPolicy for OnlyWait {
    fn select(&mut self, _parcel: &Parcel<'_>, view: &View<'_>, _notes: &mut Notes) -> Choice {
        Choice::Wait { until: view.now + Duration::from_secs(1), on: None }
    }
}

fn scene(policy: impl PathPolicy + 'static) -> Scene<Pair> {
    scene_with(policy, ResendRules::default(), Pack::One)
}

fn scene_with(policy: impl PathPolicy + 'static, resend: ResendRules, pack: Pack) -> Scene<Pair> {
    Scene::new(Pair::new(Box::new(FirstCome::default()), Box::new(policy), resend, pack))
}

#[test]
fn bytes_go_in_order_on_the_path_named() {
    let mut scene = scene(MinRtt::default());
    let stream = scene.open(3_000);
    assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 0)));
    scene.place(scene.fast, stream, span(0, 1_200));
    assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 1_200)));
    scene.fill_window(scene.fast);
    assert_eq!(sends(scene.ask()), Some((scene.slow, stream, 1_200)));
}

#[test]
fn what_is_planned_for_a_full_path_is_skipped_by_an_open_one() {
    let mut scene = scene(OnlyLater(PathKey { slot: 0, id: PathId(0) }));
    let stream = scene.open(10_000);
    scene.fill_window(scene.fast);
    assert_eq!(sends(scene.ask()), Some((scene.slow, stream, 2_400)));
    assert_eq!(scene.joint.committed(scene.fast), Bytes(2_400));
    scene.place(scene.slow, stream, span(2_400, 3_600));
    scene.world.set_path(scene.fast, |path| path.in_flight = Bytes::ZERO);
    assert_eq!(
        scene.ask(),
        Decision::Send { path: scene.fast, stream, from: Some(Offset(0)), max: Bytes(2_400) }
    );
    scene.place(scene.fast, stream, span(0, 1_100));
    assert_eq!(scene.joint.committed(scene.fast), Bytes(1_300), "a cut leaves the rest planned");
}

#[test]
fn plans_reserve_credit_and_only_free_bytes_go_when_it_is_used_up() {
    let mut scene = scene(OnlyLater(PathKey { slot: 0, id: PathId(0) }));
    let other = scene.open(1_200);
    let stream = scene.open(10_000);
    scene.place(scene.slow, other, span(0, 1_200));
    scene.world.conn.credit = Bytes(2_400);
    scene.fill_window(scene.fast);
    assert!(matches!(scene.ask(), Decision::Wait { .. }), "all the credit is reserved");
    assert_eq!(scene.joint.ledger().reserved(), Bytes(2_400));
    scene.lose(other, span(0, 1_200), scene.slow);
    assert_eq!(sends(scene.ask()), Some((scene.slow, other, 0)));
    scene.place(scene.slow, other, span(0, 1_200));
    scene.world.set_path(scene.fast, |path| path.in_flight = Bytes::ZERO);
    assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 0)));
}

#[test]
fn plans_shrink_with_the_windows_that_bound_them() {
    let mut scene = scene(Pats::new(Bind::Early, 0.0, true, IdleProbe::default()));
    scene.open(1_000_000);
    scene.world.set_path(scene.slow, |path| path.srtt = Some(Duration::from_millis(900)));
    scene.fill_window(scene.fast);
    scene.ask();
    assert_eq!(scene.joint.ledger().total(), Bytes(24_000));
    for path in [scene.fast, scene.slow] {
        scene.world.set_path(path, |path| path.cwnd = Bytes(6_000));
        scene.tell(Event::PathMeasured(path));
    }
    scene.ask();
    assert!(scene.joint.ledger().total() <= Bytes(12_000));
}

#[test]
fn an_open_path_without_work_gets_the_newest_packet_planned() {
    let mut scene = scene(Pats::default());
    let stream = scene.open(30_000);
    scene.world.set_path(scene.slow, |path| path.srtt = Some(Duration::from_millis(900)));
    scene.fill_window(scene.fast);
    assert!(matches!(scene.ask(), Decision::Wait { .. }), "all is planned for the fast path");
    scene.world.set_path(scene.slow, |path| path.srtt = Some(Duration::from_millis(21)));
    scene.joint.planner.path = Box::new(Fixed(scene.slow));
    scene.tell(Event::Drained);
    assert_eq!(sends(scene.ask()), Some((scene.slow, stream, 28_800)));
}

#[test]
fn a_path_that_leaves_gives_its_plans_back() {
    let mut scene = scene(OnlyLater(PathKey { slot: 0, id: PathId(0) }));
    let stream = scene.open(10_000);
    scene.fill_window(scene.fast);
    scene.ask();
    let gone = scene.fast;
    scene.world.paths.remove(gone);
    scene.tell(Event::PathGone(gone));
    assert!(scene.joint.ledger().is_empty());
    let back = scene.joint.planner.stream.next(&scene.world.view(), &mut Notes::off());
    assert_eq!(back.map(|turn| turn.stream), Some(stream));
}

#[test]
fn a_late_acknowledgement_settles_planned_bytes() {
    let mut scene = scene(OnlyLater(PathKey { slot: 0, id: PathId(0) }));
    let stream = scene.open(2_400);
    scene.fill_window(scene.fast);
    assert!(matches!(scene.ask(), Decision::Wait { .. }));
    scene.world.streams.acknowledge(stream, span(0, 1_200), false, false);
    let piece = Piece { stream, span: span(0, 1_200), kind: Kind::Fresh };
    let packet = SentPacket {
        path: scene.slow,
        pn: quipu_base::PacketNumber(0),
        bytes: Bytes(1_240),
        sent_at: Instant::ZERO,
        pieces: &[piece],
    };
    scene.tell(Event::Acked(packet));
    assert_eq!(scene.joint.committed(scene.fast), Bytes(1_200));
}

#[test]
fn credit_that_grows_without_an_edge_is_seen() {
    let mut scene = scene(OnlyLater(PathKey { slot: 0, id: PathId(0) }));
    let streams = &mut scene.world.streams;
    let key = streams.open(Instant::ZERO, Default::default(), Bytes(1_200));
    streams.write(key, Bytes(5_000));
    scene.world.recount();
    scene.tell(Event::Opened(key));
    scene.tell(Event::Ready(key));
    scene.fill_window(scene.fast);
    assert!(matches!(scene.ask(), Decision::Wait { .. }), "all within credit is planned");
    scene.tell(Event::Drained);
    scene.world.streams.grant(key, Offset(10_000));
    assert_eq!(sends(scene.ask()), Some((scene.slow, key, 2_400)));
}

#[test]
fn lost_bytes_go_while_fresh_ones_wait() {
    let mut scene = scene(OnlyWait);
    let stream = scene.open(5_000);
    scene.place(scene.slow, stream, span(0, 2_400));
    assert!(matches!(scene.ask(), Decision::Wait { .. }));
    scene.lose(stream, span(1_200, 2_400), scene.slow);
    assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 1_200)));
}

#[test]
fn a_wait_ends_when_it_said() {
    let mut scene = scene(OnlyWait);
    let stream = scene.open(5_000);
    scene.place(scene.slow, stream, span(0, 1_200));
    let Decision::Wait { until, .. } = scene.ask() else { panic!("it waits") };
    scene.world.now = Instant::from_nanos(until.as_nanos() / 2);
    scene.tell(Event::Woken);
    assert!(matches!(scene.ask(), Decision::Wait { until: same, .. } if same == until));
    scene.world.now = until;
    scene.tell(Event::Woken);
    assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 1_200)));
}

#[test]
fn with_nothing_in_flight_a_wait_is_a_round_trip_at_most() {
    let mut scene = scene(OnlyWait);
    scene.open(5_000);
    let until = Instant::ZERO + Duration::from_millis(20);
    assert_eq!(scene.ask(), Decision::Wait { until, on: None });
}

#[test]
fn lost_bytes_avoid_a_path_that_does_not_answer() {
    let mut scene = scene(MinRtt::default());
    let stream = scene.open(5_000);
    scene.place(scene.fast, stream, span(0, 1_200));
    scene.lose(stream, span(0, 1_200), scene.fast);
    assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 0)));
    scene.world.set_path(scene.fast, |path| path.pto_count = 1);
    assert_eq!(sends(scene.ask()), Some((scene.slow, stream, 0)));
    scene.fill_window(scene.slow);
    assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 0)), "no other path is open");
}

#[test]
fn lost_bytes_take_the_open_path_longest_unused_if_the_rules_say_so() {
    let mut scene =
        scene_with(Fixed(PathKey { slot: 0, id: PathId(0) }), ResendRules::PICOQUIC, Pack::One);
    let stream = scene.open(5_000);
    let at = |ms: u64| Some(Instant::ZERO + Duration::from_millis(ms));
    scene.world.now = Instant::ZERO + Duration::from_millis(10);
    scene.place(scene.fast, stream, span(0, 1_200));
    scene.lose(stream, span(0, 1_200), scene.fast);
    scene.world.set_path(scene.fast, |path| (path.last_sent_at, path.pto_count) = (at(4), 3));
    scene.world.set_path(scene.slow, |path| path.last_sent_at = at(5));
    assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 0)), "origin or not");
    scene.world.set_path(scene.fast, |path| path.last_sent_at = at(6));
    assert_eq!(sends(scene.ask()), Some((scene.slow, stream, 0)));
    scene.world.set_path(scene.slow, |path| path.status = PathStatus::Backup);
    scene.world.set_path(scene.fast, |path| path.pto_count = 0);
    assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 0)), "backups stay idle");
    scene.place(scene.fast, stream, span(0, 1_200));
    assert_eq!(
        sends(scene.ask()),
        Some((scene.fast, stream, 1_200)),
        "fresh bytes as the policy picks"
    );
}

#[test]
fn any_open_path_may_be_combined_with_avoiding_the_origin() {
    let rules = ResendRules { path: ResendPath::Open, ..ResendRules::FIRST };
    let mut scene = scene_with(MinRtt::default(), rules, Pack::One);
    let stream = scene.open(5_000);
    scene.place(scene.fast, stream, span(0, 1_200));
    scene.lose(stream, span(0, 1_200), scene.fast);
    let later = scene.world.now + Duration::from_millis(1);
    scene.world.set_path(scene.slow, |path| path.last_sent_at = Some(later));
    assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 0)));
    scene.world.set_path(scene.fast, |path| path.pto_count = 1);
    assert_eq!(sends(scene.ask()), Some((scene.slow, stream, 0)));
    scene.fill_window(scene.slow);
    assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 0)), "no other path is open");
}

#[test]
fn lost_bytes_go_first_if_the_rules_say_so() {
    let rules = |first| ResendRules { first, ..ResendRules::default() };
    for first in [false, true] {
        let mut scene = scene_with(MinRtt::default(), rules(first), Pack::One);
        let early = scene.open(5_000);
        let late = scene.open(5_000);
        scene.place(scene.fast, late, span(0, 1_200));
        scene.lose(late, span(0, 1_200), scene.fast);
        let stream = if first { late } else { early };
        assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 0)));
    }
}

#[test]
fn a_packet_is_shared_only_if_many_streams_may_be_packed() {
    for pack in [Pack::One, Pack::Many] {
        let mut scene = scene_with(MinRtt::default(), ResendRules::default(), pack);
        let small = scene.open(300);
        let next = scene.open(5_000);
        scene.place(scene.fast, small, span(0, 300));
        let filled = scene.fill(scene.fast, 850);
        match pack {
            Pack::One => assert_eq!(filled, Decision::Idle),
            Pack::Many => assert_eq!(
                filled,
                Decision::Send {
                    path: scene.fast,
                    stream: next,
                    from: Some(Offset(0)),
                    max: Bytes(850)
                }
            ),
        }
    }
}

#[test]
fn a_single_path_is_waited_for_in_silence_and_replaced_when_gone() {
    let mut scene = scene(Single::new(PathId(1)));
    let stream = scene.open(5_000);
    assert_eq!(sends(scene.ask()), Some((scene.slow, stream, 0)));
    scene.fill_window(scene.slow);
    assert_eq!(scene.ask(), Decision::Idle);
    let gone = scene.slow;
    scene.world.paths.remove(gone);
    scene.tell(Event::PathGone(gone));
    assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 0)));
}

#[test]
fn an_idle_path_is_probed_once_while_data_flows_elsewhere() {
    let mut scene = scene(MinRtt::default());
    let stream = scene.open(50_000);
    let at = |ms: u64| Some(Instant::ZERO + Duration::from_millis(ms));
    scene.world.now = Instant::ZERO + Duration::from_secs(10);
    scene.world.set_path(scene.fast, |path| path.last_sent_at = at(9_999));
    scene.world.set_path(scene.slow, |path| path.last_sent_at = at(8_001));
    assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 0)));
    scene.world.set_path(scene.slow, |path| path.last_sent_at = at(8_000));
    assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 0)), "not due when last looked");
    scene.world.now = Instant::ZERO + Duration::from_millis(10_001);
    assert_eq!(scene.ask(), Decision::Probe { path: scene.slow });
    scene.world.set_path(scene.slow, |path| path.last_sent_at = at(10_001));
    assert_eq!(sends(scene.ask()), Some((scene.fast, stream, 0)));
}
