//! Requests and responses, whole, in parts, cancelled and refused.

use bytes::Bytes;
use proptest::prelude::*;
use quipu_base::{Instant, StreamId};
use quipu_http::field::FieldList;
use quipu_http::h2::{
    Body, BodyError, CONTROL_STREAM, ClientEvent, ErrorCode, Failure, FrameStreamId, Limits,
    Request, RequestError, RespondError, ServerConfig, ServerEvent,
};
use quipu_http::message::MessageError;

use crate::session::{Session, body, get, ok, post};

const FIRST: StreamId = StreamId(4);

fn simple(path: &str) -> Request {
    Request { fields: get(path), ..Request::default() }
}

#[test]
fn a_request_and_its_response_cross() {
    let mut session = Session::started(1);
    let stream = session.request(simple("/"));
    assert_eq!(stream, FIRST);
    session.settle();
    let head = ServerEvent::RequestHead { stream, fields: get("/"), end_stream: true };
    assert_eq!(session.server_events, [head, ServerEvent::RequestFinished { stream }]);
    session.respond(stream, &ok(), Body::Whole(Bytes::from(body(stream, 100_000))));
    session.settle();
    let head = ClientEvent::ResponseHead { stream, status: 200, fields: ok() };
    assert_eq!(session.client_events, [head, ClientEvent::ResponseFinished { stream }]);
    assert_eq!(session.responses[&stream], body(stream, 100_000));
    assert_eq!((session.client.active(), session.server.active()), (0, 0));
    assert_eq!(session.loopback.client.control, Some(CONTROL_STREAM));
    assert_eq!(session.loopback.server.control, Some(CONTROL_STREAM));
    assert_eq!(session.loopback.server.sizes, [(stream, 100_000)]);
}

#[test]
fn streamed_bodies_cross_both_ways_at_once() {
    let mut session = Session::started(2);
    let request = Request { fields: post("/"), body: Body::Streamed, priority: None };
    let stream = session.request(request);
    session.settle();
    session.respond(stream, &ok().with("content-length", "6000"), Body::Streamed);
    for part in 0..3 {
        let octets = Bytes::from(body(stream, 6000)).slice(part * 2000..(part + 1) * 2000);
        session.client.send_body(&mut session.loopback.client, stream, octets.clone()).unwrap();
        session.settle();
        session.server.send_body(&mut session.loopback.server, stream, octets).unwrap();
        session.settle();
    }
    session.client.finish(&mut session.loopback.client, stream).unwrap();
    session.server.finish(&mut session.loopback.server, stream).unwrap();
    session.settle();
    assert_eq!(session.requests[&stream], body(stream, 6000));
    assert_eq!(session.responses[&stream], body(stream, 6000));
    assert_eq!(session.client_events.last(), Some(&ClientEvent::ResponseFinished { stream }));
    assert_eq!((session.client.active(), session.server.active()), (0, 0));
    assert_eq!(session.loopback.server.sizes, [(stream, 6000)], "from content-length");
    let late = session.client.send_body(&mut session.loopback.client, stream, Bytes::new());
    assert_eq!(late, Err(BodyError::NotSending(stream)));
}

#[test]
fn responses_without_body_end_with_their_head() {
    let mut session = Session::started(3);
    let head = FieldList::new().with(":method", "HEAD").with(":scheme", "https").with(":path", "/");
    let first = session.request(Request { fields: head, ..Request::default() });
    let second = session.request(simple("/not-modified"));
    session.settle();
    let refused = session.server.respond(
        &mut session.loopback.server,
        first,
        &ok(),
        Body::Whole(Bytes::from_static(b"x")),
    );
    assert_eq!(refused, Err(RespondError::BodyNotAllowed(200)));
    session.respond(first, &ok().with("content-length", "1000"), Body::Empty);
    let not_modified = FieldList::new().with(":status", "304").with("content-length", "7");
    session.respond(second, &not_modified, Body::Empty);
    session.settle();
    for stream in [first, second] {
        assert!(session.client_events.contains(&ClientEvent::ResponseFinished { stream }));
    }
}

