//! What may end slow start before packets are lost.

use quipu_base::{Duration, Instant};

use super::AckedInfo;
use super::hybrid::HybridSlowStart;
use super::hystart::HyStart;

/// What ends slow start, beside a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStartExit {
    /// Nothing.
    #[default]
    Loss,
    /// HyStart++: RFC 9406.
    HyStart,
    /// Hybrid slow start, as gQUIC and mp-quic have it: Ha and Rhee (2011).
    Hybrid,
}

impl SlowStartExit {
    /// What each is called, [`Loss`](Self::Loss) first.
    pub(crate) const NAMES: [&str; 3] = ["loss", "hystart", "hybrid"];
    /// The same, [`HyStart`](Self::HyStart) first.
    pub(crate) const HYSTART_FIRST: [&str; 3] = ["hystart", "loss", "hybrid"];

    /// The one of that name; of one unknown `Loss`.
    pub(crate) fn read(name: &str) -> Self {
        match name {
            "hystart" => SlowStartExit::HyStart,
            "hybrid" => SlowStartExit::Hybrid,
            _ => SlowStartExit::Loss,
        }
    }
}

/// What watches slow start on one path.
#[derive(Clone, Debug, Default)]
pub(super) enum Watch {
    #[default]
    Nothing,
    HyStart(HyStart),
    Hybrid(HybridSlowStart),
}

impl From<SlowStartExit> for Watch {
    fn from(exit: SlowStartExit) -> Self {
        match exit {
            SlowStartExit::Loss => Watch::Nothing,
            SlowStartExit::HyStart => Watch::HyStart(HyStart::default()),
            SlowStartExit::Hybrid => Watch::Hybrid(HybridSlowStart::default()),
        }
    }
}

impl Watch {
    /// Whether it looks at the slow starts after the first.
    /// <https://www.rfc-editor.org/rfc/rfc9406#section-4.2>
    pub(super) fn is_for_all(&self) -> bool {
        matches!(self, Watch::Hybrid(_))
    }

    /// A packet left.
    pub(super) fn on_sent(&mut self, now: Instant) {
        match self {
            Watch::Nothing => {}
            Watch::HyStart(hystart) => hystart.on_sent(now),
            Watch::Hybrid(hybrid) => hybrid.on_sent(now),
        }
    }

    /// What is acknowledged adds that part of itself to the window: 1, or a quarter.
    pub(super) fn divisor(&self) -> u64 {
        match self {
            Watch::HyStart(hystart) => hystart.divisor(),
            Watch::Nothing | Watch::Hybrid(_) => 1,
        }
    }

    /// An acknowledgement, after which the window is so many packets. True if slow start is over.
    pub(super) fn on_acked(&mut self, acked: &AckedInfo<'_>, packets: u64) -> bool {
        let Some(newest) = acked.packets.last() else { return false };
        let sample: Option<Duration> = acked.latest_rtt;
        match self {
            Watch::Nothing => false,
            Watch::HyStart(hystart) => hystart.on_acked(newest.sent_at, sample),
            Watch::Hybrid(hybrid) => {
                hybrid.on_acked(newest.sent_at, sample, acked.min_rtt, packets)
            }
        }
    }

    /// Samples until now no longer compare with those to come: the route changed.
    pub(super) fn forget_samples(&mut self) {
        match self {
            Watch::Nothing => {}
            Watch::HyStart(hystart) => hystart.forget_samples(),
            Watch::Hybrid(hybrid) => hybrid.restart(),
        }
    }

    /// Persistent congestion: slow start begins anew.
    pub(super) fn on_persistent_congestion(&mut self) {
        if let Watch::Hybrid(hybrid) = self {
            hybrid.restart();
        }
    }
}
