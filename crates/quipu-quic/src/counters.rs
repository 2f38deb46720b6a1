//! What is counted of a path.

use std::ops::AddAssign;

use quipu_base::Duration;
use quipu_policy::{Kind, Piece};

/// Counters of a path, in packets and UDP payload bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Packets sent.
    pub packets_sent: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Stream bytes sent that were neither pending before nor lost: copies and probes.
    pub copy_bytes: u64,
    /// Stream bytes sent again after a loss.
    pub again_bytes: u64,
    /// Stream bytes sent in all.
    pub stream_bytes: u64,
    /// Packets acknowledged, those declared lost before included.
    pub packets_acked: u64,
    /// Bytes of those. Below what was sent even in the end: packets that only acknowledge are not
    /// acknowledged.
    pub bytes_acked: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Bytes of packets declared lost.
    pub bytes_lost: u64,
    /// Sum over packets declared lost of the time from sending to that.
    pub loss_detection: Duration,
    /// Packets declared lost and acknowledged later.
    pub packets_spurious: u64,
    /// Bytes of those.
    pub bytes_spurious: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Packets that the peer newly reported as marked CE.
    pub packets_marked: u64,
    /// Probe timeouts.
    pub probe_timeouts: u64,
}

impl PathCounters {
    /// A packet with these pieces of streams leaves.
    pub(crate) fn on_pieces(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            let bytes = piece.span.len().0;
            self.stream_bytes += bytes;
            match piece.kind {
                Kind::Fresh => {}
                Kind::Again => self.again_bytes += bytes,
                Kind::Copy => self.copy_bytes += bytes,
            }
        }
    }
}

impl AddAssign for PathCounters {
    fn add_assign(&mut self, other: PathCounters) {
        // Every field by name, so that a new one cannot be forgotten.
        let PathCounters {
            packets_sent,
            bytes_sent,
            copy_bytes,
            again_bytes,
            stream_bytes,
            packets_acked,
            bytes_acked,
            packets_lost,
            bytes_lost,
            loss_detection,
            packets_spurious,
            bytes_spurious,
            packets_received,
            bytes_received,
            probe_timeouts,
            packets_marked,
        } = other;
        for (sum, part) in [
            (&mut self.packets_sent, packets_sent),
            (&mut self.bytes_sent, bytes_sent),
            (&mut self.copy_bytes, copy_bytes),
            (&mut self.again_bytes, again_bytes),
            (&mut self.stream_bytes, stream_bytes),
            (&mut self.packets_acked, packets_acked),
            (&mut self.bytes_acked, bytes_acked),
            (&mut self.packets_lost, packets_lost),
            (&mut self.bytes_lost, bytes_lost),
            (&mut self.packets_spurious, packets_spurious),
            (&mut self.bytes_spurious, bytes_spurious),
            (&mut self.packets_received, packets_received),
            (&mut self.bytes_received, bytes_received),
            (&mut self.probe_timeouts, probe_timeouts),
            (&mut self.packets_marked, packets_marked),
        ] {
            *sum = sum.saturating_add(part);
        }
        self.loss_detection += loss_detection;
    }
}
