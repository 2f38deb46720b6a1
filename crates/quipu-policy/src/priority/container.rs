//! The container that the connection owns: structure and values, no scheduling state.
//!
//! It keeps priorities in both forms, the dependency tree of RFC 7540 and the urgencies of RFC 9218:
//! of each stream the form that HTTP told, and the other derived from it, so that a policy never asks
//! which world a page is from. Places become urgencies by the rule of [`mapping`](super::mapping),
//! urgencies become places in [`levels`]. Where HTTP tells both forms of a stream, nothing is derived.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use self::levels::Levels;
use self::surgery::check_weight;
use super::mapping::{Above, LEAST_URGENT, Meaning};
use super::{NodeId, NodeKey, Priority, PriorityEdit, PriorityError, TreeEdit, Urgency};
use crate::key::StreamKey;

mod levels;
mod surgery;

/// One node of the dependency tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// How HTTP names it.
    pub id: NodeId,
    /// Its parent; the root is its own.
    pub parent: NodeKey,
    /// 1 to 256.
    pub weight: u16,
    /// Its children, in order of arrival.
    pub children: Vec<NodeKey>,
    /// The stream it speaks for.
    pub stream: Option<StreamKey>,
    /// Whether it ever spoke for a stream.
    spoke: bool,
    /// What was last said of it.
    meaning: Meaning,
}

/// The priorities of a connection: a dependency tree with its weights, and urgencies.
#[derive(Clone, Debug)]
pub struct Priorities {
    nodes: Vec<Option<NodeView>>,
    free: Vec<NodeKey>,
    /// All but the root: most connections have no other node, and need no memory for them.
    by_id: BTreeMap<NodeId, NodeKey>,
    /// What is known of a stream, by its slot.
    by_stream: Vec<Known>,
    levels: Levels,
}

/// What is known of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The node that speaks for it.
    node: Option<NodeKey>,
    /// The urgency that was told, or that follows from its node.
    urgency: Option<Urgency>,
    /// Whether the urgency was told.
    told: bool,
}

/// Elementary edits that one edit came to.
pub type TreeEdits = SmallVec<[TreeEdit; 4]>;

impl Default for Priorities {
    fn default() -> Self {
        Self::new()
    }
}

impl Priorities {
    /// A tree of just the root.
    pub fn new() -> Self {
        let root = NodeView::leaf(NodeId::ROOT, NodeKey::ROOT, Meaning::ROOT);
        Priorities {
            nodes: vec![Some(root)],
            free: Vec::new(),
            by_id: BTreeMap::new(),
            by_stream: Vec::new(),
            levels: Levels::default(),
        }
    }

    /// The node in that slot.
    pub fn node(&self, key: NodeKey) -> Option<&NodeView> {
        self.nodes.get(key.index())?.as_ref()
    }

    /// The key of the node that HTTP calls `id`.
    pub fn key(&self, id: NodeId) -> Option<NodeKey> {
        if id == NodeId::ROOT { Some(NodeKey::ROOT) } else { self.by_id.get(&id).copied() }
    }

    /// The node that speaks for a stream.
    pub fn node_of(&self, stream: StreamKey) -> Option<&NodeView> {
        let node = self.by_stream.get(stream.index())?.node?;
        self.node(node).filter(|view| view.stream == Some(stream))
    }

    /// Number of nodes, the root included.
    pub fn len(&self) -> usize {
        self.by_id.len() + 1
    }

    /// True if there is nothing but the root.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The stream's priority with node and urgency as this container has them, told or derived; what it
    /// does not know stays as it is in `priority`.
    pub fn complete(&self, stream: StreamKey, priority: Priority) -> Priority {
        let Known { node, urgency, .. } =
            self.by_stream.get(stream.index()).copied().unwrap_or_default();
        let (level, incremental) = match urgency {
            Some(urgency) => (urgency.level, urgency.incremental),
            None => (priority.urgency, priority.incremental),
        };
        Priority { node, urgency: level, incremental, ..priority }
    }

    /// The stream whose [completed](Priorities::complete) priority an elementary edit may have changed.
    pub fn touched(&self, edit: &TreeEdit) -> Option<StreamKey> {
        match *edit {
            TreeEdit::Inserted { node, .. }
            | TreeEdit::Moved { node, .. }
            | TreeEdit::Weighted { node, .. } => self.node(node)?.stream,
            TreeEdit::Attached { stream, .. } => Some(stream),
            TreeEdit::Removed { .. } => None,
        }
    }

