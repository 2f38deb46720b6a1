//! What loss-based controllers share: slow start, the recovery period, loss and datagram sizes.

use quipu_base::{Bytes, Instant};

use super::slow_start::{SlowStartExit, Watch};
use super::{AckedInfo, LostInfo, PathChange, Published, SentInfo};

/// A congestion window with the rules of RFC 9002, section 7. How it grows in avoidance, and what a
/// congestion event leaves of it, its controller says.
#[derive(Clone, Debug)]
pub(super) struct RenoWindow {
    datagram_size: Bytes,
    cwnd: Bytes,
    ssthresh: Option<Bytes>,
    /// Start of the recovery period; packets sent before it neither grow nor shrink the window.
    recovery_start: Option<Instant>,
    /// Growth in avoidance below a byte: bytes acknowledged times datagram size, below the window.
    growth_remainder: u64,
    minimum: Bytes,
    watch: Watch,
    /// What the last loss reduced.
    before_loss: Option<BeforeLoss>,
}

/// The window before a loss.
#[derive(Clone, Copy, Debug)]
struct BeforeLoss {
    /// When the loss was found.
    lost_at: Instant,
    cwnd: Bytes,
    ssthresh: Option<Bytes>,
}

impl RenoWindow {
    /// A window of `initial_packets` (at least 2) datagrams of `datagram_size` bytes, whose slow start
    /// ends by `exit`.
    pub(super) fn new(initial_packets: u32, datagram_size: Bytes, exit: SlowStartExit) -> Self {
        RenoWindow {
            datagram_size,
            cwnd: datagram_size.saturating_mul(u64::from(initial_packets.max(2))),
            ssthresh: None,
            recovery_start: None,
            growth_remainder: 0,
            // https://www.rfc-editor.org/rfc/rfc9002#section-7.2
            //# The RECOMMENDED value is 2 * max_datagram_size.
            minimum: datagram_size.saturating_mul(2),
            watch: exit.into(),
            before_loss: None,
        }
    }

    /// A packet left.
    pub(super) fn on_sent(&mut self, sent: &SentInfo) {
        if self.is_watched() {
            self.watch.on_sent(sent.now);
        }
    }

    /// The path is in a slow start that something besides a loss may end.
    fn is_watched(&self) -> bool {
        if self.watch.is_for_all() { self.in_slow_start() } else { self.ssthresh.is_none() }
    }

    pub(super) fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    /// That part of the window, 0 to 1, rounded down.
    pub(super) fn part(&self, part: f64) -> Bytes {
        // Conversions from floating point saturate.
        Bytes((self.cwnd.0 as f64 * part) as u64)
    }

    pub(super) fn datagram_size(&self) -> Bytes {
        self.datagram_size
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.ssthresh.is_none_or(|ssthresh| self.cwnd < ssthresh)
    }

    /// Shrinks the window, at most to its minimum; the threshold goes along, so that it is in
    /// avoidance then.
    pub(super) fn shrink_to(&mut self, target: Bytes) {
        self.drain_to(target);
        self.ssthresh = Some(self.ssthresh.map_or(self.cwnd, |ssthresh| ssthresh.min(self.cwnd)));
    }

    /// Shrinks the window, at most to its minimum; slow start leads back to the threshold.
    pub(super) fn drain_to(&mut self, target: Bytes) {
        self.cwnd = self.cwnd.min(target).max(self.minimum);
    }

    pub(super) fn grow_by(&mut self, bytes: Bytes) {
        self.cwnd += bytes;
    }

    /// True if a packet sent then neither grows nor shrinks the window.
    pub(super) fn in_recovery(&self, sent_at: Instant) -> bool {
        self.recovery_start.is_some_and(|start| sent_at <= start)
    }

    /// Slow start for what is below the threshold; `avoid` grows the window for the bytes of each
    /// packet beyond it.
    pub(super) fn on_acked(
        &mut self,
        acked: &AckedInfo<'_>,
        avoid: impl FnMut(&mut RenoWindow, Bytes),
    ) {
        self.grow(acked, avoid);
        let packets = self.cwnd.0 / self.datagram_size.0.max(1);
        if self.is_watched() && self.watch.on_acked(acked, packets) {
            self.ssthresh = Some(self.cwnd);
        }
    }

    fn grow(&mut self, acked: &AckedInfo<'_>, mut avoid: impl FnMut(&mut RenoWindow, Bytes)) {
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.8
        //# When bytes in flight is smaller than the congestion window and
        //# sending is not pacing limited, the congestion window is underutilized.
        //# When this occurs, the congestion window SHOULD NOT be increased in either slow start
        //# or congestion avoidance.
        if acked.limited {
            return;
        }
        let divisor = if self.is_watched() { self.watch.divisor() } else { 1 };
        for packet in acked.packets {
            if self.in_recovery(packet.sent_at) {
                continue;
            }
            match self.ssthresh {
                Some(ssthresh) if self.cwnd >= ssthresh => avoid(self, packet.bytes),
                _ => self.cwnd += Bytes(packet.bytes.0 / divisor),
            }
        }
    }

