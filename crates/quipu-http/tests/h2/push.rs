//! Responses that the server sends unasked. <https://www.rfc-editor.org/rfc/rfc9113#section-8.4>

use bytes::Bytes;
use proptest::prelude::*;
use quipu_base::{Instant, Role, StreamId};
use quipu_http::field::FieldList;
use quipu_http::h2::frame::{encode_headers, encode_push_promise, encode_settings};
use quipu_http::h2::{
    Body, CONTROL_STREAM, ClientEvent, ConnectionError, ErrorCode, Failure, FrameStreamId,
    PushError, Request, ServerEvent, StreamPriority,
};
use quipu_http::hpack::Encoder;
use quipu_http::message::MessageError;
use quipu_http::transport::Transport as _;
use quipu_policy::{NodeId, Urgency};

use crate::loopback::Notice;
use crate::session::{Session, body, get, ok, post};

const FRAME_SIZE: u32 = 16_384;

/// A session with a request at the server that waits for its answer.
fn asked(seed: u64, limit: u32) -> (Session, StreamId) {
    let mut session = Session::with_push(seed, limit);
    let request = session.request(Request { fields: get("/"), ..Request::default() });
    session.settle();
    (session, request)
}

fn finished(session: &Session, stream: StreamId) -> bool {
    session.client_events.contains(&ClientEvent::ResponseFinished { stream })
}

fn node(number: u32) -> NodeId {
    NodeId(u64::from(number))
}

#[test]
fn a_pushed_response_is_promised_and_then_comes_whole() {
    for seed in 0..20 {
        let (mut session, request) = asked(seed, 10);
        let stream = session.push(request, &get("/a.css"));
        assert_eq!(stream, StreamId(3));
        session.respond(stream, &ok(), Body::Whole(Bytes::from(body(stream, 9_000))));
        session.respond(request, &ok(), Body::Empty);
        session.settle();
        let promised = ClientEvent::Promised { request, stream, fields: get("/a.css") };
        let at = |event: &ClientEvent| session.client_events.iter().position(|it| it == event);
        let head = ClientEvent::ResponseHead { stream, status: 200, fields: ok() };
        assert!(at(&promised).is_some() && at(&promised) < at(&head), "{seed}");
        assert!(finished(&session, stream) && finished(&session, request), "{seed}");
        assert_eq!(session.responses[&stream], body(stream, 9_000));
        assert_eq!((session.client.active(), session.server.active()), (0, 0));
    }
}

#[test]
fn a_client_that_takes_none_gets_none() {
    let mut session = Session::started(1);
    let request = session.request(Request { fields: get("/"), ..Request::default() });
    session.settle();
    let pushed = session.server.push(&mut session.loopback.server, request, &get("/a.css"));
    assert_eq!(pushed, Err(PushError::NotAllowed));
}

#[test]
fn a_client_that_goes_away_gets_none() {
    let (mut session, request) = asked(1, 10);
    let mut octets = Vec::new();
    quipu_http::h2::frame::encode_go_away(FrameStreamId::ZERO, ErrorCode::NO_ERROR, &mut octets);
    session.inject(&octets);
    session.settle();
    let pushed = session.server.push(&mut session.loopback.server, request, &get("/a.css"));
    assert_eq!(pushed, Err(PushError::NotAllowed));
}

#[test]
fn only_what_is_safe_and_cacheable_and_has_an_authority_is_pushed() {
    let (mut session, request) = asked(1, 10);
    let mut push = |fields: FieldList| {
        session.server.push(&mut session.loopback.server, request, &fields).unwrap_err()
    };
    let not_pushable = |method: &str, content| {
        let method = method.to_owned();
        PushError::Malformed(MessageError::NotPushable { method, content })
    };
    assert_eq!(push(post("/")), not_pushable("POST", false));
    assert_eq!(push(get("/").with("content-length", "1")), not_pushable("GET", true));
    let no_authority: FieldList =
        [(":method", "GET"), (":scheme", "https"), (":path", "/")].into_iter().collect();
    let missing = MessageError::MissingPseudo { name: ":authority" };
    assert_eq!(push(no_authority), PushError::Malformed(missing));
    assert!(matches!(push(FieldList::new()), PushError::Malformed(_)));
    session.push(request, &get("/").with("content-length", "0"));
}

