//! Frames in any chunks, and every way in which one closes the connection.

use proptest::prelude::*;

use super::*;

const MAX_BLOCK: usize = 40_000;

fn frame(length: u32, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = length.to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

fn empty_settings() -> Vec<u8> {
    frame(0, kind::SETTINGS, 0, 0, &[])
}

/// All frames in `octets`, pushed in chunks that end at `cuts`.
fn decoded(octets: &[u8], cuts: &[usize]) -> Result<Vec<Frame>, FrameError> {
    let mut decoder = FrameDecoder::new(MAX_BLOCK).with_promises();
    let mut frames = Vec::new();
    let mut start = 0;
    for end in cuts.iter().copied().chain([octets.len()]) {
        let end = end.clamp(start, octets.len());
        decoder.push(&octets[start..end]);
        start = end;
        while let Some(frame) = decoder.next_frame()? {
            frames.push(frame);
        }
    }
    Ok(frames)
}

/// The error that a frame after SETTINGS causes.
fn error_of(octets: &[u8]) -> Option<FrameError> {
    decoded(&[&empty_settings(), octets].concat(), &[]).err()
}

fn all_frames() -> (Vec<u8>, Vec<Frame>) {
    let settings = Settings {
        header_table_size: Some(0),
        enable_push: Some(false),
        max_concurrent_streams: Some(100),
        initial_window_size: Some(LARGEST_FRAME_SIZE),
        max_frame_size: Some(LARGEST_FRAME_SIZE),
        max_header_list_size: Some(u32::MAX),
        no_rfc7540_priorities: Some(true),
    };
    let stream = FrameStreamId::from_wire(8);
    let promised = FrameStreamId::from_wire(6);
    let last_stream = FrameStreamId::MAX;
    let code = ErrorCode::ENHANCE_YOUR_CALM;
    let priority = StreamPriority { parent: last_stream, weight: 256, exclusive: true };
    let large = Bytes::from(vec![7; 2 * DEFAULT_FRAME_SIZE as usize]);
    let mut out = Vec::new();
    encode_settings(&settings, &mut out);
    encode_settings_ack(&mut out);
    encode_headers(stream, Some(priority), false, &large, DEFAULT_FRAME_SIZE, &mut out);
    out.extend(frame(3, 0xff, 0xff, 8, &[1, 2, 3]));
    encode_priority(stream, StreamPriority::default(), &mut out);
    encode_priority_update(stream, "u=5, i", &mut out);
    encode_headers(stream, None, true, b"", DEFAULT_FRAME_SIZE, &mut out);
    encode_push_promise(stream, promised, &large, DEFAULT_FRAME_SIZE, &mut out);
    encode_go_away(last_stream, code, &mut out);
    let frames = vec![
        Frame::Settings(settings),
        Frame::SettingsAck,
        Frame::Headers {
            stream,
            priority: Some(priority),
            end_stream: false,
            block: large.clone(),
        },
        Frame::Priority { stream, priority: StreamPriority::default() },
        Frame::PriorityUpdate { stream, value: Bytes::from_static(b"u=5, i") },
        Frame::Headers { stream, priority: None, end_stream: true, block: Bytes::new() },
        Frame::PushPromise { stream, promised, block: large },
        Frame::GoAway { last_stream, code },
    ];
    (out, frames)
}

#[test]
fn a_header_block_is_split_at_the_peers_frame_size() {
    let (octets, _) = all_frames();
    let headers = empty_settings().len() + 42 + 9;
    assert_eq!(octets[headers..headers + 5], [0, 0x40, 0, kind::HEADERS, flag::PRIORITY]);
    let second = headers + 9 + 0x4000;
    assert_eq!(octets[second..second + 5], [0, 0x40, 0, kind::CONTINUATION, 0]);
    let third = second + 9 + 0x4000;
    assert_eq!(octets[third..third + 5], [0, 0, 5, kind::CONTINUATION, flag::END_HEADERS]);
}

#[test]
fn who_takes_no_promises_refuses_them() {
    let promise = frame(4, kind::PUSH_PROMISE, flag::END_HEADERS, 4, &[0, 0, 0, 2]);
    let mut decoder = FrameDecoder::new(MAX_BLOCK);
    decoder.push(&[empty_settings(), promise].concat());
    assert!(decoder.next_frame().unwrap().is_some());
    let error = decoder.next_frame().unwrap_err();
    assert_eq!(error, FrameError::Unexpected { kind: "PUSH_PROMISE" });
}

#[test]
fn padding_is_removed() {
    let flags = flag::END_HEADERS | flag::PADDED | flag::PRIORITY;
    let payload = [2, 0, 0, 0, 3, 200, 0x82, 0, 0];
    let octets = [empty_settings(), frame(9, kind::HEADERS, flags, 4, &payload)].concat();
    let headers = Frame::Headers {
        stream: FrameStreamId::from_wire(4),
        priority: Some(StreamPriority {
            parent: FrameStreamId::from_wire(3),
            weight: 201,
            exclusive: false,
        }),
        end_stream: false,
        block: Bytes::from_static(&[0x82]),
    };
    assert_eq!(decoded(&octets, &[]).unwrap().pop(), Some(headers));
}

#[test]
fn unknown_settings_are_ignored() {
    let payload = [0xff, 0, 0, 0, 0, 1, 0, 3, 0, 0, 0, 9];
    let octets = frame(12, kind::SETTINGS, 0, 0, &payload);
    let settings = Settings { max_concurrent_streams: Some(9), ..Settings::default() };
    assert_eq!(decoded(&octets, &[]), Ok(vec![Frame::Settings(settings)]));
}

#[test]
fn settings_come_first() {
    let error = decoded(&frame(0, kind::SETTINGS, flag::ACK, 0, &[]), &[]);
    assert_eq!(error, Err(FrameError::NotSettings { kind: "SETTINGS" }));
    let error = decoded(&frame(0, 0x42, 0, 0, &[]), &[]).unwrap_err();
    assert_eq!(error, FrameError::NotSettings { kind: "unknown" });
    assert_eq!(error.code(), ErrorCode::PROTOCOL_ERROR);
}

#[test]
fn malformed_frames_close_with_the_code_of_the_rfc() {
    const SIZE: ErrorCode = ErrorCode::FRAME_SIZE_ERROR;
    const PROTOCOL: ErrorCode = ErrorCode::PROTOCOL_ERROR;
    let setting = |id: u8, value: u32| {
        let [a, b, c, d] = value.to_be_bytes();
        frame(6, kind::SETTINGS, 0, 0, &[0, id, a, b, c, d])
    };
    let open_headers = frame(1, kind::HEADERS, 0, 4, &[0x82]);
    let then = |next: Vec<u8>| [open_headers.clone(), next].concat();
    let ends = flag::END_HEADERS;
    for (what, octets, code) in [
        ("too large", frame(16_385, kind::HEADERS, 0, 4, &[]), SIZE),
        ("too large, unknown", frame(16_385, 0x99, 0, 4, &[]), SIZE),
        ("settings of 5", frame(5, kind::SETTINGS, 0, 0, &[0; 5]), SIZE),
        ("acknowledgement of 6", frame(6, kind::SETTINGS, flag::ACK, 0, &[0; 6]), SIZE),
        ("settings on a stream", frame(0, kind::SETTINGS, 0, 4, &[]), PROTOCOL),
        ("push 2", setting(2, 2), PROTOCOL),
        ("window 2^31", setting(4, 1 << 31), ErrorCode::FLOW_CONTROL_ERROR),
        ("frame size 16383", setting(5, 16_383), PROTOCOL),
        ("frame size 2^24", setting(5, 1 << 24), PROTOCOL),
        ("no tree 2", setting(9, 2), PROTOCOL),
        ("headers on 0", frame(1, kind::HEADERS, ends, 0, &[0x82]), PROTOCOL),
        (
            "padded and empty promise",
            frame(0, kind::PUSH_PROMISE, ends | flag::PADDED, 4, &[]),
            SIZE,
        ),
        ("padded and empty", frame(0, kind::HEADERS, ends | flag::PADDED, 4, &[]), SIZE),
        ("all padding", frame(2, kind::HEADERS, ends | flag::PADDED, 4, &[2, 0]), PROTOCOL),
        ("no room for priority", frame(4, kind::HEADERS, ends | flag::PRIORITY, 4, &[0; 4]), SIZE),
        ("priority of 4", frame(4, kind::PRIORITY, 0, 4, &[0; 4]), SIZE),
        ("priority of 6", frame(6, kind::PRIORITY, 0, 4, &[0; 6]), SIZE),
        ("priority on 0", frame(5, kind::PRIORITY, 0, 0, &[0; 5]), PROTOCOL),
        ("update of 3", frame(3, kind::PRIORITY_UPDATE, 0, 0, &[0; 3]), SIZE),
        ("update on a stream", frame(4, kind::PRIORITY_UPDATE, 0, 4, &[0, 0, 0, 4]), PROTOCOL),
        ("update of 0", frame(4, kind::PRIORITY_UPDATE, 0, 0, &[128, 0, 0, 0]), PROTOCOL),
        ("update in a block", then(frame(4, kind::PRIORITY_UPDATE, 0, 0, &[0; 4])), PROTOCOL),
        ("goaway of 7", frame(7, kind::GO_AWAY, 0, 0, &[0; 7]), SIZE),
        ("goaway on a stream", frame(8, kind::GO_AWAY, 0, 4, &[0; 8]), PROTOCOL),
        ("data", frame(0, kind::DATA, 0, 4, &[]), PROTOCOL),
        ("rst_stream", frame(4, kind::RST_STREAM, 0, 4, &[0; 4]), PROTOCOL),
        ("promise of 0", frame(4, kind::PUSH_PROMISE, ends, 4, &[0; 4]), PROTOCOL),
        ("promise of 3", frame(3, kind::PUSH_PROMISE, ends, 4, &[0; 3]), SIZE),
        ("promise on 0", frame(4, kind::PUSH_PROMISE, ends, 0, &[0, 0, 0, 2]), PROTOCOL),
        (
            "promise, all padding",
            frame(5, kind::PUSH_PROMISE, ends | flag::PADDED, 4, &[5, 0, 0, 0, 2]),
            PROTOCOL,
        ),
        (
            "promise in a block",
            then(frame(4, kind::PUSH_PROMISE, ends, 4, &[0, 0, 0, 2])),
            PROTOCOL,
        ),
        ("ping", frame(8, kind::PING, 0, 0, &[0; 8]), PROTOCOL),
        ("window_update", frame(4, kind::WINDOW_UPDATE, 0, 0, &[0; 4]), PROTOCOL),
        ("continuation of nothing", frame(0, kind::CONTINUATION, ends, 4, &[]), PROTOCOL),
        ("continuation elsewhere", then(frame(0, kind::CONTINUATION, ends, 8, &[])), PROTOCOL),
        ("headers in a block", then(open_headers.clone()), PROTOCOL),
        ("unknown in a block", then(frame(0, 0x99, 0, 4, &[])), PROTOCOL),
    ] {
        assert_eq!(error_of(&octets).map(|error| error.code()), Some(code), "{what}");
    }
}

#[test]
fn a_header_block_is_bounded_in_octets_and_in_parts() {
    let part = vec![0; 16_384];
    let mut octets = frame(0, kind::HEADERS, 0, 4, &[]);
    for _ in 0..3 {
        octets.extend(frame(16_384, kind::CONTINUATION, 0, 4, &part));
    }
    let error = FrameError::BlockTooLarge { limit: MAX_BLOCK };
    assert_eq!(error_of(&octets), Some(error));
    assert_eq!(error.code(), ErrorCode::ENHANCE_YOUR_CALM);

    let mut octets = frame(0, kind::HEADERS, 0, 4, &[]);
    octets.extend(frame(0, kind::CONTINUATION, 0, 4, &[]).repeat(MAX_CONTINUATIONS as usize));
    assert_eq!(error_of(&octets), None);
    octets.extend(frame(0, kind::CONTINUATION, 0, 4, &[]));
    assert_eq!(error_of(&octets), Some(error));
}

#[test]
fn an_unknown_frame_is_dropped_as_it_comes() {
    let mut decoder = FrameDecoder::new(MAX_BLOCK);
    decoder.push(&empty_settings());
    assert!(decoder.next_frame().unwrap().is_some());
    decoder.push(&frame(16_000, 0x42, 0, 0, &[0; 10]));
    assert_eq!(decoder.next_frame(), Ok(None));
    decoder.push(&[0; 15_989]);
    assert_eq!(decoder.buffered(), 0);
    decoder.push(&[&[0][..], &frame(0, kind::SETTINGS, flag::ACK, 0, &[])].concat());
    assert_eq!(decoder.next_frame(), Ok(Some(Frame::SettingsAck)));
}

proptest! {
    #[test]
    fn frames_come_whole_from_any_chunks(mut cuts in proptest::collection::vec(0_usize..66_000, 0..12)) {
        let (octets, frames) = all_frames();
        cuts.sort_unstable();
        prop_assert_eq!(decoded(&octets, &cuts), Ok(frames));
    }

    #[test]
    fn any_octets_are_frames_or_an_error(
        octets in proptest::collection::vec(prop_oneof![0_u8..12, any::<u8>()], 0..200),
        cuts in proptest::collection::vec(0_usize..200, 0..4),
    ) {
        let octets = [empty_settings(), octets].concat();
        let mut cuts = cuts;
        cuts.sort_unstable();
        let whole = decoded(&octets, &[]);
        prop_assert_eq!(decoded(&octets, &cuts), whole);
    }
}
