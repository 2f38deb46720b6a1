//! Which nodes of the dependency tree have something to send: counted edge by edge.
//!
//! The connection's [`Priorities`] know the structure of the tree; they know nothing of sending. A
//! policy that shares by the tree keeps an [`ActiveTree`], which follows the tree's edits and the
//! streams' edges and keeps a state `T` of the policy per node.
//!
//! A node is *active* if its stream is ready or a child is active
//! (<https://www.rfc-editor.org/rfc/rfc7540#section-5.3.1>). Active children are linked in order of
//! activation; inactive ones are in no list, so nothing ever scans them. A chain of k inactive
//! ancestors costs k, once per edge; everything else is O(1).

use quipu_base::StreamId;

use super::{NodeKey, Priorities, TreeEdit};
use crate::seam::event::Event;
use crate::seam::key::StreamKey;

/// Weight of a stream that no node speaks for: the default of
/// <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.5>.
pub const DEFAULT_WEIGHT: u16 = 16;

/// A node of an [`ActiveTree`]: a node of the dependency tree, or a stream of its own that hangs
/// under the root because no node speaks for it. Dense, and used again after the node is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u32);

/// What changed in an [`ActiveTree`]. The tree shows the state after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A node became active, as the last of its parent's active children.
    Activated {
        /// The node.
        node: Place,
        /// Its parent.
        parent: Place,
    },
    /// A node is active no more under that parent.
    Deactivated {
        /// The node.
        node: Place,
        /// Its parent until now.
        parent: Place,
        /// The active sibling that followed it; `None` if it was the last.
        next: Option<Place>,
    },
    /// An active node has another weight.
    Weighted {
        /// The node.
        node: Place,
        /// Its weight until now.
        was: u16,
    },
}

/// The dependency tree as a sender sees it, with a state `T` per node.
#[derive(Clone, Debug)]
pub struct ActiveTree<T> {
    nodes: Vec<Node<T>>,
    free: Vec<Place>,
    by_node: Vec<Option<Place>>,
    by_stream: Vec<Option<(StreamId, Place)>>,
    preemptions: u64,
}

#[derive(Clone, Debug)]
struct Node<T> {
    parent: Place,
    weight: u16,
    /// True if its stream has something to send.
    ready: bool,
    stream: Option<StreamKey>,
    /// Its slot in the connection's tree; `None`: a stream of its own under the root.
    key: Option<NodeKey>,
    /// For ties: how HTTP names the node, or the stream's identifier.
    id: u64,
    active_children: u32,
    active_weight: u32,
    first: Option<Place>,
    last: Option<Place>,
    previous: Option<Place>,
    next: Option<Place>,
    state: T,
}

/// Told of each change as it happens.
type Observer<'a, T> = &'a mut dyn FnMut(&mut ActiveTree<T>, Change);

impl Place {
    /// The root of the tree.
    pub const ROOT: Place = Place(0);

    /// The place as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The place as a dense number.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The place of that dense number.
    pub const fn from_number(number: u32) -> Self {
        Place(number)
    }
}

impl<T: Default> Default for ActiveTree<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> ActiveTree<T> {
    /// The place of a live stream.
    pub fn place_of(&self, stream: StreamKey) -> Option<Place> {
        let (id, place) = (*self.by_stream.get(stream.index())?)?;
        (id == stream.id).then_some(place)
    }

    /// The place of a node of the dependency tree.
    pub fn place(&self, node: NodeKey) -> Option<Place> {
        *self.by_node.get(node.index())?
    }

    /// The parent; `None` for the root.
    pub fn parent(&self, place: Place) -> Option<Place> {
        (place != Place::ROOT).then(|| self.node(place).parent)
    }

    /// The weight, 1 to 256; 16 for a stream that no node speaks for.
    pub fn weight(&self, place: Place) -> u16 {
        self.node(place).weight
    }

    /// For ties: the number by which HTTP names the node, or the identifier of a stream that no
    /// node speaks for.
    pub fn id(&self, place: Place) -> u64 {
        self.node(place).id
    }

    /// The node's own stream, if that has something to send.
    pub fn ready(&self, place: Place) -> Option<StreamKey> {
        let node = self.node(place);
        if node.ready { node.stream } else { None }
    }

