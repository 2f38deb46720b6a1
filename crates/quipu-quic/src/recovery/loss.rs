//! Loss detection thresholds and probe timeouts of RFC 9002.

use quipu_base::{Duration, Instant, PacketNumber};
use quipu_policy::PathView;

use super::SentRecord;
use super::rtt::GRANULARITY;
use crate::config::RecoveryRules;

impl RecoveryRules {
    /// How long after a later packet's acknowledgement a packet may still come.
    /// <https://www.rfc-editor.org/rfc/rfc9002#section-6.1.2>
    pub(crate) fn loss_delay(&self, path: &PathView) -> Duration {
        let srtt = self.rtt(path);
        let latest = path.latest_rtt.unwrap_or(srtt);
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.1.2
        //# To avoid declaring packets as lost too early, this time threshold MUST be set to at least
        //# the local timer granularity, as indicated by the kGranularity constant. The RECOMMENDED
        //# time threshold (kTimeThreshold), expressed as an RTT multiplier, is 9/8.
        srtt.max(latest).scaled(9, 8).max(GRANULARITY)
    }

    /// The probe timeout without backoff. `max_ack_delay` is the peer's, zero before the handshake
    /// is confirmed. <https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1>
    pub(crate) fn probe_timeout(&self, path: &PathView, max_ack_delay: Duration) -> Duration {
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
        //# The PTO period MUST be at least kGranularity to avoid the timer expiring immediately.
        let variation = path.rttvar.saturating_mul(4).max(GRANULARITY);
        (self.rtt(path) + variation + max_ack_delay).max(self.least_probe_timeout)
    }

    /// The smoothed round-trip time, or what is assumed before there is one.
    pub(crate) fn rtt(&self, path: &PathView) -> Duration {
        path.srtt.unwrap_or(self.initial_rtt)
    }

    /// Whether a packet is lost of which a later one, `largest`, was acknowledged, however soon.
    pub(crate) fn is_overtaken(&self, pn: PacketNumber, largest: PacketNumber) -> bool {
        self.packet_threshold.is_some_and(|threshold| largest.0 >= pn.0.saturating_add(threshold))
    }
}

/// Whether these lost packets, in packet-number order, show persistent congestion: two
/// ack-eliciting ones further apart than three probe timeouts, with nothing acknowledged between.
/// Packets that elicit no acknowledgement and lie between do not count.
/// <https://www.rfc-editor.org/rfc/rfc9002#section-7.6>
pub(crate) fn is_persistent_congestion(
    lost: &[SentRecord],
    first_sample_at: Option<Instant>,
    probe_timeout: Duration,
) -> bool {
    // https://www.rfc-editor.org/rfc/rfc9002#section-7.6.2
    //# The persistent congestion period SHOULD NOT start until there is at
    //# least one RTT sample.
    let Some(first_sample_at) = first_sample_at else { return false };
    // https://www.rfc-editor.org/rfc/rfc9002#section-7.6.1
    //# The RECOMMENDED value for kPersistentCongestionThreshold is 3, which results in behavior
    //# that is approximately equivalent to a TCP sender declaring an RTO after two TLPs.
    let period = probe_timeout.saturating_mul(3);
    let mut run: Option<(u64, Instant)> = None;
    // https://www.rfc-editor.org/rfc/rfc9002#section-7.6.2
    //# These two packets MUST be ack-eliciting, since a receiver is required to acknowledge only
    //# ack-eliciting packets within its maximum acknowledgment delay; see Section 13.2 of
    //# [QUIC-TRANSPORT].
    for record in lost.iter().filter(|record| record.ack_eliciting) {
        if record.sent_at < first_sample_at {
            continue;
        }
        run = match run {
            Some((last, start)) if record.eliciting_index == last + 1 => {
                if record.sent_at - start > period {
                    return true;
                }
                Some((record.eliciting_index, start))
            }
            _ => Some((record.eliciting_index, record.sent_at)),
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::rtt::tests::view;
    use super::*;
    use quipu_base::PacketNumber;

    /// Lost packets as (index among the ack-eliciting, milliseconds).
    fn lost(packets: &[(u64, u64)]) -> Vec<SentRecord> {
        let record = |&(index, ms): &(u64, u64)| {
            // Packets without content lie between: numbers have gaps.
            let sent_at = Instant::from_nanos(ms * 1_000_000);
            let mut record = SentRecord::new(PacketNumber(3 * index), sent_at);
            record.ack_eliciting = true;
            record.eliciting_index = index;
            record
        };
        packets.iter().map(record).collect()
    }

    #[test]
    fn timeouts_follow_the_estimate() {
        let rules = RecoveryRules::default();
        let mut path = view();
        let before_samples = rules.probe_timeout(&path, Duration::ZERO);
        assert_eq!(before_samples, rules.initial_rtt.saturating_mul(3));
        path.srtt = Some(Duration::from_millis(40));
        path.latest_rtt = Some(Duration::from_millis(80));
        path.rttvar = Duration::from_millis(10);
        assert_eq!(
            rules.probe_timeout(&path, Duration::from_millis(25)),
            Duration::from_millis(105)
        );
        assert_eq!(rules.loss_delay(&path), Duration::from_millis(90));
    }

    #[test]
    fn other_rules_have_other_timeouts_and_no_packet_threshold() {
        let gquic = RecoveryRules {
            initial_rtt: Duration::from_millis(100),
            least_probe_timeout: Duration::from_millis(200),
            packet_threshold: None,
        };
        let mut path = view();
        assert_eq!(gquic.loss_delay(&path), Duration::from_micros(112_500));
        path.srtt = Some(Duration::from_millis(40));
        path.rttvar = Duration::from_millis(10);
        assert_eq!(gquic.probe_timeout(&path, Duration::ZERO), Duration::from_millis(200));
        path.rttvar = Duration::from_millis(50);
        assert_eq!(gquic.probe_timeout(&path, Duration::ZERO), Duration::from_millis(240));
        let overtaken = |rules: &RecoveryRules| {
            rules.is_overtaken(PacketNumber(7), PacketNumber(10))
                && !rules.is_overtaken(PacketNumber(8), PacketNumber(10))
        };
        assert!(overtaken(&RecoveryRules::default()));
        assert!(!gquic.is_overtaken(PacketNumber(7), PacketNumber(1_000)));
    }

    #[test]
    fn persistent_congestion_needs_an_unbroken_row_longer_than_three_timeouts() {
        let mut path = view();
        path.srtt = Some(Duration::from_millis(40));
        path.rttvar = Duration::from_millis(10);
        let zero = Some(Instant::ZERO);
        let check = |packets: &[(u64, u64)], first| {
            let timeout = RecoveryRules::default().probe_timeout(&path, Duration::ZERO);
            is_persistent_congestion(&lost(packets), first, timeout)
        };
        assert!(check(&[(1, 0), (2, 100), (3, 250)], zero));
        assert!(!check(&[(1, 0), (2, 100), (4, 250)], zero));
        assert!(!check(&[(1, 0), (2, 240)], zero));
        assert!(!check(&[(1, 0), (2, 100), (3, 250)], None));
    }
}
