//! GOAWAY.

use quipu_base::StreamId;
use quipu_http::h3::frame::kind;
use quipu_http::h3::{
    Body, ClientConfig, ClientEvent, ErrorCode, Failure, Request, RequestError, ServerConfig,
    ServerEvent,
};

use crate::raw::{CONTROL, Raw, frame, settings};
use crate::session::{Session, get, ok};

#[test]
fn a_server_that_goes_away_answers_what_came_and_nothing_later() {
    let mut session = Session::started(1);
    let first = session.get("/1");
    session.settle();
    session.server.go_away(&mut session.loopback.server).unwrap();
    // On its way when the server spoke.
    let late = session.get("/2");
    session.settle();
    session.respond(first, &ok(), Body::Empty);
    session.settle();
    assert!(session.client_events.contains(&ClientEvent::GoAway { first_refused: late }));
    let refused = ClientEvent::ResponseFailed { stream: late, failure: Failure::Refused };
    assert!(session.client_events.contains(&refused));
    assert!(session.client_events.contains(&ClientEvent::ResponseFinished { stream: first }));
    assert!(!session.is_asked(late));
    let request = Request { fields: get("/3"), body: Body::Empty };
    let next = session.client.request(&mut session.loopback.client, request);
    assert_eq!(next, Err(RequestError::GoingAway));
    assert_eq!((session.client.active(), session.server.active()), (0, 0));
}

#[test]
fn a_server_repeats_the_identifier_that_it_gave() {
    let mut session = Session::started(2);
    session.get("/1");
    session.settle();
    session.server.go_away(&mut session.loopback.server).unwrap();
    session.get("/2");
    session.settle();
    session.server.go_away(&mut session.loopback.server).unwrap();
    session.settle();
    let failed = |event: &ClientEvent| matches!(event, ClientEvent::ConnectionFailed(_));
    assert!(!session.client_events.iter().any(failed));
}

#[test]
fn the_identifier_may_not_grow_and_is_a_requests() {
    for (first, second) in [(0, Some(4)), (1, None), (2, None)] {
        let mut raw = Raw::server(ClientConfig::default());
        raw.uni(CONTROL, &settings(&[]));
        raw.write(StreamId(3), &frame(kind::GOAWAY, &[first]));
        if let Some(second) = second {
            assert_eq!(raw.failed, None);
            raw.write(StreamId(3), &frame(kind::GOAWAY, &[second]));
        }
        assert_eq!(raw.failed, Some(ErrorCode::ID_ERROR));
    }
}

#[test]
fn what_a_client_names_when_it_leaves_may_not_grow() {
    let mut raw = Raw::client(ServerConfig::default());
    raw.uni(CONTROL, &settings(&[]));
    raw.write(StreamId(2), &[frame(kind::GOAWAY, &[5]), frame(kind::GOAWAY, &[5])].concat());
    assert_eq!((raw.failed, raw.server_events.len()), (None, 2));
    raw.write(StreamId(2), &frame(kind::GOAWAY, &[6]));
    assert_eq!(raw.failed, Some(ErrorCode::ID_ERROR));
}

#[test]
fn a_client_says_that_it_leaves() {
    let mut session = Session::started(3);
    session.client.go_away(&mut session.loopback.client).unwrap();
    session.settle();
    assert_eq!(session.server_events, [ServerEvent::GoAway]);
}
