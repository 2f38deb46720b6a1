//! The order of the states and their times.

use super::*;

const PROBES: [&str; 4] = [
    "probe bandwidth: down",
    "probe bandwidth: cruise",
    "probe bandwidth: refill",
    "probe bandwidth: up",
];

/// What may follow on a state in what is published. Down may be over as it begins, and Up with the
/// losses that came with its start.
fn follows(state: &str, next: &str) -> bool {
    let [down, cruise, refill, up] = PROBES;
    next == "probe rtt"
        || match state {
            "startup" => next == "drain",
            "drain" => next == down || next == cruise,
            "probe rtt" => next == cruise || next == "startup",
            _ if state == down => next == cruise || next == refill,
            _ if state == cruise => next == refill,
            _ if state == refill => next == up || next == down,
            _ => state == up && next == down,
        }
}

#[test]
fn states_follow_on_each_other_as_in_the_diagram() {
    let [.., refill, up] = PROBES;
    for link in [
        short(),
        Link { buffer: Bytes(20_000), ..short() },
        Link { loss_every: 50, ..short() },
        Link { ack_every: 10, jitter: ms(5), ..long() },
    ] {
        let mut net = alone(link);
        net.run(ms(20_000));
        let sender = &net.senders[0];
        let pairs: Vec<_> = sender.states.windows(2).map(|pair| (pair[0].1, pair[1].1)).collect();
        let wrong = pairs.iter().find(|(state, next)| !follows(state, next));
        assert_eq!(wrong, None, "{link:?}");
        assert_eq!(&pairs[0], &("startup", "drain"));
        for name in [refill, up, "probe rtt"] {
            assert!(stays(sender, name).len() >= 3, "{name}: {link:?}");
        }
    }
}

#[test]
fn startup_fills_the_path_and_drain_empties_the_queue() {
    let mut net = alone(short());
    assert!(run_to(&mut net, "drain", ms(1_000)));
    let published = net.senders[0].controller.published();
    assert!((share(published.bandwidth.unwrap(), mbit(10)) - 1.0).abs() <= 0.02);
    // Half of the pace, twice of what the path holds.
    assert!((share(published.pacing_rate.unwrap(), mbit(10)) - 0.495).abs() <= 0.01);
    assert!(net.senders[0].in_flight > net.link.bdp());
    let from = net.now;
    assert!(run_to(&mut net, "probe bandwidth: cruise", ms(1_000)));
    assert!(net.now - from <= ms(100), "about a round trip with its queue");
    assert!(net.queued <= Bytes(2_500));
}

#[test]
fn startup_doubles_the_rate_each_round_trip() {
    let mut net = alone(long());
    net.run(ms(1_000));
    let sender = &net.senders[0];
    let rate = |at| {
        let rates =
            sender.between(ms(at), ms(at + 101)).filter_map(|seen| seen.published.bandwidth);
        rates.max().unwrap()
    };
    for at in [300, 400, 500, 600] {
        let growth = share(rate(at + 100), rate(at));
        assert!((1.8..2.5).contains(&growth), "{at} ms: {growth}");
    }
}

#[test]
fn too_much_loss_in_a_round_trip_ends_startup() {
    let mut net = alone(Link { buffer: Bytes(50_000), ..short() });
    assert!(run_to(&mut net, "drain", ms(1_000)));
    let sender = &net.senders[0];
    let first = sender.seen.iter().find(|seen| !seen.lost.is_zero()).unwrap();
    // The first loss begins a round trip, at the end of which it is over. A plateau takes three.
    let rtt = first.rtt;
    assert!((rtt..rtt + rtt).contains(&(net.now - first.at)), "{} of {rtt}", net.now - first.at);
    let mut deep = alone(short());
    assert!(run_to(&mut deep, "drain", ms(1_000)));
    assert!(deep.now > net.now + ms(100));
    // The limit is what was delivered in that round trip: no more than path and queue hold.
    net.run(ms(2_000));
    let most = net.senders[0].between(ms(500), ms(2_500)).map(|seen| seen.published.cwnd).max();
    assert!(most.unwrap() <= Bytes(105_000), "{most:?}");
}

#[test]
fn an_application_that_limits_stays_in_startup_until_there_is_loss() {
    let mut net = Bottleneck::new(long());
    net.add(Box::new(bbr3(1)), App::Paced(mbit(40)));
    net.run(ms(4_000));
    assert_eq!(state(&net), "startup");
    // 400 packets in flight, and no queue: Drain and Down are over as they begin.
    net.link.loss_every = 20;
    assert!(run_to(&mut net, PROBES[1], ms(500)));
}

#[test]
fn a_probe_of_an_application_that_limits_goes_on_until_there_is_loss() {
    let mut net = alone(long());
    net.run(ms(6_000));
    assert!(run_to(&mut net, PROBES[2], ms(5_000)));
    net.set_app(0, App::Paced(mbit(40)));
    assert!(run_to(&mut net, PROBES[3], ms(1_000)));
    net.run(ms(1_500));
    assert_eq!(state(&net), PROBES[3]);
    net.link.loss_every = 20;
    assert!(run_to(&mut net, PROBES[1], ms(500)));
}

