//! Stream policies: whose bytes go next.
//!
//! - `rr`: [`RoundRobin`]
//! - `fifo`: [`Fifo`]
//! - `wrr:mode=fluid`: [`FluidWrr`]; `wrr:mode=quantum`: [`QuantumWrr`]
//! - `swrr`: [`ScatteredWrr`]; `swrr:mode=smooth`: [`SmoothWrr`]
//! - `dwrr:mode=paper`: [`GroupedWrr`]; `dwrr:mode=code`: [`QuantumWrr::with_sorted_root`]
//!
//! All but the first two share by the dependency tree.
//!
//! [`gps`] computes what an ideal fluid sharing by the tree would do.

mod entries;
mod fifo;
mod fluid;
pub mod gps;
mod grouped;
mod heap;
mod quantum;
mod rr;
mod scattered;
mod smooth;
mod sorted_root;
#[cfg(test)]
pub(crate) mod testing;

use quipu_base::Bytes;

use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::key::StreamKey;
use crate::seam::view::{Kind, View};

pub(crate) use entries::entries;
pub use fifo::Fifo;
pub use fluid::FluidWrr;
pub use grouped::GroupedWrr;
pub use quantum::QuantumWrr;
pub use rr::RoundRobin;
pub use scattered::{ScatteredWrr, Tokens};
pub use smooth::SmoothWrr;

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

#[cfg(test)]
mod tests;
