use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::priority::{NodeId, PriorityEdit};
use crate::stream::gps::GpsNode;
use crate::stream::testing::{Driver, runs};

/// The example of "A Multipath QUIC Scheduler for Mobile HTTP/2": at 1 MB/s fair sharing ends after
/// 4.375, 2.286 and 5 s, this order after 3, 1 and 5 s.
#[test]
fn three_streams_end_as_in_the_paper() {
    let mut driver = Driver::new(FairSojourn::new());
    for (id, weight, bytes) in [(1, 32, 2_000_000), (2, 42, 1_000_000), (3, 22, 2_000_000)] {
        driver.open_at(id, 0, weight, bytes);
    }
    let notes = driver.notes();
    assert_eq!((notes[0].0, notes[0].1), ("end (estimated)", 2));
    assert!((notes[0].2 - 16e6 / 7.0).abs() < 1e-6);
    let ended = driver.drain(1_000);
    assert_eq!(ended, BTreeMap::from([(2, 1_000_000), (1, 3_000_000), (3, 5_000_000)]));
}

#[test]
fn a_stream_that_comes_finds_its_place() {
    let mut driver = Driver::new(FairSojourn::new());
    driver.open_at(4, 0, 16, 5_000);
    driver.packets(2, 1_000);
    driver.open_at(8, 0, 32, 4_000);
    driver.open_at(12, 0, 16, 4_000);
    // 3 kB at 16, 4 kB at 32, 4 kB at 16.
    assert_eq!(runs(&driver.packets(99, 1_000)), [(8, 4), (4, 3), (12, 4)]);
}

#[test]
fn a_blocked_stream_is_passed_over_and_comes_back_to_its_place() {
    let mut driver = Driver::new(FairSojourn::new());
    for (id, bytes) in [(4, 3_000), (8, 4_000), (12, 5_000)] {
        driver.open_at(id, 0, 16, bytes);
    }
    assert_eq!(driver.packets(1, 1_000), [4]);
    driver.block(4);
    assert_eq!(driver.packets(2, 1_000), [8, 8]);
    driver.unblock(4);
    assert_eq!(runs(&driver.packets(99, 1_000)), [(4, 2), (8, 2), (12, 5)]);
}

#[test]
fn sizes_weights_and_writes_move_streams() {
    let mut driver = Driver::new(FairSojourn::new());
    driver.open_at(4, 0, 16, 3_000);
    driver.open_at(8, 0, 16, 5_000);
    assert_eq!(driver.peek().map(|turn| turn.stream.id.0), Some(4));
    driver.set_size(4, 9_000);
    assert_eq!(driver.notes(), [("end (estimated)", 8, 10_000.0)]);
    driver.edit(&PriorityEdit::Weight { node: NodeId(1_004), weight: 48 }, None);
    assert_eq!(driver.peek().map(|turn| turn.stream.id.0), Some(4));
    driver.create(12, None);
    driver.write(12, 1_000, false);
    assert_eq!(driver.peek().map(|turn| turn.stream.id.0), Some(12));
    driver.write(12, 9_000, false);
    assert_eq!(driver.peek().map(|turn| turn.stream.id.0), Some(4));
}

#[test]
fn a_flat_order_outlives_the_end_of_a_batch() {
    let mut driver = Driver::new(FairSojourn::new());
    driver.open_at(4, 0, 16, 3_000);
    driver.open_at(8, 0, 16, 5_000);
    driver.packets(1, 1_000);
    driver.tell(&Event::Drained);
    assert!(!driver.policy.stale);
    driver.node(1, 0, 16);
    driver.open_at(12, 1, 16, 5_000);
    driver.open_at(16, 1, 16, 5_000);
    driver.tell(&Event::Drained);
    driver.packets(1, 1_000);
    assert!(!driver.policy.stale);
    driver.tell(&Event::Drained);
    assert!(driver.policy.stale);
}

