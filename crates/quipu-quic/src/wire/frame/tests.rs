use proptest::collection::vec;
use proptest::prelude::*;
use quipu_base::PacketNumber;

use super::*;
use crate::error::{ErrorCode, TransportError};
use crate::wire::{NoSpace, Writer, varint};

/// A varint of any length, each length as likely as the other.
fn integer() -> impl Strategy<Value = u64> {
    (0u32..=62, 0..=varint::MAX).prop_map(|(bits, value)| value & ((1 << bits) - 1))
}

fn path() -> impl Strategy<Value = PathId> {
    prop_oneof![(0u32..4).prop_map(PathId), any::<u32>().prop_map(PathId)]
}

fn direction() -> impl Strategy<Value = StreamDirection> {
    prop_oneof![Just(StreamDirection::Bidirectional), Just(StreamDirection::Unidirectional)]
}

/// Every frame but those that borrow; these have properties of their own below.
fn plain_frame() -> impl Strategy<Value = Frame<'static>> {
    let stream = || integer().prop_map(StreamId);
    let offset = || integer().prop_map(Offset);
    let streams = || 0..=MAX_STREAMS;
    prop_oneof![
        Just(Frame::Ping),
        Just(Frame::HandshakeDone),
        Just(Frame::ImmediateAck),
        (integer(), integer(), integer(), integer()).prop_map(
            |(sequence, threshold, max_delay, reordering)| {
                Frame::AckFrequency(AckFrequency { sequence, threshold, max_delay, reordering })
            }
        ),
        (1usize..50).prop_map(|length| Frame::Padding { length }),
        (stream(), integer(), offset()).prop_map(|(stream, error_code, final_size)| {
            Frame::ResetStream { stream, error_code, final_size }
        }),
        (stream(), integer())
            .prop_map(|(stream, error_code)| Frame::StopSending { stream, error_code }),
        integer().prop_map(|maximum| Frame::MaxData { maximum: Bytes(maximum) }),
        (stream(), offset()).prop_map(|(stream, maximum)| Frame::MaxStreamData { stream, maximum }),
        (direction(), streams())
            .prop_map(|(direction, maximum)| Frame::MaxStreams { direction, maximum }),
        integer().prop_map(|limit| Frame::DataBlocked { limit: Bytes(limit) }),
        (stream(), offset()).prop_map(|(stream, limit)| Frame::StreamDataBlocked { stream, limit }),
        (direction(), streams())
            .prop_map(|(direction, limit)| Frame::StreamsBlocked { direction, limit }),
        new_connection_id().prop_map(Frame::NewConnectionId),
        (proptest::option::of(path()), integer())
            .prop_map(|(path, sequence)| Frame::RetireConnectionId { path, sequence }),
        any::<[u8; 8]>().prop_map(|data| Frame::PathChallenge { data }),
        any::<[u8; 8]>().prop_map(|data| Frame::PathResponse { data }),
        (path(), integer()).prop_map(|(path, error_code)| Frame::PathAbandon { path, error_code }),
        (path(), integer()).prop_map(|(path, sequence)| Frame::PathStatusBackup { path, sequence }),
        (path(), integer())
            .prop_map(|(path, sequence)| Frame::PathStatusAvailable { path, sequence }),
        path().prop_map(|maximum| Frame::MaxPathId { maximum }),
        path().prop_map(|maximum| Frame::PathsBlocked { maximum }),
        (path(), integer())
            .prop_map(|(path, next_sequence)| Frame::PathCidsBlocked { path, next_sequence }),
    ]
}

fn new_connection_id() -> impl Strategy<Value = NewConnectionId> {
    (
        proptest::option::of(path()),
        integer(),
        integer(),
        vec(any::<u8>(), 1..=20),
        any::<[u8; 16]>(),
    )
        .prop_map(|(path, a, b, id, token)| NewConnectionId {
            path,
            sequence: a.max(b),
            retire_prior_to: a.min(b),
            id: ConnectionId::new(&id).unwrap(),
            reset_token: ResetToken::new(token),
        })
}

/// Ranges in descending order from gaps and lengths.
fn ranges() -> impl Strategy<Value = Vec<AckRange>> {
    (vec((0u64..100, 0u64..100_000), 1..100), integer()).prop_map(|(steps, base)| {
        let mut next = base.min(varint::MAX - 100 * 101_000);
        let mut ranges: Vec<_> = steps
            .into_iter()
            .map(|(gap, length)| {
                let range = AckRange::new(PacketNumber(next), PacketNumber(next + length));
                next += length + 2 + gap;
                range
            })
            .collect();
        ranges.reverse();
        ranges
    })
}