#[test]
fn drain_gives_up_after_three_round_trips() {
    let mut net = alone(short());
    assert!(run_to(&mut net, "drain", ms(1_000)));
    let from = net.now;
    // Less than the pace of Drain: the queue grows.
    net.link.rate = mbit(3);
    assert!(run_to(&mut net, PROBES[0], ms(5_000)));
    assert!(net.senders[0].in_flight > Bytes(60_000));
    let rounds = net.now - from;
    assert!((ms(400)..ms(1_500)).contains(&rounds), "{rounds}");
}

#[test]
fn down_gives_up_when_it_is_time_to_probe() {
    let mut net = alone(Link::new(mbit(300), ms(20)));
    assert!(run_to(&mut net, PROBES[0], ms(3_000)));
    let from = net.now;
    net.link.rate = mbit(200);
    assert!(run_to(&mut net, PROBES[2], ms(5_000)));
    assert!((ms(2_000)..ms(3_050)).contains(&(net.now - from)), "{}", net.now - from);
    let last = net.senders[0].states.iter().rev().nth(1).unwrap();
    assert_eq!(last.1, PROBES[0], "without Cruise");
}

#[test]
fn a_probe_fills_the_path_for_a_round_trip_and_asks_for_three() {
    let mut net = alone(short());
    net.run(ms(30_000));
    let sender = &net.senders[0];
    for (from, to) in stays(sender, PROBES[2]) {
        assert!((ms(41)..ms(43)).contains(&(to - from)), "{}", to - from);
    }
    for (from, to) in stays(sender, PROBES[3]) {
        // The round trips grow with the queue.
        assert!((ms(120)..ms(250)).contains(&(to - from)), "{}", to - from);
        let during = |seen: &&Seen| from <= seen.at && seen.at < to;
        let paces = sender.seen.iter().filter(during).map(|seen| seen.published.pacing_rate);
        assert!(
            paces.into_iter().all(|pace| (share(pace.unwrap(), mbit(10)) - 1.2375).abs() < 0.02)
        );
    }
}

/// Times from the end of a probe, or of ProbeRTT, to the start of the next probe.
fn waits(net: &Bottleneck) -> Vec<Duration> {
    let mut waits = Vec::new();
    let mut from = None;
    for pair in net.senders[0].states.windows(2) {
        let ((_, before), (at, state)) = (pair[0], pair[1]);
        if before == PROBES[3] || before == "probe rtt" {
            from = Some(at);
        }
        if state == PROBES[2] {
            waits.extend(from.take().map(|from| at - from));
        }
    }
    waits
}

#[test]
fn probes_come_every_2_to_3_s_on_a_path_that_holds_much() {
    let mut net = alone(long());
    net.run(ms(60_000));
    let waits = waits(&net);
    assert!(waits.len() >= 10);
    assert!(waits.iter().all(|wait| (ms(2_000)..ms(3_010)).contains(wait)), "{waits:?}");
    let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
    assert!(most.saturating_sub(*least) > ms(300), "{waits:?}");
}

#[test]
fn probes_come_as_often_as_a_reno_flow_would_cause_loss() {
    // 20 ms round trips and a bit: with 12 packets on the way, 12 or 13 of them, with 600, 62 or 63.
    // Those of Down are longer by its queue.
    for (rate, least, most) in [(6, 240, 340), (300, 1_240, 1_350)] {
        let mut net = alone(Link::new(mbit(rate), ms(20)));
        net.run(ms(20_000));
        let waits = waits(&net);
        assert!(waits.len() >= 7);
        assert!(waits.iter().all(|wait| (ms(least)..ms(most)).contains(wait)), "{waits:?}");
    }
}

#[test]
fn half_of_what_the_path_holds_is_in_flight_for_200_ms_each_5_s() {
    let mut net = alone(short());
    net.run(ms(30_000));
    let sender = &net.senders[0];
    let stays = stays(sender, "probe rtt");
    assert_eq!(stays.len(), 5);
    let mut last_end = Instant::ZERO + ms(41);
    for &(from, to) in &stays {
        assert!((ms(5_000)..ms(5_003)).contains(&(from - last_end)), "{}", from - last_end);
        assert!((ms(200)..ms(245)).contains(&(to - from)), "{}", to - from);
        last_end = to;
        let during = |seen: &&Seen| from <= seen.at && seen.at < to;
        for seen in sender.seen.iter().filter(during) {
            assert_eq!(seen.published.cwnd, Bytes(25_625), "half of 10 Mbit/s for 41 ms");
        }
        // What is in flight falls to it in half a round trip.
        let late = sender.seen.iter().filter(|seen| from + ms(45) <= seen.at && seen.at < to);
        assert!(late.into_iter().all(|seen| seen.in_flight <= Bytes(25_625)));
    }
}

#[test]
fn probe_rtt_in_startup_leads_back_to_it() {
    let mut net = Bottleneck::new(long());
    net.add(Box::new(bbr3(1)), App::Paced(mbit(40)));
    assert!(run_to(&mut net, "probe rtt", ms(6_000)));
    let cwnd = net.senders[0].between(ms(0), ms(5_000)).last().unwrap().published.cwnd;
    assert!(run_to(&mut net, "startup", ms(500)));
    assert!(net.senders[0].controller.published().cwnd >= cwnd);
}
