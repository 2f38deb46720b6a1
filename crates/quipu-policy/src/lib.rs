//! Everything a researcher swaps: what a scheduling decision may read, what it may answer, and the
//! policies that answer.
//!
//! The engine owns every byte, range and packet; policies own order and plans. The engine tells
//! what happened ([`Event`], state first), asks for every packet what goes next
//! ([`Joint::decide`]), checks the answer, does it, and tells that it did. Asking takes nothing.
//!
//! Start with three types:
//! - [`View`]: what a decision may read, borrowed from the engine;
//! - [`Decision`]: what it may answer;
//! - [`Joint`]: the one trait the engine knows, usually a `Pair` of a [`StreamPolicy`] and a
//!   [`PathPolicy`].
//!
//! Whoever writes a policy finds in [`conformance`] what it must stand, and the means to test it.
//!
//! Not here: packets, sockets, clocks, or any type of the engine.

pub mod ack;
mod builtin;
pub mod conformance;
pub mod congestion;
pub mod joint;
pub mod key;
pub mod path;
pub mod priority;
pub mod registry;
pub mod reinject;
pub mod seam;
pub mod stream;

pub use ack::{AckPolicy, AckRoute};
pub use congestion::{Controller, ControllerFactory};
pub use joint::{Joint, Pair, Planned, Planner};
pub use key::{PathKey, PathSet, Span, StreamKey};
pub use path::{Choice, Parcel, PathPolicy, TakeBack};
pub use priority::{
    NodeId, NodeKey, Priorities, Priority, PriorityEdit, PriorityError, TreeEdit, Urgency,
};
pub use registry::{BuildContext, Built, Entry, Layer, Policies, PolicySpec, Registry};
pub use reinject::{Reinject, ResendPath, ResendRules};
pub use seam::decision::{Ask, DecidedBy, Decision, Note, Notes, Refusal};
pub use seam::event::{Event, Quality};
pub use seam::referee::{Checked, Placement, Referee};
pub use seam::view::{
    Class, ConnView, Kind, PathState, PathStatus, PathView, Paths, Piece, Run, SentPacket,
    SentTable, StreamTable, StreamView, View,
};
pub use stream::{Pack, StreamPolicy, Turn};
