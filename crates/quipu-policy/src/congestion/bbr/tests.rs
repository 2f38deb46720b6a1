//! BBR on a bottleneck.

use proptest::prelude::*;
use quipu_base::{Duration, Instant, PathId, Rate, Seed};

use super::*;
use crate::congestion::testing::{App, Bottleneck, Link, SIZE, Seen, Sender};
use crate::key::PathKey;
use crate::registry::{BuildContext, Layer, Part, Registry};

mod events;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn mbit(rate: f64) -> Rate {
    Rate::from_bits_per_sec((rate * 1e6) as u64)
}

fn key(id: u32) -> PathKey {
    PathKey { slot: 0, id: PathId(id) }
}

/// A controller of that name for the path with that id, of a connection with that seed.
fn named(text: &str, id: u32, seed: u64) -> Box<dyn Controller> {
    let part = Part::read(&Registry::builtin(), Layer::Congestion, text).unwrap();
    let built = part.build(&mut BuildContext::new(Seed::new(seed))).unwrap();
    built.controller.unwrap().make(key(id), SIZE)
}

fn bbr() -> Box<dyn Controller> {
    named("bbr", 0, 1)
}

/// The bottleneck of the ns-3 paper's figure 2: 4 Mbit/s, 180 ms, 72 packets.
fn link() -> Link {
    Link::new(Rate::from_mbit_per_sec(4), ms(180))
}

/// One flow on a bottleneck for some time.
fn run(link: Link, time: Duration) -> Bottleneck {
    let mut net = Bottleneck::new(link);
    net.add(bbr(), App::Endless);
    net.run(time);
    net
}

/// Mean round-trip time from one second up to another, in ms.
fn mean_rtt(sender: &Sender, from: u64, to: u64) -> f64 {
    let rtts: Vec<_> = sender.between(secs(from), secs(to)).map(|seen| seen.rtt).collect();
    rtts.iter().map(|rtt| rtt.as_secs_f64() * 1e3).sum::<f64>() / rtts.len() as f64
}

fn bandwidth(sender: &Sender) -> Rate {
    sender.last().published.bandwidth.unwrap()
}

#[test]
fn the_states_follow_each_other_in_their_times() {
    let net = run(link(), secs(35));
    let states = &net.senders[0].states;
    let names: Vec<_> = states.iter().map(|&(_, name)| name).collect();
    let start = ["startup", "drain", "probe bandwidth", "probe rtt", "probe bandwidth"];
    assert_eq!(names[..5], start);
    assert!(names[4..].chunks(2).all(|pair| pair[0] == "probe bandwidth"));
    assert!(names[3..].chunks(2).all(|pair| pair[0] == "probe rtt"));
    assert_eq!(states.iter().filter(|(_, name)| *name == "probe rtt").count(), 3);
    let lengths: Vec<_> = states.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    // Startup doubles from 10 packets to twice 73, then takes three rounds with a queue to see it.
    assert!((ms(1_500)..ms(3_000)).contains(&lengths[0]), "{}", lengths[0]);
    // Drain lets go of what is beyond the product: a round trip at 1 - 1 / 2.885 of the rate.
    assert!((ms(200)..ms(700)).contains(&lengths[1]), "{}", lengths[1]);
    for pair in states.windows(2) {
        let (from, to) = (pair[0].0, pair[1].0);
        if pair[0].1 == "probe rtt" {
            // What is in flight goes, then come 200 ms and the end of a round trip.
            assert!((ms(380)..ms(620)).contains(&(to - from)), "{}", to - from);
        }
    }
    // Ten seconds after the least round-trip time was last seen.
    let first = states[3].0 - Instant::ZERO;
    let least_at = net.senders[0]
        .between(Duration::ZERO, first)
        .filter(|seen| seen.rtt <= ms(180) + link().rate.time_for(SIZE))
        .map(|seen| seen.at)
        .max()
        .unwrap();
    let since = states[3].0 - least_at;
    assert!(secs(10) < since && since < secs(10) + ms(100), "{since}");
}

