//! Estimates of when bytes arrive, by rate: what the schedulers that aim at arrival in order share.

use quipu_base::Bytes;

use super::choose::eligible;
use crate::seam::view::{PathView, View};

/// One-way delays of the paths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    /// Differences were measured on every eligible path.
    measured: bool,
}

impl Delays {
    /// By the differences measured, if every eligible path has one; else by half the smoothed
    /// round-trip time.
    pub(crate) fn of(view: &View<'_>) -> Self {
        Delays { measured: eligible(view.paths).all(|path| path.owd_difference.is_some()) }
    }

    /// Seconds that a packet takes to arrive; where differences were measured, less the least delay
    /// of all paths. Only differences count. `None` without a sample.
    pub(crate) fn one_way(self, path: &PathView) -> Option<f64> {
        match path.owd_difference {
            Some(difference) if self.measured => Some(difference.as_nanos() as f64 / 1e9),
            _ => Some(path.srtt?.as_secs_f64() / 2.0),
        }
    }

    /// Bytes that `fast` delivers while a packet on `slow` is still under way: bandwidth times
    /// difference of delays, zero if `fast` is not faster.
    pub(crate) fn head_start(self, fast: &PathView, slow: &PathView) -> f64 {
        let (Some(rate), Some(fast), Some(slow)) =
            (fast.bandwidth(), self.one_way(fast), self.one_way(slow))
        else {
            return 0.0;
        };
        (rate * (slow - fast)).max(0.0)
    }

    /// Seconds until a packet behind `queue` bytes arrives. `None` without a sample.
    pub(crate) fn arrival(self, queue: Bytes, path: &PathView) -> Option<f64> {
        let rate = path.bandwidth().filter(|rate| *rate > 0.0)?;
        Some(queue.0 as f64 / rate + self.one_way(path)?)
    }

    /// The path of least delay among those that `which` names; ties go to the lower identifier.
    pub(crate) fn least<'v>(
        self,
        view: &View<'v>,
        which: impl Fn(&PathView) -> bool,
    ) -> Option<&'v PathView> {
        let mut best: Option<(f64, &PathView)> = None;
        for path in eligible(view.paths).filter(|path| which(path)) {
            let Some(delay) = self.one_way(path) else { continue };
            if best.is_none_or(|(least, _)| delay < least) {
                best = Some((delay, path));
            }
        }
        best.map(|(_, path)| path)
    }
}

/// The sum of the eligible paths' windows.
pub(crate) fn windows(view: &View<'_>) -> Bytes {
    eligible(view.paths).map(|path| path.cwnd).sum()
}
