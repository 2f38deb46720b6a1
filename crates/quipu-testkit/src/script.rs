//! What a node is to do when, besides its exchange.

use std::collections::VecDeque;

use quipu_base::{Instant, PathId};

/// Something to do at a set time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Abandon a path.
    Abandon(PathId),
    /// Close the connection.
    Close,
    /// Begin the next key phase.
    UpdateKeys,
}

/// Actions in order of time.
#[derive(Clone, Debug, Default)]
pub struct Script {
    left: VecDeque<(Instant, Action)>,
}

impl Script {
    /// Actions in any order of time; those of one time keep their order.
    pub fn new(actions: &[(Instant, Action)]) -> Self {
        let mut actions = actions.to_vec();
        actions.sort_by_key(|(at, _)| *at);
        Script { left: actions.into() }
    }

    /// When the next action is due.
    pub fn next_at(&self) -> Option<Instant> {
        self.left.front().map(|(at, _)| *at)
    }

    /// The next action, if it is due by now.
    pub fn pop_due(&mut self, now: Instant) -> Option<Action> {
        let &(at, action) = self.left.front()?;
        (at <= now).then(|| {
            self.left.pop_front();
            action
        })
    }
}
