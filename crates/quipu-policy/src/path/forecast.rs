//! Estimates of when bytes arrive, by rate: what the schedulers that aim at arrival in order share.

use quipu_base::Bytes;

use super::choose::eligible;
use crate::seam::view::{PathView, View};

/// Seconds that a packet takes to arrive: half the smoothed round-trip time. `None` without a
/// sample.
pub(crate) fn one_way(path: &PathView) -> Option<f64> {
    Some(path.srtt?.as_secs_f64() / 2.0)
}

/// Bytes that `fast` delivers while a packet on `slow` is still under way: bandwidth times
/// difference of delays, zero if `fast` is not faster.
pub(crate) fn head_start(fast: &PathView, slow: &PathView) -> f64 {
    let (Some(rate), Some(fast), Some(slow)) = (fast.bandwidth(), one_way(fast), one_way(slow))
    else {
        return 0.0;
    };
    (rate * (slow - fast)).max(0.0)
}

/// Seconds until a packet behind `queue` bytes arrives. `None` without a sample.
pub(crate) fn arrival(queue: Bytes, path: &PathView) -> Option<f64> {
    let rate = path.bandwidth().filter(|rate| *rate > 0.0)?;
    Some(queue.0 as f64 / rate + one_way(path)?)
}

/// The path of least delay among those that `which` names; ties go to the lower identifier.
pub(crate) fn earliest<'v>(
    view: &View<'v>,
    which: impl Fn(&PathView) -> bool,
) -> Option<&'v PathView> {
    let mut best: Option<(f64, &PathView)> = None;
    for path in eligible(view.paths).filter(|path| which(path)) {
        let Some(delay) = one_way(path) else { continue };
        if best.is_none_or(|(least, _)| delay < least) {
            best = Some((delay, path));
        }
    }
    best.map(|(_, path)| path)
}

/// The sum of the eligible paths' windows.
pub(crate) fn windows(view: &View<'_>) -> Bytes {
    eligible(view.paths).map(|path| path.cwnd).sum()
}
