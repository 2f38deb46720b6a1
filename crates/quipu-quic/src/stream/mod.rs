//! Streams: buffers, ranges, credit and limits. <https://www.rfc-editor.org/rfc/rfc9000#section-2>
//!
//! - [`Streams`]: all streams of a connection. The connection hands it the peer's frames, asks it
//!   what may be sent, tells it what was placed, acknowledged and lost, and drains its queues:
//!   [`Edge`]s for the policy, [`StreamEvent`]s for the application, [`ControlFrame`]s for the peer.
//! - [`SendHalf`] and [`RecvHalf`]: the two halves of one stream.
//!
//! It implements [`StreamTable`](quipu_policy::StreamTable) and owns the views that policies read.
//!
//! Not here: wire formats, packets, paths, the order in which streams are served.

mod assembler;
mod buffers;
mod cancel;
mod clump;
mod fault;
mod flow;
mod frames;
mod index;
mod recv;
mod send;
mod set;

pub use buffers::{Buffers, Spares};
pub use cancel::CancelLimit;
pub use fault::{OpenError, StreamError, StreamFault};
pub use flow::ReceiveWindow;
pub use frames::ControlFrame;
pub use recv::{Received, RecvHalf};
pub use send::{MAX_OFFSET, Placed, SendHalf};
pub use set::{Edge, PeerLimits, Read, StreamEvent, StreamLimits, Streams};
