use proptest::prelude::*;
use quipu_base::{Offset, PathId, Rate};

use super::*;
use crate::joint::Joint;
use crate::joint::allotting::Allotting;
use crate::joint::lanes::{Bandwidth, DelayTerm, Estimator, Lane};
use crate::joint::planned::Planned;
use crate::joint::testing::{Scene, sends};
use crate::key::Span;
use crate::path::{IdleProbe, PathPolicy};
use crate::priority::NodeId;
use crate::reinject::ResendRules;
use crate::seam::decision::Decision;
use crate::stream::Pack;

type SecScene = Scene<Planned<Allotting<Sec>>>;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// 375 and 875 kB/s.
fn scene_of(sec: Sec, estimator: Estimator) -> SecScene {
    let probe = IdleProbe::new(Duration::ZERO);
    let joint = Allotting::new(sec, estimator, probe).planned(ResendRules::default(), Pack::One);
    let mut scene = Scene::new(joint);
    scene.world.set_path(scene.fast, |path| path.cwnd = Bytes(7_500));
    scene.world.set_path(scene.slow, |path| path.cwnd = Bytes(87_500));
    scene
}

fn scene(queue: Queue, clamp: Clamp, unknown: Unknown) -> SecScene {
    scene_of(Sec::new(queue, clamp, unknown, Seed::new(1)), Estimator::default())
}

fn plain() -> SecScene {
    scene(Queue::Pipelined, Clamp::Fill, Unknown::Turns)
}

/// Streams of known sizes that end in this order by fair sharing.
fn open_in_order(scene: &mut SecScene, sizes: &[u64]) -> Vec<StreamKey> {
    let weights = [256, 250, 1];
    let pairs = sizes.iter().zip(weights);
    pairs
        .map(|(&size, weight)| {
            let stream = scene.open_at(NodeId::ROOT, weight, size);
            scene.size(stream);
            stream
        })
        .collect()
}

/// All rows of the allotment, in bytes.
fn rows(scene: &mut SecScene) -> Vec<[u64; 2]> {
    scene.ask();
    let sec = &mut scene.joint.planner.allotter;
    while sec.work_out_row(&scene.world.view(), &mut Notes::off()) {}
    sec.left.chunks(2).map(|row| [row[0].0, row[1].0]).collect()
}

#[test]
fn streams_in_a_row_share_paths_as_in_the_sheet() {
    let mut scene = plain();
    open_in_order(&mut scene, &[100_000, 200_000, 50_000]);
    assert_eq!(rows(&mut scene), [[51_000, 49_000], [60_000, 140_000], [15_000, 35_000]]);
    // The last ends after 356 ms on both paths.
    assert_eq!(scene.joint.planner.allotter.waits, [ms(356 - 20), ms(356 - 100)]);
}

#[test]
fn the_papers_queues_grow_by_a_round_trip_per_stream() {
    let mut scene = scene(Queue::Paper, Clamp::Fill, Unknown::Turns);
    open_in_order(&mut scene, &[100_000, 200_000, 50_000]);
    assert_eq!(rows(&mut scene), [[51_000, 49_000], [81_000, 119_000], [36_000, 14_000]]);
    assert_eq!(scene.joint.planner.allotter.waits, [ms(508), ms(508)]);
}

#[test]
fn ends_are_156_316_and_356_ms_or_with_the_papers_queues_156_392_and_508() {
    for (queue, ends) in [(Queue::Pipelined, [156, 316, 356]), (Queue::Paper, [156, 392, 508])] {
        let mut scene = scene(queue, Clamp::Fill, Unknown::Turns);
        open_in_order(&mut scene, &[100_000, 200_000, 50_000]);
        let mut notes = Notes::on();
        let sec = &mut scene.joint.planner.allotter;
        let view = scene.world.view();
        let mut lanes = Lanes::default();
        lanes.look(Estimator::default(), false, &view);
        sec.renew(Cause::Paths, &lanes, &view);
        while sec.work_out_row(&view, &mut notes) {}
        let scores: Vec<f64> = notes.take().iter().map(|note| note.score).collect();
        assert_eq!(scores, ends.map(|end| f64::from(end) / 1e3));
    }
}

#[test]
fn a_stream_that_the_fast_path_ends_alone_stays_there() {
    let mut scene = plain();
    open_in_order(&mut scene, &[20_000]);
    assert_eq!(rows(&mut scene), [[20_000, 0]]);
    // 20 ms and 53.3 ms, rounded up to a nanosecond.
    let waits = &scene.joint.planner.allotter.waits;
    assert_eq!(waits[..], [Duration::from_nanos(53_333_334), Duration::ZERO]);
}