    /// The elementary edits that build this tree from an empty one, parents first: for a policy
    /// that joins late.
    pub fn replay(&self) -> Vec<TreeEdit> {
        let mut edits = Vec::new();
        let mut stack = vec![NodeKey::ROOT];
        while let Some(key) = stack.pop() {
            let Some(node) = self.node(key) else { continue };
            if key != NodeKey::ROOT {
                edits.push(TreeEdit::Inserted {
                    node: key,
                    parent: node.parent,
                    weight: node.weight,
                });
            }
            stack.extend(node.children.iter().rev());
        }
        let attached = self.nodes.iter().enumerate().filter_map(|(slot, node)| {
            let stream = node.as_ref()?.stream?;
            Some(TreeEdit::Attached { node: NodeKey(slot as u32), stream })
        });
        edits.extend(attached);
        edits
    }

    /// Applies an edit. `stream` is the key of the stream that it names, if it names one. Deadlines and
    /// sizes change nothing here: those values live in the stream's view. After it, and before the
    /// policies are told, the views of the named stream and of those that the elementary edits
    /// [touched](Priorities::touched) get their [completed](Priorities::complete) priority.
    ///
    /// Costs O(log n) for each elementary edit. There are at most 24, and one more for each node
    /// that an exclusive insertion takes over or a removed node leaves behind.
    ///
    /// # Errors
    /// See [`PriorityError`]; the tree is then as it was. An urgency for which the tree has no room is
    /// none: it stays without a place in the tree.
    pub fn apply(
        &mut self,
        edit: &PriorityEdit,
        stream: Option<StreamKey>,
    ) -> Result<TreeEdits, PriorityError> {
        let mut done = TreeEdits::new();
        if let Some(node) = edit.nodes().into_iter().flatten().find(|node| node.is_derived()) {
            return Err(PriorityError::Misplaced(node));
        }
        match *edit {
            PriorityEdit::Insert { node, parent, weight, exclusive } => {
                self.insert(node, parent, weight, exclusive, &mut done)?;
            }
            PriorityEdit::Move { node, parent, weight, exclusive } => {
                self.move_node(node, parent, weight, exclusive, &mut done)?;
            }
            PriorityEdit::Weight { node, weight } => {
                check_weight(weight)?;
                let key = self.inner_key(node)?;
                self.set_weight(key, weight, &mut done);
                let exclusive = self.node(key).is_some_and(|view| view.meaning.exclusive);
                self.interpret(key, weight, exclusive);
            }
            PriorityEdit::Remove { node } => {
                let key = self.inner_key(node)?;
                self.remove(key, &mut done);
            }
            PriorityEdit::Attach { node, .. } => {
                let key = self.inner_key(node)?;
                if let Some(stream) = stream {
                    self.attach(key, stream, &mut done);
                }
            }
            PriorityEdit::Urgency { urgency, incremental, .. } => {
                if let Some(stream) = stream {
                    let level = urgency.min(LEAST_URGENT);
                    self.set_urgency(stream, Urgency { level, incremental }, &mut done);
                }
            }
            PriorityEdit::Deadline { .. } | PriorityEdit::Size { .. } => {}
        }
        self.remove_stale(&mut done);
        Ok(done)
    }

    /// Forgets a stream that was closed. Its node stays if HTTP made it; one that stood for an urgency
    /// leaves with a later edit.
    pub fn detach(&mut self, stream: StreamKey) {
        let known = self.by_stream.get_mut(stream.index()).map(std::mem::take);
        let Some(node) = known.and_then(|known| known.node) else { return };
        if let Some(view) = self.node_mut(node) {
            view.stream = None;
            if view.id.is_derived() {
                self.levels.note_stale(node);
            }
        }
    }

    fn attach(&mut self, node: NodeKey, stream: StreamKey, done: &mut TreeEdits) {
        let before = self.known(stream).node;
        let lost = self.node(node).and_then(|view| view.stream).filter(|&other| other != stream);
        self.link_stream(node, stream);
        done.push(TreeEdit::Attached { node, stream });
        if let Some(derived) = before.filter(|&node| self.is_derived(node)) {
            self.remove_derived(derived, done);
        }
        if let Some(other) = lost {
            self.place_again(other, done);
        }
        self.follow(node);
    }

