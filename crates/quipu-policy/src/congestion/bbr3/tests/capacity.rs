//! How much of a link is used, as it changes, loses and is shared.

use super::*;

/// The share of the link that was used from one time to another.
fn used(net: &Bottleneck, from_ms: u64, to_ms: u64) -> f64 {
    let rates = net.senders.iter().map(|sender| sender.goodput(ms(from_ms), ms(to_ms)));
    rates.map(|rate| share(rate, net.link.rate)).sum()
}

#[test]
fn a_link_is_full_and_its_queue_short() {
    for link in [short(), long(), Link { buffer: Bytes(25_000), ..short() }] {
        let mut net = alone(link);
        net.run(ms(20_000));
        assert!(used(&net, 2_000, 20_000) >= 0.95, "{link:?}: {}", used(&net, 2_000, 20_000));
        let rtts = net.senders[0].between(ms(2_000), ms(20_000)).map(|seen| seen.rtt);
        let mut rtts: Vec<_> = rtts.collect();
        rtts.sort();
        assert!(rtts[rtts.len() / 2] <= link.delay.scaled(11, 10), "{link:?}");
    }
}

#[test]
fn ten_times_the_capacity_is_found_in_a_probe() {
    for buffer in [10_000_000, 50_000] {
        let mut net = alone(Link { buffer: Bytes(buffer), ..short() });
        net.run(ms(10_000));
        net.link.rate = mbit(100);
        net.link.buffer = Bytes(buffer.max(500_000));
        net.run(ms(6_000));
        let found = net.senders[0].controller.published().bandwidth.unwrap();
        assert!(share(found, mbit(100)) >= 0.9, "{buffer}: {found}");
        net.run(ms(10_000));
        assert!(used(&net, 16_000, 26_000) >= 0.9, "{buffer}: {}", used(&net, 16_000, 26_000));
    }
}

#[test]
fn a_tenth_of_the_capacity_is_learnt_within_two_cycles() {
    let mut net = alone(Link { buffer: Bytes(500_000), ..Link::new(mbit(100), ms(40)) });
    net.run(ms(10_000));
    net.link.rate = mbit(10);
    net.run(ms(12_000));
    let learnt = net.senders[0].controller.published().bandwidth.unwrap();
    assert!((share(learnt, mbit(10)) - 1.0).abs() <= 0.05, "{learnt}");
    net.run(ms(10_000));
    assert!(used(&net, 22_000, 32_000) >= 0.93, "{}", used(&net, 22_000, 32_000));
    assert!(net.senders[0].last().rtt <= ms(100));
}

#[test]
fn loss_of_1_percent_is_borne_and_5_percent_makes_it_yield() {
    let link = Link { buffer: Bytes(500_000), ..Link::new(mbit(50), ms(40)) };
    let run = |random_loss| {
        let mut net = alone(Link { random_loss, ..link });
        net.run(ms(60_000));
        let probes = net.senders[0].between(ms(5_000), ms(60_000));
        let probes = probes.filter(|seen| seen.published.state == "probe bandwidth: up");
        let found: Vec<f64> =
            probes.map(|seen| share(seen.published.bandwidth.unwrap(), mbit(50))).collect();
        (used(&net, 5_000, 60_000), found.iter().sum::<f64>() / found.len() as f64)
    };
    // Between probes a lossy round trip leaves what was delivered in it: 0.99^n after n of them, 0.74
    // on average over the 63 from probe to probe. Probes find the whole link again.
    let (one, found) = run(10);
    assert!(one >= 0.72, "{one}");
    assert!(found >= 0.95, "{found}");
    let (five, found) = run(50);
    assert!(five <= 0.2, "{five}");
    assert!(found <= 0.2, "{found}");
}

#[test]
fn bursts_of_acknowledgements_leave_no_gaps() {
    // 64 packets at once, more than the path holds: the window has to be larger by that.
    let mut net = alone(Link { ack_every: 64, ..short() });
    net.run(ms(10_000));
    assert!(used(&net, 2_000, 10_000) >= 0.95, "{}", used(&net, 2_000, 10_000));
    let sender = &net.senders[0];
    let largest = sender.between(ms(2_000), ms(10_000)).map(|seen| seen.published.cwnd).max();
    assert!(largest.unwrap() > Bytes(120_000), "{largest:?}");
}

#[test]
fn four_packets_are_the_least_window() {
    // Not a packet fits on the way.
    let mut net = alone(Link::new(Rate::from_bits_per_sec(200_000), ms(10)));
    net.run(ms(60_000));
    let sender = &net.senders[0];
    let late: Vec<_> = sender.between(ms(10_000), ms(60_000)).collect();
    let least = SIZE.saturating_mul(4);
    assert!(late.iter().all(|seen| seen.published.cwnd >= least));
    assert!(late.iter().any(|seen| seen.published.cwnd == least));
    assert!(used(&net, 10_000, 60_000) >= 0.95);
    let paces = late.iter().map(|seen| seen.published.pacing_rate.unwrap());
    assert!(paces.into_iter().all(|pace| pace <= Rate::from_bits_per_sec(260_000)));
}

#[test]
fn a_newcomer_gets_its_share() {
    let mut net = alone(Link { buffer: Bytes(200_000), ..Link::new(mbit(20), ms(40)) });
    net.run(ms(10_000));
    net.add(Box::new(bbr3(2)), App::Endless);
    net.run(ms(80_000));
    let shares: Vec<f64> = net
        .senders
        .iter()
        .map(|sender| share(sender.goodput(ms(50_000), ms(90_000)), mbit(20)))
        .collect();
    assert!(shares.iter().all(|share| (0.3..0.7).contains(share)), "{shares:?}");
    assert!(shares.iter().sum::<f64>() >= 0.93, "{shares:?}");
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_path_other_waits() {
    let ups = |seed| {
        let mut net = Bottleneck::new(long());
        net.add(Box::new(bbr3(seed)), App::Endless);
        net.run(ms(20_000));
        stays(&net.senders[0], "probe bandwidth: up")
    };
    assert_eq!(ups(1), ups(1));
    assert_ne!(ups(1), ups(2));
}
