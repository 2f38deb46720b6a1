//! Urgencies: in requests, in responses, and in PRIORITY_UPDATE frames before and after.

use quipu_base::StreamId;
use quipu_http::h3::frame::{kind, put_varint};
use quipu_http::h3::{Body, ErrorCode, Request, ServerConfig};
use quipu_policy::Urgency;

use crate::raw::{CONTROL, Raw, frame, headers, settings};
use crate::session::{FIRST, Session, get, ok};

fn urgency(level: u8, incremental: bool) -> Urgency {
    Urgency { level, incremental }
}

fn update(stream: StreamId, value: &str) -> Vec<u8> {
    let mut payload = Vec::new();
    put_varint(stream.0, &mut payload);
    payload.extend_from_slice(value.as_bytes());
    frame(kind::PRIORITY_UPDATE, &payload)
}

#[test]
fn the_field_of_a_request_reaches_the_policies_and_defaults_hold_without_it() {
    for (field, expected) in [
        (None, (3, false)),
        (Some("u=1"), (1, false)),
        (Some("u=5, i"), (5, true)),
        (Some("i"), (3, true)),
        (Some("u=9"), (3, false)),
    ] {
        let mut session = Session::started(1);
        let mut fields = get("/");
        if let Some(value) = field {
            fields.push("priority", value);
        }
        let stream = session.request(Request { fields, body: Body::Empty });
        session.settle();
        let (level, incremental) = expected;
        assert_eq!(session.loopback.server.urgencies, [(stream, level, incremental)]);
    }
}

#[test]
fn what_the_response_states_overrides_the_request() {
    let mut session = Session::started(2);
    let fields = get("/").with("priority", "u=5, i");
    let stream = session.request(Request { fields, body: Body::Empty });
    session.settle();
    session.respond(stream, &ok().with("priority", "u=1"), Body::Empty);
    assert_eq!(session.loopback.server.urgencies, [(stream, 5, true), (stream, 1, true)]);
}

#[test]
fn an_update_counts_before_and_after_its_request() {
    // Before: it overrides the field of the request.
    let mut raw = Raw::client(ServerConfig::default());
    raw.uni(CONTROL, &[settings(&[]), update(FIRST, "u=0"), update(FIRST, "u=1, i")].concat());
    let stream = raw.bidi(&headers(&get("/").with("priority", "u=6")));
    assert_eq!(raw.loopback.server.urgencies, [(stream, 1, true)]);
    // After.
    raw.write(StreamId(2), &update(stream, "u=7"));
    assert_eq!(raw.loopback.server.urgencies.last(), Some(&(stream, 7, false)));
    // Of what is over: nothing.
    raw.finish(stream);
    raw.reset_ours(stream);
    let before = raw.loopback.server.urgencies.len();
    raw.write(StreamId(2), &update(stream, "u=2"));
    assert_eq!((raw.failed, raw.loopback.server.urgencies.len()), (None, before));
}

#[test]
fn an_update_that_cannot_be_read_states_the_defaults() {
    let mut raw = Raw::client(ServerConfig::default());
    raw.uni(CONTROL, &[settings(&[]), update(FIRST, "=?")].concat());
    let stream = raw.bidi(&headers(&get("/").with("priority", "u=6")));
    assert_eq!(raw.loopback.server.urgencies, [(stream, 3, false)]);
}

#[test]
fn an_update_names_a_request_that_may_be() {
    for wrong in [1, 2, 3, 4 * 1000] {
        let mut raw = Raw::client(ServerConfig::default());
        raw.uni(CONTROL, &[settings(&[]), update(StreamId(wrong), "u=1")].concat());
        assert_eq!(raw.failed, Some(ErrorCode::ID_ERROR), "{wrong}");
    }
    let mut raw = Raw::client(ServerConfig::default());
    raw.uni(CONTROL, &[settings(&[]), frame(kind::PRIORITY_UPDATE, &[0x40])].concat());
    assert_eq!(raw.failed, Some(ErrorCode::FRAME_ERROR));
}

#[test]
fn a_client_changes_its_mind() {
    let mut session = Session::started(3);
    let stream = session.get("/");
    session.settle();
    session.client.update_priority(&mut session.loopback.client, stream, urgency(1, true)).unwrap();
    session.settle();
    assert_eq!(session.loopback.server.urgencies.last(), Some(&(stream, 1, true)));
    let wrong =
        session.client.update_priority(&mut session.loopback.client, StreamId(2), urgency(1, true));
    assert!(wrong.is_err());
}
