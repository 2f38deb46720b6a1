//! What a server may not say, each with the code of the standard.

use quipu_base::StreamId;
use quipu_http::field::FieldList;
use quipu_http::h3::frame::kind;
use quipu_http::h3::{ClientConfig, ClientEvent, ErrorCode, Failure, Limits};

use crate::raw::{CONTROL, DECODER, ENCODER, Raw, frame, headers, settings};
use crate::session::{FIRST, head, ok};

fn raw() -> Raw {
    Raw::server(ClientConfig::default())
}

fn opened() -> Raw {
    let mut raw = raw();
    raw.uni(CONTROL, &settings(&[]));
    raw
}

#[track_caller]
fn assert_failed(raw: &Raw, code: ErrorCode) {
    assert_eq!(raw.failed, Some(code), "{:?}", raw.client_events);
}

/// The response fails, and nothing else.
#[track_caller]
fn assert_malformed(raw: &Raw) {
    assert_eq!(raw.failed, None, "the connection goes on");
    let failed = raw.client_events.last();
    let malformed =
        matches!(failed, Some(ClientEvent::ResponseFailed { failure: Failure::Malformed(_), .. }));
    assert!(malformed, "{failed:?}");
}

#[test]
fn data_before_headers_is_unexpected() {
    let mut raw = opened();
    raw.write(FIRST, &frame(kind::DATA, b"x"));
    assert_failed(&raw, ErrorCode::FRAME_UNEXPECTED);
    // Nor after what comes before the response.
    let mut raw = opened();
    let hints = headers(&FieldList::new().with(":status", "103"));
    raw.write(FIRST, &[hints, frame(kind::DATA, b"x")].concat());
    assert_failed(&raw, ErrorCode::FRAME_UNEXPECTED);
}

#[test]
fn malformed_heads_fail_the_response_alone() {
    for malformed in [
        FieldList::new(),
        ok().with(":status", "200"),
        ok().with(":path", "/"),
        FieldList::new().with("a", "b").with(":status", "200"),
        FieldList::new().with(":status", "2000"),
        FieldList::new().with(":status", "101"),
        ok().with("Upper", "case"),
        ok().with("transfer-encoding", "chunked"),
        ok().with("content-length", "1").with("content-length", "2"),
    ] {
        let mut raw = opened();
        raw.write(FIRST, &headers(&malformed));
        assert_malformed(&raw);
        assert!(raw.is_refused(FIRST, ErrorCode::MESSAGE_ERROR));
    }
}

#[test]
fn the_control_stream_begins_with_settings_and_has_them_once() {
    let mut raw = raw();
    raw.uni(CONTROL, &frame(kind::GOAWAY, &[0]));
    assert_failed(&raw, ErrorCode::MISSING_SETTINGS);
    for unexpected in [
        frame(kind::DATA, b"x"),
        headers(&ok()),
        settings(&[]),
        frame(kind::MAX_PUSH_ID, &[0]),
        frame(kind::PRIORITY_UPDATE, &[0]),
        frame(kind::PRIORITY_UPDATE_PUSH, &[0]),
        frame(0x06, &[0; 8]),
    ] {
        let mut raw = opened();
        raw.write(StreamId(3), &unexpected);
        assert_failed(&raw, ErrorCode::FRAME_UNEXPECTED);
    }
    let mut raw = raw2();
    raw.uni(CONTROL, &settings(&[(0x06, 1), (0x06, 1)]));
    assert_failed(&raw, ErrorCode::SETTINGS_ERROR);
    let mut raw = raw2();
    raw.uni(CONTROL, &settings(&[(0x02, 0)]));
    assert_failed(&raw, ErrorCode::SETTINGS_ERROR);
}

fn raw2() -> Raw {
    raw()
}

#[test]
fn frames_of_the_control_stream_are_unexpected_on_a_requests() {
    for unexpected in [
        frame(kind::CANCEL_PUSH, &[0]),
        settings(&[]),
        frame(kind::GOAWAY, &[0]),
        frame(0x08, &[0]),
    ] {
        let mut raw = opened();
        raw.write(FIRST, &[headers(&ok()), unexpected].concat());
        assert_failed(&raw, ErrorCode::FRAME_UNEXPECTED);
    }
}

#[test]
fn nothing_may_be_pushed() {
    let mut raw = opened();
    raw.write(FIRST, &frame(kind::PUSH_PROMISE, &[0, 0, 0]));
    assert_failed(&raw, ErrorCode::ID_ERROR);
    let mut raw = opened();
    raw.uni(1, &[0]);
    assert_failed(&raw, ErrorCode::ID_ERROR);
    let mut raw = opened();
    raw.write(StreamId(3), &frame(kind::CANCEL_PUSH, &[0]));
    assert_failed(&raw, ErrorCode::ID_ERROR);
}

