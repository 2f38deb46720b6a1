//! Frames that cost their sender little, in great number.

use quipu_base::{Bytes, Duration, Offset, PathId, Role, StreamDirection, StreamId};
use quipu_quic::DatagramConfig;
use quipu_quic::connection::CloseReason;
use quipu_quic::wire::Frame;
use quipu_quic::wire::frame::{AckFrequency, Stream};
use quipu_testkit::forge::{Forge, Forgery, Setup, Work, one_rtt};

use crate::{assert_bounded, setup, setup_for_long_writes};

/// Bytes of frames in a packet of a flood.
const FULL: usize = 1_200;
/// Packets of a flood.
const PACKETS: u64 = 2_000;

/// A packet full of frames; `make` makes the frame of a number.
fn full<'a>(count: &mut u64, make: impl Fn(u64) -> Frame<'a>) -> Forgery {
    let mut packet = one_rtt();
    while packet.payload_length() < FULL {
        packet = packet.frame(make(*count));
        *count += 1;
    }
    packet
}

/// What a server does with a flood of such frames; the flood ends when the server closes.
fn flood<'a>(make: impl Fn(u64) -> Frame<'a>) -> (Work, Forge) {
    flood_at(&setup(), make)
}

fn flood_at<'a>(setup: &Setup, make: impl Fn(u64) -> Frame<'a>) -> (Work, Forge) {
    let mut forge = Forge::against(Role::Server, setup).acknowledging();
    let mut count = 0;
    let work = forge.cost(|forge| {
        for _ in 0..PACKETS {
            let packet = full(&mut count, &make);
            forge.send(packet);
            forge.wait(Duration::from_millis(1));
            if forge.closed().is_some() {
                break;
            }
        }
        forge.wait(Duration::from_secs(2));
    });
    assert_eq!(forge.victim().stuck(), None);
    (work, forge)
}

/// CVE-2019-9512 is the same for HTTP/2.
#[test]
fn a_flood_of_pings_is_answered_with_less_than_came() {
    let (work, _) = flood(|_| Frame::Ping);
    assert_bounded(work, 16_000, 32_000, 0.1);
}

/// <https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-10>
#[test]
fn a_flood_of_requests_for_acknowledgements_is_answered_with_less_than_came() {
    let (work, _) = flood(|_| Frame::ImmediateAck);
    assert_bounded(work, 16_000, 32_000, 0.1);
    let (work, _) = flood(|sequence| {
        let (threshold, max_delay) = (sequence % 50, 1_000 + sequence % 1_000);
        let reordering = sequence % 7;
        Frame::AckFrequency(AckFrequency { sequence, threshold, max_delay, reordering })
    });
    assert_bounded(work, 16_000, 32_000, 0.1);
}

/// <https://www.rfc-editor.org/rfc/rfc9221#section-5.3>
#[test]
fn datagrams_that_nobody_reads_hold_what_the_queue_may() {
    for length in [0, 1, 40, 1_000] {
        let receive_queue = Bytes(64 << 10);
        let mut setup = setup();
        setup.server.datagrams =
            Some(DatagramConfig { receive_queue, ..DatagramConfig::default() });
        setup.reads = false;
        let data = &[7; 1_000][..length];
        let (work, forge) = flood_at(&setup, |_| Frame::Datagram { data, has_length: true });
        assert_eq!(forge.closed(), None);
        assert_bounded(work, 100_000, 140_000, 0.1);
    }
}

/// CVE-2019-9518 is the same for HTTP/2.
#[test]
fn empty_stream_frames_hold_nothing() {
    let (work, _) = flood(|_| {
        let offset = Offset::ZERO;
        Frame::Stream(Stream { stream: StreamId(0), offset, fin: false, data: &[] })
    });
    assert_bounded(work, 16_000, 32_000, 0.1);
}

#[test]
fn credit_told_again_and_again_holds_nothing() {
    let (work, _) = flood(|nth| match nth % 4 {
        0 => Frame::MaxData { maximum: Bytes(1 << 30 | nth) },
        1 => Frame::MaxStreams { direction: StreamDirection::Bidirectional, maximum: 100 + nth },
        2 => Frame::MaxStreams { direction: StreamDirection::Unidirectional, maximum: 100 + nth },
        _ => Frame::MaxStreamData { stream: StreamId(0), maximum: Offset(1 << 20 | nth) },
    });
    assert_bounded(work, 16_000, 32_000, 0.1);
}

#[test]
fn complaints_of_blocked_senders_hold_nothing() {
    let (work, _) = flood(|nth| match nth % 3 {
        0 => Frame::DataBlocked { limit: Bytes(nth) },
        1 => Frame::StreamsBlocked { direction: StreamDirection::Bidirectional, limit: nth },
        _ => Frame::StreamDataBlocked { stream: StreamId(0), limit: Offset(nth) },
    });
    assert_bounded(work, 16_000, 32_000, 0.1);
}

#[test]
fn complaints_of_blocked_paths_hold_nothing() {
    let (work, _) = flood(|nth| match nth % 2 {
        0 => Frame::PathsBlocked { maximum: PathId(nth as u32 % 8) },
        _ => Frame::PathCidsBlocked { path: PathId(nth as u32 % 8), next_sequence: 0 },
    });
    assert_bounded(work, 32_000, 64_000, 1.0);
}

