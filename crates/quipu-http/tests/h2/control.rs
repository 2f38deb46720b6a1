//! Control streams of peers that break the rules.

use bytes::Bytes;
use proptest::prelude::*;
use quipu_base::{Role, StreamId};
use quipu_http::h2::frame::{Settings, encode_go_away, encode_settings, encode_settings_ack};
use quipu_http::h2::{
    CONTROL_STREAM, ClientEvent, ConnectionError, ErrorCode, FrameStreamId, Request, ServerConfig,
    ServerEvent,
};
use quipu_http::transport::Transport as _;

use crate::loopback::Notice;
use crate::session::{Session, get};

fn server_error(session: &Session) -> Option<&ConnectionError> {
    session.server_events.iter().find_map(|event| match event {
        ServerEvent::ConnectionFailed(error) => Some(error),
        _ => None,
    })
}

fn client_error(session: &Session) -> Option<&ConnectionError> {
    session.client_events.iter().find_map(|event| match event {
        ClientEvent::ConnectionFailed(error) => Some(error),
        _ => None,
    })
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0, payload.len() as u8, kind, flags];
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

#[test]
fn a_client_that_breaks_the_rules_is_told_the_code() {
    let headers = |stream: u32, block: &[u8]| frame(1, 5, stream, block);
    let request = headers(8, &[0x82, 0x87, 0x84]);
    for (what, octets, code) in [
        ("HEADERS on an odd stream", headers(5, &[0x82]), ErrorCode::PROTOCOL_ERROR),
        ("HEADERS on a server's stream", headers(6, &[0x82]), ErrorCode::PROTOCOL_ERROR),
        (
            "HEADERS on an older stream",
            [request.clone(), headers(4, &[0x82, 0x87, 0x84])].concat(),
            ErrorCode::STREAM_CLOSED,
        ),
        ("a block that does not decode", headers(4, &[0x80]), ErrorCode::COMPRESSION_ERROR),
        (
            "an idle node that depends on itself",
            frame(2, 0, 7, &[0, 0, 0, 7, 0]),
            ErrorCode::PROTOCOL_ERROR,
        ),
        ("DATA", frame(0, 0, 4, b"x"), ErrorCode::PROTOCOL_ERROR),
        ("PRIORITY of 4 octets", frame(2, 0, 3, &[0; 4]), ErrorCode::FRAME_SIZE_ERROR),
        ("an empty SETTINGS, often", frame(4, 0, 0, &[]).repeat(100), ErrorCode::ENHANCE_YOUR_CALM),
    ] {
        let mut session = Session::started(1);
        session.inject(&octets);
        session.settle();
        assert_eq!(server_error(&session).map(ConnectionError::code), Some(code), "{what}");
        let events = session.server_events.len();
        session.inject(&request);
        session.settle();
        assert_eq!(session.server_events.len(), events, "{what}: no event follows");
    }
}

#[test]
fn trailers_reset_the_request() {
    let mut session = Session::started(2);
    session.request(Request { fields: get("/"), ..Request::default() });
    session.inject(&frame(1, 5, 4, &[0x82]));
    session.settle();
    let failed = |event: &ServerEvent| matches!(event, ServerEvent::RequestFailed { .. });
    assert!(session.server_events.iter().any(failed));
    assert_eq!(server_error(&session), None);
}

#[test]
fn the_control_stream_does_not_end() {
    for reset in [false, true] {
        let mut session = Session::started(3);
        if reset {
            session.loopback.client.reset(CONTROL_STREAM, 0).unwrap();
        } else {
            session.loopback.client.finish(CONTROL_STREAM).unwrap();
        }
        session.settle();
        assert_eq!(server_error(&session), Some(&ConnectionError::ControlEnded));
    }
    let mut session = Session::started(3);
    session.notify(Role::Client, Notice::Stopped(CONTROL_STREAM, 0));
    assert_eq!(client_error(&session), Some(&ConnectionError::ControlEnded));
}

#[test]
fn streams_cancelled_before_their_headers_are_bounded() {
    let mut session = Session::started(3);
    let stream = |index: u64| StreamId(4 * index);
    for index in 1..=512 {
        session.notify(Role::Server, Notice::Reset(stream(index), 8));
    }
    // HEADERS of the last: those of the others never come.
    session.inject(&frame(1, 5, 4 * 512, &[0x82, 0x87, 0x84]));
    session.settle();
    assert_eq!(session.server_events, []);
    for index in 513..=1025 {
        session.notify(Role::Server, Notice::Stopped(stream(index), 8));
    }
    let error = ConnectionError::TooManyCancelled { limit: 512 };
    assert_eq!(session.server_events, [ServerEvent::ConnectionFailed(error)]);
}

