//! What single events do.

use std::sync::{Arc, Mutex};

use quipu_base::{PacketNumber, PathId};

use super::*;
use crate::congestion::{AckedPacket, LostPacket};
use crate::key::PathKey;

pub(super) fn peers() -> Peers<'static> {
    Peers { own: PathKey { slot: 0, id: PathId(0) }, all: &[] }
}

/// A controller in a bottleneck that can be looked into.
#[derive(Clone)]
struct Shared(Arc<Mutex<Bbr3>>);

impl Shared {
    fn get(&self) -> Bbr3 {
        self.0.lock().unwrap().clone()
    }
}

impl Controller for Shared {
    fn on_sent(&mut self, sent: &SentInfo, peers: &Peers<'_>) {
        self.0.lock().unwrap().on_sent(sent, peers);
    }

    fn on_acked(&mut self, acked: &AckedInfo<'_>, peers: &Peers<'_>) {
        self.0.lock().unwrap().on_acked(acked, peers);
    }

    fn on_lost(&mut self, lost: &LostInfo<'_>, peers: &Peers<'_>) {
        self.0.lock().unwrap().on_lost(lost, peers);
    }

    fn on_change(&mut self, change: PathChange, peers: &Peers<'_>) {
        self.0.lock().unwrap().on_change(change, peers);
    }

    fn published(&self) -> Published {
        self.0.lock().unwrap().published()
    }
}

/// A controller as it is when it comes to a state in an endless flow, and the time.
fn as_of(link: Link, name: &str) -> (Bbr3, Instant) {
    let shared = Shared(Arc::new(Mutex::new(bbr3(1))));
    let mut net = Bottleneck::new(link);
    net.add(Box::new(shared.clone()), App::Endless);
    assert!(run_to(&mut net, name, ms(6_000)));
    (shared.get(), net.now)
}

/// Packets lost now that left with so many bytes in flight each, nothing having been lost before.
fn lose(bbr: &mut Bbr3, now: Instant, in_flight: &[u64], limited: bool, persistent: bool) {
    let packets: Vec<_> = (0u64..)
        .zip(in_flight)
        .map(|(index, &in_flight_at_send)| LostPacket {
            pn: PacketNumber(10 * index),
            sent_at: now - ms(1),
            bytes: SIZE,
            in_flight_at_send: Bytes(in_flight_at_send),
            lost_at_send: Bytes::ZERO,
            limited,
        })
        .collect();
    let bytes = SIZE.saturating_mul(packets.len() as u64);
    let info = LostInfo {
        now,
        packets: &packets,
        bytes,
        lost: bytes,
        newest_sent_at: now - ms(1),
        in_flight: Bytes(50_000),
        persistent,
    };
    bbr.on_lost(&info, &peers());
}

/// A packet acknowledged now that left when all was delivered that is so far.
fn ack(bbr: &mut Bbr3, now: Instant, rate: Rate, volume: u64, limited: bool) {
    let prior_delivered = bbr.delivered;
    let info = AckedInfo {
        now,
        packets: &[AckedPacket { sent_at: now - ms(50), bytes: SIZE }],
        prior_in_flight: Bytes(50_000),
        in_flight: Bytes(50_000) - SIZE,
        limited,
        srtt: Some(ms(50)),
        min_rtt: Some(ms(41)),
        latest_rtt: Some(ms(50)),
        rate: Some(RateSample {
            rate,
            delivered: Bytes(volume),
            interval: ms(50),
            prior_delivered,
            in_flight_at_send: Bytes(50_000),
            lost: Bytes::ZERO,
            limited,
        }),
        delivered: prior_delivered + Bytes(volume),
        lost: Bytes::ZERO,
    };
    bbr.on_acked(&info, &peers());
}

const UP: &str = "probe bandwidth: up";
const CRUISE: &str = "probe bandwidth: cruise";

#[test]
fn the_limit_is_what_was_in_flight_as_the_loss_rate_crossed_2_percent() {
    let (mut bbr, now) = as_of(short(), UP);
    // 1 lost of 79: 1.3 %. With the second 2.5 %, crossed after 740 B of it:
    // (0.02 · 98,750 − 1,250) / 0.98. The third no longer counts.
    lose(&mut bbr, now, &[98_750, 100_000, 120_000], false, false);
    assert_eq!(bbr.long_term.limit(), Some(Bytes(98_750 + 739)));
    assert_eq!(bbr.published().state, "probe bandwidth: down");
    lose(&mut bbr, now, &[60_000; 9], false, false);
    assert_eq!(bbr.long_term.limit(), Some(Bytes(98_750 + 739)), "once per probe");
}

