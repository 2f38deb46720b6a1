//! Which size is probed next.
//!
//! The largest first: most paths carry it. After that the middle one of those sizes between what is
//! confirmed and what was lost that tunnels and access networks are known to leave, and last the
//! middle between the two. A size that was lost once counts as too large for the time being; when
//! nothing is left below, the least of these is tried again, so that a probe lost by chance costs
//! round trips and not the size.

use smallvec::SmallVec;

/// Probes of one size that are lost before it counts as too large for good.
/// <https://www.rfc-editor.org/rfc/rfc8899#section-5.1.2>
const MAX_PROBES: u8 = 3;

/// Fewer bytes than this are not worth a probe; our choice, as in s2n-quic.
const USEFUL_GAIN: u16 = 20;

/// Sizes that paths are likely to end at: what is left of common MTUs behind the headers of IPv4 and
/// UDP (28 bytes) or IPv6 and UDP (48 bytes).
const LIKELY: [u16; 15] = [
    1_232, // 1,280 over IPv6: its least MTU
    1_252, // 1,280 over IPv4
    1_332, // 1,380 over IPv6, 1,360 over IPv4
    1_352, // 1,400 over IPv6, 1,380 over IPv4
    1_372, // 1,420 over IPv6, 1,400 over IPv4: WireGuard, many tunnels
    1_392, // 1,420 over IPv4
    1_412, // 1,460 over IPv6, 1,440 over IPv4
    1_432, // 1,480 over IPv6, 1,460 over IPv4: tunnels through IPv4, clouds
    1_444, // 1,492 over IPv6: PPPoE
    1_452, // 1,500 over IPv6, 1,480 over IPv4
    1_464, // 1,492 over IPv4
    1_472, // 1,500 over IPv4: Ethernet
    4_052, // 4,100 over IPv6
    8_952, // 9,000 over IPv6: large frames
    8_972, // 9,000 over IPv4
];

/// A size that was lost.
#[derive(Clone, Copy, Debug)]
struct Failed {
    size: u16,
    times: u8,
}

/// A search: what was lost, and how far it may go.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    /// The largest size that may be sent.
    most: u16,
    /// What a message of the network or the way out left of that.
    limit: Option<u16>,
    /// Sizes that were lost; each is above all that are confirmed.
    failed: SmallVec<[Failed; 4]>,
}

impl Search {
    /// A search that may go up to `most`.
    pub(super) fn up_to(most: u16) -> Self {
        Search { most, ..Search::default() }
    }

    /// The largest size that may be sent.
    pub(super) fn most(&self) -> u16 {
        self.most
    }

    /// Begins anew: what did not arrive may do so now.
    pub(super) fn restart(&mut self) {
        self.failed.clear();
        self.limit = None;
    }

    /// No larger size than this is to be probed until the next search.
    pub(super) fn limit(&mut self, size: u16) {
        self.limit = Some(self.limit.map_or(size, |limit| limit.min(size)));
    }

    /// A probe of that size was lost.
    pub(super) fn on_lost(&mut self, size: u16) {
        match self.failed.iter_mut().find(|failed| failed.size == size) {
            Some(failed) => failed.times = failed.times.saturating_add(1),
            None => self.failed.push(Failed { size, times: 1 }),
        }
    }

    /// A probe of that size arrived.
    pub(super) fn on_confirmed(&mut self, size: u16) {
        self.failed.retain(|failed| failed.size > size);
    }

