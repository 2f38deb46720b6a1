//! What a link could carry at most over time.

use quipu_base::{Bytes, Instant, Rate};

use crate::rate::{self, Transmitter};
use crate::trace::Opportunities;
use crate::{DeliveryTrace, LinkConfig, Timeline};

/// What a link could carry at most over time if there always were something to send: its rate
/// alone, as if there were no queue, delay, loss or outage.
///
/// ```
/// use quipu_base::{Bytes, Duration, Instant, Rate};
/// use quipu_link::{Capacity, LinkConfig};
///
/// let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
/// let mbit = Rate::from_mbit_per_sec;
/// let config = LinkConfig::new(mbit(8), Duration::ZERO).with_step(at(2), mbit(4));
/// let capacity = Capacity::of(&config);
/// assert_eq!(capacity.between(at(1), at(4)), Bytes(2_000_000));
/// assert_eq!(capacity.all_sent(at(1), Bytes(2_000_000)), at(4));
/// ```
#[derive(Clone, Debug)]
pub struct Capacity {
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Unlimited,
    Rates {
        rates: Timeline<Rate>,
        /// Up to each value of a round, and then to its end: what moves, in bits times nanoseconds
        /// per second.
        work: Vec<u128>,
    },
    Deliveries(DeliveryTrace),
}

impl Capacity {
    /// That of a link of `config`.
    pub fn of(config: &LinkConfig) -> Self {
        let source = match (&config.trace, config.rate_over_time()) {
            (Some(trace), _) => Source::Deliveries(trace.clone()),
            (None, Some(rates)) => Source::Rates { work: work_up_to(&rates), rates },
            (None, None) => Source::Unlimited,
        };
        Capacity { source }
    }

    /// Bytes, headers included, that can leave after `from` and up to `until`, rounded down;
    /// [`Bytes::MAX`] without a limit, but zero if `until` is not later.
    pub fn between(&self, from: Instant, until: Instant) -> Bytes {
        if until <= from {
            return Bytes::ZERO;
        }
        match &self.source {
            Source::Unlimited => Bytes::MAX,
            Source::Rates { rates, work } => {
                let end = rates.ends_at().map_or(until, |end| until.min(end));
                let [before, by] = [from, end].map(|at| work_by(rates, work, at));
                let bytes = by.saturating_sub(before) / (8 * 1_000_000_000);
                Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
            }
            Source::Deliveries(trace) => {
                let [before, by] = [from, until].map(|at| trace.opportunities_by(at));
                DeliveryTrace::OPPORTUNITY.saturating_mul(by.saturating_sub(before))
            }
        }
    }

    /// The first instant by which `bytes` can have left that are there at `from`, on a link that was
    /// idle before: rounded up to whole nanoseconds; [`Instant::FAR_FUTURE`] if there is none.
    pub fn all_sent(&self, from: Instant, bytes: Bytes) -> Instant {
        match &self.source {
            Source::Unlimited => from,
            _ if bytes.is_zero() => from,
            Source::Rates { rates, .. } => Transmitter::new(Some(rates)).send(from, bytes),
            Source::Deliveries(trace) => Opportunities::new(trace).send(from, bytes),
        }
    }
}

fn work_up_to(rates: &Timeline<Rate>) -> Vec<u128> {
    let ends = rates.values().skip(1).map(|(time, _)| time).chain([rates.length()]);
    let pieces = rates.values().zip(ends).scan(0, |sum, ((from, rate), until)| {
        *sum += rate::work(rate, until.saturating_sub(from));
        Some(*sum)
    });
    std::iter::once(0).chain(pieces).collect()
}