    /// True if the node's stream is ready or a child is active.
    pub fn is_active(&self, place: Place) -> bool {
        let node = self.node(place);
        node.ready || node.active_children > 0
    }

    /// Sum of the weights of the active children (`W_act`).
    pub fn active_weight(&self, place: Place) -> u32 {
        self.node(place).active_weight
    }

    /// Number of active children.
    pub fn active_children_len(&self, place: Place) -> u32 {
        self.node(place).active_children
    }

    /// The active child that became active first.
    pub fn first_active(&self, place: Place) -> Option<Place> {
        self.node(place).first
    }

    /// The active sibling that became active next.
    pub fn next_active(&self, place: Place) -> Option<Place> {
        self.node(place).next
    }

    /// The active children, in order of activation.
    pub fn active_children(&self, place: Place) -> impl Iterator<Item = Place> + '_ {
        std::iter::successors(self.first_active(place), |&child| self.next_active(child))
    }

    /// The node and its ancestors, the root last.
    pub fn upwards(&self, place: Place) -> impl Iterator<Item = Place> + '_ {
        std::iter::successors(Some(place), |&node| self.parent(node))
    }

    /// The share of the connection that is due to a ready stream at this instant (φ): the product
    /// of weight over active weight on the way to the root. Zero if the stream is not ready or an
    /// ancestor's stream is. <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.2>
    pub fn share(&self, stream: StreamKey) -> f64 {
        let Some(mut place) = self.place_of(stream).filter(|&place| self.node(place).ready) else {
            return 0.0;
        };
        let mut share = 1.0;
        while let Some(parent) = self.parent(place) {
            if self.node(parent).ready {
                return 0.0;
            }
            share *= f64::from(self.weight(place)) / f64::from(self.active_weight(parent));
            place = parent;
        }
        share
    }

    /// How often an edit moved or re-weighted an active node, or a stream became ready above
    /// active ones: such a change also concerns bytes that are planned but not sent.
    pub fn preemptions(&self) -> u64 {
        self.preemptions
    }

    /// The policy's state of a node.
    pub fn state(&self, place: Place) -> &T {
        &self.node(place).state
    }

    /// The same, to change it.
    pub fn state_mut(&mut self, place: Place) -> &mut T {
        &mut self.node_mut(place).state
    }

    fn node(&self, place: Place) -> &Node<T> {
        &self.nodes[place.index()]
    }

    fn node_mut(&mut self, place: Place) -> &mut Node<T> {
        &mut self.nodes[place.index()]
    }

    /// Moves an active node before an active sibling; does nothing if they are none.
    pub fn move_before(&mut self, node: Place, sibling: Place) {
        let siblings = self.parent(node).is_some() && self.parent(node) == self.parent(sibling);
        if node != sibling && siblings && self.is_active(node) && self.is_active(sibling) {
            self.unlink(node);
            self.link(node, Some(sibling));
        }
    }

    /// Puts a node before one of its parent's active children, or after all of them.
    fn link(&mut self, node: Place, next: Option<Place>) {
        let parent = self.node(node).parent;
        let previous = match next {
            Some(next) => self.node_mut(next).previous.replace(node),
            None => self.node_mut(parent).last.replace(node),
        };
        match previous {
            Some(previous) => self.node_mut(previous).next = Some(node),
            None => self.node_mut(parent).first = Some(node),
        }
        self.node_mut(node).previous = previous;
        self.node_mut(node).next = next;
    }

    /// Takes a node out of its parent's active children; returns the one that followed it.
    fn unlink(&mut self, node: Place) -> Option<Place> {
        let parent = self.node(node).parent;
        let previous = self.node_mut(node).previous.take();
        let next = self.node_mut(node).next.take();
        match previous {
            Some(previous) => self.node_mut(previous).next = next,
            None => self.node_mut(parent).first = next,
        }
        match next {
            Some(next) => self.node_mut(next).previous = previous,
            None => self.node_mut(parent).last = previous,
        }
        next
    }

    /// Links a node, which just became active, and its ancestors as far as they were inactive.
    fn activate(&mut self, mut node: Place, observe: Observer<'_, T>) {
        while node != Place::ROOT {
            let (parent, weight) = (self.node(node).parent, u32::from(self.node(node).weight));
            let parent_was_active = self.is_active(parent);
            self.link(node, None);
            self.node_mut(parent).active_children += 1;
            self.node_mut(parent).active_weight += weight;
            observe(self, Change::Activated { node, parent });
            if parent_was_active {
                break;
            }
            node = parent;
        }
    }

    /// Unlinks a node, which is active no more or leaves its parent, and its ancestors as far as
    /// they are inactive then.
    fn deactivate(&mut self, mut node: Place, observe: Observer<'_, T>) {
        while node != Place::ROOT {
            let (parent, weight) = (self.node(node).parent, u32::from(self.node(node).weight));
            let next = self.unlink(node);
            self.node_mut(parent).active_children -= 1;
            self.node_mut(parent).active_weight -= weight;
            observe(self, Change::Deactivated { node, parent, next });
            if self.is_active(parent) {
                break;
            }
            node = parent;
        }
    }

    fn set_ready(&mut self, place: Place, ready: bool, observe: Observer<'_, T>) {
        if self.node(place).ready == ready {
            return;
        }
        let was_active = self.is_active(place);
        self.node_mut(place).ready = ready;
        match (was_active, self.is_active(place)) {
            (false, true) => self.activate(place, observe),
            (true, false) => self.deactivate(place, observe),
            _ => self.preemptions += u64::from(ready),
        }
    }
}

