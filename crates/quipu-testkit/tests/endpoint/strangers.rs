//! What an endpoint answers to datagrams that belong to no connection.

use std::net::SocketAddr;
use std::sync::Arc;

use quipu_base::{Duration, Instant, Seed};
use quipu_null_tls::{NullClient, NullResetKey, NullTokenKey};
use quipu_quic::connection::CloseReason;
use quipu_quic::endpoint::{Admission, ClientConfig, EndpointConfig, ServerConfig, TokenConfig};
use quipu_quic::tls::rustls::RustlsServer;
use quipu_quic::{Arrival, ConnectionEvent, Endpoint, Route, TransportConfig};
use quipu_testkit::{
    ALPN, Identity, SERVER_NAME, Strict, client_address, plain_policies, server_address,
};
use rand_core::Rng;

use super::{Sent, Two, reversed};

fn from_client() -> Arrival {
    let route = Route::new(server_address(), client_address(0));
    Arrival { route, ecn: 0 }
}

fn server() -> Endpoint {
    let identity = Identity::generate().expect("a certificate");
    let tls = RustlsServer::new(Arc::new(identity.server_tls().expect("an identity")));
    let mut endpoint = Endpoint::seeded(Seed::new(1).stream("endpoint", 0));
    let tls = Arc::new(tls.expect("usable with QUIC"));
    let config = ServerConfig::new(tls, Arc::new(TransportConfig::default()), plain_policies());
    endpoint.listen(config.with_max_connections(3)).expect("a valid transport");
    endpoint
}

/// What the endpoint sends when this comes.
fn answers(endpoint: &mut Endpoint, datagram: &[u8]) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut sent = Strict::new(Sent::default());
    endpoint.handle_datagram(Instant::ZERO, from_client(), &mut datagram.to_vec());
    endpoint.poll_transmit(Instant::ZERO, &mut sent);
    let sent = sent.into_inner().datagrams.into_iter();
    sent.map(|(route, datagram)| (route.remote, datagram)).collect()
}

/// A long header with these connection IDs, padded to `length`.
fn long_header(version: u32, dcid: &[u8], scid: &[u8], length: usize) -> Vec<u8> {
    let mut datagram = vec![0xc3];
    datagram.extend(version.to_be_bytes());
    for id in [dcid, scid] {
        datagram.push(id.len() as u8);
        datagram.extend(id);
    }
    datagram.resize(length, 0x55);
    datagram
}

#[test]
fn an_unknown_version_is_answered_with_ours_and_the_ids_swapped() {
    let mut endpoint = server();
    let (dcid, scid) = ([7; 30], [9; 5]);
    let sent = answers(&mut endpoint, &long_header(0x1a2a_3a4a, &dcid, &scid, 1200));
    let [(to, answer)] = &sent[..] else { panic!("one answer, not {}", sent.len()) };
    assert_eq!(*to, client_address(0));
    assert_eq!(answer[0] & 0x80, 0x80);
    let mut expected = vec![0, 0, 0, 0, 5];
    expected.extend(scid);
    expected.push(30);
    expected.extend(dcid);
    expected.extend(1u32.to_be_bytes());
    let (listed, reserved) = answer[1..].split_last_chunk::<4>().expect("a version more");
    assert_eq!(listed, expected);
    let reserved = u32::from_be_bytes(*reserved);
    assert_eq!(reserved & 0x0f0f_0f0f, 0x0a0a_0a0a);
    assert_ne!(reserved, 0x1a2a_3a4a);
    // So short a datagram could be used to make us send more than came.
    assert_eq!(answers(&mut endpoint, &long_header(0x1a2a_3a4a, &dcid, &scid, 1199)), []);
    assert_eq!(endpoint.handles().count(), 0);
}

/// A client's connection and its first datagram.
fn client() -> (Endpoint, Vec<u8>) {
    let mut endpoint = Endpoint::seeded(Seed::new(2).stream("endpoint", 0));
    let tls = Arc::new(NullClient::new(&[ALPN]).expect("a valid name"));
    let config = ClientConfig::new(tls, Arc::new(TransportConfig::default()), plain_policies());
    let route = Route::new(client_address(0), server_address());
    endpoint.connect(Instant::ZERO, &config, SERVER_NAME, route).expect("a valid configuration");
    let mut sent = Strict::new(Sent::default());
    endpoint.poll_transmit(Instant::ZERO, &mut sent);
    let (_, first) = sent.into_inner().datagrams.swap_remove(0);
    (endpoint, first)
}

