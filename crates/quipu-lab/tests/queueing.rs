//! PFIFO against FIFO as in Figure 6 of "Extending the ns-3 QUIC Module" (Paro et al., MSWiM 2020):
//! two streams without HTTP, one path of 1 Mb/s and 10 ms of round trip, NewReno.
//!
//! Main objects and embedded ones below 12 kB are written to the first stream, larger ones to the
//! second, in random order, a microsecond apart: FIFO ranks by the time of writing, and ties would
//! go to the lower stream. An object's time ends with its last byte in order.
//! Sizes are those of the paper's Table 1.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use quipu_base::{Duration, Instant, Rate, Seed, StreamDirection, StreamId};
use quipu_lab::stats::median;
use quipu_link::LinkConfig;
use quipu_null_tls::{NullClient, NullServer};
use quipu_policy::{BuildContext, PathKey, PolicySpec, Registry};
use quipu_quic::endpoint::{ClientConfig, PolicyFactory, ServerConfig};
use quipu_quic::{
    Arrival, ConnectionEvent, ConnectionHandle, Endpoint, Outbox, Route, Transmit, TransportConfig,
};
use quipu_sim::{Envelope, Interface, Node, Outgoing, RunEnd, World, WorldConfig, address};
use quipu_web::page::ObjectKind;
use quipu_web::synthetic::pries;
use rand::seq::SliceRandom;

const PAGES: u64 = 30;
const ALPN: &[u8] = b"raw";
const SMALL: u64 = 12_000;
/// Between the writing of two objects.
const GAP: Duration = Duration::from_micros(1);

/// An object: which of the two streams it goes to, and how many bytes it has.
type Object = (usize, u64);

/// The objects of a random page in the order in which they are written.
fn objects(page: u64) -> Vec<Object> {
    let seed = Seed::new(6);
    let page_drawn = pries(seed, page).unwrap();
    let mut objects: Vec<Object> = page_drawn
        .objects()
        .iter()
        .map(|object| {
            let bytes = object.response_bytes.0;
            (usize::from(object.kind != ObjectKind::Document && bytes >= SMALL), bytes)
        })
        .collect();
    objects.shuffle(&mut seed.stream("order", page));
    objects
}

/// One end. The client opens both streams and writes the objects; the server reads.
struct Host {
    endpoint: Endpoint,
    handle: Option<ConnectionHandle>,
    dial: Option<(ClientConfig, Route)>,
    streams: [Option<StreamId>; 2],
    to_write: VecDeque<Object>,
    /// When the first object was written, and when the next one is.
    written_at: Option<Instant>,
    write_at: Option<Instant>,
    read: [u64; 2],
    /// Ends of objects within their stream, and when the byte before was read.
    ends: Vec<(usize, u64, Option<Instant>)>,
    failure: Option<String>,
}

struct SimOutbox<'a, 'b>(&'a mut Outgoing<'b>);

impl Outbox for SimOutbox<'_, '_> {
    fn has_room(&self, _path: PathKey) -> bool {
        true
    }

    fn buffer(&mut self, _size: usize) -> &mut [u8] {
        self.0.buffer()
    }

    fn send(&mut self, transmit: Transmit) {
        let Route { local, remote } = transmit.route;
        self.0.send(&Envelope { local, remote, ecn: transmit.ecn }, transmit.len);
    }
}

fn factory(stream: &str) -> PolicyFactory {
    let spec = PolicySpec::parse(&Registry::builtin(), &format!("stream={stream}")).unwrap();
    Arc::new(move || spec.build(&BuildContext::new(Seed::new(1))).unwrap())
}

impl Host {
    fn new(seed: Seed) -> Host {
        Host {
            endpoint: Endpoint::new(seed.stream("endpoint", 0)),
            handle: None,
            dial: None,
            streams: [None; 2],
            to_write: VecDeque::new(),
            written_at: None,
            write_at: None,
            read: [0; 2],
            ends: Vec::new(),
            failure: None,
        }
    }

    fn client(seed: Seed, policies: PolicyFactory, route: Route, objects: &[Object]) -> Host {
        let tls = Arc::new(NullClient::new(&[ALPN]).unwrap());
        let transport = Arc::new(TransportConfig::default());
        let dial = Some((ClientConfig { tls, transport, policies }, route));
        Host { dial, to_write: objects.to_vec().into(), ..Host::new(seed) }
    }

    fn server(seed: Seed, policies: PolicyFactory, objects: &[Object]) -> Host {
        let mut host = Host::new(seed);
        let mut lengths = [0; 2];
        for &(stream, bytes) in objects {
            lengths[stream] += bytes;
            host.ends.push((stream, lengths[stream], None));
        }
        let tls = Arc::new(NullServer::new(&[ALPN]).unwrap());
        let transport = Arc::new(TransportConfig::default());
        let config = ServerConfig { tls, transport, policies, max_connections: 1 };
        host.endpoint.listen(config).unwrap();
        host
    }