impl<T: Default> ActiveTree<T> {
    /// A tree of just the root.
    pub fn new() -> Self {
        let mut tree = ActiveTree {
            nodes: Vec::new(),
            free: Vec::new(),
            by_node: Vec::new(),
            by_stream: Vec::new(),
            preemptions: 0,
        };
        let root = tree.create(Place::ROOT, DEFAULT_WEIGHT, Some(NodeKey::ROOT), 0);
        tree.by_node.push(Some(root));
        tree
    }

    /// Follows an event: edits of the tree and the edges of streams; others change nothing.
    /// `priorities` name new nodes for ties; `observe` is told of each change as it happens.
    ///
    /// A stream may be attached to a node before or after it is opened; while none speaks for it,
    /// it hangs under the root with weight 16.
    pub fn on_event(
        &mut self,
        event: &Event<'_>,
        priorities: &Priorities,
        observe: &mut dyn FnMut(&mut ActiveTree<T>, Change),
    ) {
        match *event {
            Event::Opened(stream) => {
                self.open(stream, observe);
            }
            Event::Ready(stream) => {
                let place = self.open(stream, observe);
                self.set_ready(place, true, observe);
            }
            Event::Stopped(stream) => {
                if let Some(place) = self.place_of(stream) {
                    self.set_ready(place, false, observe);
                }
            }
            Event::Closed(stream) => self.close(stream, observe),
            Event::Tree(edit) => self.edit(edit, priorities, observe),
            _ => {}
        }
    }

    fn edit(&mut self, edit: TreeEdit, priorities: &Priorities, observe: Observer<'_, T>) {
        match edit {
            TreeEdit::Inserted { node, parent, weight } => {
                let parent = self.place(parent).unwrap_or(Place::ROOT);
                let id = priorities.node(node).map_or(u64::from(node.0), |view| view.id.0);
                let place = self.create(parent, weight, Some(node), id);
                if self.by_node.len() <= node.index() {
                    self.by_node.resize(node.index() + 1, None);
                }
                self.by_node[node.index()] = Some(place);
            }
            TreeEdit::Moved { node, parent } => {
                let (Some(node), Some(parent)) = (self.place(node), self.place(parent)) else {
                    return;
                };
                self.relink(node, parent, observe);
            }
            TreeEdit::Weighted { node, weight } => {
                if let Some(node) = self.place(node) {
                    self.set_weight(node, weight, observe);
                }
            }
            TreeEdit::Removed { node } => {
                let Some(place) = self.place(node).filter(|&place| place != Place::ROOT) else {
                    return;
                };
                if let Some(stream) = self.node(place).stream {
                    self.move_stream(stream, None, observe);
                }
                self.by_node[node.index()] = None;
                self.free.push(place);
            }
            TreeEdit::Attached { node, stream } => {
                let Some(place) = self.place(node) else { return };
                if let Some(other) = self.node(place).stream.filter(|&other| other != stream) {
                    self.move_stream(other, None, observe);
                }
                self.move_stream(stream, Some(place), observe);
            }
        }
    }

