//! Times what policies take while they serve. The clock is the caller's, as nothing here may read one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quipu_base::{Bytes, Instant};
use quipu_policy::{Ask, Decision, Event, Joint, Notes, PathKey, View};

/// Nanoseconds since any moment; never goes back.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Times the policies of the ends that send pages: see [`Instruments::meter`](super::Instruments::meter).
#[derive(Clone)]
pub struct Meter {
    clock: Clock,
    tally: Arc<Tally>,
}

/// What a policy took in one run, all connections that it served together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Questions answered.
    pub decisions: u64,
    /// Time of the answers in nanoseconds, reading the clock included.
    pub deciding: u64,
    /// Events told.
    pub events: u64,
    /// Time of taking note of them in nanoseconds, reading the clock included.
    pub noting: u64,
    /// Packets with data that were sent.
    pub packets: u64,
}

#[derive(Default)]
struct Tally {
    decisions: AtomicU64,
    deciding: AtomicU64,
    events: AtomicU64,
    noting: AtomicU64,
    packets: AtomicU64,
}

impl Meter {
    /// A meter that has seen nothing.
    pub fn new(clock: Clock) -> Meter {
        Meter { clock, tally: Arc::default() }
    }

    /// What was taken since the last call, by policies that are gone.
    pub fn take(&self) -> Taken {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        Taken {
            decisions: take(&self.tally.decisions),
            deciding: take(&self.tally.deciding),
            events: take(&self.tally.events),
            noting: take(&self.tally.noting),
            packets: take(&self.tally.packets),
        }
    }

    /// `joint` with its time taken.
    pub(crate) fn timed(&self, joint: Box<dyn Joint>) -> Box<dyn Joint> {
        Box::new(Timed { joint, meter: self.clone(), taken: Taken::default() })
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter").finish_non_exhaustive()
    }
}

/// A policy whose answers and notes are timed. What it tells without being asked a question of
/// scheduling is not: the engine reads that as it reads a field.
struct Timed {
    joint: Box<dyn Joint>,
    meter: Meter,
    taken: Taken,
}

impl Joint for Timed {
    fn decide(&mut self, ask: Ask, view: &View<'_>, notes: &mut Notes) -> Decision {
        let began = (self.meter.clock)();
        let decision = self.joint.decide(ask, view, notes);
        self.taken.deciding += (self.meter.clock)().saturating_sub(began);
        self.taken.decisions += 1;
        decision
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        let began = (self.meter.clock)();
        self.joint.on_event(event, view);
        self.taken.noting += (self.meter.clock)().saturating_sub(began);
        self.taken.events += 1;
        self.taken.packets += u64::from(matches!(event, Event::Sent(_)));
    }

    fn has_copies(&self) -> bool {
        self.joint.has_copies()
    }

    fn control_path(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.joint.control_path(view)
    }

    fn wake_at(&self) -> Option<Instant> {
        self.joint.wake_at()
    }

    fn committed(&self, path: PathKey) -> Bytes {
        self.joint.committed(path)
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        let tally = &self.meter.tally;
        for (counter, value) in [
            (&tally.decisions, self.taken.decisions),
            (&tally.deciding, self.taken.deciding),
            (&tally.events, self.taken.events),
            (&tally.noting, self.taken.noting),
            (&tally.packets, self.taken.packets),
        ] {
            counter.fetch_add(value, Ordering::Relaxed);
        }
    }
}
