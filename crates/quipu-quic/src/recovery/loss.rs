//! The time threshold of loss detection and the probe timeout of RFC 9002.

use quipu_base::Duration;
use quipu_policy::PathView;

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

    /// The same before anything was measured.
    pub(crate) fn first_probe_timeout(&self) -> Duration {
        let variation = self.initial_rtt.divided_by(2).saturating_mul(4).max(GRANULARITY);
        (self.initial_rtt + variation).max(self.least_probe_timeout)
    }

    /// The smoothed round-trip time, or what is assumed before there is one.
    pub(crate) fn rtt(&self, path: &PathView) -> Duration {
        path.srtt.unwrap_or(self.initial_rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rtt::tests::view;
    use super::*;

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
    fn other_rules_have_other_timeouts() {
        let gquic = RecoveryRules {
            initial_rtt: Duration::from_millis(100),
            least_probe_timeout: Duration::from_millis(200),
            packet_threshold: None,
            ..RecoveryRules::default()
        };
        let mut path = view();
        assert_eq!(gquic.loss_delay(&path), Duration::from_micros(112_500));
        path.srtt = Some(Duration::from_millis(40));
        path.rttvar = Duration::from_millis(10);
        assert_eq!(gquic.probe_timeout(&path, Duration::ZERO), Duration::from_millis(200));
        path.rttvar = Duration::from_millis(50);
        assert_eq!(gquic.probe_timeout(&path, Duration::ZERO), Duration::from_millis(240));
    }
}