fn ecn() -> impl Strategy<Value = Option<EcnCounts>> {
    proptest::option::of((integer(), integer(), integer()).prop_map(|(ect0, ect1, ce)| EcnCounts {
        ect0,
        ect1,
        ce,
    }))
}

fn written(frame: &Frame<'_>) -> Vec<u8> {
    let mut buffer = vec![0xaa; frame.size()];
    let mut writer = Writer::new(&mut buffer);
    frame.write(&mut writer).unwrap();
    assert_eq!(writer.remaining(), 0, "{frame:?}");
    let short = &mut vec![0; frame.size() - 1];
    assert_eq!(frame.write(&mut Writer::new(short)), Err(NoSpace));
    buffer
}

fn only_frame(bytes: &[u8]) -> Frame<'_> {
    let mut frames = Frames::new(bytes);
    let frame = frames.next().unwrap().unwrap();
    assert!(frames.next().is_none());
    frame
}

fn fault(bytes: &[u8]) -> FrameFault {
    let mut frames = Frames::new(bytes);
    let error = frames.find_map(Result::err).expect("the frame was accepted");
    assert!(frames.next().is_none());
    error.fault
}

fn bytes_of(values: &[u64]) -> Vec<u8> {
    let mut buffer = vec![0; 8 * values.len()];
    let mut writer = Writer::new(&mut buffer);
    values.iter().for_each(|value| writer.put_varint(*value).unwrap());
    writer.written().to_vec()
}

