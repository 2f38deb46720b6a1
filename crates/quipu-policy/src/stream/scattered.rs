//! `swrr`: weighted rounds with few tokens, so that a few streams cannot fill the window.
//!
//! Source: the rule is read in the code of "A Novel Framework for HTTP/2 over MPQUIC", which quotes
//! the idea from Xing et al. 2023. There it divides the tokens that are left, always zero, in place
//! of the weight, so every stream gets one token: the published curves are those of
//! [`Tokens::One`]. What was meant is [`Tokens::Scaled`].

use super::refund::Returned;
use super::{ActiveTree, Change, Place, StreamPolicy, Turn};
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, View};

/// How many packets a round brings to a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tokens {
    /// The heaviest active sibling gets so many packets, the others in proportion, at least one.
    Scaled(u16),
    /// One packet each.
    One,
}

/// Rounds in which all active siblings get tokens at once, when none has any left. A child keeps the
/// turn while it has tokens. O(depth) amortised; a new round costs one step per active child.
///
/// Each time bytes are taken counts as one packet. A token given back after its round has ended is
/// added to the next: approximate.
#[derive(Clone, Debug)]
pub struct ScatteredWrr {
    tree: ActiveTree<Round>,
    tokens: Tokens,
    returned: Returned,
}

#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Packets left in the round of the siblings.
    left: u16,
    /// The child whose turn it is: one with tokens, if there is any.
    current: Option<Place>,
    /// Active children with tokens.
    holders: u32,
}

impl Tokens {
    /// Packets for a child of weight `weight` if the heaviest active sibling weighs `heaviest`.
    pub fn of(self, weight: u16, heaviest: u16) -> u16 {
        match self {
            Tokens::One => 1,
            Tokens::Scaled(most) => {
                let share = u32::from(weight) * u32::from(most) / u32::from(heaviest.max(1));
                u16::try_from(share).unwrap_or(u16::MAX).max(1)
            }
        }
    }
}

impl ScatteredWrr {
    /// Rounds with that many tokens.
    pub fn new(tokens: Tokens) -> Self {
        ScatteredWrr { tree: ActiveTree::new(), tokens, returned: Returned::default() }
    }

    fn start_round(&mut self, parent: Place) {
        let heaviest = self.tree.active_children(parent).map(|child| self.tree.weight(child)).max();
        let heaviest = heaviest.unwrap_or(1);
        let mut child = self.tree.first_active(parent);
        while let Some(node) = child {
            self.tree.state_mut(node).left = self.tokens.of(self.tree.weight(node), heaviest);
            child = self.tree.next_active(node);
        }
        self.tree.state_mut(parent).holders = self.tree.active_children_len(parent);
    }
}

/// Gives the turn to `from` or the first after it that has tokens; to `from` itself if none has.
fn give_turn(tree: &mut ActiveTree<Round>, parent: Place, from: Option<Place>) {
    let start = from.or(tree.first_active(parent));
    let mut current = start;
    if tree.state(parent).holders > 0 {
        while let Some(node) = current.filter(|&node| tree.state(node).left == 0) {
            current = tree.next_active(node).or(tree.first_active(parent));
            if current == start {
                break;
            }
        }
    }
    tree.state_mut(parent).current = current;
}

impl StreamPolicy for ScatteredWrr {
    fn next(&mut self, _view: &View<'_>, _notes: &mut Notes) -> Option<Turn> {
        let mut node = Place::ROOT;
        loop {
            if let Some(stream) = self.tree.ready(node) {
                return Some(Turn::unlimited(stream));
            }
            node = self.tree.state(node).current?;
        }
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        let regains_turn = self.returned.regains_turn(event);
        self.tree.on_event(event, view.priorities, &mut |tree, change| match change {
            Change::Activated { node, parent } => {
                if tree.state(node).left > 0 {
                    tree.state_mut(parent).holders += 1;
                }
                let mut current = tree.state(parent).current;
                if let Some(before) = current.filter(|_| regains_turn) {
                    tree.move_before(node, before);
                    current = Some(node);
                }
                give_turn(tree, parent, current);
            }
            Change::Deactivated { node, parent, next } => {
                if tree.state(node).left > 0 {
                    tree.state_mut(parent).holders -= 1;
                }
                if tree.state(parent).current == Some(node) {
                    give_turn(tree, parent, next);
                }
            }
            Change::Weighted { .. } => {}
        });
    }

    fn on_taken(&mut self, turn: Turn, _kind: Kind, _view: &View<'_>) {
        if turn.max.is_zero() {
            return;
        }
        let Some(mut node) = self.tree.place_of(turn.stream) else { return };
        while let Some(parent) = self.tree.parent(node).filter(|_| self.tree.is_active(node)) {
            if self.tree.state(parent).holders == 0 {
                self.start_round(parent);
            }
            let left = self.tree.state(node).left;
            self.tree.state_mut(node).left = left.saturating_sub(1);
            if left == 1 {
                self.tree.state_mut(parent).holders -= 1;
            }
            if left <= 1 && self.tree.state(parent).current == Some(node) {
                let next = self.tree.next_active(node);
                give_turn(&mut self.tree, parent, next);
            }
            node = parent;
        }
    }

