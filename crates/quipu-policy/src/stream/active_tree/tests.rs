use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::priority::{NodeId, Priorities, PriorityEdit, TreeEdit};
use crate::seam::event::Event;

/// The connection's tree, the streams' states, and the tree under test, which follows them.
#[derive(Default)]
struct World {
    priorities: Priorities,
    tree: ActiveTree<()>,
    /// Live streams: whether ready, and the node that speaks for them.
    streams: BTreeMap<StreamKey, (bool, Option<NodeKey>)>,
    /// What the changes told: (parent, active child).
    told: BTreeSet<(Place, Place)>,
    opened: u64,
}

impl World {
    fn tell(&mut self, event: &Event<'_>) {
        let told = &mut self.told;
        self.tree.on_event(event, &self.priorities, &mut |tree, change| match change {
            Change::Activated { node, parent } => {
                assert!(told.insert((parent, node)));
                assert_eq!(tree.active_children(parent).last(), Some(node));
            }
            Change::Deactivated { node, parent, .. } => assert!(told.remove(&(parent, node))),
            Change::Weighted { node, .. } => {
                assert!(told.contains(&(tree.parent(node).unwrap(), node)));
            }
        });
    }

    fn edit(&mut self, edit: &PriorityEdit, stream: Option<StreamKey>) {
        let Ok(edits) = self.priorities.apply(edit, stream) else { return };
        for edit in edits {
            self.tell(&Event::Tree(edit));
        }
        if let (PriorityEdit::Attach { node, .. }, Some(stream)) = (edit, stream) {
            let Some(key) = self.priorities.key(*node).filter(|&key| key != NodeKey::ROOT) else {
                return;
            };
            for (_, attached) in self.streams.values_mut() {
                *attached = attached.filter(|&other| other != key);
            }
            self.streams.insert(stream, (self.streams[&stream].0, Some(key)));
        }
        let priorities = &self.priorities;
        for (&stream, (_, attached)) in &mut self.streams {
            *attached = attached
                .filter(|&key| priorities.node(key).is_some_and(|n| n.stream == Some(stream)));
        }
    }

    fn open(&mut self, slot: u32) {
        if self.live(slot).is_some() {
            return;
        }
        self.opened += 1;
        let stream = StreamKey { slot, id: StreamId(self.opened * 4) };
        self.streams.insert(stream, (false, None));
        self.tell(&Event::Opened(stream));
    }

    fn live(&self, slot: u32) -> Option<StreamKey> {
        self.streams.keys().copied().find(|stream| stream.slot == slot)
    }

    fn set_ready(&mut self, slot: u32, ready: bool) {
        let Some(stream) = self.live(slot) else { return };
        self.streams.get_mut(&stream).unwrap().0 = ready;
        self.tell(&if ready { Event::Ready(stream) } else { Event::Stopped(stream) });
    }

    fn close(&mut self, slot: u32) {
        let Some(stream) = self.live(slot) else { return };
        self.streams.remove(&stream);
        self.priorities.detach(stream);
        self.tell(&Event::Closed(stream));
    }

    fn ready_at(&self, node: NodeKey) -> bool {
        self.streams.values().any(|&(ready, at)| ready && at == Some(node))
    }

    fn active(&self, node: NodeKey) -> bool {
        let children = &self.priorities.node(node).unwrap().children;
        let unattached = node == NodeKey::ROOT
            && self.streams.values().any(|&(ready, at)| ready && at.is_none());
        unattached || self.ready_at(node) || children.iter().any(|&child| self.active(child))
    }

    fn active_weight(&self, node: NodeKey) -> u32 {
        let children = &self.priorities.node(node).unwrap().children;
        let attached: u32 = children
            .iter()
            .filter(|&&child| self.active(child))
            .map(|&child| u32::from(self.priorities.node(child).unwrap().weight))
            .sum();
        let loose = self.streams.values().filter(|&&(ready, at)| ready && at.is_none()).count();
        attached + if node == NodeKey::ROOT { 16 * loose as u32 } else { 0 }
    }

