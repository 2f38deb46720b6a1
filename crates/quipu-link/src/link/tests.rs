mod over_time;

use proptest::prelude::*;
use quipu_base::Rate;

use super::*;
use crate::ecn::{CE, ECT_0, ECT_1, NOT_ECT};
use crate::{Count, GilbertElliott, Loss, Outage, QueueLimit, Reorder};

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn nanos(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// 10 Mbit/s and 10 ms: a datagram with 1,222 B of payload is sent in 1 ms.
fn config() -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(10), Duration::from_millis(10))
}

const MILLISECOND_LONG: Bytes = Bytes(1_222);

fn link(config: &LinkConfig) -> Link {
    Link::new(config, Seed::new(1).child("link", 0)).unwrap()
}

fn arrival(verdict: Verdict) -> Option<Instant> {
    match verdict {
        Verdict::Deliver { at, .. } => Some(at),
        Verdict::Dropped(_) => None,
    }
}

/// The arrivals of `count` datagrams offered `every` so often.
fn arrivals(config: &LinkConfig, count: u32, every: Duration) -> Vec<Option<Instant>> {
    let mut link = link(config);
    let offers = (0..count).map(|index| Instant::ZERO + every.saturating_mul(u64::from(index)));
    offers.map(|now| arrival(link.offer(now, MILLISECOND_LONG, NOT_ECT))).collect()
}

#[test]
fn datagrams_arrive_after_queue_transmission_and_delay() {
    let mut link = link(&config());
    assert_eq!(link.offer(millis(0), MILLISECOND_LONG, NOT_ECT), Verdict::deliver(millis(11)));
    assert_eq!(link.offer(millis(0), MILLISECOND_LONG, NOT_ECT), Verdict::deliver(millis(12)));
    // 97 B of payload make 125 B: 0.1 ms, behind the two.
    assert_eq!(link.offer(millis(1), Bytes(97), NOT_ECT), Verdict::deliver(nanos(12_100_000)));
    // The link is idle again.
    assert_eq!(link.offer(millis(20), MILLISECOND_LONG, NOT_ECT), Verdict::deliver(millis(31)));
}

#[test]
fn a_link_without_rate_only_delays() {
    let config = LinkConfig { delay: Duration::from_millis(3), ..LinkConfig::default() };
    let mut link = link(&config);
    for _ in 0..1_000 {
        assert_eq!(link.offer(millis(1), MILLISECOND_LONG, NOT_ECT), Verdict::deliver(millis(4)));
    }
}

#[test]
fn the_queue_drops_at_the_exact_byte() {
    let queue = |limit| config().with_queue(QueueLimit::Bytes(Bytes(limit)));
    let mut full = link(&queue(2_499));
    let mut fits = link(&queue(2_500));
    let dropped = Verdict::Dropped(DropReason::QueueFull);
    for link in [&mut full, &mut fits] {
        assert_eq!(link.offer(millis(0), MILLISECOND_LONG, NOT_ECT), Verdict::deliver(millis(11)));
    }
    assert_eq!(full.offer(millis(0), MILLISECOND_LONG, NOT_ECT), dropped);
    assert_eq!(fits.offer(millis(0), MILLISECOND_LONG, NOT_ECT), Verdict::deliver(millis(12)));
    assert_eq!(fits.offer(nanos(999_999), MILLISECOND_LONG, NOT_ECT), dropped);
    // The first one has left.
    assert_eq!(fits.offer(millis(1), MILLISECOND_LONG, NOT_ECT), Verdict::deliver(millis(13)));
    assert_eq!(fits.stats().max_queue, Bytes(2_500));
    assert_eq!(fits.stats().dropped_by_queue, Count { datagrams: 1, bytes: Bytes(1_250) });
    assert_eq!(fits.queued(millis(2)), Bytes(1_250));
}

