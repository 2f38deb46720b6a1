//! Attacks before a connection is there: spoofed addresses, forged Initial packets, downgrades.

use std::net::SocketAddr;

use quipu_base::{Duration, Offset, Role};
use quipu_quic::endpoint::Admission;
use quipu_quic::wire::{ConnectionId, Frame};
use quipu_testkit::Tls;
use quipu_testkit::forge::{Forge, Setup, datagram, initial, raw};

use crate::setup;

fn id(number: u64) -> ConnectionId {
    ConnectionId::new(&number.to_be_bytes()).expect("eight bytes")
}

fn spoofed(number: u64) -> SocketAddr {
    SocketAddr::from(([10, 9, (number >> 8) as u8, number as u8], 1_024 + (number >> 16) as u16))
}

/// A server whose certificate is long, so that it has much to say to a stranger.
fn talkative() -> Setup {
    Setup { tls: Tls::Null { chain: 12_000 }, ..setup() }
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-8.1>
#[test]
fn a_spoofed_client_gets_three_times_what_it_sent() {
    let setup = talkative();
    let mut forge = Forge::stranger(&setup);
    let hello = setup.client_hello(id(2));
    let packet = forge.first_packet(id(1), id(2), &hello);
    let work = forge.cost(|forge| {
        forge.send(packet);
        forge.wait(Duration::from_secs(60));
    });
    println!("{work:?}");
    assert!(work.bytes_out > 1_000, "the server answers");
    assert!(work.bytes_out <= 3 * work.bytes_in, "{work:?}");
}

/// A small datagram gives no credit, and no reason to wake up.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-14.1>
#[test]
fn small_initial_packets_do_not_spin_the_driver() {
    let setup = talkative();
    let mut forge = Forge::stranger(&setup);
    let hello = setup.client_hello(id(2));
    let packet = forge.first_packet(id(1), id(2), &hello);
    forge.send(packet);
    let work = forge.cost(|forge| {
        forge.send(initial().by(id(2)).frame(Frame::Ping));
        forge.wait(Duration::from_secs(60));
    });
    assert_eq!(forge.victim().stuck(), None);
    assert_eq!(work.bytes_out, 0, "{work:?}");
}

/// No TLS, no policies, no place in the table for what need not be a client.
#[test]
fn ten_thousand_spoofed_initials_leave_no_connection_behind() {
    let setup = Setup { max_connections: 16_000, ..setup() };
    let mut forge = Forge::stranger(&setup);
    let work = forge.cost(|forge| {
        for number in 0..10_000 {
            let packet = forge.first_packet(id(1 << 32 | number), id(2), &[]);
            let packet = packet.frame(Frame::Ping);
            forge.send(packet.sent_from(spoofed(number)));
        }
        println!("in the flood: {:?}", forge.work());
        forge.wait(Duration::from_secs(60));
        // Polled as a driver polls it.
        forge.listen();
    });
    let left = forge.victim().endpoint().handles().count();
    println!("{work:?}, {left} connections left");
    assert_eq!(left, 0);
    assert!(work.held < 64_000, "{work:?}");
}

/// Each could be a client, and none proves its address.
#[test]
fn ten_thousand_spoofed_client_hellos_make_no_more_connections_than_may_be_unproved() {
    let setup = Setup { max_connections: 16_000, ..setup() };
    let Admission { max_unvalidated, handshake_timeout, .. } = Admission::default();
    let mut forge = Forge::stranger(&setup);
    let hello = setup.client_hello(id(2));
    let connections = |forge: &Forge| forge.victim().endpoint().handles().count();
    let mut most = 0;
    let work = forge.cost(|forge| {
        for number in 0..10_000 {
            let packet = forge.first_packet(id(1 << 32 | number), id(2), &hello);
            forge.send(packet.sent_from(spoofed(number)));
            most = most.max(connections(forge));
        }
        println!("in the flood: {:?}", forge.work());
        forge.wait(handshake_timeout + Duration::from_secs(1));
        forge.listen();
    });
    println!("{work:?}, {most} connections");
    assert_eq!((most, connections(&forge)), (max_unvalidated, 0));
    assert!(work.held < 64_000, "{work:?}");
    for number in 0..10_000 {
        let [received, sent] = forge.flow(spoofed(number));
        assert!(sent <= 3 * received, "{sent} went where {received} came from");
    }
    // There is room for others again.
    let packet = forge.first_packet(id(1), id(2), &hello);
    forge.send(packet);
    assert_eq!(connections(&forge), 1);
}

/// One byte of the handshake per frame, at odd offsets.
#[test]
fn crypto_fragments_cost_little() {
    let mut forge = Forge::stranger(&setup());
    let mut first = forge.first_packet(id(1), id(2), &[]);
    let mut nth = 0;
    while first.payload_length() < 1_100 {
        first = first.frame(Frame::Crypto { offset: Offset(1 + 2 * nth), data: &[1] });
        nth += 1;
    }
    let work = forge.cost(|forge| {
        forge.send(first);
    });
    println!("{nth} pieces: {work:?}");
    assert!(work.held < 24_000, "{work:?}");
    assert!(work.allocations < 300, "{work:?}");
}

/// Datagrams of a version that nobody knows, from addresses that nobody has.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-6>
#[test]
fn version_negotiation_is_no_amplifier() {
    let mut forge = Forge::stranger(&setup());
    let mut bytes = vec![0xc3, 0x1a, 0x2a, 0x3a, 0x4a, 20];
    bytes.extend([7; 20]);
    bytes.push(20);
    bytes.extend([9; 20]);
    bytes.resize(1_200, 0);
    let work = forge.cost(|forge| {
        for number in 0..1_000 {
            forge.send(raw(&bytes).sent_from(spoofed(number)));
            forge.send(raw(&bytes[..1_199]).sent_from(spoofed(number)));
        }
    });
    println!("{work:?}");
    assert!(work.datagrams_out <= 1_000 && work.bytes_out * 10 < work.bytes_in, "{work:?}");
    assert!(work.held < 8_000, "{work:?}");
}

/// A flood of them between two polls of the driver.
#[test]
fn answers_that_wait_to_be_sent_are_bounded() {
    let mut forge = Forge::stranger(&setup());
    let mut bytes = vec![0xc3, 0x1a, 0x2a, 0x3a, 0x4a, 8, 1, 1, 1, 1, 1, 1, 1, 1, 0];
    bytes.resize(1_200, 0);
    let work = forge.cost(|forge| {
        for number in 0..10_000 {
            let sealed = forge.seal(&raw(&bytes).sent_from(spoofed(number)));
            let (arrival, mut bytes) = sealed.expect("raw bytes");
            let now = forge.now();
            forge.victim_mut().receive(now, arrival, &mut bytes);
        }
    });
    assert!(work.peak < 32_000, "{work:?}");
}

/// Half a ClientHello opens a connection that is never finished.
#[test]
fn a_half_open_connection_ends_whatever_is_sent() {
    let setup = setup();
    let mut forge = Forge::stranger(&setup);
    let hello = setup.client_hello(id(2));
    let packet = forge.first_packet(id(1), id(2), &hello[..hello.len() / 2]);
    forge.send(packet);
    for _ in 0..180 {
        forge.wait(Duration::from_secs(20));
        forge.send(initial().by(id(2)).frame(Frame::Ping).padded(1_200));
        if forge.victim().endpoint().handles().count() == 0 || forge.closed().is_some() {
            break;
        }
    }
    let lasted = forge.now().saturating_since(quipu_base::Instant::ZERO);
    assert!(lasted <= Duration::from_secs(60), "{lasted}");
}

/// Initial packets in one datagram with those of other connections are not read.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-12.2>
#[test]
fn coalesced_packets_for_another_id_are_dropped() {
    let setup = setup();
    for (to, is_read) in [(id(1), true), (id(3), false)] {
        let mut forge = Forge::stranger(&setup);
        let hello = setup.client_hello(id(2));
        let (head, tail) = hello.split_at(100);
        let first = forge.first_packet(id(1), id(2), head).padded(600);
        let offset = Offset(100);
        let second = initial().to(to).by(id(2)).frame(Frame::Crypto { offset, data: tail });
        let work = forge.cost(|forge| {
            forge.send(datagram([first, second.padded(600)]));
        });
        // Without the second half there is no answer but an acknowledgement.
        assert_eq!(work.bytes_out > 1_000, is_read, "{work:?}");
    }
}

/// A client is the victim: Version Negotiation after a packet of the server was read is ignored.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-6.2>
#[test]
fn version_negotiation_after_the_handshake_is_ignored() {
    let mut forge = Forge::against(Role::Client, &setup());
    let (own, peer) = (forge.own_issued()[0].id, forge.issued()[0].id);
    let mut bytes = vec![0xc0, 0, 0, 0, 0];
    for id in [peer, own] {
        bytes.push(id.length() as u8);
        bytes.extend(id.as_bytes());
    }
    bytes.extend([0x1a, 0x2a, 0x3a, 0x4a]);
    forge.send(raw(&bytes));
    assert_eq!(forge.closed(), None);
}
