//! Whom a server lets in: limits, and what the application decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quipu_base::{Bytes, Duration};
use quipu_quic::ConnectionEvent;
use quipu_quic::connection::CloseReason;
use quipu_quic::endpoint::{Admission, Held, Incoming, ServerConfig, TokenState};
use quipu_quic::error::ErrorCode;
use quipu_quic::wire::Version;
use quipu_testkit::server_address;

use super::{Two, events, reversed};

/// The application decides.
fn asking(config: ServerConfig) -> ServerConfig {
    ServerConfig { admission: Admission { ask: true, ..Admission::default() }, ..config }
}

fn refused() -> ConnectionEvent {
    let reason = String::new();
    let code = ErrorCode::CONNECTION_REFUSED.0;
    ConnectionEvent::Closed(CloseReason::PeerTransport { code, reason })
}

/// A server that asks its application, and the client that waits.
fn one_waits() -> (Two, Incoming) {
    let mut two = Two::new(asking);
    two.connect(1000);
    two.settle();
    let incoming = two.server.poll_incoming().unwrap();
    (two, incoming)
}

#[test]
fn neither_tls_nor_policies_begin_before_the_application_decides() {
    let begun = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&begun);
    let mut two = Two::new(|config| {
        let policies = Arc::clone(&config.policies);
        let counted = move || {
            count.fetch_add(1, Ordering::Relaxed);
            policies()
        };
        asking(ServerConfig { policies: Arc::new(counted), ..config })
    });
    let near = two.connect(1000);
    two.settle();
    let incoming = two.server.poll_incoming().unwrap();
    assert!(two.server.poll_incoming().is_none());
    assert_eq!(incoming.remote_address(), ([10, 0, 0, 1], 1000).into());
    assert_eq!(incoming.local_address(), server_address());
    assert_eq!(incoming.token(), TokenState::Absent);
    assert_eq!(incoming.version(), Version::V1);
    assert_eq!(incoming.server_name(), Some(quipu_testkit::SERVER_NAME));
    assert!(incoming.may_retry());
    let held = two.server.held();
    assert_eq!((held.connections, held.waiting, begun.load(Ordering::Relaxed)), (0, 1, 0));

    let now = two.now;
    let far = two.server.admit(now, incoming, None).unwrap();
    two.settle();
    assert_eq!(begun.load(Ordering::Relaxed), 1);
    assert!(events(&mut two.client, near).contains(&ConnectionEvent::Connected));
    assert!(events(&mut two.server, far).contains(&ConnectionEvent::Connected));
    assert_eq!(two.server.accept(), None, "the application has it");
    assert_eq!(two.server.held().waiting, 0);
}

#[test]
fn a_refused_client_is_told_at_once() {
    let (mut two, incoming) = one_waits();
    two.server.refuse(incoming);
    let near = two.client.handles().next().unwrap();
    two.settle();
    assert_eq!(events(&mut two.client, near), [refused()]);
    assert_eq!(two.server.held().connections, 0);
}

#[test]
fn an_ignored_client_gets_no_answer_and_may_come_again() {
    let (mut two, incoming) = one_waits();
    two.server.ignore(incoming);
    two.settle();
    assert_eq!((two.sent[1], two.server.held().waiting), (0, 0));
    two.wait(Duration::from_secs(2));
    assert!(two.server.poll_incoming().is_some(), "its first packet came again");
}

#[test]
fn a_client_without_a_decision_is_forgotten() {
    let (mut two, incoming) = one_waits();
    let near = two.client.handles().next().unwrap();
    two.client.remove(near).unwrap();
    two.wait(Duration::from_secs(11));
    let held = two.server.held();
    assert_eq!(held, Held { looked_at: held.looked_at, ..Held::default() });
    let now = two.now;
    assert_eq!(two.server.admit(now, incoming, None), None);
}

