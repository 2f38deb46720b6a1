//! Which way the acknowledgements of a path's packets return, as far as round-trip samples go.

use quipu_base::{Duration, Instant};
use quipu_policy::PathKey;

/// So many samples in a row by another way, and over at least two round trips, are a lasting
/// change. Our choice: a round's acknowledgements may alternate, and a way that is tried for a
/// moment is none.
const LASTING_SAMPLES: u32 = 16;

/// The way of the samples that the round-trip time and its minimum are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReturnWay {
    way: PathKey,
    other: Option<Other>,
}

/// Samples in a row that came by another way.
#[derive(Clone, Copy, Debug)]
struct Other {
    way: PathKey,
    since: Instant,
    samples: u32,
    least: Duration,
}

/// What a sample's way says of the estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WayChange {
    /// They stand.
    None,
    /// The way was changed on purpose: they are void.
    Switched,
    /// The way has changed for good: the least round-trip time is this.
    Lasting(Duration),
}

impl ReturnWay {
    /// Acknowledgements are expected by `way`.
    pub(crate) fn new(way: PathKey) -> Self {
        ReturnWay { way, other: None }
    }

    /// A sample of `latest` was taken by `arrived_on`. `is_refused` says whether the policy would
    /// refuse a sample by the way so far; `srtt` is the estimate before the sample.
    pub(crate) fn on_sample(
        &mut self,
        now: Instant,
        arrived_on: PathKey,
        latest: Duration,
        srtt: Option<Duration>,
        is_refused: impl FnOnce(PathKey) -> bool,
    ) -> WayChange {
        if arrived_on == self.way {
            self.other = None;
            return WayChange::None;
        }
        if is_refused(self.way) {
            *self = ReturnWay::new(arrived_on);
            return WayChange::Switched;
        }
        let fresh = Other { way: arrived_on, since: now, samples: 0, least: latest };
        let other = self.other.get_or_insert(fresh);
        if other.way != arrived_on {
            *other = fresh;
        }
        other.samples += 1;
        other.least = other.least.min(latest);
        let two_rounds = srtt.unwrap_or(Duration::ZERO).saturating_mul(2);
        if other.samples < LASTING_SAMPLES || now - other.since < two_rounds {
            return WayChange::None;
        }
        let least = other.least;
        *self = ReturnWay::new(arrived_on);
        WayChange::Lasting(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_base::PathId;

    const OWN: PathKey = PathKey { slot: 0, id: PathId(0) };
    const OTHER: PathKey = PathKey { slot: 1, id: PathId(1) };
    const SRTT: Option<Duration> = Some(Duration::from_millis(50));

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn sample(returns: &mut ReturnWay, ms: u64, way: PathKey, rtt: u64) -> WayChange {
        returns.on_sample(at(ms), way, Duration::from_millis(rtt), SRTT, |_| false)
    }

    #[test]
    fn ways_that_alternate_change_nothing() {
        let mut returns = ReturnWay::new(OWN);
        for ms in 0..1_000 {
            let way = if ms % 20 < 19 { OTHER } else { OWN };
            assert_eq!(sample(&mut returns, ms, way, 50), WayChange::None);
        }
    }

    #[test]
    fn a_change_that_lasts_gives_the_least_sample_of_the_new_way() {
        let mut returns = ReturnWay::new(OWN);
        let changes: Vec<_> = (0..200)
            .map(|ms| sample(&mut returns, ms, OTHER, 90 - ms.min(10)))
            .filter(|change| *change != WayChange::None)
            .collect();
        assert_eq!(changes, [WayChange::Lasting(Duration::from_millis(80))]);
        // And back again.
        assert!((200..400).any(|ms| sample(&mut returns, ms, OWN, 40) != WayChange::None));
    }

    #[test]
    fn few_samples_are_no_change_however_long_they_take() {
        let mut returns = ReturnWay::new(OWN);
        for round in 0..15 {
            assert_eq!(sample(&mut returns, round * 1_000, OTHER, 50), WayChange::None);
        }
    }

    #[test]
    fn a_way_that_the_policy_refuses_now_is_left_at_once() {
        let mut returns = ReturnWay::new(OWN);
        let latest = Duration::from_millis(9);
        let change = returns.on_sample(at(0), OTHER, latest, SRTT, |way| way == OWN);
        assert_eq!(change, WayChange::Switched);
        assert_eq!(sample(&mut returns, 1, OTHER, 9), WayChange::None);
    }
}
