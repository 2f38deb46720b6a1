//! The tree that stands for urgencies, for policies that share by the tree.
//!
//! A stream of which HTTP told the urgency, but no place in the tree, gets a node of its own. From the
//! top, each urgency in use has:
//!
//! ```text
//! … ── top ── first ── second ── … ── level ─┬─ incremental
//!             non-incremental,               ├─ incremental
//!             by stream identifier           └─ top of the next urgency in use
//! ```
//!
//! Top and level are nodes without stream. The sheet of browsers' signals says: one such node per urgency
//! in use, each an exclusive child of the next more urgent one; incremental streams are its children
//! with weight 16, the others are chained exclusively in order of identifier. It is a reconstruction. Put
//! in by exclusive insertions, the chain takes over everything below; so it may as well stand above the
//! incremental streams, where a new member moves one node instead of all of them. The order of service
//! is the same. Our choice are the weights, which matter neither in a chain nor among equals: those of
//! Chrome for its levels, so that a policy that looks at a stream's weight alone goes by urgency too,
//! and so that the tree, told to somebody, means the urgencies it came from.
//!
//! The tree cannot say all that urgencies say: among its siblings the next urgency has the weight 1,
//! the least there is, but not nothing. While n incremental streams of weight w send, 1 / (w n + 1) is
//! due to what is less urgent. Chains are strict.
//!
//! Each edit changes a bounded number of nodes. The nodes of streams that are closed leave with later
//! edits, [`STALE_PER_EDIT`] at a time.

use std::collections::{BTreeMap, VecDeque};

use quipu_base::StreamId;

use super::{Priorities, TreeEdits};
use crate::key::StreamKey;
use crate::priority::mapping::{CHROME, LEAST_URGENT};
use crate::priority::{NodeId, NodeKey, TreeEdit, Urgency};

/// Nodes of closed streams that leave with one edit: more than can come by one edit.
const STALE_PER_EDIT: usize = 2;
/// Weight of the next urgency among the incremental streams of the one above.
const NEXT_LEVEL: u16 = 1;

/// The urgencies in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels {
    /// Boxed, for most connections have none.
    levels: [Option<Box<Level>>; LEAST_URGENT as usize + 1],
    /// Nodes whose stream is closed, or was.
    stale: VecDeque<NodeKey>,
}

#[derive(Clone, Debug)]
struct Level {
    top: NodeKey,
    /// The non-incremental streams between top and node.
    chain: BTreeMap<StreamId, NodeKey>,
    /// Parent of the incremental streams.
    node: NodeKey,
    /// How many these are.
    sharing: usize,
}

impl NodeId {
    const OF_LEVEL: u64 = 1 << 63;
    const OF_STREAM: u64 = 1 << 62;

    const fn of_top(level: u8) -> NodeId {
        NodeId(Self::OF_LEVEL | level as u64)
    }

    const fn of_level(level: u8) -> NodeId {
        NodeId(Self::OF_LEVEL | 8 | level as u64)
    }

    /// Stream identifiers have 62 bits.
    const fn of_stream(stream: StreamId) -> NodeId {
        NodeId(Self::OF_STREAM | stream.0)
    }

    /// Whether the container made the node, to stand for an urgency.
    pub(super) const fn is_derived(self) -> bool {
        self.0 >= Self::OF_STREAM && self.0 != NodeId::ROOT.0
    }

    const fn stream(self) -> StreamId {
        StreamId(self.0 & !Self::OF_STREAM)
    }
}

impl Levels {
    /// The stream of a derived node is closed.
    pub(super) fn note_stale(&mut self, node: NodeKey) {
        self.stale.push_back(node);
    }

    fn level(&self, urgency: Urgency) -> Option<&Level> {
        self.levels.get(usize::from(urgency.level))?.as_deref()
    }

    fn level_mut(&mut self, urgency: Urgency) -> Option<&mut Level> {
        self.levels.get_mut(usize::from(urgency.level))?.as_deref_mut()
    }
}

/// The weight of a stream of that urgency.
fn weight(urgency: Urgency) -> u16 {
    CHROME.get(usize::from(urgency.level)).copied().unwrap_or(NEXT_LEVEL)
}

impl Priorities {
    /// Gives `stream` the place that `urgency` means, unless the tree is full.
    pub(super) fn place_derived(
        &mut self,
        stream: StreamKey,
        urgency: Urgency,
        done: &mut TreeEdits,
    ) {
        let id = NodeId::of_stream(stream.id);
        let existing = self.key(id);
        let stays =
            |node: &NodeKey| self.node(*node).is_some_and(|view| view.meaning.urgency == urgency);
        let node = match existing.filter(stays) {
            Some(node) => node,
            None => {
                if let Some(node) = existing {
                    self.leave_level(node, done);
                }
                match self.join_level(id, urgency, done) {
                    Some(node) => node,
                    None => return,
                }
            }
        };
        if self.node(node).is_some_and(|view| view.stream != Some(stream)) {
            self.link_stream(node, stream);
            done.push(TreeEdit::Attached { node, stream });
        }
        self.close_levels(done);
    }

