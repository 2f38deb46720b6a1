//! How fast a link sends: first in, first out, at a rate that may change at set times.

use quipu_base::{Bytes, Duration, Instant, Rate};

use crate::config::invalid;
use crate::timeline::Cursor;
use crate::{AtEnd, InvalidConfig, Timeline};

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

/// The rates of a link over time: `rate`, and then as `steps` say, which come in order of time.
/// `None`: no limit.
pub(crate) fn timeline(rate: Option<Rate>, steps: &[RateStep]) -> Option<Timeline<Rate>> {
    let changes = steps.iter().map(|step| (step.at - Instant::ZERO, step.rate));
    rate.map(|rate| Timeline::of_steps(rate, changes))
}

/// Checks that `rates` let what waits leave some time, or end.
pub(crate) fn validate_rates(rates: &Timeline<Rate>) -> Result<(), InvalidConfig> {
    let moves = match rates.play().at_end {
        AtEnd::Loop => rates.values().any(|(_, rate)| rate > Rate::ZERO),
        AtEnd::Hold => rates.values().last().is_some_and(|(_, rate)| rate > Rate::ZERO),
        AtEnd::Stop => true,
    };
    if moves {
        return Ok(());
    }
    let expected = "more than zero at the end of a recording that holds; let it loop or stop";
    Err(invalid("rates", Rate::ZERO, expected))
}

/// What one round of `rates` moves, in bits times nanoseconds per second.
pub(crate) fn work_of_round(rates: &Timeline<Rate>) -> u128 {
    let ends = rates.values().skip(1).map(|(time, _)| time).chain([rates.length()]);
    // Times add up to less than 2^64 and a rate is below 2^64, so that the sum is below 2^128.
    rates
        .values()
        .zip(ends)
        .fold(0, |sum, ((from, rate), until)| sum + work(rate, until.saturating_sub(from)))
}

/// What `rate` moves in `time`, in bits times nanoseconds per second.
pub(crate) fn work(rate: Rate, time: Duration) -> u128 {
    u128::from(rate.bits_per_sec()) * u128::from(time.as_nanos())
}

/// The mean of one round, rounded down.
pub(crate) fn mean_rate(rates: &Timeline<Rate>) -> Rate {
    let mean = work_of_round(rates) / u128::from(rates.length().as_nanos().max(1));
    Rate::from_bits_per_sec(u64::try_from(mean).unwrap_or(u64::MAX))
}

/// Sends one datagram after the other.
///
/// The fraction of a nanosecond at which a datagram ends is kept for the next one, so that a
/// busy link moves exactly its rate; what is told is rounded up. All changes of the rate are known
/// from the start and datagrams leave in order, so the end of a datagram is known when it is handed
/// over.
#[derive(Debug)]
pub(crate) struct Transmitter {
    /// At `free_at`, unless changes up to that instant are still to be taken. `None`: no limit.
    rates: Option<Cursor<Rate>>,
    /// What a round moves, if rounds follow one another.
    work_of_round: Option<u128>,
    /// When the last datagram's last bit has left, rounded down.
    free_at: Instant,
    /// The rest of it, in parts of `1 / rate` nanoseconds; below the rate.
    fraction: u64,
    /// Nothing leaves later.
    ends_at: Instant,
}

impl Transmitter {
    /// Sends at `rates`; `None`: without a limit.
    pub(crate) fn new(rates: Option<&Timeline<Rate>>) -> Self {
        let loops = rates.filter(|rates| rates.play().at_end == AtEnd::Loop);
        Transmitter {
            rates: rates.map(Cursor::new),
            work_of_round: loops.map(work_of_round),
            free_at: Instant::ZERO,
            fraction: 0,
            ends_at: rates.and_then(Timeline::ends_at).unwrap_or(Instant::FAR_FUTURE),
        }
    }

