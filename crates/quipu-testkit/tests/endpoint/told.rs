//! What an endpoint tells a driver of many connections.

use bytes::Bytes;
use quipu_base::StreamDirection;
use quipu_quic::{ConnectionEvent, ConnectionHandle, Endpoint};

use super::{Two, reversed};

/// All events since the last poll, which only connections have that something happened to.
fn told(endpoint: &mut Endpoint) -> Vec<(ConnectionHandle, ConnectionEvent)> {
    std::iter::from_fn(|| endpoint.poll_event()).collect()
}

#[test]
fn events_are_told_of_those_connections_alone_that_something_happened_to() {
    let mut two = Two::new(|config| config);
    let (first, second) = (two.connect(1000), two.connect(1001));
    two.settle();
    let now = two.now;
    // The last poll of both looked at no connection, so all events wait for the next one.
    for handle in [first, second] {
        two.client.connection_mut(handle).unwrap();
    }
    two.client_sends();
    let events = told(&mut two.client);
    for handle in [first, second] {
        assert!(events.contains(&(handle, ConnectionEvent::Confirmed)), "{events:?}");
    }
    two.client_sends();
    assert_eq!(told(&mut two.client), [], "taking events is nothing to poll for");

    let connection = two.client.connection_mut(second).unwrap();
    let stream = connection.open_stream(now, StreamDirection::Unidirectional).unwrap();
    connection.write(now, stream, Bytes::from_static(b"hello")).unwrap();
    two.server_sends();
    told(&mut two.server);
    for (route, mut datagram) in two.client_sends() {
        two.server.handle_datagram(now, reversed(route), &mut datagram);
    }
    two.server_sends();
    let events = told(&mut two.server);
    assert!(events.iter().all(|(handle, _)| *handle == events[0].0), "{events:?}");
    assert!(events.contains(&(events[0].0, ConnectionEvent::StreamOpened(stream))), "{events:?}");
}

#[test]
fn a_connection_that_ended_goes_when_its_end_was_told() {
    let mut two = Two::new(|config| config);
    two.connect(1000);
    two.settle();
    let far = two.server.accept().unwrap();
    let now = two.now;
    two.server.connection_mut(far).unwrap().close(now, 7, b"");
    two.wait(quipu_base::Duration::from_secs(10));
    let near = two.client.handles().next().expect("its end was not told");
    two.client.connection_mut(near).unwrap();
    two.client_sends();
    let events = told(&mut two.client);
    assert!(matches!(events.last(), Some((_, ConnectionEvent::Closed(_)))), "{events:?}");
    two.client_sends();
    assert_eq!(two.client.held().connections, 0);
    assert_eq!(told(&mut two.client), []);
}

#[test]
fn a_read_takes_no_more_than_it_is_to() {
    let mut two = Two::new(|config| config);
    let near = two.connect(1000);
    two.settle();
    let now = two.now;
    let connection = two.client.connection_mut(near).unwrap();
    let stream = connection.open_stream(now, StreamDirection::Unidirectional).unwrap();
    connection.write(now, stream, Bytes::from_static(b"hello")).unwrap();
    connection.finish(now, stream).unwrap();
    two.settle();
    let far = two.server.accept().unwrap();
    let connection = two.server.connection_mut(far).unwrap();
    let mut text = Vec::new();
    let mut read = |max| {
        let sink = &mut |piece: &[u8]| text.extend_from_slice(piece);
        let read = connection.read_at_most(now, stream, max, sink).unwrap();
        (read.bytes, read.end)
    };
    assert_eq!((read(0), read(3), read(10)), ((0, false), (3, false), (2, true)));
    assert_eq!(text, b"hello");
}
