//! Field compression of a page's requests, and control-stream parsing, per request.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quipu_base::StreamId;
use quipu_http::field::FieldList;
use quipu_http::h2::frame::{
    DEFAULT_FRAME_SIZE, FrameDecoder, Settings, encode_headers, encode_settings,
};
use quipu_http::h2::{FrameStreamId, StreamPriority};
use quipu_http::hpack::{DEFAULT_TABLE_SIZE, Decoder, Encoder};
use quipu_http::qpack;

const REQUESTS: usize = 100;

/// Fields as a browser sends them for the `index`-th object of a page.
fn request(index: usize) -> FieldList {
    let path = format!("/assets/{:08x}/bundle-{index}.js?v=20240517", index * 2_654_435_761);
    [
        (":method", "GET"),
        (":authority", ["www.example.org", "static.example.net"][index % 2]),
        (":scheme", "https"),
        (":path", &path),
        ("sec-ch-ua", "\"Chromium\";v=\"124\", \"Not-A.Brand\";v=\"99\""),
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/124.0.0.0"),
        ("accept", ["text/css,*/*;q=0.1", "*/*", "image/avif,image/webp,*/*;q=0.8"][index % 3]),
        ("sec-fetch-mode", "no-cors"),
        ("sec-fetch-dest", ["style", "script", "image"][index % 3]),
        ("referer", "https://www.example.org/some/article/2024/05/17/title-of-it.html"),
        ("accept-encoding", "gzip, deflate, br, zstd"),
        ("accept-language", "en-US,en;q=0.9,de;q=0.8"),
        ("cookie", "session=0123456789abcdef0123456789abcdef; consent=1; group=b"),
    ]
    .into_iter()
    .collect()
}

fn hpack(criterion: &mut Criterion) {
    let requests: Vec<FieldList> = (0..REQUESTS).map(request).collect();
    let mut encoder = Encoder::new(DEFAULT_TABLE_SIZE);
    let blocks: Vec<Vec<u8>> = requests
        .iter()
        .map(|fields| {
            let mut block = Vec::new();
            encoder.encode(fields, &mut block);
            block
        })
        .collect();
    let mut group = criterion.benchmark_group("hpack");
    group.throughput(Throughput::Elements(REQUESTS as u64));
    group.bench_function("encode", |bencher| {
        let mut block = Vec::new();
        bencher.iter(|| {
            let mut encoder = Encoder::new(DEFAULT_TABLE_SIZE);
            for fields in &requests {
                block.clear();
                encoder.encode(black_box(fields), &mut block);
            }
        });
    });
    group.bench_function("decode", |bencher| {
        let mut fields = FieldList::new();
        bencher.iter(|| {
            let mut decoder = Decoder::new(65_536);
            for block in &blocks {
                black_box(decoder.decode(black_box(block), &mut fields)).ok();
            }
        });
    });
    group.finish();
}

/// With a peer that acknowledges after each request.
fn qpack(criterion: &mut Criterion) {
    let requests: Vec<FieldList> = (0..REQUESTS).map(request).collect();
    let encode = |fields: &FieldList, number: usize, encoder: &mut qpack::Encoder| {
        let mut section = Vec::new();
        encoder.encode(StreamId(4 * number as u64), fields, &mut section);
        (encoder.take_instructions().unwrap_or_default(), section)
    };
    let mut encoder = qpack::Encoder::new(DEFAULT_TABLE_SIZE);
    encoder.on_peer_settings(DEFAULT_TABLE_SIZE.into(), 100);
    let mut decoder = qpack::Decoder::new(DEFAULT_TABLE_SIZE, 100, 65_536);
    let (mut sections, mut acknowledgments) = (Vec::new(), Vec::new());
    for (number, fields) in requests.iter().enumerate() {
        let (instructions, section) = encode(fields, number, &mut encoder);
        decoder.on_encoder_stream(&instructions).ok();
        let mut out = FieldList::new();
        decoder.decode(StreamId(4 * number as u64), &section, &mut out).ok();
        let acknowledgment = decoder.take_instructions().unwrap_or_default();
        encoder.on_decoder_stream(&acknowledgment).ok();
        acknowledgments.push(acknowledgment);
        sections.push((instructions, section));
    }
    let mut group = criterion.benchmark_group("qpack");
    group.throughput(Throughput::Elements(REQUESTS as u64));
    group.bench_function("encode", |bencher| {
        bencher.iter(|| {
            let mut encoder = qpack::Encoder::new(DEFAULT_TABLE_SIZE);
            encoder.on_peer_settings(DEFAULT_TABLE_SIZE.into(), 100);
            for (number, fields) in requests.iter().enumerate() {
                black_box(encode(black_box(fields), number, &mut encoder));
                encoder.on_decoder_stream(&acknowledgments[number]).ok();
            }
        });
    });
    group.bench_function("decode", |bencher| {
        let mut fields = FieldList::new();
        bencher.iter(|| {
            let mut decoder = qpack::Decoder::new(DEFAULT_TABLE_SIZE, 100, 65_536);
            for (number, (instructions, section)) in sections.iter().enumerate() {
                decoder.on_encoder_stream(black_box(instructions)).ok();
                let stream = StreamId(4 * number as u64);
                black_box(decoder.decode(stream, black_box(section), &mut fields)).ok();
                black_box(decoder.take_instructions());
            }
        });
    });
    group.finish();
}

fn frames(criterion: &mut Criterion) {
    let mut octets = Vec::new();
    encode_settings(&Settings::default(), &mut octets);
    for index in 1..=REQUESTS as u32 {
        let stream = FrameStreamId::from_wire(4 * index);
        let priority = Some(StreamPriority::default());
        encode_headers(stream, priority, true, &[0x82; 60], DEFAULT_FRAME_SIZE, &mut octets);
    }
    let mut group = criterion.benchmark_group("frames");
    group.throughput(Throughput::Elements(REQUESTS as u64));
    group.bench_function("decode", |bencher| {
        bencher.iter(|| {
            let mut decoder = FrameDecoder::new(65_536);
            for packet in octets.chunks(1200) {
                decoder.push(black_box(packet));
                while let Ok(Some(frame)) = decoder.next_frame() {
                    black_box(frame);
                }
            }
        });
    });
    group.finish();
}

criterion_group!(benches, hpack, qpack, frames);
criterion_main!(benches);