    /// When the last bit of `bytes` leaves that are handed over at `now`;
    /// [`Instant::FAR_FUTURE`] if it never does.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant, bytes: Bytes) -> Instant {
        let Some(rates) = &mut self.rates else { return now };
        if self.free_at < now {
            self.free_at = now;
            self.fraction = 0;
            rates.seek(now);
        }
        let rate = rates.value().bits_per_sec();
        let before_next = (rates.next_at() - self.free_at).as_nanos();
        let narrow = bytes.0.checked_mul(NANOS_TIMES_BITS);
        match narrow.and_then(|work| work.checked_add(self.fraction)) {
            Some(work) if rate > 0 && work / rate < before_next => {
                self.end(work / rate, work % rate)
            }
            _ => self.send_over_changes(bytes),
        }
    }

    /// When what was handed over so far has left, rounded up.
    pub(crate) fn free_at(&self) -> Instant {
        self.free_at + Duration::from_nanos(u64::from(self.fraction != 0))
    }

    /// As [`Self::send`], over any changes and with any amount, to a transmitter that is not behind.
    #[cold]
    fn send_over_changes(&mut self, bytes: Bytes) -> Instant {
        let Some(rates) = &mut self.rates else { return self.free_at };
        // Counted from `free_at`, in what one bit per second does in a nanosecond.
        let mut work =
            u128::from(bytes.0) * u128::from(NANOS_TIMES_BITS) + u128::from(self.fraction);
        if let Some(of_round) = self.work_of_round.filter(|of_round| *of_round > 0) {
            // A round moves the same from wherever it begins.
            let rounds = u64::try_from(work.saturating_sub(1) / of_round).unwrap_or(u64::MAX);
            if rounds > 0 {
                work -= u128::from(rounds) * of_round;
                self.free_at += rates.timeline().length().saturating_mul(rounds);
                rates.skip_rounds(rounds);
            }
        }
        while rates.next_at() != Instant::FAR_FUTURE {
            // A change that has passed is as if at `free_at`: then the fraction is zero, as the last
            // datagram would have gone over the change.
            let done = self::work(rates.value(), rates.next_at() - self.free_at);
            if work <= done {
                break;
            }
            work -= done;
            self.free_at = self.free_at.max(rates.next_at());
            rates.advance();
        }
        let rate = u128::from(rates.value().bits_per_sec());
        if rate == 0 {
            // Of a recording that stops; no other ends so.
            return self.end(u64::MAX, 0);
        }
        let nanos = u64::try_from(work / rate).unwrap_or(u64::MAX);
        // A remainder is below the rate, which is a u64.
        self.end(nanos, (work % rate) as u64)
    }

    /// The end of a datagram that ends `nanos` and a fraction after `free_at`, rounded up.
    #[inline]
    fn end(&mut self, nanos: u64, fraction: u64) -> Instant {
        self.free_at += Duration::from_nanos(nanos);
        self.fraction = fraction;
        let end = self.free_at + Duration::from_nanos(u64::from(fraction != 0));
        if end > self.ends_at { Instant::FAR_FUTURE } else { end }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stepped(rate: Option<Rate>, steps: &[RateStep]) -> Transmitter {
        Transmitter::new(timeline(rate, steps).as_ref())
    }

    fn constant(rate: Option<Rate>) -> Transmitter {
        stepped(rate, &[])
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
            let mut sender = stepped(Some(Rate::from_bits_per_sec(1)), steps);
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
        let mut sender = stepped(Some(mbit(2)), &steps);
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
        let mut sender = stepped(Some(kbit(8)), &steps);
        assert_eq!(sender.send(Instant::ZERO, Bytes(2_000)), Instant::from_nanos(1_500_000_000));
        // A link that was idle at the step is at the new rate.
        let mut sender = stepped(Some(kbit(8)), &steps);
        assert_eq!(sender.send(seconds(1), Bytes(2_000)), seconds(2));
    }

    /// 2 Mbit/s for 10 s, nothing for 10 s.
    fn on_and_off(from: u64, at_end: AtEnd) -> Transmitter {
        let (on, off) = (Rate::from_mbit_per_sec(2), (Duration::from_secs(10), Rate::ZERO));
        let rates = Timeline::recorded(on, [off], Duration::from_secs(20));
        let play = crate::Play { from: Duration::from_secs(from), at_end };
        Transmitter::new(Some(&rates.played(play)))
    }

    #[test]
    fn a_recording_goes_round_and_begins_where_it_is_told() {
        // 2,000 datagrams of 1,250 B in the ten seconds of each round that have a rate.
        let mut sender = on_and_off(5, AtEnd::Loop);
        let ends: Vec<Instant> =
            (0..5_000).map(|_| sender.send(Instant::ZERO, Bytes(1_250))).collect();
        let sent_by = |at| ends.iter().filter(|end| **end <= at).count();
        let sent = [5, 15, 16, 25, 35, 45, 55].map(|at| sent_by(seconds(at)));
        assert_eq!(sent, [1_000, 1_000, 1_200, 3_000, 3_000, 5_000, 5_000]);
        // An idle one has followed the rounds, too.
        let mut sender = on_and_off(5, AtEnd::Loop);
        assert_eq!(sender.send(seconds(86), Bytes(250_000)), seconds(96));
    }

    #[test]
    fn huge_amounts_take_rounds_at_once() {
        let mut sender = on_and_off(0, AtEnd::Loop);
        // 2.5 MB a round, and the second half of a round's rate.
        let bytes = Bytes(2_500_000 * 1_000_000_000 + 1_250_000);
        assert_eq!(sender.send(Instant::ZERO, bytes), seconds(20_000_000_005));
        assert_eq!(sender.send(Instant::ZERO, Bytes::MAX), Instant::FAR_FUTURE);
    }

    #[test]
    fn after_the_end_nothing_leaves() {
        let mut sender = on_and_off(5, AtEnd::Stop);
        assert_eq!(sender.send(Instant::ZERO, Bytes(1_250_000)), seconds(5));
        assert_eq!(sender.send(Instant::ZERO, Bytes(1)), Instant::FAR_FUTURE);
        assert_eq!(sender.send(seconds(30), Bytes(1)), Instant::FAR_FUTURE);
    }

    #[test]
    fn rates_that_end_at_nothing_may_loop_or_stop() {
        let rates = Timeline::recorded(
            Rate::from_mbit_per_sec(2),
            [(Duration::from_secs(10), Rate::ZERO)],
            Duration::from_secs(20),
        );
        let checked = |at_end| {
            let play = crate::Play { from: Duration::ZERO, at_end };
            validate_rates(&rates.clone().played(play)).map_err(|error| error.field)
        };
        assert_eq!(
            [AtEnd::Loop, AtEnd::Stop, AtEnd::Hold].map(checked),
            [Ok(()), Ok(()), Err("rates")]
        );
        let silent = Timeline::recorded(Rate::ZERO, [], Duration::from_secs(1));
        assert!(validate_rates(&silent).is_err());
        assert_eq!(mean_rate(&rates), Rate::from_mbit_per_sec(1));
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
            let mut sender = stepped(rate_at_first, &config);
            let ends: Vec<u64> = offers
                .iter()
                .map(|&(at, bytes)| sender.send(Instant::from_nanos(at), Bytes(bytes)).as_nanos())
                .collect();
            prop_assert_eq!(ends, naive(rate, &steps, &offers));
        }
    }
}
