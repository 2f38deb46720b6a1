//! Links whose queues are managed.

use quipu_link::{Aqm, AqmLimit, CoDel, DropReason, FqCoDel, Pie, QueueLimit};

use super::*;

const MILLISECOND_LONG: [u8; 1_222] = [0; 1_222];

/// 10 Mbit/s: a datagram with 1,222 B of payload is sent in 1 ms.
fn slow(delay: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(10), Duration::from_millis(delay))
}

fn codel() -> Aqm {
    Aqm::CoDel(CoDel::default())
}

fn aqms() -> [Aqm; 3] {
    [codel(), Aqm::FqCoDel(FqCoDel::default()), Aqm::Pie(Pie::default())]
}

#[test]
fn datagrams_come_through_managed_queues_as_through_others() {
    let twice = Some(Duplicate { share: 1.0, after: Duration::from_micros(100) });
    let plain = LinkConfig { duplicate: twice, ..slow(5) };
    let received = |links: &[LinkConfig]| {
        let mut world = World::new(quiet());
        let [client, server] = [(); 2].map(|()| world.add_node(Recorder::default()));
        let links: Vec<_> = links.iter().map(|link| world.add_link(link).unwrap()).collect();
        let here = Interface { node: client, address: envelope(0, 0).local };
        let there = Interface { node: server, address: envelope(0, 0).remote };
        world.add_route(here, there, &links).unwrap();
        for index in 0..10u8 {
            world.update(client, |client, _| {
                let mut payload = MILLISECOND_LONG.to_vec();
                payload[0] = index;
                client.outbox.push_back((envelope(0, 0), payload));
            });
        }
        assert_eq!(world.run_until(millis(500)), Ok(RunEnd::Idle));
        for link in links {
            let stats = world.link_stats(link).unwrap();
            assert_eq!(stats.offered, stats.delivered);
        }
        let inbox = &world.node(server).inbox;
        inbox.iter().map(|(at, _, payload)| (*at, payload[0])).collect::<Vec<_>>()
    };
    let expected = received(&[plain.clone(), slow(3), plain.clone()]);
    assert_eq!(expected.len(), 40);
    for aqm in aqms() {
        let managed = |link: LinkConfig| link.with_aqm(aqm);
        let links = [managed(plain.clone()), managed(slow(3)), managed(plain.clone())];
        assert_eq!(received(&links), expected, "{aqm:?}");
    }
}

/// Keeps what managed queues did with datagrams.
#[derive(Default)]
struct Departures {
    queued: u64,
    sent: u64,
    dropped: Vec<(Instant, DropReason)>,
}

impl Observer for Departures {
    fn on_sent(&mut self, _now: Instant, sent: &Sent<'_>) {
        if let Fate::Queued { .. } = sent.fate {
            self.queued += 1;
        }
    }

    fn on_departed(&mut self, now: Instant, departed: &Departed<'_>) {
        assert_eq!(departed.payload.len(), 1_222);
        match departed.verdict {
            Verdict::Deliver { .. } => self.sent += 1,
            Verdict::Dropped(reason) => self.dropped.push((now, reason)),
        }
    }
}

/// Two datagrams each millisecond, of which the link can send one, for `millis` milliseconds.
fn overload(config: &LinkConfig, ecn: u8, milliseconds: u64) -> Pair<Departures> {
    let mut pair = pair(quiet(), Departures::default(), std::slice::from_ref(config));
    for step in 0..milliseconds {
        pair.world.run_until(millis(step)).unwrap();
        for _ in 0..2 {
            pair.client_sends(envelope(0, ecn), &MILLISECOND_LONG);
        }
    }
    pair
}

#[test]
fn what_is_dropped_behind_a_queue_is_seen_and_its_buffer_used_again() {
    let mut pair = overload(&slow(5).with_aqm(codel()), 0, 1_000);
    let up = pair.links[0].up;
    let waiting = pair.world.link_stats(up).unwrap().waiting;
    assert_eq!(pair.world.queued(up), Ok(waiting.bytes + Bytes(1_250)));
    assert_eq!(pair.world.run_until(millis(10_000)), Ok(RunEnd::Idle));
    let Departures { queued, sent, dropped } = pair.world.observer();
    assert!(dropped.iter().all(|(_, reason)| *reason == DropReason::Managed));
    assert!(dropped.len() > 20, "{}", dropped.len());
    assert_eq!((*queued, *sent), (2_000, 2_000 - dropped.len() as u64));
    assert_eq!(pair.received(pair.server).len() as u64, *sent);
    assert_eq!(pair.world.queued(up), Ok(Bytes::ZERO));
    // As many as waited at most, and some on the way.
    let most = pair.world.link_stats(up).unwrap().max_queue.0 / 1_250;
    assert!((pair.world.pool.made() as u64) < most + 20, "{}", pair.world.pool.made());
}

