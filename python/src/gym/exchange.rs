//! What a simulation and the agent outside share: the last question, its answer, and what came of it so far.
//!
//! A simulation is a coroutine: a policy in it that asks leaves it, and goes on with the answer when it is resumed.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_base::{Duration, Instant};
use quipu_lab::run::RunError;
use quipu_learned::observation::{LENGTH, PLACES};
use quipu_policy::Event;
use quipu_record::RunRecord;

use super::order::{ORDER_LENGTH, STREAMS};

/// What the agent decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// The path of each packet, or a wait for one.
    Path,
    /// Shares of the paths, every so long.
    Weights,
    /// The stream of each packet.
    Order,
    /// Factors of the congestion windows, every so long.
    Window,
}

impl Act {
    pub(crate) const ALL: [Act; 4] = [Act::Path, Act::Weights, Act::Order, Act::Window];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Act::Path => "path",
            Act::Weights => "weights",
            Act::Order => "order",
            Act::Window => "window",
        }
    }

    /// How many numbers a question has, how many flags say what is allowed, and how many numbers answer it.
    pub(crate) fn shape(self) -> (usize, usize, usize) {
        match self {
            Act::Path => (LENGTH, PLACES, 1),
            Act::Weights | Act::Window => (LENGTH, PLACES, PLACES),
            Act::Order => (ORDER_LENGTH, STREAMS, 1),
        }
    }
}

/// What a coroutine hands out each time that it rests.
pub(crate) enum Rest {
    /// A policy asked.
    Asked,
    /// The run is over.
    Ended(Box<Result<Vec<RunRecord>, RunError>>),
}

/// Question and answer.
pub(crate) struct Shared {
    pub(crate) numbers: Vec<f32>,
    pub(crate) allowed: Vec<bool>,
    pub(crate) answer: Vec<f32>,
    /// When the question came.
    pub(crate) now: Instant,
    /// Bytes of packets that were acknowledged, and lost.
    pub(crate) acked: u64,
    pub(crate) lost: u64,
    /// Nobody is there to ask: the run is to end.
    pub(crate) is_cancelled: bool,
}

/// What one simulation and its agent share.
pub(crate) struct Exchange {
    pub(crate) act: Act,
    /// How long from one question to the next, where they do not come with packets.
    pub(crate) interval: Duration,
    shared: Mutex<Shared>,
}

thread_local! {
    /// The exchange of the simulation that goes on.
    static CURRENT: RefCell<Option<Arc<Exchange>>> = const { RefCell::new(None) };
}

impl Exchange {
    pub(crate) fn new(act: Act, interval: Duration) -> Arc<Exchange> {
        let (numbers, allowed, answer) = act.shape();
        Arc::new(Exchange {
            act,
            interval,
            shared: Mutex::new(Shared {
                numbers: vec![0.0; numbers],
                allowed: vec![false; allowed],
                // What changes nothing where factors are asked for.
                answer: vec![1.0; answer],
                now: Instant::ZERO,
                acked: 0,
                lost: 0,
                is_cancelled: false,
            }),
        })
    }

    /// The exchange of the simulation in which a policy is made now.
    pub(crate) fn current() -> Option<Arc<Exchange>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Does `work` for the simulation of this exchange.
    pub(crate) fn enter<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let before = CURRENT.replace(Some(Arc::clone(self)));
        let result = work();
        CURRENT.set(before);
        result
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes it ready for another simulation.
    pub(crate) fn begin(&self) {
        let mut shared = self.lock();
        shared.numbers.fill(0.0);
        shared.allowed.fill(false);
        shared.answer.fill(1.0);
        (shared.now, shared.acked, shared.lost) = (Instant::ZERO, 0, 0);
        shared.is_cancelled = false;
    }

    /// Asks with what `fill` writes, and reads the answer with `read`; `None` if nobody is there.
    pub(crate) fn ask<T>(
        &self,
        now: Instant,
        fill: impl FnOnce(&mut Shared),
        read: impl FnOnce(&[f32]) -> T,
    ) -> Option<T> {
        let mut shared = self.lock();
        if shared.is_cancelled {
            return None;
        }
        shared.now = now;
        fill(&mut shared);
        drop(shared);
        rest();
        let shared = self.lock();
        (!shared.is_cancelled).then(|| read(&shared.answer))
    }

    /// Counts what `event` tells.
    pub(crate) fn count(&self, event: &Event<'_>) {
        match event {
            Event::Acked(packet) => self.lock().acked += packet.bytes.0,
            Event::Lost(packet) => self.lock().lost += packet.bytes.0,
            _ => {}
        }
    }
}

/// Leaves the coroutine until it is resumed.
#[expect(deprecated, reason = "a policy is made deep inside, where no scope can be handed")]
fn rest() {
    generator::yield_with(Rest::Asked);
}