#[test]
fn an_outage_takes_what_is_offered_queued_or_on_the_way() {
    let mut link = link(&config().with_outage(Outage::between(millis(20), millis(30))));
    let lost = Verdict::Dropped(DropReason::Outage);
    assert_eq!(link.offer(millis(8), MILLISECOND_LONG, NOT_ECT), Verdict::deliver(millis(19)));
    assert_eq!(
        link.offer(millis(9), MILLISECOND_LONG, NOT_ECT),
        lost,
        "it would arrive as the link fails"
    );
    assert_eq!(link.offer(millis(20), MILLISECOND_LONG, NOT_ECT), lost);
    assert_eq!(link.offer(nanos(29_999_999), MILLISECOND_LONG, NOT_ECT), lost);
    assert_eq!(link.offer(millis(30), MILLISECOND_LONG, NOT_ECT), Verdict::deliver(millis(41)));
    assert_eq!(link.stats().dropped_by_outage.datagrams, 3);
}

#[test]
fn a_link_cut_for_good_stays_down() {
    let mut link = link(&config().with_outage(Outage::for_good(millis(20))));
    assert_eq!(link.offer(millis(0), MILLISECOND_LONG, NOT_ECT), Verdict::deliver(millis(11)));
    for second in 1..100 {
        let verdict = link.offer(millis(1_000 * second), MILLISECOND_LONG, NOT_ECT);
        assert_eq!(verdict, Verdict::Dropped(DropReason::Outage));
    }
}

#[test]
fn lost_datagrams_use_the_link_all_the_same() {
    let arrivals = arrivals(&config().with_loss(0.5), 40, Duration::ZERO);
    assert!(arrivals.iter().any(Option::is_none));
    for (index, at) in (0..).zip(&arrivals) {
        assert!(at.is_none_or(|at| at == millis(11 + index)));
    }
}

#[test]
fn the_share_of_losses_is_the_one_asked_for() {
    let mut link = link(&LinkConfig::default().with_loss(0.02));
    for _ in 0..200_000 {
        let _ = link.offer(Instant::ZERO, MILLISECOND_LONG, NOT_ECT);
    }
    // 4,000 expected, standard deviation 63.
    let lost = link.stats().dropped_by_loss.datagrams;
    assert!((3_750..=4_250).contains(&lost), "{lost}");
}

/// One of each kind of loss.
fn kinds_of_loss() -> [Loss; 3] {
    let bursts = GilbertElliott { loss_in_good: 0.01, ..GilbertElliott::new(0.05, 0.4) };
    [0.05.into(), Loss::Correlated { share: 0.3, correlation: 0.5 }, bursts.into()]
}

#[test]
fn chance_of_one_kind_changes_nothing_of_another() {
    let lost = |config: &LinkConfig| -> Vec<bool> {
        arrivals(config, 2_000, Duration::from_millis(2)).iter().map(Option::is_none).collect()
    };
    for loss in kinds_of_loss() {
        let plain = config().with_loss(loss);
        let expected = lost(&plain);
        assert!(expected.contains(&true) && expected.contains(&false));
        let jittery = plain.clone().with_jitter(Duration::from_millis(5));
        assert_eq!(lost(&jittery), expected);
        assert_eq!(lost(&jittery.with_jitter_correlation(0.75)), expected);
        let reorder = Some(Reorder { share: 0.1, extra: Duration::from_millis(7) });
        let duplicate = Some(Duplicate { share: 0.1, after: Duration::ZERO });
        assert_eq!(lost(&LinkConfig { reorder, duplicate, ..plain }), expected);
    }
}

#[test]
fn no_kind_of_loss_changes_when_the_others_arrive() {
    for correlation in [0.0, 0.75] {
        let jittery = config().with_jitter(Duration::from_millis(5));
        let jittery = jittery.with_jitter_correlation(correlation);
        let every = Duration::from_millis(1);
        let expected = arrivals(&jittery, 2_000, every);
        assert!(expected.iter().all(Option::is_some));
        for loss in kinds_of_loss() {
            let arrivals = arrivals(&jittery.clone().with_loss(loss), 2_000, every);
            assert!(arrivals.contains(&None));
            let mut both = arrivals.iter().zip(&expected);
            assert!(both.all(|(at, expected)| at.is_none() || at == expected));
        }
    }
}

