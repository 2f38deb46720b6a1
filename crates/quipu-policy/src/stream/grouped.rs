//! `dwrr:mode=paper`: groups of equal weight, short streams first inside a group.
//!
//! Source: "A Novel Framework for HTTP/2 over MPQUIC", the text of its dWRR: streams of equal
//! priority form a group; inside a group they go in order of size; a round gives group i the share
//! `p_i = min(1, β)` with `β = prio(G_i) / Σ prio(G_j)`, highest priority first. As β is never above
//! one, `p_i = β`. The rest is our reconstruction, as the paper does not tell: priority is weight,
//! size is what remains to be sent, a round has `max(10 · groups, active siblings)` packets, each
//! inner node of the tree has rounds of its own, and inner nodes come after the leaves of their
//! group. The authors' code does something else:
//! [`QuantumWrr::with_sorted_root`](super::QuantumWrr::with_sorted_root).

use quipu_base::Bytes;

use super::heap::{Heap, Positions};
use super::remaining::remaining;
use super::{ActiveTree, Change, Place, StreamPolicy, Turn};
use crate::key::StreamKey;
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, View};

/// Rounds of groups. A stream keeps its group's turn until it ends or blocks; slots that a group
/// cannot use fall to the next lighter one in the same round.
/// O(depth · (distinct weights + log fan-out)).
///
/// Each time bytes are taken counts as one packet. A slot given back after its round has ended is
/// added to the next: approximate.
#[derive(Clone, Debug)]
pub struct GroupedWrr {
    tree: ActiveTree<Level>,
    positions: Positions,
    /// Least packets of a round per group.
    slots_per_group: u32,
}

/// Whether it is an inner node, what remains, identifier, place: the order inside a group.
type Rank = (bool, Bytes, u64, Place);

/// The round among a node's active children.
#[derive(Clone, Debug, Default)]
struct Level {
    /// Heaviest first.
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
struct Group {
    weight: u16,
    /// Packets left in this round.
    slots: u32,
    members: Heap<Rank>,
    /// The member that was served last and keeps the group's turn.
    current: Option<Place>,
}

impl Level {
    fn index_of(&self, weight: u16) -> Result<usize, usize> {
        self.groups.binary_search_by(|group| weight.cmp(&group.weight))
    }

    /// The group whose turn it is: the heaviest with members and slots, its own or those that
    /// heavier groups cannot use. `Err` with the heaviest group if the round is over.
    fn turn(&self) -> Option<Result<usize, usize>> {
        let (mut left_over, mut heaviest) = (0, None);
        for (index, group) in self.groups.iter().enumerate() {
            left_over += group.slots;
            if group.members.is_empty() {
                continue;
            }
            if left_over > 0 {
                return Some(Ok(index));
            }
            heaviest = heaviest.or(Some(index));
        }
        heaviest.map(Err)
    }

    /// The child whose turn it is.
    fn next(&self) -> Option<Place> {
        let (Ok(index) | Err(index)) = self.turn()?;
        let group = &self.groups[index];
        group.current.or_else(|| group.members.first().map(|((.., node), _)| node))
    }

    fn start_round(&mut self, slots_per_group: u32, children: u32) {
        self.groups.retain(|group| !group.members.is_empty());
        let groups = self.groups.len() as u64;
        let length = (u64::from(slots_per_group) * groups).max(u64::from(children));
        let sum: u64 = self.groups.iter().map(|group| u64::from(group.weight)).sum();
        for group in &mut self.groups {
            let rounded = (2 * u64::from(group.weight) * length + sum) / (2 * sum.max(1));
            group.slots = u32::try_from(rounded).unwrap_or(u32::MAX).max(1);
        }
    }

    /// Uses a slot of the group, or the nearest one that heavier groups cannot use.
    fn use_slot(&mut self, index: usize) {
        let usable = |&at: &usize| {
            let group = &self.groups[at];
            group.slots > 0 && (at == index || group.members.is_empty())
        };
        if let Some(at) = (0..=index).rev().find(usable) {
            self.groups[at].slots -= 1;
        }
    }