#[test]
fn a_promise_comes_before_the_answer_that_it_belongs_to() {
    let (mut session, request) = asked(1, 10);
    let first = session.push(request, &get("/1"));
    session.respond(request, &ok(), Body::Streamed);
    for associated in [request, first, StreamId(400)] {
        let pushed = session.server.push(&mut session.loopback.server, associated, &get("/2"));
        assert_eq!(pushed, Err(PushError::NoRequest(associated)));
    }
}

#[test]
fn as_many_are_promised_at_a_time_as_the_client_takes() {
    let (mut session, request) = asked(1, 2);
    let streams = ["/1", "/2"].map(|path| session.push(request, &get(path)));
    let more = |session: &mut Session| {
        session.server.push(&mut session.loopback.server, request, &get("/3"))
    };
    assert_eq!(more(&mut session), Err(PushError::NoStream));
    // Requests have a limit of their own.
    let other = session.request(Request { fields: get("/x"), ..Request::default() });
    session.respond(streams[0], &ok(), Body::Empty);
    assert_eq!(more(&mut session), Err(PushError::NoStream));
    session.settle();
    assert_eq!(more(&mut session), Ok(StreamId(11)));
    session.respond(other, &ok(), Body::Empty);
    session.settle();
    assert!(finished(&session, other) && finished(&session, streams[0]));
}

#[test]
fn a_client_may_cancel_what_was_promised() {
    for answered in [false, true] {
        let (mut session, request) = asked(3, 10);
        let stream = session.push(request, &get("/1"));
        let kept = session.push(request, &get("/2"));
        if answered {
            session.respond(stream, &ok(), Body::Streamed);
        }
        session.settle();
        session.client.cancel(&mut session.loopback.client, stream, ErrorCode::CANCEL);
        session.settle();
        let code = ErrorCode::CANCEL.to_quic();
        let stopped = ServerEvent::ResponseStopped { stream, code };
        assert!(session.server_events.contains(&stopped), "{answered}");
        session.respond(kept, &ok(), Body::Empty);
        session.respond(request, &ok(), Body::Empty);
        session.settle();
        assert!(finished(&session, kept) && !finished(&session, stream));
        assert_eq!((session.client.active(), session.server.active()), (0, 0));
    }
}

#[test]
fn a_server_may_reset_what_it_promised_even_before_the_promise_comes() {
    for seed in 0..40 {
        let (mut session, request) = asked(seed, 10);
        let stream = session.push(request, &get("/1"));
        let now = session.now;
        let server = &mut session.server;
        server.reset(&mut session.loopback.server, stream, ErrorCode::INTERNAL_ERROR, now);
        session.respond(request, &ok(), Body::Empty);
        session.settle();
        assert!(finished(&session, request) && !finished(&session, stream));
        assert_eq!((session.client.active(), session.server.active()), (0, 0), "{seed}");
    }
}

#[test]
fn promises_on_a_request_that_was_cancelled_are_refused() {
    let (mut session, request) = asked(1, 10);
    let stream = session.push(request, &get("/1"));
    session.client.cancel(&mut session.loopback.client, request, ErrorCode::CANCEL);
    session.settle();
    let code = ErrorCode::REFUSED_STREAM.to_quic();
    assert!(session.server_events.contains(&ServerEvent::ResponseStopped { stream, code }));
    assert_eq!(session.client_events, []);
    assert_eq!((session.client.active(), session.server.active()), (0, 0));
}

