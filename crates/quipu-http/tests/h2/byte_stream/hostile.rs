//! Peers that break the rules.

use proptest::prelude::*;
use quipu_base::{Role, StreamId};
use quipu_http::byte_stream::{Config, LARGEST_WINDOW};
use quipu_http::h2::frame::{Settings, encode_settings, encode_window_update};
use quipu_http::h2::{
    Body, ClientEvent, ConnectionError, ErrorCode, FrameStreamId, Request, ServerEvent,
};
use quipu_policy::stream::RoundRobin;

use super::Session;
use crate::session::{get, ok};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    let mut out = vec![a, b, c, kind, flags];
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// HEADERS of a GET; `flags` 5 ends the request, 4 does not.
fn request(stream: u32, flags: u8) -> Vec<u8> {
    frame(1, flags, stream, &[0x82, 0x87, 0x84])
}

fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    let mut out = Vec::new();
    encode_window_update(FrameStreamId::from_wire(stream), increment, &mut out);
    out
}

fn settings(window: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let settings = Settings { initial_window_size: Some(window), ..Settings::default() };
    encode_settings(&settings, &mut out);
    out
}

fn server_error(session: &Session) -> Option<ErrorCode> {
    session.server_events.iter().find_map(|event| match event {
        ServerEvent::ConnectionFailed(error) => Some(error.code()),
        _ => None,
    })
}

fn client_error(session: &Session) -> Option<ErrorCode> {
    session.client_events.iter().find_map(|event| match event {
        ClientEvent::ConnectionFailed(error) => Some(error.code()),
        _ => None,
    })
}

/// A server with as little credit as there can be.
fn server() -> Session {
    let config = Config { stream_window: 1, connection_window: 0, ..Config::default() };
    Session::new(1, config, || Box::new(RoundRobin::new()))
}

/// More than a server can have looked at.
fn many_requests() -> Vec<u8> {
    (0..70_000).flat_map(|index| frame(1, 4, 15 + 2 * index, &[])).collect()
}

#[test]
fn a_client_that_breaks_the_rules_is_told_the_code() {
    const PROTOCOL: ErrorCode = ErrorCode::PROTOCOL_ERROR;
    const CREDIT: ErrorCode = ErrorCode::FLOW_CONTROL_ERROR;
    let data = |stream: u32, flags: u8, octets: usize| frame(0, flags, stream, &vec![0; octets]);
    let after = |first: Vec<u8>, second: Vec<u8>| [first, second].concat();
    for (what, octets, code) in [
        ("HEADERS on an even stream", request(4, 5), PROTOCOL),
        ("HEADERS on stream 0", request(0, 5), PROTOCOL),
        (
            "HEADERS on an older stream",
            after(request(17, 5), request(15, 5)),
            ErrorCode::STREAM_CLOSED,
        ),
        ("HEADERS after the end", after(request(15, 5), request(15, 5)), ErrorCode::STREAM_CLOSED),
        ("DATA on an idle stream", data(15, 0, 1), PROTOCOL),
        ("DATA on an even stream", after(request(15, 4), data(4, 0, 1)), PROTOCOL),
        (
            "DATA on a skipped stream",
            after(request(15, 4), data(13, 0, 1)),
            ErrorCode::STREAM_CLOSED,
        ),
        ("DATA after the end", after(request(15, 5), data(15, 0, 1)), ErrorCode::STREAM_CLOSED),
        (
            "DATA after its end",
            after(request(15, 4), data(15, 1, 1).repeat(2)),
            ErrorCode::STREAM_CLOSED,
        ),
        ("DATA beyond the credit", after(request(15, 4), data(15, 0, 16_384).repeat(4)), CREDIT),
        (
            "DATA that is too large",
            after(request(15, 4), data(15, 0, 16_385)),
            ErrorCode::FRAME_SIZE_ERROR,
        ),
        ("DATA in a header block", after(request(15, 0), data(15, 0, 1)), PROTOCOL),
        ("RST_STREAM on an idle stream", frame(3, 0, 15, &[0; 4]), PROTOCOL),
        ("WINDOW_UPDATE on an idle stream", window_update(15, 1), PROTOCOL),
        ("WINDOW_UPDATE by nothing", window_update(0, 0), PROTOCOL),
        ("too much credit of the connection", window_update(0, LARGEST_WINDOW), CREDIT),
        (
            "too much credit of a stream",
            after(request(15, 4), window_update(15, LARGEST_WINDOW)),
            CREDIT,
        ),
        (
            "too much credit by a setting",
            [request(15, 4), window_update(15, 1), settings(LARGEST_WINDOW)].concat(),
            CREDIT,
        ),
        ("a promise", frame(5, 4, 15, &[0, 0, 0, 2, 0x82]), PROTOCOL),
        ("a block that does not decode", frame(1, 5, 15, &[0x80]), ErrorCode::COMPRESSION_ERROR),
        ("PING of 9 octets", frame(6, 0, 0, &[0; 9]), ErrorCode::FRAME_SIZE_ERROR),
        ("PING without end", frame(6, 0, 0, &[0; 8]).repeat(70_000), ErrorCode::ENHANCE_YOUR_CALM),
        ("streams without end", many_requests(), ErrorCode::ENHANCE_YOUR_CALM),
        ("an empty SETTINGS, often", frame(4, 0, 0, &[]).repeat(100), ErrorCode::ENHANCE_YOUR_CALM),
    ] {
        let mut session = server();
        session.inject(Role::Server, &[PREFACE, &settings(65_535)].concat());
        for chunk in octets.chunks(1 << 20) {
            session.inject(Role::Server, chunk);
        }
        // More of them than fit one piece are only noticed with the next.
        session.inject(Role::Server, &frame(6, 0, 0, &[0; 8]));
        assert_eq!(server_error(&session), Some(code), "{what}");
        let events = session.server_events.len();
        session.inject(Role::Server, &request(99, 5));
        assert_eq!(session.server_events.len(), events, "{what}: no event follows");
    }
}

