use super::*;
use crate::joint::planned::Planned;
use crate::joint::testing::Scene;
use crate::key::Span;
use crate::priority::NodeId;
use crate::reinject::ResendRules;
use crate::seam::decision::Decision;
use crate::stream::Pack;
use proptest::prelude::*;
use quipu_base::{Duration, Offset};

const NEVER: IdleProbe = IdleProbe::new(Duration::ZERO);

fn scene(mode: SaEcfMode, pin: bool, visits: usize) -> Scene<Planned<SaEcf>> {
    let planner = SaEcf::new(mode, Ecf::BETA, pin, visits, NEVER);
    Scene::new(Planned::of(planner, ResendRules::default(), Pack::One))
}

fn waits(decision: Decision) -> bool {
    matches!(decision, Decision::Wait { .. })
}

#[test]
fn bytes_until_done_are_those_of_all_while_a_stream_gets_its_share() {
    let until_done = |share, turn| SaEcf::until_done(Bytes(12_000), share, turn, Bytes(1_200));
    assert_eq!(until_done(0.25, Bytes(1_200)), 44_400.0);
    assert_eq!(until_done(1.0, Bytes(1_200)), 12_000.0);
    assert_eq!(until_done(0.25, Bytes(12_000)), 12_000.0, "its turn suffices");
}

#[test]
fn the_fast_path_takes_the_stream_whose_turn_it_is() {
    let mut scene = scene(SaEcfMode::Paper, false, 0);
    let light = scene.open_at(NodeId::ROOT, 1, 50_000);
    let heavy = scene.open_at(NodeId::ROOT, 2, 50_000);
    let fast = scene.fast;
    let order: Vec<_> = (0..6).map(|_| scene.send()).collect();
    assert_eq!(order, [light, heavy, heavy, light, heavy, heavy].map(|it| Some((fast, it))));
}

#[test]
fn a_stream_with_much_to_send_before_its_end_leaves_the_full_fast_path() {
    // A window of 12,000 bytes per 20 ms against 100 ms: 48,000 bytes end on the fast path then.
    let mut scene = scene(SaEcfMode::Paper, false, 0);
    let long = scene.open_at(NodeId::ROOT, 16, 60_000);
    let (fast, slow) = (scene.fast, scene.slow);
    scene.fill_window(fast);
    assert_eq!(scene.send(), Some((slow, long)));
    let short = scene.open_at(NodeId::ROOT, 16, 24_000);
    assert_eq!(scene.send(), Some((slow, long)), "it has the turn");
    let planner = &scene.joint.planner;
    let view = scene.world.view();
    let backlog = |stream| planner.backlog(view.streams.get(stream).unwrap(), Bytes(1_200), &view);
    // Its turn of 16 packets does not suffice for the short one: it needs as many of the other's.
    assert_eq!((backlog(long), backlog(short)), (Bytes(81_600), Bytes(46_800)));
}

#[test]
fn a_stream_that_waits_is_passed_over_without_losing_its_turn() {
    let mut scene = scene(SaEcfMode::Paper, false, 0);
    let short = scene.open_at(NodeId::ROOT, 16, 12_000);
    let (fast, slow) = (scene.fast, scene.slow);
    scene.world.set_path(slow, |path| path.srtt = Some(Duration::from_millis(90)));
    scene.fill_window(fast);
    assert!(waits(scene.ask()));
    let long = scene.open_at(NodeId::ROOT, 16, 200_000);
    assert_eq!(scene.send(), Some((slow, long)));
    scene.world.set_path(fast, |path| path.in_flight = Bytes::ZERO);
    assert_eq!(scene.send(), Some((fast, short)));
}

#[test]
fn lost_bytes_of_a_waiting_stream_do_not_wait() {
    let mut scene = scene(SaEcfMode::Paper, false, 0);
    let stream = scene.open(12_000);
    let (fast, slow) = (scene.fast, scene.slow);
    scene.world.set_path(slow, |path| path.srtt = Some(Duration::from_millis(90)));
    scene.send();
    scene.fill_window(fast);
    assert!(waits(scene.ask()));
    scene.lose(stream, Span::new(Offset(0), Offset(1_200)), fast);
    assert_eq!(scene.send(), Some((slow, stream)));
    assert!(waits(scene.ask()));
}

