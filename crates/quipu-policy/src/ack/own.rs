//! The acknowledgement policies that need no history.

use super::{AckPolicy, AckRoute};
use crate::seam::event::Event;
use crate::seam::key::{PathKey, PathSet};
use crate::seam::view::{PathState, View};

/// `own`: acknowledgements of a path's packets return on that path; while it cannot be used, on
/// the usable path of least round-trip time.
///
/// Source: mp-quic and xquic, read in code; confidence high.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own;

/// `min-rtt`: acknowledgements return on the usable path of least smoothed round-trip time; if
/// none is usable, on the path itself.
///
/// Source: XLINK (Zheng et al., SIGCOMM 2021); picoquic prefers that path too; confidence high.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastRtt;

impl AckPolicy for Own {
    fn route(&mut self, data: PathKey, view: &View<'_>) -> AckRoute {
        let carries = |state| matches!(state, PathState::Usable | PathState::Validating);
        let on = if view.paths.get(data).is_some_and(|path| carries(path.state)) {
            data
        } else {
            view.paths.least_srtt_usable().unwrap_or(data)
        };
        AckRoute { on: PathSet::only(on), ride: false }
    }

    fn on_event(&mut self, _event: &Event<'_>, _view: &View<'_>) {}
}

impl AckPolicy for LeastRtt {
    fn route(&mut self, data: PathKey, view: &View<'_>) -> AckRoute {
        let on = view.paths.least_srtt_usable().unwrap_or(data);
        AckRoute { on: PathSet::only(on), ride: false }
    }

    fn on_event(&mut self, _event: &Event<'_>, _view: &View<'_>) {}
}