/// A server after up to 200,000 requests, far more than it takes at a time; after each batch `then` does something.
fn flooded(mut then: impl FnMut(&mut Session)) -> Session {
    let mut session = server();
    session.inject(Role::Server, &[PREFACE, &settings(65_535)].concat());
    for batch in 0..100 {
        let requests = (0..2_000).flat_map(|nth| request(15 + 4_000 * batch + 2 * nth, 5));
        session.inject(Role::Server, &requests.collect::<Vec<u8>>());
        if server_error(&session).is_some() {
            break;
        }
        then(&mut session);
    }
    session
}

/// CVE-2019-9514: each request above the limit is refused with a RST_STREAM frame, which waits.
#[test]
fn a_client_that_takes_nothing_makes_no_pile_of_resets() {
    let session = flooded(|_| {});
    assert_eq!(server_error(&session), Some(ErrorCode::ENHANCE_YOUR_CALM));
    let unsent = session.ends[super::index(Role::Server)].unsent.len();
    assert!((100_000..1 << 20).contains(&unsent), "{unsent}");
    let takes_all = flooded(|session| session.ends[super::index(Role::Server)].unsent.clear());
    assert_eq!(server_error(&takes_all), None);
}

#[test]
fn what_is_no_http_2_is_refused_at_the_first_octet() {
    let mut session = server();
    session.inject(Role::Server, b"G");
    assert_eq!(server_error(&session), Some(ErrorCode::PROTOCOL_ERROR));
    let mut session = server();
    session.inject(Role::Server, &[PREFACE, &request(15, 5)].concat());
    assert_eq!(server_error(&session), Some(ErrorCode::PROTOCOL_ERROR));
}

#[test]
fn a_server_that_breaks_the_rules_is_told_the_code() {
    for (what, octets, code) in [
        ("DATA before HEADERS", frame(0, 0, 15, b"x"), ErrorCode::PROTOCOL_ERROR),
        ("DATA of nothing", frame(0, 0, 17, b"x"), ErrorCode::PROTOCOL_ERROR),
        ("DATA below the first request", frame(0, 0, 13, b"x"), ErrorCode::PROTOCOL_ERROR),
        ("a response to nothing", frame(1, 5, 17, &[0x88]), ErrorCode::PROTOCOL_ERROR),
        (
            "more than it said",
            [frame(1, 5, 15, &[0x88]), frame(0, 0, 15, b"x")].concat(),
            ErrorCode::STREAM_CLOSED,
        ),
        ("push enabled", frame(4, 0, 0, &[0, 2, 0, 0, 0, 1]), ErrorCode::PROTOCOL_ERROR),
    ] {
        let mut session = Session::started(2);
        session.request(Request { fields: get("/"), ..Request::default() });
        session.inject(Role::Client, &[settings(65_535), octets].concat());
        assert_eq!(client_error(&session), Some(code), "{what}");
    }
}

#[test]
fn the_byte_stream_does_not_end() {
    let mut session = Session::started(3);
    session.settle();
    for role in [Role::Client, Role::Server] {
        session.ends[super::index(role)].ended = true;
        session.inject(role, &[]);
    }
    let failed = ConnectionError::ControlEnded;
    assert_eq!(session.client_events, [ClientEvent::ConnectionFailed(failed.clone())]);
    assert_eq!(session.server_events, [ServerEvent::ConnectionFailed(failed)]);
}

#[test]
fn a_ping_is_answered_with_its_octets() {
    let mut session = Session::started(4);
    session.settle();
    session.inject(Role::Server, &frame(6, 0, 0, b"whatever"));
    let answer: Vec<u8> = session.ends[super::index(Role::Server)].unsent.iter().copied().collect();
    assert_eq!(answer, frame(6, 1, 0, b"whatever"));
}