#[test]
fn plans_of_all_that_streams_have_go_back_in_their_order() {
    let mut driver = Driver::new(FairSojourn::new());
    for (id, bytes) in [(0, 2_000), (4, 1_000), (8, 3_000)] {
        driver.open_at(id, 0, 16, bytes);
    }
    let plans: Vec<_> = (0..6).map(|_| driver.take(1_000)).collect();
    let order = driver.policy.order();
    for taken in plans.into_iter().rev() {
        driver.give_back(taken);
    }
    assert_eq!(driver.policy.order(), order);
    assert_eq!(driver.packets(6, 1_000), [4, 0, 0, 8, 8, 8]);
    // Who comes while something is planned calls it back.
    driver.open(12, 1_000);
    driver.take(500);
    driver.open(16, 2_000);
    assert_eq!(driver.policy.order(), order + 1);
}

/// Trees of streams and groups: (parent's index, weight, bytes; 0: a group).
fn trees() -> impl Strategy<Value = Vec<(Option<usize>, u16, u64)>> {
    let node = (any::<prop::sample::Index>(), any::<bool>(), 1..=256u16, 0..40_000u64);
    prop::collection::vec(node, 1..10).prop_map(|nodes| {
        let node = |(index, (parent, at_root, weight, bytes)): (usize, _)| {
            let (parent, at_root): (prop::sample::Index, bool) = (parent, at_root);
            ((index > 0 && !at_root).then(|| parent.index(index)), weight, bytes)
        };
        nodes.into_iter().enumerate().map(node).collect()
    })
}

fn id(index: usize) -> u64 {
    (index as u64 + 1) * 4
}

fn driver_of(tree: &[(Option<usize>, u16, u64)]) -> Driver<FairSojourn> {
    let mut driver = Driver::new(FairSojourn::new());
    for (index, &(parent, weight, bytes)) in tree.iter().enumerate() {
        let parent = parent.map_or(0, |parent| 1_000 + id(parent));
        if bytes > 0 {
            driver.open_at(id(index), parent, weight, bytes);
        } else {
            driver.node(1_000 + id(index), parent, weight);
        }
    }
    driver
}

proptest! {
    /// Fair Sojourn: no stream ends later than under fair sharing.
    #[test]
    fn no_stream_ends_later_than_under_fair_sharing(tree in trees()) {
        let ended = driver_of(&tree).drain(1_200);
        let nodes: Vec<GpsNode> = tree
            .iter()
            .map(|&(parent, weight, bytes)| GpsNode { parent, weight, bytes: Bytes(bytes) })
            .collect();
        for end in gps::finish(&nodes) {
            let ended = ended[&id(end.node)] as f64;
            prop_assert!(ended <= end.served + 1e-3, "{}: {ended} {}", end.node, end.served);
        }
    }

    /// On a flat tree the order is that of what remains over weight, however much was sent.
    #[test]
    fn a_flat_order_is_that_of_remaining_over_weight(
        streams in prop::collection::vec((1..=256u16, 1..40_000u64), 1..12),
        before in 0..20usize,
    ) {
        let tree: Vec<_> = streams.iter().map(|&(weight, bytes)| (None, weight, bytes)).collect();
        let mut driver = driver_of(&tree);
        driver.packets(before, 1_200);
        driver.policy.stale = true;
        let mut expected: Vec<(u64, u64, u64)> = (0..streams.len())
            .map(|index| (id(index), u64::from(streams[index].0), driver.left(driver.key(id(index)))))
            .filter(|&(_, _, left)| left > 0)
            .collect();
        expected.sort_by(|a, b| (a.2 * b.1).cmp(&(b.2 * a.1)).then(a.0.cmp(&b.0)));
        let order: Vec<u64> = runs(&driver.packets(1_000, 1_200)).iter().map(|run| run.0).collect();
        let expected: Vec<u64> = expected.iter().map(|stream| stream.0).collect();
        prop_assert_eq!(order, expected);
    }
}
