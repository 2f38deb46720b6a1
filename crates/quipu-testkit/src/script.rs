//! What a node is to do when, besides its exchange.

use std::collections::VecDeque;

use quipu_base::{Instant, PathId};
use quipu_policy::Quality;

/// Something to do at a set time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Abandon a path.
    Abandon(PathId),
    /// The socket of the client's path of that number takes nothing from now on.
    Block(u8),
    /// Close the connection.
    Close,
    /// A client moves its first path to this one of its addresses.
    Migrate(usize),
    /// A server loses all connections, but not its keys.
    Restart,
    /// Tell the policies how well the application is served.
    TellQuality(Quality),
    /// The socket of that path takes datagrams again.
    Unblock(u8),
    /// Begin the next key phase.
    UpdateKeys,
}

/// Actions in order of time. What cannot be done when it is due is tried again after each input.
#[derive(Clone, Debug, Default)]
pub struct Script {
    left: VecDeque<(Instant, Action)>,
    /// Due, but not possible so far.
    delayed: Vec<Action>,
}

impl Script {
    /// Actions in any order of time; those of one time keep their order.
    pub fn new(actions: &[(Instant, Action)]) -> Self {
        let mut actions = actions.to_vec();
        actions.sort_by_key(|(at, _)| *at);
        Script { left: actions.into(), delayed: Vec::new() }
    }

    /// When the next action is due.
    pub fn next_at(&self) -> Option<Instant> {
        self.left.front().map(|(at, _)| *at)
    }

    /// Does everything that is due by now; `act` says whether it could be done.
    pub fn run(&mut self, now: Instant, mut act: impl FnMut(Action) -> bool) {
        self.delayed.retain(|&action| !act(action));
        while let Some(&(at, action)) = self.left.front()
            && at <= now
        {
            self.left.pop_front();
            if !act(action) {
                self.delayed.push(action);
            }
        }
    }
}