#[test]
fn no_more_streams_are_looked_at_than_allowed() {
    for (visits, expected) in [(0, true), (2, true), (1, false)] {
        let mut scene = scene(SaEcfMode::Paper, false, visits);
        scene.open_at(NodeId::ROOT, 16, 12_000);
        scene.open_at(NodeId::ROOT, 16, 200_000);
        scene.world.set_path(scene.slow, |path| path.srtt = Some(Duration::from_millis(90)));
        scene.fill_window(scene.fast);
        assert_eq!(scene.send().is_some(), expected, "{visits}");
    }
}

#[test]
fn a_pinned_stream_waits_for_its_path_until_that_fails() {
    let mut scene = scene(SaEcfMode::Paper, true, 0);
    let stream = scene.open(200_000);
    let (fast, slow) = (scene.fast, scene.slow);
    assert_eq!(scene.send(), Some((fast, stream)));
    scene.fill_window(fast);
    assert!(waits(scene.ask()));
    let other = scene.open(200_000);
    assert_eq!(scene.send(), Some((slow, other)));
    scene.world.set_path(fast, |path| path.in_flight = Bytes::ZERO);
    assert_eq!(scene.send(), Some((fast, stream)));
    scene.world.set_path(fast, |path| path.pto_count = 1);
    scene.fill_window(fast);
    assert_eq!(scene.send(), Some((slow, stream)), "it does not answer");
    scene.world.set_path(fast, |path| {
        path.in_flight = Bytes::ZERO;
        path.pto_count = 0;
    });
    assert_eq!(scene.send(), Some((slow, stream)), "it has another path now");
}

#[test]
fn as_built_a_long_stream_waits_too() {
    // Of a backlog of 200,000 bytes 32 KiB count, and a window of that for the fast path.
    for (mode, waiting) in [(SaEcfMode::Paper, false), (SaEcfMode::AsBuilt, true)] {
        let mut scene = scene(mode, false, 0);
        scene.open(200_000);
        scene.fill_window(scene.fast);
        assert_eq!(waits(scene.ask()), waiting);
    }
}

#[test]
fn as_built_a_look_costs_a_token() {
    // 20 against 30 ms: what counts as a window ends on the fast path later, so nothing waits.
    let mut scene = scene(SaEcfMode::AsBuilt, false, 0);
    let first = scene.open_at(NodeId::ROOT, 3, 60_000);
    let second = scene.open_at(NodeId::ROOT, 4, 60_000);
    let (fast, slow) = (scene.fast, scene.slow);
    scene.world.set_path(slow, |path| {
        path.srtt = Some(Duration::from_millis(30));
        path.cwnd = Bytes(60_000);
    });
    scene.fill_window(fast);
    // The first has 3 tokens: a look and a packet, then a look, which gives the turn to the second.
    // That has 4: a packet, a look and a packet, a look; and so on.
    let order: Vec<_> = (0..6).map(|_| scene.send()).collect();
    let expected = [first, second, second, first, first, second];
    assert_eq!(order, expected.map(|it| Some((slow, it))));
}

#[test]
fn as_built_half_of_the_streams_that_keep_their_turn_are_looked_at() {
    for (weight, looked_at) in [(16, 2), (1, 4)] {
        let mut scene = scene(SaEcfMode::AsBuilt, false, 0);
        for _ in 0..4 {
            scene.open_at(NodeId::ROOT, weight, 60_000);
        }
        scene.fill_window(scene.fast);
        let planner = &mut scene.joint.planner;
        planner.look(&scene.world.view(), &mut Notes::off());
        let waiting =
            scene.world.streams.keys().filter(|&stream| planner.looks.waits(stream, scene.fast));
        assert_eq!(waiting.count(), looked_at);
    }
}

/// The published walk, over rounds of which each stream looked at is taken out.
struct Literal {
    waiting: Vec<(StreamKey, PathKey)>,
}

