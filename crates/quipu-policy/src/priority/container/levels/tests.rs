use proptest::prelude::*;

use super::*;
use crate::priority::PriorityEdit;

/// Most elementary edits of one edit of an urgency.
const MOST_EDITS: usize = 24;

/// The tree as one knows it who was told the elementary edits, and nothing else.
#[derive(Default)]
struct Told {
    nodes: BTreeMap<NodeKey, (NodeKey, u16)>,
    streams: BTreeMap<NodeKey, StreamKey>,
}

impl Told {
    fn exists(&self, node: NodeKey) -> bool {
        node == NodeKey::ROOT || self.nodes.contains_key(&node)
    }

    fn follow(&mut self, edit: &TreeEdit) {
        match *edit {
            TreeEdit::Inserted { node, parent, weight } => {
                assert!(!self.exists(node) && self.exists(parent), "{edit:?}");
                self.nodes.insert(node, (parent, weight));
            }
            TreeEdit::Moved { node, parent } => {
                let mut above = parent;
                while above != NodeKey::ROOT {
                    assert_ne!(above, node, "{edit:?}");
                    above = self.nodes[&above].0;
                }
                self.nodes.get_mut(&node).unwrap().0 = parent;
            }
            TreeEdit::Weighted { node, weight } => self.nodes.get_mut(&node).unwrap().1 = weight,
            TreeEdit::Removed { node } => {
                assert!(self.nodes.values().all(|&(parent, _)| parent != node), "{edit:?}");
                self.nodes.remove(&node).unwrap();
                self.streams.remove(&node);
            }
            TreeEdit::Attached { node, stream } => {
                assert!(self.exists(node));
                self.streams.retain(|_, other| *other != stream);
                self.streams.insert(node, stream);
            }
        }
    }
}

#[derive(Default)]
struct World {
    priorities: Priorities,
    told: Told,
    /// Live streams with their urgency.
    streams: BTreeMap<StreamKey, Urgency>,
}

fn stream(number: u32) -> StreamKey {
    StreamKey { slot: number, id: StreamId(u64::from(number) * 4) }
}

fn urgency(level: u8, incremental: bool) -> Urgency {
    Urgency { level, incremental }
}

impl World {
    fn edit(&mut self, edit: &PriorityEdit, stream: Option<StreamKey>) -> usize {
        let edits = self.priorities.apply(edit, stream).unwrap();
        edits.iter().for_each(|edit| self.told.follow(edit));
        edits.len()
    }

    fn set(&mut self, number: u32, urgency: Urgency) -> usize {
        let key = stream(number);
        self.streams.insert(key, urgency);
        let Urgency { level, incremental } = urgency;
        let edit = PriorityEdit::Urgency { stream: key.id, urgency: level, incremental };
        self.edit(&edit, Some(key))
    }

    fn close(&mut self, number: u32) {
        self.streams.remove(&stream(number));
        self.priorities.detach(stream(number));
        self.told.streams.retain(|_, other| *other != stream(number));
    }

    /// Edits that say nothing of the tree, until all nodes of closed streams are gone.
    fn clean(&mut self) {
        let size = PriorityEdit::Size { stream: StreamId(0), size: quipu_base::Bytes(1) };
        while !self.priorities.levels.stale.is_empty() {
            self.edit(&size, None);
        }
    }

    /// All nodes as (name, parent's name, weight).
    fn nodes(&self) -> Vec<(NodeId, NodeId, u16)> {
        let name = |key| self.priorities.node(key).unwrap().id;
        let nodes = self.told.nodes.iter();
        let mut nodes: Vec<_> =
            nodes.map(|(&key, &(parent, weight))| (name(key), name(parent), weight)).collect();
        nodes.sort_unstable();
        nodes
    }

    /// The same, built anew from the urgencies.
    fn expected(&self) -> Vec<(NodeId, NodeId, u16)> {
        let mut nodes = Vec::new();
        let mut parent = NodeId::ROOT;
        for level in 0..=LEAST_URGENT {
            let of = |incremental| {
                let member = move |(key, &own): (&StreamKey, _)| {
                    (own == urgency(level, incremental)).then_some(key.id)
                };
                let mut members: Vec<StreamId> = self.streams.iter().filter_map(member).collect();
                members.sort_unstable();
                members
            };
            let (chain, sharing) = (of(false), of(true));
            if chain.is_empty() && sharing.is_empty() {
                continue;
            }
            let own = CHROME[usize::from(level)];
            nodes.push((NodeId::of_top(level), parent, 1));
            parent = NodeId::of_top(level);
            for stream in chain {
                nodes.push((NodeId::of_stream(stream), parent, own));
                parent = NodeId::of_stream(stream);
            }
            nodes.push((NodeId::of_level(level), parent, own));
            parent = NodeId::of_level(level);
            nodes.extend(sharing.into_iter().map(|id| (NodeId::of_stream(id), parent, own)));
        }
        nodes.sort_unstable();
        nodes
    }
}

