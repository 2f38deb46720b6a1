use std::collections::BTreeMap;

use proptest::prelude::*;
use quipu_base::{Duration, Rate};

use super::*;
use crate::ecn::{CE, ECT_0, NOT_ECT};
use crate::{
    Aqm, AqmLimit, CoDel, Count, DeliveryTrace, Duplicate, FqCoDel, LinkConfig, LinkStats, Outage,
    Pie, QueueLimit, RateStep, Reorder,
};

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

fn codel() -> Aqm {
    Aqm::CoDel(CoDel::default())
}

fn fq_codel() -> Aqm {
    Aqm::FqCoDel(FqCoDel::default())
}

fn pie() -> Aqm {
    Aqm::Pie(Pie::default())
}

/// Waits may last so long that nothing is dropped.
fn idle_codel() -> Aqm {
    let hour = Duration::from_secs(3_600);
    let limit = AqmLimit::of_datagrams(AqmLimit::MOST_DATAGRAMS);
    Aqm::CoDel(CoDel { target: hour, interval: hour, limit })
}

#[expect(clippy::large_enum_variant, reason = "one at a time, in tests")]
enum Either {
    Plain(Link),
    Managed(ManagedLink),
}

/// A link with a driver that asks it in time.
struct Driven {
    link: Either,
    /// Those that wait: their number.
    waiting: BTreeMap<Ticket, usize>,
    /// Of each datagram offered, in order: when it was, and what became of it.
    offered: Vec<(Instant, Option<Verdict>)>,
}

impl Driven {
    fn new(config: &LinkConfig) -> Self {
        let seed = Seed::new(1).child("link", 0);
        let link = match config.aqm {
            None => Either::Plain(Link::new(config, seed).unwrap()),
            Some(_) => Either::Managed(ManagedLink::new(config, seed).unwrap()),
        };
        Driven { link, waiting: BTreeMap::new(), offered: Vec::new() }
    }

    /// Lets all that is decided up to `now` happen; those that were decided.
    fn run_until(&mut self, now: Instant) -> Vec<usize> {
        let mut decided = Vec::new();
        let Either::Managed(link) = &mut self.link else { return decided };
        while let Some(at) = link.next_departure()
            && at <= now
        {
            while let Some(Departure { ticket, verdict }) = link.depart(at) {
                let number = self.waiting.remove(&ticket).expect("each ticket is told once");
                assert_eq!(self.offered[number].1.replace(verdict), None);
                decided.push(number);
            }
        }
        decided
    }

    fn offer(&mut self, now: Instant, payload: Bytes, ecn: u8, flow: u64) {
        self.run_until(now);
        let number = self.offered.len();
        let verdict = match &mut self.link {
            Either::Plain(link) => Some(link.offer(now, payload, ecn)),
            Either::Managed(link) => match link.offer(now, payload, ecn, FlowKey(flow)) {
                Offer::Dropped(reason) => Some(Verdict::Dropped(reason)),
                Offer::Queued(ticket) => {
                    assert_eq!(
                        self.waiting.insert(ticket, number),
                        None,
                        "a ticket of nobody else"
                    );
                    None
                }
            },
        };
        self.offered.push((now, verdict));
        self.run_until(now);
    }

    fn next_departure(&self) -> Option<Instant> {
        match &self.link {
            Either::Plain(_) => None,
            Either::Managed(link) => link.next_departure(),
        }
    }

    fn stats(&self) -> &LinkStats {
        match &self.link {
            Either::Plain(link) => link.stats(),
            Either::Managed(link) => link.stats(),
        }
    }

    fn queued(&self, now: Instant) -> Bytes {
        match &self.link {
            Either::Plain(link) => link.queued(now),
            Either::Managed(link) => link.queued(now),
        }
    }