    fn on_returned(&mut self, turn: Turn, _view: &View<'_>) {
        self.returned.refund(&mut self.tree, turn, |tree, node, parent| {
            let left = tree.state(node).left;
            tree.state_mut(node).left = left.saturating_add(1);
            if tree.is_active(node) {
                tree.state_mut(parent).holders += u32::from(left == 0);
                give_turn(tree, parent, Some(node));
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
    fn tokens_are_scaled_to_the_heaviest() {
        let tokens = |weights: &[u16]| -> Vec<u16> {
            let heaviest = weights.iter().copied().max().unwrap();
            weights.iter().map(|&weight| Tokens::Scaled(10).of(weight, heaviest)).collect()
        };
        assert_eq!(tokens(&[256, 220, 183, 147, 110]), [10, 8, 7, 5, 4]);
        assert_eq!(tokens(&[255, 24, 16, 8]), [10, 1, 1, 1]);
        assert_eq!(tokens(&[32, 42, 22]), [7, 10, 5]);
    }

    #[test]
    fn a_round_ends_when_no_sibling_has_tokens() {
        let mut driver = Driver::new(ScatteredWrr::new(Tokens::Scaled(10)));
        for (id, weight) in [(4, 32), (8, 42), (12, 22)] {
            driver.open_at(id, 0, weight, 100_000);
        }
        let order = driver.packets(44, 1_000);
        assert_eq!(runs(&order), [(4, 7), (8, 10), (12, 5), (4, 7), (8, 10), (12, 5)]);
    }

    #[test]
    fn who_comes_in_mid_round_waits_for_the_next() {
        let mut driver = Driver::new(ScatteredWrr::new(Tokens::Scaled(4)));
        driver.open_at(4, 0, 100, 100_000);
        driver.open_at(8, 0, 50, 100_000);
        driver.packets(1, 1_000);
        driver.open_at(12, 0, 100, 100_000);
        let order = driver.packets(15, 1_000);
        assert_eq!(runs(&order), [(4, 3), (8, 2), (12, 4), (4, 4), (8, 2)]);
    }

    #[test]
    fn a_round_ends_early_when_the_rest_blocks() {
        let mut driver = Driver::new(ScatteredWrr::new(Tokens::Scaled(4)));
        driver.open_at(4, 0, 100, 100_000);
        driver.open_at(8, 0, 100, 100_000);
        driver.packets(4, 1_000);
        driver.block(8);
        assert_eq!(driver.packets(6, 1_000), [4; 6]);
        // Two tokens of the second round are left, and those that 8 had.
        driver.unblock(8);
        assert_eq!(runs(&driver.packets(8, 1_000)), [(4, 2), (8, 4), (4, 2)]);
    }

    #[test]
    fn as_published_it_is_round_robin_by_packets_over_the_tree() {
        let mut driver = Driver::new(ScatteredWrr::new(Tokens::One));
        driver.node(1, 0, 200);
        driver.open_at(4, 1, 256, 100_000);
        driver.open_at(8, 1, 1, 100_000);
        driver.open_at(12, 0, 7, 100_000);
        assert_eq!(driver.packets(8, 1_000), [4, 12, 8, 12, 4, 12, 8, 12]);
    }

    #[test]
    fn tokens_of_plans_taken_back_are_used_again() {
        let mut driver = Driver::new(ScatteredWrr::new(Tokens::Scaled(3)));
        driver.open_at(4, 0, 90, 100_000);
        driver.open_at(8, 0, 60, 100_000);
        driver.packets(1, 1_000);
        let plans: Vec<_> = (0..4).map(|_| driver.take(1_000)).collect();
        for taken in plans.into_iter().rev() {
            driver.give_back(taken);
        }
        assert_eq!(runs(&driver.packets(9, 1_000)), [(4, 2), (8, 2), (4, 3), (8, 2)]);
    }

    #[test]
    fn plans_of_all_that_streams_have_go_back_in_their_order() {
        let mut driver = Driver::new(ScatteredWrr::new(Tokens::Scaled(3)));
        for id in [0, 4, 8] {
            driver.open_at(id, 0, 90, 2_000);
        }
        let plans: Vec<_> = (0..6).map(|_| driver.take(1_000)).collect();
        for taken in plans.into_iter().rev() {
            driver.give_back(taken);
        }
        assert_eq!(driver.packets(6, 1_000), [0, 0, 4, 4, 8, 8]);
    }
}