#[test]
fn the_limit_is_at_least_beta_of_what_should_be_in_flight() {
    let (mut bbr, now) = as_of(short(), UP);
    lose(&mut bbr, now, &[5_000], false, false);
    let target = bbr.target_in_flight();
    assert_eq!(target, Bytes(51_250), "10 Mbit/s for 41 ms");
    assert_eq!(bbr.long_term.limit(), Some(Bytes(35_875)));
}

#[test]
fn a_limited_packet_ends_a_probe_and_sets_no_limit() {
    let (mut bbr, now) = as_of(short(), UP);
    lose(&mut bbr, now, &[50_000; 2], true, false);
    assert_eq!((bbr.long_term.limit(), bbr.state), (None, State::Down));
}

#[test]
fn loss_below_the_threshold_does_not_end_a_probe() {
    let (mut bbr, now) = as_of(short(), UP);
    lose(&mut bbr, now, &[62_500], false, false);
    assert_eq!((bbr.long_term.limit(), bbr.state), (None, State::Up));
}

#[test]
fn a_round_trip_with_loss_while_cruising_lowers_the_short_term_limits() {
    let (mut bbr, now) = as_of(short(), CRUISE);
    let cwnd = bbr.cwnd;
    lose(&mut bbr, now, &[50_000], false, false);
    assert_eq!(bbr.short_term.rate(), None, "not before the end of the round trip");
    bbr.signals.forget();
    bbr.signals.on_congestion(bbr.delivered);
    ack(&mut bbr, now + ms(50), mbit(8), 40_000, false);
    assert_eq!(bbr.short_term.rate(), Some(mbit(8)));
    assert_eq!(bbr.short_term.in_flight(), Some(Bytes(cwnd.0 * 7 / 10)));
    assert_eq!(bbr.published().bandwidth, Some(mbit(8)));
    assert_eq!(bbr.cwnd, Bytes(cwnd.0 * 7 / 10));
    // Without loss they stay, with loss and little delivered they fall to 0.7 of them.
    ack(&mut bbr, now + ms(100), mbit(2), 10_000, false);
    assert_eq!(bbr.short_term.rate(), Some(mbit(8)));
    lose(&mut bbr, now + ms(100), &[50_000], false, false);
    ack(&mut bbr, now + ms(150), mbit(2), 10_000, false);
    assert_eq!(bbr.short_term.rate(), Some(Rate::from_bits_per_sec(5_600_000)));
}

#[test]
fn loss_while_looking_for_more_lowers_no_short_term_limit() {
    for name in ["startup", "probe bandwidth: refill", UP] {
        let (mut bbr, now) = as_of(long(), name);
        lose(&mut bbr, now, &[10_000_000], false, false);
        ack(&mut bbr, now + ms(50), mbit(1), 10_000, false);
        assert_eq!(bbr.short_term.rate(), None, "{name}");
        assert!(bbr.state.looks_for_more(), "{name}");
    }
}

#[test]
fn a_probe_after_one_too_high_turns_back_at_the_limit_and_is_repeated() {
    let mut net = alone(short());
    assert!(run_to(&mut net, CRUISE, ms(2_000)));
    net.link.buffer = Bytes(25_000);
    net.run(ms(20_000));
    let sender = &net.senders[0];
    let states: Vec<_> = sender.states.iter().map(|&(_, state)| state).collect();
    let down = "probe bandwidth: down";
    // Without Cruise, and with the same cycle's second probe.
    let repeated = [UP, down, "probe bandwidth: refill", UP];
    let count = states.windows(4).filter(|window| **window == repeated).count();
    assert!(count >= 2, "{states:?}");
}