#[test]
fn a_body_of_another_length_than_stated_fails() {
    for (stated, received) in [("10", 9), ("10", 11)] {
        let mut session = Session::started(4);
        let stream = session.request(simple("/"));
        session.settle();
        let fields = ok().with("content-length", stated);
        session.respond(stream, &fields, Body::Whole(Bytes::from(body(stream, received))));
        session.settle();
        let error = MessageError::BodyLength { expected: 10, received: received as u64 };
        let failure = Failure::Malformed(error);
        let failed = ClientEvent::ResponseFailed { stream, failure };
        assert_eq!(session.client_events.last(), Some(&failed));
        assert!(session.responses.get(&stream).is_none_or(|body| body.len() <= 10));
    }
}

#[test]
fn a_cancelled_request_stops_the_response() {
    let mut session = Session::started(5);
    let stream = session.request(simple("/"));
    session.settle();
    session.respond(stream, &ok(), Body::Streamed);
    session.settle();
    let octets = Bytes::from(body(stream, 50_000));
    session.server.send_body(&mut session.loopback.server, stream, octets.clone()).unwrap();
    session.client.cancel(&mut session.loopback.client, stream, ErrorCode::CANCEL);
    session.settle();
    let stopped = ServerEvent::ResponseStopped { stream, code: ErrorCode::CANCEL.to_quic() };
    assert_eq!(session.server_events.last(), Some(&stopped));
    let more = session.server.send_body(&mut session.loopback.server, stream, octets);
    assert_eq!(more, Err(BodyError::NotSending(stream)));
    assert_eq!((session.client.active(), session.server.active()), (0, 0));
    let ends = |event: &&ClientEvent| matches!(event, ClientEvent::ResponseFinished { .. });
    assert_eq!(session.client_events.iter().find(ends), None);
}

#[test]
fn a_request_cancelled_at_once_leaves_nothing_behind() {
    let mut heard = 0;
    for seed in 0..50 {
        let mut session = Session::started(seed);
        let request = Request { fields: post("/"), body: Body::Streamed, priority: None };
        let stream = session.request(request);
        session.client.cancel(&mut session.loopback.client, stream, ErrorCode::CANCEL);
        session.settle();
        heard += u32::from(!session.server_events.is_empty());
        assert_eq!((session.client.active(), session.server.active()), (0, 0), "seed {seed}");
        assert_eq!(session.client_events, []);
        session.server.handle_timeout(&mut session.loopback.server, Instant::FAR_FUTURE);
        assert!(session.loopback.server.tree.is_empty());
    }
    assert!((1..50).contains(&heard), "HEADERS came before and after the reset: {heard}");
}

#[test]
fn a_response_that_the_server_abandons_fails() {
    let mut session = Session::started(6);
    let (first, second) = (session.request(simple("/1")), session.request(simple("/2")));
    session.settle();
    session.respond(first, &ok(), Body::Streamed);
    session.settle();
    for stream in [first, second] {
        let now = session.now;
        session.server.reset(&mut session.loopback.server, stream, ErrorCode::INTERNAL_ERROR, now);
    }
    session.settle();
    for stream in [first, second] {
        let failure = Failure::Reset(ErrorCode::INTERNAL_ERROR.to_quic());
        let failed = ClientEvent::ResponseFailed { stream, failure };
        assert!(session.client_events.contains(&failed), "{:?}", session.client_events);
    }
    assert_eq!((session.client.active(), session.server.active()), (0, 0));
}

#[test]
fn a_server_may_stop_an_upload_and_still_answer() {
    let mut session = Session::started(7);
    let request = Request { fields: post("/"), body: Body::Streamed, priority: None };
    let stream = session.request(request);
    session.settle();
    let code = ErrorCode::NO_ERROR.to_quic();
    {
        use quipu_http::transport::Transport as _;
        session.loopback.server.stop_sending(stream, code).unwrap();
    }
    session.respond(stream, &ok(), Body::Whole(Bytes::from_static(b"enough")));
    session.settle();
    assert!(session.client_events.contains(&ClientEvent::UploadStopped { stream, code }));
    assert!(session.client_events.contains(&ClientEvent::ResponseFinished { stream }));
    assert_eq!(session.client.active(), 0);
}