#[test]
fn capable_datagrams_arrive_with_a_mark() {
    for aqm in aqms() {
        let mut pair = overload(&slow(5).with_aqm(aqm), ecn::ECT_0, 1_000);
        pair.world.run_until(millis(10_000)).unwrap();
        let inbox = &pair.world.node(pair.server).inbox;
        let marks = inbox.iter().filter(|(_, envelope, _)| envelope.ecn == ecn::CE).count();
        let stats = pair.world.link_stats(pair.links[0].up).unwrap();
        assert_eq!(stats.marked.datagrams, marks as u64, "{aqm:?}");
        assert!(marks > 5, "{aqm:?}: {marks}");
    }
}

#[test]
fn a_full_queue_drops_at_the_offer() {
    let limit = AqmLimit::of_datagrams(4);
    let link = slow(5).with_aqm(Aqm::CoDel(CoDel { limit, ..CoDel::default() }));
    let mut pair = pair(quiet(), (), &[link]);
    for _ in 0..10 {
        pair.client_sends(envelope(0, 0), &MILLISECOND_LONG);
    }
    pair.world.run_until(millis(100)).unwrap();
    // One is being sent and four wait.
    assert_eq!(pair.world.node(pair.server).inbox.len(), 5);
    let stats = pair.world.link_stats(pair.links[0].up).unwrap();
    assert_eq!(stats.dropped_by_queue.datagrams, 5);
}

#[test]
fn a_queue_for_each_flow_keeps_routes_apart() {
    // When the one datagram of the second route arrives beside 100 of the first.
    let arrives_at = |link: LinkConfig| {
        let mut world = World::new(quiet());
        let [client, server] = [(); 2].map(|()| world.add_node(Recorder::default()));
        let link = world.add_link(&link).unwrap();
        for interface in 0..2 {
            let here = Interface { node: client, address: envelope(interface, 0).local };
            let there = Interface { node: server, address: envelope(interface, 0).remote };
            world.add_route(here, there, &[link]).unwrap();
        }
        world.update(client, |client, _| {
            let bulk = (envelope(0, 0), MILLISECOND_LONG.to_vec());
            client.outbox.extend(std::iter::repeat_n(bulk, 100));
            client.outbox.push_back((envelope(1, 0), MILLISECOND_LONG.to_vec()));
        });
        world.run_until(millis(1_000)).unwrap();
        let inbox = &world.node(server).inbox;
        let found = inbox.iter().find(|(_, seen, _)| seen.remote == envelope(1, 0).local);
        found.unwrap().0
    };
    let deep = slow(5).with_queue(QueueLimit::Unlimited);
    assert_eq!(arrives_at(deep.clone()), millis(106));
    assert_eq!(arrives_at(deep.clone().with_aqm(codel())), millis(106));
    // The first datagram is being sent when it comes, and the flow's quantum lets one more go first.
    let apart = arrives_at(deep.with_aqm(Aqm::FqCoDel(FqCoDel::default())));
    assert_eq!(apart, millis(8));
}

#[test]
fn the_run_of_a_managed_link_is_the_same_whoever_looks_at_it() {
    let run = |seed, every: u64| {
        let link = slow(5).with_loss(0.01).with_jitter(Duration::from_millis(1));
        let links = aqms().map(|aqm| link.clone().with_aqm(aqm));
        let config = WorldConfig::new(Seed::new(seed));
        let mut pair = pair(config, EventHash::with_payload(), &links);
        for node in [pair.client, pair.server] {
            pair.world.update(node, |node, _| node.echoes = true);
        }
        for index in 0..300u16 {
            let interface = (index % 3) as u8;
            pair.client_sends(envelope(interface, 0), &[interface; 1_000]);
        }
        let mut until = Instant::ZERO;
        while until < millis(3_000) {
            until = millis(3_000).min(until + Duration::from_micros(every));
            pair.world.run_while(until, |_| true).unwrap();
            for PathLinks { up, down } in &pair.links {
                for link in [*up, *down] {
                    let queued = pair.world.queued_at(link, until).unwrap();
                    assert!(queued <= Bytes(101 * 1_028));
                }
            }
        }
        pair.world.observer().value()
    };
    assert_eq!(run(1, 3_000_000), run(1, 3_000_000));
    assert_eq!(run(1, 3_000_000), run(1, 333));
    assert_ne!(run(1, 3_000_000), run(2, 3_000_000));
}