    /// Puts a child into its group, or gives it another rank there.
    fn rank(&mut self, positions: &mut Positions, weight: u16, rank: Rank) {
        let index = self.index_of(weight).unwrap_or_else(|index| {
            let group = Group { weight, slots: 0, members: Heap::default(), current: None };
            self.groups.insert(index, group);
            index
        });
        self.groups[index].members.set(positions, rank.3.number(), rank);
    }

    fn remove(&mut self, positions: &mut Positions, weight: u16, node: Place) {
        let Ok(index) = self.index_of(weight) else { return };
        let group = &mut self.groups[index];
        group.members.remove(positions, node.number());
        group.current = group.current.filter(|&current| current != node);
    }
}

fn rank(tree: &ActiveTree<Level>, node: Place, view: &View<'_>) -> Rank {
    let stream = tree.ready(node).and_then(|stream| view.streams.get(stream));
    let bytes = stream.map_or(Bytes::ZERO, remaining);
    (tree.ready(node).is_none(), bytes, tree.id(node), node)
}

impl GroupedWrr {
    /// Rounds of at least `slots_per_group` packets per group.
    pub fn new(slots_per_group: u32) -> Self {
        GroupedWrr { tree: ActiveTree::new(), positions: Positions::default(), slots_per_group }
    }

    /// What remains of a stream changed, or whether it is ready.
    fn rerank(&mut self, stream: StreamKey, view: &View<'_>) {
        let (tree, positions) = (&mut self.tree, &mut self.positions);
        let place = tree.place_of(stream).filter(|&place| tree.is_active(place));
        let Some((node, parent)) = place.and_then(|node| Some((node, tree.parent(node)?))) else {
            return;
        };
        let (rank, weight) = (rank(tree, node, view), tree.weight(node));
        tree.state_mut(parent).rank(positions, weight, rank);
    }
}

impl StreamPolicy for GroupedWrr {
    fn next(&mut self, _view: &View<'_>, _notes: &mut Notes) -> Option<Turn> {
        let mut node = Place::ROOT;
        loop {
            if let Some(stream) = self.tree.ready(node) {
                return Some(Turn::unlimited(stream));
            }
            node = self.tree.state(node).next()?;
        }
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        let positions = &mut self.positions;
        self.tree.on_event(event, view.priorities, &mut |tree, change| match change {
            Change::Activated { node, parent } => {
                let (rank, weight) = (rank(tree, node, view), tree.weight(node));
                tree.state_mut(parent).rank(positions, weight, rank);
            }
            Change::Deactivated { node, parent, .. } => {
                let weight = tree.weight(node);
                tree.state_mut(parent).remove(positions, weight, node);
            }
            Change::Weighted { node, was } => {
                let Some(parent) = tree.parent(node) else { return };
                tree.state_mut(parent).remove(positions, was, node);
                let (rank, weight) = (rank(tree, node, view), tree.weight(node));
                tree.state_mut(parent).rank(positions, weight, rank);
            }
        });
        match *event {
            Event::Ready(stream)
            | Event::Stopped(stream)
            | Event::Sized(stream)
            | Event::Written(stream)
            | Event::Requeued { stream, .. } => self.rerank(stream, view),
            Event::Placed { piece, .. } => self.rerank(piece.stream, view),
            _ => {}
        }
    }

    fn on_taken(&mut self, turn: Turn, _kind: Kind, _view: &View<'_>) {
        if turn.max.is_zero() {
            return;
        }
        let tree = &mut self.tree;
        let Some(mut node) = tree.place_of(turn.stream) else { return };
        while let Some(parent) = tree.parent(node).filter(|_| tree.is_active(node)) {
            let (weight, children) = (tree.weight(node), tree.active_children_len(parent));
            let level = tree.state_mut(parent);
            if matches!(level.turn(), Some(Err(_))) {
                level.start_round(self.slots_per_group, children);
            }
            if let Ok(index) = level.index_of(weight) {
                level.use_slot(index);
                level.groups[index].current = Some(node);
            }
            node = parent;
        }
    }

    fn on_returned(&mut self, turn: Turn, _view: &View<'_>) {
        if turn.max.is_zero() {
            return;
        }
        self.tree.climb(turn.stream, |tree, node, parent| {
            let (weight, active) = (tree.weight(node), tree.is_active(node));
            let level = tree.state_mut(parent);
            if let Ok(index) = level.index_of(weight) {
                level.groups[index].slots += 1;
                if active {
                    level.groups[index].current = Some(node);
                }
            }
        });
    }

