//! Quipu: `sansio`, `handshake`, `streams-mem` (in memory).

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use bytes::Bytes;
use quic_bulk::*;
use quipu_base::{Duration, Instant, Seed, StreamDirection, StreamId};
use quipu_quic::{
    Arrival, Connection, ConnectionEvent, ConnectionHandle, Endpoint, Outbox, Route, Transmit,
    TransportConfig,
};

#[path = "../ours.rs"]
mod ours;
use ours::Setup;

/// quinn's default.
const WINDOW: u64 = 1_250_000;

fn main() {
    let args = Args::parse();
    watchdog(args.num("limit-s", 120));
    let window = args.num("window", WINDOW);
    let mut setup = Setup::new(
        "quipu",
        // quinn's default, and that of the other programs.
        TransportConfig { max_streams: CONCURRENT as u64, ..TransportConfig::default() },
        &args.str("provider", "ring"),
        window,
        &args.str("policies", "congestion=cubic"),
    );
    setup.name = windowed(&setup.name, if window == WINDOW { 0 } else { window });
    match args.cmd.as_str() {
        "sansio" => sansio(&setup, args.num("mib", 256) * MIB),
        "handshake" => handshake(&setup, args.num("n", 2000)),
        "streams-mem" => streams_mem(&setup, args.num("n", 10_000)),
        other => unknown(other),
    }
}

/// A datagram on its way.
struct Datagram {
    arrives: Instant,
    ecn: u8,
    buffer: Box<[u8]>,
    length: usize,
}

/// Length of the buffers into which datagrams are received.
const RECEIVE_BUFFER: usize = 1500;

/// Datagrams of one poll, in batches as a socket would take them: one copy per batch.
struct Batch<'a> {
    now: Instant,
    buffer: &'a mut Vec<u8>,
    /// The sizes of the datagrams in `buffer`.
    sizes: Vec<(u8, usize)>,
    at: usize,
    peer: &'a mut VecDeque<Datagram>,
    count: &'a mut Counts,
}

thread_local! {
    /// Receive buffers that are free.
    static POOL: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

fn take_buffer() -> Box<[u8]> {
    let pooled = POOL.with(|pool| pool.borrow_mut().pop());
    pooled.unwrap_or_else(|| vec![0; RECEIVE_BUFFER].into_boxed_slice())
}

#[derive(Clone, Copy, Default)]
struct Counts {
    datagrams: u64,
    bytes: u64,
}

/// Datagrams of a batch, as for the other libraries.
const SEGMENTS: usize = 10;

impl Batch<'_> {
    fn flush(&mut self) {
        let arrives = self.now + delay();
        let mut at = 0;
        for (ecn, length) in self.sizes.drain(..) {
            // One copy, as a socket makes.
            let mut buffer = take_buffer();
            buffer[..length].copy_from_slice(&self.buffer[at..at + length]);
            self.peer.push_back(Datagram { arrives, ecn, buffer, length });
            at += length;
        }
        self.at = 0;
    }
}

impl Outbox for Batch<'_> {
    fn has_room(&self) -> bool {
        true
    }

    fn buffer(&mut self, size: usize) -> &mut [u8] {
        if self.sizes.len() == SEGMENTS || self.at + size > self.buffer.len() {
            self.flush();
        }
        &mut self.buffer[self.at..self.at + size]
    }

    fn send(&mut self, transmit: Transmit) {
        self.at += transmit.len;
        self.sizes.push((transmit.ecn, transmit.len));
        self.count.datagrams += 1;
        self.count.bytes += transmit.len as u64;
    }
}

fn delay() -> Duration {
    Duration::from_nanos(DELAY.as_nanos() as u64)
}

/// One end.
struct Side {
    endpoint: Endpoint,
    connection: Option<ConnectionHandle>,
    inbox: VecDeque<Datagram>,
    route: Route,
    buffer: Vec<u8>,
    counts: Counts,
    confirmed: bool,
    events: Vec<ConnectionEvent>,
    /// Polled at least once.
    started: bool,
}

impl Side {
    fn new(seed: u64, local: &str, remote: &str) -> Self {
        let parse = |text: &str| text.parse::<SocketAddr>().unwrap();
        Side {
            endpoint: Endpoint::seeded(Seed::new(seed).stream("bench", 0)),
            connection: None,
            inbox: VecDeque::new(),
            route: Route::new(parse(local), parse(remote)),
            buffer: vec![0; 64 << 10],
            counts: Counts::default(),
            confirmed: false,
            events: Vec::new(),
            started: false,
        }
    }

