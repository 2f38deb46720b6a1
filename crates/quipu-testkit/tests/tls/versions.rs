//! Which version two ends come to, and whether they can be misled.

use quipu_base::{Duration, Instant, Role, StreamDirection};
use quipu_quic::connection::CloseReason;
use quipu_quic::error::ErrorCode;
use quipu_quic::tls::retry_tag;
use quipu_quic::wire::header::{Packet, write_retry, write_version_negotiation};
use quipu_quic::wire::{ConnectionId, PacketKind, Version, Writer};
use quipu_quic::{Connection, TransportConfig};
use quipu_testkit::forge::{Flight, Pair, Setup};

use crate::{DELAY, each};

const V1: Version = Version::V1;
const V2: Version = Version::V2;

fn transport(versions: &[Version]) -> TransportConfig {
    TransportConfig { versions: versions.to_vec(), ..TransportConfig::default() }
}

/// A client that begins with `first`, and a server.
fn setup(client: &[Version], first: Version, server: &[Version]) -> Setup {
    let client = TransportConfig { first_version: Some(first), ..transport(client) };
    Setup { client, server: transport(server), ..Setup::default() }
}

fn connection(pair: &mut Pair, role: Role) -> &Connection {
    pair.end(role).connection().expect("it has a connection")
}

/// Runs until the client is connected, sends something both ways, and returns when the client was
/// connected and which version both ends speak.
fn connect(pair: &mut Pair) -> (Instant, Version) {
    pair.connect();
    let stream = pair.act(Role::Client, |end, now| {
        end.act(|connection| {
            let stream = connection.open_stream(now, StreamDirection::Bidirectional);
            let stream = stream.expect("a stream is allowed");
            connection.write(now, stream, vec![7; 50_000].into()).expect("it is open");
            connection.finish(now, stream).expect("it is open");
            stream
        })
    });
    assert!(stream.is_some());
    pair.run(Duration::from_secs(2));
    assert!(pair.server().work().bytes_in > 50_000);
    let versions = [Role::Client, Role::Server].map(|role| connection(pair, role).version());
    assert_eq!(versions[0], versions[1]);
    let at = connection(pair, Role::Client).connected_at().expect("it is connected");
    (at, versions[0])
}

/// The packets with long headers of a datagram: kind and version.
fn long_packets(mut datagram: &[u8]) -> Vec<(PacketKind, Version)> {
    let mut found = Vec::new();
    while let Ok(Packet::Protected(header)) = Packet::parse(datagram, 8) {
        if let Some(version) = header.version {
            found.push((header.kind, version));
        }
        datagram = &datagram[header.packet_length..];
    }
    found
}

/// All packets with long headers that an end sent.
fn sent_by(pair: &Pair, role: Role) -> Vec<(PacketKind, Version)> {
    let flights = pair.log().iter().filter(|(_, flight)| flight.from == role);
    flights.flat_map(|(_, flight)| long_packets(&flight.bytes)).collect()
}

fn round_trips(count: u64) -> Instant {
    Instant::ZERO + DELAY.saturating_mul(2 * count)
}

#[test]
fn a_version_of_both_is_spoken_throughout() {
    for version in [V1, V2] {
        each(&setup(&[version], version, &[V1, V2]), |setup| {
            let mut pair = Pair::new(setup, DELAY);
            assert_eq!(connect(&mut pair), (round_trips(1), version));
            for role in [Role::Client, Role::Server] {
                assert!(sent_by(&pair, role).iter().all(|(_, of)| *of == version));
            }
        });
    }
}

/// <https://www.rfc-editor.org/rfc/rfc9368#section-2.1>
#[test]
fn a_client_begins_again_in_a_version_of_the_server() {
    for (wanted, other) in [(V2, V1), (V1, V2)] {
        each(&setup(&[wanted, other], wanted, &[other]), |setup| {
            let mut pair = Pair::new(setup, DELAY);
            assert_eq!(connect(&mut pair), (round_trips(2), other));
        });
    }
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-6.2>
#[test]
fn a_client_without_a_version_of_the_server_gives_up() {
    let mut pair = Pair::new(&setup(&[V2], V2, &[V1]), DELAY);
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.client().close_reason(), Some(&CloseReason::Version));
    assert_eq!(pair.server().endpoint().handles().count(), 0);
}

/// <https://www.rfc-editor.org/rfc/rfc9368#section-2.3>
#[test]
fn a_server_goes_on_in_the_version_that_it_wants_without_a_round_trip_more() {
    for (first, wanted) in [(V1, V2), (V2, V1)] {
        each(&setup(&[V1, V2], first, &[wanted, first]), |setup| {
            let mut pair = Pair::new(setup, DELAY);
            assert_eq!(connect(&mut pair), (round_trips(1), wanted));
            assert!(sent_by(&pair, Role::Server).iter().all(|(_, of)| *of == wanted));
            let of_client = sent_by(&pair, Role::Client);
            assert_eq!(of_client[0], (PacketKind::Initial, first));
            assert!(of_client[1..].iter().all(|(_, of)| *of == wanted), "{of_client:?}");
        });
    }
}

#[test]
fn a_server_leaves_a_client_where_it_is_that_does_not_negotiate() {
    each(&setup(&[V1], V1, &[V2, V1]), |setup| {
        let mut pair = Pair::new(setup, DELAY);
        assert_eq!(connect(&mut pair), (round_trips(1), V1));
    });
}

