//! Routes over several links, one behind the other.

use proptest::prelude::*;
use quipu_link::{DropReason, Link, QueueLimit};

use super::*;

/// A server, and a client with an interface for each route. Links are counted as in `links`.
fn world<O: Observer>(
    config: WorldConfig,
    observer: O,
    links: &[LinkConfig],
    routes: &[&[usize]],
) -> (World<Recorder, O>, [NodeId; 2], Vec<LinkId>) {
    let mut world = World::with_observer(config, observer);
    let [client, server] = [(); 2].map(|()| world.add_node(Recorder::default()));
    let links: Vec<_> = links.iter().map(|link| world.add_link(link).unwrap()).collect();
    for (interface, route) in (0..).zip(routes) {
        let here = Interface { node: client, address: envelope(interface, 0).local };
        let there = Interface { node: server, address: envelope(interface, 0).remote };
        let route: Vec<_> = route.iter().map(|&link| links[link]).collect();
        world.add_route(here, there, &route).unwrap();
    }
    (world, [client, server], links)
}

/// 10 Mbit/s: a datagram with 1,222 B of payload is sent in 1 ms.
fn slow(delay: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(10), Duration::from_millis(delay))
}

const MILLISECOND_LONG: [u8; 1_222] = [0; 1_222];

fn send<O: Observer>(
    world: &mut World<Recorder, O>,
    client: NodeId,
    interface: u8,
    payload: &[u8],
) {
    let datagram = (envelope(interface, 0), payload.to_vec());
    world.update(client, |client, _| client.outbox.push_back(datagram));
}

fn arrivals<O: Observer>(world: &World<Recorder, O>, server: NodeId) -> Vec<(u64, u8)> {
    let inbox = &world.node(server).inbox;
    inbox.iter().map(|(at, from, _)| (at.as_nanos(), interface_of(from))).collect()
}

/// The last byte of the client's address.
fn interface_of(seen_by_server: &Envelope) -> u8 {
    (0..=255).find(|&index| address(1, index, 1_000) == seen_by_server.remote).unwrap()
}

#[test]
fn a_datagram_takes_the_time_of_all_its_links() {
    let links = [slow(3), slow(4), slow(5)];
    let (mut world, [client, server], ids) = world(quiet(), (), &links, &[&[2, 0, 1]]);
    for _ in 0..2 {
        send(&mut world, client, 0, &MILLISECOND_LONG);
    }
    world.run_until(millis(100)).unwrap();
    // Each link sends for 1 ms; the second datagram is 1 ms behind the first from the start.
    assert_eq!(arrivals(&world, server), [(15_000_000, 0), (16_000_000, 0)]);
    for link in ids {
        assert_eq!(world.link_stats(link).unwrap().delivered.datagrams, 2);
    }
    assert_eq!(world.stats().received, 2);
    // Two nodes start; three arrivals each at a link's end.
    assert_eq!(world.stats().events, 2 + 2 * 3);
}

#[test]
fn a_route_of_one_link_costs_one_event() {
    let (mut world, [client, _], _) = world(quiet(), (), &[slow(3)], &[&[0]]);
    send(&mut world, client, 0, b"x");
    world.run_until(millis(100)).unwrap();
    assert_eq!(world.stats().events, 2 + 1);
}

#[test]
fn a_shared_link_takes_datagrams_as_they_come_to_it_not_as_they_were_sent() {
    // Two links lead to a third.
    let links = [delay(10), delay(5), slow(0)];
    let (mut world, [client, server], ids) = world(quiet(), (), &links, &[&[0, 2], &[1, 2]]);
    send(&mut world, client, 0, &MILLISECOND_LONG);
    world.run_until(millis(4)).unwrap();
    for _ in 0..3 {
        send(&mut world, client, 1, &MILLISECOND_LONG);
    }
    world.run_until(millis(9)).unwrap();
    assert_eq!(world.queued(ids[2]), Ok(Bytes(3 * 1_250)));
    world.run_until(millis(10)).unwrap();
    assert_eq!(world.queued(ids[2]), Ok(Bytes(3 * 1_250)), "one has left and one has come");
    world.run_until(millis(100)).unwrap();
    assert_eq!(world.queued(ids[2]), Ok(Bytes::ZERO));
    let expected = [(10_000_000, 1), (11_000_000, 1), (12_000_000, 1), (13_000_000, 0)];
    assert_eq!(arrivals(&world, server), expected);
    assert_eq!(world.queued(LinkId(3)), Err(TopologyError::UnknownLink { link: 3, links: 3 }));
}

