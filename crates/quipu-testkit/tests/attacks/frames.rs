//! Frames that must not be sent: each closes the connection, and none does more.

use quipu_base::{Bytes, Offset, PathId, Role, StreamDirection, StreamId};
use quipu_quic::DatagramConfig;
use quipu_quic::connection::CloseReason;
use quipu_quic::wire::Frame;
use quipu_quic::wire::frame::{AckFrequency, Stream};
use quipu_testkit::forge::{Forge, Number, handshake, one_rtt};

use crate::setup;

fn stream(id: u64, offset: u64, fin: bool, data: &[u8]) -> Frame<'_> {
    Frame::Stream(Stream { stream: StreamId(id), offset: Offset(offset), fin, data })
}

/// Everything that a client must not say, and what its server finds.
#[test]
fn forbidden_frames_of_a_client_close() {
    let rest = &[7u8][..];
    let lists: Vec<(&str, Vec<Frame<'_>>)> = vec![
        ("a stream of the server", vec![stream(1, 0, false, rest)]),
        ("a stream that only sends to the client", vec![stream(3, 0, false, rest)]),
        ("a stream beyond the limit", vec![stream(4 << 40, 0, false, rest)]),
        ("bytes beyond the stream's credit", vec![stream(0, 1 << 40, false, rest)]),
        ("two ends", vec![stream(0, 0, true, rest), stream(0, 1, true, rest)]),
        ("bytes behind the end", vec![stream(0, 0, true, rest), stream(0, 5, false, rest)]),
        ("a stream that is too long", vec![stream(0, (1 << 62) - 1, false, rest)]),
        ("confirmation", vec![Frame::HandshakeDone]),
        (
            "a reset of the server's stream",
            vec![Frame::ResetStream { stream: StreamId(1), error_code: 0, final_size: Offset(0) }],
        ),
        (
            "a path beyond the limit",
            vec![Frame::PathAbandon { path: PathId(1 << 20), error_code: 0 }],
        ),
        (
            "credit of an unopened stream of the server",
            vec![Frame::MaxStreamData { stream: StreamId(1), maximum: Offset(1 << 20) }],
        ),
        (
            "too many streams",
            vec![Frame::StreamsBlocked {
                direction: StreamDirection::Bidirectional,
                limit: 1 << 60 | 1,
            }],
        ),
    ];
    for (name, frames) in lists {
        let mut forge = Forge::against(Role::Server, &setup());
        forge.say(frames);
        let closed = forge.closed();
        assert!(matches!(closed, Some(CloseReason::PeerFault(_))), "{name}: {closed:?}");
    }
}

/// <https://www.rfc-editor.org/rfc/rfc9221#section-3>
#[test]
fn datagrams_that_are_not_taken_close() {
    let taking = |datagrams| {
        let mut setup = setup();
        setup.server.datagrams = datagrams;
        Forge::against(Role::Server, &setup)
    };
    let datagram = |length, has_length| Frame::Datagram { data: &[7; 100][..length], has_length };
    let mut forge = taking(None);
    forge.say([datagram(0, true)]);
    assert!(matches!(forge.closed(), Some(CloseReason::PeerFault(_))), "none are taken");
    let config = DatagramConfig { max_frame: 50, ..DatagramConfig::default() };
    // Type and length count.
    for (length, has_length) in [(49, false), (48, true)] {
        let mut forge = taking(Some(config));
        forge.say([datagram(length, has_length)]);
        assert_eq!(forge.closed(), None, "{length} bytes");
        forge.say([datagram(length + 1, has_length)]);
        let closed = forge.closed();
        assert!(matches!(closed, Some(CloseReason::PeerFault(_))), "{length} bytes: {closed:?}");
    }
}