    fn order(&self) -> u64 {
        self.tree.preemptions()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::testing::{Driver, runs};

    #[test]
    fn groups_share_by_weight_and_the_shortest_goes_first() {
        let mut driver = Driver::new(GroupedWrr::new(10));
        driver.open_at(4, 0, 30, 100_000);
        driver.open_at(8, 0, 30, 50_000);
        driver.open_at(12, 0, 10, 100_000);
        // 20 packets a round: 15 to weight 30, 5 to weight 10.
        let order = driver.packets(40, 1_000);
        assert_eq!(runs(&order), [(8, 15), (12, 5), (8, 15), (12, 5)]);
        assert_eq!(runs(&driver.packets(21, 1_000)), [(8, 15), (12, 5), (8, 1)]);
    }

    #[test]
    fn unused_slots_fall_to_the_next_group_in_the_same_round() {
        let mut driver = Driver::new(GroupedWrr::new(10));
        driver.open_at(4, 0, 30, 4_000);
        driver.open_at(8, 0, 10, 100_000);
        // 4 of 15 slots are used, then 11 + 5 are left.
        assert_eq!(driver.packets(8, 1_000), [4, 4, 4, 4, 8, 8, 8, 8]);
        // Back within the round, the heavy group uses what is left of its own.
        driver.open_at(12, 0, 30, 100_000);
        assert_eq!(driver.packets(1, 1_000), [12]);
    }

    #[test]
    fn a_new_heavier_group_waits_for_the_next_round() {
        let mut driver = Driver::new(GroupedWrr::new(2));
        driver.open_at(4, 0, 10, 100_000);
        driver.open_at(8, 0, 10, 200_000);
        driver.packets(1, 1_000);
        driver.open_at(12, 0, 30, 100_000);
        assert_eq!(runs(&driver.packets(5, 1_000)), [(4, 1), (12, 3), (4, 1)]);
    }

    #[test]
    fn a_stream_keeps_its_turn_though_a_shorter_one_comes() {
        let mut driver = Driver::new(GroupedWrr::new(10));
        driver.open_at(4, 0, 16, 5_000);
        driver.packets(1, 1_000);
        driver.open_at(8, 0, 16, 1_000);
        assert_eq!(driver.packets(9, 1_000), [4, 4, 4, 4, 8]);
    }

    #[test]
    fn the_size_told_counts_rather_than_what_is_written() {
        let mut driver = Driver::new(GroupedWrr::new(10));
        driver.create(4, Some(90_000));
        driver.create(8, None);
        driver.create(12, Some(20_000));
        for id in [4, 8, 12] {
            driver.write(id, if id == 8 { 30_000 } else { 10_000 }, false);
        }
        let order = driver.packets(50, 1_000);
        assert_eq!(runs(&order), [(12, 10), (8, 30), (4, 10)]);
    }

    #[test]
    fn every_inner_node_has_rounds_of_its_own() {
        let mut driver = Driver::new(GroupedWrr::new(1));
        driver.node(1, 0, 100);
        driver.open_at(4, 1, 16, 100_000);
        driver.open_at(8, 1, 48, 100_000);
        driver.open_at(12, 0, 100, 2_000);
        // The root has one group; its leaf goes first.
        let order = driver.packets(8, 1_000);
        assert_eq!(runs(&order), [(12, 2), (8, 2), (4, 1), (8, 2), (4, 1)]);
    }

    #[test]
    fn slots_of_plans_taken_back_are_used_again() {
        let mut driver = Driver::new(GroupedWrr::new(2));
        driver.open_at(4, 0, 30, 100_000);
        driver.open_at(8, 0, 10, 100_000);
        driver.packets(1, 1_000);
        let plans: Vec<_> = (0..3).map(|_| driver.take(1_000)).collect();
        for taken in plans.into_iter().rev() {
            driver.give_back(taken);
        }
        assert_eq!(runs(&driver.packets(7, 1_000)), [(4, 2), (8, 1), (4, 3), (8, 1)]);
    }
}
