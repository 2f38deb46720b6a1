//! When each path brought an object: packets joined to few stretches of time.

use std::collections::BTreeMap;

use quipu_base::{Bytes, Duration, Instant};

use crate::run::Arrival;
use quipu_record::{Carried, Segment};

/// A gap between packets shorter than this part of the page's time cannot be seen. Our choice.
const FINEST: u64 = 500;

/// What each path carried, by path.
pub(super) fn carried(arrivals: &[Arrival]) -> Vec<Carried> {
    let mut sums: BTreeMap<u32, (Bytes, Bytes)> = BTreeMap::new();
    for arrival in arrivals {
        let (bytes, again) = sums.entry(arrival.path).or_default();
        *bytes += arrival.bytes;
        *again += arrival.again;
    }
    sums.into_iter().map(|(path, (bytes, again))| Carried { path, bytes, again }).collect()
}

/// The packets that brought something new, in order of time: those of a path with short gaps between
/// them are one segment. Of the gaps so many of the longest are kept that there are at most `most`
/// segments, or one for each path; none that cannot be seen in a page of `page_time` is.
pub(super) fn segments(
    arrivals: &[Arrival],
    began_at: Instant,
    page_time: Duration,
    most: usize,
) -> Vec<Segment> {
    let mut of_path: BTreeMap<u32, Vec<Segment>> = BTreeMap::new();
    for arrival in arrivals.iter().filter(|arrival| !arrival.bytes.is_zero()) {
        let at = arrival.at.saturating_since(began_at);
        let Arrival { path, bytes, .. } = *arrival;
        of_path.entry(path).or_default().push(Segment { from: at, to: at, path, bytes });
    }
    let gaps = |packets: &Vec<Segment>| -> Vec<Duration> {
        packets.windows(2).map(|pair| gap(&pair[0], &pair[1])).collect()
    };
    let mut longest: Vec<Duration> = of_path.values().flat_map(gaps).collect();
    longest.sort_unstable_by(|a, b| b.cmp(a));
    // Gaps as long as the first that is too many go too, so that like is treated alike.
    let too_many = longest.get(most.saturating_sub(of_path.len())).copied();
    let finest = Duration::from_nanos(page_time.as_nanos() / FINEST);
    let joined = too_many.unwrap_or(Duration::ZERO).max(finest);
    let mut segments: Vec<Segment> = Vec::new();
    for packets in of_path.into_values() {
        for packet in packets {
            match segments.last_mut() {
                Some(last) if last.path == packet.path && gap(last, &packet) <= joined => {
                    last.to = packet.to;
                    last.bytes += packet.bytes;
                }
                _ => segments.push(packet),
            }
        }
    }
    segments.sort_by_key(|segment| (segment.from, segment.path));
    segments
}

/// The time between two segments of a path.
fn gap(earlier: &Segment, later: &Segment) -> Duration {
    later.from.saturating_sub(earlier.to)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn arrival(ms: u64, path: u32, bytes: u64) -> Arrival {
        let at = Instant::ZERO + Duration::from_millis(ms);
        Arrival { object: 0, at, path, bytes: Bytes(bytes), again: Bytes(0) }
    }

    /// From, to, path and bytes of each.
    fn told(arrivals: &[Arrival], most: usize) -> Vec<(u64, u64, u32, u64)> {
        let began_at = Instant::ZERO + Duration::from_millis(1);
        let page_time = Duration::from_millis(1_000);
        let millis = |time: Duration| time.as_nanos() / 1_000_000;
        segments(arrivals, began_at, page_time, most)
            .iter()
            .map(|it| (millis(it.from), millis(it.to), it.path, it.bytes.0))
            .collect()
    }

    #[test]
    fn the_longest_gaps_stay() {
        let packets = [(10, 0), (11, 1), (12, 0), (14, 0), (30, 0), (31, 1), (80, 0)];
        let arrivals: Vec<Arrival> =
            packets.iter().map(|(at, path)| arrival(*at, *path, 100)).collect();
        let all = [
            (9, 13, 0, 300),
            (10, 10, 1, 100),
            (29, 29, 0, 100),
            (30, 30, 1, 100),
            (79, 79, 0, 100),
        ];
        // Gaps of 2 ms cannot be seen in a second.
        assert_eq!(told(&arrivals, 24), all);
        assert_eq!(told(&arrivals, 5), all);
        let some = [(9, 29, 0, 400), (10, 10, 1, 100), (30, 30, 1, 100), (79, 79, 0, 100)];
        assert_eq!(told(&arrivals, 4), some);
        for most in 0..3 {
            assert_eq!(told(&arrivals, most), [(9, 79, 0, 500), (10, 30, 1, 200)]);
        }
        assert_eq!(told(&[arrival(5, 0, 0)], 24), []);
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_and_bounds_are_kept(
            packets in prop::collection::vec((0_u64..500, 0_u32..3, 0_u64..3), 0..60),
            most in 0_usize..12,
        ) {
            let mut packets = packets;
            packets.sort_unstable();
            let arrivals: Vec<Arrival> =
                packets.iter().map(|(at, path, bytes)| arrival(*at, *path, *bytes)).collect();
            let told = told(&arrivals, most);
            let carried = carried(&arrivals);
            let used = carried.iter().filter(|path| !path.bytes.is_zero()).count();
            prop_assert!(told.len() <= most.max(used));
            for path in carried {
                let own: Vec<_> = told.iter().filter(|it| it.2 == path.path).collect();
                prop_assert_eq!(own.iter().map(|it| it.3).sum::<u64>(), path.bytes.0);
                prop_assert!(own.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
        }
    }
}
