//! A node on a host that takes time: what waits for its processor, its timer and its sockets.

mod batches;

use std::collections::VecDeque;

use quipu_base::{Duration, Instant, Random};
use quipu_link::{HostCosts, HostTimer, HostWake};

pub(crate) use batches::Batcher;

use crate::pool::SlotId;
use crate::sockets::Sockets;

/// The host of one node. It does one thing after the other, in turns: see [`HostCosts`].
#[derive(Debug)]
pub(crate) struct Hosted {
    pub(crate) costs: HostCosts,
    pub(crate) timer: HostTimer,
    pub(crate) sockets: Sockets,
    wake: HostWake,
    /// Datagrams that have come.
    inbox: VecDeque<SlotId>,
    /// Those that are being received.
    in_hand: Vec<SlotId>,
    /// When the processor has done all that it was given to do.
    pub(crate) free_at: Instant,
    next: Next,
    /// Whether the node is to be polled even if nothing comes.
    called: bool,
}

/// What the host does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Nothing: it sleeps.
    Sleep,
    /// It wakes, and has its turn then, if nothing else wakes it before.
    Wake(Instant),
    /// Its turn then: it is busy until then, or awake.
    Turn(Instant),
}

impl Hosted {
    /// A host that sleeps. The chance of its timer is `timer`, that of its waking `wake`.
    pub(crate) fn new(costs: &HostCosts, timer: Random, wake: Random) -> Self {
        Hosted {
            costs: *costs,
            timer: HostTimer::new(costs, timer),
            sockets: Sockets::new(costs),
            wake: HostWake::new(costs, wake),
            inbox: VecDeque::new(),
            in_hand: Vec::new(),
            free_at: Instant::ZERO,
            next: Next::Sleep,
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

    /// Something at `now` needs a turn as soon as the host is free: when that is, if it is to be an event.
    pub(crate) fn next_turn(&mut self, now: Instant) -> Option<Instant> {
        let at = self.free_at.max(now);
        match self.next {
            Next::Turn(_) => return None,
            Next::Wake(then) => {
                self.next = Next::Turn(at.min(then));
                return (at < then).then_some(at);
            }
            Next::Sleep => {}
        }
        self.next = Next::Turn(at);
        Some(at)
    }

    /// A datagram needs a turn, which has come at `now`: when that is, if it is to be an event. A host that sleeps has
    /// to wake before.
    pub(crate) fn next_wake(&mut self, now: Instant) -> Option<Instant> {
        match self.next {
            Next::Turn(_) | Next::Wake(_) => return None,
            Next::Sleep if self.free_at >= now => return self.next_turn(now),
            Next::Sleep => {}
        }
        let at = now + self.wake.delay();
        self.next = Next::Wake(at);
        Some(at)
    }

    /// Whether the host has its turn at `now`: another event than this one may have been it.
    pub(crate) fn has_turn(&self, now: Instant) -> bool {
        matches!(self.next, Next::Wake(at) | Next::Turn(at) if at == now)
    }

    /// Takes what has come, unless that was done before, and says how long that takes: the turn is after it.
    pub(crate) fn take(&mut self, now: Instant) -> Duration {
        if !self.in_hand.is_empty() || self.inbox.is_empty() {
            return Duration::ZERO;
        }
        let most = usize::try_from(self.costs.receive_batch).unwrap_or(usize::MAX);
        let count = self.inbox.len().min(most);
        self.in_hand.extend(self.inbox.drain(..count));
        let takes = self.costs.receiving(count);
        self.next = Next::Turn(now + takes);
        takes
    }

    /// The turn happens: what was received, and whether the node is to be polled in any case.
    pub(crate) fn begin_turn(&mut self) -> (Vec<SlotId>, bool) {
        self.next = Next::Sleep;
        (std::mem::take(&mut self.in_hand), std::mem::take(&mut self.called))
    }

    /// True if more has come meanwhile.
    pub(crate) fn has_more(&self) -> bool {
        !self.inbox.is_empty()
    }
}