#[test]
fn urgencies_in_use_stand_below_each_other() {
    let mut world = World::default();
    world.set(3, urgency(3, true));
    world.set(1, urgency(0, false));
    world.set(5, urgency(3, false));
    world.set(2, urgency(3, true));
    world.set(4, urgency(3, false));
    let [html, script, module, first, second] =
        [1, 4, 5, 2, 3].map(|number| NodeId::of_stream(stream(number).id));
    let [top, next_top] = [0, 3].map(NodeId::of_top);
    let [level, next] = [0, 3].map(NodeId::of_level);
    let mut expected = [
        (top, NodeId::ROOT, 1),
        (html, top, 256),
        (level, html, 256),
        (next_top, level, 1),
        (script, next_top, 147),
        (module, script, 147),
        (next, module, 147),
        (first, next, 147),
        (second, next, 147),
    ];
    expected.sort_unstable();
    assert_eq!(world.nodes(), expected);
    assert_eq!(world.expected(), expected);
}

#[test]
fn a_new_urgency_moves_a_stream_and_little_else() {
    let mut world = World::default();
    (1..=1000).for_each(|number| _ = world.set(number, urgency(3, true)));
    // The two nodes of urgency 1 above those of 3, then the stream between them.
    assert_eq!(world.set(500, urgency(1, false)), 6);
    // And back: they leave again.
    assert_eq!(world.set(500, urgency(3, true)), 6);
    assert_eq!(world.set(500, urgency(3, true)), 0);
    // A chain of one above all others.
    assert_eq!(world.set(500, urgency(3, false)), 2);
    assert_eq!(world.nodes(), world.expected());
}

#[test]
fn a_full_tree_leaves_an_urgency_without_a_place() {
    let mut world = World::default();
    // Beside the root and the nodes of the level; three more would be needed.
    let full = 16_384 - 5;
    (1..=full).for_each(|number| _ = world.set(number, urgency(7, true)));
    assert_eq!(world.set(full + 1, urgency(0, true)), 0);
    let known = world.priorities.complete(stream(full + 1), crate::priority::Priority::default());
    assert_eq!((known.node, known.urgency, known.incremental), (None, 0, true));
    assert_eq!(world.priorities.len(), 16_382);
    // What has a place finds another: there are few levels.
    assert_eq!(world.set(full, urgency(0, true)), 5);
}

#[derive(Clone, Debug)]
enum Step {
    Urgency(u32, u8, bool),
    Close(u32),
    /// A place for a stream, told by HTTP.
    Insert(u32, bool),
    Remove(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0_u32..30, 0_u8..8, any::<bool>()).prop_map(|(n, u, i)| Step::Urgency(n, u, i)),
        3 => (0_u32..30).prop_map(Step::Close),
    ];
    proptest::collection::vec(step, 1..120)
}

fn steps_of_both() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0_u32..12, 0_u8..8, any::<bool>()).prop_map(|(n, u, i)| Step::Urgency(n, u, i)),
        3 => (0_u32..12).prop_map(Step::Close),
        3 => (0_u32..12, any::<bool>()).prop_map(|(n, exclusive)| Step::Insert(n, exclusive)),
        2 => (0_u32..12).prop_map(Step::Remove),
    ];
    proptest::collection::vec(step, 1..120)
}

proptest! {
    #[test]
    fn the_tree_is_the_one_built_anew(steps in steps()) {
        let mut world = World::default();
        for step in steps {
            match step {
                Step::Urgency(number, level, incremental) => {
                    let edits = world.set(number, urgency(level, incremental));
                    prop_assert!(edits <= MOST_EDITS, "{edits}");
                }
                Step::Close(number) => world.close(number),
                _ => {}
            }
            if world.priorities.levels.stale.is_empty() {
                prop_assert_eq!(world.nodes(), world.expected());
            }
        }
        world.clean();
        prop_assert_eq!(world.nodes(), world.expected());
        prop_assert_eq!(world.priorities.len(), 1 + world.told.nodes.len());
    }

    /// Where HTTP tells both forms, each stream has one node, and what is told is a tree.
    #[test]
    fn told_and_derived_places_live_side_by_side(steps in steps_of_both()) {
        let mut world = World::default();
        for step in steps {
            match step {
                Step::Urgency(number, level, incremental) => {
                    let edits = world.set(number, urgency(level, incremental));
                    prop_assert!(edits <= MOST_EDITS, "{edits}");
                }
                Step::Close(number) => world.close(number),
                Step::Insert(number, exclusive) => {
                    let (node, parent) = (NodeId(u64::from(number) + 1), NodeId::ROOT);
                    let insert = PriorityEdit::Insert { node, parent, weight: 16, exclusive };
                    if world.priorities.key(node).is_none() {
                        world.edit(&insert, None);
                    }
                    let key = stream(number);
                    world.streams.entry(key).or_default();
                    world.edit(&PriorityEdit::Attach { node, stream: key.id }, Some(key));
                }
                Step::Remove(number) => {
                    let node = NodeId(u64::from(number) + 1);
                    if world.priorities.key(node).is_some() {
                        world.edit(&PriorityEdit::Remove { node }, None);
                    }
                }
            }
            let tree = &world.priorities;
            for (&key, &(parent, weight)) in &world.told.nodes {
                let node = tree.node(key).unwrap();
                prop_assert_eq!((node.parent, node.weight), (parent, weight));
                prop_assert!(tree.node(parent).unwrap().children.contains(&key));
                prop_assert_eq!(node.stream, world.told.streams.get(&key).copied());
            }
            prop_assert_eq!(tree.len(), 1 + world.told.nodes.len());
            let mut speaks: Vec<StreamKey> = world.told.streams.values().copied().collect();
            speaks.sort_unstable();
            speaks.dedup();
            prop_assert_eq!(speaks.len(), world.told.streams.len());
        }
    }
}
