//! Places of connections: used again, left by themselves, and found as fast however many there are.

use quipu_base::Duration;
use quipu_quic::ConnectionEvent;
use quipu_quic::connection::CloseReason;
use quipu_quic::endpoint::Held;

use super::{Two, events};

/// Longer than any closing period, shorter than the idle timeout.
const CLOSED: Duration = Duration::from_secs(10);

fn nothing(held: Held) -> bool {
    held == Held { looked_at: held.looked_at, ..Held::default() }
}

#[test]
fn a_connection_leaves_its_place_when_both_ends_know_that_it_is_over() {
    let mut two = Two::new(|config| config);
    let near = two.connect(1000);
    two.settle();
    let far = two.server.accept().unwrap();
    let now = two.now;
    two.client.connection_mut(near).unwrap().close(now, 7, b"enough");
    two.settle();
    // The server's application has yet to hear of it.
    two.wait(CLOSED);
    assert!(nothing(two.client.held()), "{:?}", two.client.held());
    assert!(two.server.connection(far).is_some());
    let reason = CloseReason::PeerApplication { code: 7, reason: "enough".into() };
    assert_eq!(events(&mut two.server, far).pop(), Some(ConnectionEvent::Closed(reason)));
    two.settle();
    assert!(two.server.connection(far).is_none());
    assert!(nothing(two.server.held()), "{:?}", two.server.held());
}

#[test]
fn the_closing_period_is_waited_for_though_the_application_knows() {
    let mut two = Two::new(|config| config);
    let near = two.connect(1000);
    two.settle();
    let now = two.now;
    two.client.connection_mut(near).unwrap().close(now, 7, b"");
    two.settle();
    assert!(matches!(events(&mut two.client, near).pop(), Some(ConnectionEvent::Closed(_))));
    two.settle();
    // It answers what still comes.
    assert!(two.client.connection(near).is_some());
    two.wait(CLOSED);
    assert!(two.client.connection(near).is_none());
}

#[test]
fn a_handle_never_finds_another_connection() {
    let mut two = Two::new(|config| config);
    let old = two.connect(1000);
    two.client.remove(old).unwrap();
    let new = two.connect(1001);
    assert_ne!(old, new);
    assert!(two.client.connection(old).is_none());
    assert!(two.client.connection_mut(old).is_none());
    assert!(two.client.remove(old).is_none());
    assert!(two.client.connection(new).is_some());
    assert_eq!(two.client.handles().collect::<Vec<_>>(), [new]);
}

#[test]
fn connections_that_nobody_takes_leave_nothing_behind() {
    let mut two = Two::new(|config| config);
    for round in 0..500 {
        let near = two.connect(1000 + round);
        two.settle();
        let now = two.now;
        two.client.connection_mut(near).unwrap().close(now, 0, b"");
        two.wait(CLOSED);
    }
    let held = two.server.held();
    assert!(held.accepted <= 17, "{held:?}");
    assert!(nothing(Held { accepted: 0, ..held }), "{held:?}");
    assert_eq!(two.server.accept(), None);
}

/// A driver may run it on any thread.
#[test]
fn an_endpoint_can_be_sent_to_another_thread() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&Two::new(|config| config).server);
}
