//! Every registered combination of policies keeps the rules of the seam on the real engine, and the
//! engine keeps them towards the policies.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use quipu_base::{Bytes, Duration, Instant, PathId, Rate, Role, Seed, StreamDirection, StreamId};
use quipu_link::{LinkConfig, Outage};
use quipu_null_tls::{NullClient, NullServer};
use quipu_policy::registry::{Domain, Entry, SpecError};
use quipu_policy::{Layer, NodeId, PathKey, PriorityEdit, Registry};
use quipu_quic::endpoint::{ClientConfig, ServerConfig};
use quipu_quic::{
    Arrival, Connection, ConnectionEvent, ConnectionHandle, Drain, Endpoint, Outbox, Route,
    Transmit, TransportConfig,
};
use quipu_sim::{Envelope, Interface, Node, Outgoing, RunEnd, World, WorldConfig};
use quipu_testkit::{ALPN, Account, SERVER_NAME, SimOutbox, Watch, client_address, server_address};

/// Bytes that the server sends on each stream.
const SIZES: [usize; 12] =
    [0, 1, 90_000, 500, 1_200, 60_000, 3_000, 8_000, 120_000, 40_000, 20_000, 30_000];
/// Streams that the client opens at once; each that ends makes room for the next.
const AT_ONCE: usize = 8;
/// The stream that the server gives up when the first of all has ended.
const GIVEN_UP: usize = 5;

/// Paths with what happens to them, and receive windows.
struct Network {
    paths: Vec<LinkConfig>,
    connection_window: u64,
    stream_window: u64,
    /// The server abandons the first path once the third is up.
    abandons: bool,
}

fn link(mbit: u64, one_way_millis: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(mbit), Duration::from_millis(one_way_millis))
        .with_loss(0.02)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn networks() -> [Network; 6] {
    let wide = |paths| Network {
        paths,
        connection_window: 15 << 20,
        stream_window: 6 << 20,
        abandons: false,
    };
    let cut = Outage::for_good(at(200));
    let pause = Outage::between(at(160), at(900));
    [
        wide(vec![link(20, 10)]),
        wide(vec![link(20, 10), link(5, 40)]),
        wide(vec![link(20, 10), link(5, 40), link(10, 20)]),
        // The handshake's path stays: it may take a second if its first packets are lost.
        wide(vec![link(5, 30), link(20, 10).with_outage(cut)]),
        Network {
            paths: vec![link(20, 10), link(5, 30).with_outage(pause), link(10, 20)],
            connection_window: 50_000,
            stream_window: 20_000,
            abandons: false,
        },
        Network { abandons: true, ..wide(vec![link(20, 10), link(5, 40), link(10, 20)]) },
    ]
}

/// An end of a connection with many streams: the client asks, the server answers.
struct Peer {
    role: Role,
    endpoint: Endpoint,
    handle: Option<ConnectionHandle>,
    paths: u8,
    /// Datagrams of a path that the outbox takes at once.
    batch: usize,
    opened: usize,
    /// Bytes read, and whether the stream ended, by stream.
    read: BTreeMap<StreamId, (usize, bool)>,
    /// Streams whose bytes the peer has, or that were given up.
    finished: usize,
    given_up: bool,
    abandons: bool,
    wrong: bool,
}

fn octet(stream: StreamId, at: usize) -> u8 {
    (at as u64 * 7 + stream.0) as u8
}

fn number(stream: StreamId) -> usize {
    stream.index() as usize
}

impl Peer {
    fn new(role: Role, watch: &Watch, network: &Network, batch: usize) -> Self {
        let mut endpoint = Endpoint::new(Seed::new(3).stream("endpoint", role as u64));
        let transport = Arc::new(TransportConfig {
            connection_window: Bytes(network.connection_window),
            stream_window: Bytes(network.stream_window),
            ..TransportConfig::default()
        });
        let policies = watch.policies();
        let handle = if role == Role::Server {
            let tls = Arc::new(NullServer::new(&[ALPN]).unwrap());
            endpoint.listen(ServerConfig { tls, transport, policies, max_connections: 1 }).unwrap();
            None
        } else {
            let tls = Arc::new(NullClient::new(&[ALPN]).unwrap());
            let route = Route { local: client_address(0), remote: server_address() };
            let client = ClientConfig { tls, transport, policies };
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
        }
    }