#[test]
fn silence_takes_the_place_of_probe_rtt_and_ends_with_the_pace_of_the_path() {
    let mut net = alone(short());
    assert!(run_to(&mut net, UP, ms(3_000)));
    net.set_app(0, App::Idle);
    net.run(ms(6_000));
    assert_eq!(net.senders[0].in_flight, Bytes::ZERO);
    assert!(state(&net) != "probe rtt");
    net.set_app(0, App::Endless);
    let pace = net.senders[0].controller.published().pacing_rate.unwrap();
    assert!((share(pace, mbit(10)) - 0.99).abs() <= 0.01, "{pace}");
    net.run(ms(1_000));
    let since = |&&(at, _): &&(Instant, &str)| at >= Instant::ZERO + ms(8_000);
    let mut states = net.senders[0].states.iter().filter(since);
    assert!(states.all(|&(_, state)| state != "probe rtt"));
}

#[test]
fn probe_rtt_that_silence_outlasted_is_over_with_the_next_packet() {
    let mut net = alone(short());
    assert!(run_to(&mut net, "probe rtt", ms(6_000)));
    net.run(ms(60));
    net.set_app(0, App::Idle);
    net.run(ms(1_000));
    assert_eq!(state(&net), "probe rtt");
    net.set_app(0, App::Endless);
    assert_eq!(state(&net), CRUISE);
    assert!(net.senders[0].controller.published().cwnd >= Bytes(100_000));
}

#[test]
fn another_return_route_voids_the_least_round_trip_time() {
    let cwnd = |told: bool| {
        let mut net = alone(short());
        net.run(ms(1_000));
        net.link.delay = ms(120);
        // What was on the way back arrives.
        net.run(ms(60));
        if told {
            net.change(0, PathChange::ReturnRoute);
        }
        net.run(ms(700));
        net.senders[0].controller.published().cwnd
    };
    assert!(cwnd(false) <= Bytes(106_250));
    assert!(cwnd(true) >= Bytes(290_000), "{}", cwnd(true));
}

#[test]
fn marks_count_as_lost_packets() {
    let mark = |marks, now| PathChange::EcnCongestion { marks, sent_at: now - ms(50), now };
    // While cruising: at the end of the round trip.
    let (mut bbr, now) = as_of(short(), CRUISE);
    let cwnd = bbr.cwnd;
    bbr.on_change(mark(1, now), &peers());
    ack(&mut bbr, now + ms(50), mbit(8), 40_000, false);
    assert_eq!(bbr.short_term.rate(), Some(mbit(8)));
    assert_eq!(bbr.cwnd, Bytes(cwnd.0 * 7 / 10));
    // In a probe: by their share of what was in flight, here 50,000 B.
    let (mut bbr, now) = as_of(long(), UP);
    ack(&mut bbr, now, mbit(100), 40_000, false);
    bbr.last_sample =
        bbr.last_sample.map(|last| RateSample { in_flight_at_send: Bytes(1_250_000), ..last });
    bbr.on_change(mark(20, now), &peers());
    assert_eq!(bbr.state, State::Up, "20 of 1,000 packets");
    bbr.on_change(mark(1, now), &peers());
    assert_eq!((bbr.state, bbr.long_term.limit()), (State::Down, Some(Bytes(1_250_000))));
}

#[test]
fn persistent_congestion_leaves_the_least_window_and_the_bandwidth() {
    let (mut bbr, now) = as_of(short(), CRUISE);
    let (cwnd, bandwidth) = (bbr.cwnd, bbr.published().bandwidth);
    lose(&mut bbr, now, &[50_000; 40], false, true);
    assert_eq!(bbr.cwnd, Bytes(5_000));
    assert_eq!(bbr.published().bandwidth, bandwidth);
    // It grows by what is acknowledged, up to 0.7 of what it was.
    ack(&mut bbr, now + ms(60), mbit(10), 1_250, false);
    assert_eq!(bbr.cwnd, Bytes(6_250));
    assert_eq!(bbr.short_term.in_flight(), Some(Bytes(cwnd.0 * 7 / 10)));
}

#[test]
fn the_window_before_loss_returns_with_the_end_of_recovery() {
    let (mut bbr, now) = as_of(short(), UP);
    let cwnd = bbr.cwnd;
    lose(&mut bbr, now, &[62_500], false, false);
    bbr.cwnd = Bytes(20_000);
    ack(&mut bbr, now + ms(49), mbit(10), 1_250, false);
    assert_eq!(bbr.cwnd, Bytes(21_250));
    ack(&mut bbr, now + ms(51), mbit(10), 1_250, false);
    assert!(bbr.cwnd >= cwnd, "{}", bbr.cwnd);
}

