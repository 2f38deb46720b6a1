//! Names against the rules, and the tree they build against a naive model of RFC 7540.

use proptest::prelude::*;
use quipu_policy::{NodeKey, Priorities};

use super::*;

fn id(value: u32) -> FrameStreamId {
    FrameStreamId::from_wire(value)
}

fn at(parent: u32, weight: u16, exclusive: bool) -> StreamPriority {
    StreamPriority { parent: id(parent), weight, exclusive }
}

/// Names with the container that their edits go to.
#[derive(Default)]
struct Tree {
    names: TreeNames,
    container: Priorities,
}

impl Tree {
    /// Runs `edit`; each of its edits must be one that the container accepts.
    fn with<R>(&mut self, edit: impl FnOnce(&mut TreeNames, Edit<'_>) -> R) -> R {
        let container = &mut self.container;
        edit(&mut self.names, &mut |edit| {
            container.apply(&edit, None).unwrap();
        })
    }

    fn open(&mut self, stream: u32, priority: Option<StreamPriority>) {
        let quic_stream = StreamId(u64::from(stream));
        self.with(|names, edit| names.open(id(stream), quic_stream, priority, edit)).unwrap();
    }

    fn prioritise(&mut self, stream: u32, priority: StreamPriority) {
        self.with(|names, edit| names.reprioritise(id(stream), priority, edit)).unwrap();
    }

    fn close(&mut self, stream: u32, expires: u64) {
        self.with(|names, edit| names.close(id(stream), Instant::from_nanos(expires), edit));
    }

    /// All nodes but the root as (name, parent, weight), by name.
    fn nodes(&self) -> Vec<(u32, u32, u16)> {
        let name = |key| match self.container.node(key).unwrap().id {
            NodeId::ROOT => 0,
            NodeId(name) => name as u32,
        };
        let mut nodes: Vec<_> = (1..20_000)
            .map(NodeKey)
            .filter_map(|key| self.container.node(key))
            .map(|node| (node.id.0 as u32, name(node.parent), node.weight))
            .collect();
        nodes.sort_unstable();
        nodes
    }
}

/// The tree as a list of (node, parent, weight), with the rules of RFC 7540 written out plainly.
#[derive(Default)]
struct NaiveTree(BTreeMap<u32, (u32, u16)>);

impl NaiveTree {
    fn place(&mut self, node: u32, priority: StreamPriority) {
        let parent = priority.parent.value();
        if parent != 0 && !self.0.contains_key(&parent) {
            self.0.insert(parent, (0, 16));
        }
        let mut above = parent;
        while above != 0 && above != node {
            above = self.0[&above].0;
        }
        if above == node
            && let Some(&(old_parent, _)) = self.0.get(&node)
        {
            self.0.get_mut(&parent).unwrap().0 = old_parent;
        }
        if priority.exclusive {
            for (&other, place) in &mut self.0 {
                if place.0 == parent && other != node {
                    place.0 = node;
                }
            }
        }
        self.0.insert(node, (parent, priority.weight));
    }