    /// HTTP told the urgency of a stream.
    fn set_urgency(&mut self, stream: StreamKey, urgency: Urgency, done: &mut TreeEdits) {
        let known = self.known(stream);
        (known.urgency, known.told) = (Some(urgency), true);
        self.place_again(stream, done);
    }

    /// Derives a place for a stream that has an urgency but no place that was told.
    fn place_again(&mut self, stream: StreamKey, done: &mut TreeEdits) {
        let Known { node, urgency, told } = *self.known(stream);
        if let Some(urgency) = urgency
            && told
            && node.is_none_or(|node| self.is_derived(node))
        {
            self.place_derived(stream, urgency, done);
        }
    }

    fn known(&mut self, stream: StreamKey) -> &mut Known {
        if self.by_stream.len() <= stream.index() {
            self.by_stream.resize(stream.index() + 1, Known::default());
        }
        &mut self.by_stream[stream.index()]
    }

    /// Lets a node speak for a stream; what they were bound to before is free.
    fn link_stream(&mut self, node: NodeKey, stream: StreamKey) {
        let old_stream = self.node_mut(node).and_then(|view| view.stream.replace(stream));
        if let Some(other) = old_stream.filter(|&other| other != stream) {
            self.known(other).node = None;
        }
        let old_node = self.known(stream).node.replace(node);
        if let Some(view) =
            old_node.filter(|&other| other != node).and_then(|other| self.node_mut(other))
        {
            view.stream = None;
        }
        if let Some(view) = self.node_mut(node) {
            view.spoke = true;
        }
    }

    /// Something was said of a node: what it means for its stream.
    fn interpret(&mut self, node: NodeKey, weight: u16, exclusive: bool) {
        let Some(parent) = self.node(node).map(|view| view.parent) else { return };
        let above = match self.node(parent) {
            Some(above) if parent != NodeKey::ROOT => above.as_above(),
            _ => Above::Root,
        };
        if let Some(view) = self.node_mut(node) {
            view.meaning = Meaning::of(weight, exclusive, above);
        }
        self.follow(node);
    }

    /// The same as was said before, in a place that another node changed.
    fn interpret_again(&mut self, node: NodeKey) {
        if let Some(Meaning { weight, exclusive, .. }) =
            self.node(node).filter(|view| !view.id.is_derived()).map(|view| view.meaning)
        {
            self.interpret(node, weight, exclusive);
        }
    }

    /// The stream of a node that was told gets the urgency of its place, unless that was told too.
    fn follow(&mut self, node: NodeKey) {
        let Some((stream, urgency)) =
            self.node(node).and_then(|view| Some((view.stream?, view.meaning.urgency)))
        else {
            return;
        };
        let known = self.known(stream);
        if !known.told {
            known.urgency = Some(urgency);
        }
    }

    fn is_derived(&self, node: NodeKey) -> bool {
        self.node(node).is_some_and(|view| view.id.is_derived())
    }

    fn inner_key(&self, id: NodeId) -> Result<NodeKey, PriorityError> {
        match self.key(id) {
            Some(NodeKey::ROOT) => Err(PriorityError::Misplaced(id)),
            Some(key) => Ok(key),
            None => Err(PriorityError::Unknown(id)),
        }
    }

    fn node_mut(&mut self, key: NodeKey) -> Option<&mut NodeView> {
        self.nodes.get_mut(key.index())?.as_mut()
    }
}

impl NodeView {
    fn leaf(id: NodeId, parent: NodeKey, meaning: Meaning) -> Self {
        let (weight, children) = (meaning.weight, Vec::new());
        NodeView { id, parent, weight, children, stream: None, spoke: false, meaning }
    }

    /// What it is to the nodes below it.
    fn as_above(&self) -> Above {
        if self.spoke {
            Above::Stream(self.meaning.urgency)
        } else {
            Above::Group(self.meaning.group, self.meaning.urgency)
        }
    }
}

impl PriorityEdit {
    /// The nodes that it names.
    fn nodes(&self) -> [Option<NodeId>; 2] {
        match *self {
            PriorityEdit::Insert { node, parent, .. } | PriorityEdit::Move { node, parent, .. } => {
                [Some(node), Some(parent)]
            }
            PriorityEdit::Weight { node, .. }
            | PriorityEdit::Remove { node }
            | PriorityEdit::Attach { node, .. } => [Some(node), None],
            PriorityEdit::Urgency { .. }
            | PriorityEdit::Deadline { .. }
            | PriorityEdit::Size { .. } => [None, None],
        }
    }
}

#[cfg(test)]
mod tests;
