//! RFC 9218's priorities: the field, the frame, the setting.

use quipu_base::StreamId;
use quipu_http::h2::{
    Body, ClientEvent, ConnectionError, ErrorCode, FrameStreamId, Request, ServerConfig,
    ServerEvent, StreamPriority,
};
use quipu_policy::Urgency;

use crate::session::{Session, get, ok};

/// A connection whose client states urgencies alone.
fn started(seed: u64, config: ServerConfig) -> Session {
    let mut session = Session::idle(seed, config);
    session.client = session.client.with_urgencies();
    let groups = [(FrameStreamId::try_from(3).unwrap(), StreamPriority::default())];
    session.client.start(&mut session.loopback.client, &groups).unwrap();
    session
}

fn only() -> ServerConfig {
    ServerConfig { urgencies_only: true, ..ServerConfig::default() }
}

fn request(priority: Option<&str>) -> Request {
    let mut fields = get("/");
    if let Some(value) = priority {
        fields.push("priority", value);
    }
    // Of a client with urgencies, this says nothing.
    let place = StreamPriority { weight: 99, ..StreamPriority::default() };
    Request { fields, body: Body::Empty, priority: Some(place) }
}

fn update(session: &mut Session, stream: StreamId, level: u8, incremental: bool) {
    let urgency = Urgency { level, incremental };
    session.client.update_priority(&mut session.loopback.client, stream, urgency).unwrap();
}

fn urgencies(session: &Session) -> Vec<(u64, u8, bool)> {
    let told = session.loopback.server.urgencies.iter();
    told.map(|&(stream, level, incremental)| (stream.0, level, incremental)).collect()
}

fn failure_of_server(session: &Session) -> Option<ErrorCode> {
    session.server_events.iter().find_map(|event| match event {
        ServerEvent::ConnectionFailed(error) => Some(error.code()),
        _ => None,
    })
}

#[test]
fn the_field_decides_where_the_tree_is_left_alone() {
    for config in [ServerConfig::default(), only()] {
        let mut session = started(1, config);
        for priority in [Some("u=0, i"), Some("u=9, i"), Some("u=1,"), None] {
            session.request(request(priority));
        }
        session.settle();
        assert_eq!(
            urgencies(&session),
            [(4, 0, true), (8, 3, true), (12, 3, false), (16, 3, false)]
        );
        assert!(session.loopback.server.tree.is_empty());
    }
}

#[test]
fn a_server_that_wants_urgencies_ignores_the_tree_of_a_client_that_does_not() {
    let mut session = Session::idle(2, only());
    session.client.start(&mut session.loopback.client, &[]).unwrap();
    let stream = session.request(request(None));
    session.settle();
    // PRIORITY of 4 on 4: an error only for who looks at it.
    session.inject(&[0, 0, 5, 2, 0, 0, 0, 0, 4, 0, 0, 0, 4, 0]);
    session.settle();
    assert_eq!(urgencies(&session), [(4, 3, false)]);
    assert!(session.loopback.server.tree.is_empty());
    session.respond(stream, &ok(), Body::Empty);
    session.settle();
    assert_eq!(failure_of_server(&session), None);
}

#[test]
fn both_kinds_of_priorities_reach_a_server_that_takes_both() {
    let mut session = Session::started(3);
    session.request(request(Some("u=2")));
    session.request(request(None));
    session.settle();
    assert_eq!(urgencies(&session), [(4, 2, false)]);
    assert_eq!(session.loopback.server.tree.len(), 3);
}

#[test]
fn the_response_overrides_what_it_states() {
    let mut session = started(4, only());
    let first = session.request(request(Some("u=5, i")));
    let second = session.request(request(Some("u=5")));
    session.settle();
    session.respond(first, &ok().with("priority", "u=1"), Body::Empty);
    session.respond(second, &ok().with("priority", "x"), Body::Empty);
    assert_eq!(urgencies(&session)[2..], [(4, 1, true)]);
}

#[test]
fn an_update_changes_a_request_that_came_and_one_to_come() {
    let mut session = started(5, only());
    let first = session.request(request(Some("u=3, i")));
    session.settle();
    update(&mut session, first, 1, true);
    // Before its request, twice; the last one counts, and the field does not.
    update(&mut session, StreamId(12), 6, false);
    update(&mut session, StreamId(12), 7, false);
    session.settle();
    session.request(request(Some("u=2")));
    session.request(request(Some("u=0")));
    session.settle();
    assert_eq!(urgencies(&session), [(4, 3, true), (4, 1, true), (8, 2, false), (12, 7, false)]);
    // A response's field is merged into the update.
    session.respond(first, &ok().with("priority", "u=4"), Body::Empty);
    assert_eq!(urgencies(&session).last(), Some(&(4, 4, true)));
    // Delivered, so nothing is left to prioritise.
    session.settle();
    update(&mut session, first, 0, false);
    session.settle();
    assert_eq!(urgencies(&session).last(), Some(&(4, 4, true)));
}

#[test]
fn updates_stop_where_the_server_goes_by_the_tree() {
    let mut session = started(6, ServerConfig::default());
    let stream = session.request(request(None));
    // Before the server's settings came.
    update(&mut session, stream, 1, false);
    session.settle();
    update(&mut session, stream, 2, false);
    session.settle();
    assert_eq!(urgencies(&session), [(4, 3, false), (4, 1, false)]);
}

#[test]
fn updates_that_cannot_be_close_the_connection() {
    // Of stream 5, which is no request; and of more requests to come than may be open.
    let unusable = [vec![0, 0, 7, 16, 0, 0, 0, 0, 0, 0, 0, 0, 5, b'u', b'=', b'1'], {
        let frame = |stream: u8| [0, 0, 4, 16, 0, 0, 0, 0, 0, 0, 0, 0, stream];
        [frame(4), frame(8), frame(12)].concat()
    }];
    for octets in unusable {
        let mut session = started(7, ServerConfig { max_requests: 2, ..only() });
        session.inject(&octets);
        session.settle();
        assert_eq!(failure_of_server(&session), Some(ErrorCode::PROTOCOL_ERROR));
    }
}

#[test]
fn a_client_takes_no_updates() {
    use quipu_http::transport::Transport as _;
    let mut session = started(8, only());
    session.settle();
    let frame = bytes::Bytes::from_static(&[0, 0, 4, 16, 0, 0, 0, 0, 0, 0, 0, 0, 4]);
    session.loopback.server.write(StreamId(0), frame).unwrap();
    session.settle();
    let stream = FrameStreamId::try_from(4).unwrap();
    let problem = "from a server";
    let error = ConnectionError::WrongUpdate { stream, problem };
    assert_eq!(error.code(), ErrorCode::PROTOCOL_ERROR);
    assert_eq!(session.client_events, [ClientEvent::ConnectionFailed(error)]);
}

#[test]
fn the_setting_stays_what_it_was_at_first() {
    let setting = |value: u8| [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, value];
    for (first, second, changed) in
        [(Some(1), 1, false), (Some(1), 0, true), (None, 0, false), (None, 1, true)]
    {
        let mut session = Session::idle(9, ServerConfig::default());
        if first.is_some() {
            session.client = session.client.with_urgencies();
        }
        session.client.start(&mut session.loopback.client, &[]).unwrap();
        session.inject(&setting(second));
        session.settle();
        let expected = changed.then_some(ErrorCode::PROTOCOL_ERROR);
        assert_eq!(failure_of_server(&session), expected, "{first:?} {second}");
    }
}
