//! HTTP/2 over QUIC streams: pages of requests over our engine, on one path and on two.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use quipu_base::{Duration, Instant, Rate, Seed, StreamId};
use quipu_http::field::FieldList;
use quipu_http::h2::{
    self, Body, Client, ClientEvent, ErrorCode, FrameStreamId, Limits, Request, Server,
    ServerConfig, ServerEvent, StreamPriority,
};
use quipu_http::transport::quic::{QuicStreams, pass_to_client, pass_to_server};
use quipu_link::LinkConfig;
use quipu_null_tls::{NullClient, NullServer};
use quipu_quic::{
    Arrival, ConnectionEvent, ConnectionHandle, Endpoint, Route, TransportConfig, endpoint,
};
use quipu_sim::{Envelope, Interface, Node, Outgoing, RunEnd, World, WorldConfig};
use quipu_testkit::{
    SERVER_NAME, SimOutbox, Strict, client_address, plain_policies, server_address,
};

/// What a browser asks for: the place of each request in the tree, and the size of the response.
type Page = Vec<(StreamPriority, usize)>;

/// A client or a server with its connection.
struct HttpNode {
    endpoint: Endpoint,
    handle: Option<ConnectionHandle>,
    paths: u8,
    end: End,
    page: Page,
    /// Streams in the order of their ends.
    finished: Vec<StreamId>,
    /// Octets of bodies, by number of request.
    received: Vec<usize>,
    wrong: bool,
}

enum End {
    Client { client: Client, cancel: Option<usize> },
    Server(Server),
}

fn octet(stream: StreamId, at: usize) -> u8 {
    (at as u64 * 7 + stream.0) as u8
}

fn number(stream: StreamId) -> usize {
    stream.index() as usize - 1
}

impl HttpNode {
    fn new(end: End, paths: u8, page: &Page) -> Self {
        let seed = if matches!(end, End::Server(_)) { 1 } else { 2 };
        let mut endpoint = Endpoint::seeded(Seed::new(seed).stream("endpoint", 0));
        let transport = Arc::new(TransportConfig::default());
        let handle = match end {
            End::Server(_) => {
                let tls = Arc::new(NullServer::new(&[h2::ALPN]).unwrap());
                let server = endpoint::ServerConfig::new(tls, transport, plain_policies());
                endpoint.listen(server).unwrap();
                None
            }
            End::Client { .. } => {
                let tls = Arc::new(NullClient::new(&[h2::ALPN]).unwrap());
                let client = endpoint::ClientConfig::new(tls, transport, plain_policies());
                let route = Route::new(client_address(0), server_address());
                Some(endpoint.connect(Instant::ZERO, &client, SERVER_NAME, route).unwrap())
            }
        };
        HttpNode {
            endpoint,
            handle,
            paths,
            end,
            page: page.clone(),
            finished: Vec::new(),
            received: vec![0; page.len()],
            wrong: false,
        }
    }

    fn advance(&mut self, now: Instant) {
        if self.handle.is_none() {
            self.handle = self.endpoint.accept();
        }
        let Some(connection) = self.handle.and_then(|h| self.endpoint.connection_mut(h)) else {
            return;
        };
        let mut streams = QuicStreams { connection, now };
        let (received, wrong) = (&mut self.received, &mut self.wrong);
        let mut sink = |stream: StreamId, octets: &[u8]| {
            let at = &mut received[number(stream)];
            *wrong |= octets.iter().enumerate().any(|(i, &o)| o != octet(stream, *at + i));
            *at += octets.len();
        };
        while let Some(event) = streams.connection.poll() {
            match &mut self.end {
                End::Client { client, cancel } => {
                    match event {
                        ConnectionEvent::Connected => ask(client, &mut streams, &self.page),
                        ConnectionEvent::Confirmed => {
                            for path in 1..self.paths {
                                let local = client_address(path);
                                let route = Route::new(local, server_address());
                                streams.connection.open_path(now, route).unwrap();
                            }
                        }
                        _ => pass_to_client(client, &mut streams, &event, &mut sink),
                    }
                    while let Some(event) = client.poll() {
                        match event {
                            ClientEvent::ResponseHead { stream, status: 200, .. } => {
                                if *cancel == Some(number(stream)) {
                                    client.cancel(&mut streams, stream, ErrorCode::CANCEL);
                                }
                                client.on_stream_readable(&mut streams, stream, &mut sink);
                            }
                            ClientEvent::ResponseFinished { stream } => self.finished.push(stream),
                            other => panic!("{other:?}"),
                        }
                    }
                }
                End::Server(server) => {
                    pass_to_server(server, &mut streams, &event, &mut sink);
                    while let Some(event) = server.poll() {
                        match event {
                            ServerEvent::RequestHead { stream, end_stream: true, .. } => {
                                let size = self.page[number(stream)].1;
                                let body: Vec<u8> = (0..size).map(|at| octet(stream, at)).collect();
                                let fields = FieldList::new().with(":status", "200");
                                let body = Body::Whole(body.into());
                                server.respond(&mut streams, stream, &fields, body).unwrap();
                                server.on_stream_readable(&mut streams, stream, now, &mut sink);
                            }
                            ServerEvent::RequestFinished { .. } => {}
                            other => panic!("{other:?}"),
                        }
                    }
                }
            }
        }
        if let End::Server(server) = &mut self.end {
            server.handle_timeout(&mut streams, now);
        }
    }
}