    /// Takes a derived node out of the tree. Its stream, if any, has another node.
    pub(super) fn remove_derived(&mut self, node: NodeKey, done: &mut TreeEdits) {
        self.leave_level(node, done);
        self.drop_node(node, done);
        self.close_levels(done);
    }

    /// Takes out a few nodes of closed streams.
    pub(super) fn remove_stale(&mut self, done: &mut TreeEdits) {
        for _ in 0..STALE_PER_EDIT {
            let Some(node) = self.levels.stale.pop_front() else { return };
            if self.is_derived(node) && self.node(node).is_some_and(|view| view.stream.is_none()) {
                self.remove_derived(node, done);
            }
        }
    }

    /// Hangs a new or existing leaf where `urgency` belongs; `None` if there is no room for a new one.
    /// The nodes of levels, which are few, come on top.
    fn join_level(
        &mut self,
        id: NodeId,
        urgency: Urgency,
        done: &mut TreeEdits,
    ) -> Option<NodeKey> {
        if self.key(id).is_none() && !self.has_room(3) {
            return None;
        }
        self.open_level(urgency, done);
        let level = self.levels.level(urgency)?;
        let (parent, below) = if urgency.incremental {
            (level.node, None)
        } else {
            let stream = id.stream();
            let above = level.chain.range(..stream).next_back().map(|(_, &node)| node);
            let below = level.chain.range(stream..).next().map(|(_, &node)| node);
            (above.unwrap_or(level.top), Some(below.unwrap_or(level.node)))
        };
        let node = match self.key(id) {
            Some(node) => {
                self.relink(node, parent, done);
                self.set_weight(node, weight(urgency), done);
                node
            }
            None => self.add_leaf(id, parent, weight(urgency), done),
        };
        if let Some(below) = below {
            self.relink(below, node, done);
        }
        if let Some(view) = self.node_mut(node) {
            view.meaning.urgency = urgency;
        }
        let level = self.levels.level_mut(urgency)?;
        if urgency.incremental {
            level.sharing += 1;
        } else {
            level.chain.insert(id.stream(), node);
        }
        Some(node)
    }

    /// Makes a derived node a leaf that belongs to no level.
    fn leave_level(&mut self, node: NodeKey, done: &mut TreeEdits) {
        let Some(view) = self.node(node) else { return };
        let (stream, parent, urgency) = (view.id.stream(), view.parent, view.meaning.urgency);
        let Some(level) = self.levels.level_mut(urgency) else { return };
        if urgency.incremental {
            level.sharing -= 1;
            return;
        }
        level.chain.remove(&stream);
        let below = self.node(node).and_then(|view| view.children.first().copied());
        if let Some(below) = below {
            self.relink(below, parent, done);
        }
    }

    /// Makes the nodes of an urgency, between the ones in use next to it.
    fn open_level(&mut self, urgency: Urgency, done: &mut TreeEdits) {
        let at = usize::from(urgency.level);
        let (above, rest) = self.levels.levels.split_at(at.min(LEAST_URGENT.into()));
        if rest.first().is_some_and(Option::is_some) {
            return;
        }
        let above = above.iter().flatten().next_back().map(|level| level.node);
        let below = rest.iter().flatten().next().map(|level| level.top);
        let parent = below.and_then(|below| self.node(below)).map(|view| view.parent);
        let parent = parent.or(above).unwrap_or(NodeKey::ROOT);
        let top = self.add_leaf(NodeId::of_top(urgency.level), parent, NEXT_LEVEL, done);
        let node = self.add_leaf(NodeId::of_level(urgency.level), top, weight(urgency), done);
        if let Some(below) = below {
            self.relink(below, node, done);
        }
        if let Some(slot) = self.levels.levels.get_mut(at) {
            let level = Level { top, chain: BTreeMap::new(), node, sharing: 0 };
            *slot = Some(Box::new(level));
        }
    }

    /// Takes out the nodes of urgencies that no stream has.
    fn close_levels(&mut self, done: &mut TreeEdits) {
        for at in 0..self.levels.levels.len() {
            let unused = |level: &mut Box<Level>| level.chain.is_empty() && level.sharing == 0;
            let Some(level) = self.levels.levels[at].take_if(unused) else { continue };
            let Level { top, node, .. } = *level;
            let parent = self.node(top).map(|view| view.parent);
            let below = self.node(node).and_then(|view| view.children.first().copied());
            if let (Some(parent), Some(below)) = (parent, below) {
                self.relink(below, parent, done);
            }
            self.drop_node(node, done);
            self.drop_node(top, done);
        }
    }
}

#[cfg(test)]
mod tests;