/// The ns-3 paper's figure 2. Where nothing disturbs the measuring, bandwidth is exact and the queue
/// is that of probing alone.
#[test]
fn on_a_quiet_path_the_window_is_twice_the_product_and_the_queue_small() {
    let net = run(link(), secs(30));
    let sender = &net.senders[0];
    let product = link().rate.bytes_in(ms(180) + link().rate.time_for(SIZE));
    for seen in sender.between(secs(4), secs(10)) {
        assert_eq!(seen.published.bandwidth, Some(link().rate));
        let window = product.saturating_mul(2) + SIZE.saturating_mul(3);
        assert!(seen.published.cwnd.0.abs_diff(window.0) <= 2, "{}", seen.published.cwnd);
    }
    assert!((185.0..205.0).contains(&mean_rtt(sender, 4, 10)));
    assert!(sender.goodput(secs(4), secs(10)) >= mbit(3.98));
}

/// The paper's explanation of its figure 2: where acknowledgements jitter, the maximum of many
/// samples lies above the bandwidth, and a queue grows until the window limits it.
#[test]
fn on_a_jittery_path_the_round_trip_time_nears_twice_its_least() {
    let net = run(Link { jitter: ms(20), ..link() }, secs(30));
    let sender = &net.senders[0];
    assert!(bandwidth(sender) > mbit(4.04), "{}", bandwidth(sender));
    let settled = mean_rtt(sender, 16, 20);
    assert!((340.0..400.0).contains(&settled), "{settled}");
    // Each cycle fills the window, and drains an eighth of it.
    let part: Vec<_> = sender.between(secs(16), secs(20)).collect();
    let filled = |seen: &Seen| seen.in_flight.0 as f64 / seen.published.cwnd.0 as f64;
    let mean = part.iter().map(|seen| filled(seen)).sum::<f64>() / part.len() as f64;
    let most = part.iter().map(|seen| filled(seen)).fold(0.0, f64::max);
    assert!(mean > 0.9 && most > 0.98, "{mean} {most}");
}

/// The paper's figure 3a.
#[test]
fn more_capacity_is_found_within_a_few_cycles() {
    let mut net = run(Link { rate: mbit(2.0), ..link() }, secs(20));
    net.link.rate = mbit(4.0);
    net.run(secs(20));
    let found = net.senders[0]
        .between(secs(20), secs(40))
        .find(|seen| seen.published.bandwidth >= Some(mbit(3.9)))
        .unwrap();
    // A probe finds a quarter more: four of them double it, in cycles of eight round trips.
    assert!(found.at - Instant::ZERO < secs(20) + ms(5 * 8 * 190), "{}", found.at);
    assert!(net.senders[0].goodput(secs(30), secs(32)) >= mbit(3.9));
}

/// The paper's figure 3b.
#[test]
fn less_capacity_is_believed_after_ten_rounds() {
    let mut net = run(link(), secs(20));
    net.link.rate = mbit(2.0);
    net.run(secs(25));
    let sender = &net.senders[0];
    // Rounds from the change on, by what had been delivered when the newest packet left.
    let (mut rounds, mut end) = (0, sender.between(secs(0), secs(20)).last().unwrap().delivered);
    let mut believed = None;
    for seen in sender.between(secs(20), secs(45)) {
        if seen.rate.is_some_and(|sample| sample.prior_delivered >= end) {
            (rounds, end) = (rounds + 1, seen.delivered);
        }
        if seen.published.bandwidth < Some(mbit(2.2)) {
            believed = Some((rounds, seen.at));
            break;
        }
    }
    let (rounds, _) = believed.unwrap();
    assert!((10..=12).contains(&rounds), "{rounds}");
    let worst = sender.between(secs(20), secs(30)).map(|seen| seen.rtt).max().unwrap();
    assert!(worst > ms(600), "{worst}");
    assert!(mean_rtt(sender, 40, 44) < 250.0);
    assert!(sender.goodput(secs(40), secs(44)) >= mbit(1.95));
}

