//! The bytes of QUIC v1 and of its multipath extension: reading and writing without copies.
//!
//! - [`cursor`]: [`Reader`] over received bytes, [`Writer`] into a packet's buffer;
//! - [`varint`] and [`packet_number`]: the two ways in which QUIC shortens integers;
//! - [`header`]: long and short headers, in two steps around header protection;
//! - [`frame`]: every frame, as a borrowed [`Frame`], and the rules of where each may go.
//!
//! Nothing here allocates for a packet, and no received byte can make it panic.
//! Not here: keys (see [`crate::tls`]) and the meaning of a frame for a connection.

pub mod connection_id;
pub mod cursor;
pub mod frame;
pub mod header;
pub mod packet_number;
pub mod varint;

pub use connection_id::{ConnectionId, ResetToken};
pub use cursor::{EndedEarly, NoSpace, Reader, Writer};
pub use frame::{AckRange, EcnCounts, Frame, FrameError, Frames};
pub use header::{PartialHeader, Version};
pub use packet_number::TruncatedPacketNumber;

pub use crate::kinds::{FrameType, PacketKind};
