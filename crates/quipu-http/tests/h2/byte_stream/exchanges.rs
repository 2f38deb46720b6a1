//! Requests and responses in one byte stream.

use bytes::Bytes;
use proptest::prelude::*;
use quipu_base::{Instant, Role, StreamId};
use quipu_http::byte_stream::Config;
use quipu_http::field::FieldList;
use quipu_http::h2::{Body, ClientEvent, ErrorCode, Failure, Request, ServerEvent, StreamPriority};
use quipu_policy::StreamPolicy;
use quipu_policy::stream::{ByChunk, ByPriority, QuantumWrr, Ranked, RoundRobin};

use super::{Session, index};
use crate::session::{body, get, ok, post};

const FIRST: StreamId = StreamId(15);

fn simple(path: &str) -> Request {
    Request { fields: get(path), ..Request::default() }
}

#[test]
fn the_wire_begins_as_rfc_9113_has_it() {
    let mut session = Session::started(1);
    let priority = Some(StreamPriority::default());
    let stream = session.request(Request { priority, ..simple("/") });
    assert_eq!(stream, FIRST);
    let octets: Vec<u8> = session.ends[index(Role::Client)].unsent.iter().copied().collect();
    let rest = octets.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    // ENABLE_PUSH 0, INITIAL_WINDOW_SIZE 6,291,456, MAX_HEADER_LIST_SIZE 65,536.
    let settings = b"\0\0\x12\x04\0\0\0\0\0\0\x02\0\0\0\0\0\x04\0\x60\0\0\0\x06\0\x01\0\0";
    let rest = rest.strip_prefix(settings).unwrap();
    // 15 MiB less the 65,535 octets that every connection begins with.
    let rest = rest.strip_prefix(b"\0\0\x04\x08\0\0\0\0\0\0\xef\0\x01").unwrap();
    // HEADERS with END_STREAM, END_HEADERS and PRIORITY on stream 15, and nothing behind it.
    assert_eq!((rest[3..9].to_vec(), rest[2]), (vec![1, 0x25, 0, 0, 0, 15], rest.len() as u8 - 9));
}

#[test]
fn a_request_and_its_response_cross() {
    let mut session = Session::started(1);
    let stream = session.request(simple("/"));
    session.settle();
    let head = ServerEvent::RequestHead { stream, fields: get("/"), end_stream: true };
    assert_eq!(session.server_events, [head, ServerEvent::RequestFinished { stream }]);
    session.respond(stream, &ok(), Body::Whole(Bytes::from(body(stream, 100_000))));
    session.settle();
    let head = ClientEvent::ResponseHead { stream, status: 200, fields: ok() };
    assert_eq!(session.client_events, [head, ClientEvent::ResponseFinished { stream }]);
    assert_eq!(session.responses[&stream], body(stream, 100_000));
    assert_eq!((session.client.active(), session.server.active()), (0, 0));
    assert_eq!(session.muxes.each_ref().map(|mux| mux.open_streams()), [0, 0]);
}

#[test]
fn a_response_without_body_ends_with_its_head() {
    let mut session = Session::started(2);
    let stream = session.request(simple("/"));
    session.settle();
    let not_modified = FieldList::new().with(":status", "304");
    session.respond(stream, &not_modified, Body::Empty);
    assert_eq!(session.muxes[index(Role::Server)].open_streams(), 0);
    session.settle();
    assert_eq!(session.client_events.last(), Some(&ClientEvent::ResponseFinished { stream }));
}

#[test]
fn little_waits_in_the_pipe_and_more_is_asked_for() {
    let mut session = Session::started(3);
    let stream = session.request(simple("/"));
    session.settle();
    session.respond(stream, &ok(), Body::Streamed);
    let part = Bytes::from(body(stream, 90_000));
    for _ in 0..2 {
        session.at_server(|server, framed| server.send_body(framed, stream, part.clone())).unwrap();
        session.settle();
    }
    session.at_server(|server, framed| server.finish(framed, stream)).unwrap();
    session.settle();
    assert_eq!(session.responses[&stream].len(), 180_000);
    assert_eq!(session.drained, [stream, stream]);
    // A frame and its header above the limit of 16 KiB, with what else was just answered.
    let most = session.ends[index(Role::Server)].most_unsent;
    assert!((16_384..2 * 16_384 + 100).contains(&most), "{most}");
}

#[test]
fn late_choices_let_an_urgent_response_pass() {
    let strict: fn() -> Box<dyn StreamPolicy> = || Box::new(Ranked::strict(ByPriority::Weight));
    let mut session = Session::new(4, Config::default(), strict);
    session.start();
    let place = |weight| Some(StreamPriority { weight, ..StreamPriority::default() });
    let slow = session.request(Request { priority: place(1), ..simple("/slow") });
    session.settle();
    session.respond(slow, &ok(), Body::Whole(Bytes::from(body(slow, 500_000))));
    for _ in 0..20 {
        session.step();
    }
    let urgent = session.request(Request { priority: place(256), ..simple("/urgent") });
    while !session.server_events.contains(&ServerEvent::RequestFinished { stream: urgent }) {
        session.step();
    }
    session.respond(urgent, &ok(), Body::Whole(Bytes::from(body(urgent, 50_000))));
    let before = session.responses[&slow].len();
    while !session.client_events.contains(&ClientEvent::ResponseFinished { stream: urgent }) {
        session.step();
    }
    let meanwhile = session.responses[&slow].len() - before;
    assert!(meanwhile <= 3 * 16_384, "{meanwhile} octets of the slow response went before");
}

