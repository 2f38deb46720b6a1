//! The root's active children in an order of their own, with a cursor: see
//! [`QuantumWrr::with_sorted_root`](super::QuantumWrr::with_sorted_root).

use std::cmp::Reverse;

use quipu_base::Bytes;

use super::{ActiveTree, Place};
use crate::seam::view::View;

/// Children by place in the order of their turns. The cursor is a number: a sort leaves it where it
/// is, as the published code does, so another child may have the turn then.
#[derive(Clone, Debug, Default)]
pub(super) struct SortedRoot {
    order: Vec<Place>,
    cursor: usize,
    /// Number of children at the last sort.
    sorted: usize,
}

impl SortedRoot {
    pub(super) fn current(&self) -> Option<Place> {
        self.order.get(self.cursor).copied()
    }

    pub(super) fn set_current(&mut self, node: Place) {
        if let Some(index) = self.order.iter().position(|&other| other == node) {
            self.cursor = index;
        }
    }

    pub(super) fn pass_on(&mut self) {
        self.cursor = if self.cursor + 1 < self.order.len() { self.cursor + 1 } else { 0 };
    }

    /// Adds a child as the last, or as the one whose turn it is.
    pub(super) fn push(&mut self, node: Place, at_cursor: bool) {
        let index = if at_cursor { self.cursor } else { self.order.len() };
        self.order.insert(index.min(self.order.len()), node);
    }

    pub(super) fn remove(&mut self, node: Place) {
        let Some(index) = self.order.iter().position(|&other| other == node) else { return };
        self.order.remove(index);
        if index < self.cursor {
            self.cursor -= 1;
        }
        if self.cursor >= self.order.len() {
            self.cursor = 0;
        }
    }

    /// Sorts if the number of children is another than at the last sort.
    pub(super) fn sort<T>(&mut self, tree: &ActiveTree<T>, view: &View<'_>) {
        if self.order.len() <= 1 || self.order.len() == self.sorted {
            return;
        }
        self.sorted = self.order.len();
        self.order.sort_by_cached_key(|&node| {
            if tree.active_children_len(node) > 0 {
                return (true, Reverse(0), Bytes::ZERO);
            }
            let waiting = tree
                .ready(node)
                .and_then(|stream| view.streams.get(stream))
                .map_or(Bytes::ZERO, |stream| stream.written.since(stream.high_sent));
            (false, Reverse(tree.weight(node)), waiting)
        });
    }
}