    fn finish(mut self) -> (Vec<(Instant, Verdict)>, LinkStats) {
        self.run_until(Instant::FAR_FUTURE);
        assert!(self.waiting.is_empty());
        assert_eq!(self.next_departure(), None);
        let stats = *self.stats();
        let decided = self.offered.into_iter().map(|(at, verdict)| (at, verdict.unwrap()));
        (decided.collect(), stats)
    }

    fn verdicts(self) -> Vec<Verdict> {
        self.finish().0.into_iter().map(|(_, verdict)| verdict).collect()
    }
}

/// How long a datagram that arrives has waited, on the link of [`config`].
fn wait(offered_at: Instant, verdict: Verdict) -> Option<Duration> {
    match verdict {
        Verdict::Deliver { at, .. } => {
            Some((at - offered_at).saturating_sub(Duration::from_millis(11)))
        }
        _ => None,
    }
}

#[test]
fn each_kind_of_link_is_made_of_its_own_config() {
    let refused = |error: Option<InvalidConfig>| error.map(|error| error.field);
    let managed = config().with_aqm(codel());
    assert_eq!(refused(Link::new(&managed, Seed::new(1)).err()), Some("aqm"));
    assert_eq!(refused(ManagedLink::new(&config(), Seed::new(1)).err()), Some("aqm"));
    let limit = AqmLimit::of_datagrams(0);
    let none = config().with_aqm(Aqm::CoDel(CoDel { limit, ..CoDel::default() }));
    assert_eq!(refused(ManagedLink::new(&none, Seed::new(1)).err()), Some("aqm.limit"));
}

#[test]
fn datagrams_wait_for_those_before_them_and_for_no_more() {
    for aqm in [codel(), fq_codel(), pie()] {
        let mut link = Driven::new(&config().with_aqm(aqm));
        for _ in 0..3 {
            link.offer(millis(0), MILLISECOND_LONG, NOT_ECT, 0);
        }
        assert_eq!(link.queued(millis(0)), Bytes(3_750));
        assert_eq!(link.stats().waiting.datagrams, 2);
        link.run_until(millis(1));
        assert_eq!(link.queued(millis(1)), Bytes(2_500));
        link.offer(millis(20), MILLISECOND_LONG, NOT_ECT, 0);
        assert_eq!(link.stats().max_queue, Bytes(3_750));
        let expected = [11, 12, 13, 31].map(|at| Verdict::deliver(millis(at)));
        assert_eq!(link.verdicts(), expected);
    }
}

#[test]
fn an_outage_takes_what_is_offered_waits_or_is_on_the_way() {
    let down = Outage::between(millis(20), millis(30));
    let mut link = Driven::new(&config().with_aqm(codel()).with_outage(down));
    for at in [8, 9, 9, 20, 29, 30] {
        link.offer(millis(at), MILLISECOND_LONG, NOT_ECT, 0);
    }
    let lost = Verdict::Dropped(DropReason::Outage);
    let expected = [Verdict::deliver(millis(19)), lost, lost, lost, lost];
    let (decided, stats) = link.finish();
    let verdicts: Vec<_> = decided.iter().map(|(_, verdict)| *verdict).collect();
    assert_eq!(verdicts[..5], expected);
    assert_eq!(verdicts[5], Verdict::deliver(millis(41)));
    assert_eq!(stats.dropped_by_outage.datagrams, 4);
    assert_eq!(stats.waiting, Count::default());
}

#[test]
fn a_driver_that_is_late_learns_the_same() {
    let mut link = ManagedLink::new(&config().with_aqm(codel()), Seed::new(1)).unwrap();
    let offer = |link: &mut ManagedLink, at| {
        let _ = link.offer(millis(at), MILLISECOND_LONG, NOT_ECT, FlowKey::default());
    };
    for _ in 0..5 {
        offer(&mut link, 0);
    }
    let decided = std::iter::from_fn(|| link.depart(millis(1_000)));
    let verdicts: Vec<_> = decided.map(|departure| departure.verdict).collect();
    assert_eq!(verdicts, [11, 12, 13, 14, 15].map(|at| Verdict::deliver(millis(at))));
    assert_eq!(link.depart(millis(1_000)), None);
    // An offer makes up for what nobody has asked for.
    offer(&mut link, 2_000);
    offer(&mut link, 3_000);
    let decided = std::iter::from_fn(|| link.depart(millis(3_000)));
    let verdicts: Vec<_> = decided.map(|departure| departure.verdict).collect();
    assert_eq!(verdicts, [2_011, 3_011].map(|at| Verdict::deliver(millis(at))));
}

