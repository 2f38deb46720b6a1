//! What is known of a path when a packet leaves on it.

use quipu_base::{Bytes, Instant};

/// The counts of a path when a packet left: [`DeliveryRate`](super::DeliveryRate) takes them, and
/// the packet's record keeps them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtSend {
    pub(super) delivered: Bytes,
    pub(super) delivered_at: Instant,
    pub(super) delivered_by: Option<u8>,
    pub(super) first_sent_at: Instant,
    pub(crate) lost: Bytes,
    /// The packet itself included.
    pub(crate) in_flight: Bytes,
    pub(crate) limited: bool,
}
