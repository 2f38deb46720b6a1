//! Acknowledgement policies: on which path an acknowledgement returns.

use quipu_base::Instant;

use crate::seam::event::Event;
use crate::seam::key::{PathKey, PathSet};
use crate::seam::view::View;

mod plain;

pub(crate) use plain::entries;
pub use plain::{LeastRtt, Own};

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
    /// The route of the acknowledgement of `data`'s packets. Asked when it is about to be written.
    fn route(&mut self, data: PathKey, view: &View<'_>) -> AckRoute;

    /// Whether an acknowledgement of `data` that came on `arrived_on` may feed the main
    /// round-trip-time estimate.
    fn takes_sample(&self, _data: PathKey, _arrived_on: PathKey) -> bool {
        true
    }

    /// Return paths to ask of the peer: (data path, return path).
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