#[test]
fn random_loss_costs_little() {
    for (loss_every, least) in [(100, 3.8), (20, 3.5)] {
        let net = run(Link { loss_every, ..link() }, secs(40));
        let goodput = net.senders[0].goodput(secs(5), secs(40));
        assert!(goodput >= mbit(least), "{loss_every}: {goodput}");
    }
}

/// The paper's figure 4: the second flow begins at 15 s.
#[test]
fn two_flows_come_near_to_half_each() {
    let mut net = run(link(), secs(15));
    net.add(named("bbr", 0, 2), App::Endless);
    net.run(secs(105));
    let shares = [0, 1].map(|flow| net.senders[flow].goodput(secs(60), secs(120)));
    assert!(shares.iter().all(|&share| share >= mbit(1.2)), "{shares:?}");
    assert!(shares[0].bits_per_sec() + shares[1].bits_per_sec() >= 3_800_000);
}

#[test]
fn samples_that_the_application_limits_leave_bandwidth_alone() {
    let mut net = run(link(), secs(5));
    net.set_app(0, App::Paced(mbit(1.0)));
    net.run(secs(25));
    let sender = &net.senders[0];
    assert_eq!(bandwidth(sender), link().rate);
    assert!(sender.goodput(secs(10), secs(30)) <= mbit(1.02));
    // Its queue is empty by itself: the least round-trip time needs no probe.
    assert!(sender.states.iter().all(|&(_, name)| name != "probe rtt"));
}

#[test]
fn after_idleness_it_sends_at_the_bandwidth_and_probes_no_round_trip_time() {
    let mut net = run(link(), secs(6));
    net.set_app(0, App::Idle);
    net.run(secs(20));
    let window = net.senders[0].last().published.cwnd;
    net.set_app(0, App::Endless);
    let published = net.senders[0].controller.published();
    assert_eq!(published.pacing_rate, Some(link().rate));
    assert_eq!(published.cwnd, window);
    net.run(secs(3));
    let sender = &net.senders[0];
    assert_eq!(sender.last().published.state, "probe bandwidth");
    assert!(sender.goodput(secs(27), secs(29)) >= mbit(3.9));
}

/// A probe of the round-trip time lasts a hundred rounds there, far more than bandwidth counts for.
#[test]
fn a_probe_of_the_round_trip_time_does_not_lower_the_bandwidth() {
    let net = run(Link::new(mbit(100.0), ms(2)), secs(25));
    let sender = &net.senders[0];
    let probes = sender.states.iter().filter(|&&(_, name)| name == "probe rtt").count();
    assert!(probes >= 1, "{:?}", sender.states);
    let low = sender.between(secs(2), secs(25)).map(|seen| seen.published.bandwidth).min();
    assert!(low.flatten() >= Some(mbit(99.0)), "{low:?}");
}

#[test]
fn another_return_route_voids_the_least_round_trip_time_and_not_the_bandwidth() {
    let mut net = run(link(), secs(6));
    net.link.delay = ms(300);
    // The last acknowledgements of the old way.
    net.run(ms(200));
    let before = net.senders[0].last().published;
    net.change(0, PathChange::ReturnRoute);
    assert_eq!(net.senders[0].controller.published(), before);
    net.run(secs(2));
    let after = net.senders[0].last().published;
    assert_eq!(after.bandwidth, before.bandwidth);
    assert!(after.min_rtt >= Some(ms(300)), "{:?}", after.min_rtt);
    let low = net.senders[0].between(ms(6_250), ms(8_200)).map(|seen| seen.published.cwnd).min();
    assert!(low >= Some(before.cwnd), "{low:?}");
}

