//! The two ends of a run.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use quipu_base::{Bytes, Duration, Instant, PathId, Role, Seed, StreamDirection, StreamId};
use quipu_null_tls::{NullClient, NullServer};
use quipu_policy::{NodeId, PriorityEdit};
use quipu_quic::endpoint::{ClientConfig, ServerConfig};
use quipu_quic::error::ErrorCode;
use quipu_quic::{
    Arrival, Connection, ConnectionEvent, ConnectionHandle, Drain, Endpoint, Outbox, Route,
    Transmit, TransportConfig,
};
use quipu_sim::{Envelope, Node, Outgoing};
use quipu_testkit::{ALPN, SERVER_NAME, SimOutbox, Strict, Watch, client_address, server_address};

use super::Network;

/// Bytes that the server sends on each stream.
pub(super) const SIZES: [usize; 12] =
    [0, 1, 90_000, 500, 1_200, 60_000, 3_000, 8_000, 120_000, 40_000, 20_000, 30_000];
/// Streams that the client opens at once; each that ends makes room for the next.
const AT_ONCE: usize = 8;
/// So many streams end between one change of policies and the next.
const ENDS_PER_SWAP: usize = 3;
/// The stream that the server gives up when the first of all has ended.
pub(super) const GIVEN_UP: usize = 5;

/// An end of a connection with many streams: the client asks, the server answers.
pub(super) struct Peer {
    role: Role,
    pub(super) endpoint: Endpoint,
    pub(super) handle: Option<ConnectionHandle>,
    paths: u8,
    /// Datagrams of a path that the outbox takes at once.
    batch: usize,
    opened: usize,
    /// Bytes read, and whether the stream ended, by stream.
    pub(super) read: BTreeMap<StreamId, (usize, bool)>,
    /// Streams whose bytes the peer has, or that were given up.
    finished: usize,
    given_up: bool,
    abandons: bool,
    pub(super) wrong: bool,
    watch: Watch,
    /// Policies that take over one after the other.
    pub(super) successors: VecDeque<String>,
    swaps: usize,
}

fn octet(stream: StreamId, at: usize) -> u8 {
    (at as u64 * 7 + stream.0) as u8
}

pub(super) fn number(stream: StreamId) -> usize {
    stream.index() as usize
}

impl Peer {
    /// `successors`: choices of policies that take over in mid-run, in order.
    pub(super) fn new(
        role: Role,
        watch: &Watch,
        network: &Network,
        batch: usize,
        successors: &[String],
    ) -> Self {
        let mut endpoint = Endpoint::seeded(Seed::new(3).stream("endpoint", role as u64));
        let transport = Arc::new(TransportConfig {
            connection_window: Bytes(network.connection_window),
            stream_window: Bytes(network.stream_window),
            ..TransportConfig::default()
        });
        let policies = watch.policies();
        let handle = if role == Role::Server {
            let tls = Arc::new(NullServer::new(&[ALPN]).unwrap());
            endpoint.listen(ServerConfig::new(tls, transport, policies)).unwrap();
            None
        } else {
            let tls = Arc::new(NullClient::new(&[ALPN]).unwrap());
            let route = Route::new(client_address(0), server_address());
            let client = ClientConfig::new(tls, transport, policies);
            Some(endpoint.connect(Instant::ZERO, &client, SERVER_NAME, route).unwrap())
        };
        Peer {
            role,
            endpoint,
            handle,
            paths: u8::try_from(network.paths.len()).unwrap(),
            batch,
            opened: 0,
            read: BTreeMap::new(),
            finished: 0,
            given_up: false,
            abandons: network.abandons,
            wrong: false,
            watch: watch.clone(),
            successors: successors.iter().cloned().collect(),
            swaps: 0,
        }
    }

    /// True if every stream ended in both directions.
    pub(super) fn is_done(&self) -> bool {
        let ended = self.read.values().filter(|(_, end)| *end).count();
        ended == SIZES.len() && self.finished == SIZES.len()
    }

