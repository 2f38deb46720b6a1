//! Frames in any chunks, and every way in which one fails the connection.

use proptest::prelude::*;

use super::*;
use crate::h2::frame::{
    Settings, encode_data_header, encode_headers, encode_ping_ack, encode_reset, encode_settings,
    encode_window_update,
};

const STREAM: FrameStreamId = FrameStreamId::from_wire(15);

/// A piece that outlives its octets; neighbours of one body are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Whole {
    Control(Vec<u8>),
    Promise(u32),
    Head(u32, bool),
    DataFrame(u32, u64),
    Data(u32, Vec<u8>),
    Padding(u32, u64),
    End(u32),
    Reset(u32, u32),
    WindowUpdate(u32, u32),
    Ping([u8; 8]),
}

fn push(found: &mut Vec<Whole>, piece: Piece<'_>) {
    match (piece, found.last_mut()) {
        (Piece::Control(octets), Some(Whole::Control(all))) => all.extend(octets),
        (Piece::Control(octets), _) => found.push(Whole::Control(octets.to_vec())),
        (Piece::Data { octets, .. }, Some(Whole::Data(_, all))) => all.extend(octets),
        (Piece::Data { stream, octets }, _) => {
            found.push(Whole::Data(stream.value(), octets.to_vec()));
        }
        (Piece::Promise { promised }, _) => found.push(Whole::Promise(promised.value())),
        (Piece::Head { stream, end_stream }, _) => {
            found.push(Whole::Head(stream.value(), end_stream));
        }
        (Piece::DataFrame { stream, length }, _) => {
            found.push(Whole::DataFrame(stream.value(), length));
        }
        (Piece::Padding { stream, length }, _) => {
            found.push(Whole::Padding(stream.value(), length));
        }
        (Piece::End { stream }, _) => found.push(Whole::End(stream.value())),
        (Piece::Reset { stream, code }, _) => found.push(Whole::Reset(stream.value(), code.0)),
        (Piece::WindowUpdate { stream, increment }, _) => {
            found.push(Whole::WindowUpdate(stream.value(), increment));
        }
        (Piece::Ping(octets), _) => found.push(Whole::Ping(octets)),
    }
}

/// The pieces of what a client sent, in chunks that end at `cuts`.
fn pieces(octets: &[u8], cuts: &[usize]) -> (Vec<Whole>, Result<(), FrameError>) {
    let mut demux = Demux::new(true);
    let mut found = Vec::new();
    let mut start = 0;
    for end in cuts.iter().copied().chain([octets.len()]) {
        let end = end.clamp(start, octets.len());
        let result = demux.push(&octets[start..end], &mut |piece| {
            push(&mut found, piece);
            Ok(())
        });
        if result.is_err() {
            return (found, result);
        }
        start = end;
    }
    (found, Ok(()))
}

fn frame(length: usize, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let stream = FrameStreamId::from_wire(stream);
    Header { length, kind, flags, stream }.encode(&mut out);
    out.extend(payload);
    out
}

/// Preface and settings.
fn opening() -> Vec<u8> {
    let mut out = PREFACE.to_vec();
    encode_settings(&Settings::default(), &mut out);
    out
}

fn all_frames() -> (Vec<u8>, Vec<Whole>) {
    let mut out = opening();
    encode_headers(STREAM, None, false, &[0x82], DEFAULT_FRAME_SIZE, &mut out);
    let mut control = out[PREFACE.len()..PREFACE.len() + 9].to_vec();
    let first = Whole::Control(std::mem::take(&mut control));
    let head = Whole::Control(out[PREFACE.len() + 9..].to_vec());
    encode_data_header(STREAM, 3, false, &mut out);
    out.extend(b"abc");
    out.extend(frame(7, kind::DATA, flag::PADDED | flag::END_STREAM, 17, b"\x02abcd\0\0"));
    out.extend(frame(1, kind::DATA, flag::PADDED, 15, &[0]));
    encode_data_header(STREAM, 0, true, &mut out);
    encode_reset(STREAM, ErrorCode::CANCEL, &mut out);
    encode_window_update(FrameStreamId::ZERO, 1, &mut out);
    // The reserved bit is ignored.
    out.extend(frame(4, kind::WINDOW_UPDATE, 0, 15, &[0xff; 4]));
    out.extend(frame(8, kind::PING, 0, 0, b"abcdefgh"));
    encode_ping_ack(*b"ABCDEFGH", &mut out);
    let unknown = frame(2, 0x77, 0, 9, b"xy");
    out.extend(&unknown);
    let padded = frame(9, kind::PUSH_PROMISE, 0xc, 15, &[2, 128, 0, 0, 6, 0x82, 0x84, 0, 0]);
    let plain = frame(5, kind::PUSH_PROMISE, 4, 15, &[0, 0, 0, 8, 0x82]);
    // Too short to promise anything: the control stream refuses it.
    let short = frame(3, kind::PUSH_PROMISE, 4, 15, &[0, 0, 0]);
    out.extend([&padded[..], &plain, &short].concat());
    let wholes = vec![
        first,
        Whole::Head(15, false),
        head,
        Whole::DataFrame(15, 3),
        Whole::Data(15, b"abc".to_vec()),
        Whole::DataFrame(17, 7),
        Whole::Padding(17, 3),
        Whole::Data(17, b"abcd".to_vec()),
        Whole::End(17),
        Whole::DataFrame(15, 1),
        Whole::Padding(15, 1),
        Whole::DataFrame(15, 0),
        Whole::End(15),
        Whole::Reset(15, 8),
        Whole::WindowUpdate(0, 1),
        Whole::WindowUpdate(15, (1 << 31) - 1),
        Whole::Ping(*b"abcdefgh"),
        Whole::Control([&unknown[..], &padded[..14]].concat()),
        Whole::Promise(6),
        Whole::Control([&padded[14..], &plain[..13]].concat()),
        Whole::Promise(8),
        Whole::Control([&plain[13..], &short].concat()),
    ];
    (out, wholes)
}

