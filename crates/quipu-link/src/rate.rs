//! How fast a link sends: first in, first out, at a rate that may change at set times.

use quipu_base::{Bytes, Duration, Instant, Rate};

use crate::InvalidConfig;
use crate::config::invalid;

const NANOS_TIMES_BITS: u64 = 8 * 1_000_000_000;

/// From an instant on a link sends at another rate: what is being sent then goes on at that rate
/// with its remaining bits, and what waits leaves at that rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStep {
    /// First instant of the rate.
    pub at: Instant,
    /// Bits per second. Zero: nothing moves until the next step.
    pub rate: Rate,
}

/// Checks that `steps` follow one another and lead away from a rate, and that the last one lets
/// what waits leave some time.
pub(crate) fn validate(rate: Option<Rate>, steps: &[RateStep]) -> Result<(), InvalidConfig> {
    let Some(last) = steps.last() else { return Ok(()) };
    if rate.is_none() {
        return Err(invalid("rate", "none", "a rate from which the steps lead away"));
    }
    let mut pairs = steps.iter().zip(steps.iter().skip(1));
    if let Some((_, late)) = pairs.find(|(step, next)| next.at <= step.at) {
        return Err(invalid("steps.at", late.at, "later than the step before"));
    }
    if last.rate == Rate::ZERO {
        let expected = "more than zero in the last step; an outage stops a link for good";
        return Err(invalid("steps.rate", Rate::ZERO, expected));
    }
    Ok(())
}

/// Sends one datagram after the other.
///
/// The fraction of a nanosecond at which a datagram ends is kept for the next one, so that a
/// busy link moves exactly its rate; what is told is rounded up. All steps are known from the
/// start and datagrams leave in order, so the end of a datagram is known when it is handed over.
#[derive(Debug)]
pub(crate) struct Transmitter {
    /// At `free_at`, unless steps up to that instant are still to be taken. `None`: no limit.
    rate: Option<Rate>,
    /// The steps that are not taken yet, the next one last.
    steps: Vec<RateStep>,
    /// When the last datagram's last bit has left, rounded down.
    free_at: Instant,
    /// The rest of it, in parts of `1 / rate` nanoseconds; below `rate`.
    fraction: u64,
}

impl Transmitter {
    /// Sends at `rate`, and then as `steps` say, which come in order of time.
    pub(crate) fn new(rate: Option<Rate>, steps: &[RateStep]) -> Self {
        let steps = steps.iter().rev().copied().collect();
        Transmitter { rate, steps, free_at: Instant::ZERO, fraction: 0 }
    }

