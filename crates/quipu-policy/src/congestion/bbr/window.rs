//! The congestion window of BBR: follows the model, and gives way in recovery.

use quipu_base::{Bytes, Instant};

use super::super::{AckedInfo, LostInfo};

/// Least window in datagrams.
/// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.2.3.3>
const MINIMUM_PACKETS: u64 = 4;

/// Where the window goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    /// What the model asks for.
    pub(super) target: Bytes,
    /// The path's bandwidth is found: what is beyond the target goes at once.
    pub(super) found: bool,
    /// The round-trip time is probed.
    pub(super) probes_rtt: bool,
}

/// The window.
#[derive(Clone, Debug)]
pub(super) struct Window {
    cwnd: Bytes,
    datagram_size: Bytes,
    initial_packets: u64,
    /// The window before recovery and before a probe of the round-trip time.
    prior: Bytes,
    recovery: Option<Recovery>,
    /// The last acknowledgement, and what it acknowledged.
    acked: (Instant, Bytes),
}

/// Losses are being repaired.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// When the last loss was found: an acknowledgement of what was sent later ends recovery.
    lost_at: Instant,
    /// When the first was found, during the round trip in which packets are conserved: an
    /// acknowledgement of what was sent later ends that.
    conserves_since: Option<Instant>,
}

impl Window {
    pub(super) fn new(initial_packets: u32, datagram_size: Bytes) -> Self {
        let mut window = Window {
            cwnd: Bytes::ZERO,
            datagram_size,
            initial_packets: u64::from(initial_packets),
            prior: Bytes::ZERO,
            recovery: None,
            acked: (Instant::ZERO, Bytes::ZERO),
        };
        window.cwnd = window.initial();
        window
    }

    pub(super) fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    pub(super) fn datagram_size(&self) -> Bytes {
        self.datagram_size
    }

    /// Four datagrams.
    pub(super) fn minimum(&self) -> Bytes {
        self.datagram_size.saturating_mul(MINIMUM_PACKETS)
    }

    /// The window to begin with; not less than the minimum.
    pub(super) fn initial(&self) -> Bytes {
        self.datagram_size.saturating_mul(self.initial_packets).max(self.minimum())
    }

    /// An acknowledgement, after the model and the state took it.
    ///
    /// A window that was not what limited sending does not grow (the draft lets it).
    /// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.2.3.6>
    pub(super) fn on_acked(&mut self, acked: &AckedInfo<'_>, goal: Goal) {
        let bytes: Bytes = acked.packets.iter().map(|packet| packet.bytes).sum();
        self.acked = (acked.now, bytes);
        if let Some(newest) = acked.packets.last() {
            self.repair(newest.sent_at);
        }
        let grown = if acked.limited { self.cwnd } else { self.cwnd + bytes };
        if self.conserves() {
            self.conserve(acked.in_flight, bytes);
        } else if goal.found {
            self.cwnd = grown.min(goal.target);
        } else if self.cwnd < goal.target || acked.delivered < self.initial() {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(self.minimum());
        if goal.probes_rtt {
            self.cwnd = self.cwnd.min(self.minimum());
        }
    }

    /// A packet was acknowledged that was sent then.
    fn repair(&mut self, sent_at: Instant) {
        let Some(recovery) = &mut self.recovery else { return };
        if recovery.conserves_since.is_some_and(|since| sent_at > since) {
            recovery.conserves_since = None;
        }
        if sent_at > recovery.lost_at {
            self.recovery = None;
            self.restore();
        }
    }

    fn conserves(&self) -> bool {
        self.recovery.is_some_and(|recovery| recovery.conserves_since.is_some())
    }

    /// Packets were lost.
    /// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.2.3.4>
    pub(super) fn on_lost(&mut self, lost: &LostInfo<'_>) {
        let lost_at = lost.now;
        let delivered = if self.acked.0 == lost_at { self.acked.1 } else { Bytes::ZERO };
        if lost.persistent {
            // What a retransmission timeout is elsewhere; the draft leaves one packet then.
            self.save();
            self.recovery = Some(Recovery { lost_at, conserves_since: None });
            self.cwnd = Bytes::ZERO;
        } else if let Some(recovery) = &mut self.recovery {
            recovery.lost_at = lost_at;
            self.cwnd -= lost.bytes;
            if self.conserves() {
                self.conserve(lost.in_flight, delivered);
            }
        } else {
            self.save();
            self.recovery = Some(Recovery { lost_at, conserves_since: Some(lost_at) });
            self.cwnd = lost.in_flight + delivered.max(self.datagram_size);
        }
        self.cwnd = self.cwnd.max(self.minimum());
    }

    /// At least what was in flight may be so again.
    fn conserve(&mut self, in_flight: Bytes, delivered: Bytes) {
        self.cwnd = self.cwnd.max(in_flight + delivered);
    }

    /// Keeps the window as it is without recovery and probe.
    pub(super) fn save(&mut self) {
        self.prior = if self.recovery.is_some() { self.prior.max(self.cwnd) } else { self.cwnd };
    }

    /// Back to what was kept, unless the window is larger.
    pub(super) fn restore(&mut self) {
        self.cwnd = self.cwnd.max(self.prior);
    }

    /// The largest datagram changed; `fresh`: nothing was acknowledged yet.
    pub(super) fn set_datagram_size(&mut self, size: Bytes, fresh: bool) {
        self.datagram_size = size;
        let least = if fresh { self.initial() } else { self.minimum() };
        self.cwnd = self.cwnd.max(least);
    }
}
