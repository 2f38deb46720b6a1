//! Floods of published classes on the control stream, each with the bound that it must not pass.

use bytes::Bytes;
use quipu_base::{Duration, Role, StreamId};
use quipu_http::h2::{ConnectionError, ErrorCode, FrameStreamId, ServerEvent};
use quipu_http::transport::Transport as _;

use crate::loopback::Notice;
use crate::session::Session;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut out = vec![length[1], length[2], length[3], kind, flags];
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// A GET request, whose block names four entries of the static table.
fn request(stream: u32) -> Vec<u8> {
    frame(1, 5, stream, &[0x82, 0x87, 0x84, 0x41, 0x01, b'a'])
}

fn failure(session: &Session) -> Option<&ConnectionError> {
    session.server_events.iter().find_map(|event| match event {
        ServerEvent::ConnectionFailed(error) => Some(error),
        _ => None,
    })
}

fn requests_passed_on(session: &Session) -> usize {
    let heads = session.server_events.iter();
    heads.filter(|event| matches!(event, ServerEvent::RequestHead { .. })).count()
}

/// Requests that are cancelled as soon as they are there, one after the other; each after `pause`.
fn cancelled_requests(count: u32, pause: Duration) -> Session {
    let mut session = Session::started(1);
    for nth in 1..=count {
        session.inject(&request(4 * nth));
        session.settle();
        let stream = StreamId(u64::from(4 * nth));
        session.notify(Role::Server, Notice::Reset(stream, 8));
        session.notify(Role::Server, Notice::Stopped(stream, 8));
        session.now += pause;
        assert!(session.server.active() <= 1);
        if failure(&session).is_some() {
            break;
        }
    }
    session
}

/// "Rapid reset", CVE-2023-44487.
#[test]
fn a_client_that_cancels_rapidly_is_told_to_calm_down() {
    let session = cancelled_requests(5_000, Duration::ZERO);
    let code = failure(&session).map(ConnectionError::code);
    assert_eq!(code, Some(ErrorCode::ENHANCE_YOUR_CALM));
    let heads = requests_passed_on(&session);
    assert!(heads < 1_100, "{heads} requests were passed on");
}

#[test]
fn a_client_that_cancels_thirty_requests_a_second_is_served() {
    let session = cancelled_requests(3_000, Duration::from_millis(33));
    assert_eq!(failure(&session), None);
}

/// The same, where the reset overtakes the request.
#[test]
fn requests_cancelled_before_they_came_count_too() {
    let mut session = Session::started(2);
    for nth in 1..=5_000 {
        session.notify(Role::Server, Notice::Stopped(StreamId(4 * nth), 8));
        session.inject(&request(4 * nth as u32));
        session.settle();
        if failure(&session).is_some() {
            break;
        }
    }
    let code = failure(&session).map(ConnectionError::code);
    assert_eq!(code, Some(ErrorCode::ENHANCE_YOUR_CALM));
    assert_eq!(session.server_events.len(), 1, "no request was passed on");
}

