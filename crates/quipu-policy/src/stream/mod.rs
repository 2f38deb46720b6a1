//! Stream policies: whose bytes go next.
//!
//! Turns:
//! - `rr`: [`RoundRobin`]
//!
//! By time of writing:
//! - `fifo`: [`ByChunk::fifo`]; `edf`: [`ByChunk::edf`]
//!
//! By urgency:
//! - `rfc9218`: [`UrgencyLevels`]
//!
//! One stream after the other, by a [`Rank`]:
//! - `pfifo`: [`Ranked::pfifo`]; `strict`: [`Ranked::strict`]
//! - `srpt`: [`Ranked::srpt`]; `sjf`: [`Ranked::sjf`]
//!
//! Shares by the dependency tree:
//! - `wrr:mode=fluid`: [`FluidWrr`]; `wrr:mode=quantum`: [`QuantumWrr`]
//! - `swrr`: [`ScatteredWrr`]; `swrr:mode=smooth`: [`SmoothWrr`]
//! - `dwrr:mode=paper`: [`GroupedWrr`]; `dwrr:mode=code`: [`QuantumWrr::with_sorted_root`]
//! - `fsp`: [`FairSojourn`], in the order of the ends under fair sharing
//!
//! Policies that share by the tree follow it with an [`ActiveTree`]. [`gps`] computes what an ideal fluid sharing by the tree would do.

mod active_tree;
mod by_chunk;
mod chunks;
mod fluid;
mod fsp;
pub mod gps;
mod grouped;
mod heap;
mod pfifo;
mod preemption;
mod quantum;
mod ranked;
mod ready_queue;
mod refund;
mod remaining;
mod rfc9218;
mod rr;
mod scattered;
mod shortest;
mod smooth;
mod sorted_root;
mod strict;
#[cfg(test)]
pub(crate) mod testing;

use quipu_base::Bytes;

use crate::key::StreamKey;
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, View};

pub use active_tree::{ActiveTree, Change, Place};
pub use by_chunk::ByChunk;
pub use fluid::FluidWrr;
pub use fsp::FairSojourn;
pub use grouped::GroupedWrr;
pub(crate) use heap::{Heap, Positions};
pub use pfifo::ByIdentifier;
pub(crate) use preemption::Preemptions;
pub use quantum::QuantumWrr;
pub use ranked::{Rank, Ranked};
pub(crate) use remaining::{remaining, total};
pub use rfc9218::{Mixed, UrgencyLevels};
pub use rr::RoundRobin;
pub use scattered::{ScatteredWrr, Tokens};
pub use shortest::{ByRemaining, BySize};
pub use smooth::SmoothWrr;
pub use strict::ByPriority;
pub(crate) use strict::weight;

/// A stream's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Whose turn.
    pub stream: StreamKey,
    /// At most so many bytes: the rest of a quantum, slot or written chunk.
    pub max: Bytes,
}

impl Turn {
    /// A turn of as much as fits one packet.
    pub const fn unlimited(stream: StreamKey) -> Self {
        Turn { stream, max: Bytes::MAX }
    }
}

/// How many streams share a packet. Our choice, as other stacks do: many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pack {
    /// One stream's bytes per packet; what is left of a packet stays empty.
    One,
    /// A packet is filled with the turns that follow.
    #[default]
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

    /// True if [`next`](Self::next), which has just given `stream` a turn without limit, does so again
    /// until the stream stops, time passes, or an event comes that is not [`Event::Placed`] or
    /// [`Event::Sent`] of these turns: it need not be asked.
    fn stays_with(&self, _stream: StreamKey) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