/// Streams of a client that dribbles.
fn dribbled() -> impl Iterator<Item = u32> {
    (0..100).map(|index| 15 + 2 * index)
}

/// A server that answers many requests with bodies for which the client gave no credit yet: CVE-2019-9511.
fn without_credit() -> Session {
    let mut session = Session::new(5, Config::default(), || Box::new(RoundRobin::new()));
    let requests: Vec<u8> = dribbled().flat_map(|stream| request(stream, 5)).collect();
    let credit = window_update(0, LARGEST_WINDOW - 65_535);
    session.inject(Role::Server, &[PREFACE, &settings(0), &credit, &requests].concat());
    for stream in dribbled() {
        let body = Body::Whole(vec![7; 1_000].into());
        session.respond(StreamId(u64::from(stream)), &ok(), body);
    }
    session.fill();
    session
}

/// Credit for one octet of each stream.
fn an_octet_each() -> Vec<u8> {
    dribbled().flat_map(|stream| window_update(stream, 1)).collect()
}

/// Takes what the server sent; returns how many octets.
fn drain(session: &mut Session) -> usize {
    session.fill();
    session.ends[super::index(Role::Server)].unsent.drain(..).count()
}

#[test]
fn a_client_that_takes_single_octets_sends_more_than_it_gets() {
    let mut session = without_credit();
    drain(&mut session);
    for _ in 0..500 {
        let credit = an_octet_each();
        session.inject(Role::Server, &credit);
        let went = drain(&mut session);
        assert_eq!(went, 100 * (9 + 1), "a frame for each stream");
        assert!(went < credit.len(), "{went} for {}", credit.len());
    }
    assert_eq!(server_error(&session), None);
}

#[test]
fn single_octets_that_a_client_does_not_read_stay_out_of_the_pipe() {
    let mut session = without_credit();
    for _ in 0..500 {
        session.inject(Role::Server, &an_octet_each());
        session.fill();
    }
    let most = session.ends[super::index(Role::Server)].most_unsent;
    assert!(most < (16 << 10) + 9 + 1, "{most} octets");
    // What is sent at last is whole.
    assert!(drain(&mut session) > 0);
    let went = drain(&mut session);
    assert!(went >= 9 + 400, "credit that was saved up goes in one frame: {went} octets");
    assert_eq!(server_error(&session), None);
}

/// One frame gives credit for an octet of each stream.
#[test]
fn single_octets_by_settings_come_to_an_end() {
    let mut session = without_credit();
    drain(&mut session);
    let mut went = 0;
    for window in 1..1_000 {
        session.inject(Role::Server, &settings(window));
        went += drain(&mut session);
        if server_error(&session).is_some() {
            break;
        }
    }
    assert_eq!(server_error(&session), Some(ErrorCode::ENHANCE_YOUR_CALM));
    assert!(went <= 100 * (100 * (9 + 1) + 9), "{went} octets");
}

proptest! {
    #[test]
    fn any_octets_are_survived(
        seed in any::<u64>(),
        octets in proptest::collection::vec(prop_oneof![0_u8..10, any::<u8>()], 0..300),
        to_server in any::<bool>(),
    ) {
        let mut session = Session::started(seed);
        session.request(Request { fields: get("/"), ..Request::default() });
        session.settle();
        session.inject(if to_server { Role::Server } else { Role::Client }, &octets);
        session.settle();
        prop_assert!(client_error(&session).is_none() || server_error(&session).is_none());
    }

    /// Well-formed frames in any order: more of them get past the first checks.
    #[test]
    fn any_frames_are_survived(
        seed in any::<u64>(),
        frames in proptest::collection::vec(
            (0_u8..10, proptest::sample::select(&[0_u8, 1, 4, 5, 8, 0x24][..]), 0_u32..24, 0_u32..24),
            0..30,
        ),
    ) {
        let mut session = Session::started(seed);
        session.settle();
        let mut octets = Vec::new();
        for (kind, flags, stream, number) in frames {
            let mut payload = if flags & 8 != 0 { vec![1] } else { Vec::new() };
            if kind == 2 || (kind == 1 && flags & 0x20 != 0) {
                payload.extend(number.to_be_bytes());
                payload.push(7);
            }
            match kind {
                1 => payload.extend([0x82, 0x87, 0x84]),
                3 | 8 => payload = number.to_be_bytes().to_vec(),
                4 | 9 => payload.clear(),
                6 => payload = vec![0; 8],
                _ => payload.extend([0; 3]),
            }
            let stream = if matches!(kind, 4 | 6) { 0 } else { stream };
            octets.extend(frame(kind, flags, stream, &payload));
        }
        session.inject(Role::Server, &octets);
        session.settle();
        prop_assert!(session.server.active() <= 30);
        prop_assert!(session.muxes[super::index(Role::Server)].open_streams() <= 30);
    }
}
