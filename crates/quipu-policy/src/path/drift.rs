//! When plans rest on estimates that no longer hold.

use quipu_base::{Bytes, Duration};

use crate::key::PathKey;
use crate::seam::view::{PathView, View};

/// What plans rest on: round-trip times and windows of the usable paths when they were made.
#[derive(Clone, Debug)]
pub(crate) struct Drift {
    /// A round-trip time that moved by more than this share of itself counts.
    srtt_share: u64,
    /// The same of a window; `None`: windows may move as they like.
    window_share: Option<u64>,
    /// By path slot.
    basis: Vec<Option<Basis>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Basis {
    path: PathKey,
    srtt: Option<Duration>,
    cwnd: Bytes,
}

impl Drift {
    /// Plans hold while neither round-trip times nor windows move by more than 1/8; our choice.
    pub(crate) const EIGHTH: Drift = Drift::new(8, Some(8));

    /// Plans hold while no round-trip time moves by more than one `srtt_share`-th, and no window by
    /// more than one `window_share`-th.
    pub(crate) const fn new(srtt_share: u64, window_share: Option<u64>) -> Self {
        Drift { srtt_share, window_share, basis: Vec::new() }
    }

    /// Plans are made by what the paths show now.
    pub(crate) fn rest_on(&mut self, view: &View<'_>) {
        self.basis.fill(None);
        for path in view.paths.usable() {
            if self.basis.len() <= path.key.index() {
                self.basis.resize(path.key.index() + 1, None);
            }
            let Some(basis) = self.basis.get_mut(path.key.index()) else { continue };
            *basis = Some(Basis { path: path.key, srtt: path.srtt, cwnd: path.cwnd });
        }
    }

    /// True if a path came, or an estimate moved. Then plans rest on what the paths show now.
    pub(crate) fn moved(&mut self, view: &View<'_>) -> bool {
        let moved = view.paths.usable().any(|path| self.moved_on(path));
        if moved {
            self.rest_on(view);
        }
        moved
    }

    fn moved_on(&self, path: &PathView) -> bool {
        let Some(basis) = self.basis.get(path.key.index()).copied().flatten() else { return true };
        let srtt_moved = match (basis.srtt, path.srtt) {
            (Some(then), Some(now)) => then.abs_diff(now) > then.divided_by(self.srtt_share),
            (then, now) => then != now,
        };
        let window_moved = self
            .window_share
            .is_some_and(|share| basis.cwnd.0.abs_diff(path.cwnd.0) > basis.cwnd.0 / share);
        basis.path != path.key || srtt_moved || window_moved
    }
}