/// Sends the whole page's requests.
fn ask(client: &mut Client, streams: &mut QuicStreams<'_>, page: &Page) {
    let group = |id| FrameStreamId::from_wire(id);
    let place = |weight| StreamPriority { weight, ..StreamPriority::default() };
    client.start(streams, &[(group(3), place(201)), (group(5), place(101))]).unwrap();
    for (number, &(priority, _)) in page.iter().enumerate() {
        let fields = FieldList::new()
            .with(":method", "GET")
            .with(":scheme", "https")
            .with(":authority", SERVER_NAME)
            .with(":path", format!("/{number}"));
        let request = Request { fields, body: Body::Empty, priority: Some(priority) };
        client.request(streams, request).unwrap();
    }
}

impl Node for HttpNode {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        let route = Route::new(envelope.local, envelope.remote);
        self.endpoint.handle_datagram(now, Arrival { route, ecn: envelope.ecn }, payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.advance(now);
        self.endpoint.poll_transmit(now, &mut Strict::new(SimOutbox(out)));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let nodes = match &self.end {
            End::Server(server) => server.poll_timeout(),
            End::Client { .. } => None,
        };
        [self.endpoint.poll_timeout(), nodes].into_iter().flatten().min()
    }
}

/// Runs a page over `paths` until all responses but the cancelled one have come, and on for a second.
fn load(page: &Page, paths: &[LinkConfig], cancel: Option<usize>) -> [HttpNode; 2] {
    let count = u8::try_from(paths.len()).unwrap();
    let mut world = World::new(WorldConfig::new(Seed::new(7)));
    let client = End::Client { client: Client::new(Limits::default()), cancel };
    let server = End::Server(Server::new(ServerConfig::default()));
    let client = world.add_node(HttpNode::new(client, count, page));
    let server = world.add_node(HttpNode::new(server, count, page));
    for (path, link) in (0..count).zip(paths) {
        let here = Interface { node: client, address: client_address(path) };
        let there = Interface { node: server, address: server_address() };
        world.add_path(here, there, link, link).unwrap();
    }
    let expected = page.len() - usize::from(cancel.is_some());
    let limit = Instant::ZERO + Duration::from_secs(60);
    let end = world.run_while(limit, |world| world.node(client).finished.len() < expected).unwrap();
    assert_eq!(end, RunEnd::Condition, "at {}", world.now());
    world.run_until(world.now() + Duration::from_secs(1)).unwrap();
    let (nodes, _) = world.into_parts();
    nodes.try_into().ok().unwrap()
}

fn path(mbit: u64, one_way_millis: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(mbit), Duration::from_millis(one_way_millis))
}

fn page(sizes: impl IntoIterator<Item = usize>) -> Page {
    let place = |number: usize| StreamPriority {
        parent: FrameStreamId::from_wire([3, 5][number % 2]),
        weight: 32,
        exclusive: false,
    };
    sizes.into_iter().enumerate().map(|(number, size)| (place(number), size)).collect()
}

fn assert_complete(nodes: &[HttpNode; 2], page: &Page) {
    let [client, server] = nodes;
    assert!(!client.wrong);
    assert_eq!(client.received, page.iter().map(|&(_, size)| size).collect::<Vec<_>>());
    let (End::Client { client, .. }, End::Server(server)) = (&client.end, &server.end) else {
        panic!("a client and a server");
    };
    assert_eq!((client.active(), server.active()), (0, 0));
    // All nodes of the tree are gone but the two groups.
    assert_eq!(server.poll_timeout(), None);
}

#[test]
fn a_page_arrives_over_one_path() {
    let page = page((0..60).map(|number| number * 1500));
    assert_complete(&load(&page, &[path(20, 20)], None), &page);
}

#[test]
fn a_page_arrives_over_two_lossy_paths() {
    let page = page((0..60).map(|number| number * 1500));
    let paths = [path(20, 20).with_loss(0.02), path(5, 60).with_loss(0.02)];
    assert_complete(&load(&page, &paths, None), &page);
}

#[test]
fn a_cancelled_response_stops() {
    let page = page([3_000_000, 100_000, 50_000]);
    let nodes = load(&page, &[path(10, 10)], Some(0));
    assert!(nodes[0].received[0] < 1_000_000);
    assert_eq!(nodes[0].received[1..], [100_000, 50_000]);
    let server = nodes[1].handle.and_then(|handle| nodes[1].endpoint.connection(handle)).unwrap();
    assert_eq!(server.unsent(), quipu_base::Bytes::ZERO);
}