#[test]
fn a_full_queue_does_not_shift_the_losses_behind_it() {
    for loss in kinds_of_loss() {
        let wide = config().with_loss(loss).with_queue(QueueLimit::Unlimited);
        let narrow = config().with_loss(loss).with_queue(QueueLimit::packets(2));
        let (mut wide, mut narrow) = (link(&wide), link(&narrow));
        for index in 0..1_000u64 {
            // Bursts of ten, of which the narrow queue takes two.
            let now = millis(index / 10 * 20);
            let expected = wide.offer(now, MILLISECOND_LONG, NOT_ECT);
            let verdict = narrow.offer(now, MILLISECOND_LONG, NOT_ECT);
            if verdict != Verdict::Dropped(DropReason::QueueFull) {
                assert_eq!(arrival(verdict).is_some(), arrival(expected).is_some());
            }
        }
    }
}

#[test]
fn jitter_spreads_around_the_delay_and_keeps_the_order() {
    let jittery = config().with_jitter(Duration::from_millis(4));
    let apart = arrivals(&jittery, 1_000, Duration::from_millis(10));
    let delays: Vec<u64> = (0..)
        .zip(&apart)
        .map(|(index, at)| (at.unwrap() - millis(index * 10 + 1)).as_micros())
        .collect();
    assert!(delays.iter().all(|delay| (6_000..=14_000).contains(delay)));
    let mean = delays.iter().sum::<u64>() / 1_000;
    assert!((9_800..=10_200).contains(&mean), "{mean}");

    let close = arrivals(&jittery, 1_000, Duration::from_millis(1));
    assert!(close.is_sorted());
    let free = LinkConfig { jitter_reorders: true, ..jittery };
    assert!(!arrivals(&free, 1_000, Duration::from_millis(1)).is_sorted());
}

#[test]
fn late_datagrams_are_overtaken_and_hold_up_nobody() {
    let reorder = Some(Reorder { share: 0.1, extra: Duration::from_millis(50) });
    let config = LinkConfig { reorder, ..config() };
    let arrivals = arrivals(&config, 1_000, Duration::from_millis(1));
    let on_time = (0..).zip(&arrivals).filter(|(index, at)| **at == Some(millis(index + 11)));
    let late = (0..).zip(&arrivals).filter(|(index, at)| **at == Some(millis(index + 61)));
    let (on_time, late) = (on_time.count(), late.count());
    assert_eq!(on_time + late, 1_000);
    assert!((60..=140).contains(&late), "{late}");
}

#[test]
fn copies_arrive_behind_their_original() {
    let duplicate = Some(Duplicate { share: 1.0, after: Duration::from_millis(2) });
    let config = LinkConfig { duplicate, ..config() };
    let mut link = link(&config.with_outage(Outage::for_good(millis(14))));
    let twice = Verdict::Deliver { at: millis(11), duplicate_at: Some(millis(13)), marked: false };
    assert_eq!(link.offer(millis(0), MILLISECOND_LONG, NOT_ECT), twice);
    // Its copy would arrive when the link is down.
    assert_eq!(link.offer(millis(1), MILLISECOND_LONG, NOT_ECT), Verdict::deliver(millis(12)));
    assert_eq!(link.stats().duplicated.datagrams, 1);
}

#[test]
fn capable_datagrams_that_find_more_than_the_threshold_are_marked() {
    let config = config().with_mark(QueueLimit::Bytes(Bytes(2_500)));
    let mut link = link(&config);
    let mut marked = |at, ecn| match link.offer(at, MILLISECOND_LONG, ecn) {
        Verdict::Deliver { marked, .. } => marked,
        Verdict::Dropped(reason) => panic!("{reason:?}"),
    };
    // The first three find 0, 1,250 and 2,500 B.
    assert_eq!([ECT_0; 3].map(|ecn| marked(millis(0), ecn)), [false; 3]);
    let more = [ECT_0, NOT_ECT, ECT_1, CE].map(|ecn| marked(millis(0), ecn));
    assert_eq!(more, [true, false, true, false]);
    // Of those seven, two are left 5 ms later.
    assert!(!marked(millis(5), ECT_0));
    assert!(marked(millis(5), ECT_0));
    assert_eq!(link.stats().marked, Count { datagrams: 3, bytes: Bytes(3_750) });
    assert_eq!(link.stats().delivered.datagrams, 9);
}

