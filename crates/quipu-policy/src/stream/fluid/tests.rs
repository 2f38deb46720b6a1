use std::collections::BTreeMap;

use proptest::prelude::*;
use quipu_base::Bytes;

use super::*;
use crate::stream::gps::{self, GpsNode};
use crate::stream::testing::Driver;

const PAYLOAD: u64 = 1_200;

/// The example of "A Multipath QUIC Scheduler for Mobile HTTP/2": 2, 1, 2 MB at 1 MB/s.
#[test]
fn three_streams_end_within_a_packet_each_of_the_ideal() {
    let mut driver = Driver::new(FluidWrr::new());
    driver.open_at(4, 0, 32, 2_000_000);
    driver.open_at(8, 0, 42, 1_000_000);
    driver.open_at(12, 0, 22, 2_000_000);
    let ends = driver.drain(PAYLOAD);
    for (id, seconds) in [(4, 4.375), (8, 16.0 / 7.0), (12, 5.0)] {
        let difference = (ends[&id] as f64 - seconds * 1e6).abs();
        assert!(difference <= 2.0 * PAYLOAD as f64, "stream {id}: {difference} bytes");
    }
}

#[test]
fn ties_go_to_the_lower_identifier() {
    let mut driver = Driver::new(FluidWrr::new());
    for id in [12, 4, 8] {
        driver.open(id, 10_000);
    }
    assert_eq!(driver.packets(6, 1_000), [4, 8, 12, 4, 8, 12]);
}

#[test]
fn weights_divide_and_a_ready_parent_goes_first() {
    let mut driver = Driver::new(FluidWrr::new());
    driver.open_at(4, 0, 30, 2_000);
    driver.open_at(8, 0, 10, 100_000);
    driver.open_at(12, 1_004, 1, 100_000);
    let order = driver.packets(12, 1_000);
    assert_eq!(order.iter().filter(|&&id| id == 8).count(), 3, "{order:?}");
    assert_eq!(order.iter().filter(|&&id| id == 4).count(), 2);
    let parent_ends = order.iter().rposition(|&id| id == 4);
    let child_starts = order.iter().position(|&id| id == 12);
    assert!(parent_ends < child_starts);
}

#[test]
fn who_was_blocked_is_owed_nothing() {
    let mut driver = Driver::new(FluidWrr::new());
    driver.open(4, 100_000);
    driver.open(8, 100_000);
    driver.packets(2, 1_000);
    driver.block(4);
    driver.packets(20, 1_000);
    driver.unblock(4);
    let order = driver.packets(10, 1_000);
    // It starts where the last service started: at most one packet ahead.
    assert!(order.iter().filter(|&&id| id == 4).count() <= 6, "{order:?}");
}

#[test]
fn a_plan_taken_back_leaves_no_debt() {
    let mut driver = Driver::new(FluidWrr::new());
    driver.open_at(4, 0, 3, 100_000);
    driver.open_at(8, 0, 1, 100_000);
    driver.packets(5, 1_000);
    let expected: Vec<u64> = {
        let mut plans: Vec<_> = (0..6).map(|_| driver.take(1_000)).collect();
        let order = plans.iter().map(|taken| taken.stream.id.0).collect();
        while let Some(taken) = plans.pop() {
            driver.give_back(taken);
        }
        order
    };
    assert_eq!(driver.packets(6, 1_000), expected);
}

#[test]
fn new_priorities_of_active_streams_concern_what_is_planned() {
    let mut driver = Driver::new(FluidWrr::new());
    driver.open_at(4, 0, 3, 100_000);
    driver.open_at(8, 0, 3, 100_000);
    let before = driver.policy.order();
    let node = crate::priority::NodeId(1_004);
    driver.edit(&crate::priority::PriorityEdit::Weight { node, weight: 200 }, None);
    assert!(driver.policy.order() > before);
    let order = driver.packets(40, 1_000);
    assert!(order.iter().filter(|&&id| id == 8).count() <= 2);
}