#[test]
fn frames_that_break_the_rules_have_the_code_of_the_rfc() {
    const SIZE: ErrorCode = ErrorCode::FRAME_SIZE_ERROR;
    const PROTOCOL: ErrorCode = ErrorCode::PROTOCOL_ERROR;
    for (what, octets, code) in [
        ("data on 0", frame(0, kind::DATA, 0, 0, &[]), PROTOCOL),
        ("data too large", frame(16_385, kind::DATA, 0, 15, &[]), SIZE),
        ("padded and empty", frame(0, kind::DATA, flag::PADDED, 15, &[]), SIZE),
        ("all padding", frame(2, kind::DATA, flag::PADDED, 15, &[2, 0]), PROTOCOL),
        ("reset on 0", frame(4, kind::RST_STREAM, 0, 0, &[0; 4]), PROTOCOL),
        ("reset of 3", frame(3, kind::RST_STREAM, 0, 15, &[0; 3]), SIZE),
        ("reset of 5", frame(5, kind::RST_STREAM, 0, 15, &[0; 5]), SIZE),
        ("ping on a stream", frame(8, kind::PING, 0, 15, &[0; 8]), PROTOCOL),
        ("ping of 7", frame(7, kind::PING, 0, 0, &[0; 7]), SIZE),
        ("ping of 9", frame(9, kind::PING, flag::ACK, 0, &[0; 9]), SIZE),
        ("update of 5", frame(5, kind::WINDOW_UPDATE, 0, 0, &[0; 5]), SIZE),
        ("update by 0", frame(4, kind::WINDOW_UPDATE, 0, 15, &[128, 0, 0, 0]), PROTOCOL),
    ] {
        let (_, result) = pieces(&[opening(), octets].concat(), &[]);
        assert_eq!(result.map_err(|error| error.code()), Err(code), "{what}");
    }
    let (_, result) = pieces(b"GET / HTTP/1.1\r\n\r\n", &[]);
    assert_eq!(result, Err(FrameError::NotPreface));
}

#[test]
fn what_interrupts_a_block_or_precedes_settings_is_left_to_the_control_stream() {
    let data = frame(1, kind::DATA, 0, 15, b"x");
    let (found, result) = pieces(&[PREFACE, &data].concat(), &[]);
    assert_eq!((found, result), (vec![Whole::Control(data.clone())], Ok(())));
    let open = frame(1, kind::HEADERS, 0, 15, &[0x82]);
    let closes = frame(0, kind::CONTINUATION, flag::END_HEADERS, 15, &[]);
    let (found, _) = pieces(&[opening(), open, data.clone(), closes, data].concat(), &[]);
    assert!(
        matches!(
            found[..],
            [
                Whole::Control(_),
                Whole::Head(15, false),
                Whole::Control(_),
                Whole::DataFrame(15, 1),
                Whole::Data(15, _)
            ]
        ),
        "{found:?}"
    );
}

proptest! {
    #[test]
    fn frames_are_the_same_in_any_chunks(mut cuts in proptest::collection::vec(0_usize..260, 0..20)) {
        let (octets, wholes) = all_frames();
        cuts.sort_unstable();
        prop_assert_eq!(pieces(&octets, &cuts), (wholes, Ok(())));
    }

    #[test]
    fn any_octets_are_pieces_or_an_error(
        octets in proptest::collection::vec(prop_oneof![0_u8..10, any::<u8>()], 0..200),
        mut cuts in proptest::collection::vec(0_usize..240, 0..6),
    ) {
        let octets = [opening(), octets].concat();
        cuts.sort_unstable();
        let whole = pieces(&octets, &[]);
        prop_assert_eq!(pieces(&octets, &cuts), whole);
    }
}
