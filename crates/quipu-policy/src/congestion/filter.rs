//! Greatest values of the last rounds and least values of the last seconds, of which models of a
//! path are made.

use quipu_base::{Duration, Instant};
use smallvec::SmallVec;

/// The greatest of the values of some last rounds.
///
/// Exact, with one value kept a round at most. A round is any count that does not fall: round trips,
/// or cycles of probing. Only a new value moves the window on: while none is fed the greatest stays.
///
/// Source of its use: `draft-cardwell-iccrg-bbr-congestion-control-00`, section 4.1.1.2; it
/// leaves open how to keep it (the Linux kernel keeps the best three, which may fall short).
#[derive(Clone, Debug)]
pub(super) struct WindowedMax<T> {
    window: u64,
    /// Rounds with their values; rounds rise, values fall.
    kept: SmallVec<[(u64, T); 12]>,
}

impl<T: Copy + PartialOrd> WindowedMax<T> {
    /// An empty filter. A value counts in its own round and in `window` rounds after it.
    pub(super) fn new(window: u64) -> Self {
        WindowedMax { window, kept: SmallVec::new() }
    }

    /// From now on a value counts in its own round and in `window` rounds after it.
    pub(super) fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    /// `value` was seen in `round`.
    pub(super) fn update(&mut self, round: u64, value: T) {
        while self.kept.last().is_some_and(|&(_, last)| last <= value) {
            self.kept.pop();
        }
        // Less than another one of its round it is never needed.
        if self.kept.last().is_none_or(|&(last, _)| last < round) {
            self.kept.push((round, value));
        }
        let window = self.window;
        self.kept.retain(|&mut (seen, _)| round.saturating_sub(seen) <= window);
    }

    /// The greatest value, if there is any.
    pub(super) fn best(&self) -> Option<T> {
        self.kept.first().map(|&(_, value)| value)
    }
}

/// The least value since some time: it holds until one that is not greater comes, or until it is
/// too old and anything replaces it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AgedMin {
    window: Duration,
    kept: Option<(Duration, Instant)>,
}

impl AgedMin {
    /// An empty filter, whose value is too old after `window`.
    pub(super) fn new(window: Duration) -> Self {
        AgedMin { window, kept: None }
    }

    /// True if there is a value and it is too old.
    pub(super) fn is_expired(&self, now: Instant) -> bool {
        self.kept.is_some_and(|(_, at)| now - at > self.window)
    }

    /// `value` was seen. True if it is the least now.
    pub(super) fn update(&mut self, now: Instant, value: Duration) -> bool {
        let taken = self.is_expired(now) || self.best().is_none_or(|best| value <= best);
        if taken {
            self.set(value, now);
        }
        taken
    }

    /// Replaces what is kept by `value`, seen at `at`.
    pub(super) fn set(&mut self, value: Duration, at: Instant) {
        self.kept = Some((value, at));
    }

    /// The value counts as seen just now.
    pub(super) fn renew(&mut self, now: Instant) {
        if let Some((_, at)) = &mut self.kept {
            *at = now;
        }
    }

    /// The least value, if there is any.
    pub(super) fn best(&self) -> Option<Duration> {
        self.kept.map(|(value, _)| value)
    }

    /// Forgets it.
    pub(super) fn clear(&mut self) {
        self.kept = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    proptest! {
        /// It agrees with looking through everything seen.
        #[test]
        fn the_maximum_is_that_of_the_window(
            steps in prop::collection::vec((0u64..4, 0u64..100), 1..200),
            window in 0u64..12,
        ) {
            let mut filter = WindowedMax::new(window);
            let (mut round, mut seen) = (0, Vec::new());
            for (rounds, value) in steps {
                round += rounds;
                seen.push((round, value));
                filter.update(round, value);
                let naive = seen
                    .iter()
                    .filter(|(at, _)| round - at <= window)
                    .map(|&(_, value)| value)
                    .max();
                prop_assert_eq!(filter.best(), naive);
                prop_assert!(filter.kept.len() as u64 <= window + 1);
            }
        }
    }

    #[test]
    fn the_maximum_stays_while_nothing_is_fed() {
        let mut filter = WindowedMax::new(2);
        filter.update(0, 9);
        filter.update(2, 1);
        assert_eq!(filter.best(), Some(9));
        filter.update(3, 1);
        assert_eq!(filter.best(), Some(1));
    }

    #[test]
    fn the_minimum_holds_for_its_time_and_is_renewed_by_its_equal() {
        let at = |millis| Instant::ZERO + ms(millis);
        let mut filter = AgedMin::new(ms(100));
        assert!(!filter.is_expired(at(1_000)));
        assert!(filter.update(at(0), ms(20)));
        assert!(!filter.update(at(50), ms(21)));
        assert!(filter.update(at(60), ms(20)));
        assert!(!filter.is_expired(at(160)));
        assert!(filter.is_expired(at(161)));
        assert!(filter.update(at(161), ms(30)));
        assert_eq!(filter.best(), Some(ms(30)));
        filter.renew(at(200));
        assert!(!filter.is_expired(at(300)));
        filter.clear();
        assert_eq!(filter.best(), None);
    }
}
