//! A packet number space.

use super::{Received, SentPackets};

/// What was sent in one packet number space and may still be lost, and what came in it.
#[derive(Debug, Default)]
pub(crate) struct PacketSpace {
    pub(crate) sent: SentPackets,
    pub(crate) received: Received,
}

impl PacketSpace {
    /// The 1-RTT packets of a path; `skips`: some packet numbers, chosen at random, are never used.
    pub(crate) fn of_path(skips: bool) -> Self {
        let sent = if skips { SentPackets::with_skips() } else { SentPackets::default() };
        PacketSpace { sent, received: Received::default() }
    }
}
