//! Which nodes of the dependency tree have something to send: counted edge by edge.
//!
//! The connection's [`Priorities`](crate::Priorities) know the structure of the tree; they know nothing of sending. A
//! policy that shares by the tree keeps an [`ActiveTree`], which follows the tree's edits and the
//! streams' edges and keeps a state `T` of the policy per node.
//!
//! A node is *active* if its stream is ready or a child is active
//! (<https://www.rfc-editor.org/rfc/rfc7540#section-5.3.1>). Active children are linked in order of
//! activation; inactive ones are in no list, so nothing ever scans them. A chain of k inactive
//! ancestors costs k, once per edge; everything else is O(1).

use quipu_base::StreamId;

use crate::key::StreamKey;
use crate::priority::NodeKey;

mod follow;

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

    /// Calls `visit` for the place of a stream and then for each of its ancestors but the root, each
    /// with its parent.
    pub fn climb(&mut self, stream: StreamKey, mut visit: impl FnMut(&mut Self, Place, Place)) {
        let Some(mut node) = self.place_of(stream) else { return };
        while let Some(parent) = self.parent(node) {
            visit(self, node, parent);
            node = parent;
        }
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

#[cfg(test)]
mod tests;