#[test]
fn less_than_a_packet_goes_where_it_ends_first() {
    let mut scene = plain();
    // The queue of the first two makes the slow path the earlier one by less than a packet's time.
    open_in_order(&mut scene, &[100_000, 200_000, 1_000]);
    assert_eq!(rows(&mut scene)[2], [0, 1_000]);
}

#[test]
fn the_papers_cut_leaves_nothing_below_zero() {
    let mut scene = scene(Queue::Pipelined, Clamp::Paper, Unknown::Turns);
    open_in_order(&mut scene, &[20_000, 100_000]);
    let rows = rows(&mut scene);
    assert_eq!(rows[0], [20_000, 0]);
    assert_eq!(rows[1].iter().sum::<u64>(), 100_000);
}

#[test]
fn the_end_can_be_the_arrival_and_the_bandwidth_the_delivery_rate() {
    let estimator = Estimator { delay: DelayTerm::Arrival, bandwidth: Bandwidth::Rate };
    let sec = Sec::new(Queue::Pipelined, Clamp::Fill, Unknown::Turns, Seed::new(1));
    let mut scene = scene_of(sec, estimator);
    let fast = scene.fast;
    scene.world.set_path(fast, |path| path.rate = Some(Rate::from_bytes_per_sec(125_000)));
    open_in_order(&mut scene, &[100_000]);
    // Level (100 + 125·0.01 + 875·0.05)/1,000 = 145 ms.
    assert_eq!(rows(&mut scene), [[125 * 135, 875 * 95]]);
}

#[test]
fn streams_go_in_the_order_of_fair_completion() {
    let mut scene = plain();
    // The example of the paper: 2, 1 and 2 MB at weights 32, 42 and 22.
    let keys = [(32, 2_000_000), (42, 1_000_000), (22, 2_000_000)]
        .map(|(weight, size)| scene.open_at(NodeId::ROOT, weight, size));
    for key in keys {
        scene.size(key);
    }
    scene.ask();
    assert_eq!(scene.joint.planner.allotter.order, [keys[1], keys[0], keys[2]]);
}

#[test]
fn a_path_carries_its_allotment_and_no_more() {
    let mut scene = plain();
    let stream = open_in_order(&mut scene, &[100_000])[0];
    let mut on = [0, 0];
    while let Some((path, sent)) = scene.send() {
        assert_eq!(sent, stream);
        on[path.index()] += 1;
    }
    // Six packets fill the fast window; 49,000 bytes are 41 packets.
    assert_eq!(on, [6, 41]);
    let left = scene.joint.planner.allotter().left(stream).map(<[Bytes]>::to_vec);
    assert_eq!(left, Some(vec![Bytes(51_000 - 7_200), Bytes::ZERO]));
    let until = scene.world.now + ms(10);
    assert_eq!(scene.ask(), Decision::Wait { until, on: Some(scene.fast) });
}

#[test]
fn open_paths_get_all_when_the_wait_ends() {
    let mut scene = plain();
    let stream = open_in_order(&mut scene, &[100_000])[0];
    while scene.send().is_some() {}
    scene.tell(Event::Drained);
    let wake_at = scene.joint.wake_at();
    assert_eq!(wake_at, Some(scene.world.now + ms(10)));
    scene.world.now += ms(9);
    scene.tell(Event::Woken);
    assert!(matches!(scene.ask(), Decision::Wait { .. }));
    scene.world.now += ms(1);
    scene.tell(Event::Woken);
    assert_eq!(scene.joint.wake_at(), None);
    assert_eq!(scene.send(), Some((scene.slow, stream)));
}

#[test]
fn nothing_is_limited_while_a_path_has_no_sample() {
    let mut scene = plain();
    let stream = open_in_order(&mut scene, &[20_000])[0];
    let slow = scene.slow;
    scene.world.set_path(slow, |path| path.srtt = None);
    scene.tell(Event::PathMeasured(slow));
    let mut on = [0, 0];
    while let Some((path, sent)) = scene.send() {
        assert_eq!(sent, stream);
        on[path.index()] += 1;
    }
    assert_eq!(on, [6, 11]);
}