/// Whether the client gives up when a server answers that it speaks `version`, with these
/// connection IDs as destination and source.
fn gives_up(version: u32, ids: impl FnOnce(&[u8], &[u8]) -> (Vec<u8>, Vec<u8>)) -> bool {
    let (mut endpoint, first) = client();
    let (dcid, rest) = first[6..].split_at(usize::from(first[5]));
    let scid = &rest[1..1 + usize::from(rest[0])];
    let (to, from) = ids(dcid, scid);
    let mut answer = long_header(0, &to, &from, 7 + to.len() + from.len());
    answer.extend(version.to_be_bytes());
    let route = Route::new(client_address(0), server_address());
    endpoint.handle_datagram(Instant::ZERO, Arrival { route, ecn: 0 }, &mut answer);
    let handle = endpoint.handles().next().expect("the connection");
    let event = endpoint.connection_mut(handle).and_then(|connection| connection.poll());
    event == Some(ConnectionEvent::Closed(CloseReason::Version))
}

#[test]
fn a_client_gives_up_when_its_first_packet_is_answered_with_other_versions_only() {
    let swapped = |dcid: &[u8], scid: &[u8]| (scid.to_vec(), dcid.to_vec());
    assert!(gives_up(0x6b33_43cf, swapped));
    assert!(!gives_up(1, swapped), "it lists the version that was tried");
    let forged = |_: &[u8], scid: &[u8]| (scid.to_vec(), vec![1; 8]);
    assert!(!gives_up(0x6b33_43cf, forged), "the server's ID is not the one that was tried");
}

#[test]
fn junk_is_neither_answered_nor_kept() {
    let mut endpoint = server();
    let mut random = Seed::new(3).stream("junk", 0);
    for round in 0..2000 {
        let length = [1200, 1500, random.next_u32() as usize % 100][round % 3];
        let mut datagram = vec![0; length];
        random.fill_bytes(&mut datagram);
        if round % 2 == 0 {
            // An Initial of our version, but nothing that opens.
            let header = long_header(1, &[round as u8; 8], &[2; 8], 22);
            let within = header.len().min(length);
            datagram[..within].copy_from_slice(&header[..within]);
            if let Some(token_and_length) = datagram.get_mut(within..within + 3) {
                token_and_length.copy_from_slice(&[0, 0x44, 0x50]);
            }
        } else if let Some(first) = datagram.first_mut() {
            *first &= 0x7f;
        }
        assert_eq!(answers(&mut endpoint, &datagram), []);
    }
    assert_eq!(endpoint.handles().count(), 0);
    assert_eq!(endpoint.accept(), None);
    assert_eq!(endpoint.ignored_datagrams(), 2000);
    assert_eq!(endpoint.poll_timeout(), None);
}

/// The same at a server that has keys for tokens and resets and asks its application: what is
/// answered is bounded, and nothing is kept.
#[test]
fn junk_is_no_trouble_for_a_server_with_keys() {
    let endpoints = EndpointConfig {
        reset_key: Some(Arc::new(NullResetKey::new(&[1; 32]))),
        ..EndpointConfig::default()
    };
    let mut two = Two::with_endpoints(endpoints, |config| {
        let admission = Admission { ask: true, max_unvalidated: 0, ..Admission::default() };
        let key = Arc::new(NullTokenKey::new(&[1; 32]));
        config.with_admission(admission).with_tokens(TokenConfig::with_key(key))
    });
    two.connect(1000);
    let (route, model) = two.client_sends().swap_remove(0);
    let mut random = Seed::new(4).stream("junk", 0);
    let (mut came, mut went) = (0, 0);
    for round in 0..20_000usize {
        let mut datagram = model.clone();
        datagram.truncate([1500, 1200, 40, 25][round % 4].min(model.len()));
        for _ in 0..1 + round % 7 {
            // Headers, lengths and tokens are where lies matter.
            let at = random.next_u32() as usize % datagram.len().min(80);
            datagram[at] = random.next_u32() as u8;
        }
        came += datagram.len();
        two.server.handle_datagram(two.now, reversed(route), &mut datagram);
        went += two.server_sends().iter().map(|(_, answer)| answer.len()).sum::<usize>();
        two.now += Duration::from_micros(100);
    }
    let held = two.server.held();
    assert_eq!((held.connections, held.connection_ids, held.waiting), (0, 0, 0), "{held:?}");
    assert!(went < came / 2, "{went} bytes for {came}");
}
