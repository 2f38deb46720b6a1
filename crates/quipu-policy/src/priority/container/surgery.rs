//! Changes of the tree's structure, each told as elementary edits.

use super::{NodeView, Priorities, TreeEdits};
use crate::priority::mapping::Meaning;
use crate::priority::{NodeId, NodeKey, PriorityError, TreeEdit};

/// Most nodes that a tree holds, the root included; our choice.
const MAX_NODES: usize = 16_384;

impl Priorities {
    /// Whether so many nodes can be added.
    pub(super) fn has_room(&self, nodes: usize) -> bool {
        self.len() + nodes <= MAX_NODES
    }

    pub(super) fn add_leaf(
        &mut self,
        id: NodeId,
        parent: NodeKey,
        weight: u16,
        done: &mut TreeEdits,
    ) -> NodeKey {
        let key = self.free.pop().unwrap_or(NodeKey(self.nodes.len() as u32));
        if key.index() == self.nodes.len() {
            self.nodes.push(None);
        }
        let meaning = Meaning { weight, ..Meaning::ROOT };
        self.nodes[key.index()] = Some(NodeView::leaf(id, parent, meaning));
        self.by_id.insert(id, key);
        if let Some(view) = self.node_mut(parent) {
            view.children.push(key);
        }
        done.push(TreeEdit::Inserted { node: key, parent, weight });
        key
    }

    /// Takes out a node without children.
    pub(super) fn drop_node(&mut self, key: NodeKey, done: &mut TreeEdits) {
        let Some(view) = self.nodes.get_mut(key.index()).and_then(Option::take) else { return };
        if let Some(parent) = self.node_mut(view.parent) {
            parent.children.retain(|&child| child != key);
        }
        self.by_id.remove(&view.id);
        self.free.push(key);
        done.push(TreeEdit::Removed { node: key });
    }

    pub(super) fn insert(
        &mut self,
        id: NodeId,
        parent: NodeId,
        weight: u16,
        exclusive: bool,
        done: &mut TreeEdits,
    ) -> Result<(), PriorityError> {
        check_weight(weight)?;
        if self.key(id).is_some() {
            return Err(PriorityError::Exists(id));
        }
        let parent = self.key(parent).ok_or(PriorityError::Unknown(parent))?;
        if !self.has_room(1) {
            return Err(PriorityError::Full(MAX_NODES));
        }
        let siblings = match (exclusive, self.node(parent)) {
            (true, Some(view)) => view.children.clone(),
            _ => Vec::new(),
        };
        let key = self.add_leaf(id, parent, weight, done);
        self.interpret(key, weight, exclusive);
        for sibling in siblings {
            self.relink(sibling, key, done);
            self.interpret_again(sibling);
        }
        Ok(())
    }

    pub(super) fn move_node(
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
        self.interpret(key, weight, exclusive);
        for sibling in siblings {
            self.relink(sibling, key, done);
            self.interpret_again(sibling);
        }
        Ok(())
    }

    /// <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.4>: the weight of a removed node is
    /// shared among its children in proportion to theirs.
    pub(super) fn remove(&mut self, key: NodeKey, done: &mut TreeEdits) {
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
        let stream = self.node(key).and_then(|view| view.stream);
        self.drop_node(key, done);
        if let Some(stream) = stream {
            self.known(stream).node = None;
            self.place_again(stream, done);
        }
    }

    pub(super) fn set_weight(&mut self, key: NodeKey, weight: u16, done: &mut TreeEdits) {
        if let Some(view) = self.node_mut(key).filter(|view| view.weight != weight) {
            view.weight = weight;
            done.push(TreeEdit::Weighted { node: key, weight });
        }
    }

    /// Hangs a node under another parent, at the end of its children.
    pub(super) fn relink(&mut self, key: NodeKey, parent: NodeKey, done: &mut TreeEdits) {
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
}

pub(super) fn check_weight(weight: u16) -> Result<(), PriorityError> {
    if (1..=256).contains(&weight) { Ok(()) } else { Err(PriorityError::Weight(weight)) }
}