/// <https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-4>
#[test]
fn requests_for_acknowledgements_that_cannot_be_close() {
    let request = |max_delay| {
        Frame::AckFrequency(AckFrequency { sequence: 0, threshold: 9, max_delay, reordering: 0 })
    };
    let mut deaf = setup();
    deaf.server.ack_frequency = None;
    let willing = setup();
    for (setup, frame, closes) in [
        (&deaf, request(25_000), true),
        (&deaf, Frame::ImmediateAck, true),
        (&willing, request(999), true),
        (&willing, request(1_000), false),
        (&willing, request(16_383_999), false),
        (&willing, request(16_384_000), true),
        (&willing, Frame::ImmediateAck, false),
    ] {
        let mut forge = Forge::against(Role::Server, setup);
        forge.say([frame]);
        let closed = forge.closed();
        assert_eq!(
            matches!(closed, Some(CloseReason::PeerFault(_))),
            closes,
            "{frame:?}: {closed:?}"
        );
    }
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-19.7>
#[test]
fn a_token_of_a_client_closes() {
    let mut forge = Forge::against(Role::Server, &setup());
    forge.say([Frame::NewToken { token: b"token" }]);
    assert!(matches!(forge.closed(), Some(CloseReason::PeerFault(_))));
}

/// Bytes that are no frame.
#[test]
fn malformed_frames_close() {
    for bytes in [
        // An unknown type; a type in two bytes; ends within a varint; a length beyond the packet.
        &[0x21][..],
        &[0x40, 0x01],
        &[0x10, 0xc0],
        &[0x06, 0x00, 0x7f],
        // An acknowledgement of packets below zero, and one of 2^62 ranges.
        &[0x02, 0x05, 0x00, 0x00, 0x06],
        &[0x02, 0x05, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00],
        // A connection ID of 21 bytes.
        &[0x18, 0x01, 0x00, 0x15],
    ] {
        let mut forge = Forge::against(Role::Server, &setup());
        forge.send(one_rtt().bytes(bytes));
        let closed = forge.closed();
        assert!(matches!(closed, Some(CloseReason::PeerFault(_))), "{bytes:x?}: {closed:?}");
    }
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-17.3.1>
#[test]
fn reserved_bits_close() {
    let mut forge = Forge::against(Role::Server, &setup());
    forge.send(one_rtt().with_reserved_bits().frame(Frame::Ping));
    assert!(matches!(forge.closed(), Some(CloseReason::PeerFault(_))));
}

/// A packet number used twice is one packet.
#[test]
fn a_packet_that_comes_twice_is_read_once() {
    let mut forge = Forge::against(Role::Server, &setup());
    let before = forge.work();
    let number = forge.next_number(0);
    for _ in 0..1_000 {
        let packet = one_rtt().numbered(Number::Exact(number));
        forge.send(packet.frame(stream(0, 0, false, &[7; 1_000])));
    }
    assert_eq!(forge.closed(), None);
    let work = forge.work().since(before);
    assert!(work.datagrams_out < 20 && work.held < 16_000, "{work:?}");
}

/// After the handshake its keys are gone: packets of its spaces are dropped.
#[test]
fn packets_of_spaces_that_are_gone_are_dropped() {
    let mut forge = Forge::against(Role::Server, &setup());
    let work = forge.cost(|forge| {
        for _ in 0..1_000 {
            forge.send(handshake().frame(Frame::Ping));
        }
    });
    assert_eq!(forge.closed(), None);
    assert!(work.bytes_out == 0 && work.held < 4_000, "{work:?}");
}

/// Without multipath its frames are a fault.
/// <https://www.rfc-editor.org/rfc/rfc10069#section-2>
#[test]
fn multipath_frames_without_multipath_close() {
    for frame in [
        Frame::PathAbandon { path: PathId(0), error_code: 0 },
        Frame::MaxPathId { maximum: PathId(5) },
        Frame::PathsBlocked { maximum: PathId(0) },
        Frame::PathStatusBackup { path: PathId(0), sequence: 1 },
    ] {
        let mut forge = Forge::against(Role::Server, &setup().on_one_path());
        forge.say([frame]);
        assert!(matches!(forge.closed(), Some(CloseReason::PeerFault(_))), "{frame:?}");
    }
}

/// A peer that ignores the connection's credit.
#[test]
fn bytes_beyond_the_connections_credit_close() {
    let mut setup = setup();
    setup.server.connection_window = Bytes(10_000);
    setup.reads = false;
    let mut forge = Forge::against(Role::Server, &setup);
    for id in 0..11u64 {
        forge.say([stream(4 * id, 0, false, &[7; 1_000])]);
    }
    assert!(matches!(forge.closed(), Some(CloseReason::PeerFault(_))));
}

/// A connection that is closing keeps nothing of what comes, and ends its answers when the peer
/// closes too, wherever in a packet that stands.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-10.2.2>
#[test]
fn a_closing_connection_reads_nothing_but_the_peers_close() {
    let mut forge = Forge::against(Role::Server, &setup());
    forge.act(|connection, now| connection.close(now, 0, b"done"));
    let last = 4 * 3_999;
    let work = forge.cost(|forge| {
        for _ in 0..3 {
            forge.say([stream(last, 1, false, &[7; 100])]);
        }
    });
    assert!(work.datagrams_out > 0 && work.held < 4_000, "{work:?}");
    forge.say([
        Frame::Ping,
        stream(last, 1, false, &[7; 100]),
        Frame::ApplicationClose { error_code: 0, reason: b"bye" },
    ]);
    let work = forge.cost(|forge| {
        for _ in 0..100 {
            forge.say([Frame::Ping]);
        }
    });
    assert_eq!(work.datagrams_out, 0);
}