#[test]
fn marks_change_no_arrival_and_no_chance() {
    let plain = config().with_loss(0.05).with_jitter(Duration::from_millis(5));
    let mut plain_link = link(&plain);
    let mut marking = link(&plain.with_mark(QueueLimit::packets(2)));
    for index in 0..1_000 {
        let now = millis(index / 10 * 10);
        let expected = arrival(plain_link.offer(now, MILLISECOND_LONG, ECT_0));
        assert_eq!(arrival(marking.offer(now, MILLISECOND_LONG, ECT_0)), expected);
    }
    assert!(marking.stats().marked.datagrams > 500);
    assert_eq!(plain_link.stats().marked, Count::default());
}

#[test]
fn what_waits_leaves_at_the_rate_of_the_step() {
    let config = config().with_step(millis(3), Rate::from_mbit_per_sec(100));
    let mut link = link(&config);
    let arrivals = [(); 5].map(|()| arrival(link.offer(millis(0), MILLISECOND_LONG, NOT_ECT)));
    let expected = [11_000, 12_000, 13_000, 13_100, 13_200];
    assert_eq!(arrivals, expected.map(|micros| Some(nanos(micros * 1_000))));
    // The queue empties as fast.
    let queued = [1_000, 3_000, 3_099, 3_100].map(|micros| link.queued(nanos(micros * 1_000)).0);
    assert_eq!(queued, [5_000, 2_500, 2_500, 1_250]);
}

#[test]
fn an_offer_in_the_past_counts_as_made_now() {
    let mut link = link(&config());
    let _ = link.offer(millis(50), MILLISECOND_LONG, NOT_ECT);
    assert_eq!(link.offer(millis(10), MILLISECOND_LONG, NOT_ECT), Verdict::deliver(millis(62)));
}

/// A link as one would write it down first: every datagram is kept for ever, its end of
/// transmission as an exact fraction, and the queue is counted anew at each offer.
struct NaiveQueue {
    bits_per_sec: u128,
    limit: u64,
    /// End of transmission in nanoseconds × rate, and bytes.
    sent: Vec<(u128, u64)>,
}

impl NaiveQueue {
    /// When the last bit leaves, rounded up; `None` if the queue is full.
    fn offer(&mut self, now: u64, bytes: u64) -> Option<u64> {
        let now = u128::from(now) * self.bits_per_sec;
        // The link lets go at whole nanoseconds.
        let whole = |ends: u128| ends.div_ceil(self.bits_per_sec) * self.bits_per_sec;
        let inside = self.sent.iter().filter(|(ends, _)| whole(*ends) > now);
        let occupied: u64 = inside.map(|(_, bytes)| bytes).sum();
        if occupied > 0 && occupied + bytes > self.limit {
            return None;
        }
        let free = self.sent.last().map_or(0, |(ends, _)| *ends);
        let starts = if free / self.bits_per_sec * self.bits_per_sec < now { now } else { free };
        let ends = starts + u128::from(bytes) * 8_000_000_000;
        self.sent.push((ends, bytes));
        Some(u64::try_from(ends.div_ceil(self.bits_per_sec)).unwrap())
    }
}

proptest! {
    #[test]
    fn the_link_agrees_with_a_naive_queue(
        bits_per_sec in 1_000_000u64..1_000_000_000,
        limit in 0u64..20_000,
        offers in proptest::collection::vec((0u64..2_000_000, 1u64..1_500), 1..200),
    ) {
        let rate = Some(Rate::from_bits_per_sec(bits_per_sec));
        let queue = QueueLimit::Bytes(Bytes(limit));
        let mut link = link(&LinkConfig { rate, queue, ..LinkConfig::default() });
        let mut naive = NaiveQueue { bits_per_sec: bits_per_sec.into(), limit, sent: Vec::new() };
        let mut now = 0;
        for (wait, payload) in offers {
            now += wait;
            let expected = naive.offer(now, payload + 28).map(Instant::from_nanos);
            let found = arrival(link.offer(Instant::from_nanos(now), Bytes(payload), NOT_ECT));
            prop_assert_eq!(found, expected);
        }
        let stats = link.stats();
        let delivered = stats.delivered.datagrams;
        prop_assert_eq!(stats.offered.datagrams, delivered + stats.dropped().datagrams);
    }
}
