//! `swrr:mode=smooth`: smooth weighted round robin, packet by packet.
//!
//! Source: an unused function in `ytxing/mpquic-hbes`, read in code; the algorithm is that of the
//! nginx load balancer. Whether the "scattered" rounds of Xing et al. 2023 mean this could not be
//! checked.

use super::heap::{Heap, Positions};
use super::{ActiveTree, Change, Place, StreamPolicy, Turn};
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, View};

/// Before each packet every active child's credit grows by its weight; the child of most credit
/// sends and pays the sum of all weights. Ties go to the lower identifier.
///
/// Siblings of equal weight grow alike, so only the first of each weight is compared:
/// O(depth · (distinct weights + log fan-out)). Each time bytes are taken counts as one packet.
#[derive(Clone, Debug, Default)]
pub struct SmoothWrr {
    tree: ActiveTree<Credit>,
    positions: Positions,
}

#[derive(Clone, Debug, Default)]
struct Credit {
    /// What was paid so far: credit is weight times the siblings' packets less this.
    paid: i64,
    /// Packets that the children sent.
    packets: i64,
    /// Active children by weight; within one by what they paid.
    classes: Vec<Class>,
}

#[derive(Clone, Debug)]
struct Class {
    weight: u16,
    order: Heap<(i64, u64, Place)>,
}

impl Credit {
    fn class(&mut self, weight: u16) -> &mut Heap<(i64, u64, Place)> {
        let index = match self.classes.iter().position(|class| class.weight == weight) {
            Some(index) => index,
            None => {
                self.classes.push(Class { weight, order: Heap::default() });
                self.classes.len() - 1
            }
        };
        &mut self.classes[index].order
    }

    /// The child of most credit, each credit grown by one packet.
    fn richest(&self) -> Option<Place> {
        let firsts = self.classes.iter().filter_map(|class| {
            let ((paid, id, node), _) = class.order.first()?;
            Some((paid - i64::from(class.weight) * (self.packets + 1), id, node))
        });
        firsts.min().map(|(_, _, node)| node)
    }
}

impl SmoothWrr {
    /// A policy that knows no stream.
    pub fn new() -> Self {
        SmoothWrr::default()
    }

    /// Counts `packets` (1 or -1) of a stream at every level.
    fn count(&mut self, turn: Turn, packets: i64) {
        if turn.max.is_zero() {
            return;
        }
        let (tree, positions) = (&mut self.tree, &mut self.positions);
        let Some(mut node) = tree.place_of(turn.stream) else { return };
        while let Some(parent) = tree.parent(node).filter(|_| tree.is_active(node)) {
            let sum = i64::from(tree.active_weight(parent));
            tree.state_mut(parent).packets += packets;
            let paid = tree.state(node).paid + sum * packets;
            set_paid(tree, positions, node, parent, paid);
            node = parent;
        }
    }
}

fn set_paid(
    tree: &mut ActiveTree<Credit>,
    positions: &mut Positions,
    node: Place,
    parent: Place,
    paid: i64,
) {
    tree.state_mut(node).paid = paid;
    let (key, weight) = ((paid, tree.id(node), node), tree.weight(node));
    tree.state_mut(parent).class(weight).set(positions, node.number(), key);
}

impl StreamPolicy for SmoothWrr {
    fn next(&mut self, _view: &View<'_>, _notes: &mut Notes) -> Option<Turn> {
        let mut node = Place::ROOT;
        loop {
            if let Some(stream) = self.tree.ready(node) {
                return Some(Turn::unlimited(stream));
            }
            node = self.tree.state(node).richest()?;
        }
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        let positions = &mut self.positions;
        self.tree.on_event(event, view.priorities, &mut |tree, change| match change {
            Change::Activated { node, parent } => {
                // It comes without credit.
                let paid = i64::from(tree.weight(node)) * tree.state(parent).packets;
                set_paid(tree, positions, node, parent, paid);
            }
            Change::Deactivated { node, parent, .. } => {
                let weight = tree.weight(node);
                tree.state_mut(parent).class(weight).remove(positions, node.number());
            }
            Change::Weighted { node, was } => {
                let Some(parent) = tree.parent(node) else { return };
                tree.state_mut(parent).class(was).remove(positions, node.number());
                // Its credit stays what it is.
                let grown = i64::from(tree.weight(node)) - i64::from(was);
                let paid = tree.state(node).paid + grown * tree.state(parent).packets;
                set_paid(tree, positions, node, parent, paid);
            }
        });
    }

    fn on_taken(&mut self, turn: Turn, _kind: Kind, _view: &View<'_>) {
        self.count(turn, 1);
    }

    fn on_returned(&mut self, turn: Turn, _view: &View<'_>) {
        self.count(turn, -1);
    }

    fn order(&self) -> u64 {
        self.tree.preemptions()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stream::testing::Driver;

    #[test]
    fn packets_are_spread_in_proportion_to_the_weights() {
        let mut driver = Driver::new(SmoothWrr::new());
        for (id, weight) in [(4, 5), (8, 1), (12, 1)] {
            driver.open_at(id, 0, weight, 100_000);
        }
        assert_eq!(driver.packets(7, 1_000), [4, 4, 8, 4, 12, 4, 4]);
    }

    #[test]
    fn a_plan_taken_back_restores_the_order() {
        let mut driver = Driver::new(SmoothWrr::new());
        driver.open_at(4, 0, 5, 100_000);
        driver.open_at(8, 0, 2, 100_000);
        let plans: Vec<_> = (0..5).map(|_| driver.take(1_000)).collect();
        let order: Vec<u64> = plans.iter().map(|taken| taken.stream.id.0).collect();
        for taken in plans.into_iter().rev() {
            driver.give_back(taken);
        }
        assert_eq!(driver.packets(5, 1_000), order);
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_plain_algorithm(
            weights in prop::collection::vec(prop_oneof![Just(7u16), 1..=256u16], 1..8),
        ) {
            let mut driver = Driver::new(SmoothWrr::new());
            for (index, &weight) in weights.iter().enumerate() {
                driver.open_at(index as u64 * 4, 0, weight, 1_000_000);
            }
            let sum: i64 = weights.iter().map(|&weight| i64::from(weight)).sum();
            let mut credit = vec![0i64; weights.len()];
            for _ in 0..100 {
                for (credit, &weight) in credit.iter_mut().zip(&weights) {
                    *credit += i64::from(weight);
                }
                let most = credit.iter().copied().max().unwrap();
                let picked = credit.iter().position(|&credit| credit == most).unwrap();
                credit[picked] -= sum;
                prop_assert_eq!(driver.packets(1, 1_000), [picked as u64 * 4]);
            }
        }
    }
}
