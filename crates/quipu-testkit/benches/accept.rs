//! What it costs an endpoint to let a client in, to open a connection and to turn a client away,
//! beside 100 and beside 16,000 other connections: the same.
//!
//! `cargo bench -p quipu-testkit --bench accept`. The others stay in their handshakes, so that they
//! take no more memory than they must; what finds a connection is the same for all.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use quipu_base::{Duration, Instant, Seed};
use quipu_quic::endpoint::{Admission, ClientConfig, ServerConfig, TokenConfig};
use quipu_quic::tls::SECRET_LENGTH;
use quipu_quic::tls::rustls::{provider, token_key};
use quipu_quic::{Arrival, Endpoint, Outbox, Route, Transmit, TransportConfig};
use quipu_testkit::{Identity, SERVER_NAME, Tls, plain_policies, server_address};

/// So many connections beside the one that is measured.
const OTHERS: [u32; 2] = [100, 16_000];

/// Takes datagrams and keeps the last.
#[derive(Default)]
struct Sink {
    buffer: Vec<u8>,
    last: usize,
}

impl Outbox for Sink {
    fn has_room(&self) -> bool {
        true
    }

    fn buffer(&mut self, size: usize) -> &mut [u8] {
        self.buffer.resize(self.buffer.len().max(size), 0);
        &mut self.buffer
    }

    fn send(&mut self, transmit: Transmit) {
        self.last = transmit.len;
    }
}

/// A client and a server with as many connections between them, and one more first packet.
struct Ends {
    client: Endpoint,
    server: Endpoint,
    config: ClientConfig,
    initial: Vec<u8>,
    sink: Sink,
}

fn route() -> Route {
    Route::new(([10, 0, 0, 1], 50_000).into(), server_address())
}

fn arrival() -> Arrival {
    Arrival { route: Route::new(route().remote, route().local), ecn: 0 }
}

impl Ends {
    fn new(tls: &Tls, others: u32, admission: Admission) -> Self {
        let transport = Arc::new(TransportConfig::default());
        let mut server = Endpoint::seeded(Seed::new(1).stream("server", 0));
        let key = token_key(&provider(), &[1; SECRET_LENGTH]).expect("an AEAD with long keys");
        let config = ServerConfig::new(tls.server(), Arc::clone(&transport), plain_policies())
            .with_tokens(TokenConfig::with_key(key));
        server.listen(config.clone().with_admission(open())).expect("a valid transport");
        let mut ends = Ends {
            client: Endpoint::seeded(Seed::new(1).stream("client", 0)),
            server,
            config: ClientConfig::new(tls.client(), transport, plain_policies()),
            initial: Vec::new(),
            sink: Sink::default(),
        };
        for _ in 0..others {
            ends.make_initial();
            let mut initial = std::mem::take(&mut ends.initial);
            ends.server.handle_datagram(Instant::ZERO, arrival(), &mut initial);
            ends.server.poll_transmit(Instant::ZERO, &mut ends.sink);
        }
        assert_eq!(ends.server.held().connections, others as usize);
        ends.server.listen(config.with_admission(admission)).expect("a valid transport");
        ends.make_initial();
        ends
    }

    fn make_initial(&mut self) {
        let handle = self.client.connect(Instant::ZERO, &self.config, SERVER_NAME, route());
        handle.expect("a valid configuration");
        self.client.poll_transmit(Instant::ZERO, &mut self.sink);
        self.initial = self.sink.buffer[..self.sink.last].to_vec();
    }
}

fn open() -> Admission {
    Admission {
        max_connections: usize::MAX,
        max_per_source: usize::MAX,
        max_unvalidated: usize::MAX,
        handshake_timeout: Duration::ZERO,
        ..Admission::default()
    }
}

fn accept(criterion: &mut Criterion) {
    let identity = Identity::generate().expect("the system has randomness");
    for (name, tls) in [("null", Tls::Null { chain: 1_000 }), ("rustls", Tls::Rustls(identity))] {
        let mut group = criterion.benchmark_group(name);
        for others in OTHERS {
            let mut ends = Ends::new(&tls, others, open());
            group.bench_function(format!("accept and remove, beside {others}"), |bencher| {
                bencher.iter_batched_ref(
                    || ends.initial.clone(),
                    |initial| {
                        let now = Instant::ZERO;
                        let handle = ends.server.handle_datagram(now, arrival(), initial);
                        ends.server.poll_transmit(now, &mut ends.sink);
                        ends.server.remove(handle.expect("it is let in"))
                    },
                    BatchSize::SmallInput,
                );
            });
            group.bench_function(format!("connect and remove, beside {others}"), |bencher| {
                bencher.iter(|| {
                    let now = Instant::ZERO;
                    let handle = ends.client.connect(now, &ends.config, SERVER_NAME, route());
                    ends.client.poll_transmit(now, &mut ends.sink);
                    ends.client.remove(handle.expect("a valid configuration"))
                });
            });
        }
        for (what, admission) in [
            ("refuse", Admission { max_connections: 0, ..open() }),
            ("retry", Admission { max_unvalidated: 0, ..open() }),
        ] {
            let mut ends = Ends::new(&tls, OTHERS[0], admission);
            group.bench_function(what, |bencher| {
                bencher.iter_batched_ref(
                    || ends.initial.clone(),
                    |initial| {
                        let now = Instant::ZERO;
                        black_box(ends.server.handle_datagram(now, arrival(), initial));
                        ends.server.poll_transmit(now, &mut ends.sink);
                    },
                    BatchSize::SmallInput,
                );
            });
        }
        group.finish();
    }
}

criterion_group!(benches, accept);
criterion_main!(benches);
