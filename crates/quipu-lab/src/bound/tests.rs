//! Bounds against what is known by hand, and against every schedule of tiny cases.

mod brute;
mod exact;
mod monotone;

use std::sync::Arc;

use quipu_base::{Duration, Instant, Rate};
use quipu_link::{DeliveryTrace, LinkConfig, Outage};

use super::capacity::Supply;
use super::way::{Framing, Group, Hop, Lane, Part, Place, Trunk, Way};
use super::window::{Opening, Window};

const MILLI: u64 = 1_000_000;

fn millis(millis: u64) -> Instant {
    Instant::from_nanos(millis * MILLI)
}

/// `bytes` per millisecond.
fn link(bytes: u64, delay: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_bits_per_sec(bytes * 8_000), Duration::from_millis(delay))
}

fn lane(path: usize, delay: u64) -> Lane {
    Lane {
        path,
        to_shared: 0,
        from_shared: delay * MILLI,
        own: Vec::new(),
        opens_at: 0,
        window: None,
    }
}

/// A way over links of their own.
fn way(links: &[LinkConfig]) -> Way {
    let group = |(path, link): (usize, &LinkConfig)| Group {
        shared: Arc::new(Supply::new(link)),
        lanes: vec![lane(path, link.delay.as_millis())],
    };
    let groups = links.iter().enumerate().map(group).collect();
    Way { framing: Framing::BARE, groups, trunks: Vec::new() }
}

#[test]
fn a_rate_lets_whole_bytes_through_over_its_steps() {
    let config = link(1, 0)
        .with_step(millis(10), Rate::ZERO)
        .with_step(millis(20), Rate::from_bits_per_sec(16_000));
    let supply = Supply::new(&config);
    let between = |from: u64, until: u64| supply.between(from * MILLI, until * MILLI);
    assert_eq!(
        [between(0, 10), between(3, 15), between(5, 21), between(12, 18), between(20, 25)],
        [10, 7, 7, 0, 10]
    );
    assert_eq!(supply.between(0, MILLI - 1), 0);
    assert_eq!((supply.between(5, 5), supply.between(6, 5)), (0, 0));
}

#[test]
fn an_outage_takes_what_could_not_arrive_before_it() {
    // 4 ms of delay: what leaves from the sixth millisecond on is lost.
    let config = link(10, 4).with_outage(Outage::between(millis(10), millis(20)));
    let supply = Supply::new(&config);
    assert_eq!(supply.between(0, 6 * MILLI), 60);
    assert_eq!(supply.between(0, 20 * MILLI), 60);
    assert_eq!(supply.between(8 * MILLI, 21 * MILLI), 10);
    let for_good = link(10, 4).with_outage(Outage::for_good(millis(10)));
    assert_eq!(way(&[for_good]).earliest(Instant::ZERO, 61), Instant::FAR_FUTURE);
}

#[test]
fn a_trace_lets_its_opportunities_through_and_no_others() {
    let trace = DeliveryTrace::parse("1\n1\n3\n10").unwrap();
    let config = LinkConfig::recorded(trace, Duration::from_millis(2));
    let supply = Supply::new(&config);
    let between = |from: u64, until: u64| supply.between(from * MILLI, until * MILLI) / 1_500;
    assert_eq!([between(0, 1), between(1, 3), between(1, 10), between(0, 20)], [2, 1, 2, 8]);
    assert_eq!(supply.between(0, MILLI - 1), 0);
    assert_eq!(way(std::slice::from_ref(&config)).earliest(Instant::ZERO, 3_001), millis(5));
    // One at 3 ms would arrive at 5 ms, when the link is down.
    let config = config.with_outage(Outage::between(millis(5), millis(12)));
    assert_eq!(way(&[config]).earliest(Instant::ZERO, 3_001), millis(15));
}

#[test]
fn datagrams_pay_for_their_headers() {
    // 100 B each, 80 of which are the stream's: 170 B go in three, the last of 30 B.
    let framing = Framing { payload: 80, headers: 15, overhead: 5 };
    let way = Way { framing, ..way(&[link(1, 7)]) };
    assert_eq!(way.earliest(Instant::ZERO, 170), millis(100 + 100 + 30 + 7));
    assert_eq!(way.earliest(Instant::ZERO, 160), millis(207));
    assert_eq!(way.earliest(millis(5), 0), millis(12));
}

#[test]
fn paths_over_one_link_share_it_and_their_own_links_limit_them() {
    let shared = Arc::new(Supply::new(&link(10, 0)));
    let of_access = |path, bytes: u64| {
        let supply = Arc::new(Supply::new(&link(bytes, 0)));
        Lane { own: vec![Hop { supply, before: 0, after: 3 * MILLI }], ..lane(path, 3) }
    };
    let two = |one, other| Way {
        framing: Framing::BARE,
        groups: vec![Group {
            shared: Arc::clone(&shared),
            lanes: vec![of_access(0, one), of_access(1, other)],
        }],
        trunks: Vec::new(),
    };
    assert_eq!(two(8, 8).earliest(Instant::ZERO, 100), millis(13));
    assert_eq!(two(2, 3).earliest(Instant::ZERO, 100), millis(23));
    assert_eq!(two(2, 3).only(0, Framing::BARE).earliest(Instant::ZERO, 100), millis(53));
}

#[test]
fn a_trunk_limits_those_that_lead_over_it_together() {
    let trunk = Trunk { supply: Arc::new(Supply::new(&link(6, 0))), lanes: Vec::new() };
    let mut all = way(&[link(8, 1), link(8, 1), link(8, 1)]);
    all.groups.iter_mut().for_each(|group| group.lanes.clear());
    all.trunks.push(trunk);
    for path in 0..3 {
        let shared = Part { supply: None, delay: MILLI, place: Place::Shared };
        let supply = Some(Arc::clone(&all.trunks[0].supply));
        let named = Part { supply, delay: 2 * MILLI, place: Place::Trunk(0) };
        let parts = if path < 2 { vec![named, shared] } else { vec![shared] };
        all.add(path, path, parts);
    }
    assert_eq!(all.trunks[0].lanes, [(0, 0, 3 * MILLI), (1, 0, 3 * MILLI)]);
    // 6 B over both and 8 B beside them each millisecond, which is there 2 ms earlier.
    assert_eq!(all.earliest(Instant::ZERO, 14 * 50 + 16), millis(53));
    assert_eq!(all.only(1, Framing::BARE).earliest(Instant::ZERO, 60), millis(13));
}

#[test]
fn a_window_doubles_each_round_trip() {
    let opening =
        Opening { from: 5, round_trip: 100, probe_timeout: 100, first: 1_000, datagram: 10 };
    let window = Window::new(opening).unwrap();
    // 1,000 and two probes for the timeout before and that within; then twice that and more.
    let sent = [4, 5, 104, 105, 205].map(|at| window.sent_by(at));
    assert_eq!(sent, [0, 1_040, 1_040, 1_000 + 60 + 2_080, 1_000 + 80 + 6_280]);
    assert!(Window::new(Opening { round_trip: 0, ..opening }).is_none());
}
