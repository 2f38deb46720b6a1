//! Generalized processor sharing over a tree: the ideal that packet schedulers follow.
//!
//! All active siblings are served at once, at rates in proportion to their weights; a node with
//! bytes of its own goes before all below it (Parekh and Gallager 1993;
//! <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.1>). Nothing arrives later.
//!
//! Within a subtree, who has ended after so many bytes *of that subtree* does not depend on the
//! rest of the tree. So the ends are computed from the leaves upwards, each level once:
//! O(n log n · depth).

use quipu_base::{Bytes, StreamId};
use smallvec::SmallVec;

use super::{ActiveTree, Place};
use crate::key::StreamKey;

/// A node of a tree whose bytes are served by processor sharing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpsNode {
    /// Index of the parent in the list, which must be smaller than the node's own; `None`: the root
    /// is the parent.
    pub parent: Option<usize>,
    /// Share among its siblings; not zero.
    pub weight: u16,
    /// Bytes of its own.
    pub bytes: Bytes,
}

/// When the own bytes of a node end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpsEnd {
    /// Index of the node.
    pub node: usize,
    /// Bytes that all nodes together have got by then: over the total rate, the time since the
    /// start.
    pub served: f64,
}

/// The ends of all nodes that have bytes, in order of time; ties in order of index.
///
/// A node whose parent does not come before it in the list counts as a child of the root.
pub fn finish(nodes: &[GpsNode]) -> Vec<GpsEnd> {
    // Ends within each node's subtree, in bytes of that subtree; the last place is the root's.
    let root = nodes.len();
    let mut links = vec![Links::default(); root + 1];
    for (index, node) in nodes.iter().enumerate().rev() {
        let parent = node.parent.filter(|&parent| parent < index).unwrap_or(root);
        links[index].next_sibling = links[parent].first_child.replace(index);
    }
    let mut subtrees: Vec<Subtree> = Vec::new();
    subtrees.resize_with(root + 1, Subtree::default);
    let mut shares = Shares::default();
    for index in (0..=root).rev() {
        // The root is done last, every other node after its children, which have larger indices.
        let index = if index == 0 { root } else { index - 1 };
        let mut child = links[index].first_child;
        while let Some(at) = child {
            shares.add(std::mem::take(&mut subtrees[at]), nodes[at].weight.max(1));
            child = links[at].next_sibling;
        }
        subtrees[index] = shares.merge(index, nodes.get(index).map_or(0, |node| node.bytes.0));
    }
    subtrees.swap_remove(root).ends.into_vec()
}

/// The children of a node, in order of index.
#[derive(Clone, Copy, Default)]
struct Links {
    first_child: Option<usize>,
    next_sibling: Option<usize>,
}

#[derive(Default)]
struct Subtree {
    /// In order of `served`, which counts bytes of this subtree.
    ends: SmallVec<[GpsEnd; 1]>,
    bytes: u64,
}

/// The subtrees of a node's children, by virtual time: bytes over weight.
#[derive(Default)]
struct Shares {
    /// When each child is done, with its bytes and weight.
    last: Vec<(f64, u64, u16)>,
    /// When each node below ends.
    ends: Vec<(f64, usize)>,
}

impl Shares {
    fn add(&mut self, child: Subtree, weight: u16) {
        if child.bytes > 0 {
            let weight_of = f64::from(weight);
            self.last.push((child.bytes as f64 / weight_of, child.bytes, weight));
            self.ends.extend(child.ends.iter().map(|end| (end.served / weight_of, end.node)));
        }
    }

    /// Joins what was added below a node with so many bytes of its own; leaves nothing behind.
    fn merge(&mut self, index: usize, own: u64) -> Subtree {
        let mut merged = Subtree { ends: SmallVec::new(), bytes: own };
        merged.ends.reserve_exact(self.ends.len() + usize::from(own > 0));
        if own > 0 {
            merged.ends.push(GpsEnd { node: index, served: own as f64 });
        }
        // A child that is done stops at its last virtual time. Equal ones are alike.
        self.last.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        self.ends.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut weight: u64 = self.last.iter().map(|&(_, _, weight)| u64::from(weight)).sum();
        let mut last = self.last.drain(..).peekable();
        for (time, node) in self.ends.drain(..) {
            while let Some((_, bytes, child_weight)) = last.next_if(|child| child.0 <= time) {
                merged.bytes = merged.bytes.saturating_add(bytes);
                weight -= u64::from(child_weight);
            }
            let served = merged.bytes as f64 + time * weight as f64;
            merged.ends.push(GpsEnd { node, served });
        }
        merged.bytes = last.fold(merged.bytes, |sum, child| sum.saturating_add(child.1));
        merged
    }
}

/// The streams of a policy's tree in the order in which processor sharing would finish them, with
/// the bytes that all have got by then. `remaining` tells what a ready stream still has to send; a
/// stream of zero bytes comes first. Ties go to the lower stream identifier.
pub fn finish_order<T>(
    tree: &ActiveTree<T>,
    remaining: impl Fn(StreamKey) -> Bytes,
) -> Vec<(StreamKey, f64)> {
    let mut nodes: Vec<GpsNode> = Vec::new();
    let mut streams: Vec<Option<StreamKey>> = Vec::new();
    let mut order: Vec<(StreamKey, f64)> = Vec::new();
    let mut open: Vec<(Place, Option<usize>)> = vec![(Place::ROOT, None)];
    while let Some((place, parent)) = open.pop() {
        let stream = tree.ready(place);
        let bytes = stream.map_or(Bytes::ZERO, &remaining);
        order.extend(stream.filter(|_| bytes.is_zero()).map(|stream| (stream, 0.0)));
        let index = nodes.len();
        nodes.push(GpsNode { parent, weight: tree.weight(place), bytes });
        streams.push(stream);
        open.extend(tree.active_children(place).map(|child| (child, Some(index))));
    }
    let ends = finish(&nodes);
    order.extend(ends.iter().filter_map(|end| Some((streams[end.node]?, end.served))));
    let key = |stream: &StreamKey| -> StreamId { stream.id };
    order.sort_unstable_by(|a, b| a.1.total_cmp(&b.1).then(key(&a.0).cmp(&key(&b.0))));
    order
}

#[cfg(test)]
mod tests;