#[test]
fn of_those_that_come_to_a_link_at_once_the_one_sent_first_is_first() {
    let links = [delay(5), delay(5), slow(0)];
    let (mut world, [client, server], _) = world(quiet(), (), &links, &[&[0, 2], &[1, 2]]);
    for interface in [1, 0, 1] {
        send(&mut world, client, interface, &MILLISECOND_LONG);
    }
    world.run_until(millis(100)).unwrap();
    assert_eq!(arrivals(&world, server), [(6_000_000, 1), (7_000_000, 0), (8_000_000, 1)]);
}

#[test]
fn only_the_receiving_host_adds_jitter() {
    let config = WorldConfig::new(Seed::new(1));
    let links = vec![delay(1); 50];
    let all: Vec<usize> = (0..50).collect();
    let (mut world, [client, server], _) = world(config, (), &links, &[&all]);
    send(&mut world, client, 0, b"x");
    world.run_until(millis(100)).unwrap();
    let [(at, _)] = arrivals(&world, server)[..] else { panic!("one arrives") };
    assert!((50_000_000..=50_100_000).contains(&at), "{at}");
}

#[test]
fn a_copy_made_on_the_way_goes_on_as_a_datagram_of_its_own() {
    let duplicate = Some(Duplicate { share: 1.0, after: Duration::from_millis(2) });
    let links = [LinkConfig { duplicate, ..delay(5) }, slow(5)];
    let (mut world, [client, server], ids) = world(quiet(), (), &links, &[&[0, 1]]);
    send(&mut world, client, 0, &MILLISECOND_LONG);
    world.run_until(millis(100)).unwrap();
    assert_eq!(arrivals(&world, server), [(11_000_000, 0), (13_000_000, 0)]);
    assert_eq!(world.link_stats(ids[1]).unwrap().offered.datagrams, 2);
}

/// What an observer is told, a link and an answer each.
#[derive(Default)]
struct Offers {
    first: Vec<(LinkId, Verdict)>,
    later: Vec<(u64, LinkId, Verdict)>,
    received_from: Vec<LinkId>,
}

impl Observer for Offers {
    fn on_sent(&mut self, _now: Instant, sent: &Sent<'_>) {
        if let Fate::Offered { link, verdict } = sent.fate {
            self.first.push((link, verdict));
        }
    }

    fn on_hop(&mut self, now: Instant, hop: &Hop<'_>) {
        assert_eq!((hop.envelope, hop.payload.len()), (envelope(0, 2), 1_222));
        self.later.push((now.as_nanos(), hop.link, hop.verdict.unwrap()));
    }

    fn on_received(&mut self, _now: Instant, received: &Received<'_>) {
        self.received_from.push(received.link);
    }
}

#[test]
fn observers_see_what_each_link_makes_of_a_datagram() {
    let links = [delay(5), slow(5).with_queue(QueueLimit::packets(1))];
    let (mut world, [client, _], ids) = world(quiet(), Offers::default(), &links, &[&[0, 1]]);
    for _ in 0..2 {
        let datagram = (envelope(0, 2), MILLISECOND_LONG.to_vec());
        world.update(client, |client, _| client.outbox.push_back(datagram));
    }
    world.run_until(millis(100)).unwrap();
    let (_, offers) = world.into_parts();
    assert_eq!(offers.first, [(ids[0], Verdict::deliver(millis(5))); 2]);
    let expected = [
        (5_000_000, ids[1], Verdict::deliver(millis(11))),
        (5_000_000, ids[1], Verdict::Dropped(DropReason::QueueFull)),
    ];
    assert_eq!(offers.later, expected);
    assert_eq!(offers.received_from, [ids[1]]);
}

#[test]
fn the_hash_of_a_run_tells_fates_on_later_links_apart() {
    let hash = |first_loss: f64, second_loss: f64| {
        let links = [delay(5).with_loss(first_loss), delay(5).with_loss(second_loss)];
        let observer = EventHash::without_payload();
        let (mut world, [client, _], _) = world(quiet(), observer, &links, &[&[0, 1]]);
        send(&mut world, client, 0, b"x");
        world.run_until(millis(100)).unwrap();
        world.observer().value()
    };
    let hashes = [hash(0.0, 0.0), hash(0.0, 1.0), hash(1.0, 0.0)];
    assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2]);
    assert_eq!(hash(0.0, 0.0), hashes[0]);
}

