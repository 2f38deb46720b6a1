use proptest::prelude::*;
use quipu_base::StreamId;

use super::*;

fn insert(tree: &mut Priorities, node: u64, parent: u64, weight: u16, exclusive: bool) {
    let parent = if parent == 0 { NodeId::ROOT } else { NodeId(parent) };
    let edit = PriorityEdit::Insert { node: NodeId(node), parent, weight, exclusive };
    tree.apply(&edit, None).unwrap();
}

fn children(tree: &Priorities, node: u64) -> Vec<(u64, u16)> {
    let id = if node == 0 { NodeId::ROOT } else { NodeId(node) };
    let node = tree.node(tree.key(id).unwrap()).unwrap();
    node.children
        .iter()
        .map(|&child| (tree.node(child).unwrap().id.0, tree.node(child).unwrap().weight))
        .collect()
}

#[test]
fn exclusive_insertion_takes_over_the_children() {
    let mut tree = Priorities::new();
    insert(&mut tree, 1, 0, 16, false);
    insert(&mut tree, 2, 0, 32, false);
    insert(&mut tree, 3, 0, 8, true);
    assert_eq!(children(&tree, 0), [(3, 8)]);
    assert_eq!(children(&tree, 3), [(1, 16), (2, 32)]);
}

/// The example of RFC 7540 §5.3.3: A above B, C; C above D, E; D above F. A moves under D.
fn rfc_example(exclusive: bool) -> Priorities {
    let mut tree = Priorities::new();
    for (node, parent) in [(1, 0), (2, 1), (3, 1), (4, 3), (5, 3), (6, 4)] {
        insert(&mut tree, node, parent, 16, false);
    }
    let edit = PriorityEdit::Move { node: NodeId(1), parent: NodeId(4), weight: 16, exclusive };
    tree.apply(&edit, None).unwrap();
    tree
}

#[test]
fn moving_under_a_descendant_lifts_the_descendant_first() {
    let tree = rfc_example(false);
    assert_eq!(children(&tree, 0), [(4, 16)]);
    assert_eq!(children(&tree, 4), [(6, 16), (1, 16)]);
    assert_eq!(children(&tree, 1), [(2, 16), (3, 16)]);
    assert_eq!(children(&tree, 3), [(5, 16)]);
}

#[test]
fn moving_exclusively_under_a_descendant_takes_over_its_children() {
    let tree = rfc_example(true);
    assert_eq!(children(&tree, 4), [(1, 16)]);
    assert_eq!(children(&tree, 1), [(2, 16), (3, 16), (6, 16)]);
}

#[test]
fn removal_shares_the_weight_among_the_children() {
    let mut tree = Priorities::new();
    insert(&mut tree, 1, 0, 100, false);
    insert(&mut tree, 2, 1, 30, false);
    insert(&mut tree, 3, 1, 10, false);
    tree.apply(&PriorityEdit::Remove { node: NodeId(1) }, None).unwrap();
    assert_eq!(children(&tree, 0), [(2, 75), (3, 25)]);
}

#[test]
fn wrong_edits_change_nothing() {
    let mut tree = Priorities::new();
    insert(&mut tree, 1, 0, 16, false);
    let root = NodeId::ROOT;
    let wrong = [
        PriorityEdit::Insert { node: NodeId(1), parent: root, weight: 16, exclusive: false },
        PriorityEdit::Insert { node: NodeId(2), parent: NodeId(9), weight: 16, exclusive: false },
        PriorityEdit::Insert { node: NodeId(2), parent: root, weight: 257, exclusive: false },
        PriorityEdit::Move { node: NodeId(1), parent: NodeId(1), weight: 1, exclusive: false },
        PriorityEdit::Remove { node: root },
        PriorityEdit::Weight { node: NodeId(7), weight: 3 },
    ];
    for edit in wrong {
        assert!(tree.apply(&edit, None).is_err(), "{edit:?}");
    }
    assert_eq!(tree.len(), 2);
    assert_eq!(children(&tree, 0), [(1, 16)]);
}

#[test]
fn replayed_edits_rebuild_the_tree() {
    let mut tree = rfc_example(true);
    tree.apply(&PriorityEdit::Remove { node: NodeId(3) }, None).unwrap();
    let replayed: Vec<NodeKey> = tree
        .replay()
        .iter()
        .filter_map(|edit| match edit {
            TreeEdit::Inserted { node, parent, .. } => {
                assert_eq!(tree.node(*node).unwrap().parent, *parent);
                Some(*node)
            }
            _ => None,
        })
        .collect();
    assert_eq!(replayed.len(), tree.len() - 1);
}