    fn advance(&mut self, now: Instant) {
        if self.handle.is_none() {
            self.handle = self.endpoint.accept();
        }
        let Some(handle) = self.handle else { return };
        while let Some(connection) = self.endpoint.connection_mut(handle)
            && let Some(event) = connection.poll()
        {
            match event {
                ConnectionEvent::Connected if self.role == Role::Client => {
                    for _ in 0..AT_ONCE {
                        self.opened += usize::from(ask(connection, now));
                    }
                }
                ConnectionEvent::Confirmed if self.role == Role::Client => {
                    for path in 1..self.paths {
                        let route = Route::new(client_address(path), server_address());
                        connection.open_path(now, route).unwrap();
                    }
                }
                ConnectionEvent::StreamOpened(stream) => {
                    self.read.entry(stream).or_default();
                    answer(connection, now, stream);
                }
                ConnectionEvent::Readable(stream) => {
                    let (at, ended) = self.read.entry(stream).or_default();
                    let wrong = &mut self.wrong;
                    let read = connection.read(now, stream, &mut |octets| {
                        let differs = |(i, &o): (usize, &u8)| o != octet(stream, *at + i);
                        *wrong |= octets.iter().enumerate().any(differs);
                        *at += octets.len();
                    });
                    *ended |= read.is_ok_and(|read| read.end);
                    if *ended && self.role == Role::Client && self.opened < SIZES.len() {
                        self.opened += usize::from(ask(connection, now));
                    }
                }
                ConnectionEvent::Reset(stream, _) => {
                    self.read.entry(stream).or_default().1 = true;
                }
                ConnectionEvent::PathUp(PathId(2)) if self.abandons => {
                    self.abandons = false;
                    if self.role == Role::Server {
                        assert!(connection.abandon_path(
                            now,
                            PathId(0),
                            ErrorCode::APPLICATION_ABANDON_PATH
                        ));
                    }
                }
                ConnectionEvent::Finished(_) => {
                    self.finished += 1;
                    if self.role == Role::Server && !std::mem::replace(&mut self.given_up, true) {
                        let stream = StreamId(GIVEN_UP as u64 * 4);
                        self.finished += usize::from(connection.reset(now, stream, 7).is_ok());
                        reorder(connection, now);
                    }
                    if self.finished >= ENDS_PER_SWAP * (self.swaps + 1)
                        && let Some(text) = self.successors.pop_front()
                    {
                        self.swaps += 1;
                        // The client's policies are made first.
                        let end = usize::from(self.role == Role::Server);
                        let policies = self.watch.replace(end, &text).unwrap();
                        connection.set_policies(now, policies);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Opens a stream with a short request.
fn ask(connection: &mut Connection, now: Instant) -> bool {
    let stream = connection.open_stream(now, StreamDirection::Bidirectional).unwrap();
    let request: Vec<u8> = (0..30).map(|at| octet(stream, at)).collect();
    connection.write(now, stream, request.into()).unwrap();
    connection.finish(now, stream).is_ok()
}

/// Answers with the stream's bytes, in two writes, with a place in the tree of priorities.
fn answer(connection: &mut Connection, now: Instant, stream: StreamId) {
    let number = number(stream);
    let node = NodeId(number as u64 + 1);
    let parent = match number % 4 {
        0 => NodeId::ROOT,
        _ => NodeId(number as u64),
    };
    let weight = [16, 256, 100, 1][number % 4];
    let exclusive = number == 8;
    let size = Bytes(SIZES[number] as u64);
    let urgency = PriorityEdit::Urgency {
        stream,
        urgency: (number % 8) as u8,
        incremental: number.is_multiple_of(2),
    };
    let latency = Duration::from_millis(100 * (number as u64 + 1));
    let edits = [
        // The parent's request may come later than its child's: the root takes the child then.
        PriorityEdit::Insert { node, parent, weight, exclusive },
        PriorityEdit::Insert { node, parent: NodeId::ROOT, weight, exclusive: false },
        PriorityEdit::Attach { node, stream },
        urgency,
        PriorityEdit::Deadline { stream, latency },
    ];
    for edit in edits {
        let _ = connection.edit_priority(now, edit);
    }
    if number.is_multiple_of(3) {
        connection.edit_priority(now, PriorityEdit::Size { stream, size }).unwrap();
    }
    let bytes: Vec<u8> = (0..SIZES[number]).map(|at| octet(stream, at)).collect();
    let (front, back) = bytes.split_at(bytes.len() / 3);
    connection.write(now, stream, front.to_vec().into()).unwrap();
    connection.write(now, stream, back.to_vec().into()).unwrap();
    connection.finish(now, stream).unwrap();
}

/// Changes the tree while streams are being sent.
fn reorder(connection: &mut Connection, now: Instant) {
    let moved = NodeId(3);
    let edits = [
        PriorityEdit::Move { node: moved, parent: NodeId(5), weight: 40, exclusive: false },
        PriorityEdit::Weight { node: NodeId(7), weight: 200 },
        PriorityEdit::Remove { node: NodeId(1) },
    ];
    for edit in edits {
        // The nodes are there only if their requests have come.
        let _ = connection.edit_priority(now, edit);
    }
}

/// An outbox that takes so many datagrams at a time.
struct Batches<'a, 'b> {
    out: SimOutbox<'a, 'b>,
    left: usize,
}

impl Outbox for Batches<'_, '_> {
    fn has_room(&self) -> bool {
        self.left > 0
    }

    fn buffer(&mut self, size: usize) -> &mut [u8] {
        self.out.buffer(size)
    }

    fn send(&mut self, transmit: Transmit) {
        self.left -= 1;
        self.out.send(transmit);
    }
}

impl Node for Peer {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        let route = Route::new(envelope.local, envelope.remote);
        self.endpoint.handle_datagram(now, Arrival { route, ecn: envelope.ecn }, payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.advance(now);
        loop {
            let batches = Batches { out: SimOutbox(out), left: self.batch };
            let mut outbox = Strict::new(batches);
            if self.endpoint.poll_transmit(now, &mut outbox) != Drain::Full {
                return;
            }
            assert!(outbox.has_refused(), "stopped at {now} although there was room");
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }
}
