//! The way from one end of a link to the other: delay, jitter and late datagrams.

use quipu_base::{Duration, Instant, Random, Seed};

use crate::chance::{Chance, uniform_up_to};
use crate::{LinkConfig, Reorder};

/// When what has left a link's near end reaches the far end.
#[derive(Debug)]
pub(crate) struct Propagation {
    /// The shortest delay.
    least: Duration,
    /// Jitter adds zero to this.
    spread: Duration,
    keeps_order: bool,
    /// Last arrival of those that keep their order.
    last_arrival: Instant,
    jitter: Random,
    late: Chance,
    late_by: Duration,
}

/// Where and how a datagram comes out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    /// It was picked to be late.
    pub(crate) late: bool,
}

impl Propagation {
    pub(crate) fn new(config: &LinkConfig, seed: Seed) -> Self {
        let reorder = config.reorder.unwrap_or(Reorder { share: 0.0, extra: Duration::ZERO });
        Propagation {
            least: config.delay.saturating_sub(config.jitter),
            spread: config.jitter.saturating_mul(2),
            keeps_order: !config.jitter_reorders,
            last_arrival: Instant::ZERO,
            jitter: seed.stream("link.jitter", 0),
            late: Chance::new(reorder.share, seed.stream("link.reorder", 0)),
            late_by: reorder.extra,
        }
    }

    /// The delay and the lateness of the next datagram, drawn before anything else is known.
    pub(crate) fn draw(&mut self) -> (Duration, bool) {
        let spread = if self.spread.is_zero() {
            Duration::ZERO
        } else {
            uniform_up_to(self.spread, &mut self.jitter)
        };
        (self.least + spread, self.late.draw())
    }

    /// When a datagram arrives that left at `departs_at`, with what was drawn for it.
    pub(crate) fn arrival(&mut self, departs_at: Instant, drawn: (Duration, bool)) -> Arrival {
        let (delay, late) = drawn;
        let mut at = departs_at + delay;
        if self.keeps_order {
            at = at.max(self.last_arrival);
        }
        if late {
            // The others do not wait for it.
            at += self.late_by;
        } else {
            self.last_arrival = at;
        }
        Arrival { at, late }
    }
}