#[test]
fn a_mark_made_on_any_link_reaches_the_receiver_and_its_copies() {
    let duplicate = Some(Duplicate { share: 1.0, after: Duration::ZERO });
    let marking = slow(1).with_mark(QueueLimit::Bytes(Bytes::ZERO));
    for (links, marked) in [
        ([delay(1), slow(1)], [0, 1, 2, 2]),
        ([marking.clone(), delay(1)], [0, 1, 2, 3]),
        ([delay(1), marking.clone()], [0, 1, 2, 3]),
        ([LinkConfig { duplicate, ..marking }, delay(1)], [0, 1, 2, 3]),
    ] {
        let copies = if links[0].duplicate.is_some() { 2 } else { 1 };
        let (mut world, [client, server], _) = world(quiet(), (), &links, &[&[0, 1]]);
        for ecn in [0, 1, 2, 2] {
            let datagram = (envelope(0, ecn), MILLISECOND_LONG.to_vec());
            world.update(client, |client, _| client.outbox.push_back(datagram));
            // Only the last one finds something in the queue.
            let until = world.now() + Duration::from_micros(if ecn < 2 { 1_500 } else { 0 });
            world.run_until(until).unwrap();
        }
        world.run_until(millis(100)).unwrap();
        let mut seen: Vec<u8> =
            world.node(server).inbox.iter().map(|(_, from, _)| from.ecn).collect();
        seen.sort();
        let expected: Vec<u8> = marked.iter().flat_map(|&ecn| vec![ecn; copies]).collect();
        assert_eq!(seen, expected);
    }
}

#[test]
fn what_is_lost_on_the_way_gives_its_buffer_back() {
    let links = [delay(2), delay(2).with_loss(0.5), delay(2).with_loss(0.5)];
    let (mut world, [client, _], _) = world(quiet(), (), &links, &[&[0, 1, 2]]);
    for step in 0..1_000 {
        send(&mut world, client, 0, b"x");
        world.run_until(millis(step)).unwrap();
    }
    assert!(world.pool.made() <= 10, "{}", world.pool.made());
}

/// A link that may lose, copy, drop and reorder.
fn any_link() -> impl Strategy<Value = LinkConfig> {
    (1u64..20, 0u64..10, 0u64..5, any::<bool>(), 1u64..6, 0u32..2).prop_map(
        |(mbit, delay, jitter, jitter_reorders, packets, copies)| LinkConfig {
            jitter: Duration::from_millis(jitter.min(delay)),
            jitter_reorders,
            duplicate: (copies == 1)
                .then_some(Duplicate { share: 0.2, after: Duration::from_micros(700) }),
            ..LinkConfig::new(Rate::from_mbit_per_sec(mbit), Duration::from_millis(delay))
                .with_loss(0.05)
                .with_queue(QueueLimit::packets(packets))
        },
    )
}

proptest! {
    #[test]
    fn a_route_is_the_same_as_its_links_asked_one_after_the_other(
        links in proptest::collection::vec(any_link(), 1..5),
        waits in proptest::collection::vec(0u64..3_000_000, 1..60),
    ) {
        let seed = Seed::new(5);
        let config = WorldConfig { seed, ..quiet() };
        let all: Vec<usize> = (0..links.len()).collect();
        let (mut world, [client, server], _) = world(config, (), &links, &[&all]);
        let mut sent_at = Vec::new();
        let mut now = Instant::ZERO;
        for wait in waits {
            now += Duration::from_nanos(wait);
            world.run_until(now).unwrap();
            send(&mut world, client, 0, &MILLISECOND_LONG);
            sent_at.push(now);
        }
        world.run_until(Instant::FAR_FUTURE).unwrap();

        // All datagrams through the first link, then what is left through the second, and so on.
        let mut offers = sent_at;
        for (index, config) in (0..).zip(&links) {
            let mut link = Link::new(config, seed.child("link", index)).unwrap();
            let mut comes = Vec::new();
            for offered_at in offers {
                let verdict = link.offer(offered_at, Bytes(1_222), ecn::NOT_ECT);
                if let Verdict::Deliver { at, duplicate_at, .. } = verdict {
                    comes.push(at);
                    comes.extend(duplicate_at);
                }
            }
            // Those of one instant are alike here.
            comes.sort();
            offers = comes;
        }
        let expected: Vec<_> = offers.iter().map(|at| (at.as_nanos(), 0)).collect();
        prop_assert_eq!(arrivals(&world, server), expected);
    }
}