/// A tree in which some nodes only group: (parent among the nodes before or the root, weight,
/// kilobytes).
fn trees() -> impl Strategy<Value = Vec<(Option<usize>, u16, u64)>> {
    let node = (any::<prop::sample::Index>(), any::<bool>(), 1..=256u16, 0..60u64);
    prop::collection::vec(node, 1..14).prop_map(|nodes| {
        let mut tree: Vec<(Option<usize>, u16, u64)> = Vec::new();
        for (index, (parent, at_root, weight, kilobytes)) in nodes.into_iter().enumerate() {
            let parent = (index > 0 && !at_root).then(|| parent.index(index));
            tree.push((parent, weight, kilobytes * 1_000));
        }
        tree
    })
}

/// Bytes got by each subtree.
fn subtree_bytes(tree: &[(Option<usize>, u16, u64)], got: &[u64]) -> Vec<u64> {
    let mut sums = got.to_vec();
    for index in (0..tree.len()).rev() {
        if let Some(parent) = tree[index].0 {
            sums[parent] += sums[index];
        }
    }
    sums
}

/// Bytes by which a stream may end later than in the ideal: on each level a packet of each sibling and of its own, while
/// the level has its parent's share of the link. Start-time fair queueing by levels, Goyal, Vin and Cheng, SIGCOMM 1996.
fn latest(tree: &[(Option<usize>, u16, u64)], node: usize) -> f64 {
    let siblings = |of: usize| (0..tree.len()).filter(move |&other| tree[other].0 == tree[of].0);
    let share = |of: usize| {
        let all: f64 = siblings(of).map(|other| f64::from(tree[other].1)).sum();
        f64::from(tree[of].1) / all
    };
    let mut line = vec![node];
    while let Some(parent) = line.last().and_then(|&last| tree[last].0) {
        line.push(parent);
    }
    let mut rate = 1.0;
    let mut late = 0.0;
    for &at in line.iter().rev() {
        late += siblings(at).count() as f64 * PAYLOAD as f64 / rate;
        rate *= share(at);
    }
    late
}

proptest! {
    /// Start-time fair queueing: of two siblings that both have something to send all the time,
    /// the bytes over weight differ by at most one packet of each; and no stream ends later than in
    /// the ideal by more than a packet of each sibling on each level, at the rate of that level.
    #[test]
    fn siblings_share_within_a_packet_each_and_ends_are_near_the_ideal(tree in trees()) {
        let mut driver = Driver::new(FluidWrr::new());
        let id = |index: usize| (index as u64 + 1) * 4;
        for (index, &(parent, weight, bytes)) in tree.iter().enumerate() {
            let parent = parent.map_or(0, |parent| 1_000 + id(parent));
            if bytes > 0 {
                driver.open_at(id(index), parent, weight, bytes);
            } else {
                driver.node(1_000 + id(index), parent, weight);
            }
        }
        let total = subtree_bytes(&tree, &tree.iter().map(|node| node.2).collect::<Vec<_>>());
        let mut got = vec![0; tree.len()];
        let mut ends = BTreeMap::new();
        let mut sent = 0;
        while let Some(taken) = driver.send(PAYLOAD) {
            let index = (taken.stream.id.0 / 4 - 1) as usize;
            got[index] += taken.span.len().0;
            sent += taken.span.len().0;
            ends.insert(index, sent);
            let sums = subtree_bytes(&tree, &got);
            for (a, one) in tree.iter().enumerate() {
                for (b, other) in tree.iter().enumerate().skip(a + 1) {
                    let both = one.0 == other.0 && sums[a] < total[a] && sums[b] < total[b];
                    let siblings_active = both && sums[a] + sums[b] > 0;
                    if !siblings_active { continue }
                    let (wa, wb) = (f64::from(one.1), f64::from(other.1));
                    let difference = (sums[a] as f64 / wa - sums[b] as f64 / wb).abs();
                    let bound = PAYLOAD as f64 / wa + PAYLOAD as f64 / wb;
                    prop_assert!(difference <= bound + 1e-3, "{a} {b}: {difference} > {bound}");
                }
            }
        }
        let nodes: Vec<GpsNode> = tree
            .iter()
            .map(|&(parent, weight, bytes)| GpsNode { parent, weight, bytes: Bytes(bytes) })
            .collect();
        for end in gps::finish(&nodes) {
            let late = ends[&end.node] as f64 - end.served;
            let bound = latest(&tree, end.node);
            prop_assert!(late <= bound, "node {}: {late} bytes late", end.node);
        }
    }
}
