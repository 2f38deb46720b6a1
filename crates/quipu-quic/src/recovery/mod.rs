//! Loss recovery: what was sent, what came, round-trip times, loss detection, congestion control
//! and pacing.
//!
//! Each packet number space is a [`PacketSpace`], with a [`SentPackets`] and a [`Received`]; Initial and
//! Handshake belong to path 0, and each path has one for 1-RTT packets (RFC 10069). A [`SpaceRecovery`] is a space
//! with the [`PathRecovery`] of the path that carries it: acknowledgements and the loss timer go in,
//! and what they [`Settled`] comes out, for the connection to hand on.

mod ack_times;
mod at_send;
mod delivery;
mod ecn;
mod loss;
mod loss_detection;
mod pacer;
mod path;
mod persistent;
mod plain;
mod received;
mod reordering;
mod return_way;
mod rtt;
mod sent;
mod settled;
mod skips;
mod space;

pub(crate) use at_send::AtSend;
pub(crate) use loss_detection::{Acknowledgement, NeverSent, SpaceRecovery};
pub(crate) use path::{PROBES, PathRecovery};
pub(crate) use received::{AckSettings, Received};
use sent::of_epoch;
pub(crate) use sent::{SentControl, SentPackets, SentRecord, SentStreamPiece};
pub(crate) use settled::Settled;
pub(crate) use space::PacketSpace;

use delivery::DeliveryRate;
use ecn::EcnPath;
use pacer::Pacer;
use persistent::PersistentCongestion;
use reordering::{LossRound, Reordering};
use return_way::ReturnWay;
use rtt::take_rtt_sample;
use sent::Thresholds;