#[test]
fn a_server_that_goes_away_answers_what_came_and_refuses_the_rest() {
    let mut session = Session::started(8);
    let first = session.request(simple("/1"));
    session.settle();
    let second = session.request(simple("/2"));
    session.server.go_away(&mut session.loopback.server, ErrorCode::NO_ERROR).unwrap();
    session.settle();
    let last_stream = FrameStreamId::try_from(first).unwrap();
    let go_away = ClientEvent::GoAway { last_stream, code: ErrorCode::NO_ERROR };
    assert!(session.client_events.contains(&go_away));
    let failed = |event: &&ClientEvent| match event {
        ClientEvent::ResponseFailed { stream, .. } => *stream == second,
        _ => false,
    };
    assert_eq!(session.client_events.iter().filter(failed).count(), 1);
    let late = session.client.request(&mut session.loopback.client, simple("/3"));
    assert_eq!(late, Err(RequestError::GoingAway));
    session.respond(first, &ok(), Body::Empty);
    session.settle();
    assert_eq!(
        session.client_events.last(),
        Some(&ClientEvent::ResponseFinished { stream: first })
    );
    assert_eq!((session.client.active(), session.server.active()), (0, 0));
}

#[test]
fn requests_at_a_time_are_bounded_on_both_sides() {
    let config = ServerConfig { max_requests: 2, ..ServerConfig::default() };
    let mut session = Session::idle(9, config);
    session.client.start(&mut session.loopback.client, &[]).unwrap();
    // The client does not know the limit yet.
    let streams: Vec<StreamId> = (0..3).map(|_| session.request(simple("/"))).collect();
    session.settle();
    let failure = Failure::Reset(ErrorCode::REFUSED_STREAM.to_quic());
    let refused = ClientEvent::ResponseFailed { stream: streams[2], failure };
    assert_eq!(session.client_events, [refused]);
    let more = session.client.request(&mut session.loopback.client, simple("/"));
    assert_eq!(more, Err(RequestError::NoStream));
    session.respond(streams[0], &ok(), Body::Empty);
    session.settle();
    session.request(simple("/"));
    session.settle();
    assert_eq!(session.server.active(), 2);
}

/// The end of a request travels in its own stream, which may arrive after the client has the whole response.
#[test]
fn an_answered_request_whose_end_is_late_leaves_room_for_another() {
    let mut session = Session::idle(9, ServerConfig { max_requests: 2, ..ServerConfig::default() });
    session.client.start(&mut session.loopback.client, &[]).unwrap();
    session.settle();
    // HEADERS of GET https://a/ for a stream of which nothing has come.
    let head = |session: &mut Session, stream: u8| {
        let fields = [0x82, 0x87, 0x84, 0x01, 0x01, 0x61];
        let mut frame = vec![0, 0, 6, 1, 5, 0, 0, 0, stream];
        frame.extend(fields);
        session.inject(&frame);
        session.settle();
    };
    head(&mut session, 4);
    head(&mut session, 8);
    let first = session.server_events.iter().find_map(|event| match event {
        ServerEvent::RequestHead { stream, .. } => Some(*stream),
        _ => None,
    });
    session.respond(first.unwrap(), &ok(), Body::Empty);
    session.settle();
    head(&mut session, 12);
    assert_eq!(session.server.active(), 3, "two that are not answered, and one without an end");
    // A fourth would be a third that is not answered.
    head(&mut session, 16);
    assert_eq!(session.server.active(), 3);
}