/// A sender with additive increase and multiplicative decrease, once per round trip, over `config`
/// for `seconds`: what became of each datagram, and the link's counts.
fn responsive(config: &LinkConfig, ecn: u8, seconds: u64) -> (Vec<(Instant, Verdict)>, LinkStats) {
    /// From the far end back.
    const BACK: Duration = Duration::from_millis(30);
    let mut driven = Driven::new(config);
    let (mut window, mut in_flight, mut calm_from) = (10.0f64, 0u32, Instant::ZERO);
    // When the sender learns of what, and whether that is good.
    let mut news: BTreeMap<(Instant, usize), bool> = BTreeMap::new();
    let mut now = Instant::ZERO;
    while now < millis(seconds * 1_000) {
        let decided = driven.run_until(now);
        let mut fresh = decided;
        while f64::from(in_flight) < window {
            let number = driven.offered.len();
            driven.offer(now, MILLISECOND_LONG, ecn, 0);
            in_flight += 1;
            fresh.extend(driven.offered[number].1.map(|_| number));
        }
        for number in fresh {
            let (offered_at, verdict) = driven.offered[number];
            let (at, good) = match verdict.unwrap() {
                Verdict::Deliver { at, marked, .. } => (at, !marked),
                // Noticed about when an acknowledgement would have come.
                _ => (now.max(offered_at) + Duration::from_millis(10), false),
            };
            news.insert((at + BACK, number), good);
        }
        let next_departure = driven.next_departure();
        let next_news = news.first_key_value().map(|(&(at, _), _)| at);
        now = next_departure.into_iter().chain(next_news).min().unwrap();
        while let Some(entry) = news.first_entry()
            && entry.key().0 <= now
        {
            in_flight -= 1;
            if entry.remove() {
                window += 1.0 / window;
            } else if calm_from <= now {
                window = (window / 2.0).max(2.0);
                calm_from = now + Duration::from_millis(50);
            }
        }
    }
    driven.finish()
}

/// Waits of the datagrams offered from the tenth second on, in order of length, in microseconds.
fn late_waits(decided: &[(Instant, Verdict)]) -> Vec<u64> {
    let late = decided.iter().filter(|(at, _)| *at >= millis(10_000));
    let mut waits: Vec<u64> =
        late.filter_map(|&(at, verdict)| wait(at, verdict)).map(Duration::as_micros).collect();
    waits.sort_unstable();
    waits
}

fn share(sorted: &[u64], percent: usize) -> u64 {
    sorted[sorted.len() * percent / 100]
}

#[test]
fn a_saturating_sender_finds_the_queue_near_the_target() {
    let deep = config().with_queue(QueueLimit::Bytes(Bytes(1_250_000)));
    let (decided, stats) = responsive(&deep, NOT_ECT, 40);
    let waits = late_waits(&decided);
    assert!(share(&waits, 50) > 100_000, "drop-tail: {}", share(&waits, 50));
    assert_eq!(stats.dropped_by_management, Count::default());
    // Target, and the least and most that half of the datagrams wait, in milliseconds.
    for (aqm, least, most) in [(codel(), 1, 8), (fq_codel(), 1, 8), (pie(), 6, 22)] {
        let (decided, stats) = responsive(&deep.clone().with_aqm(aqm), NOT_ECT, 40);
        let waits = late_waits(&decided);
        let half = share(&waits, 50);
        assert!((least * 1_000..=most * 1_000).contains(&half), "{aqm:?}: {half} µs");
        assert!(share(&waits, 95) < 4 * most * 1_000, "{aqm:?}: {} µs", share(&waits, 95));
        // 30,000 would keep the link busy from the tenth second on; a queue this short and a window
        // that is halved leave it idle at times.
        assert!(waits.len() > 25_000, "{aqm:?}: {}", waits.len());
        assert!(stats.dropped_by_management.datagrams > 10, "{aqm:?}");
        assert_eq!(stats.dropped_by_queue, Count::default());
    }
}

