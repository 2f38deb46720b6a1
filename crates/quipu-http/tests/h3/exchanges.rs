//! Requests and responses, whole, in parts, with trailers, cancelled and refused.

use bytes::Bytes;
use proptest::prelude::*;
use quipu_base::StreamId;
use quipu_http::field::FieldList;
use quipu_http::h3::{
    Body, BodyError, ClientConfig, ClientEvent, ErrorCode, Failure, Request, RequestError,
    RespondError, ServerConfig, ServerEvent,
};

use crate::session::{FIRST, Session, body, get, head, ok};

#[test]
fn a_request_and_its_response_cross() {
    let mut session = Session::started(1);
    let stream = session.get("/");
    assert_eq!(stream, FIRST);
    session.settle();
    let asked = ServerEvent::RequestHead { stream, fields: get("/"), end_stream: true };
    let is_end = session.server_events[0] == asked;
    let open = ServerEvent::RequestHead { stream, fields: get("/"), end_stream: false };
    assert!(is_end || session.server_events[0] == open);
    assert_eq!(session.server_events[1], ServerEvent::RequestFinished { stream });
    session.respond(stream, &ok(), Body::Whole(Bytes::from(body(stream, 100_000))));
    session.settle();
    let answered = ClientEvent::ResponseHead { stream, status: 200, fields: ok() };
    let done = ClientEvent::ResponseFinished { stream };
    assert_eq!(session.client_events, [ClientEvent::Settings, answered, done]);
    assert_eq!(session.responses[&stream], body(stream, 100_000));
    assert_eq!((session.client.active(), session.server.active()), (0, 0));
    // The head and the frame's header count, as they are octets of the stream.
    let (sized, size) = session.loopback.server.sizes[0];
    assert_eq!(sized, stream);
    assert!((100_005..100_040).contains(&size), "{size}");
}

#[test]
fn streamed_bodies_cross_both_ways_at_once_with_and_without_a_length() {
    for length in [None, Some("6000")] {
        let mut session = Session::started(2);
        let announce = |fields: FieldList| match length {
            Some(length) => fields.with("content-length", length),
            None => fields,
        };
        let request = Request { fields: announce(head("POST", "/")), body: Body::Streamed };
        let stream = session.request(request);
        session.settle();
        session.respond(stream, &announce(ok()), Body::Streamed);
        for part in 0..3 {
            let octets = Bytes::from(body(stream, 6000)).slice(part * 2000..(part + 1) * 2000);
            session.client.send_body(&mut session.loopback.client, stream, octets.clone()).unwrap();
            session.settle();
            session.server.send_body(&mut session.loopback.server, stream, octets).unwrap();
            session.settle();
        }
        session.client.finish(&mut session.loopback.client, stream, None).unwrap();
        session.server.finish(&mut session.loopback.server, stream, None).unwrap();
        session.settle();
        assert_eq!(session.requests[&stream], body(stream, 6000));
        assert_eq!(session.responses[&stream], body(stream, 6000));
        assert_eq!(session.client_events.last(), Some(&ClientEvent::ResponseFinished { stream }));
        assert_eq!((session.client.active(), session.server.active()), (0, 0));
        let late = session.client.send_body(&mut session.loopback.client, stream, Bytes::new());
        assert_eq!(late, Err(BodyError::NotSending(stream)));
    }
}

#[test]
fn a_body_has_the_length_that_was_stated() {
    let mut session = Session::started(3);
    let fields = head("POST", "/").with("content-length", "3");
    let stream = session.request(Request { fields, body: Body::Streamed });
    let mut send = |octets: &'static [u8]| {
        session.client.send_body(&mut session.loopback.client, stream, Bytes::from_static(octets))
    };
    assert_eq!(send(b"abcd"), Err(BodyError::WrongLength { stream, sent: 4, left: 3 }));
    assert_eq!(send(b"ab"), Ok(2));
    let early = session.client.finish(&mut session.loopback.client, stream, None);
    assert_eq!(early, Err(BodyError::WrongLength { stream, sent: 0, left: 1 }));
    let rest = Bytes::from_static(b"c");
    assert_eq!(session.client.send_body(&mut session.loopback.client, stream, rest), Ok(1));
    assert_eq!(session.client.finish(&mut session.loopback.client, stream, None), Ok(()));
    session.settle();
    assert_eq!(session.requests[&stream], b"abc");
}

