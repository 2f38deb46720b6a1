//! Classes of paths by quality, as in xquic.

use quipu_base::Duration;

use crate::seam::view::{PathView, View};

/// How good a path is; xquic's performance classes without the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathQuality {
    /// Neither of the others.
    High,
    /// Smoothed round-trip time above 500 ms or three times the least one, whichever is less; or
    /// below 3 Mbit/s; or more than 10 % lost.
    Mid,
    /// Smoothed round-trip time above 2 s, two probe timeouts in a row, or more than 30 % lost.
    Low,
}

const LOW_RTT: Duration = Duration::from_secs(2);
const LOW_TIMEOUTS: u32 = 2;
const LOW_LOSS: u16 = 300;
const MID_RTT: Duration = Duration::from_millis(500);
const MID_RTT_FACTOR: u64 = 3;
/// Bytes per second.
const MID_BANDWIDTH: f64 = 375_000.0;
const MID_LOSS: u16 = 100;

impl PathQuality {
    /// The class of `path` if `least_rtt` is the least smoothed round-trip time of all usable paths.
    /// What was not measured counts as good.
    pub fn of(path: &PathView, least_rtt: Option<Duration>) -> Self {
        let slower_than = |limit: Duration| path.srtt.is_some_and(|srtt| srtt > limit);
        if slower_than(LOW_RTT) || path.pto_count >= LOW_TIMEOUTS || path.loss.0 > LOW_LOSS {
            return PathQuality::Low;
        }
        let thrice = least_rtt.map_or(MID_RTT, |least| least.saturating_mul(MID_RTT_FACTOR));
        let slow = slower_than(MID_RTT.min(thrice));
        let narrow = path.bandwidth().is_some_and(|bandwidth| bandwidth < MID_BANDWIDTH);
        if slow || narrow || path.loss.0 > MID_LOSS { PathQuality::Mid } else { PathQuality::High }
    }

    /// The least smoothed round-trip time of the usable paths.
    pub fn least_rtt(view: &View<'_>) -> Option<Duration> {
        view.paths.usable().filter_map(|path| path.srtt).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::testing::{MS, world_of};
    use quipu_base::{Bytes, PerMille};

    #[test]
    fn paths_fall_into_classes_by_rtt_bandwidth_loss_and_timeouts() {
        use PathQuality::{High, Low, Mid};
        let (mut world, paths) = world_of(&[100]);
        let (path, wide) = (paths[0], Bytes(10_000_000));
        let cases: [(u64, Bytes, u16, u32, u64, PathQuality); 13] = [
            (100, wide, 0, 0, 100, High),
            (300, wide, 0, 0, 100, High),
            (301, wide, 0, 0, 100, Mid),
            (500, wide, 0, 0, 400, High),
            (501, wide, 0, 0, 400, Mid),
            (2_000, wide, 0, 0, 2_000, Mid),
            (2_001, wide, 0, 0, 2_001, Low),
            (100, Bytes(37_500), 0, 0, 100, High),
            (100, Bytes(37_499), 0, 0, 100, Mid),
            (100, wide, 100, 1, 100, High),
            (100, wide, 101, 0, 100, Mid),
            (100, wide, 301, 0, 100, Low),
            (100, wide, 0, 2, 100, Low),
        ];
        for (srtt, cwnd, loss, pto_count, least, expected) in cases {
            world.set_path(path, |path| {
                path.srtt = Some(MS.saturating_mul(srtt));
                (path.cwnd, path.loss, path.pto_count) = (cwnd, PerMille(loss), pto_count);
            });
            let view = world.paths.get(path).unwrap();
            assert_eq!(PathQuality::of(view, Some(MS.saturating_mul(least))), expected, "{view:?}");
        }
    }

    #[test]
    fn a_path_without_samples_is_good_until_it_shows_otherwise() {
        let (mut world, paths) = world_of(&[100]);
        world.set_path(paths[0], |path| path.srtt = None);
        let path = world.paths.get(paths[0]).unwrap();
        assert_eq!(PathQuality::of(path, None), PathQuality::High);
    }
}
