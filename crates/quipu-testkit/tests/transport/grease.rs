//! Values without meaning: the QUIC bit, reserved parameters and versions.
//! <https://www.rfc-editor.org/rfc/rfc9287>

use quipu_base::{Bytes, Duration, Instant, Role, StreamDirection};
use quipu_quic::tls::retry_tag;
use quipu_quic::wire::header::{Packet, write_retry};
use quipu_quic::wire::{ConnectionId, Frame, Version, Writer};
use quipu_quic::{Route, TransportConfig};
use quipu_testkit::forge::{Flight, Forge, Pair, Setup, one_rtt};

/// Both ends, of which each greases or not.
fn setup(client: bool, server: bool) -> Setup {
    let config = |grease| TransportConfig { grease, ..TransportConfig::default() };
    Setup { client: config(client), server: config(server), ..Setup::default() }
}

/// Datagrams that begin with a 1-RTT packet, and those among them whose QUIC bit is zero.
fn count(flights: &[(Instant, Flight)], from: Role) -> [usize; 2] {
    let first = flights.iter().filter(|(_, flight)| flight.from == from);
    let first: Vec<u8> = first.map(|(_, flight)| flight.bytes[0]).collect();
    [0x80, 0xc0].map(|mask| first.iter().filter(|first| **first & mask == 0).count())
}

fn after_a_transfer(setup: &Setup) -> Pair {
    let mut pair = Pair::connected(setup, Duration::from_millis(10));
    for role in [Role::Client, Role::Server] {
        pair.act(role, |end, now| {
            let connection = end.connection_mut().unwrap();
            let stream = connection.open_stream(now, StreamDirection::Unidirectional).unwrap();
            connection.write(now, stream, vec![7; 400_000].into()).unwrap();
            connection.finish(now, stream).unwrap();
        });
    }
    pair.run(Duration::from_secs(2));
    for role in [Role::Client, Role::Server] {
        let end = pair.end(role);
        assert_eq!(end.close_reason(), None);
        assert_eq!(end.connection().unwrap().unsent(), Bytes::ZERO, "{role:?}");
    }
    pair
}

#[test]
fn the_quic_bit_is_random_if_both_allow_that() {
    let pair = after_a_transfer(&setup(true, true));
    for role in [Role::Client, Role::Server] {
        let [all, clear] = count(pair.log(), role);
        assert!(all > 300 && clear * 3 > all && clear * 3 < 2 * all, "{clear} of {all}");
    }
    for (client, server) in [(true, false), (false, true), (false, false)] {
        let pair = after_a_transfer(&setup(client, server));
        for role in [Role::Client, Role::Server] {
            assert_eq!(count(pair.log(), role)[1], 0, "{role:?}");
        }
    }
}

#[test]
fn packets_of_the_handshake_have_the_bit() {
    let pair = after_a_transfer(&setup(true, true));
    let long = pair.log().iter().filter(|(_, flight)| flight.bytes[0] & 0x80 != 0);
    let first: Vec<u8> = long.map(|(_, flight)| flight.bytes[0]).collect();
    assert!(first.len() > 3 && first.iter().all(|first| first & 0x40 != 0), "{first:x?}");
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-17.3.1>
#[test]
fn packets_without_the_bit_are_dropped_unless_they_are_allowed() {
    for (allowed, setup) in [(true, setup(true, true)), (false, setup(true, false))] {
        let mut forge = Forge::against(Role::Server, &setup);
        let before = forge.connection().dropped_packets();
        forge.send(one_rtt().without_quic_bit().frame(Frame::Ping));
        let dropped = forge.connection().dropped_packets() - before;
        assert_eq!(dropped, u64::from(!allowed));
        assert_eq!(forge.closed(), None);
    }
}

/// A server that reads the ClientHello before it sends a Retry packet knows that it may clear the bit.
/// <https://www.rfc-editor.org/rfc/rfc9287#section-3.1>
#[test]
fn a_retry_packet_without_the_bit_is_followed_if_that_is_allowed() {
    for allowed in [true, false] {
        let mut pair = Pair::new(&setup(allowed, true), Duration::from_millis(10));
        pair.run(Duration::ZERO);
        let first = pair.log()[0].1.clone();
        let Ok(Packet::Protected(header)) = Packet::parse(&first.bytes, 8) else {
            panic!("an Initial packet");
        };
        let mut bytes = [0; 200];
        let mut writer = Writer::new(&mut bytes);
        let scid = ConnectionId::new(&[9; 8]).unwrap();
        write_retry(&mut writer, Version::V1, header.scid, scid, b"token").unwrap();
        let mut retry = writer.written().to_vec();
        retry[0] &= !0x40;
        retry.extend(retry_tag(Version::V1, &header.dcid, &retry));
        let route = Route::new(first.route.remote, first.route.local);
        pair.inject(&Flight { from: Role::Server, route, ecn: 0, bytes: retry });
        let again: Vec<_> = pair.log()[1..].iter().map(|(_, flight)| &flight.bytes).collect();
        assert_eq!(again.len(), usize::from(allowed), "first flights after the Retry");
        for datagram in again {
            let Ok(Packet::Protected(header)) = Packet::parse(datagram, 8) else {
                panic!("an Initial packet");
            };
            assert_eq!((header.dcid, &datagram[header.token]), (scid, &b"token"[..]));
        }
    }
}

#[test]
fn versions_that_nobody_speaks_are_ignored() {
    let versions = vec![Version::V2, Version::V1];
    let config = TransportConfig { versions, ..TransportConfig::default() };
    let (client, server) = (config.clone(), config);
    let mut pair = after_a_transfer(&Setup { client, server, ..Setup::default() });
    assert_eq!(pair.client().connection().unwrap().version(), Version::V2);
}