#[test]
fn a_server_opens_no_bidirectional_streams() {
    let mut raw = opened();
    raw.bidi(&headers(&ok()));
    assert_failed(&raw, ErrorCode::STREAM_CREATION_ERROR);
}

#[test]
fn critical_streams_live_as_long_as_the_connection() {
    for kind in [CONTROL, ENCODER, DECODER] {
        for reset in [false, true] {
            let mut raw = raw();
            let octets = if kind == CONTROL { settings(&[]) } else { Vec::new() };
            let stream = raw.uni(kind, &octets);
            if reset {
                raw.reset(stream);
            } else {
                raw.finish(stream);
            }
            assert_failed(&raw, ErrorCode::CLOSED_CRITICAL_STREAM);
        }
    }
    for index in 0..3 {
        let mut raw = opened();
        let stream = raw.own_critical()[index];
        raw.stop(stream);
        assert_failed(&raw, ErrorCode::CLOSED_CRITICAL_STREAM);
    }
}

#[test]
fn what_qpack_cannot_read_has_its_own_codes() {
    let mut raw = opened();
    raw.write(FIRST, &frame(kind::HEADERS, &[0, 0, 0xff, 99 - 63]));
    assert_failed(&raw, ErrorCode::QPACK_DECOMPRESSION_FAILED);
    let mut raw = opened();
    let mut capacity = Vec::new();
    quipu_http::field::integer::encode(5, 0x20, 4_097, &mut capacity);
    raw.uni(ENCODER, &capacity);
    assert_failed(&raw, ErrorCode::QPACK_ENCODER_STREAM_ERROR);
    let mut raw = opened();
    raw.uni(DECODER, &[0x00]);
    assert_failed(&raw, ErrorCode::QPACK_DECODER_STREAM_ERROR);
}

#[test]
fn a_body_has_the_length_that_its_head_states_and_none_where_none_may_be() {
    for (fields, data) in [
        (ok().with("content-length", "2"), &b"abc"[..]),
        (ok().with("content-length", "4"), b"abc"),
        (FieldList::new().with(":status", "204"), b"abc"),
        (FieldList::new().with(":status", "304"), b"abc"),
    ] {
        let mut raw = opened();
        raw.write(FIRST, &[headers(&fields), frame(kind::DATA, data)].concat());
        if raw.client_events.len() < 3 {
            raw.finish(FIRST);
        }
        assert_malformed(&raw);
    }
    // A response to HEAD states the length of what GET would bring.
    let mut raw = opened();
    let stream = raw.request(head("HEAD", "/"));
    raw.write(stream, &headers(&ok().with("content-length", "3")));
    raw.finish(stream);
    assert_eq!(raw.client_events.last(), Some(&ClientEvent::ResponseFinished { stream }));
}

#[test]
fn a_response_without_a_head_fails() {
    let mut raw = opened();
    raw.finish(FIRST);
    let failed = ClientEvent::ResponseFailed { stream: FIRST, failure: Failure::NoHead };
    assert_eq!(raw.client_events.last(), Some(&failed));
}

#[test]
fn more_fields_than_are_taken_fail_the_response() {
    let limits = Limits { field_list: 400, ..Limits::default() };
    let mut raw = Raw::server(ClientConfig { limits, ..ClientConfig::default() });
    raw.uni(CONTROL, &settings(&[]));
    let fields = (0..20).fold(ok(), |fields, _| fields.with("vary", "origin"));
    raw.write(FIRST, &headers(&fields));
    let failure = Failure::FieldsTooLarge { limit: 400 };
    assert_eq!(
        raw.client_events.last(),
        Some(&ClientEvent::ResponseFailed { stream: FIRST, failure })
    );
}

#[test]
fn what_follows_trailers_is_unexpected() {
    let trailers = headers(&FieldList::new().with("a", "b"));
    let mut raw = opened();
    raw.write(FIRST, &[headers(&ok()), trailers, frame(kind::DATA, b"x")].concat());
    assert_failed(&raw, ErrorCode::FRAME_UNEXPECTED);
}

#[test]
fn a_frame_that_its_stream_cuts_off_is_an_error() {
    let mut raw = opened();
    raw.write(FIRST, &[&headers(&ok())[..], &frame(kind::DATA, b"abc")[..3]].concat());
    raw.finish(FIRST);
    assert_failed(&raw, ErrorCode::FRAME_ERROR);
}
