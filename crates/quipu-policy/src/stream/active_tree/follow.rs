//! How an [`ActiveTree`] follows events: edits of the dependency tree, edges of streams.

use super::{ActiveTree, Change, Node, Observer, Place};
use crate::key::StreamKey;
use crate::priority::{DEFAULT_WEIGHT, NodeKey, Priorities, TreeEdit};
use crate::seam::event::Event;

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