    /// Up to `RX_BATCH` datagrams in, the application, everything out. True if anything was done.
    fn step(
        &mut self,
        now: Instant,
        peer: &mut VecDeque<Datagram>,
        app: &mut dyn FnMut(&mut Connection, Instant, &[ConnectionEvent]),
    ) -> bool {
        let mut did = !std::mem::replace(&mut self.started, true);
        for _ in 0..RX_BATCH {
            if self.inbox.front().is_none_or(|datagram| datagram.arrives > now) {
                break;
            }
            did = true;
            let Datagram { ecn, mut buffer, length, .. } = self.inbox.pop_front().unwrap();
            let arrival = Arrival { route: self.route, ecn };
            self.endpoint.handle_buffer(now, arrival, &mut buffer, length);
            POOL.with(|pool| pool.borrow_mut().push(buffer));
        }
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            did = true;
            self.endpoint.handle_timeout(now);
        }
        if self.connection.is_none() {
            self.connection = self.endpoint.accept();
        }
        if !did {
            return false;
        }
        if let Some(handle) = self.connection {
            let connection = self.endpoint.connection_mut(handle).unwrap();
            self.events.clear();
            while let Some(event) = connection.poll() {
                match event {
                    ConnectionEvent::Confirmed => self.confirmed = true,
                    ConnectionEvent::Closed(reason) => panic!("closed: {reason}"),
                    event => self.events.push(event),
                }
            }
            app(connection, now, &self.events);
        }
        let mut batch = Batch {
            now,
            buffer: &mut self.buffer,
            sizes: Vec::with_capacity(SEGMENTS),
            at: 0,
            peer,
            count: &mut self.counts,
        };
        self.endpoint.poll_transmit(now, &mut batch);
        batch.flush();
        true
    }

    fn next(&self) -> Option<Instant> {
        min_opt(self.inbox.front().map(|datagram| datagram.arrives), self.endpoint.poll_timeout())
    }

    fn forget(&mut self) {
        if let Some(handle) = self.connection.take() {
            self.endpoint.remove(handle);
        }
        self.inbox.clear();
        self.confirmed = false;
        self.started = false;
    }
}

type App<'a> = &'a mut dyn FnMut(&mut Connection, Instant, &[ConnectionEvent]);

struct Pair {
    server: Side,
    client: Side,
    now: Instant,
}

impl Pair {
    fn new(setup: &Setup) -> Self {
        let mut server = Side::new(1, "127.0.0.1:2000", "127.0.0.1:1000");
        server.endpoint.listen(setup.server.clone()).unwrap();
        let client = Side::new(2, "127.0.0.1:1000", "127.0.0.1:2000");
        Pair { server, client, now: Instant::ZERO + Duration::from_secs(1) }
    }

    fn step(&mut self, server: App<'_>, client: App<'_>) {
        let a = self.client.step(self.now, &mut self.server.inbox, client);
        let b = self.server.step(self.now, &mut self.client.inbox, server);
        if !a && !b {
            let next = min_opt(self.client.next(), self.server.next()).expect("deadlock");
            self.now = self.now.max(next);
        }
    }

    /// A whole handshake, HANDSHAKE_DONE included.
    fn shake(&mut self, setup: &Setup) {
        let endpoint = &mut self.client.endpoint;
        let handle = endpoint.connect(self.now, &setup.client, "localhost", self.client.route);
        self.client.connection = Some(handle.unwrap());
        while !(self.client.confirmed && self.server.confirmed) {
            self.step(&mut |_, _, _| (), &mut |_, _, _| ());
        }
    }

    fn connection(&mut self) -> &mut Connection {
        let handle = self.client.connection.unwrap();
        self.client.endpoint.connection_mut(handle).unwrap()
    }
}