/// A session whose server is played by the test, with what it sends on the control stream.
fn played(octets: &[u8]) -> Session {
    let mut session = Session::started(4);
    session.request(Request { fields: get("/"), ..Request::default() });
    session.loopback.server.write(CONTROL_STREAM, Bytes::copy_from_slice(octets)).unwrap();
    while session.client_events.is_empty() && session.step() {}
    session
}

#[test]
fn a_server_that_breaks_the_rules_is_told_the_code() {
    let settings = frame(4, 0, 0, &[]);
    for (what, octets, code) in [
        ("a response to nothing", frame(1, 5, 8, &[0x88]), ErrorCode::PROTOCOL_ERROR),
        ("a response on the server's stream", frame(1, 5, 1, &[0x88]), ErrorCode::PROTOCOL_ERROR),
        ("push enabled", frame(4, 0, 0, &[0, 2, 0, 0, 0, 1]), ErrorCode::PROTOCOL_ERROR),
        ("a promise", frame(5, 4, 4, &[0, 0, 0, 2, 0x82]), ErrorCode::PROTOCOL_ERROR),
        ("a block that does not decode", frame(1, 5, 4, &[0xff]), ErrorCode::COMPRESSION_ERROR),
    ] {
        let session = played(&[settings.clone(), octets].concat());
        assert_eq!(client_error(&session).map(ConnectionError::code), Some(code), "{what}");
    }
}

#[test]
fn informational_responses_are_dropped() {
    let settings = frame(4, 0, 0, &[]);
    // Status 103, literally, then 200.
    let hints = frame(1, 4, 4, &[0x08, 0x03, b'1', b'0', b'3']);
    let session = played(&[settings, hints, frame(1, 5, 4, &[0x88])].concat());
    let head = |event: &ClientEvent| matches!(event, ClientEvent::ResponseHead { status: 200, .. });
    assert!(session.client_events.iter().any(head), "{:?}", session.client_events);
}

#[test]
fn a_client_may_say_that_it_goes_away() {
    let mut session = Session::started(5);
    let mut octets = Vec::new();
    encode_go_away(FrameStreamId::ZERO, ErrorCode::NO_ERROR, &mut octets);
    session.inject(&octets);
    session.settle();
    assert_eq!(session.server_events, [ServerEvent::GoAway { code: ErrorCode::NO_ERROR }]);
}

proptest! {
    #[test]
    fn any_octets_on_the_control_stream_are_survived(
        seed in any::<u64>(),
        octets in proptest::collection::vec(prop_oneof![0_u8..10, any::<u8>()], 0..300),
        from_server in any::<bool>(),
    ) {
        let mut session = Session::idle(seed, ServerConfig::default());
        session.client.start(&mut session.loopback.client, &[]).unwrap();
        session.request(Request { fields: get("/"), ..Request::default() });
        let octets = Bytes::from(octets);
        if from_server {
            session.settle();
            session.loopback.server.write(CONTROL_STREAM, octets).unwrap();
        } else {
            session.loopback.client.write(CONTROL_STREAM, octets).unwrap();
        }
        session.settle();
        let failures = [client_error(&session).is_some(), server_error(&session).is_some()];
        prop_assert!(failures != [true, true]);
        prop_assert!(session.loopback.server.tree.len() < 300);
    }

    /// Well-formed frames in any order: more of them get past the frame layer.
    #[test]
    fn any_frames_on_the_control_stream_are_survived(
        seed in any::<u64>(),
        frames in proptest::collection::vec(
            (1_u8..3, prop_oneof![Just(0x24_u8), Just(0x25), Just(0x05)], 0_u32..24, 0_u32..24, any::<u8>()),
            0..30,
        ),
    ) {
        let mut session = Session::started(seed);
        let mut octets = Vec::new();
        encode_settings_ack(&mut octets);
        encode_settings(&Settings { header_table_size: Some(0), ..Settings::default() }, &mut octets);
        for (kind, flags, stream, parent, weight) in frames {
            let mut payload = Vec::new();
            if kind == 2 || flags & 0x20 != 0 {
                payload.extend(parent.to_be_bytes());
                payload.push(weight);
            }
            if kind == 1 {
                payload.extend([0x82, 0x87, 0x84]);
            }
            octets.extend(frame(kind, flags, stream, &payload));
        }
        session.inject(&octets);
        session.settle();
        prop_assert!(session.server.active() <= 30);
        prop_assert_eq!(client_error(&session), None);
    }
}