    /// When the last bit of `bytes` leaves that are handed over at `now`.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant, bytes: Bytes) -> Instant {
        let Some(rate) = self.rate else { return now };
        if self.free_at < now {
            self.free_at = now;
            self.fraction = 0;
        }
        let rate = rate.bits_per_sec().max(1);
        let narrow = bytes.0.checked_mul(NANOS_TIMES_BITS);
        match narrow.and_then(|work| work.checked_add(self.fraction)) {
            Some(work) if self.steps.is_empty() => self.end(work / rate, work % rate),
            _ => self.send_over_steps(bytes),
        }
    }

    /// As [`Self::send`], over any steps and with any amount, to a transmitter that is not behind.
    #[cold]
    fn send_over_steps(&mut self, bytes: Bytes) -> Instant {
        // Counted from `free_at`, in what one bit per second does in a nanosecond.
        let mut work =
            u128::from(bytes.0) * u128::from(NANOS_TIMES_BITS) + u128::from(self.fraction);
        while let Some(step) = self.steps.last() {
            let rate = self.rate.map_or(0, Rate::bits_per_sec);
            // Both are below 2^64. A step that has passed is as if at `free_at`: then the fraction
            // is zero, as the last datagram would have gone over the step.
            let done = u128::from((step.at - self.free_at).as_nanos()) * u128::from(rate);
            if work <= done {
                break;
            }
            work -= done;
            self.free_at = self.free_at.max(step.at);
            self.rate = Some(step.rate);
            self.steps.pop();
        }
        let rate = u128::from(self.rate.map_or(1, Rate::bits_per_sec).max(1));
        let nanos = u64::try_from(work / rate).unwrap_or(u64::MAX);
        // A remainder is below the rate, which is a u64.
        self.end(nanos, (work % rate) as u64)
    }

    /// The end of a datagram that ends `nanos` and a fraction after `free_at`, rounded up.
    #[inline]
    fn end(&mut self, nanos: u64, fraction: u64) -> Instant {
        self.free_at += Duration::from_nanos(nanos);
        self.fraction = fraction;
        self.free_at + Duration::from_nanos(u64::from(fraction != 0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn constant(rate: Option<Rate>) -> Transmitter {
        Transmitter::new(rate, &[])
    }

    fn seconds(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_busy_link_moves_exactly_its_rate() {
        // 1,378 B at 55 Mbit/s take 200,436.36… ns: 1,000 of them end at 200,436,363.63… ns.
        let rate = Rate::from_mbit_per_sec(55);
        let mut sender = constant(Some(rate));
        assert_eq!(sender.send(Instant::ZERO, Bytes(1_378)).as_nanos(), 200_437);
        let last = (1..1_000).map(|_| sender.send(Instant::ZERO, Bytes(1_378))).last();
        assert_eq!(last, Some(Instant::ZERO + rate.time_for(Bytes(1_378_000))));
    }

    #[test]
    fn an_idle_link_starts_at_once() {
        let mut sender = constant(Some(Rate::from_bits_per_sec(8_000)));
        assert_eq!(sender.send(Instant::ZERO, Bytes(1)).as_nanos(), 1_000_000);
        assert_eq!(sender.send(Instant::from_nanos(7_000_000), Bytes(1)).as_nanos(), 8_000_000);
    }

    #[test]
    fn huge_amounts_saturate() {
        let steps = [RateStep { at: seconds(1), rate: Rate::from_bits_per_sec(2) }];
        for steps in [&[][..], &steps] {
            let mut sender = Transmitter::new(Some(Rate::from_bits_per_sec(1)), steps);
            assert_eq!(sender.send(Instant::ZERO, Bytes::MAX), Instant::FAR_FUTURE);
            assert_eq!(sender.send(Instant::ZERO, Bytes::MAX), Instant::FAR_FUTURE);
        }
    }

    #[test]
    fn without_a_rate_all_leaves_at_once() {
        let now = Instant::from_nanos(3);
        assert_eq!(constant(None).send(now, Bytes::MAX), now);
    }

    #[test]
    fn a_busy_link_moves_what_its_steps_add_up_to() {
        let mbit = Rate::from_mbit_per_sec;
        let steps = [(20, 4), (30, 0), (40, 1)]
            .map(|(at, rate)| RateStep { at: seconds(at), rate: mbit(rate) });
        let mut sender = Transmitter::new(Some(mbit(2)), &steps);
        // 1,250 B each: 4,000 in the first 20 s, 4,000 in the next 10 s, then 100 in a second.
        let ends: Vec<Instant> =
            (0..9_000).map(|_| sender.send(Instant::ZERO, Bytes(1_250))).collect();
        let sent_by = |at| ends.iter().filter(|end| **end <= at).count();
        let sent = [10, 20, 21, 30, 40, 41, 50].map(|at| sent_by(seconds(at)));
        assert_eq!(sent, [2_000, 4_000, 4_400, 8_000, 8_000, 8_100, 9_000]);
        assert_eq!(ends[8_000], seconds(40) + Duration::from_millis(10));
    }

    #[test]
    fn a_datagram_goes_on_at_the_rate_of_the_step() {
        let kbit = |kbit: u64| Rate::from_bits_per_sec(kbit * 1_000);
        let steps = [RateStep { at: seconds(1), rate: kbit(16) }];
        // Half of its 2,000 B go in the first second, the other half in half a second.
        let mut sender = Transmitter::new(Some(kbit(8)), &steps);
        assert_eq!(sender.send(Instant::ZERO, Bytes(2_000)), Instant::from_nanos(1_500_000_000));
        // A link that was idle at the step is at the new rate.
        let mut sender = Transmitter::new(Some(kbit(8)), &steps);
        assert_eq!(sender.send(seconds(1), Bytes(2_000)), seconds(2));
    }

    #[test]
    fn steps_that_do_not_follow_one_another_are_refused() {
        let step = |at, bits| RateStep { at: seconds(at), rate: Rate::from_bits_per_sec(bits) };
        let rate = Some(Rate::from_bits_per_sec(1));
        let field = |rate, steps: &[RateStep]| validate(rate, steps).map_err(|error| error.field);
        assert_eq!(field(rate, &[step(1, 5), step(2, 0), step(3, 5)]), Ok(()));
        assert_eq!(field(rate, &[step(1, 5), step(1, 6)]), Err("steps.at"));
        assert_eq!(field(rate, &[step(2, 5), step(1, 6)]), Err("steps.at"));
        assert_eq!(field(rate, &[step(1, 5), step(2, 0)]), Err("steps.rate"));
        assert_eq!(field(None, &[step(1, 5)]), Err("rate"));
        assert_eq!(field(None, &[]), Ok(()));
    }

    /// Ends of datagrams as one would find them by looking at each nanosecond, in which as many
    /// parts of bits move as the rate says.
    fn naive(rate: u64, steps: &[(u64, u64)], offers: &[(u64, u64)]) -> Vec<u64> {
        let mut ends = Vec::new();
        let mut waiting = std::collections::VecDeque::new();
        let (mut offers, mut rate, mut steps) = (offers.iter().peekable(), rate, steps.iter());
        let mut next_step = steps.next();
        for nano in 0.. {
            while let Some((_, bytes)) = offers.next_if(|(at, _)| *at == nano) {
                waiting.push_back(bytes * NANOS_TIMES_BITS);
            }
            while let Some((_, to)) = next_step.take_if(|(at, _)| *at == nano) {
                (rate, next_step) = (*to, steps.next());
            }
            let mut room = rate;
            while let Some(work) = waiting.front_mut() {
                let done = room.min(*work);
                (room, *work) = (room - done, *work - done);
                if *work > 0 {
                    break;
                }
                waiting.pop_front();
                ends.push(nano + 1);
            }
            if waiting.is_empty() && offers.peek().is_none() {
                break;
            }
        }
        ends
    }

    proptest! {
        #[test]
        fn datagrams_end_as_if_each_nanosecond_were_counted(
            rate in prop_oneof![Just(0u64), 500_000_000u64..20_000_000_000],
            steps in proptest::collection::vec(
                (1u64..3_000, prop_oneof![Just(0u64), 500_000_000u64..20_000_000_000]), 0..8),
            last_rate in 500_000_000u64..20_000_000_000,
            offers in proptest::collection::vec((0u64..400, 1u64..200), 1..30),
        ) {
            let mut at = 0;
            let mut steps: Vec<(u64, u64)> = steps
                .into_iter()
                .map(|(wait, rate)| {
                    at += wait;
                    (at, rate)
                })
                .collect();
            steps.push((at + 1, last_rate));
            let mut at = 0;
            let offers: Vec<(u64, u64)> = offers
                .into_iter()
                .map(|(wait, bytes)| {
                    at += wait;
                    (at, bytes)
                })
                .collect();
            let config: Vec<RateStep> = steps
                .iter()
                .map(|&(at, rate)| RateStep {
                    at: Instant::from_nanos(at),
                    rate: Rate::from_bits_per_sec(rate),
                })
                .collect();
            let rate_at_first = Some(Rate::from_bits_per_sec(rate));
            prop_assert_eq!(validate(rate_at_first, &config), Ok(()));
            let mut sender = Transmitter::new(rate_at_first, &config);
            let ends: Vec<u64> = offers
                .iter()
                .map(|&(at, bytes)| sender.send(Instant::from_nanos(at), Bytes(bytes)).as_nanos())
                .collect();
            prop_assert_eq!(ends, naive(rate, &steps, &offers));
        }
    }
}