#[test]
fn streams_of_unknown_size_take_turns_unless_what_is_buffered_counts() {
    for unknown in [Unknown::Turns, Unknown::Buffered] {
        let mut scene = scene(Queue::Pipelined, Clamp::Fill, unknown);
        let (first, second) = (scene.open(2_400), scene.open(3_600));
        let sent: Vec<StreamKey> =
            (0..4).filter_map(|_| scene.send().map(|(_, stream)| stream)).collect();
        match unknown {
            Unknown::Turns => assert_eq!(sent, [first, second, first, second]),
            Unknown::Buffered => assert_eq!(sent, [first, first, second, second]),
        }
    }
}

#[test]
fn turns_end_with_the_last_stream_of_unknown_size() {
    let mut scene = plain();
    let unknown = scene.open(50_000);
    let known = open_in_order(&mut scene, &[100_000])[0];
    scene.ask();
    let begun = scene.joint.planner.allotter.begun;
    assert!(scene.joint.planner.allotter.by_turns);
    scene.tell(Event::PathMeasured(scene.fast));
    scene.tell(Event::Drained);
    scene.ask();
    assert_eq!(scene.joint.planner.allotter.begun, begun, "nothing to work out");
    scene.world.streams.close(unknown);
    scene.tell(Event::Closed(unknown));
    scene.tell(Event::Drained);
    scene.ask();
    let left = scene.joint.planner.allotter().left(known).map(<[Bytes]>::to_vec);
    assert_eq!(left, Some(vec![Bytes(51_000), Bytes(49_000)]));
}

#[test]
fn lost_bytes_go_first_on_the_fast_path_whatever_is_allotted() {
    let mut scene = plain();
    let streams = open_in_order(&mut scene, &[20_000, 100_000]);
    scene.place(scene.slow, streams[1], Span::new(Offset(0), Offset(2_400)));
    scene.lose(streams[1], Span::new(Offset(0), Offset(1_200)), scene.slow);
    assert_eq!(sends(scene.ask()), Some((scene.fast, streams[1], 0)));
    scene.fill_window(scene.fast);
    assert_eq!(sends(scene.ask()), Some((scene.slow, streams[1], 0)));
}

#[test]
fn allotments_are_made_anew_once_per_batch_and_only_if_something_changed() {
    let mut scene = plain();
    open_in_order(&mut scene, &[100_000]);
    scene.send();
    let renewals = |scene: &SecScene| scene.joint.planner.renewals();
    let first = renewals(&scene);
    while scene.send().is_some() {}
    scene.tell(Event::Drained);
    scene.ask();
    assert_eq!(renewals(&scene), first, "nothing but sending happened");
    scene.tell(Event::PathMeasured(scene.fast));
    scene.tell(Event::PathMeasured(scene.slow));
    scene.ask();
    scene.ask();
    assert_eq!(renewals(&scene), first + 1);
}

#[test]
fn fixed_quotas_hold_while_estimates_move() {
    let moved = |quotas: Quotas| {
        let sec = Sec::new(Queue::Pipelined, Clamp::Fill, Unknown::Turns, Seed::new(1));
        let mut scene = scene_of(sec.with_quotas(quotas), Estimator::default());
        open_in_order(&mut scene, &[100_000]);
        let before = rows(&mut scene);
        scene.world.set_path(scene.slow, |path| path.cwnd = Bytes(8_750));
        scene.tell(Event::Drained);
        scene.tell(Event::PathMeasured(scene.slow));
        (before, rows(&mut scene))
    };
    let (before, after) = moved(Quotas::Fixed);
    assert_eq!(before, after);
    let (before, after) = moved(Quotas::Renewed);
    assert!(after[0][0] > before[0][0], "the fast path gets more: {before:?}, {after:?}");
}

#[test]
fn in_mid_batch_an_old_allotment_holds_until_it_leaves_a_path_open() {
    let mut scene = plain();
    open_in_order(&mut scene, &[100_000]);
    scene.send();
    let first = scene.joint.planner.renewals();
    scene.tell(Event::PathMeasured(scene.fast));
    for _ in 0..20 {
        scene.send();
    }
    assert_eq!(scene.joint.planner.renewals(), first);
    while scene.send().is_some() {}
    assert_eq!(scene.joint.planner.renewals(), first + 1);
}