#[test]
fn path_statuses_hold_nothing() {
    let (work, _) = flood(|nth| {
        let path = PathId((nth / 2) as u32 % 8);
        if nth % 2 == 0 {
            Frame::PathStatusBackup { path, sequence: nth }
        } else {
            Frame::PathStatusAvailable { path, sequence: nth }
        }
    });
    assert_bounded(work, 16_000, 64_000, 0.1);
}

/// Each stream is opened, reset and stopped at once. Rapid reset, CVE-2023-44487, is the same for
/// HTTP/2, where requests are counted too: `a_client_that_cancels_rapidly_is_told_to_calm_down`. The
/// connection closes after a thousand of them.
#[test]
fn streams_opened_and_given_up_at_once_leave_nothing() {
    let mut forge = Forge::against(Role::Server, &setup()).acknowledging();
    let mut next = 0;
    let work = forge.cost(|forge| {
        for _ in 0..PACKETS {
            let mut packet = one_rtt();
            while packet.payload_length() < FULL {
                let stream = StreamId::new(Role::Client, StreamDirection::Bidirectional, next);
                next += 1;
                packet = packet.frames([
                    Frame::Stream(Stream { stream, offset: Offset::ZERO, fin: false, data: &[7] }),
                    Frame::ResetStream { stream, error_code: 0, final_size: Offset(1) },
                    Frame::StopSending { stream, error_code: 0 },
                ]);
            }
            forge.send(packet);
            forge.wait(Duration::from_millis(1));
        }
        forge.wait(Duration::from_secs(2));
    });
    println!("{next} streams, {:?}", forge.closed());
    assert!(matches!(forge.closed(), Some(CloseReason::PeerFault(_))));
    // Lists that keep their memory: 1,000 streams came and went.
    assert_bounded(work, 128_000, 200_000, 0.1);
}

/// The peer opens as many streams as it may, and sends nothing on them.
#[test]
fn idle_streams_hold_a_bounded_amount_each() {
    let streams = 4_000;
    let mut setup = setup();
    setup.server.max_streams = streams;
    let mut forge = Forge::against(Role::Server, &setup).acknowledging();
    let work = forge.cost(|forge| {
        let last = StreamId::new(Role::Client, StreamDirection::Bidirectional, streams - 1);
        let offset = Offset::ZERO;
        forge.say([Frame::Stream(Stream { stream: last, offset, fin: false, data: &[7] })]);
        forge.wait(Duration::from_secs(1));
    });
    // One frame opens them all, as streams are opened in order.
    // https://www.rfc-editor.org/rfc/rfc9000#section-3.2
    println!("{work:?}");
    // They have places, and nothing else before something comes for them.
    assert!(work.held <= streams as i64 * 8, "{} bytes for {streams} streams", work.held);
}

/// The forger takes nothing: the victim's application may write for ever.
#[test]
fn what_is_written_for_a_slow_reader_is_bounded() {
    let mut forge = Forge::against(Role::Server, &setup_for_long_writes());
    let work = forge.cost(|forge| {
        let stream = StreamId(0);
        forge.say([Frame::Stream(Stream { stream, offset: Offset::ZERO, fin: true, data: b"?" })]);
        for _ in 0..1_000 {
            forge.act(|connection, now| {
                let _ = connection.write(now, stream, vec![7; 100_000].into());
            });
            forge.wait(Duration::from_millis(1));
        }
    });
    assert_bounded(work, 20_000_000, 20_000_000, 1e9);
}

/// The client takes nothing more, and the connection still ends when nothing comes.
#[test]
fn a_peer_that_stops_reading_is_dropped_when_it_falls_silent() {
    let mut forge = Forge::against(Role::Server, &setup());
    let stream = StreamId(0);
    forge.say([Frame::Stream(Stream { stream, offset: Offset::ZERO, fin: true, data: b"?" })]);
    forge.act(|connection, now| {
        let _ = connection.write(now, stream, vec![7; 1_000_000].into());
    });
    let work = forge.cost(|forge| forge.wait(Duration::from_secs(120)));
    assert!(forge.closed().is_some());
    // Probes with backoff: the first window, and then a few packets.
    assert!(work.datagrams_out < 60, "{work:?}");
}

/// Packets with nothing but PADDING, and packets without any frame.
#[test]
fn empty_packets_hold_nothing() {
    let mut forge = Forge::against(Role::Server, &setup());
    let work = forge.cost(|forge| {
        for _ in 0..PACKETS {
            forge.send(one_rtt().frame(Frame::Padding { length: 1 }));
        }
        forge.wait(Duration::from_secs(2));
    });
    assert_eq!(forge.closed(), None);
    assert_bounded(work, 16_000, 32_000, 0.1);
    // https://www.rfc-editor.org/rfc/rfc9000#section-12.4
    forge.send(one_rtt());
    assert!(forge.closed().is_some(), "a packet without frames is a fault");
}

/// New tokens for a client that will never use them.
#[test]
fn tokens_that_a_server_sends_are_bounded() {
    let mut forge = Forge::against(Role::Client, &setup());
    let token = [7; 1_000];
    let work = forge.cost(|forge| {
        for _ in 0..PACKETS {
            forge.say([Frame::NewToken { token: &token }]);
        }
        forge.wait(Duration::from_secs(2));
    });
    assert_bounded(work, 16_000, 32_000, 0.2);
}
