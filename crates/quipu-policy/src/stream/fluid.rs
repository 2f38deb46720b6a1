//! `wrr:mode=fluid`: weighted sharing over the dependency tree, packet by packet.
//!
//! Source: the sharing rule of <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.2>, which names
//! no algorithm. The algorithm is our choice: start-time fair queueing (Goyal, Vin, Cheng 1996) at
//! every node of the tree. The baseline of "A Multipath QUIC Scheduler for Mobile HTTP/2" is the
//! same on a flat tree.

use super::heap::{Heap, Positions};
use super::{ActiveTree, Change, Place, StreamPolicy, Turn};
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, View};

/// One byte at weight 1, in virtual time.
const SCALE: u64 = 65_536;

/// Hierarchical start-time fair queueing. Siblings share within one packet each; a node with
/// something to send goes before all below it. O(depth · log fan-out).
#[derive(Clone, Debug, Default)]
pub struct FluidWrr {
    tree: ActiveTree<Share>,
    positions: Positions,
}

/// What a node got, and the order of its active children.
#[derive(Clone, Debug, Default)]
struct Share {
    /// Bytes got over weight, in virtual time of the parent.
    virtual_time: u64,
    /// Virtual time among the children: the start of the last service.
    children_time: u64,
    /// Active children by virtual time, then identifier.
    order: Heap<Rank>,
}

/// Virtual time above, identifier below: one number compares without a branch.
type Rank = u128;

fn rank(time: u64, id: u64) -> Rank {
    u128::from(time) << 64 | u128::from(id)
}

fn time_of(rank: Rank) -> u64 {
    (rank >> 64) as u64
}

impl FluidWrr {
    /// A policy that knows no stream.
    pub fn new() -> Self {
        FluidWrr::default()
    }

    fn charge(&mut self, turn: Turn) {
        let positions = &mut self.positions;
        let bytes = turn.max.0.saturating_mul(SCALE);
        // A browser's tree may be a chain of hundreds of nodes, each of them charged for each packet.
        self.tree.climb(turn.stream, |tree, node, parent| {
            let own = tree.state(node).virtual_time;
            let time = own.saturating_add(bytes / u64::from(tree.weight(node)));
            tree.state_mut(node).virtual_time = time;
            let place = tree.is_active(node).then(|| rank(time, tree.id(node)));
            let siblings = tree.state_mut(parent);
            // The start of this service; of the least active child, if another went out of turn.
            let start = siblings.order.first().map_or(own, |(least, _)| time_of(least).min(own));
            siblings.children_time = siblings.children_time.max(start);
            if let Some(place) = place {
                siblings.order.set(positions, node.number(), place);
            }
        });
    }

    fn refund(&mut self, turn: Turn) {
        let positions = &mut self.positions;
        self.tree.climb(turn.stream, |tree, node, _| {
            let cost = turn.max.0.saturating_mul(SCALE) / u64::from(tree.weight(node));
            let time = tree.state(node).virtual_time.saturating_sub(cost);
            set_time(tree, positions, node, time);
        });
    }
}

/// Gives a node another virtual time, and its place among its active siblings.
fn set_time(tree: &mut ActiveTree<Share>, positions: &mut Positions, node: Place, time: u64) {
    tree.state_mut(node).virtual_time = time;
    if let Some(parent) = tree.parent(node).filter(|_| tree.is_active(node)) {
        let rank = rank(time, tree.id(node));
        tree.state_mut(parent).order.set(positions, node.number(), rank);
    }
}

impl StreamPolicy for FluidWrr {
    fn next(&mut self, _view: &View<'_>, _notes: &mut Notes) -> Option<Turn> {
        let mut node = Place::ROOT;
        loop {
            if let Some(stream) = self.tree.ready(node) {
                return Some(Turn::unlimited(stream));
            }
            let (_, child) = self.tree.state(node).order.first()?;
            node = Place::from_number(child);
        }
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        let positions = &mut self.positions;
        self.tree.on_event(event, view.priorities, &mut |tree, change| match change {
            Change::Activated { node, parent } => {
                // Who comes back is owed nothing for its absence.
                let time = tree.state(node).virtual_time.max(tree.state(parent).children_time);
                set_time(tree, positions, node, time);
            }
            Change::Deactivated { node, parent, .. } => {
                tree.state_mut(parent).order.remove(positions, node.number());
            }
            Change::Weighted { .. } => {}
        });
    }

    fn on_taken(&mut self, turn: Turn, _kind: Kind, _view: &View<'_>) {
        self.charge(turn);
    }

    fn on_returned(&mut self, turn: Turn, _view: &View<'_>) {
        self.refund(turn);
    }

    fn order(&self) -> u64 {
        self.tree.preemptions()
    }
}

#[cfg(test)]
mod tests;