#[test]
fn each_path_draws_from_its_own_stream() {
    let shared = |id, seed| {
        let mut net = Bottleneck::new(link());
        net.add(named("bbr", id, seed), App::Endless);
        net.run(secs(12));
        let paces = net.senders[0].seen.iter().map(|seen| seen.published.pacing_rate);
        paces.collect::<Vec<_>>()
    };
    let first = shared(0, 1);
    assert_eq!(first, shared(0, 1));
    let others = [shared(1, 1), shared(2, 1), shared(0, 2), shared(0, 3)];
    assert!(others.iter().any(|other| *other != first));
}

#[test]
fn gains_and_quantum_are_as_asked_for() {
    let first = |text| named(text, 0, 1).published().pacing_rate.unwrap().bits_per_sec();
    // Ten packets in 1 ms.
    assert_eq!(first("bbr"), 288_539_008);
    assert_eq!(first("bbr:startup_gain=2.89"), 289_000_000);
    let window = |text| {
        let mut net = Bottleneck::new(link());
        net.add(named(text, 0, 1), App::Endless);
        net.run(secs(6));
        net.senders[0].last().published.cwnd
    };
    // At 4 Mbit/s two packets at a time.
    assert_eq!(window("bbr:quantum=rate"), window("bbr") + SIZE.saturating_mul(3));
}

/// Watches that no window grows that was not what limited sending.
struct Watch {
    inner: Box<dyn Controller>,
    most: Bytes,
}

impl Watch {
    fn new() -> Self {
        let inner = bbr();
        let most = inner.published().cwnd;
        Watch { inner, most }
    }

    fn note(&mut self) {
        self.most = self.most.max(self.published().cwnd);
    }
}

impl Controller for Watch {
    fn on_sent(&mut self, sent: &SentInfo, peers: &Peers<'_>) {
        let before = self.published().cwnd;
        self.inner.on_sent(sent, peers);
        assert_eq!(self.published().cwnd, before);
    }

    fn on_acked(&mut self, acked: &AckedInfo<'_>, peers: &Peers<'_>) {
        self.inner.on_acked(acked, peers);
        // What was saved may come back, but nothing is added.
        assert!(!acked.limited || self.published().cwnd <= self.most, "{acked:?}");
        self.note();
    }

    fn on_lost(&mut self, lost: &LostInfo<'_>, peers: &Peers<'_>) {
        self.inner.on_lost(lost, peers);
        self.note();
    }

    fn on_change(&mut self, change: PathChange, peers: &Peers<'_>) {
        self.inner.on_change(change, peers);
        self.note();
    }

    fn published(&self) -> Published {
        self.inner.published()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// On any path: four packets at least, no growth of a window that does not limit, and all gets
    /// through in the end.
    #[test]
    fn it_holds_its_bounds_on_any_path(
        kbit in 50u64..50_000,
        delay in 0u64..400,
        buffer in 2u64..400,
        loss_every in prop_oneof![Just(0u64), 2u64..300],
        jitter in 0u64..50,
        ack_every in 1usize..12,
        limited_at in prop::option::of(1u64..100),
    ) {
        let mut net = Bottleneck::new(Link {
            rate: Rate::from_bits_per_sec(kbit * 1_000),
            delay: ms(delay),
            buffer: SIZE.saturating_mul(buffer),
            loss_every,
            random_loss: 0,
            jitter: ms(jitter),
            ack_every,
        });
        net.add(Box::new(Watch::new()), App::Endless);
        net.run(secs(3));
        if let Some(percent) = limited_at {
            net.set_app(0, App::Paced(Rate::from_bits_per_sec(kbit * 10 * percent)));
        }
        net.run(secs(3));
        for seen in &net.senders[0].seen {
            prop_assert!(seen.published.cwnd >= SIZE.saturating_mul(4));
            prop_assert!(seen.published.pacing_rate > Some(Rate::ZERO));
        }
        net.set_app(0, App::Idle);
        net.link.loss_every = 0;
        net.run(secs(600));
        prop_assert_eq!(net.senders[0].in_flight, Bytes::ZERO);
    }
}