    /// `share` (a finite factor) of one datagram for each window acknowledged, byte by byte: growth
    /// that waits for a whole window runs half a datagram behind, which costs 4 % of the goodput at
    /// a loss of 1 %. <https://www.rfc-editor.org/rfc/rfc9002#appendix-B.5>
    ///
    /// With a negative share the window shrinks, at most to its minimum, and the threshold goes
    /// along: it stays in avoidance.
    pub(super) fn grow_in_avoidance(&mut self, acked: Bytes, share: f64) {
        let cwnd = i128::from(self.cwnd.0.max(1));
        let whole = acked.0.saturating_mul(self.datagram_size.0);
        // Conversions from floating point saturate; not a number would become zero.
        let owed = if share == 1.0 { i128::from(whole) } else { (whole as f64 * share) as i128 };
        let growth = owed.saturating_add(i128::from(self.growth_remainder));
        self.growth_remainder = u64::try_from(growth.rem_euclid(cwnd)).unwrap_or(0);
        let datagrams = growth.div_euclid(cwnd);
        let bytes = Bytes(u64::try_from(datagrams.unsigned_abs()).unwrap_or(u64::MAX));
        if datagrams >= 0 {
            self.cwnd += bytes;
        } else {
            self.shrink_to(self.cwnd.saturating_sub(bytes));
        }
    }

    /// Raises the window to `least` unless it is larger.
    pub(super) fn raise_to(&mut self, least: Bytes) {
        self.cwnd = self.cwnd.max(least);
    }

    /// Reduces the window to `kept`, once per recovery period. True if it did.
    /// <https://www.rfc-editor.org/rfc/rfc9002#section-7.3.2>
    fn on_congestion(&mut self, now: Instant, sent_at: Instant, kept: Bytes) -> bool {
        if self.in_recovery(sent_at) {
            return false;
        }
        self.before_loss = None;
        self.recovery_start = Some(now);
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.3.2
        //# The congestion window MUST be set to the reduced value of the slow start threshold
        //# before exiting the recovery period.
        self.cwnd = kept.max(self.minimum);
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.3.1
        //# The sender MUST exit slow start and enter a recovery period when a packet is lost or
        //# when the ECN-CE count reported by its peer increases.
        self.ssthresh = Some(self.cwnd);
        self.growth_remainder = 0;
        true
    }

    /// Packets were lost; a congestion event leaves `kept` of the window. True if it was one.
    pub(super) fn on_lost(&mut self, lost: &LostInfo<'_>, kept: Bytes) -> bool {
        let before = BeforeLoss { lost_at: lost.now, cwnd: self.cwnd, ssthresh: self.ssthresh };
        let event = self.on_congestion(lost.now, lost.newest_sent_at, kept);
        if event {
            self.before_loss = Some(before);
        }
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.6.2
        //# When persistent congestion is declared, the sender's congestion
        //# window MUST be reduced to the minimum congestion window
        if lost.persistent {
            self.cwnd = self.minimum;
            self.recovery_start = None;
            self.watch.on_persistent_congestion();
        }
        event
    }

    /// The losses found at `since` and in the recovery period after it were none: the window is what
    /// it was before, unless it was reduced again. True if that was undone.
    ///
    /// As Linux does it: the window is not made smaller, and packets sent before count again.
    pub(super) fn undo(&mut self, since: Instant) -> bool {
        let Some(before) = self.before_loss.take_if(|before| before.lost_at == since) else {
            return false;
        };
        self.cwnd = self.cwnd.max(before.cwnd);
        self.ssthresh = before.ssthresh;
        self.recovery_start = None;
        true
    }

    fn resize(&mut self, size: Bytes) {
        self.datagram_size = size;
        self.minimum = size.saturating_mul(2);
        self.cwnd = self.cwnd.max(self.minimum);
    }

    /// Something else changed; a congestion event leaves `kept` of the window. True if it was one.
    pub(super) fn on_change(&mut self, change: PathChange, kept: Bytes) -> bool {
        match change {
            PathChange::EcnCongestion { sent_at, now, .. } => {
                self.on_congestion(now, sent_at, kept)
            }
            PathChange::DatagramSize(size) => {
                // https://www.rfc-editor.org/rfc/rfc9002#section-7.2
                //# If the maximum datagram size changes during the connection, the
                //# initial congestion window SHOULD be recalculated with the new size.
                if self.ssthresh.is_none() && self.datagram_size.0 > 0 {
                    let packets = self.cwnd.0 / self.datagram_size.0;
                    self.cwnd = self.cwnd.max(size.saturating_mul(packets));
                }
                self.resize(size);
                false
            }
            PathChange::PathMtu(size) => {
                self.resize(size);
                false
            }
            PathChange::ReturnRoute => {
                if self.is_watched() {
                    self.watch.forget_samples();
                }
                false
            }
            PathChange::SpuriousLoss { since, .. } => {
                self.undo(since);
                false
            }
            PathChange::Pto | PathChange::ApplicationLimited => false,
        }
    }

    pub(super) fn published(&self) -> Published {
        Published {
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            state: match self.ssthresh {
                Some(ssthresh) if self.cwnd >= ssthresh => "congestion avoidance",
                None if self.watch.divisor() > 1 => "conservative slow start",
                _ => "slow start",
            },
            ..Published::default()
        }
    }
}
