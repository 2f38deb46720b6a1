use proptest::prelude::*;

use super::*;

fn leaf(weight: u16, bytes: u64) -> GpsNode {
    GpsNode { parent: None, weight, bytes: Bytes(bytes) }
}

fn at(parent: usize, weight: u16, bytes: u64) -> GpsNode {
    GpsNode { parent: Some(parent), weight, bytes: Bytes(bytes) }
}

/// The example of "A Multipath QUIC Scheduler for Mobile HTTP/2": 1 MB/s.
#[test]
fn three_streams_end_as_in_the_paper() {
    let ends = finish(&[leaf(32, 2_000_000), leaf(42, 1_000_000), leaf(22, 2_000_000)]);
    let seconds: Vec<(usize, f64)> = ends.iter().map(|end| (end.node, end.served / 1e6)).collect();
    assert_eq!(seconds, [(1, 16.0 / 7.0), (0, 4.375), (2, 5.0)]);
}

#[test]
fn a_parent_goes_first_and_leaves_its_share_to_its_children() {
    // Node 0 (weight 1) has 100 bytes and a child of 100; node 2 (weight 1) has 300.
    let ends = finish(&[leaf(1, 100), at(0, 200, 100), leaf(1, 300)]);
    let served: Vec<(usize, f64)> = ends.iter().map(|end| (end.node, end.served)).collect();
    assert_eq!(served, [(0, 200.0), (1, 400.0), (2, 500.0)]);
}

#[test]
fn a_group_without_bytes_only_divides() {
    // Two groups of equal weight; one holds two streams.
    let ends = finish(&[leaf(5, 0), leaf(5, 0), at(0, 1, 30), at(0, 3, 30), at(1, 9, 60)]);
    let served: Vec<(usize, f64)> = ends.iter().map(|end| (end.node, end.served)).collect();
    assert_eq!(served, [(3, 80.0), (2, 120.0), (4, 120.0)]);
}

#[test]
fn equal_streams_end_together_in_order_of_index() {
    let ends = finish(&[leaf(7, 90), leaf(7, 90), leaf(7, 90)]);
    assert!(ends.iter().all(|end| end.served == 270.0));
    assert!(ends.iter().map(|end| end.node).eq(0..3));
    assert!(finish(&[]).is_empty());
}

/// The rate of each node's own bytes: all of it to a node that has some, else shared by weight among
/// the children that have something below.
fn rates(nodes: &[GpsNode], left: &[f64], parent: Option<usize>, rate: f64, out: &mut [f64]) {
    let active = |index: usize| {
        let mut below = vec![false; nodes.len()];
        below[index] = true;
        (index..nodes.len()).any(|node| {
            below[node] |= nodes[node].parent.is_some_and(|parent| below[parent]);
            below[node] && left[node] > 0.0
        })
    };
    if let Some(own) = parent.filter(|&own| left[own] > 0.0) {
        out[own] = rate;
        return;
    }
    let children: Vec<usize> =
        (0..nodes.len()).filter(|&node| nodes[node].parent == parent && active(node)).collect();
    let sum: f64 = children.iter().map(|&child| f64::from(nodes[child].weight)).sum();
    for child in children {
        rates(nodes, left, Some(child), rate * f64::from(nodes[child].weight) / sum, out);
    }
}

/// Ends by stepping from one end to the next.
fn stepped(nodes: &[GpsNode]) -> Vec<(usize, f64)> {
    let mut left: Vec<f64> = nodes.iter().map(|node| node.bytes.0 as f64).collect();
    let (mut served, mut ends) = (0.0, Vec::new());
    while left.iter().any(|&bytes| bytes > 0.0) {
        let mut rate = vec![0.0; nodes.len()];
        rates(nodes, &left, None, 1.0, &mut rate);
        let step = (0..nodes.len())
            .filter(|&node| rate[node] > 0.0)
            .map(|node| left[node] / rate[node])
            .fold(f64::INFINITY, f64::min);
        served += step;
        for node in 0..nodes.len() {
            left[node] -= rate[node] * step;
            if rate[node] > 0.0 && left[node] < 1e-6 {
                left[node] = 0.0;
                ends.push((node, served));
            }
        }
    }
    ends
}

proptest! {
    #[test]
    fn ends_are_those_of_stepping_from_one_to_the_next(
        nodes in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<bool>(), 1..=256u16, 0..500u64),
            1..12,
        ),
    ) {
        let nodes: Vec<GpsNode> = nodes
            .into_iter()
            .enumerate()
            .map(|(index, (parent, at_root, weight, bytes))| {
                let parent = (index > 0 && !at_root).then(|| parent.index(index));
                GpsNode { parent, weight, bytes: Bytes(bytes) }
            })
            .collect();
        let ends = finish(&nodes);
        let mut expected = stepped(&nodes);
        prop_assert_eq!(ends.len(), expected.len());
        expected.sort_by_key(|&(node, _)| node);
        let mut by_node = ends.clone();
        by_node.sort_by_key(|end| end.node);
        for (end, (node, served)) in by_node.iter().zip(expected) {
            prop_assert_eq!(end.node, node);
            prop_assert!((end.served - served).abs() < 1e-3, "{}: {} {}", node, end.served, served);
        }
        prop_assert!(ends.windows(2).all(|pair| pair[0].served <= pair[1].served + 1e-9));
    }
}

#[test]
fn a_policy_orders_its_streams_by_their_ideal_ends() {
    use crate::priority::TreeEdit;
    use crate::{Event, NodeKey, Priorities};
    let (mut tree, priorities) = (ActiveTree::<()>::new(), Priorities::new());
    let mut tell = |event| tree.on_event(&event, &priorities, &mut |_, _| {});
    let bytes = [2_000_000, 1_000_000, 2_000_000, 0].map(Bytes);
    for (slot, weight) in [32, 42, 22, 16].into_iter().enumerate() {
        let stream = StreamKey { slot: slot as u32, id: StreamId(slot as u64 * 4 + 4) };
        let node = NodeKey(slot as u32 + 1);
        tell(Event::Tree(TreeEdit::Inserted { node, parent: NodeKey::ROOT, weight }));
        tell(Event::Tree(TreeEdit::Attached { node, stream }));
        tell(Event::Ready(stream));
    }
    let order = finish_order(&tree, |stream| bytes[stream.index()]);
    let ids: Vec<u64> = order.iter().map(|(stream, _)| stream.id.0).collect();
    assert_eq!(ids, [16, 8, 4, 12]);
    assert_eq!(order[3].1, 5_000_000.0);
}
