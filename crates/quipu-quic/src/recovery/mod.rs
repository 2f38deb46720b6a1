//! Loss recovery: what was sent, what came, round-trip times, loss detection and pacing.
//!
//! Each packet number space has a [`SentPackets`] and a [`Received`]; Initial and Handshake belong
//! to path 0, and each path has one for 1-RTT packets (RFC 10069).

mod delivery;
mod ecn;
mod loss;
mod pacer;
mod received;
mod rtt;
mod sent;
mod space;

pub(crate) use delivery::{AtSend, DeliveryRate};
pub(crate) use ecn::EcnPath;
pub(crate) use loss::{PACKET_THRESHOLD, is_persistent_congestion, loss_delay, probe_timeout};
pub(crate) use pacer::Pacer;
pub(crate) use received::{AckSettings, Received};
pub(crate) use rtt::{INITIAL_RTT, take_rtt_sample};
pub(crate) use sent::{SentControl, SentPackets, SentRecord, SentStreamPiece};
pub(crate) use space::PacketSpace;