#[test]
fn a_path_that_leaves_gives_its_bytes_to_the_others() {
    let mut scene = plain();
    let stream = open_in_order(&mut scene, &[100_000])[0];
    scene.send();
    scene.world.paths.remove(scene.fast);
    scene.tell(Event::PathGone(scene.fast));
    assert_eq!(sends(scene.ask()).map(|sent| sent.0), Some(scene.slow));
    let left = scene.joint.planner.allotter().left(stream).map(<[Bytes]>::to_vec);
    assert_eq!(left, Some(vec![Bytes(98_800)]));
    let third = scene.world.add_path(PathId(2)).unwrap();
    scene.tell(Event::PathUp(third));
    scene.ask();
    let left = scene.joint.planner.allotter().left(stream).map(<[Bytes]>::to_vec);
    assert_eq!(left, Some(vec![NO_LIMIT, NO_LIMIT]));
}

#[test]
fn blocked_streams_neither_count_nor_queue() {
    let mut scene = plain();
    let streams = open_in_order(&mut scene, &[100_000, 200_000]);
    // Out of stream credit.
    let (planner, view) = (&mut scene.joint.planner, scene.world.view());
    planner.on_event(&Event::Stopped(streams[0]), &view);
    planner.renew(Cause::Batch, &view);
    assert_eq!(scene.joint.planner.allotter.order, [streams[1]]);
}

/// Delay and rate of a path in seconds and bytes per second.
type Fluid = (f64, f64);

/// The split of a stream over paths with these delays, found by halving an interval.
fn halved(size: f64, paths: &[Fluid]) -> Vec<f64> {
    let shares = |level: f64| -> Vec<f64> {
        paths.iter().map(|(delay, rate)| (rate * (level - delay)).max(0.0)).collect()
    };
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        match shares(middle).iter().sum::<f64>() < size {
            true => low = middle,
            false => high = middle,
        }
    }
    shares(high)
}

/// Allots streams of these sizes, opened in this order and equal in weight, over lanes.
fn allotted(queue: Queue, sizes: &[u64], lanes: &Lanes) -> (Vec<u64>, Vec<Vec<f64>>) {
    let mut world = crate::conformance::World::new(Bytes(1 << 40));
    let mut sec = Sec::new(queue, Clamp::Fill, Unknown::Buffered, Seed::new(1));
    for &size in sizes {
        let stream = world.streams.open(Instant::ZERO, Default::default(), Bytes(1 << 40));
        world.streams.write(stream, Bytes(size));
        sec.on_event(&Event::Opened(stream), &world.view());
        sec.on_event(&Event::Ready(stream), &world.view());
    }
    sec.renew(Cause::Streams, lanes, &world.view());
    while sec.work_out_row(&world.view(), &mut Notes::off()) {}
    let in_order = sec.totals.iter().map(|total| total.0).collect();
    let rows = sec.left.chunks(lanes.lanes.len());
    (in_order, rows.map(|row| row.iter().map(|left| left.0 as f64).collect()).collect())
}

proptest! {
    #[test]
    fn rows_are_those_of_a_fluid_model_that_serves_stream_after_stream(
        sizes in prop::collection::vec(1_200..2_000_000u64, 1..6),
        paths in prop::collection::vec((1..300u64, 10_000..5_000_000u64), 1..5),
        paper in any::<bool>(),
    ) {
        let lane = |(slot, &(delay, rate)): (u8, &(u64, u64))| Lane {
            path: PathKey { slot, id: PathId(u32::from(slot)) },
            pipe: Pipe::new(ms(delay), Rate::from_bytes_per_sec(rate)),
        };
        let lanes = Lanes {
            lanes: (0..).zip(&paths).map(lane).collect(),
            limited: true,
            packet: Bytes(1_200),
        };
        let queue = if paper { Queue::Paper } else { Queue::Pipelined };
        let (order, rows) = allotted(queue, &sizes, &lanes);
        prop_assert!(order.is_sorted(), "equal weights: the shortest first");
        let mut ahead: Vec<Fluid> =
            paths.iter().map(|&(delay, rate)| (delay as f64 / 1e3, rate as f64)).collect();
        for (row, (&size, shares)) in order.iter().zip(&rows).enumerate() {
            prop_assert_eq!(shares.iter().sum::<f64>(), size as f64);
            let model = halved(size as f64, &ahead);
            for (share, expected) in shares.iter().zip(&model) {
                // A byte of rounding per path and row, and what it moves in the rows behind.
                let rounding = (4 * paths.len() * (row + 1)) as f64;
                prop_assert!((share - expected).abs() <= rounding, "{shares:?}, not {model:?}");
            }
            for ((wait, &share), &(delay, _)) in ahead.iter_mut().zip(shares).zip(&paths) {
                if share > 0.0 {
                    wait.0 += share / wait.1 + if paper { delay as f64 / 1e3 } else { 0.0 };
                }
            }
        }
    }
}
