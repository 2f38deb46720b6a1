//! HTTP datagrams.

use bytes::Bytes;
use quipu_http::h3::{
    Body, ClientConfig, ClientEvent, ErrorCode, RequestError, ServerConfig, ServerEvent,
};

use crate::session::{Session, ok};

fn session(server: bool) -> Session {
    between(true, server)
}

fn between(client: bool, server: bool) -> Session {
    let client = ClientConfig { datagrams: client, ..ClientConfig::default() };
    let server = ServerConfig { datagrams: server, ..ServerConfig::default() };
    let mut session = Session::idle(1, client, server);
    session.loopback.client.takes_datagrams = true;
    session.loopback.server.takes_datagrams = true;
    session.client.start(&mut session.loopback.client).unwrap();
    session
}

#[test]
fn datagrams_name_their_request() {
    let mut session = session(true);
    session.get("/0");
    let stream = session.get("/1");
    session.settle();
    let datagram = session.client.datagram(stream, b"ping").unwrap();
    assert_eq!(&datagram[..], b"\x01ping");
    session.server.on_datagram(&datagram);
    session.take_server_events();
    let payload = Bytes::from_static(b"ping");
    assert_eq!(session.server_events.last(), Some(&ServerEvent::Datagram { stream, payload }));
    let answer = session.server.datagram(stream, b"pong").unwrap();
    session.client.on_datagram(&answer);
    session.take_client_events();
    let payload = Bytes::from_static(b"pong");
    assert_eq!(session.client_events.last(), Some(&ClientEvent::Datagram { stream, payload }));
}

#[test]
fn datagrams_of_requests_that_are_over_are_dropped() {
    let mut session = session(true);
    let stream = session.get("/0");
    session.settle();
    let datagram = session.client.datagram(stream, b"late").unwrap();
    session.respond(stream, &ok(), Body::Empty);
    session.settle();
    let told = session.server_events.len();
    session.server.on_datagram(&datagram);
    session.take_server_events();
    assert_eq!(session.server_events.len(), told);
    assert_eq!(session.client.datagram(stream, b"x"), Err(RequestError::NoRequest(stream)));
}

#[test]
fn none_are_sent_to_who_takes_none() {
    let mut session = session(false);
    let stream = session.get("/0");
    session.settle();
    assert_eq!(session.client.datagram(stream, b"x"), Err(RequestError::NoDatagrams));
}

/// <https://www.rfc-editor.org/rfc/rfc9297#section-2.1.1>
#[test]
fn none_are_sent_by_who_takes_none() {
    let mut session = between(false, true);
    let stream = session.get("/0");
    session.settle();
    assert_eq!(session.client.datagram(stream, b"x"), Err(RequestError::NoDatagrams));
}

#[test]
fn a_datagram_without_a_request_that_could_be_fails_the_connection() {
    for wrong in [&b""[..], &[0x40], &[0xff; 8]] {
        let mut session = session(true);
        session.server.on_datagram(&Bytes::copy_from_slice(wrong));
        session.take_server_events();
        match session.server_events.last() {
            Some(ServerEvent::ConnectionFailed(error)) => {
                assert_eq!(error.code(), ErrorCode::DATAGRAM_ERROR);
            }
            other => panic!("{other:?}"),
        }
    }
}