#[test]
fn a_promised_stream_depends_on_its_request_until_the_client_moves_it() {
    let (mut session, request) = asked(1, 10);
    let stream = session.push(request, &get("/1"));
    assert_eq!(stream, StreamId(3));
    assert_eq!(session.loopback.server.place(node(2)), Some((node(4), 16)));
    session.settle();
    let id = FrameStreamId::of(stream, quipu_http::h2::Numbering::Quic).unwrap();
    let priority = StreamPriority { parent: FrameStreamId::ZERO, weight: 110, exclusive: false };
    session.client.prioritise(&mut session.loopback.client, id, priority).unwrap();
    session.settle();
    assert_eq!(session.loopback.server.place(node(2)), Some((NodeId::ROOT, 110)));
    session.respond(stream, &ok(), Body::Empty);
    session.respond(request, &ok(), Body::Empty);
    session.settle();
    session.server.handle_timeout(&mut session.loopback.server, Instant::FAR_FUTURE);
    assert!(session.loopback.server.tree.is_empty());
    // What is over stays away.
    session.client.prioritise(&mut session.loopback.client, id, priority).unwrap();
    session.settle();
    assert!(session.loopback.server.tree.is_empty());
}

#[test]
fn a_promised_stream_may_get_another_urgency_and_an_idle_one_may_not() {
    let (mut session, request) = asked(1, 10);
    let stream = session.push(request, &get("/1"));
    session.settle();
    let urgency = Urgency { level: 1, incremental: true };
    let mut update =
        |stream| session.client.update_priority(&mut session.loopback.client, stream, urgency);
    assert!(update(StreamId(7)).is_err());
    update(stream).unwrap();
    session.settle();
    // The server did not say that it goes by urgencies, so that nothing is sent.
    assert_eq!(session.loopback.server.urgencies, []);
    // PRIORITY_UPDATE for the promised stream 2, then for 6, which is idle.
    session.inject(&[0, 0, 7, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 2, b'u', b'=', b'1']);
    session.settle();
    assert_eq!(session.loopback.server.urgencies, [(stream, 1, false)]);
    session.inject(&[0, 0, 7, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 6, b'u', b'=', b'1']);
    session.settle();
    let failed = |event: &ServerEvent| match event {
        ServerEvent::ConnectionFailed(error) => error.code() == ErrorCode::PROTOCOL_ERROR,
        _ => false,
    };
    assert!(session.server_events.iter().any(failed));
}

/// A promise as it goes over the wire.
fn promise(encoder: &mut Encoder, on: u32, promised: u32, fields: &FieldList) -> Vec<u8> {
    let (mut block, mut out) = (Vec::new(), Vec::new());
    encoder.encode(fields, &mut block);
    let [on, promised] = [on, promised].map(FrameStreamId::from_wire);
    encode_push_promise(on, promised, &block, FRAME_SIZE, &mut out);
    out
}

/// A session whose server is played by the test, with what it sends on the control stream.
fn played(limit: u32, octets: &[u8]) -> Session {
    let mut session = Session::with_push(4, limit);
    session.request(Request { fields: get("/"), ..Request::default() });
    let mut settings = Vec::new();
    encode_settings(&Default::default(), &mut settings);
    settings.extend(octets);
    session.loopback.server.write(CONTROL_STREAM, Bytes::from(settings)).unwrap();
    // The server of the session hears nothing of what is played.
    while let Some(notices) = session.loopback.deliver(0) {
        for (role, notice) in notices.into_iter().filter(|(role, _)| *role == Role::Client) {
            session.notify(role, notice);
        }
    }
    session
}

fn client_error(session: &Session) -> Option<&ConnectionError> {
    session.client_events.iter().find_map(|event| match event {
        ClientEvent::ConnectionFailed(error) => Some(error),
        _ => None,
    })
}

