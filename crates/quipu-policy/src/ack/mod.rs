//! Acknowledgement policies: on which path an acknowledgement returns.

use quipu_base::Instant;

use crate::key::{PathKey, PathSet};
use crate::seam::event::Event;
use crate::seam::view::View;

mod min_owd;
mod plain;

pub use min_owd::MinOwd;
pub use plain::{All, Any, LeastRtt, Own};

/// Where an acknowledgement goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRoute {
    /// The paths to write it on; several for a probe or for safety.
    pub on: PathSet,
    /// True if it may also ride on any packet that leaves sooner.
    pub ride: bool,
}

/// Names the path of each acknowledgement.
pub trait AckPolicy: Send {
    /// The route of the acknowledgement of `data`'s packets. Asked when it could be written, which
    /// may be more than once; [`Event::AckSent`] tells that it was.
    fn route(&mut self, data: PathKey, view: &View<'_>) -> AckRoute;

    /// Whether an acknowledgement of `data` that came on `arrived_on` may feed the main
    /// round-trip-time estimate.
    ///
    /// When one feeds it that came on another path than the one before, and that one's path would
    /// be refused now, then acknowledgements return another way: the estimate begins anew, and the
    /// controller is told [`PathChange::ReturnRoute`](crate::congestion::PathChange::ReturnRoute).
    ///
    /// A refused one feeds the estimate all the same, and not the controller, if it came later than
    /// the probe timeout: else that would stay too short for as long as none is taken.
    fn takes_sample(&self, _data: PathKey, _arrived_on: PathKey) -> bool {
        true
    }

    /// Return paths to ask of the peer: (data path, return path), all that are known; `None` if
    /// nothing is to be told anew. Asked only if
    /// [`ConnView::return_paths`](crate::ConnView::return_paths); what is returned once is sent
    /// reliably, unless newer advice overtakes it.
    fn advice(&mut self, _view: &View<'_>) -> Option<Vec<(PathKey, PathKey)>> {
        None
    }

    /// Takes note of what happened.
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>);

    /// When to be woken for periodic work.
    fn wake_at(&self) -> Option<Instant> {
        None
    }
}
