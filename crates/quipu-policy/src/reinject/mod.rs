//! Reinjection: copies of bytes in flight; and the plain rules of sending lost bytes again.

use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::key::{PathKey, Span, StreamKey};
use crate::seam::view::View;

mod entries;
mod redundant;

pub(crate) use entries::{entries, most_urgency};
pub use redundant::Redundant;

/// Decides on copies.
pub trait Reinject: Send {
    /// A copy to send now: on which path, of what. `instead_of` is the stream whose own bytes
    /// would go otherwise; `None`: nothing would.
    fn next(
        &mut self,
        instead_of: Option<StreamKey>,
        view: &View<'_>,
        notes: &mut Notes,
    ) -> Option<(PathKey, StreamKey, Span)>;

    /// Takes note of what happened.
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>);

    /// True while copies may exist.
    fn armed(&self) -> bool;
}

/// How lost bytes are sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResendRules {
    /// Lost bytes go before all fresh ones; else they keep their stream's rank.
    pub first: bool,
    /// From so many probe timeouts in a row, lost bytes avoid the path that lost them, if another
    /// is open.
    pub avoid_origin_after_pto: u32,
    /// From so many probe timeouts in a row, a path's bytes in flight are pending again.
    pub requeue_after_pto: u32,
}

impl Default for ResendRules {
    fn default() -> Self {
        ResendRules { first: false, avoid_origin_after_pto: 1, requeue_after_pto: 1 }
    }
}