    fn relink(&mut self, node: Place, parent: Place, observe: Observer<'_, T>) {
        // A node below itself would never be reached again; the container makes no such edit.
        if node == Place::ROOT || self.upwards(parent).any(|above| above == node) {
            return;
        }
        let active = self.is_active(node);
        if active {
            self.preemptions += 1;
            self.deactivate(node, observe);
        }
        self.node_mut(node).parent = parent;
        if active {
            self.activate(node, observe);
        }
    }

    fn set_weight(&mut self, node: Place, weight: u16, observe: Observer<'_, T>) {
        let was = std::mem::replace(&mut self.node_mut(node).weight, weight);
        if node != Place::ROOT && was != weight && self.is_active(node) {
            self.preemptions += 1;
            let parent = self.node(node).parent;
            let sum = &mut self.node_mut(parent).active_weight;
            *sum = *sum - u32::from(was) + u32::from(weight);
            observe(self, Change::Weighted { node, was });
        }
    }

    /// The stream's place; a new one under the root if it has none.
    fn open(&mut self, stream: StreamKey, observe: Observer<'_, T>) -> Place {
        if let Some(place) = self.place_of(stream) {
            return place;
        }
        self.evict(stream, observe);
        let place = self.create(Place::ROOT, DEFAULT_WEIGHT, None, stream.id.0);
        self.settle(stream, place);
        place
    }

    fn close(&mut self, stream: StreamKey, observe: Observer<'_, T>) {
        let Some(place) = self.place_of(stream) else { return };
        self.set_ready(place, false, observe);
        self.by_stream[stream.index()] = None;
        self.node_mut(place).stream = None;
        if self.node(place).key.is_none() {
            self.free.push(place);
        }
    }

    /// Moves a stream to a node, or to a place of its own under the root.
    fn move_stream(&mut self, stream: StreamKey, to: Option<Place>, observe: Observer<'_, T>) {
        let from = self.place_of(stream);
        if from.is_some() && from == to {
            return;
        }
        let ready = from.is_some_and(|place| self.node(place).ready);
        match from {
            Some(_) => self.close(stream, observe),
            None => self.evict(stream, observe),
        }
        let place = match to {
            Some(place) => place,
            None => self.create(Place::ROOT, DEFAULT_WEIGHT, None, stream.id.0),
        };
        self.settle(stream, place);
        self.set_ready(place, ready, observe);
    }

    /// Forgets an older stream that had the slot of `stream`.
    fn evict(&mut self, stream: StreamKey, observe: Observer<'_, T>) {
        if let Some(Some((id, _))) = self.by_stream.get(stream.index()).copied() {
            self.close(StreamKey { id, ..stream }, observe);
        }
    }

    fn settle(&mut self, stream: StreamKey, place: Place) {
        if self.by_stream.len() <= stream.index() {
            self.by_stream.resize(stream.index() + 1, None);
        }
        self.by_stream[stream.index()] = Some((stream.id, place));
        self.node_mut(place).stream = Some(stream);
    }

    fn create(&mut self, parent: Place, weight: u16, key: Option<NodeKey>, id: u64) -> Place {
        let node = Node {
            parent,
            weight,
            ready: false,
            stream: None,
            key,
            id,
            active_children: 0,
            active_weight: 0,
            first: None,
            last: None,
            previous: None,
            next: None,
            state: T::default(),
        };
        match self.free.pop() {
            Some(place) => {
                self.nodes[place.index()] = node;
                place
            }
            None => {
                // Bounded by the nodes of the container and the streams of the connection.
                let place = Place(self.nodes.len() as u32);
                self.nodes.push(node);
                place
            }
        }
    }
}

#[cfg(test)]
mod tests;
