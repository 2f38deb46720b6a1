//! Reading and writing what nearly every packet holds: a STREAM frame, an acknowledgement, a short
//! header.

#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use quipu_base::{Offset, PacketNumber, PathId, StreamId};
use quipu_quic::wire::frame::{StreamLayout, write_ack};
use quipu_quic::wire::header::{Packet, ShortHeader};
use quipu_quic::wire::{AckRange, ConnectionId, Frame, Frames, TruncatedPacketNumber, Writer};

/// Room for frames in a datagram of 1,350 bytes.
const SPACE: usize = 1_320;

fn header() -> ShortHeader {
    ShortHeader {
        dcid: ConnectionId::new(&[7; 8]).unwrap(),
        spin: false,
        key_phase: false,
        packet_number: TruncatedPacketNumber::with_length(PacketNumber(4_000), 2),
    }
}

fn ranges(count: u64) -> Vec<AckRange> {
    (0..count)
        .rev()
        .map(|index| {
            AckRange::new(PacketNumber(1_000 + 10 * index), PacketNumber(1_006 + 10 * index))
        })
        .collect()
}

fn headers(criterion: &mut Criterion) {
    let mut packet = vec![0; 1_350];
    criterion.bench_function("short header/write", |bencher| {
        bencher.iter(|| header().write(&mut Writer::new(black_box(&mut packet))).unwrap());
    });
    criterion.bench_function("short header/parse", |bencher| {
        bencher.iter(|| Packet::parse(black_box(&packet), 8).is_ok());
    });
}

fn stream(criterion: &mut Criterion) {
    let data = vec![5; 10_000];
    let mut packet = vec![0; SPACE];
    let write = |packet: &mut [u8], copied: bool| {
        let mut writer = Writer::new(packet);
        let (stream, offset) = (black_box(StreamId(8)), black_box(Offset(1 << 20)));
        let layout = StreamLayout::new(stream, offset, data.len(), writer.remaining()).unwrap();
        layout.write_header(&mut writer, false).unwrap();
        if copied {
            writer.put_bytes(&data[..layout.data_length()]).unwrap();
        }
        writer.position()
    };
    write(&mut packet, true);
    criterion.bench_function("STREAM/write header", |bencher| {
        bencher.iter(|| write(black_box(&mut packet), false));
    });
    criterion.bench_function("STREAM/write with 1300 bytes copied", |bencher| {
        bencher.iter(|| write(black_box(&mut packet), true));
    });
    criterion.bench_function("STREAM/parse", |bencher| {
        bencher.iter(|| match Frames::new(black_box(&packet)).next() {
            Some(Ok(Frame::Stream(frame))) => frame.data.len(),
            _ => 0,
        });
    });
}

fn acknowledgements(criterion: &mut Criterion) {
    for count in [1, 8, 64] {
        let ranges = ranges(count);
        let mut packet = vec![0; SPACE];
        let write = |packet: &mut [u8]| {
            let mut writer = Writer::new(packet);
            let path = Some(PathId(1));
            write_ack(&mut writer, path, 25, ranges.iter().copied(), None).unwrap();
            writer.position()
        };
        let length = write(&mut packet);
        criterion.bench_function(&format!("PATH_ACK/write {count} ranges"), |bencher| {
            bencher.iter(|| write(black_box(&mut packet)));
        });
        criterion.bench_function(&format!("PATH_ACK/parse and walk {count} ranges"), |bencher| {
            bencher.iter(|| match Frames::new(black_box(&packet[..length])).next() {
                Some(Ok(Frame::Ack(ack))) => ack.ranges.iter().map(|range| range.first.0).sum(),
                _ => 0,
            });
        });
    }
}

criterion_group!(benches, headers, stream, acknowledgements);
criterion_main!(benches);
