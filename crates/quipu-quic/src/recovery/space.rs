//! A packet number space.

use super::{Received, SentPackets};

/// What was sent in one packet number space and may still be lost, and what came in it.
#[derive(Debug, Default)]
pub(crate) struct PacketSpace {
    pub(crate) sent: SentPackets,
    pub(crate) received: Received,
}
