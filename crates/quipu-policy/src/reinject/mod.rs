//! Reinjection: copies of bytes in flight; and the plain rules of sending lost bytes again.

use quipu_base::Instant;

use crate::key::{PathKey, Span, StreamKey};
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::View;

mod redundant;
mod resend;
mod sent_log;
mod tail;
#[cfg(test)]
pub(crate) mod testing;
mod unprobed;
mod xlink;

pub use redundant::Redundant;
pub use resend::{ResendPath, ResendRules};
pub use tail::TailCopies;
pub use unprobed::UnprobedCopies;
pub use xlink::{CopyOrder, CopyPaths, Deadline, Need, Playback, Xlink};

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

    /// When to be woken, because a copy falls due.
    fn wake_at(&self) -> Option<Instant> {
        None
    }
}