#[test]
fn trailers_and_early_hints_cross() {
    let mut session = Session::started(4);
    let request = Request { fields: head("POST", "/"), body: Body::Streamed };
    let stream = session.request(request);
    session.settle();
    let hints = FieldList::new().with(":status", "103").with("link", "</a.css>; rel=preload");
    for _ in 0..2 {
        session.server.inform(&mut session.loopback.server, stream, &hints).unwrap();
    }
    session.respond(stream, &ok(), Body::Streamed);
    let trailers = FieldList::new().with("checksum", "abc");
    let wrong = FieldList::new().with(":status", "200");
    let refused = session.client.finish(&mut session.loopback.client, stream, Some(&wrong));
    assert!(matches!(refused, Err(BodyError::Trailers(_))));
    session.client.finish(&mut session.loopback.client, stream, Some(&trailers)).unwrap();
    let octets = Bytes::from_static(b"hello");
    session.server.send_body(&mut session.loopback.server, stream, octets).unwrap();
    session.server.finish(&mut session.loopback.server, stream, Some(&trailers)).unwrap();
    session.settle();
    let informed = ClientEvent::Informational { stream, status: 103, fields: hints };
    assert_eq!(
        session.client_events[1..],
        [
            informed.clone(),
            informed,
            ClientEvent::ResponseHead { stream, status: 200, fields: ok() },
            ClientEvent::Trailers { stream, fields: trailers.clone() },
            ClientEvent::ResponseFinished { stream },
        ]
    );
    assert_eq!(
        session.server_events[1..],
        [
            ServerEvent::Trailers { stream, fields: trailers },
            ServerEvent::RequestFinished { stream },
        ]
    );
    assert_eq!(session.responses[&stream], b"hello");
}

#[test]
fn responses_without_a_body_end_with_their_head() {
    let mut session = Session::started(5);
    let first = session.request(Request { fields: head("HEAD", "/"), body: Body::Empty });
    let second = session.get("/not-modified");
    session.settle();
    let whole = Body::Whole(Bytes::from_static(b"x"));
    let refused = session.server.respond(&mut session.loopback.server, first, &ok(), whole);
    assert_eq!(refused, Err(RespondError::BodyNotAllowed(200)));
    session.respond(first, &ok().with("content-length", "1000"), Body::Empty);
    let unchanged = FieldList::new().with(":status", "304").with("content-length", "1000");
    session.respond(second, &unchanged, Body::Empty);
    session.settle();
    for stream in [first, second] {
        assert!(session.client_events.contains(&ClientEvent::ResponseFinished { stream }));
        assert!(!session.responses.contains_key(&stream));
    }
}

#[test]
fn what_is_not_read_stays_in_the_transport() {
    let mut session = Session::started(6);
    let stream = session.get("/");
    session.settle();
    session.respond(stream, &ok(), Body::Whole(Bytes::from(body(stream, 10_000))));
    // The client looks at nothing until all is there.
    while session.loopback.deliver(7).is_some() {}
    for unread in session.loopback.client.unread() {
        session.client.read(&mut session.loopback.client, unread, 0, &mut |_, _| {});
    }
    let mut received = Vec::new();
    while let Some(event) = session.client.poll() {
        assert_ne!(event, ClientEvent::ResponseFinished { stream });
    }
    for _ in 0..10 {
        let mut sink = |_: StreamId, octets: &[u8]| received.extend_from_slice(octets);
        let read = session.client.read(&mut session.loopback.client, stream, 1_000, &mut sink);
        assert_eq!(read, 1_000);
    }
    assert_eq!(session.client.poll(), Some(ClientEvent::ResponseFinished { stream }));
    assert_eq!(received, body(stream, 10_000));
}

#[test]
fn a_cancelled_request_tells_the_server_and_no_more_the_client() {
    let mut session = Session::started(7);
    let stream = session.get("/");
    session.settle();
    session.respond(stream, &ok(), Body::Streamed);
    session.client.cancel(&mut session.loopback.client, stream, ErrorCode::REQUEST_CANCELLED);
    session.settle();
    let stopped = ServerEvent::ResponseStopped { stream, code: ErrorCode::REQUEST_CANCELLED.0 };
    assert!(session.server_events.contains(&stopped));
    assert_eq!((session.client.active(), session.server.active()), (0, 0));
    assert_eq!(session.client_events, [ClientEvent::Settings]);
}

#[test]
fn a_response_that_the_server_abandons_fails() {
    let mut session = Session::started(8);
    let stream = session.get("/");
    session.settle();
    session.respond(stream, &ok(), Body::Streamed);
    session.settle();
    session.server.reset(&mut session.loopback.server, stream, ErrorCode::INTERNAL_ERROR);
    session.settle();
    let failure = Failure::Reset(ErrorCode::INTERNAL_ERROR.0);
    let failed = ClientEvent::ResponseFailed { stream, failure };
    assert_eq!(session.client_events.last(), Some(&failed));
}