    /// The size to probe next, above `confirmed`; `None`: nothing is left.
    pub(super) fn next_size(&self, confirmed: u16) -> Option<u16> {
        let top = self.limit.map_or(self.most, |limit| limit.min(self.most));
        let within = self.failed.iter().filter(|failed| failed.size > confirmed);
        let lost = within.filter(|failed| failed.size <= top).min_by_key(|failed| failed.size);
        let Some(&Failed { size, times }) = lost else {
            return (top > confirmed).then_some(top);
        };
        let begin = LIKELY.partition_point(|likely| *likely <= confirmed);
        let end = LIKELY.partition_point(|likely| *likely < size);
        if let Some(between) = LIKELY.get(begin..end).filter(|between| !between.is_empty()) {
            return Some(between[between.len() / 2]);
        }
        if size - confirmed > USEFUL_GAIN {
            return Some(confirmed + (size - confirmed) / 2);
        }
        (times < MAX_PROBES).then_some(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Probes until nothing is left, on a path that carries `mtu`; the sizes in order. Probes of the
    /// numbers in `unlucky` are lost whatever their size is.
    fn probed(most: u16, mtu: u16, unlucky: &[usize]) -> (u16, Vec<u16>) {
        let mut search = Search::up_to(most);
        let (mut confirmed, mut sizes) = (1_200, Vec::new());
        while let Some(size) = search.next_size(confirmed) {
            if size <= mtu && !unlucky.contains(&sizes.len()) {
                search.on_confirmed(size);
                confirmed = size;
            } else {
                search.on_lost(size);
            }
            sizes.push(size);
            // Each loss by chance may cost a search of its own.
            let most = 30 * (1 + unlucky.len());
            assert!(sizes.len() < most, "it ends: {sizes:?}");
        }
        (confirmed, sizes)
    }

    #[test]
    fn the_largest_size_is_tried_first_and_is_enough() {
        assert_eq!(probed(1_472, 1_472, &[]), (1_472, vec![1_472]));
        assert_eq!(probed(1_472, 9_000, &[]), (1_472, vec![1_472]));
        assert_eq!(probed(1_350, 9_000, &[]), (1_350, vec![1_350]));
        assert_eq!(probed(1_200, 9_000, &[]), (1_200, vec![]));
    }

    #[test]
    fn common_sizes_are_found_in_few_probes() {
        let (found, sizes) = probed(1_472, 1_452, &[]);
        assert_eq!(found, 1_452);
        assert_eq!(sizes, [1_472, 1_392, 1_444, 1_464, 1_452, 1_464, 1_464]);
        for likely in LIKELY.into_iter().filter(|size| *size < 1_472) {
            let (found, sizes) = probed(1_472, likely, &[]);
            assert_eq!(found, likely, "{sizes:?}");
            assert!(sizes.len() <= 10, "{likely}: {sizes:?}");
        }
    }

    #[test]
    fn a_probe_that_chance_takes_costs_no_size() {
        for unlucky in 0..6 {
            for mtu in [1_232, 1_372, 1_452, 1_472] {
                let (found, sizes) = probed(1_472, mtu, &[unlucky]);
                assert_eq!(found, mtu, "{unlucky} of {sizes:?}");
            }
        }
    }

    #[test]
    fn a_limit_is_kept_until_the_search_begins_anew() {
        let mut search = Search::up_to(1_472);
        search.limit(1_400);
        assert_eq!(search.next_size(1_200), Some(1_400));
        search.limit(1_440);
        assert_eq!(search.next_size(1_400), None);
        search.restart();
        assert_eq!(search.next_size(1_400), Some(1_472));
    }

    proptest! {
        #[test]
        fn what_is_found_is_carried_and_nearly_the_most(
            most in 1_200u16..=9_000,
            mtu in 1_200u16..=9_000,
        ) {
            let (found, sizes) = probed(most, mtu, &[]);
            let best = most.min(mtu);
            prop_assert!(found <= best);
            prop_assert!(best - found < USEFUL_GAIN, "{found} of {best}: {sizes:?}");
            prop_assert!(sizes.len() <= 24, "{sizes:?}");
        }

        #[test]
        fn whatever_is_lost_the_search_ends(
            most in 1_200u16..=65_000,
            mtu in 1_200u16..=65_000,
            unlucky in proptest::collection::vec(0usize..40, 0..30),
        ) {
            let (found, _) = probed(most, mtu, &unlucky);
            prop_assert!(found <= most.min(mtu));
        }
    }
}
