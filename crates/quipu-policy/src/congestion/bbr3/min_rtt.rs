//! The least round-trip time, and when it is due to be looked for.

use quipu_base::{Duration, Instant};

/// How long a least round-trip time counts.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-2.16.1>
const WINDOW: Duration = Duration::from_secs(10);
/// Time from one ProbeRTT, or from a lower sample, to the next ProbeRTT.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-2.16.2>
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// The least round-trip time of 10 s, which is renewed by the least of 5 s.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.3.4.3>
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    least: Option<Sample>,
    /// The least one since it was looked for.
    recent: Option<Sample>,
    expired: bool,
    /// True from a change of the route until a sample of the new one.
    void: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    rtt: Duration,
    at: Instant,
}

impl MinRtt {
    /// The estimate; `None` before the first sample.
    pub(super) fn get(&self) -> Option<Duration> {
        self.least.map(|least| least.rtt)
    }

    /// True if at the last acknowledgement no lower sample had come for so long that one is due.
    pub(super) fn is_expired(&self) -> bool {
        self.expired
    }

    /// An acknowledgement came, with a sample if there is one.
    pub(super) fn on_acked(&mut self, now: Instant, rtt: Option<Duration>) {
        let new = rtt.map(|rtt| Sample { rtt, at: now });
        if self.void && new.is_some() {
            *self = MinRtt { least: new, recent: new, expired: false, void: false };
            return;
        }
        self.expired = self.recent.is_some_and(|recent| now > recent.at + PROBE_INTERVAL);
        if let Some(new) = new
            && (self.expired || self.recent.is_none_or(|recent| new.rtt < recent.rtt))
        {
            self.recent = Some(new);
        }
        let Some(recent) = self.recent else { return };
        if self.least.is_none_or(|least| recent.rtt < least.rtt || now > least.at + WINDOW) {
            self.least = Some(recent);
        }
    }

    /// The next ProbeRTT is due a whole interval from now.
    pub(super) fn postpone(&mut self, now: Instant) {
        if let Some(recent) = &mut self.recent {
            recent.at = now;
        }
    }

    /// The route changed: the next sample replaces what is known, also if it is greater.
    pub(super) fn forget(&mut self) {
        self.void = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The estimate after one sample per 100 ms, and whether one was due in between.
    fn feed(min_rtt: &mut MinRtt, from_ms: u64, to_ms: u64, rtt_ms: u64) -> (Duration, bool) {
        let mut expired = false;
        for at in (from_ms..to_ms).step_by(100) {
            min_rtt.on_acked(Instant::ZERO + ms(at), Some(ms(rtt_ms)));
            expired |= min_rtt.is_expired();
        }
        (min_rtt.get().unwrap(), expired)
    }

    #[test]
    fn a_lower_sample_is_due_after_5_s_and_the_estimate_lasts_10_s() {
        let mut min_rtt = MinRtt::default();
        assert_eq!(feed(&mut min_rtt, 0, 100, 40), (ms(40), false));
        assert_eq!(feed(&mut min_rtt, 100, 5_100, 60), (ms(40), false));
        // Due; the sample then begins the next interval.
        assert_eq!(feed(&mut min_rtt, 5_100, 5_200, 60), (ms(40), true));
        assert_eq!(feed(&mut min_rtt, 5_200, 10_100, 70), (ms(40), false));
        assert_eq!(feed(&mut min_rtt, 10_100, 10_200, 70), (ms(60), false));
    }

    #[test]
    fn an_equal_sample_renews_nothing() {
        let mut min_rtt = MinRtt::default();
        assert!(!feed(&mut min_rtt, 0, 5_001, 40).1);
        assert!(feed(&mut min_rtt, 5_100, 5_200, 40).1);
    }

    #[test]
    fn a_new_route_voids_the_estimate_once_it_has_a_sample() {
        let mut min_rtt = MinRtt::default();
        feed(&mut min_rtt, 0, 100, 40);
        min_rtt.forget();
        min_rtt.on_acked(Instant::ZERO + ms(100), None);
        assert_eq!(min_rtt.get(), Some(ms(40)));
        assert_eq!(feed(&mut min_rtt, 200, 300, 90), (ms(90), false));
        assert_eq!(feed(&mut min_rtt, 300, 400, 95), (ms(90), false));
    }

    #[test]
    fn absurd_samples_end_in_no_overflow() {
        let mut min_rtt = MinRtt::default();
        min_rtt.on_acked(Instant::FAR_FUTURE, Some(Duration::MAX));
        min_rtt.on_acked(Instant::ZERO, Some(Duration::ZERO));
        assert_eq!(min_rtt.get(), Some(Duration::ZERO));
    }
}