#[test]
fn capable_datagrams_are_marked_and_not_dropped() {
    for aqm in [codel(), fq_codel(), pie()] {
        let (decided, stats) = responsive(&config().with_aqm(aqm), ECT_0, 40);
        assert_eq!(stats.dropped(), Count::default(), "{aqm:?}");
        assert!(stats.marked.datagrams > 10, "{aqm:?}: {}", stats.marked.datagrams);
        assert_eq!(stats.offered.datagrams, stats.delivered.datagrams);
        let half = share(&late_waits(&decided), 50);
        assert!(half < 22_000, "{aqm:?}: {half} µs");
    }
    // One that was marked before is kept and counts as marked elsewhere.
    let (_, stats) = responsive(&config().with_aqm(codel()), CE, 5);
    assert_eq!((stats.marked, stats.dropped()), (Count::default(), Count::default()));
}

#[test]
fn pie_settles_at_the_share_that_is_too_much() {
    // Five for each four that the link can send, whatever is lost.
    let mut link = Driven::new(&config().with_aqm(pie()));
    for step in 0..75_000 {
        link.offer(nanos(step * 800_000), MILLISECOND_LONG, NOT_ECT, 0);
    }
    let (decided, _) = link.finish();
    let late: Vec<_> = decided.iter().filter(|(at, _)| *at >= millis(20_000)).collect();
    let dropped = late.iter().filter(|(_, verdict)| wait(millis(0), *verdict).is_none()).count();
    let share = dropped as f64 / late.len() as f64;
    assert!((share - 0.2).abs() < 0.01, "{share}");
    let waits = late_waits(&decided);
    let mean = waits.iter().sum::<u64>() / waits.len() as u64;
    assert!((13_000..=17_000).contains(&mean), "{mean} µs");
}

/// The longest wait, in microseconds, of a datagram of 100 B each 20 ms beside a flow that fills
/// the link.
fn sparse_beside_bulk(config: &LinkConfig) -> u64 {
    let mut link = Driven::new(config);
    let mut sparse = Vec::new();
    for step in 0..20_000u64 {
        // 5 % more than the link sends.
        link.offer(nanos(step * 950_000), MILLISECOND_LONG, NOT_ECT, 1);
        if step % 21 == 0 {
            sparse.push(link.offered.len());
            link.offer(nanos(step * 950_000 + 500_000), Bytes(72), NOT_ECT, 2);
        }
    }
    let (decided, _) = link.finish();
    // 0.08 ms to send it, and 10 ms of delay.
    let waits = sparse.iter().map(|&number| match decided[number] {
        (offered_at, Verdict::Deliver { at, .. }) => (at - offered_at).as_micros() - 10_080,
        (_, verdict) => panic!("{verdict:?}"),
    });
    waits.max().unwrap()
}

#[test]
fn a_sparse_flow_does_not_wait_for_a_bulk_flow() {
    let deep = config().with_queue(QueueLimit::Unlimited);
    assert!(sparse_beside_bulk(&deep) > 500_000);
    // Two quanta of 1,514 B take 2.4 ms.
    let apart = sparse_beside_bulk(&deep.with_aqm(fq_codel()));
    assert!(apart <= 2_423, "{apart} µs");
}

