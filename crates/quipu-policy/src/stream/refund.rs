//! What weighted rounds do with a plan that is taken back.

use super::{ActiveTree, Place, Turn};
use crate::key::StreamKey;
use crate::seam::event::Event;

/// A stream whose plan was just taken back while it was not ready: when it is made ready by that, it
/// is put where it was, before the one whose turn it is, and not behind all others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Returned(Option<StreamKey>);

impl Returned {
    /// A plan was taken back: calls `refund` at every level, for the stream's place and each of its
    /// ancestors with its parent. Nothing is paid back for a bare FIN, which cost nothing.
    pub(super) fn refund<T>(
        &mut self,
        tree: &mut ActiveTree<T>,
        turn: Turn,
        refund: impl FnMut(&mut ActiveTree<T>, Place, Place),
    ) {
        if turn.max.is_zero() {
            return;
        }
        if tree.place_of(turn.stream).is_some_and(|place| tree.ready(place).is_none()) {
            self.0 = Some(turn.stream);
        }
        tree.climb(turn.stream, refund);
    }

    /// True if the event makes the stream ready whose plan was just taken back.
    pub(super) fn regains_turn(&mut self, event: &Event<'_>) -> bool {
        match *event {
            Event::Ready(stream) => self.0.take() == Some(stream),
            _ => false,
        }
    }
}
