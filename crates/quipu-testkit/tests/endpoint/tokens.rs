//! Retry packets, and tokens for later connections.

use std::sync::Arc;

use quipu_base::{Bytes, Duration, Seed};
use quipu_null_tls::{NullServer, NullTokenKey};
use quipu_quic::connection::CloseReason;
use quipu_quic::endpoint::{Admission, ServerConfig, TokenConfig, TokenState};
use quipu_quic::error::ErrorCode;
use quipu_quic::token_store::{TokenCache, TokenStore};
use quipu_quic::wire::Version;
use quipu_quic::wire::header::Packet;
use quipu_quic::{ConnectionEvent, Endpoint};
use quipu_testkit::{ALPN, SERVER_NAME};

use super::{Two, events, plain_server, reversed};

fn key(secret: u8) -> TokenConfig {
    TokenConfig::with_key(Arc::new(NullTokenKey::new(&[secret; 32])))
}

/// Every client without a token gets a Retry packet.
fn strict(config: ServerConfig) -> ServerConfig {
    let admission = Admission { max_unvalidated: 0, ..Admission::default() };
    config.with_admission(admission).with_tokens(key(1))
}

fn is_connected(events: &[ConnectionEvent]) -> bool {
    events.contains(&ConnectionEvent::Connected)
}

/// Retry packets among these datagrams.
fn retries(datagrams: &[(quipu_quic::Route, Vec<u8>)]) -> usize {
    let is_retry = |bytes: &[u8]| matches!(Packet::parse(bytes, 8), Ok(Packet::Retry { .. }));
    datagrams.iter().filter(|(_, bytes)| is_retry(bytes)).count()
}

#[test]
fn a_client_that_follows_a_retry_connects() {
    let mut two = Two::new(strict);
    let near = two.connect(1000);
    let first = two.client_sends();
    for (route, mut datagram) in first {
        two.server.handle_datagram(two.now, reversed(route), &mut datagram);
    }
    // Nothing is kept of the client.
    let held = two.server.held();
    assert_eq!((held.connections, held.waiting, held.connection_ids), (0, 0, 0));
    let answer = two.server_sends();
    assert_eq!((answer.len(), retries(&answer)), (1, 1));
    assert!(answer[0].1.len() < 1200 / 3, "no amplification");
    for (route, mut datagram) in answer {
        two.client.handle_datagram(two.now, reversed(route), &mut datagram);
    }
    two.settle();
    // Both ends checked the connection IDs that the transport parameters name.
    assert!(is_connected(&events(&mut two.client, near)));
    let far = two.server.accept().unwrap();
    assert!(is_connected(&events(&mut two.server, far)));
    let held = two.server.held();
    assert_eq!((held.connections, held.unvalidated), (1, 0));
}

/// The server may say all it has to say: the token proves the address.
#[test]
fn a_token_lifts_the_amplification_limit() {
    let chain = |bytes: usize| {
        move |config: ServerConfig| {
            let tls = NullServer::new(&[ALPN]).unwrap().with_certificate_chain(bytes).unwrap();
            ServerConfig { tls: Arc::new(tls), ..config }
        }
    };
    let flight = |retry: bool| {
        let mut two = Two::new(|config| {
            let config = chain(12_000)(config);
            if retry { strict(config) } else { config }
        });
        two.connect(1000);
        for _ in 0..=usize::from(retry) {
            for (route, mut datagram) in two.client_sends() {
                two.server.handle_datagram(two.now, reversed(route), &mut datagram);
            }
            if retry && two.server.held().connections == 0 {
                for (route, mut datagram) in two.server_sends() {
                    two.client.handle_datagram(two.now, reversed(route), &mut datagram);
                }
            }
        }
        two.server_sends().iter().map(|(_, datagram)| datagram.len()).sum::<usize>()
    };
    assert!(flight(false) <= 3_600);
    assert!(flight(true) > 10_000);
}

#[test]
fn clients_beyond_those_that_may_be_anybody_get_a_retry() {
    let mut two = Two::new(|config| {
        let admission = Admission { max_unvalidated: 2, ..Admission::default() };
        config.with_admission(admission).with_tokens(key(1))
    });
    for port in 1000..1005 {
        two.connect(port);
    }
    for (route, mut datagram) in two.client_sends() {
        two.server.handle_datagram(two.now, reversed(route), &mut datagram);
    }
    assert_eq!(two.server.held().unvalidated, 2);
    let answers = two.server_sends();
    assert_eq!(retries(&answers), 3);
    for (route, mut datagram) in answers {
        two.client.handle_datagram(two.now, reversed(route), &mut datagram);
    }
    two.settle();
    let handles: Vec<_> = two.client.handles().collect();
    let connected = handles.iter().filter(|near| is_connected(&events(&mut two.client, **near)));
    assert_eq!(connected.count(), 5);
}

