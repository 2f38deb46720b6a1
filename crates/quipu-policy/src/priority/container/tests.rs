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