proptest! {
    #[test]
    fn a_frame_reads_back_and_keeps_its_type(frame in plain_frame()) {
        let bytes = written(&frame);
        prop_assert_eq!(only_frame(&bytes), frame);
        prop_assert!(bytes.starts_with(&bytes_of(&[frame.frame_type().0])));
    }

    #[test]
    fn a_frame_cut_short_is_refused(frame in plain_frame(), cut in any::<prop::sample::Index>()) {
        let bytes = written(&frame);
        let type_size = varint::size(frame.frame_type().0);
        if bytes.len() > type_size && !matches!(frame, Frame::Padding { .. }) {
            let length = type_size + cut.index(bytes.len() - type_size);
            prop_assert_eq!(fault(&bytes[..length]), FrameFault::EndedEarly);
        }
    }

    #[test]
    fn frames_that_carry_bytes_read_back(
        data in vec(any::<u8>(), 0..300), a in integer(), b in integer(), fin: bool,
    ) {
        let offset = Offset(a.min(varint::MAX - 300));
        let data = &data[..];
        let mut frames = vec![
            Frame::Crypto { offset, data },
            Frame::Stream(Stream { stream: StreamId(b), offset, fin, data }),
            Frame::ConnectionClose { error_code: a, frame_type: FrameType(b), reason: data },
            Frame::ApplicationClose { error_code: a, reason: data },
            Frame::Datagram { data, has_length: false },
            Frame::Datagram { data, has_length: true },
        ];
        if !data.is_empty() {
            frames.push(Frame::NewToken { token: data });
        }
        for frame in frames {
            let bytes = written(&frame);
            prop_assert_eq!(only_frame(&bytes), frame);
        }
    }

    #[test]
    fn a_stream_layout_uses_the_space_and_reads_back(
        stream in integer(), offset in integer(), fin: bool,
        data in vec(any::<u8>(), 0..400), space in 0usize..400,
    ) {
        let (stream, offset) = (StreamId(stream), Offset(offset.min(varint::MAX - 400)));
        let Some(layout) = StreamLayout::new(stream, offset, data.len(), space) else {
            // Not even a byte, or the bare header, had room.
            let needed = 1 + varint::size(stream.0)
                + if offset.0 == 0 { 0 } else { varint::size(offset.0) } + 1;
            prop_assert!(space < needed);
            return Ok(());
        };
        prop_assert!(layout.size() <= space);
        if layout.data_length() < data.len() {
            prop_assert!(layout.fills_packet());
            prop_assert_eq!(layout.size(), space);
        }
        let mut buffer = vec![0; space];
        let mut writer = Writer::new(&mut buffer);
        let fin = fin && layout.data_length() == data.len();
        layout.write_header(&mut writer, fin).unwrap();
        let data = &data[..layout.data_length()];
        writer.put_bytes(data).unwrap();
        prop_assert_eq!(writer.position(), layout.size());
        if !layout.fills_packet() && writer.put_u8(FrameType::PING.0 as u8).is_ok() {
            prop_assert_eq!(Frames::new(writer.written()).count(), 2);
        }
        let frame = Frames::new(writer.written()).next().unwrap().unwrap();
        prop_assert_eq!(frame, Frame::Stream(Stream { stream, offset, fin, data }));
    }

    #[test]
    fn a_crypto_layout_wastes_no_more_than_a_length_field(
        offset in integer(), available in 0usize..40_000, space in 0usize..40_000,
    ) {
        let offset = Offset(offset);
        let header = 1 + varint::size(offset.0);
        match CryptoLayout::new(offset, available, space) {
            None => prop_assert!(available == 0 || space < header + 2),
            Some(layout) => {
                prop_assert!(layout.size() <= space);
                let next = layout.data_length() + 1;
                let with_next = header + varint::size(next as u64) + next;
                prop_assert!(layout.data_length() == available || with_next > space);
            }
        }
    }

    #[test]
    fn an_acknowledgement_reads_back(
        path in proptest::option::of(path()), delay in integer(), ranges in ranges(), ecn in ecn(),
    ) {
        let mut buffer = vec![0; 4000];
        let mut writer = Writer::new(&mut buffer);
        let count = write_ack(&mut writer, path, delay, ranges.iter().copied(), ecn).unwrap();
        prop_assert_eq!(count, ranges.len());
        let frame = only_frame(writer.written());
        let Frame::Ack(ack) = frame else { panic!("{frame:?}") };
        prop_assert_eq!((ack.path, ack.delay, ack.ecn), (path, delay, ecn));
        prop_assert_eq!(ack.largest(), ranges[0].last);
        prop_assert_eq!(ack.ranges.iter().collect::<Vec<_>>(), ranges);
        prop_assert_eq!(written(&frame), writer.written());
    }

    #[test]
    fn an_acknowledgement_keeps_the_newest_ranges_that_fit(
        ranges in ranges(), ecn in ecn(), space in 0usize..200,
    ) {
        let mut buffer = vec![0; space];
        let mut writer = Writer::new(&mut buffer);
        let Ok(count) = write_ack(&mut writer, None, 7, ranges.iter().copied(), ecn) else {
            prop_assert_eq!(writer.position(), 0);
            return Ok(());
        };
        let frame = only_frame(writer.written());
        let Frame::Ack(ack) = frame else { panic!("{frame:?}") };
        prop_assert_eq!(ack.ranges.iter().collect::<Vec<_>>(), &ranges[..count]);
        if count < ranges.len() {
            let mut buffer = vec![0; 4000];
            let mut longer = Writer::new(&mut buffer);
            let more = ranges[..=count].iter().copied();
            write_ack(&mut longer, None, 7, more, ecn).unwrap();
            prop_assert!(longer.position() > space);
        }
    }

    #[test]
    fn return_paths_read_back(sequence in integer(), pairs in vec((path(), path()), 0..40)) {
        let mut buffer = vec![0; 500];
        let mut writer = Writer::new(&mut buffer);
        write_return_paths(&mut writer, sequence, &pairs).unwrap();
        let frame = only_frame(writer.written());
        let Frame::ReturnPaths(read) = frame else { panic!("{frame:?}") };
        prop_assert_eq!(read.sequence, sequence);
        prop_assert_eq!(read.pairs().collect::<Vec<_>>(), pairs);
        prop_assert_eq!(written(&frame), writer.written());
    }

    #[test]
    fn any_bytes_read_without_panic(
        first in 0u64..0x42, bytes in vec(any::<u8>(), 0..100), multipath: bool,
    ) {
        let mut payload = bytes_of(&[if multipath { 0x3e75 + first % 10 } else { first }]);
        payload.extend(bytes);
        let mut read = 0;
        for frame in Frames::new(&payload) {
            let Ok(frame) = frame else { continue };
            read += 1;
            if let Frame::Ack(ack) = frame {
                let ranges: Vec<_> = ack.ranges.iter().collect();
                prop_assert!(ranges.len() <= payload.len());
                prop_assert!(ranges.iter().all(|range| range.first <= range.last));
                prop_assert!(ranges.windows(2).all(|two| two[1].last.0 + 1 < two[0].first.0));
            }
            // What was accepted can be written, in its shortest form, and means the same.
            let again = written(&frame);
            prop_assert_eq!(only_frame(&again).frame_type().name(), frame.frame_type().name());
        }
        prop_assert!(read <= payload.len());
    }
}

#[test]
fn a_stream_frame_without_length_takes_the_rest_of_the_payload() {
    let bytes = [0x01, 0x0d, 4, 9, 1, 2, 3];
    let frames: Vec<_> = Frames::new(&bytes).map(Result::unwrap).collect();
    let stream = Stream { stream: StreamId(4), offset: Offset(9), fin: true, data: &[1, 2, 3] };
    assert_eq!(frames, [Frame::Ping, Frame::Stream(stream)]);
}

