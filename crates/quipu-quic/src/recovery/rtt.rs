//! Round-trip time estimation, in place in the path's view.

use quipu_base::Duration;
use quipu_policy::PathView;

/// Timer granularity. <https://www.rfc-editor.org/rfc/rfc9002#section-6.1.2>
// https://www.rfc-editor.org/rfc/rfc9002#section-6.1.2
//# The RECOMMENDED value of the timer granularity (kGranularity) is 1 millisecond.
pub(crate) const GRANULARITY: Duration = Duration::from_millis(1);

/// Feeds one sample. `ack_delay` is what the peer reported, already capped by its
/// `max_ack_delay` where that applies. <https://www.rfc-editor.org/rfc/rfc9002#section-5.3>
pub(crate) fn take_rtt_sample(path: &mut PathView, latest: Duration, ack_delay: Duration) {
    path.latest_rtt = Some(latest);
    // https://www.rfc-editor.org/rfc/rfc9002#section-5.2
    //# min_rtt MUST be set to the latest_rtt on the first RTT sample. min_rtt MUST be set to the
    //# lesser of min_rtt and latest_rtt (Section 5.1) on all other samples.
    let min_rtt = path.min_rtt.map_or(latest, |min| min.min(latest));
    path.min_rtt = Some(min_rtt);
    let Some(srtt) = path.srtt else {
        path.srtt = Some(latest);
        path.rttvar = latest.divided_by(2);
        return;
    };
    // https://www.rfc-editor.org/rfc/rfc9002#section-5.3
    //# MUST NOT subtract the acknowledgment delay from the RTT sample if the resulting value is
    //# smaller than the min_rtt.
    let adjusted =
        if latest >= min_rtt + ack_delay { latest.saturating_sub(ack_delay) } else { latest };
    let deviation = srtt.abs_diff(adjusted);
    path.rttvar = path.rttvar.scaled(3, 4) + deviation.divided_by(4);
    path.srtt = Some(srtt.scaled(7, 8) + adjusted.divided_by(8));
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::config::RecoveryRules;
    use quipu_base::{Bytes, Instant, PathId, PerMille};
    use quipu_policy::{PathKey, PathState, PathStatus};

    pub(crate) fn view() -> PathView {
        PathView {
            key: PathKey { slot: 0, id: PathId(0) },
            state: PathState::Usable,
            status: PathStatus::Available,
            packets_sent: 0,
            last_sent_at: None,
            pto_count: 0,
            srtt: None,
            rttvar: RecoveryRules::default().initial_rtt.divided_by(2),
            min_rtt: None,
            latest_rtt: None,
            cwnd: Bytes(12_000),
            ssthresh: None,
            in_flight: Bytes::ZERO,
            release_at: Instant::ZERO,
            rate: None,
            limited: false,
            amplification_limited: false,
            blocked: false,
            loss: PerMille(0),
            payload: Bytes(1200),
        }
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_first_sample_is_taken_whole() {
        let mut path = view();
        take_rtt_sample(&mut path, ms(100), ms(20));
        assert_eq!(path.srtt, Some(ms(100)));
        assert_eq!(path.rttvar, ms(50));
        assert_eq!(path.min_rtt, Some(ms(100)));
    }

    #[test]
    fn the_reported_delay_is_taken_off_unless_that_goes_below_the_minimum() {
        let mut path = view();
        take_rtt_sample(&mut path, ms(100), ms(0));
        take_rtt_sample(&mut path, ms(180), ms(20));
        // 7/8 · 100 + 1/8 · 160
        assert_eq!(path.srtt, Some(Duration::from_micros(107_500)));
        // 3/4 · 50 + 1/4 · 60
        assert_eq!(path.rttvar, Duration::from_micros(52_500));
        let mut path = view();
        take_rtt_sample(&mut path, ms(100), ms(0));
        take_rtt_sample(&mut path, ms(110), ms(20));
        assert_eq!(path.srtt, Some(Duration::from_micros(101_250)));
    }
}