#[test]
fn opportunities_are_used_as_without_management() {
    // Two at 5 ms, one at 9 ms, and so on each 10 ms.
    let trace = DeliveryTrace::parse("5\n5\n9\n10").unwrap();
    let plain = LinkConfig::recorded(trace, Duration::ZERO).with_queue(QueueLimit::Unlimited);
    let run = |config: &LinkConfig| {
        let mut link = Driven::new(config);
        for (at, payload) in [(0, 672), (0, 672), (1, 772), (5, 1_472), (5, 1_472), (42, 72)] {
            link.offer(millis(at), Bytes(payload), NOT_ECT, 0);
        }
        link.verdicts()
    };
    // The first two share the first opportunity and leave 100 B, the third takes those and 700 B of
    // the second; those offered at that instant are late for it.
    let expected = [5, 5, 5, 9, 10, 45].map(|at| Verdict::deliver(millis(at)));
    assert_eq!(run(&plain), expected);
    assert_eq!(run(&plain.with_aqm(codel())), expected);
}

#[test]
fn a_wait_ends_when_an_opportunity_comes() {
    // One each 100 ms: what waits between them waits in the queue, where CoDel sees it.
    let trace = DeliveryTrace::parse("100").unwrap();
    let mut link = Driven::new(&LinkConfig::recorded(trace, Duration::ZERO).with_aqm(codel()));
    for step in 0..400 {
        link.offer(millis(step * 50), Bytes(1_472), NOT_ECT, 0);
    }
    let (decided, stats) = link.finish();
    assert!(stats.dropped_by_management.datagrams > 20);
    assert!(decided.iter().all(|(_, verdict)| match verdict {
        Verdict::Deliver { at, .. } => at.as_nanos() % 100_000_000 == 0,
        _ => true,
    }));
}

fn aqms() -> impl Strategy<Value = Aqm> {
    let limit = || {
        (1u32..60, 1_000u64..100_000)
            .prop_map(|(datagrams, bytes)| AqmLimit { datagrams, bytes: Bytes(bytes) })
    };
    prop_oneof![
        limit().prop_map(|limit| Aqm::CoDel(CoDel { limit, ..CoDel::default() })),
        (limit(), 1u32..8).prop_map(|(limit, flows)| Aqm::FqCoDel(FqCoDel {
            limit,
            flows,
            ..FqCoDel::default()
        })),
        limit().prop_map(|limit| Aqm::Pie(Pie { limit, ..Pie::default() })),
    ]
}

/// Links on which anything happens, without a queue.
fn links() -> impl Strategy<Value = LinkConfig> {
    let sender = prop_oneof![
        (1_000_000u64..50_000_000, proptest::collection::vec((1u64..400, 0u64..50_000_000), 0..4))
            .prop_map(|(rate, steps)| {
                let mut at = 0;
                let mut steps: Vec<RateStep> = steps
                    .into_iter()
                    .map(|(wait, rate)| {
                        at += wait;
                        RateStep { at: millis(at), rate: Rate::from_bits_per_sec(rate) }
                    })
                    .collect();
                if let Some(last) = steps.last_mut() {
                    last.rate = Rate::from_mbit_per_sec(7);
                }
                let rate = Some(Rate::from_bits_per_sec(rate));
                LinkConfig { rate, steps, ..LinkConfig::default() }
            }),
        proptest::collection::vec(0u32..20, 1..20).prop_map(|waits| {
            let mut at = 1;
            let lines = waits.into_iter().map(|wait| {
                at += wait;
                format!("{at}\n")
            });
            let trace = DeliveryTrace::parse(&lines.collect::<String>()).unwrap();
            LinkConfig::recorded(trace, Duration::ZERO)
        }),
    ];
    let outages = proptest::collection::vec((0u64..900, 1u64..100), 0..3);
    let mtu = proptest::option::of(1_000u64..1_500);
    let rest = (sender, outages, 0u64..20, any::<bool>(), mtu);
    rest.prop_map(|(link, outages, delay, reorders, mtu)| {
        let outages = outages.into_iter();
        LinkConfig {
            mtu: mtu.map(Bytes),
            delay: Duration::from_millis(delay),
            jitter: Duration::from_micros(delay * 300),
            jitter_reorders: reorders,
            loss: 0.05.into(),
            queue: QueueLimit::Unlimited,
            mark: Some(QueueLimit::packets(3)),
            reorder: Some(Reorder { share: 0.05, extra: Duration::from_millis(3) }),
            duplicate: Some(Duplicate { share: 0.05, after: Duration::from_millis(1) }),
            outages: outages
                .map(|(at, long)| Outage::between(millis(at), millis(at + long)))
                .collect(),
            ..link
        }
    })
}