/// Octets of the control stream, and of the request's own, that make a server reset stream `.0`.
type Fault = fn(u32) -> (Vec<u8>, &'static [u8]);

/// A request and what follows it, of which the server resets the stream.
const FAULTS: [(&str, Fault); 6] = [
    ("a second head", |stream| ([request(stream), request(stream)].concat(), b"")),
    ("a head that is malformed", |stream| (frame(1, 5, stream, &[0x82]), b"")),
    ("a head of too many fields", |stream| {
        let accept_encoding = [0x90; 1_200];
        (frame(1, 5, stream, &[&[0x82, 0x87, 0x84][..], &accept_encoding].concat()), b"")
    }),
    ("a head with a node that depends on itself", |stream| {
        let node = [&stream.to_be_bytes()[..], &[15]].concat();
        let fields = [0x82, 0x87, 0x84, 0x41, 0x01, b'a'];
        (frame(1, 0x25, stream, &[&node[..], &fields].concat()), b"")
    }),
    ("a node that comes to depend on itself", |stream| {
        let node = [&stream.to_be_bytes()[..], &[15]].concat();
        ([request(stream), frame(2, 0, stream, &node)].concat(), b"")
    }),
    ("a body that is longer than it was said to be", |stream| {
        // POST, and a literal content-length of 2.
        let fields = [0x83, 0x87, 0x84, 0x41, 0x01, b'a', 0x0f, 0x0d, 0x01, b'2'];
        (frame(1, 4, stream, &fields), b"abc")
    }),
];

/// Requests that the server resets since they have a fault, one after the other; each after `pause`.
fn faulty_requests(fault: Fault, count: u32, pause: Duration) -> Session {
    let mut session = Session::started(10);
    for nth in 1..=count {
        let (control, body) = fault(4 * nth);
        session.inject(&control);
        if !body.is_empty() {
            let stream = StreamId(u64::from(4 * nth));
            session.loopback.client.write(stream, Bytes::from_static(body)).unwrap();
        }
        session.settle();
        session.now += pause;
        assert_eq!(session.server.active(), 0);
        if failure(&session).is_some() {
            break;
        }
    }
    session
}

/// "MadeYouReset", CVE-2025-8671: the server cancels the requests, as the client makes it.
#[test]
fn a_client_that_has_its_requests_reset_is_told_to_calm_down() {
    for (what, fault) in FAULTS {
        let session = faulty_requests(fault, 1_200, Duration::ZERO);
        let code = failure(&session).map(ConnectionError::code);
        assert_eq!(code, Some(ErrorCode::ENHANCE_YOUR_CALM), "{what}");
        let heads = requests_passed_on(&session);
        assert!(heads < 1_100, "{what}: {heads} requests were passed on");
    }
}

#[test]
fn a_client_that_has_thirty_requests_reset_a_second_is_served() {
    let [(_, fault), ..] = FAULTS;
    let session = faulty_requests(fault, 1_500, Duration::from_millis(33));
    assert_eq!(failure(&session), None);
    assert_eq!(requests_passed_on(&session), 1_500);
}

/// The same where all requests are there at once.
#[test]
fn requests_that_come_with_one_reset_too_many_are_not_taken() {
    let mut session = Session::started(11);
    for stream in (1..=1_200).map(|nth| 4 * nth) {
        session.inject(&[request(stream), request(stream)].concat());
    }
    session.settle();
    assert!(failure(&session).is_some());
    let failed = session.server_events.iter();
    let failed = failed.filter(|event| matches!(event, ServerEvent::RequestFailed { .. })).count();
    let heads = requests_passed_on(&session);
    assert_eq!(heads, failed, "each was reset");
    assert!(heads < 1_010, "{heads} requests were passed on");
}

/// CVE-2024-27983 and others: CONTINUATION frames without end.
#[test]
fn continuations_without_end_are_refused() {
    for (what, piece) in [("of a kilobyte", vec![0; 1_000]), ("of nothing", Vec::new())] {
        let mut session = Session::started(3);
        session.inject(&frame(1, 1, 4, &[0x82]));
        for _ in 0..40 {
            session.inject(&frame(9, 0, 4, &piece));
        }
        session.settle();
        assert!(failure(&session).is_some(), "{what}");
    }
}

/// CVE-2019-9516: fields without a name or a value still count.
#[test]
fn empty_fields_fill_the_list() {
    let mut session = Session::started(4);
    // A literal without a name and without a value takes 3 octets, and counts 32.
    let mut block = vec![0x82, 0x87, 0x84];
    block.extend([0, 0, 0].repeat(5_000));
    session.inject(&frame(1, 5, 4, &block));
    session.settle();
    assert_eq!(session.server_events, []);
    assert_eq!(session.server.active(), 0);
}

/// A block that unpacks to megabytes.
#[test]
fn a_bomb_of_indexed_names_ends_the_connection() {
    let mut session = Session::started(5);
    let left = 4_000 - 127;
    let mut block = vec![0x40, 0x7f, (left % 128) as u8 | 0x80, (left / 128) as u8];
    block.extend([b'x'; 4_000]);
    block.push(0);
    session.inject(&frame(1, 5, 4, &block));
    session.inject(&frame(1, 5, 8, &[0x0f, 62 - 15, 0].repeat(5_000)));
    session.settle();
    let code = failure(&session).map(ConnectionError::code);
    assert_eq!(code, Some(ErrorCode::COMPRESSION_ERROR));
}

/// CVE-2019-9513: the tree is reordered again and again, with ever new nodes.
#[test]
fn priorities_in_a_flood_leave_a_small_tree() {
    let mut session = Session::started(6);
    for nth in 0..5_000u32 {
        let (node, parent) = (2 * nth + 1, (2 * nth).saturating_sub(1));
        let mut payload = (parent | (nth % 2) << 31).to_be_bytes().to_vec();
        payload.push(nth as u8);
        session.inject(&frame(2, 0, node, &payload));
        if nth % 50 == 0 {
            session.settle();
        }
    }
    session.settle();
    assert_eq!(failure(&session), None);
    let nodes = session.loopback.server.tree.len();
    assert!(nodes <= 70, "{nodes} nodes");
}

/// Frames of types that nobody knows are dropped as they come.
#[test]
fn unknown_frames_hold_nothing() {
    let mut session = Session::started(7);
    for _ in 0..1_000 {
        session.inject(&frame(0xbe, 0, 0, &[7; 10_000]));
        session.settle();
    }
    assert_eq!(failure(&session), None);
    assert_eq!(session.server_events, []);
}

/// Urgencies of requests that never come.
#[test]
fn updates_of_requests_to_come_are_bounded() {
    let mut session = Session::started(8);
    for nth in 1..=200u32 {
        let mut payload = (4 * nth).to_be_bytes().to_vec();
        payload.extend(b"u=1");
        session.inject(&frame(0x10, 0, 0, &payload));
    }
    session.settle();
    let stream = FrameStreamId::from_wire(4 * 129);
    let problem = "which is one too many at a time";
    assert_eq!(failure(&session), Some(&ConnectionError::WrongUpdate { stream, problem }));
}

/// CVE-2019-9512, -9514, -9517 and -9518: what HTTP/2 can be flooded with over TCP, and QUIC does
/// itself here.
#[test]
fn frames_that_the_mapping_has_no_use_for_end_the_connection() {
    for (what, octets) in [
        ("PING", frame(6, 0, 0, &[0; 8])),
        ("RST_STREAM", frame(3, 0, 4, &[0, 0, 0, 8])),
        ("WINDOW_UPDATE", frame(8, 0, 0, &[0, 0, 1, 0])),
        ("DATA", frame(0, 0, 4, &[])),
        ("PUSH_PROMISE", frame(5, 4, 4, &[0, 0, 0, 2])),
    ] {
        let mut session = Session::started(9);
        session.inject(&octets);
        session.settle();
        let code = failure(&session).map(ConnectionError::code);
        assert_eq!(code, Some(ErrorCode::PROTOCOL_ERROR), "{what}");
    }
}
