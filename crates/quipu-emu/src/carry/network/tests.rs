use quipu_base::{Duration, Rate, Seed};
use quipu_link::{Aqm, Duplicate, FlowKey, FqCoDel, Link, LinkConfig};

use super::*;
use crate::links::Links;
use crate::packet::Header;

fn config(mbit: u64, millis: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(mbit), Duration::from_millis(millis))
}

/// A network with these links one behind the other, and room for some packets.
fn network(configs: &[LinkConfig], most: usize) -> Network {
    let mut links = Links::new(Seed::new(7));
    let ids = configs.iter().map(|config| links.add("l", config).unwrap()).collect();
    let route = Route { links: ids, to: 3 };
    Network::new(Pool::new(2_000, most), links.make().unwrap(), vec![route])
}

/// Sends a packet of 1,250 bytes, 1 ms at 10 Mbit/s.
fn send(network: &mut Network, now: Instant, flow: u64) -> Option<PacketId> {
    let id = network.empty_packet()?;
    let packet = network.packet(id);
    packet.length = 1_250;
    packet.buffer[..4].copy_from_slice(&[0x45, ecn::ECT_0, 0, 0]);
    packet.buffer[4] = flow as u8;
    let to = std::net::Ipv4Addr::LOCALHOST.into();
    network.send(now, id, 0, Header { to, ecn: ecn::ECT_0, flow: FlowKey(flow) });
    Some(id)
}

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// All that comes out, with the fifth byte of each packet.
fn all(network: &mut Network) -> Vec<(Instant, u8)> {
    let mut found = Vec::new();
    while let Some(due) = network.take_due(Instant::FAR_FUTURE) {
        assert_eq!(due.to, 3);
        found.push((due.at, network.packet(due.packet).bytes()[4]));
        network.discard(due.packet);
    }
    found
}

#[test]
fn links_follow_one_another_whenever_somebody_looks() {
    let mut network = network(&[config(10, 5), config(5, 20)], 10);
    send(&mut network, Instant::ZERO, 1);
    send(&mut network, Instant::ZERO, 2);
    assert_eq!(network.next_at(), Some(millis(6)));
    assert_eq!(network.take_due(millis(5)), None);
    // Long after both are due: the second waits for the first at the second link.
    assert_eq!(all(&mut network), [(millis(28), 1), (millis(30), 2)]);
    assert_eq!((network.under_way(), network.next_at()), (0, None));
}

#[test]
fn what_a_link_loses_is_what_it_loses_alone() {
    let lossy = config(100, 1).with_loss(0.2);
    let mut alone = Link::new(&lossy, Seed::new(7).child("link", 0)).unwrap();
    let mut network = network(&[lossy], 300);
    let wanted = (0..250u64).filter(|number| {
        let now = millis(*number);
        send(&mut network, now, *number);
        matches!(alone.offer(now, Bytes(1_250), ecn::ECT_0), Verdict::Deliver { .. })
    });
    let wanted: Vec<u8> = wanted.map(|number| number as u8).collect();
    let found: Vec<u8> = all(&mut network).into_iter().map(|(_, number)| number).collect();
    assert_eq!(found, wanted);
    assert!((150..230).contains(&found.len()));
}

#[test]
fn a_managed_queue_lets_a_new_flow_pass() {
    let managed = config(10, 1).with_aqm(Aqm::FqCoDel(FqCoDel::default()));
    let mut network = network(&[managed], 30);
    for _ in 0..20 {
        send(&mut network, Instant::ZERO, 1);
    }
    send(&mut network, millis(2), 2);
    let place = all(&mut network).iter().position(|(_, flow)| *flow == 2).unwrap();
    assert!(place < 6, "behind {place} packets of the other flow");
    assert_eq!(network.under_way(), 0);
}

#[test]
fn a_mark_is_in_the_header() {
    let marking = config(10, 1).with_mark(quipu_link::QueueLimit::packets(2));
    let mut network = network(&[marking], 30);
    for _ in 0..10 {
        send(&mut network, Instant::ZERO, 1);
    }
    let mut marks = Vec::new();
    while let Some(due) = network.take_due(Instant::FAR_FUTURE) {
        marks.push(network.packet(due.packet).bytes()[1] & 0b11 == ecn::CE);
    }
    assert!(!marks[0] && marks[9], "{marks:?}");
}

#[test]
fn a_copy_arrives_too_and_takes_room() {
    let duplicate = Some(Duplicate { share: 1.0, after: Duration::from_millis(1) });
    let twice = LinkConfig { duplicate, ..config(10, 1) };
    let mut network = self::network(&[twice], 3);
    send(&mut network, Instant::ZERO, 1);
    send(&mut network, Instant::ZERO, 2);
    assert_eq!(network.no_room(), 1);
    assert!(send(&mut network, Instant::ZERO, 3).is_none());
    assert_eq!(all(&mut network), [(millis(2), 1), (millis(3), 1), (millis(3), 2)]);
}

#[test]
fn renewed_links_have_nothing_on_them() {
    let mut network = network(&[config(10, 1)], 3);
    send(&mut network, millis(50), 1);
    let mut links = Links::new(Seed::new(8));
    links.add("l", &config(10, 1)).unwrap();
    network.renew(links.make().unwrap());
    assert_eq!((network.under_way(), network.next_at()), (0, None));
    // Their time is zero again.
    send(&mut network, Instant::ZERO, 2);
    assert_eq!(all(&mut network), [(millis(2), 2)]);
}
