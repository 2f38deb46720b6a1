//! Stream policies: whose bytes go next.

use quipu_base::Bytes;

use crate::registry::Entry;
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::key::StreamKey;
use crate::seam::view::{Kind, View};

/// A stream's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Whose turn.
    pub stream: StreamKey,
    /// At most so many bytes: the rest of a quantum, slot or written chunk.
    pub max: Bytes,
}

/// How many streams share a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pack {
    /// One stream's bytes per packet; what is left of a packet stays empty.
    #[default]
    One,
    /// A packet is filled with the turns that follow.
    Many,
}

/// Orders streams. Reads no path, so that it can also order a queue of its own.
pub trait StreamPolicy: Send {
    /// Whose turn it is; takes nothing. `None`: no stream is ready.
    fn next(&mut self, view: &View<'_>, notes: &mut Notes) -> Option<Turn>;

    /// Takes note of what happened. `Ready` and `Stopped` mean here: has bytes that no path holds.
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>);

    /// Bytes (in `turn.max`) of a stream were sent or committed to a path: charge here.
    fn on_taken(&mut self, turn: Turn, kind: Kind, view: &View<'_>);

    /// A commitment of `turn.max` bytes was taken back: refund.
    fn on_returned(&mut self, turn: Turn, view: &View<'_>);

    /// Grows when bytes already committed should have gone to another stream: an urgent arrival, a
    /// new priority.
    fn order(&self) -> u64 {
        0
    }
}

/// The stream policies of this crate.
pub(crate) fn entries() -> Vec<Entry> {
    Vec::new()
}