    fn share(&self, stream: StreamKey) -> f64 {
        let (ready, at) = self.streams[&stream];
        let Some(mut node) = at else {
            let root = self.active_weight(NodeKey::ROOT);
            return if ready { 16.0 / f64::from(root) } else { 0.0 };
        };
        let mut share = if ready { 1.0 } else { 0.0 };
        while node != NodeKey::ROOT {
            let view = self.priorities.node(node).unwrap();
            if self.ready_at(view.parent) {
                return 0.0;
            }
            if ready {
                share *= f64::from(view.weight) / f64::from(self.active_weight(view.parent));
            }
            node = view.parent;
        }
        share
    }

    /// Compares every answer of the tree with a fresh computation.
    fn check(&self) {
        let ids = (0..12).map(NodeId).chain([NodeId::ROOT]);
        for key in ids.filter_map(|id| self.priorities.key(id)) {
            let place = self.tree.place(key).unwrap();
            assert_eq!(self.tree.is_active(place), self.active(key), "active {key:?}");
            assert_eq!(self.tree.active_weight(place), self.active_weight(key), "sum {key:?}");
            let linked: Vec<Place> = self.tree.active_children(place).collect();
            assert_eq!(linked.len(), self.tree.active_children_len(place) as usize);
            for child in linked {
                assert!(self.tree.is_active(child) && self.told.contains(&(place, child)));
            }
            if key != NodeKey::ROOT {
                let parent = self.priorities.node(key).unwrap().parent;
                assert_eq!(self.tree.parent(place), self.tree.place(parent));
            }
        }
        let links: u32 = (0..self.tree.nodes.len() as u32)
            .map(|place| self.tree.active_children_len(Place(place)))
            .sum();
        assert_eq!(links as usize, self.told.len());
        for &stream in self.streams.keys() {
            let (have, want) = (self.tree.share(stream), self.share(stream));
            assert!((have - want).abs() < 1e-12, "share of {stream:?}: {have} {want}");
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Edit(PriorityEdit),
    Attach { node: u64, slot: u32 },
    Open(u32),
    Ready(u32),
    Stop(u32),
    Close(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let node = || (0..12u64).prop_map(NodeId);
    let parent = || prop_oneof![Just(NodeId::ROOT), node(), node()];
    let weight = || prop_oneof![Just(16u16), 1..=256u16];
    let slot = || 0..8u32;
    prop_oneof![
        4 => (node(), parent(), weight(), any::<bool>()).prop_map(|(node, parent, weight, exclusive)| {
            Step::Edit(PriorityEdit::Insert { node, parent, weight, exclusive })
        }),
        4 => (node(), parent(), weight(), any::<bool>()).prop_map(|(node, parent, weight, exclusive)| {
            Step::Edit(PriorityEdit::Move { node, parent, weight, exclusive })
        }),
        1 => (node(), weight()).prop_map(|(node, weight)| {
            Step::Edit(PriorityEdit::Weight { node, weight })
        }),
        1 => node().prop_map(|node| Step::Edit(PriorityEdit::Remove { node })),
        4 => (0..12u64, slot()).prop_map(|(node, slot)| Step::Attach { node, slot }),
        3 => slot().prop_map(Step::Open),
        6 => slot().prop_map(Step::Ready),
        3 => slot().prop_map(Step::Stop),
        1 => slot().prop_map(Step::Close),
    ]
}

proptest! {
    #[test]
    fn every_answer_equals_a_fresh_computation(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::default();
        for step in steps {
            match step {
                Step::Edit(edit) => world.edit(&edit, None),
                Step::Attach { node, slot } => {
                    if let Some(stream) = world.live(slot) {
                        let edit = PriorityEdit::Attach { node: NodeId(node), stream: stream.id };
                        world.edit(&edit, Some(stream));
                    }
                }
                Step::Open(slot) => world.open(slot),
                Step::Ready(slot) => world.set_ready(slot, true),
                Step::Stop(slot) => world.set_ready(slot, false),
                Step::Close(slot) => world.close(slot),
            }
            world.check();
        }
    }
}

fn insert(world: &mut World, node: u64, parent: NodeId, weight: u16) {
    let edit = PriorityEdit::Insert { node: NodeId(node), parent, weight, exclusive: false };
    world.edit(&edit, None);
}

fn attach(world: &mut World, node: u64, slot: u32) {
    let stream = world.live(slot).unwrap();
    let edit = PriorityEdit::Attach { node: NodeId(node), stream: stream.id };
    world.edit(&edit, Some(stream));
}

#[test]
fn an_idle_parent_passes_its_share_on_and_a_ready_one_keeps_it() {
    let mut world = World::default();
    insert(&mut world, 1, NodeId::ROOT, 100);
    insert(&mut world, 2, NodeId(1), 30);
    insert(&mut world, 3, NodeId(1), 10);
    for slot in 0..4 {
        world.open(slot);
    }
    for slot in 0..3 {
        attach(&mut world, u64::from(slot) + 1, slot);
    }
    for slot in [1, 2, 3] {
        world.set_ready(slot, true);
    }
    let share = |world: &World, slot| world.tree.share(world.live(slot).unwrap());
    assert_eq!(share(&world, 1), 100.0 / 116.0 * 0.75);
    assert_eq!(share(&world, 3), 16.0 / 116.0);
    assert_eq!(world.tree.preemptions(), 0);
    world.set_ready(0, true);
    assert_eq!(share(&world, 0), 100.0 / 116.0);
    assert_eq!(share(&world, 1), 0.0);
    assert_eq!(world.tree.preemptions(), 1);
}

#[test]
fn a_stream_attached_before_it_is_opened_keeps_its_node() {
    let mut world = World::default();
    insert(&mut world, 1, NodeId::ROOT, 200);
    let stream = StreamKey { slot: 5, id: StreamId(40) };
    let node = world.priorities.key(NodeId(1)).unwrap();
    world.tell(&Event::Tree(TreeEdit::Attached { node, stream }));
    world.tell(&Event::Opened(stream));
    world.tell(&Event::Ready(stream));
    assert_eq!(world.tree.place_of(stream), world.tree.place(node));
    assert_eq!(world.tree.active_weight(Place::ROOT), 200);
}

#[test]
fn a_slot_used_again_belongs_to_the_new_stream() {
    let mut tree: ActiveTree<u32> = ActiveTree::new();
    let priorities = Priorities::new();
    let old = StreamKey { slot: 0, id: StreamId(0) };
    let new = StreamKey { slot: 0, id: StreamId(4) };
    let mut tell = |event| tree.on_event(&event, &priorities, &mut |_, _| {});
    tell(Event::Ready(old));
    tell(Event::Closed(old));
    tell(Event::Ready(new));
    tell(Event::Stopped(old));
    tell(Event::Closed(old));
    assert_eq!(tree.place_of(old), None);
    assert_eq!(tree.share(new), 1.0);
}

#[test]
fn an_active_node_moves_before_a_sibling() {
    let mut world = World::default();
    for slot in 0..3 {
        world.open(slot);
        world.set_ready(slot, true);
    }
    let places: Vec<Place> = world.tree.active_children(Place::ROOT).collect();
    let [a, b, c] = places[..] else { panic!("three streams are ready") };
    let order = |world: &World| world.tree.active_children(Place::ROOT).collect::<Vec<_>>();
    world.tree.move_before(c, a);
    assert_eq!(order(&world), [c, a, b]);
    world.tree.move_before(c, b);
    assert_eq!(order(&world), [a, c, b]);
    world.tree.move_before(a, Place::ROOT);
    world.tree.move_before(b, b);
    assert_eq!(order(&world), [a, c, b]);
    world.check();
}