#[test]
fn before_the_limit_is_known_as_many_requests_leave_as_any_server_takes() {
    let mut session = Session::idle(9, ServerConfig::default());
    session.client.start(&mut session.loopback.client, &[]).unwrap();
    for _ in 0..100 {
        session.request(simple("/"));
    }
    let more = session.client.request(&mut session.loopback.client, simple("/"));
    assert_eq!(more, Err(RequestError::NoStream));
    session.settle();
    assert_eq!((session.server.active(), session.client_events.len()), (100, 0));
    // The server takes 128.
    for _ in 100..128 {
        session.request(simple("/"));
    }
}

#[test]
fn without_a_free_stream_a_request_waits_for_the_caller() {
    let mut session = Session::started(10);
    session.loopback.client.stream_limit = 2;
    session.request(simple("/"));
    let error = session.client.request(&mut session.loopback.client, simple("/"));
    assert_eq!(error, Err(RequestError::NoStream));
}

#[test]
fn malformed_requests_are_not_sent_and_not_told() {
    let mut session = Session::started(11);
    let fields = get("/").with("Upper", "case");
    let request = Request { fields, ..Request::default() };
    let error = session.client.request(&mut session.loopback.client, request);
    assert!(matches!(error, Err(RequestError::Malformed(MessageError::Name { .. }))));
    // HEADERS of nothing but ":method: GET".
    session.inject(&[0, 0, 1, 1, 5, 0, 0, 0, 4, 0x82]);
    session.settle();
    assert_eq!(session.server_events, []);
    assert_eq!(session.server.active(), 0);
}

#[test]
fn fields_beyond_the_peers_limit_are_not_sent() {
    let limits = Limits { field_list: 300, ..Limits::default() };
    let config = ServerConfig { limits, ..ServerConfig::default() };
    let mut session = Session::idle(12, config);
    session.client.start(&mut session.loopback.client, &[]).unwrap();
    let large = || get("/").with("x", "y".repeat(200));
    let request = || Request { fields: large(), ..Request::default() };
    // Before the limit is known, the server refuses.
    let stream = session.request(request());
    session.settle();
    let failure = Failure::Reset(ErrorCode::ENHANCE_YOUR_CALM.to_quic());
    assert_eq!(session.client_events, [ClientEvent::ResponseFailed { stream, failure }]);
    let error = session.client.request(&mut session.loopback.client, request());
    assert_eq!(error, Err(RequestError::FieldsTooLarge { size: large().size(), limit: 300 }));
    // The table followed, so that the next request is understood.
    let stream = session.request(simple("/"));
    session.settle();
    assert!(session.server_events.contains(&ServerEvent::RequestFinished { stream }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Many exchanges with bodies in both directions, in any order of delivery, some cancelled.
    #[test]
    fn all_exchanges_end_and_no_octet_is_lost(
        seed in any::<u64>(),
        plan in proptest::collection::vec((0_usize..9000, 0_usize..20_000, 0_u8..8, 0_u32..40), 1..20),
    ) {
        let mut session = Session::started(seed);
        let mut streams = Vec::new();
        for &(upload, download, fate, steps) in &plan {
            let octets = Bytes::from(body(StreamId(upload as u64), upload));
            let whole = if upload == 0 { Body::Empty } else { Body::Whole(octets) };
            let request = Request { fields: post("/"), body: whole, priority: None };
            let stream = session.request(request);
            streams.push((stream, upload, download, fate));
            for _ in 0..steps {
                session.step();
            }
            if fate == 0 {
                session.client.cancel(&mut session.loopback.client, stream, ErrorCode::CANCEL);
            }
        }
        session.settle();
        for &(stream, upload, download, fate) in &streams {
            let octets = Bytes::from(body(stream, download));
            let answer = session.server.respond(
                &mut session.loopback.server, stream, &ok(), Body::Whole(octets));
            if fate != 0 {
                prop_assert_eq!(answer, Ok(()));
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
        session.server.handle_timeout(&mut session.loopback.server, Instant::FAR_FUTURE);
        prop_assert!(session.loopback.server.tree.is_empty());
        let left = [session.loopback.client.unread(), session.loopback.server.unread()];
        prop_assert_eq!(left, [Vec::new(), Vec::new()]);
    }
}
