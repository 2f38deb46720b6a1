//! What a client may not say, each with the code of the standard: the list of h3spec, and what other
//! servers are known to get wrong.

use quipu_base::StreamId;
use quipu_http::field::FieldList;
use quipu_http::h3::frame::{kind, put_varint};
use quipu_http::h3::{ErrorCode, Limits, ServerConfig, ServerEvent};

use crate::raw::{CONTROL, DECODER, ENCODER, Raw, frame, headers, section, settings};
use crate::session::{get, head};

fn raw() -> Raw {
    Raw::client(ServerConfig::default())
}

/// A raw client that stated no settings in particular.
fn opened() -> Raw {
    let mut raw = raw();
    raw.uni(CONTROL, &settings(&[]));
    raw
}

#[track_caller]
fn assert_failed(raw: &Raw, code: ErrorCode) {
    assert_eq!(raw.failed, Some(code), "{:?}", raw.server_events);
}

#[track_caller]
fn assert_refused(raw: &Raw, stream: StreamId, code: ErrorCode) {
    assert_eq!(raw.failed, None, "the connection goes on");
    assert!(raw.is_refused(stream, code), "{:?}", raw.refusals);
    let told = |event: &ServerEvent| matches!(event, ServerEvent::RequestHead { stream: s, .. } if *s == stream);
    assert!(!raw.server_events.iter().any(told), "the application never heard of it");
}

#[test]
fn data_before_headers_is_unexpected() {
    let mut raw = opened();
    raw.bidi(&frame(kind::DATA, b"x"));
    assert_failed(&raw, ErrorCode::FRAME_UNEXPECTED);
}

#[test]
fn malformed_heads_refuse_the_request_alone() {
    let fields = |pairs: &[(&str, &str)]| pairs.iter().copied().collect::<FieldList>();
    let (method, scheme) = ((":method", "GET"), (":scheme", "https"));
    let (authority, path) = ((":authority", "a.example"), (":path", "/"));
    for malformed in [
        // Duplicated.
        fields(&[method, method, scheme, authority, path]),
        // Missing.
        fields(&[scheme, authority, path]),
        fields(&[method, authority, path]),
        fields(&[method, scheme, authority]),
        fields(&[method, scheme, path]),
        // Prohibited.
        fields(&[method, scheme, authority, path, (":status", "200")]),
        fields(&[method, scheme, authority, path, (":unknown", "")]),
        fields(&[method, scheme, authority, path, (":protocol", "websocket")]),
        // Late.
        fields(&[method, scheme, authority, ("a", "b"), path]),
        // Empty, or two that differ.
        fields(&[method, scheme, (":authority", ""), path]),
        fields(&[method, scheme, authority, path, ("host", "b.example")]),
        // Names and fields that HTTP/3 does not have.
        fields(&[method, scheme, authority, path, ("Accept", "*/*")]),
        fields(&[method, scheme, authority, path, ("connection", "close")]),
        fields(&[method, scheme, authority, path, ("te", "gzip")]),
        fields(&[method, scheme, authority, path, ("a", "b\nc")]),
        // CONNECT has neither scheme nor path.
        fields(&[(":method", "CONNECT"), authority, scheme]),
        fields(&[(":method", "CONNECT"), authority, path]),
        fields(&[(":method", "CONNECT")]),
    ] {
        let mut raw = opened();
        let stream = raw.bidi(&headers(&malformed));
        assert_refused(&raw, stream, ErrorCode::MESSAGE_ERROR);
        let next = raw.bidi(&headers(&get("/")));
        assert!(raw.server_events.iter().any(
            |event| matches!(event, ServerEvent::RequestHead { stream, .. } if *stream == next)
        ));
    }
}

#[test]
fn the_authority_may_come_in_the_host_field() {
    let mut raw = opened();
    let fields: FieldList =
        [(":method", "GET"), (":scheme", "https"), (":path", "/"), ("host", "a.example")]
            .into_iter()
            .collect();
    raw.bidi(&headers(&fields));
    assert!(matches!(raw.server_events[..], [ServerEvent::RequestHead { .. }]));
}

#[test]
fn the_control_stream_begins_with_settings() {
    for first in [frame(kind::GOAWAY, &[0]), frame(kind::MAX_PUSH_ID, &[0]), frame(0x21, b"x")] {
        let mut raw = raw();
        raw.uni(CONTROL, &first);
        assert_failed(&raw, ErrorCode::MISSING_SETTINGS);
    }
}

