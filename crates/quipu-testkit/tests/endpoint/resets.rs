//! Stateless resets, sent and recognised.

use std::sync::Arc;

use quipu_base::{Duration, Seed};
use quipu_null_tls::NullResetKey;
use quipu_quic::connection::CloseReason;
use quipu_quic::connection_ids::RandomIds;
use quipu_quic::endpoint::EndpointConfig;
use quipu_quic::{ConnectionEvent, ConnectionHandle, Endpoint, Route};
use quipu_testkit::server_address;

use super::{Two, events, plain_server, reversed};

fn with_key(secret: u8) -> EndpointConfig {
    let reset_key = Arc::new(NullResetKey::new(&[secret; 32]));
    EndpointConfig { reset_key: Some(reset_key), ..EndpointConfig::default() }
}

/// A server that knows nothing of connections before it started.
fn started_anew(config: EndpointConfig) -> Endpoint {
    let mut endpoint = Endpoint::seeded_with(config, Seed::new(9).stream("anew", 0)).unwrap();
    endpoint.listen(plain_server()).unwrap();
    endpoint
}

/// A connection with two paths, whose server has a key for resets.
fn connected() -> (Two, ConnectionHandle) {
    let mut two = Two::with_endpoints(with_key(1), |config| config);
    let near = two.connect(1000);
    two.settle();
    let route = Route::new(([10, 0, 0, 2], 1000).into(), server_address());
    let now = two.now;
    two.client.connection_mut(near).unwrap().open_path(now, route).unwrap();
    two.settle();
    let second = two.client.connection(near).unwrap().route(quipu_base::PathId(1));
    assert_eq!(second, Some(route));
    let all = events(&mut two.client, near);
    assert!(all.iter().any(|event| matches!(event, ConnectionEvent::PathUp(_))), "{all:?}");
    (two, near)
}

/// The client says something.
fn ping(two: &mut Two, near: ConnectionHandle) {
    let now = two.now;
    let connection = two.client.connection_mut(near).unwrap();
    let stream = connection.open_stream(now, quipu_base::StreamDirection::Bidirectional).unwrap();
    connection.write(now, stream, vec![7; 500].into()).unwrap();
}

fn is_reset(two: &mut Two, near: ConnectionHandle) -> bool {
    events(&mut two.client, near).contains(&ConnectionEvent::Closed(CloseReason::StatelessReset))
}

#[test]
fn a_client_of_a_server_that_started_anew_hears_of_it_at_once() {
    let (mut two, near) = connected();
    two.server = started_anew(with_key(1));
    ping(&mut two, near);
    two.settle();
    assert!(is_reset(&mut two, near), "all paths end with the connection");
    two.wait(Duration::from_secs(5));
    assert_eq!(two.client.handles().count(), 0);
    assert_eq!(two.client.held().reset_tokens, 0);
}

#[test]
fn resets_of_another_key_or_address_are_nobodys() {
    let (mut two, near) = connected();
    two.server = started_anew(with_key(2));
    ping(&mut two, near);
    two.settle();
    assert!(!is_reset(&mut two, near));

    two.server = started_anew(with_key(1));
    two.wait(Duration::from_secs(1));
    let (mut two, near) = connected();
    two.server = started_anew(with_key(1));
    ping(&mut two, near);
    for (route, mut datagram) in two.client_sends() {
        two.server.handle_datagram(two.now, reversed(route), &mut datagram);
    }
    for (route, mut datagram) in two.server_sends() {
        let mut arrival = reversed(route);
        arrival.route.remote = ([10, 6, 6, 6], 443).into();
        two.client.handle_datagram(two.now, arrival, &mut datagram);
    }
    assert!(!is_reset(&mut two, near), "from elsewhere");
}

#[test]
fn a_reset_with_a_known_connection_id_counts_too() {
    let (mut two, near) = connected();
    two.server = started_anew(with_key(1));
    ping(&mut two, near);
    let sent = two.client_sends();
    for (route, datagram) in &sent {
        two.server.handle_datagram(two.now, reversed(*route), &mut datagram.clone());
    }
    let (route, mut reset) = two.server_sends().swap_remove(0);
    // Somebody routes by connection ID and has put one of the client's there.
    let known = {
        let (mut two, near) = connected();
        let now = two.now;
        let far = two.server.accept().unwrap();
        let stream = two.server.connection_mut(far).unwrap();
        let _ = stream.open_stream(now, quipu_base::StreamDirection::Unidirectional);
        let _ = near;
        two.server.connection_mut(far).unwrap().close(now, 0, b"");
        two.server_sends().swap_remove(0).1[1..9].to_vec()
    };
    reset[1..9].copy_from_slice(&known);
    two.client.handle_datagram(two.now, reversed(route), &mut reset);
    assert!(is_reset(&mut two, near));
}

#[test]
fn tokens_of_retired_ids_and_abandoned_paths_do_not_count() {
    let (mut two, near) = connected();
    let before = two.client.held().reset_tokens;
    assert_eq!(before, 2, "one for each path in use, though more IDs are known");
    let now = two.now;
    let code = quipu_quic::error::ErrorCode::APPLICATION_ABANDON_PATH;
    let client = two.client.connection_mut(near).unwrap();
    let second = client.path_views().map(|view| view.key.id).max().unwrap();
    assert!(client.abandon_path(now, second, code));
    two.settle();
    assert_eq!(two.client.held().reset_tokens, 1);
}

/// Two endpoints behind one address share the key, and each gets some of the other's datagrams.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-21.11>
#[test]
fn a_shard_does_not_reset_the_connections_of_another() {
    let shard = |index| EndpointConfig {
        connection_ids: Arc::new(RandomIds::new(8).unwrap().for_shard(index, 4).unwrap()),
        ..with_key(1)
    };
    let mut two = Two::with_endpoints(shard(1), |config| config);
    let near = two.connect(1000);
    two.settle();
    events(&mut two.client, near);
    ping(&mut two, near);
    let sent = two.client_sends();
    for (index, resets) in [(0, 0), (2, 0), (1, 1)] {
        let mut other = started_anew(shard(index));
        for (route, datagram) in &sent {
            other.handle_datagram(two.now, reversed(*route), &mut datagram.clone());
        }
        assert_eq!(other.held().responses.min(1), resets, "shard {index}");
    }
}

#[test]
fn resets_are_limited_in_rate_and_no_larger_than_what_came() {
    let (mut two, _) = connected();
    two.server = started_anew(EndpointConfig { resets_per_second: 100, ..with_key(1) });
    let mut sent = 0;
    for number in 0..1_000u64 {
        let route = Route::new(server_address(), ([10, 0, 0, 1], 1000).into());
        let mut datagram = vec![0x40; 21 + number as usize % 60];
        datagram[1..9].copy_from_slice(&number.to_be_bytes());
        let length = datagram.len();
        let arrival = quipu_quic::Arrival { route, ecn: 0 };
        two.server.handle_datagram(two.now, arrival, &mut datagram);
        let answers = two.server_sends();
        assert!(answers.iter().all(|(_, answer)| answer.len() < length));
        sent += answers.len();
    }
    assert_eq!(sent, 10);
    two.now += Duration::from_secs(1);
    assert_eq!(two.server.held().responses, 0);
}

#[test]
fn without_a_key_strangers_get_no_answer() {
    let (mut two, near) = connected();
    two.server = started_anew(EndpointConfig::default());
    ping(&mut two, near);
    for (route, mut datagram) in two.client_sends() {
        two.server.handle_datagram(two.now, reversed(route), &mut datagram);
    }
    assert!(two.server_sends().is_empty());
}