impl Literal {
    fn decide(&mut self, order: &QuantumWrr, view: &View<'_>) -> Option<(StreamKey, PathKey)> {
        let rank = |path: &&PathView| (path.srtt, path.key);
        let fast = view.paths.usable().min_by_key(rank)?;
        let slow = view.paths.open(view.now).min_by_key(rank)?;
        let nanos = |time: Option<Duration>| time.unwrap_or(Duration::ZERO).as_nanos() as f64;
        let (rtt_f, rtt_s) = (nanos(fast.srtt), nanos(slow.srtt));
        let delta = nanos(Some(fast.rttvar)).max(nanos(Some(slow.rttvar)));
        let packet = slow.payload;
        let mut rest = order.clone();
        while let Some(turn) = rest.next(view, &mut Notes::off()) {
            let stream = turn.stream;
            if fast.key == slow.key {
                return Some((stream, fast.key));
            }
            rest.on_event(&Event::Stopped(stream), view);
            if order.share(stream) == 0.0 {
                continue;
            }
            let shown = view.streams.get(stream)?;
            let remaining = shown.written.since(shown.high_sent);
            let turn = Bytes(packet.0 * order.packets_left(stream));
            let done = SaEcf::until_done(remaining, order.share(stream), turn, packet);
            let k = done.min(view.conn.unsent.0 as f64).floor();
            let (windows_f, windows_s) = (k / fast.cwnd.0 as f64, k / slow.cwnd.0 as f64);
            let waited = self.waiting.contains(&(stream, fast.key));
            let patience = if waited { 1.25 } else { 1.0 };
            if (1.0 + windows_f) * rtt_f < patience * (rtt_s + delta) {
                if windows_s * rtt_s >= 2.0 * rtt_f + delta {
                    self.waiting.retain(|&(other, _)| other != stream);
                    self.waiting.push((stream, fast.key));
                    continue;
                }
            } else {
                self.waiting.retain(|&(other, _)| other != stream);
            }
            return Some((stream, slow.key));
        }
        None
    }
}

#[derive(Clone, Debug)]
enum Move {
    Open { parent: u8, weight: u16, bytes: u64 },
    Measure { path: u8, rtt: u64, var: u64, window: u64 },
    InFlight { path: u8, packets: u64 },
    Send,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        2 => (0..4u8, 1..6u16, 1..80_000u64)
            .prop_map(|(parent, weight, bytes)| Move::Open { parent, weight, bytes }),
        1 => (0..2u8, 5..200u64, 0..20u64, 4..60u64)
            .prop_map(|(path, rtt, var, window)| Move::Measure { path, rtt, var, window }),
        2 => (0..2u8, 0..60u64).prop_map(|(path, packets)| Move::InFlight { path, packets }),
        6 => Just(Move::Send),
    ];
    prop::collection::vec(one, 1..60)
}

proptest! {
    #[test]
    fn decisions_are_those_of_the_literal_walk(moves in moves()) {
        let mut scene = scene(SaEcfMode::Paper, false, 0);
        let mut literal = Literal { waiting: Vec::new() };
        let mut nodes = Vec::new();
        for step in moves {
            let paths = [scene.fast, scene.slow];
            match step {
                Move::Open { parent, weight, bytes } => {
                    let parent = nodes.get(usize::from(parent)).copied().unwrap_or(NodeId::ROOT);
                    let stream = scene.open_at(parent, weight, bytes);
                    nodes.push(NodeId(stream.id.0));
                }
                Move::Measure { path, rtt, var, window } => {
                    let key = paths[usize::from(path)];
                    scene.world.set_path(key, |path| {
                        path.srtt = Some(Duration::from_millis(rtt));
                        path.rttvar = Duration::from_millis(var);
                        path.cwnd = Bytes(window * 1_200);
                    });
                    scene.tell(Event::PathMeasured(key));
                }
                Move::InFlight { path, packets } => {
                    let key = paths[usize::from(path)];
                    scene.world.set_path(key, |path| path.in_flight = Bytes(packets * 1_200));
                    scene.tell(Event::PathMeasured(key));
                }
                Move::Send => {
                    let order = scene.joint.planner.order.clone();
                    let expected = literal.decide(&order, &scene.world.view());
                    let planner = &mut scene.joint.planner;
                    let found = planner.next(None, &scene.world.view(), &mut Notes::off());
                    let answer = planner.looks.answer.filter(|_| found.is_some());
                    let sent = answer.and_then(|answer| match answer.choice {
                        Some(Choice::Now(path)) => Some((answer.stream, path)),
                        _ => None,
                    });
                    prop_assert_eq!(sent, expected);
                    if sent.is_some() {
                        scene.send();
                    }
                }
            }
        }
    }
}