type Offers = Vec<(u64, u64, u64)>;

/// Times between offers in microseconds, payloads, and flows.
fn offers() -> impl Strategy<Value = Offers> {
    proptest::collection::vec((0u64..5_000, 1u64..1_472, 0u64..5), 1..300)
}

fn driven(config: &LinkConfig, offers: &Offers, ecn: u8) -> (Vec<(Instant, Verdict)>, LinkStats) {
    let mut link = Driven::new(config);
    let mut now = Instant::ZERO;
    for &(wait, payload, flow) in offers {
        now += Duration::from_micros(wait);
        link.offer(now, Bytes(payload), ecn, flow);
    }
    link.finish()
}

proptest! {
    #[test]
    fn a_queue_whose_management_is_idle_is_a_drop_tail_queue(
        link in links(),
        offers in offers(),
    ) {
        let plain = driven(&link, &offers, ECT_0);
        let managed = driven(&link.with_aqm(idle_codel()), &offers, ECT_0);
        prop_assert_eq!(managed, plain);
    }

    #[test]
    fn every_datagram_is_delivered_or_dropped_once(
        link in links(),
        aqm in aqms(),
        offers in offers(),
        ecn in prop_oneof![Just(NOT_ECT), Just(ECT_0)],
    ) {
        let (decided, stats) = driven(&link.with_aqm(aqm), &offers, ecn);
        let count = |wanted: fn(&Verdict) -> bool| {
            decided.iter().filter(|(_, verdict)| wanted(verdict)).count() as u64
        };
        let delivered = count(|verdict| matches!(verdict, Verdict::Deliver { .. }));
        let dropped = count(|verdict| matches!(verdict, Verdict::Dropped(_)));
        prop_assert_eq!(delivered + dropped, offers.len() as u64);
        prop_assert_eq!(stats.delivered.datagrams, delivered);
        prop_assert_eq!(stats.dropped().datagrams, dropped);
        prop_assert_eq!(stats.offered.datagrams, offers.len() as u64);
        prop_assert_eq!(stats.offered.bytes, stats.delivered.bytes + stats.dropped().bytes);
        prop_assert_eq!(stats.waiting, Count::default());
        let marks = count(|verdict| matches!(verdict, Verdict::Deliver { marked: true, .. }));
        prop_assert_eq!(stats.marked.datagrams, marks);
        if ecn == ECT_0 && !matches!(aqm, Aqm::Pie(_)) {
            prop_assert_eq!(stats.dropped_by_management, Count::default());
        }
    }

    /// What chance says of the n-th datagram does not depend on the queue.
    #[test]
    fn management_shifts_no_loss(link in links(), aqm in aqms(), offers in offers()) {
        let plain = driven(&link, &offers, NOT_ECT).0;
        let managed = driven(&link.with_aqm(aqm), &offers, NOT_ECT).0;
        let lost = Verdict::Dropped(DropReason::Loss);
        for ((_, managed), (_, plain)) in managed.into_iter().zip(plain) {
            match (managed, plain) {
                (Verdict::Deliver { .. }, plain) => prop_assert_ne!(plain, lost),
                (managed, Verdict::Deliver { .. }) => prop_assert_ne!(managed, lost),
                _ => {}
            }
        }
    }
}
