//! What an acknowledgement or the loss timer settled.

use quipu_base::{Bytes, Instant};
use quipu_policy::PathKey;
use quipu_policy::congestion::{AckedPacket, LostPacket};

use super::{SentPackets, SentRecord};

/// Packets whose fate became known, and what followed on their path: for streams, policies and
/// recorder to hear of. Used again from one acknowledgement to the next.
#[derive(Default)]
pub(crate) struct Settled {
    pub(super) acked: Vec<SentRecord>,
    pub(super) late: Vec<SentRecord>,
    pub(super) lost: Vec<SentRecord>,
    pub(super) released: Bytes,
    pub(super) sampled_sent_at: Option<Instant>,
    pub(super) revived: Option<PathKey>,
    /// The same packets as the controller is told of them.
    pub(super) acked_packets: Vec<AckedPacket>,
    pub(super) lost_packets: Vec<LostPacket>,
}

impl Settled {
    /// What was acknowledged and what was declared lost.
    #[cfg(test)]
    pub(crate) fn of(acked: Vec<SentRecord>, lost: Vec<SentRecord>) -> Self {
        Settled { acked, lost, ..Settled::default() }
    }

    /// True if no packet was acknowledged.
    pub(crate) fn is_nothing_acked(&self) -> bool {
        self.acked.is_empty() && self.late.is_empty()
    }

    /// Packets in flight that were acknowledged, in packet-number order.
    pub(crate) fn acked(&self) -> &[SentRecord] {
        &self.acked
    }

    /// Packets acknowledged that were declared lost before, in packet-number order: those losses
    /// were spurious.
    pub(crate) fn late(&self) -> &[SentRecord] {
        &self.late
    }

    /// Packets declared lost, in packet-number order.
    pub(crate) fn lost(&self) -> &[SentRecord] {
        &self.lost
    }

    /// Bytes that are in flight no more; none of a path that is abandoned.
    pub(crate) fn released(&self) -> Bytes {
        self.released
    }

    /// When the packet left that gave a round-trip sample, or would have given one had it come
    /// another way.
    #[cfg(test)]
    pub(crate) fn sampled_sent_at(&self) -> Option<Instant> {
        self.sampled_sent_at
    }

    /// The path was suspect and answered.
    pub(crate) fn revived(&self) -> Option<PathKey> {
        self.revived
    }

    /// Empties it for the next time; lost packets are remembered for late acknowledgements.
    pub(crate) fn recycle(&mut self, sent: Option<&mut SentPackets>) {
        self.acked.clear();
        self.late.clear();
        match sent {
            Some(sent) => self.lost.drain(..).for_each(|record| sent.remember_lost(record)),
            None => self.lost.clear(),
        }
        self.released = Bytes::ZERO;
        self.sampled_sent_at = None;
        self.revived = None;
    }
}