#[test]
fn the_first_pace_is_that_of_a_millisecond_until_there_is_a_sample() {
    let mut bbr = bbr3(1);
    // 2.77 · 12,500 B in 1 ms, then in 50 ms.
    assert_eq!(bbr.published().pacing_rate, Some(Rate::from_bits_per_sec(277_000_000)));
    ack(&mut bbr, Instant::ZERO + ms(50), Rate::from_bits_per_sec(200_000), 1_250, false);
    assert_eq!(bbr.published().pacing_rate, Some(Rate::from_bits_per_sec(5_540_000)));
    assert_eq!(bbr.published().state, "startup");
    assert_eq!(bbr.published().ssthresh, None);
}

#[test]
fn another_datagram_size_keeps_the_window_at_its_minimum_and_initial_number() {
    let mut bbr = bbr3(1);
    bbr.on_change(PathChange::DatagramSize(Bytes(1_400)), &peers());
    assert_eq!(bbr.cwnd, Bytes(14_000));
    let (mut bbr, _) = as_of(Link::new(Rate::from_bits_per_sec(200_000), ms(10)), CRUISE);
    bbr.cwnd = Bytes(5_000);
    bbr.on_change(PathChange::DatagramSize(Bytes(1_400)), &peers());
    assert_eq!(bbr.cwnd, Bytes(5_600));
}

#[test]
fn an_absurd_first_round_trip_leaves_a_pace() {
    let mut bbr = bbr3(1);
    let info = AckedInfo {
        now: Instant::FAR_FUTURE,
        packets: &[AckedPacket { sent_at: Instant::ZERO, bytes: SIZE }],
        prior_in_flight: SIZE,
        in_flight: Bytes::ZERO,
        limited: false,
        srtt: Some(Duration::MAX),
        min_rtt: Some(Duration::MAX),
        latest_rtt: Some(Duration::MAX),
        rate: None,
        delivered: SIZE,
        lost: Bytes::ZERO,
    };
    bbr.on_acked(&info, &peers());
    assert_eq!(bbr.published().pacing_rate, Some(Rate::from_bytes_per_sec(1_250)));
}

#[test]
fn the_pace_stays_a_margin_below_the_bandwidth() {
    let (mut bbr, _) = as_of(short(), CRUISE);
    for (margin, pace) in [(0.0, 10_000_000), (0.01, 9_900_000), (0.1, 9_000_000)] {
        bbr.tuning.pacing_margin = margin;
        bbr.bandwidth = mbit(10);
        bbr.set_pace(1.0);
        assert_eq!(bbr.published().pacing_rate, Some(Rate::from_bits_per_sec(pace)));
    }
}

#[test]
fn parameters_are_read_and_held_to_their_ranges() {
    use crate::registry::{BuildContext, Layer, PolicySpec, Registry};
    let registry = Registry::builtin();
    let text = "bbr3:loss_threshold=0.05,beta=0.5,headroom=0.3,pacing_margin=0.1";
    let spec = PolicySpec::choose(&registry, [(Layer::Congestion, text)]).unwrap();
    assert!(spec.to_string().ends_with(text));
    let policies = spec.build(&BuildContext::new(Seed::new(1))).unwrap();
    assert_eq!(policies.controllers.make(peers().own, SIZE).published().state, "startup");
    for bad in ["beta=1.1", "loss_threshold=0.6", "headroom=-1", "margin=0"] {
        let text = format!("bbr3:{bad}");
        assert!(PolicySpec::choose(&registry, [(Layer::Congestion, text.as_str())]).is_err());
    }
}

#[test]
fn a_round_of_losses_that_were_none_leaves_the_limits_and_the_probe() {
    let (mut bbr, now) = as_of(short(), UP);
    let (long_term, cwnd) = (bbr.long_term.limit(), bbr.cwnd);
    lose(&mut bbr, now, &[98_750, 100_000, 120_000], false, false);
    lose(&mut bbr, now, &[120_000; 9], false, true);
    assert_eq!(bbr.published().state, "probe bandwidth: down");
    assert!(bbr.long_term.limit().is_some() && bbr.cwnd < cwnd);
    bbr.on_change(PathChange::SpuriousLoss { since: now, now: now + ms(9) }, &peers());
    assert_eq!(bbr.published().state, UP);
    assert_eq!((bbr.long_term.limit(), bbr.cwnd), (long_term, cwnd));
}