    fn is_done(&self) -> bool {
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
                        let route = Route { local: client_address(path), remote: server_address() };
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
                        assert!(connection.abandon_path(now, PathId(0)));
                    }
                }
                ConnectionEvent::Finished(_) => {
                    self.finished += 1;
                    if self.role == Role::Server && !std::mem::replace(&mut self.given_up, true) {
                        let stream = StreamId(GIVEN_UP as u64 * 4);
                        self.finished += usize::from(connection.reset(now, stream, 7).is_ok());
                        reorder(connection, now);
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

/// An outbox that takes so many datagrams of each path.
struct Batches<'a, 'b> {
    out: SimOutbox<'a, 'b>,
    left: [usize; 32],
}

impl Outbox for Batches<'_, '_> {
    fn has_room(&self, path: PathKey) -> bool {
        self.left[path.index()] > 0
    }

    fn buffer(&mut self, size: usize) -> &mut [u8] {
        self.out.buffer(size)
    }

    fn send(&mut self, transmit: Transmit) {
        self.left[transmit.path.index()] -= 1;
        self.out.send(transmit);
    }
}

impl Node for Peer {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        let route = Route { local: envelope.local, remote: envelope.remote };
        self.endpoint.handle_datagram(now, Arrival { route, ecn: envelope.ecn }, payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.advance(now);
        loop {
            let mut batches = Batches { out: SimOutbox(out), left: [self.batch; 32] };
            if self.endpoint.poll_transmit(now, &mut batches) == Drain::Rest {
                return;
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }
}

/// All that a run came to, of client and server.
type Outcome = Vec<Account>;

/// Loads all streams with policies chosen by `text`; panics if anything is against the rules.
fn run(text: &str, network: &Network, seed: u64, batch: usize) -> Result<Outcome, SpecError> {
    let watch = Watch::new(text)?;
    let mut world = World::new(WorldConfig::new(Seed::new(seed)));
    let client = world.add_node(Peer::new(Role::Client, &watch, network, batch));
    let server = world.add_node(Peer::new(Role::Server, &watch, network, batch));
    for (index, link) in network.paths.iter().enumerate() {
        let address = client_address(u8::try_from(index).unwrap());
        let here = Interface { node: client, address };
        let there = Interface { node: server, address: server_address() };
        world.add_path(here, there, link, link).unwrap();
    }
    let end = world
        .run_while(at(60_000), |world| {
            !(world.node(client).is_done() && world.node(server).is_done())
        })
        .unwrap();
    let accounts = watch.accounts();
    for account in &accounts {
        assert_eq!((&account.findings[..], account.more_findings), (&[][..], 0), "{text}");
    }
    assert_eq!(end, RunEnd::Condition, "{text}: unfinished at {}", world.now());
    // What was declared lost may be on its way again though it has arrived.
    world.run_until(world.now() + Duration::from_secs(1)).unwrap();
    let accounts = watch.accounts();
    for account in &accounts {
        assert_eq!(account.findings, Vec::<String>::new(), "{text}");
        assert_eq!((account.committed, account.open_streams), (Bytes::ZERO, 0), "{text}");
        assert!(account.at_rest, "{text}: events came after the last rest");
        assert!(account.decisions > 0, "{text}");
    }
    for id in [client, server] {
        let peer = world.node(id);
        let connection = peer.endpoint.connection(peer.handle.unwrap()).unwrap();
        let counters = connection.scheduler_counters();
        assert_eq!((counters.refused, counters.overridden), (0, 0), "{text}");
        assert!(!peer.wrong, "{text}: other bytes arrived than were sent");
    }
    for (&stream, &(read, _)) in &world.node(client).read {
        let expected = SIZES[number(stream)];
        let complete = read == expected || (number(stream) == GIVEN_UP && read < expected);
        assert!(complete, "{text}: {read} bytes of {expected} on {stream}");
    }
    Ok(accounts)
}

/// The policy with its defaults, and with every other value of its switches and modes.
fn variants(entry: &Entry) -> Vec<String> {
    let mut texts = vec![entry.name.to_owned()];
    for param in &entry.params {
        let values: Vec<String> = match param.domain {
            Domain::Flag => vec!["true".to_owned(), "false".to_owned()],
            Domain::Choice(names) => names[1..].iter().map(|&name| name.to_owned()).collect(),
            _ => continue,
        };
        let variant = |value| format!("{}:{}={value}", entry.name, param.name);
        texts.extend(values.iter().map(variant));
    }
    texts
}

fn registered(layer: Layer) -> Vec<String> {
    let registry = Registry::builtin();
    registry.of(layer).flat_map(variants).collect()
}

/// Runs each over all networks and returns how many there are; parts that exclude each other are
/// not counted.
fn try_all(texts: &[String]) -> usize {
    let mut tried = 0;
    for (seed, text) in (0..).zip(texts) {
        for network in &networks() {
            match run(text, network, seed, 40) {
                Ok(_) => tried += 1,
                Err(SpecError::Conflict { .. }) => {}
                Err(error) => unreachable!("{text}: {error}"),
            }
        }
    }
    tried / networks().len()
}

#[test]
fn every_pair_conforms_with_lost_bytes_at_their_rank() {
    every_pair_conforms("rank");
}

#[test]
fn every_pair_conforms_with_lost_bytes_first() {
    every_pair_conforms("first");
}

fn every_pair_conforms(resend: &str) {
    let (streams, paths) = (registered(Layer::Stream), registered(Layer::Path));
    let mut texts = Vec::new();
    for stream in &streams {
        for path in &paths {
            texts.push(format!("stream={stream} path={path} resend={resend}"));
        }
    }
    let tried = try_all(&texts);
    assert!(tried * 10 >= texts.len() * 7, "{tried} of {} pairs", texts.len());
}

#[test]
fn every_policy_conforms_over_every_network() {
    let mut texts: Vec<String> = Vec::new();
    for (layer, rest) in [
        (Layer::Stream, "path=pats pack=many"),
        (Layer::Path, "stream=wrr"),
        (Layer::Joint, ""),
        (Layer::Reinject, "path=ecf"),
        (Layer::Ack, "path=path-rr"),
        (Layer::Congestion, "path=pats"),
    ] {
        texts.extend(registered(layer).iter().map(|text| format!("{layer}={text} {rest}")));
    }
    assert!(try_all(&texts) * 10 >= texts.len() * 7);
}

#[test]
fn the_networks_bring_losses_suspicions_and_waits() {
    for (index, network) in networks().iter().enumerate() {
        let servers = (0..10).map(|seed| run("path=ecf", network, seed, 40).unwrap()[1].clone());
        let [mut requeued, mut waits, mut suspicions] = [0; 3];
        for server in servers {
            requeued += server.requeued;
            waits += server.waits;
            suspicions += server.suspicions;
        }
        assert!(requeued > 0, "network {index}");
        assert!(!(1..3).contains(&index) || waits > 0, "network {index}");
        assert!(!(3..5).contains(&index) || suspicions > 2, "network {index}: {suspicions}");
    }
}

#[test]
fn copies_come_from_those_that_declare_them() {
    let network = &networks()[2];
    let copies = |text| run(text, network, 5, 40).unwrap()[1].copies;
    assert_eq!(copies("path=minrtt"), 0);
    assert!(copies("path=redundant") > 0);
    assert!(copies("path=pats reinject=redundant") > 0);
}

#[test]
fn the_same_seed_gives_the_same_decisions() {
    let network = &networks()[4];
    for path in registered(Layer::Path) {
        let text = format!("stream=wrr path={path}");
        let accounts = run(&text, network, 5, 40).unwrap();
        assert_eq!(run(&text, network, 5, 40).unwrap(), accounts, "{text}");
        assert_ne!(run(&text, network, 6, 40).unwrap()[1].hash, accounts[1].hash, "{text}");
    }
}

#[test]
fn the_size_of_batches_never_changes_the_decisions() {
    let paths = registered(Layer::Path).into_iter().map(|path| format!("stream=dwrr path={path}"));
    let acks = registered(Layer::Ack).into_iter().map(|ack| format!("path=path-rr ack={ack}"));
    let texts: Vec<String> = paths.chain(acks).collect();
    for (index, network) in networks().iter().enumerate() {
        for text in &texts {
            let seed = index as u64;
            let hashes = [1, 40].map(|batch| {
                let accounts = run(text, network, seed, batch).unwrap();
                accounts.iter().map(|it| (it.hash, it.decisions)).collect::<Vec<_>>()
            });
            assert_eq!(hashes[0], hashes[1], "{text} over network {index}");
        }
    }
}