/// A stream that HTTP opens with a place in the tree.
fn open(
    tree: &mut Priorities,
    number: u64,
    parent: u64,
    weight: u16,
    exclusive: bool,
) -> StreamKey {
    insert(tree, number, parent, weight, exclusive);
    attach(tree, number)
}

fn attach(tree: &mut Priorities, number: u64) -> StreamKey {
    let stream = key(number);
    let edit = PriorityEdit::Attach { node: NodeId(number), stream: stream.id };
    tree.apply(&edit, Some(stream)).unwrap();
    stream
}

fn key(number: u64) -> StreamKey {
    StreamKey { slot: number as u32, id: StreamId(number) }
}

fn tell(tree: &mut Priorities, stream: StreamKey, urgency: u8, incremental: bool) {
    let edit = PriorityEdit::Urgency { stream: stream.id, urgency, incremental };
    tree.apply(&edit, Some(stream)).unwrap();
}

fn urgency(tree: &Priorities, stream: StreamKey) -> (u8, bool) {
    let priority = tree.complete(stream, Priority::default());
    (priority.urgency, priority.incremental)
}

/// The streams of a tree that is a chain, from the top.
fn chain(tree: &Priorities) -> Vec<u64> {
    let mut streams = Vec::new();
    let mut at = NodeKey::ROOT;
    while let Some(&[only]) = tree.node(at).map(|view| view.children.as_slice()) {
        at = only;
        streams.extend(tree.node(at).unwrap().stream.map(|stream| stream.id.0));
    }
    assert!(tree.node(at).unwrap().children.is_empty(), "no chain");
    streams
}

#[test]
fn places_of_known_browsers_are_their_urgencies() {
    let mut chrome = Priorities::new();
    let html = open(&mut chrome, 4, 0, 256, true);
    let image = open(&mut chrome, 8, 4, 147, true);
    let script = open(&mut chrome, 12, 4, 220, true);
    let found = [html, image, script].map(|stream| urgency(&chrome, stream));
    assert_eq!(found, [(0, false), (3, false), (1, false)]);

    let mut firefox = Priorities::new();
    for (node, parent, weight) in
        [(3, 0, 201), (5, 0, 101), (7, 0, 1), (9, 7, 1), (11, 3, 1), (13, 0, 241)]
    {
        insert(&mut firefox, node, parent, weight, false);
    }
    for (number, parent, weight, expected) in [
        (4, 13, 32, (1, false)),
        (8, 3, 32, (2, false)),
        (12, 5, 22, (3, false)),
        (16, 11, 22, (4, true)),
        (20, 11, 42, (4, false)),
        (24, 7, 22, (6, false)),
        (28, 9, 2, (6, false)),
    ] {
        let stream = open(&mut firefox, number, parent, weight, false);
        assert_eq!(urgency(&firefox, stream), expected, "{number}");
    }

    let mut safari = Priorities::new();
    for (number, weight, level) in [(4, 255, 0), (8, 24, 1), (12, 16, 3), (16, 8, 5)] {
        let stream = open(&mut safari, number, 0, weight, false);
        assert_eq!(urgency(&safari, stream), (level, true));
    }
}

#[test]
fn the_weight_that_a_closed_parent_leaves_makes_nothing_urgent() {
    let mut tree = Priorities::new();
    let html = open(&mut tree, 4, 0, 256, true);
    let image = open(&mut tree, 8, 4, 147, true);
    tree.detach(html);
    tree.apply(&PriorityEdit::Remove { node: NodeId(4) }, None).unwrap();
    assert_eq!(children(&tree, 0), [(8, 256)]);
    assert_eq!(urgency(&tree, image), (3, false));
    let edit = PriorityEdit::Weight { node: NodeId(8), weight: 220 };
    tree.apply(&edit, None).unwrap();
    assert_eq!(urgency(&tree, image), (1, false));
}

#[test]
fn what_an_exclusive_stream_takes_over_waits_for_it() {
    let mut tree = Priorities::new();
    let old = open(&mut tree, 4, 0, 16, false);
    assert_eq!(urgency(&tree, old), (3, true));
    // The node is put in before it speaks for a stream.
    insert(&mut tree, 8, 0, 16, false);
    let new = attach(&mut tree, 8);
    let edit =
        PriorityEdit::Move { node: NodeId(8), parent: NodeId::ROOT, weight: 16, exclusive: true };
    let edits = tree.apply(&edit, None).unwrap();
    assert_eq!((urgency(&tree, new), urgency(&tree, old)), ((3, false), (4, true)));
    let touched: Vec<_> = edits.iter().filter_map(|edit| tree.touched(edit)).collect();
    assert_eq!(touched, [old]);
}