#[test]
fn what_waiting_clients_hold_is_bounded() {
    let mut two = Two::new(|config| {
        let admission =
            Admission { ask: true, max_incoming_bytes: Bytes(20_000), ..Admission::default() };
        ServerConfig { admission, ..config }
    });
    for port in 1000..1100 {
        two.connect(port);
    }
    let first: Vec<_> = two.client_sends();
    for _ in 0..20 {
        for (route, datagram) in &first {
            let (now, mut copy) = (two.now, datagram.clone());
            two.server.handle_datagram(now, reversed(*route), &mut copy);
        }
    }
    let held = two.server.held();
    assert!(held.waiting <= 16 && held.waiting_bytes <= 20_000, "{held:?}");
}

/// More clients at once than the application looks at in between: none of them is turned away.
#[test]
fn clients_that_find_too_many_waiting_come_again() {
    let mut two = Two::new(|config| {
        let admission = Admission { ask: true, max_incoming: 2, ..Admission::default() };
        ServerConfig { admission, ..config }
    });
    let near: Vec<_> = (0..6).map(|number| two.connect(1000 + number)).collect();
    let mut admitted = 0;
    for _ in 0..20 {
        two.settle();
        assert!(two.server.held().waiting <= 2);
        while let Some(incoming) = two.server.poll_incoming() {
            let now = two.now;
            admitted += usize::from(two.server.admit(now, incoming, None).is_some());
        }
        two.wait(Duration::from_millis(500));
    }
    assert_eq!(admitted, 6);
    for handle in near {
        assert!(events(&mut two.client, handle).contains(&ConnectionEvent::Connected));
    }
}

#[test]
fn clients_above_each_limit_are_refused_at_once() {
    for (limit, admission) in [
        ("connections", Admission { max_connections: 3, ..Admission::default() }),
        ("of a source", Admission { max_per_source: 3, ..Admission::default() }),
    ] {
        let mut two = Two::new(|config| ServerConfig { admission, ..config });
        let near: Vec<_> = (0..4)
            .map(|number| {
                let handle = two.connect(1000 + number);
                two.settle();
                handle
            })
            .collect();
        let connected = |events: &[ConnectionEvent]| events.contains(&ConnectionEvent::Connected);
        for handle in &near[..3] {
            assert!(connected(&events(&mut two.client, *handle)), "{limit}");
        }
        assert_eq!(events(&mut two.client, near[3]), [refused()], "{limit}");
        assert_eq!(two.server.held().connections, 3, "{limit}");
    }
}

#[test]
fn a_first_packet_that_does_not_open_leaves_nothing() {
    let mut two = Two::new(|config| config);
    two.connect(1000);
    let (route, datagram) = two.client_sends().swap_remove(0);
    let before = two.server.held();
    for at in [0, 30, 600, 1199] {
        let (now, mut forged) = (two.now, datagram.clone());
        forged[at] ^= 1;
        // Null TLS protects first byte, lengths and tag alone.
        if at == 600 {
            continue;
        }
        assert_eq!(two.server.handle_datagram(now, reversed(route), &mut forged), None);
        let held = two.server.held();
        assert_eq!(held, Held { looked_at: held.looked_at, ..before }, "byte {at}");
    }
    assert_eq!(two.server_sends(), []);
}

/// A server that does not answer, or not enough: the client gives up in time.
#[test]
fn a_client_gives_up_on_a_handshake_that_takes_too_long() {
    let mut two = Two::new(|config| config);
    let near = two.connect(1000);
    let since = two.now;
    two.client_sends();
    while let Some(at) = two.client.poll_timeout() {
        two.now = at;
        two.client.handle_timeout(at);
        two.client_sends();
        if two.client.connection(near).is_none_or(|connection| connection.is_closed()) {
            break;
        }
    }
    assert_eq!(two.now - since, Duration::from_secs(10));
    let reason = CloseReason::HandshakeTimeout;
    assert_eq!(events(&mut two.client, near), [ConnectionEvent::Closed(reason)]);
}