    fn nodes(&self) -> Vec<(u32, u32, u16)> {
        self.0.iter().map(|(&node, &(parent, weight))| (node, parent, weight)).collect()
    }
}

#[test]
fn firefox_groups_hold_its_requests() {
    let mut tree = Tree::default();
    let groups = [(3, 0, 201), (5, 0, 101), (7, 0, 1), (9, 7, 1), (11, 3, 1), (13, 0, 241)];
    for (group, parent, weight) in groups {
        tree.prioritise(group, at(parent, weight, false));
    }
    tree.open(4, Some(at(13, 32, false)));
    tree.open(8, Some(at(3, 32, false)));
    tree.open(12, Some(at(11, 22, false)));
    tree.open(16, Some(at(11, 22, false)));
    let mut expected = groups.to_vec();
    expected.extend([(4, 13, 32), (8, 3, 32), (12, 11, 22), (16, 11, 22)]);
    expected.sort_unstable();
    assert_eq!(tree.nodes(), expected);
}

#[test]
fn chrome_exclusive_requests_make_one_chain() {
    let mut tree = Tree::default();
    // HTML; then an image, whose level is below; then a style sheet between the two; then a script
    // below the style sheet.
    tree.open(4, Some(at(0, 256, true)));
    tree.open(8, Some(at(4, 147, true)));
    tree.open(12, Some(at(4, 256, true)));
    tree.open(16, Some(at(12, 220, true)));
    assert_eq!(tree.nodes(), [(4, 0, 256), (8, 16, 147), (12, 4, 256), (16, 12, 220)]);
}

#[test]
fn a_request_without_priority_has_the_default_or_that_of_an_earlier_frame() {
    let mut tree = Tree::default();
    tree.prioritise(8, at(0, 99, false));
    tree.open(4, None);
    tree.open(8, None);
    assert_eq!(tree.nodes(), [(4, 0, 16), (8, 0, 99)]);
    assert_eq!(tree.names.live(), 2);
}

#[test]
fn an_unknown_idle_parent_becomes_a_node_of_default_priority() {
    let mut tree = Tree::default();
    tree.open(4, Some(at(21, 200, true)));
    assert_eq!(tree.nodes(), [(4, 21, 200), (21, 0, 16)]);
}

#[test]
fn a_forgotten_parent_leaves_the_default_priority() {
    let mut tree = Tree::default();
    tree.open(4, None);
    tree.open(8, None);
    tree.close(4, 10);
    tree.with(|names, edit| names.expire(Instant::from_nanos(9), edit));
    tree.open(12, Some(at(4, 50, false)));
    tree.with(|names, edit| names.expire(Instant::from_nanos(10), edit));
    tree.open(16, Some(at(4, 50, false)));
    tree.prioritise(4, at(0, 1, true));
    assert_eq!(tree.nodes(), [(8, 0, 16), (12, 0, 16), (16, 0, 16)]);
}

/// <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.4>: the container shares the weight.
#[test]
fn children_of_an_expired_stream_share_its_weight() {
    let mut tree = Tree::default();
    tree.open(4, Some(at(0, 100, false)));
    tree.open(8, Some(at(4, 30, false)));
    tree.open(12, Some(at(4, 10, false)));
    tree.close(4, 5);
    tree.with(|names, edit| names.expire(Instant::from_nanos(5), edit));
    assert_eq!(tree.nodes(), [(8, 0, 75), (12, 0, 25)]);
}

#[test]
fn a_stream_that_depends_on_itself_is_an_error_and_gets_no_node() {
    let mut tree = Tree::default();
    let error =
        tree.with(|names, edit| names.open(id(4), StreamId(4), Some(at(4, 16, false)), edit));
    assert_eq!(error, Err(SelfDependency(id(4))));
    let error = tree.with(|names, edit| names.reprioritise(id(3), at(3, 16, false), edit));
    assert_eq!(error, Err(SelfDependency(id(3))));
    assert_eq!(tree.nodes(), []);
    assert_eq!(tree.names.last_request(), id(4));
}

#[test]
fn idle_nodes_are_bounded_and_the_longest_unnamed_goes_first() {
    let mut tree = Tree::default();
    tree.prioritise(3, at(0, 201, false));
    tree.prioritise(5, at(3, 1, false));
    tree.prioritise(7, at(0, 1, false));
    for extra in 0..1000 {
        tree.prioritise(1001 + 2 * extra, at(0, 16, false));
        tree.prioritise(5, at(3, 1, false));
    }
    assert_eq!(tree.container.len(), 1 + MAX_IDLE);
    let nodes = tree.nodes();
    assert!(nodes.contains(&(3, 0, 201)), "others were placed under it");
    assert!(nodes.contains(&(5, 3, 1)), "it was named again");
    assert!(!nodes.contains(&(7, 0, 1)));
}

#[test]
fn without_room_for_an_idle_parent_the_default_holds() {
    let mut tree = Tree::default();
    // A chain: each but the last is the parent of another.
    for link in 0..MAX_IDLE as u32 {
        tree.prioritise(1001 + 2 * link, at(if link == 0 { 0 } else { 999 + 2 * link }, 16, false));
    }
    let last = 999 + 2 * MAX_IDLE as u32;
    tree.open(4, Some(at(last, 16, false)));
    tree.open(8, Some(at(3, 77, false)));
    assert!(tree.nodes().contains(&(8, 0, 16)));
    assert_eq!(tree.names.idle.len(), MAX_IDLE);
}

#[test]
fn closed_nodes_are_bounded() {
    let mut tree = Tree::default();
    for index in 1..=2 * MAX_CLOSED as u32 {
        tree.open(4 * index, None);
        tree.close(4 * index, u64::MAX);
    }
    assert_eq!(tree.container.len(), 1 + MAX_CLOSED);
    assert_eq!(tree.names.live(), 0);
}

#[test]
fn a_shrinking_round_trip_time_keeps_the_order_of_removal() {
    let mut tree = Tree::default();
    tree.open(4, None);
    tree.open(8, None);
    tree.close(4, 100);
    tree.close(8, 50);
    assert_eq!(tree.names.next_expiry(), Some(Instant::from_nanos(100)));
    tree.with(|names, edit| names.expire(Instant::from_nanos(99), edit));
    assert_eq!(tree.nodes().len(), 2);
    tree.with(|names, edit| names.expire(Instant::from_nanos(100), edit));
    assert_eq!(tree.names.next_expiry(), None);
}

#[derive(Clone, Debug)]
enum Operation {
    Open(Option<StreamPriority>),
    Prioritise(u32, StreamPriority),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    // Groups, requests and requests to come, in ranges small enough to meet often.
    let name = || prop_oneof![(0_u32..6).prop_map(|n| 2 * n + 1), (1_u32..10).prop_map(|n| 4 * n)];
    let priority = || {
        (prop_oneof![Just(0), name()], 1_u16..=256, any::<bool>())
            .prop_map(|(parent, weight, exclusive)| at(parent, weight, exclusive))
    };
    let operation = prop_oneof![
        proptest::option::of(priority()).prop_map(Operation::Open),
        (name(), priority()).prop_map(|(name, priority)| Operation::Prioritise(name, priority)),
    ];
    proptest::collection::vec(operation, 0..40)
}

proptest! {
    #[test]
    fn the_tree_is_that_of_a_naive_model(operations in operations()) {
        let mut tree = Tree::default();
        let mut naive = NaiveTree::default();
        let mut next = 4;
        for operation in operations {
            match operation {
                Operation::Open(priority) => {
                    let priority = priority.filter(|priority| priority.parent.value() != next);
                    tree.open(next, priority);
                    match priority {
                        Some(priority) => naive.place(next, priority),
                        None if naive.0.contains_key(&next) => {}
                        None => naive.place(next, StreamPriority::default()),
                    }
                    next += 4;
                }
                Operation::Prioritise(name, priority) if priority.parent.value() != name => {
                    tree.prioritise(name, priority);
                    naive.place(name, priority);
                }
                Operation::Prioritise(..) => {}
            }
            prop_assert_eq!(tree.nodes(), naive.nodes());
        }
    }

    #[test]
    fn no_edit_is_refused_and_nothing_grows_without_bound(
        operations in proptest::collection::vec((0_u8..4, 1_u32..300, 0_u32..300, any::<bool>()), 0..400)
    ) {
        let mut tree = Tree::default();
        let mut next = 4;
        for (now, (kind, name, parent, exclusive)) in operations.into_iter().enumerate() {
            let priority = at(parent, 16, exclusive);
            match kind {
                0 => {
                    let priority = Some(priority).filter(|_| parent != next);
                    tree.open(next, priority);
                    next += 4;
                }
                1 if name != parent => tree.prioritise(name, priority),
                2 => tree.close(name, now as u64 + 20),
                _ => tree.with(|names, edit| names.expire(Instant::from_nanos(now as u64), edit)),
            }
            let names = &tree.names;
            prop_assert!(names.idle.len() <= MAX_IDLE && names.closed.len() <= MAX_CLOSED);
            prop_assert_eq!(tree.container.len(), 1 + names.nodes.len());
            let idle = names.nodes.values().filter(|node| node.state == State::Idle).count();
            prop_assert_eq!(idle, names.idle.len());
            let leaf = |id: &FrameStreamId| names.nodes[id].children == 0;
            prop_assert!(names.leaves.values().eq(names.idle.values().filter(|id| leaf(id))));
        }
    }
}
