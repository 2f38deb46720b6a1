//! The container that the connection owns: structure and values, no scheduling state.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::{NodeId, NodeKey, PriorityEdit, PriorityError, TreeEdit};
use crate::seam::key::StreamKey;

/// Most nodes that a tree holds, the root included; our choice.
const MAX_NODES: usize = 16_384;

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
}

/// The dependency tree with its weights.
#[derive(Clone, Debug)]
pub struct Priorities {
    nodes: Vec<Option<NodeView>>,
    free: Vec<NodeKey>,
    by_id: BTreeMap<NodeId, NodeKey>,
    /// The node that speaks for a stream, by the stream's slot.
    by_stream: Vec<Option<NodeKey>>,
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
        let root = NodeView {
            id: NodeId::ROOT,
            parent: NodeKey::ROOT,
            weight: 16,
            children: Vec::new(),
            stream: None,
        };
        Priorities {
            nodes: vec![Some(root)],
            free: Vec::new(),
            by_id: BTreeMap::from([(NodeId::ROOT, NodeKey::ROOT)]),
            by_stream: Vec::new(),
        }
    }

    /// The node in that slot.
    pub fn node(&self, key: NodeKey) -> Option<&NodeView> {
        self.nodes.get(key.index())?.as_ref()
    }

    /// The key of the node that HTTP calls `id`.
    pub fn key(&self, id: NodeId) -> Option<NodeKey> {
        self.by_id.get(&id).copied()
    }

    /// The node that speaks for a stream.
    pub fn node_of(&self, stream: StreamKey) -> Option<&NodeView> {
        let node = (*self.by_stream.get(stream.index())?)?;
        self.node(node).filter(|view| view.stream == Some(stream))
    }

    /// Number of nodes, the root included.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// True if there is nothing but the root.
    pub fn is_empty(&self) -> bool {
        self.by_id.len() == 1
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

    /// Applies an edit of the tree. `stream` is the key of the stream that an
    /// [`PriorityEdit::Attach`] names. Edits of single streams (urgency, deadline, size) change
    /// nothing here: those values live in the stream's view.
    ///
    /// # Errors
    /// See [`PriorityError`]; the tree is then as it was.
    pub fn apply(
        &mut self,
        edit: &PriorityEdit,
        stream: Option<StreamKey>,
    ) -> Result<TreeEdits, PriorityError> {
        let mut done = TreeEdits::new();
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
            }
            PriorityEdit::Remove { node } => {
                let key = self.inner_key(node)?;
                self.remove(key, node, &mut done);
            }
            PriorityEdit::Attach { node, .. } => {
                let key = self.inner_key(node)?;
                if let Some(stream) = stream {
                    self.attach(key, stream);
                    done.push(TreeEdit::Attached { node: key, stream });
                }
            }
            PriorityEdit::Urgency { .. }
            | PriorityEdit::Deadline { .. }
            | PriorityEdit::Size { .. } => {}
        }
        Ok(done)
    }

    /// Forgets a stream that was closed; its node stays.
    pub fn detach(&mut self, stream: StreamKey) {
        let node = self.by_stream.get_mut(stream.index()).and_then(Option::take);
        if let Some(view) = node.and_then(|node| self.node_mut(node)) {
            view.stream = None;
        }
    }

    fn attach(&mut self, node: NodeKey, stream: StreamKey) {
        if let Some(before) = self.node(node).and_then(|view| view.stream) {
            self.detach(before);
        }
        self.detach(stream);
        if self.by_stream.len() <= stream.index() {
            self.by_stream.resize(stream.index() + 1, None);
        }
        self.by_stream[stream.index()] = Some(node);
        if let Some(view) = self.node_mut(node) {
            view.stream = Some(stream);
        }
    }

    fn insert(
        &mut self,
        id: NodeId,
        parent: NodeId,
        weight: u16,
        exclusive: bool,
        done: &mut TreeEdits,
    ) -> Result<(), PriorityError> {
        check_weight(weight)?;
        if self.by_id.contains_key(&id) {
            return Err(PriorityError::Exists(id));
        }
        let parent = self.key(parent).ok_or(PriorityError::Unknown(parent))?;
        if self.by_id.len() >= MAX_NODES {
            return Err(PriorityError::Full(MAX_NODES));
        }
        let key = self.free.pop().unwrap_or(NodeKey(self.nodes.len() as u32));
        if key.index() == self.nodes.len() {
            self.nodes.push(None);
        }
        self.nodes[key.index()] =
            Some(NodeView { id, parent, weight, children: Vec::new(), stream: None });
        self.by_id.insert(id, key);
        let siblings = self.node(parent).map(|view| view.children.clone()).unwrap_or_default();
        if let Some(view) = self.node_mut(parent) {
            view.children.push(key);
        }
        done.push(TreeEdit::Inserted { node: key, parent, weight });
        if exclusive {
            for sibling in siblings {
                self.relink(sibling, key, done);
            }
        }
        Ok(())
    }

    fn move_node(
        &mut self,
        id: NodeId,
        parent: NodeId,
        weight: u16,
        exclusive: bool,
        done: &mut TreeEdits,
    ) -> Result<(), PriorityError> {
        check_weight(weight)?;
        let key = self.inner_key(id)?;
        if parent == id {
            return Err(PriorityError::Misplaced(id));
        }
        let parent = self.key(parent).ok_or(PriorityError::Unknown(parent))?;
        // https://www.rfc-editor.org/rfc/rfc7540#section-5.3.3
        //# If a stream is made dependent on one of its own dependencies, the
        //# formerly dependent stream is first moved to be dependent on the
        //# reprioritized stream's previous parent.
        if self.is_below(parent, key) {
            let old_parent = self.node(key).map_or(NodeKey::ROOT, |view| view.parent);
            self.relink(parent, old_parent, done);
        }
        let siblings = match (exclusive, self.node(parent)) {
            (true, Some(view)) => view.children.iter().copied().filter(|&c| c != key).collect(),
            _ => Vec::new(),
        };
        self.relink(key, parent, done);
        self.set_weight(key, weight, done);
        for sibling in siblings {
            self.relink(sibling, key, done);
        }
        Ok(())
    }

    /// <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.4>: the weight of a removed node is
    /// shared among its children in proportion to theirs.
    fn remove(&mut self, key: NodeKey, id: NodeId, done: &mut TreeEdits) {
        let Some((parent, weight, children)) =
            self.node(key).map(|view| (view.parent, view.weight, view.children.clone()))
        else {
            return;
        };
        let sum: u64 =
            children.iter().filter_map(|&c| self.node(c)).map(|view| u64::from(view.weight)).sum();
        for child in children {
            let own = self.node(child).map_or(1, |view| u64::from(view.weight));
            let share = (own * u64::from(weight) * 2 + sum) / (sum.max(1) * 2);
            self.relink(child, parent, done);
            self.set_weight(child, share.clamp(1, 256) as u16, done);
        }
        if let Some(view) = self.node_mut(parent) {
            view.children.retain(|&child| child != key);
        }
        if let Some(stream) = self.node(key).and_then(|view| view.stream) {
            self.detach(stream);
        }
        self.nodes[key.index()] = None;
        self.by_id.remove(&id);
        self.free.push(key);
        done.push(TreeEdit::Removed { node: key });
    }

    fn set_weight(&mut self, key: NodeKey, weight: u16, done: &mut TreeEdits) {
        if let Some(view) = self.node_mut(key).filter(|view| view.weight != weight) {
            view.weight = weight;
            done.push(TreeEdit::Weighted { node: key, weight });
        }
    }

    /// Hangs a node under another parent, at the end of its children.
    fn relink(&mut self, key: NodeKey, parent: NodeKey, done: &mut TreeEdits) {
        let Some(old_parent) = self.node(key).map(|view| view.parent) else { return };
        if old_parent == parent {
            return;
        }
        if let Some(view) = self.node_mut(old_parent) {
            view.children.retain(|&child| child != key);
        }
        if let Some(view) = self.node_mut(parent) {
            view.children.push(key);
        }
        if let Some(view) = self.node_mut(key) {
            view.parent = parent;
        }
        done.push(TreeEdit::Moved { node: key, parent });
    }

    fn is_below(&self, mut key: NodeKey, ancestor: NodeKey) -> bool {
        while key != NodeKey::ROOT {
            if key == ancestor {
                return true;
            }
            match self.node(key) {
                Some(view) => key = view.parent,
                None => return false,
            }
        }
        false
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

fn check_weight(weight: u16) -> Result<(), PriorityError> {
    if (1..=256).contains(&weight) { Ok(()) } else { Err(PriorityError::Weight(weight)) }
}

#[cfg(test)]
mod tests;