    fn has_all(&self) -> bool {
        !self.ends.is_empty() && self.ends.iter().all(|(_, _, at)| at.is_some())
    }

    fn advance(&mut self, now: Instant) {
        if let Some((config, route)) = self.dial.take() {
            let handle = self.endpoint.connect(now, &config, "localhost", route).unwrap();
            self.handle = Some(handle);
        }
        if self.handle.is_none() {
            self.handle = self.endpoint.accept();
        }
        let Some(connection) = self.handle.and_then(|h| self.endpoint.connection_mut(h)) else {
            return;
        };
        while let Some(event) = connection.poll() {
            match event {
                ConnectionEvent::Connected if !self.to_write.is_empty() => {
                    for stream in &mut self.streams {
                        *stream = connection.open_stream(now, StreamDirection::Bidirectional);
                    }
                    (self.written_at, self.write_at) = (Some(now), Some(now));
                }
                // Opened in any order on the wire: the lower identifier is the first stream.
                ConnectionEvent::StreamOpened(stream) => {
                    self.streams[usize::from(stream != StreamId(0))] = Some(stream);
                }
                ConnectionEvent::Closed(reason) => self.failure = Some(reason.to_string()),
                _ => {}
            }
        }
        if let Some(at) = self.write_at.filter(|at| *at <= now) {
            if let Some((stream, bytes)) = self.to_write.pop_front() {
                let data = bytes::Bytes::from(vec![0; bytes as usize]);
                connection.write(now, self.streams[stream].unwrap(), data).unwrap();
            }
            self.write_at = (!self.to_write.is_empty()).then_some(at + GAP);
        }
        for (index, stream) in self.streams.iter().enumerate() {
            let (Some(stream), false) = (*stream, self.ends.is_empty()) else { continue };
            let mut count = 0;
            let _ = connection.read(now, stream, &mut |bytes| count += bytes.len() as u64);
            self.read[index] += count;
        }
        for (stream, end, at) in &mut self.ends {
            if at.is_none() && self.read[*stream] >= *end {
                *at = Some(now);
            }
        }
    }
}

impl Node for Host {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        let route = Route { local: envelope.local, remote: envelope.remote };
        self.endpoint.handle_datagram(now, Arrival { route, ecn: envelope.ecn }, payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.advance(now);
        self.endpoint.poll_transmit(now, &mut SimOutbox(out));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.endpoint.poll_timeout(), self.write_at].into_iter().flatten().min()
    }
}

/// The times of the page's objects by stream, from the writing to the last byte.
fn load(page: u64, policy: &str) -> [Vec<u64>; 2] {
    let objects = objects(page);
    let seed = Seed::new(1).child("page", page);
    let (here, there): (SocketAddr, SocketAddr) = (address(1, 0, 50_000), address(2, 0, 443));
    let route = Route { local: here, remote: there };
    let mut world = World::new(WorldConfig::new(seed));
    let [ours, theirs] = [0, 1].map(|side| seed.child("side", side));
    let client = world.add_node(Host::client(ours, factory(policy), route, &objects));
    let server = world.add_node(Host::server(theirs, factory(policy), &objects));
    let link = LinkConfig::new(Rate::from_mbit_per_sec(1), Duration::from_millis(5));
    let [near, far] =
        [(client, here), (server, there)].map(|(node, address)| Interface { node, address });
    world.add_path(near, far, &link, &link).unwrap();
    let limit = Instant::ZERO + Duration::from_secs(1_000);
    let end = world
        .run_while(limit, |world| {
            world.node(client).failure.is_none() && !world.node(server).has_all()
        })
        .unwrap();
    assert_eq!((end, &world.node(client).failure), (RunEnd::Condition, &None), "page {page}");
    let start = world.node(client).written_at.unwrap();
    let mut times = [Vec::new(), Vec::new()];
    for (stream, _, at) in &world.node(server).ends {
        times[*stream].push((at.unwrap() - start).as_nanos());
    }
    times
}

/// Medians over the objects of all pages of the first and the second stream, in seconds.
fn medians(policy: &str) -> [f64; 2] {
    let mut all = [Vec::new(), Vec::new()];
    for page in 0..PAGES {
        for (all, times) in all.iter_mut().zip(load(page, policy)) {
            all.extend(times);
        }
    }
    all.map(|times| median(&times).unwrap() as f64 / 1e9)
}

#[test]
fn pfifo_makes_the_first_stream_faster_and_the_second_a_little_slower() {
    let fifo = medians("fifo");
    let pfifo = medians("pfifo");
    println!("medians of the first and second stream: fifo {fifo:.3?} s, pfifo {pfifo:.3?} s");
    let [first, second] = [pfifo[0] / fifo[0], pfifo[1] / fifo[1]];
    assert!((0.05..=0.60).contains(&first), "first stream: {first:.3}");
    assert!((1.0..=1.40).contains(&second), "second stream: {second:.3}");
}