#[test]
fn promises_that_cannot_be_close_the_connection() {
    let mut encoder = Encoder::new(0);
    let mut of = |on, promised| promise(&mut encoder, on, promised, &get("/1"));
    let head = |stream: u32| {
        let mut out = Vec::new();
        let stream = FrameStreamId::from_wire(stream);
        encode_headers(stream, None, true, &[0x88], FRAME_SIZE, &mut out);
        out
    };
    let protocol = Some(ErrorCode::PROTOCOL_ERROR);
    for (what, octets, code) in [
        ("fine", of(4, 2), None),
        ("two", [of(4, 2), of(4, 6)].concat(), None),
        ("numbers left out", of(4, 10), None),
        ("answered", [of(4, 2), head(2)].concat(), None),
        ("on no request", of(8, 2), protocol),
        ("on the connection", of(0, 2), protocol),
        ("on a promised stream", [of(4, 2), of(2, 6)].concat(), protocol),
        ("of a client's stream", of(4, 8), protocol),
        ("of a group", of(4, 3), protocol),
        ("of nothing", of(4, 0), protocol),
        ("twice", [of(4, 2), of(4, 2)].concat(), protocol),
        ("backwards", [of(4, 6), of(4, 2)].concat(), protocol),
        ("HEADERS without a promise", head(2), protocol),
        ("HEADERS of a later promise", [of(4, 2), head(6)].concat(), protocol),
    ] {
        let session = played(10, &octets);
        assert_eq!(client_error(&session).map(ConnectionError::code), code, "{what}");
    }
}

#[test]
fn promises_that_must_not_be_are_refused_and_the_connection_goes_on() {
    let mut encoder = Encoder::new(0);
    let no_authority = [(":method", "GET"), (":scheme", "https"), (":path", "/")];
    for (what, fields) in [
        ("a method that is not safe", post("/1")),
        ("content", get("/1").with("content-length", "3")),
        ("no authority", no_authority.into_iter().collect()),
        ("no path", get("")),
        ("a large field list", get("/1").with("x", "y".repeat(70_000))),
    ] {
        let octets = promise(&mut encoder, 4, 2, &fields);
        let octets = [octets, promise(&mut encoder, 4, 6, &get("/2"))].concat();
        let session = played(10, &octets);
        let promised: Vec<StreamId> = session
            .client_events
            .iter()
            .map(|event| match event {
                ClientEvent::Promised { stream, .. } => *stream,
                other => panic!("{what}: {other:?}"),
            })
            .collect();
        assert_eq!(promised, [StreamId(7)], "{what}");
    }
}

#[test]
fn what_a_server_can_make_a_client_remember_is_bounded() {
    let mut encoder = Encoder::new(0);
    let mut of = |index: u32| promise(&mut encoder, 4, 4 * index + 2, &get("/1"));
    // Two are taken, a thousand more are refused.
    let octets: Vec<u8> = (0..1_002).flat_map(&mut of).collect();
    let session = played(2, &octets);
    assert_eq!((client_error(&session), session.client.active()), (None, 3));
    let octets: Vec<u8> = (0..1_003).flat_map(&mut of).collect();
    let session = played(2, &octets);
    let error = ConnectionError::TooManyPromises { limit: 1_000 };
    assert_eq!(client_error(&session), Some(&error));
    assert_eq!(error.code(), ErrorCode::ENHANCE_YOUR_CALM);
    // Resets of streams that were never promised.
    let mut session = played(2, &[]);
    for index in 0..=1_000 {
        assert_eq!(client_error(&session), None);
        session.notify(Role::Client, Notice::Reset(StreamId(4 * index + 3), 8));
    }
    assert_eq!(client_error(&session), Some(&error));
}