#[test]
fn frames_of_requests_and_second_settings_are_unexpected_on_the_control_stream() {
    for unexpected in [
        frame(kind::DATA, b"x"),
        headers(&get("/")),
        frame(kind::PUSH_PROMISE, &[0]),
        settings(&[]),
        frame(0x02, &[0; 5]),
        frame(0x06, &[0; 8]),
        frame(0x08, &[0; 4]),
        frame(0x09, b""),
    ] {
        let mut raw = opened();
        raw.write(StreamId(2), &unexpected);
        assert_failed(&raw, ErrorCode::FRAME_UNEXPECTED);
    }
}

#[test]
fn settings_that_cannot_be_fail_the_connection() {
    for wrong in [
        // Twice, known or not.
        vec![(0x06, 100), (0x06, 100)],
        vec![(0x21, 1), (0x21, 2)],
        // Of HTTP/2.
        vec![(0x00, 0)],
        vec![(0x02, 1)],
        vec![(0x03, 1)],
        vec![(0x04, 1)],
        vec![(0x05, 1)],
        // Neither yes nor no.
        vec![(0x08, 2)],
        vec![(0x33, 2)],
        // Datagrams without the transport parameter.
        vec![(0x33, 1)],
    ] {
        let mut raw = raw();
        raw.uni(CONTROL, &settings(&wrong));
        assert_failed(&raw, ErrorCode::SETTINGS_ERROR);
    }
    let mut raw = raw();
    raw.uni(CONTROL, &frame(kind::SETTINGS, &[0x06]));
    assert_failed(&raw, ErrorCode::FRAME_ERROR);
}

#[test]
fn frames_of_the_control_stream_are_unexpected_on_a_requests() {
    for unexpected in [
        frame(kind::CANCEL_PUSH, &[0]),
        settings(&[]),
        frame(kind::GOAWAY, &[0]),
        frame(kind::MAX_PUSH_ID, &[0]),
        frame(kind::PRIORITY_UPDATE, &[0]),
        frame(kind::PUSH_PROMISE, &[0, 0, 0]),
        frame(0x06, &[0; 8]),
    ] {
        for before in [Vec::new(), headers(&get("/"))] {
            let mut raw = opened();
            raw.bidi(&[&before[..], &unexpected].concat());
            assert_failed(&raw, ErrorCode::FRAME_UNEXPECTED);
        }
    }
}

#[test]
fn a_static_index_without_an_entry_fails_decompression() {
    let mut raw = opened();
    // Required Insert Count 0, Base 0, static index 99.
    raw.bidi(&frame(kind::HEADERS, &[0, 0, 0xff, 99 - 63]));
    assert_failed(&raw, ErrorCode::QPACK_DECOMPRESSION_FAILED);
}

#[test]
fn bits_behind_a_huffman_code_that_are_no_padding_fail_decompression() {
    let mut raw = opened();
    // `:path` with a Huffman-coded value of one octet: `0` is five bits, and zeros follow.
    raw.bidi(&frame(kind::HEADERS, &[0, 0, 0x51, 0x81, 0x00]));
    assert_failed(&raw, ErrorCode::QPACK_DECOMPRESSION_FAILED);
}