/// What `rates` move from the start of the recording to where it is at `at`.
fn work_by(rates: &Timeline<Rate>, work: &[u128], at: Instant) -> u128 {
    let (rounds, time) = rates.position(at);
    let of_round = work.last().copied().unwrap_or_default();
    // A recording that holds, or one step after the last, is at its last value for good.
    let (index, (from, rate)) = rates.piece(time);
    let in_round =
        work.get(index).copied().unwrap_or_default() + rate::work(rate, time.saturating_sub(from));
    u128::from(rounds).saturating_mul(of_round).saturating_add(in_round)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quipu_base::Duration;

    use super::*;
    use crate::{AtEnd, Play};

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_link_without_a_limit_carries_all_at_once() {
        let capacity = Capacity::of(&LinkConfig::default());
        assert_eq!(capacity.between(at(1), at(2)), Bytes::MAX);
        assert_eq!(capacity.between(at(2), at(2)), Bytes::ZERO);
        assert_eq!(capacity.all_sent(at(3), Bytes::MAX), at(3));
    }

    #[test]
    fn a_trace_carries_its_opportunities() {
        let trace = DeliveryTrace::parse("0\n2\n4\n4\n").unwrap();
        let recorded =
            |play| Capacity::of(&LinkConfig::recorded(trace.clone().played(play), Duration::ZERO));
        let looping = recorded(Play::default());
        // The second round begins at 4 ms.
        assert_eq!(looping.between(at(0), at(4)), Bytes(6_000));
        assert_eq!(looping.between(at(2), at(8)), Bytes(4_500 + 6_000));
        assert_eq!(looping.all_sent(at(2), Bytes(3_001)), at(4));
        let once = recorded(Play { from: Duration::from_millis(1), at_end: AtEnd::Stop });
        assert_eq!(once.between(at(0), at(1)), Bytes(1_500));
        assert_eq!(once.between(at(0), at(100)), Bytes(4_500));
        assert_eq!(once.all_sent(at(0), Bytes(4_500)), at(3));
        assert_eq!(once.all_sent(at(0), Bytes(4_501)), Instant::FAR_FUTURE);
    }

    #[test]
    fn a_recording_that_begins_ages_after_its_start_carries_what_it_sends() {
        let mbit = Rate::from_mbit_per_sec;
        let faster = [(Duration::from_millis(3), mbit(7))];
        let rates = Timeline::recorded(mbit(1), faster, Duration::from_millis(8));
        for (from, at_end) in [0, 1, 169, u64::MAX / 2]
            .into_iter()
            .flat_map(|less| [AtEnd::Loop, AtEnd::Hold].map(|at_end| (u64::MAX - less, at_end)))
        {
            let play = Play { from: Duration::from_nanos(from), at_end };
            let rates = Some(rates.clone().played(play));
            let capacity = Capacity::of(&LinkConfig { rates, ..LinkConfig::default() });
            for millis in [0, 5, 700] {
                let sent_at = capacity.all_sent(at(millis), Bytes(40_000));
                let until = sent_at - Duration::from_nanos(1);
                assert!(capacity.between(at(millis), sent_at) >= Bytes(40_000), "{play:?}");
                assert!(capacity.between(at(millis), until) < Bytes(40_000), "{play:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_carried_between_two_instants_is_sent_by_the_second(
            rates in proptest::collection::vec((1u64..40, 0u64..5), 1..6),
            from in 0u64..300,
            starts in 0u64..200,
            time in 1u64..500,
            kind in 0usize..3,
        ) {
            let at_end = [AtEnd::Loop, AtEnd::Hold, AtEnd::Stop][kind];
            let mut end = 0;
            let changes: Vec<_> = rates.iter().map(|(gap, mbit)| {
                end += gap;
                (Duration::from_millis(end), Rate::from_mbit_per_sec(*mbit))
            }).collect();
            let length = Duration::from_millis(end + 7);
            let play = Play { from: Duration::from_millis(from), at_end };
            let rates = Timeline::recorded(Rate::from_mbit_per_sec(1), changes, length).played(play);
            // 1 Mbit/s moves 125 B in a millisecond.
            let over = rates.ends_at().unwrap_or(Instant::FAR_FUTURE);
            let naive: u64 = (starts..starts + time).filter(|ms| at(*ms) < over)
                .map(|ms| rates.value_at(at(ms)).bits_per_sec() / 8_000).sum();
            let capacity = Capacity::of(&LinkConfig { rates: Some(rates), ..LinkConfig::default() });
            let (from, until) = (at(starts), at(starts + time));
            prop_assert_eq!(capacity.between(from, until), Bytes(naive));
            if naive > 0 {
                prop_assert!(capacity.all_sent(from, Bytes(naive)) <= until);
            }
            prop_assert!(capacity.all_sent(from, Bytes(naive + 1)) > until);
        }
    }
}