#[test]
fn a_pushed_response_that_is_malformed_fails_alone() {
    let mut encoder = Encoder::new(0);
    let mut octets = promise(&mut encoder, 4, 2, &get("/1"));
    let mut block = Vec::new();
    encoder.encode(&FieldList::new().with("x", "y"), &mut block);
    encode_headers(FrameStreamId::from_wire(2), None, true, &block, FRAME_SIZE, &mut octets);
    let session = played(10, &octets);
    let failed = |event: &ClientEvent| {
        matches!(
            event,
            ClientEvent::ResponseFailed { stream: StreamId(3), failure: Failure::Malformed(_) }
        )
    };
    assert!(session.client_events.iter().any(failed), "{:?}", session.client_events);
    assert_eq!(client_error(&session), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Requests with promised responses, in any order of delivery, some cancelled by either end.
    #[test]
    fn all_pushed_responses_end_and_no_octet_is_lost(
        seed in any::<u64>(),
        limit in 0_u32..6,
        plan in proptest::collection::vec(
            (0_usize..20_000, 0_usize..4, 0_u8..6, 0_u32..40), 1..12),
    ) {
        let mut session = Session::with_push(seed, limit);
        let mut expected = Vec::new();
        for &(size, promises, fate, steps) in &plan {
            let request = session.request(Request { fields: get("/"), ..Request::default() });
            session.settle();
            let mut pushed = Vec::new();
            for _ in 0..promises {
                match session.server.push(&mut session.loopback.server, request, &get("/p")) {
                    Ok(stream) => pushed.push(stream),
                    Err(error) => prop_assert_eq!(error, PushError::NoStream),
                }
            }
            prop_assert!(pushed.len() <= limit as usize);
            for stream in pushed.iter().copied().chain([request]) {
                let octets = Bytes::from(body(stream, size));
                session.respond(stream, &ok(), Body::Whole(octets));
            }
            for _ in 0..steps {
                session.step();
            }
            let promised: Vec<StreamId> = session.client_events.iter().filter_map(|event| match event {
                ClientEvent::Promised { stream, .. } => Some(*stream),
                _ => None,
            }).collect();
            let mut cancelled = Vec::new();
            match (fate, pushed.first()) {
                (0, Some(&stream)) if promised.contains(&stream) => {
                    session.client.cancel(&mut session.loopback.client, stream, ErrorCode::CANCEL);
                    cancelled.push(stream);
                }
                (1, _) => {
                    session.client.cancel(&mut session.loopback.client, request, ErrorCode::CANCEL);
                    // Promises that had not come are refused.
                    cancelled.extend(pushed.iter().copied().filter(|stream| !promised.contains(stream)));
                    cancelled.push(request);
                }
                _ => {}
            }
            for stream in pushed.into_iter().chain([request]) {
                expected.push((stream, size, cancelled.contains(&stream)));
            }
        }
        session.settle();
        for (stream, size, cancelled) in expected {
            if !cancelled {
                prop_assert!(finished(&session, stream));
                let received = session.responses.remove(&stream).unwrap_or_default();
                prop_assert_eq!(received, body(stream, size));
            }
        }
        let broken = |event: &&ClientEvent| matches!(event,
            ClientEvent::ConnectionFailed(_) | ClientEvent::ResponseFailed { .. });
        prop_assert_eq!(session.client_events.iter().find(broken), None);
        prop_assert_eq!((session.client.active(), session.server.active()), (0, 0));
        session.server.handle_timeout(&mut session.loopback.server, Instant::FAR_FUTURE);
        prop_assert!(session.loopback.server.tree.is_empty());
        let left = [session.loopback.client.unread(), session.loopback.server.unread()];
        prop_assert_eq!(left, [Vec::new(), Vec::new()]);
    }

    /// Promises and heads in any order: most get past the frame layer.
    #[test]
    fn any_promises_are_survived(
        limit in 0_u32..4,
        frames in proptest::collection::vec((any::<bool>(), 0_u32..20, 0_u32..20, 0_usize..3), 0..40),
    ) {
        let mut encoder = Encoder::new(0);
        let mut octets = Vec::new();
        for (is_promise, stream, promised, fields) in frames {
            if is_promise {
                let fields = [get("/"), post("/"), FieldList::new()][fields].clone();
                octets.extend(promise(&mut encoder, stream, promised, &fields));
            } else {
                let stream = FrameStreamId::from_wire(stream.max(1));
                encode_headers(stream, None, fields == 0, &[0x88], FRAME_SIZE, &mut octets);
            }
        }
        let session = played(limit, &octets);
        prop_assert!(session.client.active() <= 1 + limit as usize);
    }
}