/// The server's preference decides, and begins with what the client offers.
/// <https://www.rfc-editor.org/rfc/rfc9368#section-3>
#[test]
fn a_server_that_wants_the_first_version_keeps_it() {
    each(&setup(&[V2, V1], V1, &[V1, V2]), |setup| {
        let mut pair = Pair::new(setup, DELAY);
        assert_eq!(connect(&mut pair), (round_trips(1), V1));
    });
}

/// Until the whole ClientHello is there, the server knows nothing of other versions.
/// <https://www.rfc-editor.org/rfc/rfc9369#section-4.1>
#[test]
fn a_version_changes_although_datagrams_are_lost_or_overtake_each_other() {
    each(&setup(&[V1, V2], V1, &[V2, V1]), |setup| {
        for lost in 0..6 {
            let mut pair = Pair::new(setup, DELAY);
            let mut nth = 0;
            pair.intercept(move |_, takes, flight| {
                nth += 1;
                if nth == lost + 1 { Vec::new() } else { vec![(takes, flight)] }
            });
            let (_, version) = connect(&mut pair);
            assert_eq!(version, V2, "datagram {lost} lost");
        }
        let mut pair = Pair::new(setup, DELAY);
        let mut nth = 0u32;
        pair.intercept(move |_, takes, flight| {
            nth += 1;
            let later =
                if nth.is_multiple_of(2) { Duration::from_millis(3) } else { Duration::ZERO };
            vec![(takes + later, flight)]
        });
        assert_eq!(connect(&mut pair).1, V2);
    });
}

/// A Version Negotiation packet that answers the client's first datagram with `versions`.
fn negotiation(flight: &Flight, versions: &[Version]) -> Flight {
    let Ok(Packet::Protected(header)) = Packet::parse(&flight.bytes, 8) else {
        panic!("an Initial packet");
    };
    let mut bytes = [0; 64];
    let mut writer = Writer::new(&mut bytes);
    let (dcid, scid) = (header.scid.as_bytes(), header.dcid.as_bytes());
    write_version_negotiation(&mut writer, 0x2a, dcid, scid, versions).expect("it has room");
    answer(flight, writer.written())
}

/// A datagram of the server's that answers one of the client's.
fn answer(flight: &Flight, bytes: &[u8]) -> Flight {
    let route = quipu_quic::Route::new(flight.route.remote, flight.route.local);
    Flight { from: Role::Server, route, ecn: 0, bytes: bytes.to_vec() }
}

/// Pairs whose client gets `forge` of its first datagram before anything of the server's.
fn forged(setup: &Setup, forge: impl Fn(&Flight) -> Vec<Flight>) -> Pair {
    let mut pair = Pair::new(setup, DELAY);
    pair.run(Duration::ZERO);
    let first = pair.log()[0].1.clone();
    for flight in forge(&first) {
        pair.inject(&flight);
    }
    pair
}

/// <https://www.rfc-editor.org/rfc/rfc9368#section-4>
#[test]
fn a_forged_version_negotiation_packet_ends_in_an_error_not_in_a_lesser_version() {
    each(&setup(&[V2, V1], V2, &[V2, V1]), |setup| {
        let mut pair = forged(setup, |first| vec![negotiation(first, &[V1])]);
        pair.run(Duration::from_secs(2));
        let reason = pair.client().close_reason().cloned();
        let Some(CloseReason::PeerFault(error)) = reason else { panic!("{reason:?}") };
        assert_eq!(error.code, ErrorCode::VERSION_NEGOTIATION_ERROR);
    });
}

#[test]
fn version_negotiation_packets_that_cannot_be_are_ignored() {
    let other = |flight: &Flight| {
        let mut forged = negotiation(flight, &[V1]);
        // A byte of the connection ID that the client thought of.
        let at = forged.bytes.len() - 4 - 1;
        forged.bytes[at] ^= 1;
        forged
    };
    let retry = |flight: &Flight| {
        let Ok(Packet::Protected(header)) = Packet::parse(&flight.bytes, 8) else {
            panic!("an Initial packet");
        };
        let mut bytes = [0; 200];
        let mut writer = Writer::new(&mut bytes);
        let scid = ConnectionId::new(&[9; 8]).expect("eight bytes");
        write_retry(&mut writer, V2, header.scid, scid, b"token").expect("it has room");
        let tag = retry_tag(V2, &header.dcid, writer.written());
        writer.put_array(tag).expect("it has room");
        answer(flight, writer.written())
    };
    let versions = [V2, V1];
    let setup = setup(&versions, V2, &versions);
    // That of another connection; one that lists the client's version; one after a Retry.
    let mut pair = forged(&setup, |first| vec![other(first), negotiation(first, &[V1, V2])]);
    assert_eq!(connect(&mut pair), (round_trips(1), V2));
    let pair = forged(&setup, |first| vec![retry(first), negotiation(first, &[V1])]);
    let packets: Vec<_> =
        pair.log().iter().map(|(_, flight)| long_packets(&flight.bytes)).collect();
    assert_eq!(packets.len(), 2, "the first flight and that after the Retry: {packets:?}");
    assert!(packets.iter().flatten().all(|(_, version)| *version == V2));
}

/// The second packet cannot lead anywhere else, and a Retry of another version is none.
/// <https://www.rfc-editor.org/rfc/rfc9368#section-4>
#[test]
fn a_client_reacts_once() {
    let setup = setup(&[V2, V1], V2, &[V1]);
    let mut pair = forged(&setup, |first| vec![negotiation(first, &[V1])]);
    let second = pair.log()[1].1.clone();
    assert_eq!(long_packets(&second.bytes), [(PacketKind::Initial, V1)]);
    pair.inject(&negotiation(&second, &[V2]));
    assert_eq!(connect(&mut pair), (round_trips(1), V1));
}