fn sansio(setup: &Setup, total: u64) {
    let mut pair = Pair::new(setup);
    pair.shake(setup);
    let now = pair.now;
    let connection = pair.connection();
    let stream = connection.open_stream(now, StreamDirection::Bidirectional).unwrap();
    connection.write_all(now, stream, Bytes::from_static(b"go")).unwrap();
    connection.finish(now, stream).unwrap();
    pair.client.started = false;
    let data = vec![0x5a_u8; APP_BUF];
    let mut sink = vec![0_u8; APP_BUF];
    let (mut left, mut got, mut end) = (total, 0_u64, false);
    let mut opened = None;
    let (server_before, client_before) = (pair.server.counts, pair.client.counts);
    let meter = Meter::start();
    let begin = pair.now;
    while !end {
        pair.step(
            &mut |connection, now, events| {
                for event in events {
                    if let ConnectionEvent::StreamOpened(id) = event {
                        opened = Some(*id);
                    }
                }
                let Some(stream) = opened else { return };
                while left > 0 {
                    let n = left.min(APP_BUF as u64) as usize;
                    let n = n.min(connection.send_room(stream));
                    if n == 0 {
                        break;
                    }
                    let taken =
                        connection.write(now, stream, Bytes::copy_from_slice(&data[..n])).unwrap();
                    left -= taken as u64;
                    if left == 0 {
                        connection.finish(now, stream).unwrap();
                    }
                }
            },
            &mut |connection, now, _| {
                let read = connection.read(now, stream, &mut |bytes: &[u8]| {
                    // The copy that a plain read into a buffer makes.
                    sink[..bytes.len()].copy_from_slice(bytes);
                    got += bytes.len() as u64;
                });
                end |= read.is_ok_and(|read| read.end);
            },
        );
    }
    let spent = meter.stop();
    std::hint::black_box(&sink);
    assert_eq!(got, total);
    let virtual_s = (pair.now - begin).as_secs_f64();
    let (down, up) = (pair.server.counts, pair.client.counts);
    Json::new("sansio", &setup.name, env!("CARGO_PKG_VERSION"))
        .bytes(total, &spent)
        .packets(
            down.datagrams - server_before.datagrams,
            down.bytes - server_before.bytes,
            up.datagrams - client_before.datagrams,
            0,
            &spent,
        )
        .f("virtual_s", virtual_s)
        .print();
}

fn streams_mem(setup: &Setup, count: u64) {
    let mut pair = Pair::new(setup);
    pair.shake(setup);
    pair.client.started = false;
    let (mut opened, mut done) = (0_u64, 0_u64);
    let mut asked: HashMap<StreamId, usize> = HashMap::new();
    let mut answered: HashMap<StreamId, usize> = HashMap::new();
    let mut sink = vec![0_u8; APP_BUF];
    let (server_before, client_before) = (pair.server.counts, pair.client.counts);
    let meter = Meter::start();
    while done < count {
        pair.step(
            &mut |connection, now, events| {
                for event in events {
                    let ConnectionEvent::Readable(stream) = *event else { continue };
                    let got = asked.entry(stream).or_default();
                    let read =
                        connection.read(now, stream, &mut |bytes: &[u8]| *got += bytes.len());
                    if read.is_ok_and(|read| read.end) {
                        assert_eq!(asked.remove(&stream), Some(REQ_LEN));
                        let answer = Bytes::copy_from_slice(&[7_u8; RESP_LEN]);
                        connection.write_all(now, stream, answer).unwrap();
                        connection.finish(now, stream).unwrap();
                    }
                }
            },
            &mut |connection, now, events| {
                for event in events {
                    let ConnectionEvent::Readable(stream) = *event else { continue };
                    let got = answered.get_mut(&stream).unwrap();
                    let read = connection.read(now, stream, &mut |bytes: &[u8]| {
                        sink[..bytes.len()].copy_from_slice(bytes);
                        *got += bytes.len();
                    });
                    if read.is_ok_and(|read| read.end) {
                        assert_eq!(answered.remove(&stream), Some(RESP_LEN));
                        done += 1;
                    }
                }
                while opened < count && answered.len() < CONCURRENT {
                    let direction = StreamDirection::Bidirectional;
                    let Some(stream) = connection.open_stream(now, direction) else { break };
                    let request = Bytes::copy_from_slice(&[1_u8; REQ_LEN]);
                    connection.write_all(now, stream, request).unwrap();
                    connection.finish(now, stream).unwrap();
                    answered.insert(stream, 0);
                    opened += 1;
                }
            },
        );
    }
    let spent = meter.stop();
    let (down, up) = (pair.server.counts, pair.client.counts);
    Json::new("streams-mem", &setup.name, env!("CARGO_PKG_VERSION"))
        .s("how", "in memory")
        .units("streams", count, &spent)
        .packets(
            down.datagrams - server_before.datagrams,
            down.bytes - server_before.bytes,
            up.datagrams - client_before.datagrams,
            0,
            &spent,
        )
        .print();
}

fn handshake(setup: &Setup, n: u64) {
    let mut pair = Pair::new(setup);
    let forget = |pair: &mut Pair| {
        pair.client.forget();
        pair.server.forget();
    };
    pair.shake(setup);
    forget(&mut pair);
    let meter = Meter::start();
    for _ in 0..n {
        pair.shake(setup);
        forget(&mut pair);
        pair.now += Duration::from_millis(1);
    }
    let spent = meter.stop();
    Json::new("handshake", &setup.name, env!("CARGO_PKG_VERSION"))
        .s("how", "in memory")
        .units("handshakes", n, &spent)
        .print();
}
