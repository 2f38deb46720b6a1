//! A node on a host that takes time: what waits for its processor, its timer and its sockets.

mod batches;

use std::collections::VecDeque;

use quipu_base::{Duration, Instant, Random};
use quipu_link::{HostCosts, HostTimer};

pub(crate) use batches::Batcher;

use crate::pool::SlotId;
use crate::sockets::Sockets;

/// The host of one node. It does one thing after the other, in turns: see [`HostCosts`].
#[derive(Debug)]
pub(crate) struct Hosted {
    pub(crate) costs: HostCosts,
    pub(crate) timer: HostTimer,
    pub(crate) sockets: Sockets,
    /// Datagrams that have come.
    inbox: VecDeque<SlotId>,
    /// Those that are being received.
    in_hand: Vec<SlotId>,
    /// When the processor has done all that it was given to do.
    pub(crate) free_at: Instant,
    /// Whether the event of the next turn waits.
    turn_waits: bool,
    /// Whether the node is to be polled even if nothing comes.
    called: bool,
}

impl Hosted {
    pub(crate) fn new(costs: &HostCosts, random: Random) -> Self {
        Hosted {
            costs: *costs,
            timer: HostTimer::new(costs, random),
            sockets: Sockets::new(costs),
            inbox: VecDeque::new(),
            in_hand: Vec::new(),
            free_at: Instant::ZERO,
            turn_waits: false,
            called: false,
        }
    }

    /// A datagram has come.
    pub(crate) fn receive(&mut self, slot: SlotId) {
        self.inbox.push_back(slot);
    }

    /// The node is to be polled.
    pub(crate) fn call(&mut self) {
        self.called = true;
    }

    /// There is something to do at `now`: when the next turn is, if that is to be an event.
    pub(crate) fn next_turn(&mut self, now: Instant) -> Option<Instant> {
        (!std::mem::replace(&mut self.turn_waits, true)).then(|| self.free_at.max(now))
    }

    /// Takes what has come, unless that was done before, and says how long that takes.
    pub(crate) fn take(&mut self) -> Duration {
        if !self.in_hand.is_empty() || self.inbox.is_empty() {
            return Duration::ZERO;
        }
        let most = usize::try_from(self.costs.receive_batch).unwrap_or(usize::MAX);
        let count = self.inbox.len().min(most);
        self.in_hand.extend(self.inbox.drain(..count));
        self.costs.receiving(count)
    }

    /// The turn happens: what was received, and whether the node is to be polled in any case.
    pub(crate) fn begin_turn(&mut self) -> (Vec<SlotId>, bool) {
        self.turn_waits = false;
        (std::mem::take(&mut self.in_hand), std::mem::take(&mut self.called))
    }

    /// True if more has come meanwhile.
    pub(crate) fn has_more(&self) -> bool {
        !self.inbox.is_empty()
    }
}