/// The client's second first packet comes from elsewhere, too late, or again.
#[test]
fn a_retry_token_that_is_not_valid_is_told_at_once() {
    for (what, late, elsewhere) in [("late", true, false), ("from elsewhere", false, true)] {
        let mut two = Two::new(strict);
        let near = two.connect(1000);
        for (route, mut datagram) in two.client_sends() {
            two.server.handle_datagram(two.now, reversed(route), &mut datagram);
        }
        for (route, mut datagram) in two.server_sends() {
            two.client.handle_datagram(two.now, reversed(route), &mut datagram);
        }
        let again = two.client_sends();
        assert_eq!(again.len(), 1);
        if late {
            two.now += Duration::from_secs(11);
        }
        for (route, mut datagram) in again {
            let mut arrival = reversed(route);
            if elsewhere {
                arrival.route.remote = ([10, 0, 0, 9], 1000).into();
            }
            two.server.handle_datagram(two.now, arrival, &mut datagram);
        }
        assert_eq!(two.server.held().connections, 0, "{what}");
        for (route, mut datagram) in two.server_sends() {
            two.client.handle_datagram(two.now, reversed(route), &mut datagram);
        }
        let code = ErrorCode::INVALID_TOKEN.0;
        let reason = CloseReason::PeerTransport { code, reason: String::new() };
        let expected = ConnectionEvent::Closed(reason);
        assert_eq!(events(&mut two.client, near), [expected], "{what}");
    }
}

#[test]
fn a_token_of_a_connection_saves_the_next_one_a_round_trip() {
    let mut two = Two::new(strict);
    let store = Arc::new(TokenCache::default());
    two.config = two.config.clone().with_tokens(store.clone());
    let near = two.connect(1000);
    two.settle();
    assert!(is_connected(&events(&mut two.client, near)));
    // Two tokens came with the connection. The next connections show them, from another port.
    for (port, is_asked) in [(1001, false), (1002, false), (1003, false), (1004, false)] {
        let near = two.connect(port);
        for (route, mut datagram) in two.client_sends() {
            two.server.handle_datagram(two.now, reversed(route), &mut datagram);
        }
        let answers = two.server_sends();
        assert_eq!(retries(&answers) > 0, is_asked, "port {port}");
        for (route, mut datagram) in answers {
            two.client.handle_datagram(two.now, reversed(route), &mut datagram);
        }
        two.settle();
        assert!(is_connected(&events(&mut two.client, near)));
    }
    // Each connection brings two and takes one.
    let left = std::iter::from_fn(|| store.take(SERVER_NAME, Version::V1)).count();
    assert_eq!(left, 4);
}

#[test]
fn a_token_is_taken_once_and_only_from_its_address() {
    let mut two = Two::new(strict);
    let store = Arc::new(TokenCache::default());
    two.config = two.config.clone().with_tokens(store.clone());
    two.connect(1000);
    two.settle();
    let token = store.take(SERVER_NAME, Version::V1).unwrap();
    while store.take(SERVER_NAME, Version::V1).is_some() {}
    let mut asked = |address: [u8; 4]| {
        store.store(SERVER_NAME, Version::V1, &token);
        let route = quipu_quic::Route::new((address, 2000).into(), quipu_testkit::server_address());
        two.client.connect(two.now, &two.config, SERVER_NAME, route).unwrap();
        for (route, mut datagram) in two.client_sends() {
            two.server.handle_datagram(two.now, reversed(route), &mut datagram);
        }
        retries(&two.server_sends()) > 0
    };
    assert!(asked([10, 0, 0, 2]), "another address");
    assert!(!asked([10, 0, 0, 1]));
    assert!(asked([10, 0, 0, 1]), "a second time");
}

#[test]
fn the_application_may_ask_for_a_token() {
    let mut two = Two::new(|config| {
        config.with_admission(Admission { ask: true, ..Admission::default() }).with_tokens(key(1))
    });
    let near = two.connect(1000);
    two.settle();
    let now = two.now;
    let incoming = two.server.poll_incoming().unwrap();
    assert_eq!(incoming.token(), TokenState::Absent);
    assert!(two.server.retry(now, incoming));
    assert_eq!(two.server.held().waiting, 0);
    two.settle();
    let incoming = two.server.poll_incoming().unwrap();
    assert_eq!(incoming.token(), TokenState::FromRetry);
    assert!(!incoming.may_retry());
    assert!(two.server.admit(now, incoming, None).is_some());
    two.settle();
    assert!(is_connected(&events(&mut two.client, near)));
}