#[test]
fn a_cancelled_request_stops_the_response_and_what_was_under_way_is_dropped() {
    let mut session = Session::started(5);
    let stream = session.request(simple("/"));
    session.settle();
    session.respond(stream, &ok(), Body::Whole(Bytes::from(body(stream, 200_000))));
    while session.responses.is_empty() {
        session.step();
    }
    session.at_client(|client, framed| client.cancel(framed, stream, ErrorCode::CANCEL));
    let other = session.request(simple("/other"));
    session.settle();
    let code = ErrorCode::CANCEL.to_quic();
    assert!(session.server_events.contains(&ServerEvent::RequestFinished { stream: other }));
    session.respond(other, &ok(), Body::Whole(Bytes::from(body(other, 1_000))));
    session.settle();
    assert!(session.responses[&stream].len() < 200_000);
    assert!(session.client_events.contains(&ClientEvent::ResponseFinished { stream: other }));
    assert_eq!(session.muxes.each_ref().map(|mux| mux.open_streams()), [0, 0]);
    // All of it was handed over before, so that nothing is told.
    let stopped = ServerEvent::ResponseStopped { stream, code };
    assert!(!session.server_events.contains(&stopped));
    assert_eq!(session.muxes[index(Role::Server)].unsent(), quipu_base::Bytes::ZERO);
}

#[test]
fn an_answer_before_the_upload_ends_is_kept_when_the_upload_is_stopped() {
    use quipu_http::transport::Transport as _;
    let mut session = Session::started(6);
    let request = Request { fields: post("/"), body: Body::Streamed, priority: None };
    let stream = session.request(request);
    session.settle();
    session.respond(stream, &ok(), Body::Whole(Bytes::from_static(b"enough")));
    session.at_server(|_, framed| framed.fill());
    let code = ErrorCode::NO_ERROR.to_quic();
    session.at_server(|_, framed| framed.stop_sending(stream, code)).unwrap();
    // All in one piece.
    let octets: Vec<u8> = session.ends[index(Role::Server)].unsent.drain(..).collect();
    session.inject(Role::Client, &octets);
    assert!(session.client_events.contains(&ClientEvent::UploadStopped { stream, code }));
    assert!(session.client_events.contains(&ClientEvent::ResponseFinished { stream }));
    assert_eq!(session.responses[&stream], b"enough");
}

#[test]
fn a_server_that_resets_tells_the_code() {
    let mut session = Session::started(7);
    let stream = session.request(simple("/"));
    session.settle();
    let now = session.now;
    session.at_server(|server, framed| {
        server.reset(framed, stream, ErrorCode::INTERNAL_ERROR, now);
    });
    session.settle();
    let failure = Failure::Reset(ErrorCode::INTERNAL_ERROR.to_quic());
    assert_eq!(session.client_events, [ClientEvent::ResponseFailed { stream, failure }]);
    assert_eq!(session.muxes.each_ref().map(|mux| mux.open_streams()), [0, 0]);
}

fn policies() -> impl Strategy<Value = fn() -> Box<dyn StreamPolicy>> {
    let all: Vec<fn() -> Box<dyn StreamPolicy>> = vec![
        || Box::new(RoundRobin::new()),
        || Box::new(ByChunk::fifo()),
        || Box::new(QuantumWrr::new()),
        || Box::new(Ranked::srpt(None)),
    ];
    proptest::sample::select(all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Many exchanges with bodies in both directions, in any order of delivery, some cancelled, with
    /// little credit.
    #[test]
    fn all_exchanges_end_and_no_octet_is_lost(
        seed in any::<u64>(),
        policy in policies(),
        stream_window in 1_u32..100_000,
        frame_size in 1_000_u32..16_385,
        plan in proptest::collection::vec((0_usize..90_000, 0_usize..200_000, 0_u8..8, 0_u32..40), 1..12),
    ) {
        // Windows of few octets make many frames.
        let stream_window = stream_window.max(2_000);
        let config = Config { stream_window, connection_window: 0, frame_size, ..Config::default() };
        let mut session = Session::new(seed, config, policy);
        session.start();
        let mut streams = Vec::new();
        for &(upload, download, fate, steps) in &plan {
            let octets = Bytes::from(body(StreamId(upload as u64), upload));
            let whole = if upload == 0 { Body::Empty } else { Body::Whole(octets) };
            let stream = session.request(Request { fields: post("/"), body: whole, priority: None });
            streams.push((stream, upload, download, fate));
            for _ in 0..steps {
                session.step();
            }
            if fate == 0 {
                session.at_client(|client, framed| client.cancel(framed, stream, ErrorCode::CANCEL));
            }
        }
        session.settle();
        for &(stream, upload, download, fate) in &streams {
            let octets = Bytes::from(body(stream, download));
            let answer = session.at_server(|server, framed| {
                server.respond(framed, stream, &ok(), Body::Whole(octets))
            });
            prop_assert_eq!(answer.is_ok(), fate != 0);
            if fate != 0 {
                let received = session.requests.remove(&stream).unwrap_or_default();
                prop_assert_eq!(received, body(StreamId(upload as u64), upload));
            }
            session.step();
        }
        session.settle();
        for (stream, _, download, fate) in streams {
            let finished = session.client_events.contains(&ClientEvent::ResponseFinished { stream });
            prop_assert_eq!(finished, fate != 0);
            if fate != 0 {
                let received = session.responses.remove(&stream).unwrap_or_default();
                prop_assert_eq!(received, body(stream, download));
            }
        }
        prop_assert_eq!((session.client.active(), session.server.active()), (0, 0));
        for mux in &session.muxes {
            prop_assert_eq!((mux.open_streams(), mux.unsent().0, mux.overridden()), (0, 0, 0));
        }
        session.at_server(|server, framed| server.handle_timeout(framed, Instant::FAR_FUTURE));
        prop_assert_eq!(session.server.poll_timeout(), None);
    }
}