#[test]
fn requests_beyond_the_limit_are_rejected_and_may_be_sent_again() {
    let config = ServerConfig { max_requests: 2, ..ServerConfig::default() };
    let mut session = Session::with(9, ClientConfig::default(), config);
    let streams: Vec<StreamId> = (0..4).map(|_| session.get("/")).collect();
    session.settle();
    let refused: Vec<_> = session
        .client_events
        .iter()
        .filter(|event| matches!(event, ClientEvent::ResponseFailed { failure, .. } if *failure == Failure::Refused))
        .collect();
    assert_eq!(refused.len(), 2);
    let asked: Vec<StreamId> = streams.into_iter().filter(|&s| session.is_asked(s)).collect();
    for stream in asked {
        session.respond(stream, &ok(), Body::Empty);
    }
    session.settle();
    let again = session.get("/");
    session.settle();
    assert!(session.is_asked(again));
}

#[test]
fn a_client_that_cancels_again_and_again_is_cut_off() {
    let mut session = Session::started(10);
    session.loopback.client.stream_limit = u64::MAX;
    for _ in 0..2_000 {
        let stream = session.get("/");
        session.settle();
        session.client.cancel(&mut session.loopback.client, stream, ErrorCode::REQUEST_CANCELLED);
        session.settle();
        if let Some(ServerEvent::ConnectionFailed(error)) = session.server_events.last() {
            assert_eq!(error.code(), ErrorCode::EXCESSIVE_LOAD);
            return;
        }
    }
    panic!("two thousand requests were cancelled");
}

#[test]
fn connect_opens_a_tunnel_that_carries_data_alone() {
    let mut session = Session::started(11);
    let fields = FieldList::new().with(":method", "CONNECT").with(":authority", "b.example:443");
    let stream = session.request(Request { fields, body: Body::Streamed });
    session.settle();
    session.respond(stream, &ok(), Body::Streamed);
    let octets = Bytes::from_static(b"ping");
    session.client.send_body(&mut session.loopback.client, stream, octets).unwrap();
    session.settle();
    assert_eq!(session.requests[&stream], b"ping");
}

#[test]
fn a_protocol_is_named_only_where_the_server_allows_it() {
    let fields = get("/chat").with(":protocol", "websocket");
    let mut fields: Vec<(Vec<u8>, Vec<u8>)> =
        fields.iter().map(|field| (field.name.to_vec(), field.value.to_vec())).collect();
    fields[0].1 = b"CONNECT".to_vec();
    let fields: FieldList = fields.into_iter().collect();
    let request = Request { fields, body: Body::Streamed };
    for allowed in [false, true] {
        let config = ServerConfig { extended_connect: allowed, ..ServerConfig::default() };
        let mut session = Session::with(12, ClientConfig::default(), config);
        // The server's settings come with its first packet.
        session.get("/");
        session.settle();
        let sent = session.client.request(&mut session.loopback.client, request.clone());
        match sent {
            Ok(stream) => {
                session.settle();
                assert!(allowed && session.is_asked(stream));
            }
            Err(error) => assert!(!allowed && matches!(error, RequestError::Malformed(_))),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn exchanges_cross_in_any_order_of_delivery(
        seed in any::<u64>(),
        sizes in proptest::collection::vec((0_usize..9_000, 0_usize..9_000, any::<bool>()), 1..12),
    ) {
        let mut session = Session::started(seed >> 1);
        let mut expected = Vec::new();
        for (up, down, known) in sizes {
            let method = if up == 0 { "GET" } else { "POST" };
            let mut fields = head(method, &format!("/{up}/{down}"))
                .with("user-agent", "tests of some length, sent again and again")
                .with("x", format!("{}", down % 7));
            if known {
                fields.push("content-length", up.to_string());
            }
            let body_up = if up == 0 { Body::Empty } else { Body::Streamed };
            let stream = session.request(Request { fields, body: body_up });
            if up > 0 {
                for part in body(stream, up).chunks(1 + up / 3) {
                    let part = Bytes::copy_from_slice(part);
                    session.client.send_body(&mut session.loopback.client, stream, part).unwrap();
                }
                session.client.finish(&mut session.loopback.client, stream, None).unwrap();
            }
            expected.push((stream, up, down));
            for _ in 0..session.choice() % 8 {
                session.step();
            }
        }
        let mut waiting = expected.clone();
        while !waiting.is_empty() {
            if !session.step() {
                prop_assert!(waiting.iter().any(|&(stream, ..)| session.is_asked(stream)));
            }
            waiting.retain(|&(stream, _, down)| {
                let asked = session.is_asked(stream);
                if asked {
                    let fields = ok().with("server", "tests of some length");
                    session.respond(stream, &fields, Body::Whole(Bytes::from(body(stream, down))));
                }
                !asked
            });
        }
        session.settle();
        for (stream, up, down) in expected {
            prop_assert_eq!(session.requests.get(&stream).map_or(&[][..], |b| b), body(stream, up));
            prop_assert_eq!(session.responses.get(&stream).map_or(&[][..], |b| b), body(stream, down));
            let finished = ClientEvent::ResponseFinished { stream };
            prop_assert!(session.client_events.contains(&finished));
        }
        prop_assert_eq!((session.client.active(), session.server.active()), (0, 0));
    }
}
