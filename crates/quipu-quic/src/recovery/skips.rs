//! Packet numbers that are never used, so that a peer that acknowledges what it did not receive is
//! found out.

use std::collections::VecDeque;

/// The first skipped number is one of the 64 after the first 64 packets, the second one of 128, and
/// so on up to one of 4,096: our choice. A number skipped costs the peer an acknowledgement at once,
/// and a range of a few bytes in some more; at this rate that is nothing. A peer that acknowledges
/// blindly gets no further than one interval.
const FIRST_INTERVAL_BITS: u32 = 6;
const LAST_INTERVAL_BITS: u32 = 12;

/// Skipped numbers remembered: older ones lie far below what is in flight.
const MAX_REMEMBERED: usize = 16;

/// The numbers skipped in a packet number space, and the next one that will be.
///
/// Skipped at random, as quinn does it with intervals that grow without end.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-21.4>
#[derive(Clone, Debug)]
pub(super) struct SkippedNumbers {
    /// The next; `u64::MAX`: none is ever skipped, zero: not chosen yet.
    next: u64,
    interval_bits: u32,
    /// The last ones, in ascending order.
    last: VecDeque<u64>,
}

impl SkippedNumbers {
    /// No number is skipped.
    pub(super) const fn none() -> Self {
        SkippedNumbers { next: u64::MAX, interval_bits: 0, last: VecDeque::new() }
    }

    /// Numbers are skipped at random.
    pub(super) const fn at_random() -> Self {
        SkippedNumbers { next: 0, interval_bits: FIRST_INTERVAL_BITS, last: VecDeque::new() }
    }

    /// The number to use instead of `number`, which would be next. `random` is drawn from only where
    /// a number was skipped, and at the start.
    #[inline]
    pub(super) fn pass(&mut self, number: u64, random: impl FnOnce() -> u64) -> u64 {
        if number < self.next { number } else { self.skip(number, random()) }
    }

    #[cold]
    fn skip(&mut self, number: u64, random: u64) -> u64 {
        let chosen = self.next != 0;
        if chosen {
            if self.last.len() >= MAX_REMEMBERED {
                self.last.pop_front();
            }
            self.last.push_back(number);
        }
        let interval = 1u64 << self.interval_bits;
        self.next = number + interval + random % interval;
        self.interval_bits = (self.interval_bits + 1).min(LAST_INTERVAL_BITS);
        number + u64::from(chosen)
    }

    /// True if one of these inclusive ranges, highest first, holds a skipped number.
    pub(super) fn any_in(&self, ranges: impl Iterator<Item = (u64, u64)>) -> bool {
        let mut skipped = self.last.iter().rev().peekable();
        for (first, last) in ranges {
            while skipped.next_if(|&&number| number > last).is_some() {}
            match skipped.peek() {
                None => return false,
                Some(&&number) if number >= first => return true,
                Some(_) => {}
            }
        }
        false
    }

    /// `number` less `distance` and less the skipped numbers between: the packet sent so many packets
    /// before. `None` if that lies below zero.
    pub(super) fn before(&self, number: u64, distance: u64) -> Option<u64> {
        let mut found = number.checked_sub(distance)?;
        for &skipped in self.last.iter().rev() {
            if skipped < found {
                break;
            }
            if skipped <= number {
                found = found.checked_sub(1)?;
            }
        }
        Some(found)
    }
}

impl Default for SkippedNumbers {
    fn default() -> Self {
        SkippedNumbers::none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The numbers of so many packets, and those that are missing among them.
    fn numbers(count: usize, mut random: impl FnMut() -> u64) -> (Vec<u64>, Vec<u64>) {
        let mut skips = SkippedNumbers::at_random();
        let (mut used, mut next) = (Vec::new(), 0);
        for _ in 0..count {
            used.push(next);
            next = skips.pass(next + 1, &mut random);
        }
        let missing = (0..next).filter(|number| used.binary_search(number).is_err()).collect();
        (used, missing)
    }

    #[test]
    fn intervals_grow_from_64_to_4096_packets() {
        let (_, missing) = numbers(50_000, || 0);
        let intervals: Vec<_> = missing.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(missing[0], 65);
        assert_eq!(intervals[..7], [128, 256, 512, 1_024, 2_048, 4_096, 4_096]);
        let (_, missing) = numbers(1_000, || u64::MAX);
        assert_eq!(missing, [128, 128 + 255, 128 + 255 + 511]);
    }

    #[test]
    fn without_it_numbers_are_dense() {
        let mut skips = SkippedNumbers::none();
        for number in 0..10_000 {
            assert_eq!(skips.pass(number, || unreachable!()), number);
        }
    }

    fn with(last: &BTreeSet<u64>) -> SkippedNumbers {
        SkippedNumbers { last: last.iter().copied().collect(), ..SkippedNumbers::none() }
    }

    proptest! {
        #[test]
        fn ranges_with_a_skipped_number_are_found(
            skipped in prop::collection::btree_set(0u64..200, 0..16),
            ranges in prop::collection::vec((0u64..200, 0u64..20), 1..12),
        ) {
            let skips = with(&skipped);
            let mut ranges: Vec<_> =
                ranges.into_iter().map(|(first, length)| (first, first + length)).collect();
            ranges.sort_unstable_by(|a, b| b.cmp(a));
            let mut lowest = u64::MAX;
            ranges.retain(|&(first, last)| {
                let apart = last < lowest;
                if apart { lowest = first; }
                apart
            });
            let expected = ranges
                .iter()
                .any(|&(first, last)| skipped.range(first..=last).next().is_some());
            prop_assert_eq!(skips.any_in(ranges.into_iter()), expected);
        }

        #[test]
        fn distances_do_not_count_skipped_numbers(
            skipped in prop::collection::btree_set(0u64..200, 0..16),
            number in 0u64..220,
            distance in 0u64..60,
        ) {
            prop_assume!(!skipped.contains(&number));
            let skips = with(&skipped);
            let used: Vec<u64> = (0..=number).filter(|used| !skipped.contains(used)).collect();
            let expected = (used.len() - 1).checked_sub(distance as usize).map(|at| used[at]);
            prop_assert_eq!(skips.before(number, distance), expected);
        }
    }
}
