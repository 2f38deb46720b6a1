//! Cost of moving a datagram: two nodes that do nothing but send data and acknowledge it.
//!
//! A datagram here is any that arrives, data (1,200 B) or acknowledgement (60 B).

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quipu_base::{Bytes, Duration, Instant, Rate, Seed};
use quipu_link::{Link, LinkConfig, QueueLimit, ecn};
use quipu_sim::{Envelope, Interface, Node, Outgoing, World, WorldConfig, address};

const DATA: usize = 1_200;
const ACK: usize = 60;
const PATHS: u8 = 2;
const DATAGRAMS: u64 = 200_000;

/// Keeps a window of data under way on each path; a node with nothing to send acknowledges.
#[derive(Default)]
struct Bulk {
    left: u64,
    to_send: Vec<(Envelope, usize)>,
}

impl Node for Bulk {
    fn handle_datagram(&mut self, _now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        if payload.len() == DATA {
            self.to_send.push((*envelope, ACK));
        } else if self.left > 0 {
            self.left -= 1;
            self.to_send.push((*envelope, DATA));
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant, out: &mut Outgoing<'_>) {
        for (envelope, len) in self.to_send.drain(..) {
            out.buffer()[0] = 1;
            out.send(&envelope, len);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

fn transfer(window: usize, host_jitter: Duration, loss_free: &LinkConfig) -> u64 {
    let mut world = World::new(WorldConfig { host_jitter, ..WorldConfig::new(Seed::new(1)) });
    let server = address(2, 0, 443);
    let mut sender = Bulk { left: DATAGRAMS / 2, to_send: Vec::new() };
    for path in 0..PATHS {
        let envelope = Envelope { local: address(1, path, 1_000), remote: server, ecn: 0 };
        sender.to_send.extend(vec![(envelope, DATA); window / usize::from(PATHS)]);
    }
    let client = world.add_node(sender);
    let peer = world.add_node(Bulk::default());
    for path in 0..PATHS {
        let client = Interface { node: client, address: address(1, path, 1_000) };
        let server = Interface { node: peer, address: server };
        world.add_path(client, server, loss_free, loss_free).expect("a valid topology");
    }
    world.run_until(Instant::FAR_FUTURE).expect("the transfer ends");
    world.stats().received
}

fn event_loop(criterion: &mut Criterion) {
    let link = LinkConfig::new(Rate::from_mbit_per_sec(100), Duration::from_millis(10))
        .with_queue(QueueLimit::Unlimited);
    let mut group = criterion.benchmark_group("event_loop");
    group.sample_size(20).throughput(Throughput::Elements(DATAGRAMS));
    for window in [100, 400] {
        group.bench_function(format!("{window}_in_flight"), |bencher| {
            bencher.iter(|| transfer(black_box(window), Duration::ZERO, &link));
        });
        group.bench_function(format!("{window}_in_flight_host_jitter"), |bencher| {
            bencher.iter(|| transfer(black_box(window), Duration::from_micros(100), &link));
        });
    }
    group.finish();
}

fn offer(criterion: &mut Criterion) {
    let plain = LinkConfig::new(Rate::from_mbit_per_sec(100), Duration::from_millis(10));
    let rough = plain.clone().with_loss(0.01).with_jitter(Duration::from_millis(2));
    let mut group = criterion.benchmark_group("link_offer");
    group.throughput(Throughput::Elements(1_000));
    for (name, config) in [("plain", plain), ("loss_and_jitter", rough)] {
        let mut link = Link::new(&config, Seed::new(1)).expect("a valid link");
        let mut now = Instant::ZERO;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for _ in 0..1_000 {
                    // A little less than a datagram takes, so that the queue is never empty.
                    now += Duration::from_nanos(98_000);
                    let _ = black_box(link.offer(now, Bytes(1_200), ecn::NOT_ECT));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, event_loop, offer);
criterion_main!(benches);
