//! What streams cost per packet: bytes placed, copied out and acknowledged; bytes received and read.
//!
//! Each iteration is one frame of 1,200 bytes in steady state.

use std::collections::VecDeque;
use std::hint::black_box;

use bytes::Bytes as Chunk;
use criterion::{Criterion, criterion_group, criterion_main};
use quipu_base::{Bytes, Instant, Offset, PathId, Role, StreamDirection, StreamId};
use quipu_policy::{PathKey, Span, StreamKey};
use quipu_quic::internals::{PeerLimits, StreamLimits, Streams};

const FRAME: u64 = 1200;
const WRITE: usize = 1 << 20;
const FLIGHT: usize = 100;
const PATH: PathKey = PathKey { slot: 1, id: PathId(1) };

/// A client whose stream never runs dry nor out of credit.
struct Sender {
    streams: Streams,
    key: StreamKey,
    data: Chunk,
    left: u64,
    buffer: [u8; FRAME as usize],
}

impl Sender {
    fn new() -> Self {
        let mut streams = Streams::new(Role::Client, StreamLimits::default());
        streams.set_peer_limits(PeerLimits {
            max_data: 1 << 60,
            max_stream_data_bidi_remote: 1 << 60,
            max_streams_bidi: 1,
            ..PeerLimits::default()
        });
        let id = streams.open(StreamDirection::Bidirectional, Instant::ZERO).expect("limit is 1");
        let key = streams.key(id).expect("just opened");
        let data = Chunk::from(vec![7; WRITE]);
        Sender { streams, key, data, left: 0, buffer: [0; FRAME as usize] }
    }

    fn send(&mut self) -> Span {
        if self.left < FRAME {
            self.streams.write(self.key.id, self.data.clone()).expect("open");
            self.left += WRITE as u64;
        }
        let span = self.streams.fit(self.key, None, Bytes(FRAME)).expect("never dry");
        self.streams.copy_to(self.key, span, &mut self.buffer);
        black_box(&self.buffer);
        self.streams.place(self.key, span);
        while let Some(edge) = self.streams.pop_edge() {
            black_box(edge);
        }
        self.left -= span.len().0;
        span
    }

    fn acked(&mut self, span: Span) {
        black_box(self.streams.on_acked(self.key, span, false));
    }
}

fn sending(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("send");
    group.bench_function("in order", |bench| {
        let mut sender = Sender::new();
        let mut flight = VecDeque::new();
        bench.iter(|| {
            flight.push_back(sender.send());
            if flight.len() > FLIGHT {
                sender.acked(flight.pop_front().expect("not empty"));
            }
        });
    });
    group.bench_function("two paths, one ten times as slow", |bench| {
        let mut sender = Sender::new();
        let mut flights = [VecDeque::new(), VecDeque::new()];
        let mut count = 0_u64;
        bench.iter(|| {
            count += 1;
            let path = usize::from(count.is_multiple_of(2));
            flights[path].push_back(sender.send());
            if flights[path].len() > [FLIGHT, 10 * FLIGHT][path] {
                sender.acked(flights[path].pop_front().expect("not empty"));
            }
        });
    });
    group.bench_function("every tenth frame lost", |bench| {
        let mut sender = Sender::new();
        let mut flight = VecDeque::new();
        let mut requeued = Vec::new();
        let mut count = 0_u64;
        bench.iter(|| {
            flight.push_back(sender.send());
            if flight.len() > FLIGHT {
                let span = flight.pop_front().expect("not empty");
                count += 1;
                if count.is_multiple_of(10) {
                    requeued.clear();
                    sender.streams.on_lost(sender.key, span, false, PATH, &mut requeued);
                } else {
                    sender.acked(span);
                }
            }
        });
    });
    group.bench_function("every frame twice", |bench| {
        let mut sender = Sender::new();
        let mut flight = VecDeque::new();
        bench.iter(|| {
            let span = sender.send();
            sender.streams.place_copy(sender.key, span);
            flight.push_back(span);
            if flight.len() > FLIGHT {
                let span = flight.pop_front().expect("not empty");
                sender.acked(span);
                sender.acked(span);
            }
        });
    });
    group.finish();
}

fn receiving(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("receive");
    let data = [7; FRAME as usize];
    let id = StreamId(0);
    let receive = |streams: &mut Streams, number: u64| {
        let offset = Offset(number * FRAME);
        streams.on_stream_frame(id, offset, false, &data, Instant::ZERO).expect("within credit");
        while let Some(event) = streams.pop_event() {
            black_box(event);
        }
        let read = streams.read(id, u64::MAX, &mut |part| {
            black_box(part);
        });
        black_box(read.is_ok());
        while let Some(frame) = streams.pop_frame(|_| true) {
            black_box(frame);
        }
    };
    group.bench_function("in order", |bench| {
        let mut streams = Streams::new(Role::Server, StreamLimits::default());
        let mut number = 0;
        bench.iter(|| {
            receive(&mut streams, number);
            number += 1;
        });
    });
    group.bench_function("every second frame late by 1,000", |bench| {
        let mut streams = Streams::new(Role::Server, StreamLimits::default());
        let mut count = 0;
        bench.iter(|| {
            // Even frames come 500 turns before their odd neighbours.
            let turn = count / 2;
            if count % 2 == 0 {
                receive(&mut streams, 2 * turn);
            } else if turn >= 500 {
                receive(&mut streams, 2 * (turn - 500) + 1);
            }
            count += 1;
        });
    });
    group.finish();
}

criterion_group!(benches, sending, receiving);
criterion_main!(benches);