#[test]
fn a_datagram_without_length_takes_the_rest_of_the_payload() {
    let bytes = [0x31, 2, 7, 8, 0x31, 0, 0x30, 1, 2, 3];
    let frames: Vec<_> = Frames::new(&bytes).map(Result::unwrap).collect();
    let datagram = |data, has_length| Frame::Datagram { data, has_length };
    let expected = [datagram(&[7, 8], true), datagram(&[], true), datagram(&[1, 2, 3], false)];
    assert_eq!(frames, expected);
    assert_eq!(only_frame(&[0x30]), datagram(&[], false));
    assert_eq!(fault(&[0x31, 3, 1, 2]), FrameFault::EndedEarly);
}

#[test]
fn a_request_for_acknowledgements_has_four_fields() {
    let request = AckFrequency { sequence: 3, threshold: 9, max_delay: 25_000, reordering: 4 };
    let bytes = [0x40, 0xaf, 3, 9, 0x80, 0, 0x61, 0xa8, 4];
    assert_eq!(only_frame(&bytes), Frame::AckFrequency(request));
    assert_eq!(written(&Frame::AckFrequency(request)), bytes);
    assert_eq!(only_frame(&[0x1f]), Frame::ImmediateAck);
}

#[test]
fn a_run_of_padding_is_one_frame() {
    let frames: Vec<_> = Frames::new(&[0, 0, 0, 1, 0]).map(Result::unwrap).collect();
    let padding = |length| Frame::Padding { length };
    assert_eq!(frames, [padding(3), Frame::Ping, padding(1)]);
}

#[test]
fn impossible_values_are_refused() {
    let top = varint::MAX;
    let cases: &[(&[u64], FrameFault)] = &[
        (&[0x02, 5, 0, 0, 6], FrameFault::NegativePacketNumber),
        (&[0x02, 5, 0, 1, 0, 4, 0], FrameFault::NegativePacketNumber),
        (&[0x02, 5, 0, 1, 0, 1, 3], FrameFault::NegativePacketNumber),
        (&[0x02, 5, 0, top, 0, 0, 0], FrameFault::EndedEarly),
        (&[0x3e, 1 << 32, 5, 0, 0, 0], FrameFault::PathId(1 << 32)),
        (&[0x0c, 0, top, 1], FrameFault::OffsetTooLarge(top)),
        (&[0x06, top, 1, 1], FrameFault::OffsetTooLarge(top)),
        (&[0x07, 0], FrameFault::EmptyToken),
        (&[0x12, MAX_STREAMS + 1], FrameFault::TooManyStreams(MAX_STREAMS + 1)),
        (&[0x17, MAX_STREAMS + 1], FrameFault::TooManyStreams(MAX_STREAMS + 1)),
        (&[0x18, 1, 0, 0], FrameFault::ConnectionIdLength(0)),
        (&[0x18, 1, 0, 21], FrameFault::ConnectionIdLength(21)),
        (&[0x18, 1, 2], FrameFault::RetirePriorTo { retire_prior_to: 2, sequence: 1 }),
        (&[0x3e75, 1 << 32, 0], FrameFault::PathId(1 << 32)),
        (&[0x3e7a, top], FrameFault::PathId(top)),
        (&[0x2071_7501, 0, 1, 0, 1 << 32], FrameFault::PathId(1 << 32)),
        (&[0x21], FrameFault::UnknownType),
        (&[0x40], FrameFault::UnknownType),
    ];
    for (values, expected) in cases {
        assert_eq!(fault(&bytes_of(values)), *expected, "{values:x?}");
    }
    assert_eq!(fault(&[0x40, 0x01]), FrameFault::TypeNotShortest);
}

#[test]
fn a_frame_error_names_code_frame_and_reason() {
    let error = Frames::new(&[0x07, 0]).next().unwrap().unwrap_err();
    let error = TransportError::from(error);
    assert_eq!(error.code, ErrorCode::FRAME_ENCODING_ERROR);
    assert_eq!(error.to_string(), "FRAME_ENCODING_ERROR in NEW_TOKEN: the token is empty");
    let error = Frames::new(&[0x40, 0x01]).next().unwrap().unwrap_err();
    assert_eq!(TransportError::from(error).code, ErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn no_ranges_write_no_acknowledgement() {
    let mut buffer = [0; 20];
    let mut writer = Writer::new(&mut buffer);
    assert_eq!(write_ack(&mut writer, None, 0, [], None), Ok(0));
    assert_eq!(writer.position(), 0);
}

#[test]
fn a_closing_frame_cuts_its_reason_to_the_space() {
    let mut buffer = [0; 10];
    let mut writer = Writer::new(&mut buffer);
    let frame = Frame::ApplicationClose { error_code: 5, reason: b"a long reason" };
    assert_eq!(frame.write(&mut writer), Err(NoSpace));
    frame.write_shortened(&mut writer).unwrap();
    let cut = Frame::ApplicationClose { error_code: 5, reason: b"a long " };
    assert_eq!(only_frame(writer.written()), cut);
}