#[test]
fn a_server_that_starts_anew_with_its_key_takes_tokens_of_before() {
    let mut two = Two::new(strict);
    let store = Arc::new(TokenCache::default());
    two.config = two.config.clone().with_tokens(store);
    two.connect(1000);
    two.settle();
    for (secret, previous, is_taken) in [(1, None, true), (2, Some(1), true), (3, None, false)] {
        let tokens = TokenConfig {
            previous_key: previous.and_then(|secret| key(secret).key),
            ..key(secret)
        };
        two.server = Endpoint::seeded(Seed::new(7).stream("again", u64::from(secret)));
        two.server.listen(strict(plain_server()).with_tokens(tokens)).unwrap();
        two.connect(2000 + u16::from(secret));
        for (route, mut datagram) in two.client_sends() {
            two.server.handle_datagram(two.now, reversed(route), &mut datagram);
        }
        assert_eq!(two.server.held().connections == 1, is_taken, "key {secret}");
    }
}

/// A client that got a Retry, its server's answers to come, and what the client sends then.
fn after_a_retry() -> (Two, Vec<u8>, (quipu_quic::Route, Vec<u8>)) {
    let mut two = Two::new(strict);
    two.connect(1000);
    let first = two.client_sends();
    for (route, datagram) in &first {
        two.server.handle_datagram(two.now, reversed(*route), &mut datagram.clone());
    }
    let retry = two.server_sends().swap_remove(0);
    (two, first[0].1.clone(), retry)
}

/// Destination and source connection ID of a long header.
fn ids(datagram: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (dcid, rest) = datagram[6..].split_at(usize::from(datagram[5]));
    (dcid.to_vec(), rest[1..1 + usize::from(rest[0])].to_vec())
}

/// Nothing protects Version Negotiation: whoever saw the first packet can forge it.
#[test]
fn version_negotiation_after_a_retry_is_not_believed() {
    let (mut two, first, (route, mut retry)) = after_a_retry();
    let near = two.client.handles().next().unwrap();
    two.client.handle_datagram(two.now, reversed(route), &mut retry);
    let (dcid, scid) = ids(&first);
    let mut forged = vec![0xc0, 0, 0, 0, 0];
    for id in [&scid, &dcid] {
        forged.push(id.len() as u8);
        forged.extend(id);
    }
    forged.extend([0x1a, 0x2a, 0x3a, 0x4a]);
    two.client.handle_datagram(two.now, reversed(route), &mut forged);
    two.settle();
    assert!(is_connected(&events(&mut two.client, near)));
}

/// Whoever saw the first packet can make a valid Retry packet, too.
#[test]
fn a_retry_to_the_same_destination_is_dropped() {
    let (mut two, first, (route, _)) = after_a_retry();
    let near = two.client.handles().next().unwrap();
    let (dcid, scid) = ids(&first);
    let mut forged = vec![0xf0, 0, 0, 0, 1];
    for id in [&scid, &dcid] {
        forged.push(id.len() as u8);
        forged.extend(id);
    }
    forged.extend(b"token");
    let original = quipu_quic::wire::ConnectionId::new(&dcid).unwrap();
    forged.extend(quipu_quic::tls::retry_tag(quipu_quic::wire::Version::V1, &original, &forged));
    two.client.handle_datagram(two.now, reversed(route), &mut forged);
    assert_eq!(two.client_sends().len(), 0, "it does not start anew");
    two.wait(Duration::from_secs(3));
    assert!(is_connected(&events(&mut two.client, near)), "the true Retry still counts");
}

/// Spoofed first packets are answered with less than they are, and nothing is kept.
#[test]
fn a_flood_of_first_packets_leaves_nothing_where_tokens_are_asked_for() {
    let mut two = Two::new(strict);
    two.connect(1000);
    let (route, datagram) = two.client_sends().swap_remove(0);
    let before = two.server.held();
    let mut sent = Bytes::ZERO;
    for number in 0..10_000u32 {
        let mut arrival = reversed(route);
        arrival.route.remote = (std::net::Ipv4Addr::from_bits(number), 1000).into();
        two.server.handle_datagram(two.now, arrival, &mut datagram.clone());
        let answers = two.server_sends();
        sent += Bytes(answers.iter().map(|(_, answer)| answer.len() as u64).sum());
    }
    let held = two.server.held();
    assert_eq!(held, quipu_quic::endpoint::Held { looked_at: held.looked_at, ..before });
    assert!(sent < Bytes(10_000 * 1200 / 4), "{sent}");
}
