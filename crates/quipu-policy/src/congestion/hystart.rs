//! HyStart++: slow start that ends when round-trip times rise, before packets are lost.

use quipu_base::{Duration, Instant};

/// HyStart++ of one path, for the first slow start of a controller.
///
/// Round-trip times are compared round by round. Where they rise, the window goes on more slowly
/// (conservative slow start); unless they fall again within five rounds, slow start is over.
///
/// A round is told by times, as packet numbers do not come here: it lasts until a packet is
/// acknowledged that was sent after its start. The window of what one acknowledgement may add is not
/// limited (L is infinite), which presumes a paced sender.
///
/// Source: RFC 9406, section 4; <https://www.rfc-editor.org/rfc/rfc9406#section-4.2>.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    /// When the first packet of the present round was sent.
    round_sent_at: Option<Instant>,
    /// Least sample of the round before.
    last_min: Option<Duration>,
    /// Least sample of the present round.
    current_min: Option<Duration>,
    /// Samples of the present round.
    samples: u32,
    conservative: Option<Conservative>,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// The least round-trip time of the round that led here.
    baseline: Duration,
    /// Rounds completed, the one in which it began included.
    rounds: u32,
}

impl HyStart {
    // https://www.rfc-editor.org/rfc/rfc9406#section-4.3
    const LEAST_THRESHOLD: Duration = Duration::from_millis(4);
    const MOST_THRESHOLD: Duration = Duration::from_millis(16);
    const THRESHOLD_DIVISOR: u64 = 8;
    const ENOUGH_SAMPLES: u32 = 8;
    const CONSERVATIVE_DIVISOR: u64 = 4;
    const CONSERVATIVE_ROUNDS: u32 = 5;

    /// A packet left.
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.round_sent_at.get_or_insert(now);
    }

    /// What is acknowledged adds that part of itself to the window: 1, or a quarter.
    pub(super) fn divisor(&self) -> u64 {
        if self.conservative.is_some() { Self::CONSERVATIVE_DIVISOR } else { 1 }
    }

    /// An acknowledgement, after the window grew by it, of packets of which the newest was sent at
    /// `newest_sent_at`, with its round-trip time. True if slow start is over.
    pub(super) fn on_acked(&mut self, newest_sent_at: Instant, sample: Option<Duration>) -> bool {
        if self.round_sent_at.is_some_and(|start| newest_sent_at >= start) && self.end_round() {
            return true;
        }
        let Some(sample) = sample else { return false };
        let current = self.current_min.map_or(sample, |least| least.min(sample));
        self.current_min = Some(current);
        self.samples = self.samples.saturating_add(1);
        if self.samples >= Self::ENOUGH_SAMPLES {
            self.judge(current);
        }
        false
    }

    /// Samples until now no longer compare with those to come: the route changed.
    pub(super) fn forget_samples(&mut self) {
        *self = HyStart { round_sent_at: self.round_sent_at, ..HyStart::default() };
    }

    /// A round is complete. True if slow start is over.
    fn end_round(&mut self) -> bool {
        self.round_sent_at = None;
        self.last_min = self.current_min.take();
        self.samples = 0;
        self.conservative.as_mut().is_some_and(|conservative| {
            conservative.rounds += 1;
            conservative.rounds >= Self::CONSERVATIVE_ROUNDS
        })
    }

    fn judge(&mut self, current: Duration) {
        match (self.conservative, self.last_min) {
            (Some(Conservative { baseline, .. }), _) => {
                if current < baseline {
                    self.conservative = None;
                }
            }
            (None, Some(last)) => {
                let threshold = last
                    .divided_by(Self::THRESHOLD_DIVISOR)
                    .clamp(Self::LEAST_THRESHOLD, Self::MOST_THRESHOLD);
                if current >= last + threshold {
                    self.conservative = Some(Conservative { baseline: current, rounds: 0 });
                }
            }
            (None, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of ten samples of the same round-trip time in ms; each begins as the one before ends.
    /// Returns the divisor after each, and whether slow start was over then.
    fn rounds(hystart: &mut HyStart, from: u64, rtts: &[u64]) -> Vec<(u64, bool)> {
        let mut out = Vec::new();
        for (round, &rtt) in (from..).zip(rtts) {
            let sent_at = Instant::from_nanos(round * 1_000_000_000);
            hystart.on_sent(sent_at);
            let mut over = false;
            for _ in 0..10 {
                over |= hystart.on_acked(sent_at, Some(Duration::from_millis(rtt)));
            }
            out.push((hystart.divisor(), over));
        }
        out
    }

    #[test]
    fn a_rise_by_an_eighth_leads_to_conservative_slow_start() {
        // An eighth of 100 ms is 12.5 ms.
        let mut hystart = HyStart::default();
        let seen = rounds(&mut hystart, 0, &[100, 112, 125]);
        assert_eq!(seen, [(1, false), (1, false), (1, false)]);
        assert_eq!(rounds(&mut hystart, 3, &[141]), [(4, false)]);
    }

    #[test]
    fn the_threshold_lies_between_4_and_16_ms() {
        for (low, stays, leaves) in [(8, 11, 12), (400, 415, 416)] {
            assert_eq!(rounds(&mut HyStart::default(), 0, &[low, stays])[1].0, 1, "{low}");
            assert_eq!(rounds(&mut HyStart::default(), 0, &[low, leaves])[1].0, 4, "{low}");
        }
    }

    #[test]
    fn slow_start_is_over_after_five_conservative_rounds() {
        let seen = rounds(&mut HyStart::default(), 0, &[50, 90, 90, 90, 90, 90, 90]);
        let over: Vec<bool> = seen.iter().map(|round| round.1).collect();
        // The first ends as the next begins.
        assert_eq!(over, [false, false, false, false, false, false, true]);
    }

    #[test]
    fn it_goes_on_as_before_when_the_rise_was_passing() {
        let seen = rounds(&mut HyStart::default(), 0, &[50, 90, 90, 60, 60, 60, 60, 60, 60]);
        let divisors: Vec<u64> = seen.iter().map(|round| round.0).collect();
        assert_eq!(divisors, [1, 4, 4, 1, 1, 1, 1, 1, 1]);
        assert!(seen.iter().all(|round| !round.1));
    }

    #[test]
    fn fewer_than_eight_samples_show_nothing() {
        let mut hystart = HyStart::default();
        rounds(&mut hystart, 0, &[50]);
        let sent_at = Instant::from_nanos(1_000_000_000);
        hystart.on_sent(sent_at);
        for sample in 1..=8 {
            assert_eq!(hystart.divisor(), 1, "{sample}");
            hystart.on_acked(sent_at, Some(Duration::from_millis(90)));
        }
        assert_eq!(hystart.divisor(), 4);
    }

    #[test]
    fn samples_of_another_route_are_not_compared() {
        let mut hystart = HyStart::default();
        rounds(&mut hystart, 0, &[50]);
        hystart.forget_samples();
        assert_eq!(rounds(&mut hystart, 1, &[90])[0].0, 1);
    }

    #[test]
    fn absurd_samples_end_in_no_overflow() {
        let mut hystart = HyStart::default();
        rounds(&mut hystart, 0, &[0, u64::MAX, u64::MAX, 0, u64::MAX]);
        assert_eq!(hystart.divisor(), 4);
    }
}
