//! Pushed responses in one byte stream.

use bytes::Bytes;
use proptest::prelude::*;
use quipu_base::{Role, StreamId};
use quipu_http::byte_stream::Config;
use quipu_http::h2::frame::{
    Settings, encode_data_header, encode_headers, encode_push_promise, encode_reset,
    encode_settings, encode_window_update,
};
use quipu_http::h2::{
    Body, ClientEvent, ErrorCode, Failure, FrameStreamId, PushError, Request, ServerEvent,
};
use quipu_http::hpack::Encoder;

use super::Session;
use crate::session::{body, get, ok};

fn finished(session: &Session, stream: StreamId) -> bool {
    session.client_events.contains(&ClientEvent::ResponseFinished { stream })
}

fn asked(seed: u64, config: Config, limit: u32) -> (Session, StreamId) {
    let mut session = Session::with_push(seed, config, limit);
    let request = session.request(Request { fields: get("/"), ..Request::default() });
    session.settle();
    (session, request)
}

fn open_streams(session: &Session) -> [usize; 2] {
    session.muxes.each_ref().map(|mux| mux.open_streams())
}

#[test]
fn pushed_responses_have_even_numbers_and_come_whole() {
    let (mut session, request) = asked(1, Config::default(), 10);
    let first = session.push(request, &get("/1")).unwrap();
    let empty = session.push(request, &get("/2")).unwrap();
    assert_eq!((request, first, empty), (StreamId(15), StreamId(2), StreamId(4)));
    session.respond(first, &ok(), Body::Whole(Bytes::from(body(first, 50_000))));
    session.respond(empty, &ok(), Body::Empty);
    session.respond(request, &ok(), Body::Empty);
    session.settle();
    for stream in [request, first, empty] {
        assert!(finished(&session, stream), "{stream}");
    }
    assert_eq!(session.responses[&first], body(first, 50_000));
    assert_eq!(open_streams(&session), [0, 0]);
}

#[test]
fn either_end_may_give_up_a_promised_stream() {
    for by_client in [false, true] {
        let (mut session, request) = asked(1, Config::default(), 10);
        let stream = session.push(request, &get("/1")).unwrap();
        let now = session.now;
        let code = ErrorCode::CANCEL;
        if by_client {
            session.settle();
            session.at_client(|client, framed| client.cancel(framed, stream, code));
            session.settle();
            let code = code.to_quic();
            let stopped = ServerEvent::ResponseStopped { stream, code };
            assert!(session.server_events.contains(&stopped));
        } else {
            session.at_server(|server, framed| server.reset(framed, stream, code, now));
            session.settle();
            let failure = Failure::Reset(code.to_quic());
            let failed = ClientEvent::ResponseFailed { stream, failure };
            assert!(session.client_events.contains(&failed));
        }
        session.respond(request, &ok(), Body::Empty);
        session.settle();
        assert!(finished(&session, request));
        assert_eq!(open_streams(&session), [0, 0]);
        assert_eq!((session.client.active(), session.server.active()), (0, 0));
    }
}

/// What a server of the test sends, after its settings and a promise of stream 2.
fn played(limit: u32, octets: &[u8]) -> Session {
    let mut session = Session::with_push(1, Config::default(), limit);
    session.request(Request { fields: get("/"), ..Request::default() });
    let (mut all, mut block) = (Vec::new(), Vec::new());
    encode_settings(&Settings::default(), &mut all);
    Encoder::new(0).encode(&get("/1"), &mut block);
    let [on, promised] = [15, 2].map(FrameStreamId::from_wire);
    encode_push_promise(on, promised, &block, 16_384, &mut all);
    all.extend(octets);
    session.inject(Role::Client, &all);
    session
}

#[test]
fn frames_on_streams_that_were_not_promised_close_the_connection() {
    let id = FrameStreamId::from_wire;
    let frame = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        out
    };
    let head = |stream| frame(&|out| encode_headers(id(stream), None, false, &[0x88], 16_384, out));
    let data = |stream| frame(&|out| encode_data_header(id(stream), 0, true, out));
    let reset = |stream| frame(&|out| encode_reset(id(stream), ErrorCode::CANCEL, out));
    let credit = |stream| frame(&|out| encode_window_update(id(stream), 1, out));
    let protocol = Some(ErrorCode::PROTOCOL_ERROR);
    for (what, octets, code) in [
        ("an answer", [head(2), data(2)].concat(), None),
        ("a reset", reset(2), None),
        ("DATA of an idle stream", data(4), protocol),
        ("HEADERS of an idle stream", head(4), protocol),
        ("a reset of an idle stream", reset(4), protocol),
        ("credit of an idle stream", credit(4), protocol),
        ("DATA before HEADERS", data(2), protocol),
        (
            "DATA after the end",
            [head(2), data(2), data(2)].concat(),
            Some(ErrorCode::STREAM_CLOSED),
        ),
    ] {
        let session = played(10, &octets);
        let found = session.client_events.iter().find_map(|event| match event {
            ClientEvent::ConnectionFailed(error) => Some(error.code()),
            _ => None,
        });
        assert_eq!(found, code, "{what}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Requests with promised responses and little credit, some cancelled.
    #[test]
    fn all_pushed_responses_end_and_no_octet_is_lost(
        seed in any::<u64>(),
        limit in 0_u32..6,
        stream_window in 2_000_u32..100_000,
        plan in proptest::collection::vec((0_usize..60_000, 0_usize..4, 0_u8..6, 0_u32..40), 1..10),
    ) {
        let config = Config { stream_window, connection_window: 0, ..Config::default() };
        let mut session = Session::with_push(seed, config, limit);
        let mut expected = Vec::new();
        for &(size, promises, fate, steps) in &plan {
            let request = session.request(Request { fields: get("/"), ..Request::default() });
            session.settle();
            let mut streams = vec![request];
            for _ in 0..promises {
                match session.push(request, &get("/p")) {
                    Ok(stream) => streams.push(stream),
                    Err(error) => prop_assert_eq!(error, PushError::NoStream),
                }
            }
            for &stream in &streams {
                let octets = Bytes::from(body(stream, size));
                session.respond(stream, &ok(), Body::Whole(octets));
            }
            for _ in 0..steps {
                session.step();
            }
            let last = streams.last().copied().unwrap_or(request);
            let known = last == request || session.client_events.iter().any(|event| {
                matches!(event, ClientEvent::Promised { stream, .. } if *stream == last)
            });
            // The request alone or a promised response, if the client knows of it.
            let cancelled = fate == 0 && known && (last != request || streams.len() == 1);
            if cancelled {
                session.at_client(|client, framed| client.cancel(framed, last, ErrorCode::CANCEL));
            }
            for stream in streams {
                expected.push((stream, size, cancelled && stream == last));
            }
        }
        session.settle();
        for (stream, size, cancelled) in expected {
            if !cancelled {
                prop_assert!(finished(&session, stream), "{}", stream);
                let received = session.responses.remove(&stream).unwrap_or_default();
                prop_assert_eq!(received, body(stream, size));
            }
        }
        prop_assert_eq!((session.client.active(), session.server.active()), (0, 0));
        for mux in &session.muxes {
            prop_assert_eq!((mux.open_streams(), mux.unsent().0, mux.overridden()), (0, 0, 0));
        }
    }
}
