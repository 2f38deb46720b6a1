//! Sockets that take nothing for a while, at an endpoint with several connections.

use quipu_base::{Duration, PathId, StreamDirection};
use quipu_quic::{Drain, Outbox, Route, Transmit};

use super::{Sent, Two};

/// Keeps what is sent; one route takes nothing.
struct Blocking {
    sent: Sent,
    blocked: Route,
}

impl Outbox for Blocking {
    fn has_room(&self) -> bool {
        true
    }

    fn is_blocked(&self, route: &Route) -> bool {
        *route == self.blocked
    }

    fn buffer(&mut self, size: usize) -> &mut [u8] {
        self.sent.buffer(size)
    }

    fn send(&mut self, transmit: Transmit) {
        self.sent.send(transmit);
    }
}

#[test]
fn a_blocked_route_stops_no_other_connection_and_no_deadline() {
    let mut two = Two::new(|config| config);
    let near = [1000, 1001, 1002].map(|port| two.connect(port));
    two.wait(Duration::from_secs(1));
    let now = two.now;
    for handle in near {
        let connection = two.client.connection_mut(handle).unwrap();
        let stream = connection.open_stream(now, StreamDirection::Unidirectional).unwrap();
        assert_eq!(connection.write(now, stream, vec![7; 500].into()), Ok(500));
    }
    let blocked = two.client.connection(near[0]).unwrap().route(PathId::ZERO).unwrap();
    let mut outbox = Blocking { sent: Sent::default(), blocked };
    assert_eq!(two.client.poll_transmit(now, &mut outbox), Drain::Blocked);
    let ports: Vec<_> = outbox.sent.datagrams.iter().map(|(route, _)| route.local.port()).collect();
    assert_eq!(ports, [1001, 1002]);
    // That of the packets in flight, not the end of an idle connection.
    let deadline = two.client.poll_timeout().unwrap();
    assert!(deadline > now && deadline < now + Duration::from_secs(1), "{deadline} at {now}");
    two.client.handle_unblocked();
    let later: Vec<_> = two.client_sends().iter().map(|(route, _)| route.local.port()).collect();
    assert_eq!(later, [1000]);
}