#[test]
fn what_is_told_of_a_stream_is_not_derived() {
    let mut tree = Priorities::new();
    // The place first, then the urgency.
    let first = open(&mut tree, 4, 0, 255, false);
    assert_eq!(urgency(&tree, first), (0, true));
    tell(&mut tree, first, 5, false);
    assert_eq!(urgency(&tree, first), (5, false));
    assert_eq!(tree.len(), 2);
    // The urgency first, then the place.
    tell(&mut tree, key(8), 6, true);
    assert_eq!(tree.len(), 5);
    let second = open(&mut tree, 8, 0, 24, false);
    assert_eq!(urgency(&tree, second), (6, true));
    assert_eq!(children(&tree, 0), [(4, 255), (8, 24)]);
    assert_eq!(tree.complete(second, Priority::default()).node, tree.key(NodeId(8)));
    // Without the place that was told, there is one that is derived.
    tree.apply(&PriorityEdit::Remove { node: NodeId(8) }, None).unwrap();
    assert_eq!(tree.len(), 5);
    assert!(tree.complete(second, Priority::default()).node.is_some());
}

#[test]
fn derived_nodes_cannot_be_named() {
    let mut tree = Priorities::new();
    tell(&mut tree, key(8), 2, false);
    let derived = tree.node(tree.complete(key(8), Priority::default()).node.unwrap()).unwrap().id;
    for edit in [
        PriorityEdit::Remove { node: derived },
        PriorityEdit::Attach { node: derived, stream: StreamId(8) },
        PriorityEdit::Insert { node: NodeId(1), parent: derived, weight: 16, exclusive: true },
    ] {
        assert_eq!(tree.apply(&edit, Some(key(8))), Err(PriorityError::Misplaced(derived)));
    }
}

proptest! {
    /// Chrome's chain, told as urgencies and made a tree again, serves the same streams in the same
    /// order: by level, then by age, which is the order of identifiers.
    #[test]
    fn a_chain_survives_both_mappings(levels in proptest::collection::vec(0_usize..5, 1..40)) {
        const WEIGHTS: [u16; 5] = [256, 220, 183, 147, 110];
        let mut told = Priorities::new();
        let mut open_streams: Vec<(usize, u64)> = Vec::new();
        for (number, level) in (1..).map(|number| 4 * number).zip(levels) {
            let parent = open_streams.iter().filter(|&&(other, _)| other <= level).max();
            let parent = parent.map_or(0, |&(_, stream)| stream);
            open(&mut told, number, parent, WEIGHTS[level], true);
            open_streams.push((level, number));
        }
        let mut derived = Priorities::new();
        for &(level, number) in &open_streams {
            let (urgency, incremental) = urgency(&told, key(number));
            prop_assert_eq!((usize::from(urgency), incremental), (level, false));
            tell(&mut derived, key(number), urgency, incremental);
        }
        prop_assert_eq!(chain(&derived), chain(&told));
    }

    /// Urgencies made a tree, and that tree told to another container, are the same urgencies.
    #[test]
    fn urgencies_survive_both_mappings(
        streams in proptest::collection::vec((0_u8..8, any::<bool>()), 1..20),
    ) {
        let mut derived = Priorities::new();
        let streams: Vec<_> = (1..).map(|number| key(4 * number)).zip(streams).collect();
        for &(stream, (level, incremental)) in &streams {
            tell(&mut derived, stream, level, incremental);
        }
        // As HTTP would tell it: numbers of its own, a stream's node before what hangs on it.
        let mut told = Priorities::new();
        let name = |node: NodeKey| match derived.node(node).unwrap().id {
            NodeId::ROOT => NodeId::ROOT,
            _ => NodeId(u64::from(node.0)),
        };
        let mut stack = vec![NodeKey::ROOT];
        while let Some(node) = stack.pop() {
            let view = derived.node(node).unwrap();
            if node != NodeKey::ROOT {
                let shares = |stream| derived.complete(stream, Priority::default()).incremental;
                let exclusive = !view.stream.is_some_and(shares);
                let (node, parent, weight) = (name(node), name(view.parent), view.weight);
                let edit = PriorityEdit::Insert { node, parent, weight, exclusive: false };
                told.apply(&edit, None).unwrap();
                if exclusive {
                    let edit = PriorityEdit::Move { node, parent, weight, exclusive };
                    told.apply(&edit, None).unwrap();
                }
                if let Some(stream) = view.stream {
                    told.apply(&PriorityEdit::Attach { node, stream: stream.id }, Some(stream)).unwrap();
                }
            }
            // What is exclusive comes first, so that it takes nothing over.
            let mut below = view.children.clone();
            below.sort_by_key(|&child| std::cmp::Reverse(derived.node(child).unwrap().weight));
            stack.extend(below);
        }
        for (stream, expected) in streams {
            prop_assert_eq!(urgency(&told, stream), expected);
        }
    }
}