#[test]
fn a_table_capacity_over_the_limit_fails_the_encoder_stream() {
    let mut raw = opened();
    let mut capacity = Vec::new();
    quipu_http::field::integer::encode(5, 0x20, 4_097, &mut capacity);
    raw.uni(ENCODER, &capacity);
    assert_failed(&raw, ErrorCode::QPACK_ENCODER_STREAM_ERROR);
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
fn a_stream_that_ends_with_its_kind_is_a_closed_critical_stream() {
    let mut raw = raw();
    let peer = raw.peer();
    use quipu_http::transport::Transport as _;
    let stream = peer.open_unidirectional().unwrap();
    peer.write(stream, bytes::Bytes::from_static(&[0])).unwrap();
    peer.finish(stream).unwrap();
    raw.settle();
    assert_failed(&raw, ErrorCode::CLOSED_CRITICAL_STREAM);
}

#[test]
fn second_streams_of_a_kind_and_pushes_of_clients_are_errors_and_unknown_kinds_are_not() {
    for kind in [CONTROL, ENCODER, DECODER] {
        let mut raw = opened();
        if kind != CONTROL {
            raw.uni(kind, &[]);
        }
        raw.uni(kind, &[]);
        assert_failed(&raw, ErrorCode::STREAM_CREATION_ERROR);
    }
    let mut raw = opened();
    raw.uni(1, &[0]);
    assert_failed(&raw, ErrorCode::STREAM_CREATION_ERROR);

    let mut raw = opened();
    let stream = raw.uni(0x21, b"anything");
    assert_eq!(raw.failed, None);
    assert!(raw.is_refused(stream, ErrorCode::STREAM_CREATION_ERROR));
    let other = raw.uni(0x40, &[]);
    raw.reset(other);
    assert_eq!(raw.failed, None);
}

#[test]
fn an_insert_count_increment_of_nothing_or_too_much_fails_the_decoder_stream() {
    for octet in [0x00, 0x01] {
        let mut raw = opened();
        raw.uni(DECODER, &[octet]);
        assert_failed(&raw, ErrorCode::QPACK_DECODER_STREAM_ERROR);
    }
}

#[test]
fn decoder_instructions_may_come_before_settings() {
    let mut raw = raw();
    // Stream Cancellation of stream 4.
    raw.uni(DECODER, &[0x44]);
    assert_eq!(raw.failed, None);
    // Section Acknowledgment of a section that was never sent.
    let mut other = Raw::client(ServerConfig::default());
    other.uni(DECODER, &[0x84]);
    assert_failed(&other, ErrorCode::QPACK_DECODER_STREAM_ERROR);
}

#[test]
fn frames_that_mean_nothing_may_stand_anywhere_behind_settings() {
    let mut raw = opened();
    raw.write(StreamId(2), &frame(0x21, b"nothing"));
    let grease = frame(0x40, b"");
    let parts = [
        frame(0x21, b"x"),
        headers(&get("/")),
        grease,
        frame(kind::DATA, b"abc"),
        frame(0x5f, b"y"),
    ];
    let stream = raw.bidi(&parts.concat());
    raw.finish(stream);
    assert_eq!(raw.failed, None);
    assert_eq!(raw.body, b"abc");
    assert_eq!(raw.server_events.last(), Some(&ServerEvent::RequestFinished { stream }));
}

#[test]
fn frames_that_mean_nothing_are_bounded() {
    let mut raw = opened();
    let mut endless = Vec::new();
    put_varint(0x21, &mut endless);
    put_varint(1 << 40, &mut endless);
    raw.bidi(&endless);
    assert_failed(&raw, ErrorCode::EXCESSIVE_LOAD);
}

#[test]
fn what_follows_trailers_is_unexpected() {
    let trailers = headers(&FieldList::new().with("checksum", "abc"));
    let whole = [headers(&get("/")), frame(kind::DATA, b"abc"), trailers.clone()].concat();
    for more in [frame(kind::DATA, b"d"), trailers] {
        let mut raw = opened();
        raw.bidi(&[&whole[..], &more].concat());
        assert_failed(&raw, ErrorCode::FRAME_UNEXPECTED);
    }
    let mut raw = opened();
    let wrong = headers(&FieldList::new().with(":path", "/"));
    let stream = raw.bidi(&[headers(&get("/")), wrong].concat());
    assert_eq!(raw.failed, None);
    assert!(raw.is_refused(stream, ErrorCode::MESSAGE_ERROR));
}

#[test]
fn a_tunnel_takes_data_alone() {
    let fields = FieldList::new().with(":method", "CONNECT").with(":authority", "b.example:443");
    let mut raw = opened();
    let stream = raw.bidi(&[headers(&fields), frame(kind::DATA, b"abc")].concat());
    assert_eq!((raw.failed, &raw.body[..]), (None, &b"abc"[..]));
    raw.write(stream, &headers(&FieldList::new().with("a", "b")));
    assert_failed(&raw, ErrorCode::FRAME_UNEXPECTED);
}

#[test]
fn a_frame_that_its_stream_cuts_off_is_an_error() {
    for cut in [
        frame(kind::DATA, b"abc")[..3].to_vec(),
        headers(&get("/"))[..5].to_vec(),
        vec![0x01],
        vec![0x40],
    ] {
        let mut raw = opened();
        let stream = raw.bidi(&[headers(&get("/")), cut].concat());
        raw.finish(stream);
        assert_failed(&raw, ErrorCode::FRAME_ERROR);
    }
}

#[test]
fn a_request_without_a_head_is_incomplete() {
    let mut raw = opened();
    let stream = raw.bidi(&frame(0x21, b""));
    raw.finish(stream);
    assert_refused(&raw, stream, ErrorCode::REQUEST_INCOMPLETE);
}

#[test]
fn a_body_has_the_length_that_its_head_states() {
    for (length, data) in [("2", &b"abc"[..]), ("4", b"abc")] {
        let mut raw = opened();
        let fields = head("POST", "/").with("content-length", length);
        let stream = raw.bidi(&[headers(&fields), frame(kind::DATA, data)].concat());
        raw.finish(stream);
        assert_eq!(raw.failed, None);
        assert!(raw.is_refused(stream, ErrorCode::MESSAGE_ERROR));
        let failed = raw.server_events.last();
        assert!(matches!(failed, Some(ServerEvent::RequestFailed { .. })), "{failed:?}");
        assert!(raw.body.len() <= length.parse().unwrap());
    }
}

#[test]
fn more_fields_than_are_taken_refuse_the_request() {
    let limits = Limits { field_list: 400, ..Limits::default() };
    let mut raw = Raw::client(ServerConfig { limits, ..ServerConfig::default() });
    raw.uni(CONTROL, &settings(&[]));
    // Small once compressed: the count is of what comes out, and 32 for each field.
    let fields = (0..20).fold(get("/"), |fields, _| fields.with("accept", "*/*"));
    let stream = raw.bidi(&headers(&fields));
    assert_refused(&raw, stream, ErrorCode::EXCESSIVE_LOAD);
}

#[test]
fn more_streams_than_may_wait_for_the_table_fail_decompression() {
    let limits = Limits { blocked_streams: 1, ..Limits::default() };
    let mut raw = Raw::client(ServerConfig { limits, ..ServerConfig::default() });
    raw.uni(CONTROL, &settings(&[]));
    // Required Insert Count 1, Base 1, the newest entry: it never came.
    let waiting = frame(kind::HEADERS, &[2, 0, 0x80]);
    raw.bidi(&waiting);
    assert_eq!(raw.failed, None);
    raw.bidi(&waiting);
    assert_failed(&raw, ErrorCode::QPACK_DECOMPRESSION_FAILED);
}

#[test]
fn a_frame_too_large_to_hold_is_excessive() {
    let mut raw = opened();
    let mut large = Vec::new();
    put_varint(kind::HEADERS, &mut large);
    put_varint(1 << 30, &mut large);
    raw.bidi(&large);
    assert_failed(&raw, ErrorCode::EXCESSIVE_LOAD);
    let mut raw = opened();
    let mut large = Vec::new();
    put_varint(kind::PRIORITY_UPDATE, &mut large);
    put_varint(1 << 30, &mut large);
    raw.write(StreamId(2), &large);
    assert_failed(&raw, ErrorCode::EXCESSIVE_LOAD);
}

#[test]
fn pushes_that_were_never_promised_cannot_be_cancelled_or_prioritised() {
    for wrong in [frame(kind::CANCEL_PUSH, &[0]), frame(kind::PRIORITY_UPDATE_PUSH, &[0])] {
        let mut raw = opened();
        raw.write(StreamId(2), &wrong);
        assert_failed(&raw, ErrorCode::ID_ERROR);
    }
    let mut raw = opened();
    raw.write(
        StreamId(2),
        &[frame(kind::MAX_PUSH_ID, &[5]), frame(kind::MAX_PUSH_ID, &[5])].concat(),
    );
    assert_eq!(raw.failed, None);
    raw.write(StreamId(2), &frame(kind::MAX_PUSH_ID, &[4]));
    assert_failed(&raw, ErrorCode::ID_ERROR);
}

#[test]
fn identifiers_are_one_number_and_nothing_else() {
    for payload in [&b""[..], &[0, 0], &[0x40]] {
        let mut raw = opened();
        raw.write(StreamId(2), &frame(kind::GOAWAY, payload));
        assert_failed(&raw, ErrorCode::FRAME_ERROR);
    }
}

#[test]
fn a_request_reset_before_its_head_is_forgotten() {
    let mut raw = opened();
    let fields = section(&get("/"));
    let stream = raw.bidi(&frame(kind::HEADERS, &fields)[..4]);
    raw.reset(stream);
    assert_eq!((raw.failed, &raw.server_events[..]), (None, &[][..]));
}
