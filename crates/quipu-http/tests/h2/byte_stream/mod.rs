//! HTTP/2 over one byte stream: a client and a server whose octets arrive in pieces and at times that
//! the test chooses.

mod exchanges;
mod hostile;
mod push;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quipu_base::{Duration, Instant, Role, StreamId};
use quipu_http::byte_stream::{Config, Framed, Mux, Pipe, pass_to_client, pass_to_server};
use quipu_http::field::FieldList;
use quipu_http::h2::{
    Body, Client, ClientEvent, Limits, Numbering, PushError, Request, Server, ServerConfig,
    ServerEvent,
};
use quipu_http::transport::{ReadState, StreamError};
use quipu_policy::StreamPolicy;
use quipu_policy::stream::RoundRobin;

/// One end of the byte stream.
#[derive(Default)]
struct End {
    unsent: VecDeque<u8>,
    /// Most octets that ever waited.
    most_unsent: usize,
    unread: Vec<u8>,
    ended: bool,
}

impl Pipe for &mut End {
    fn open(&mut self) -> Result<(), StreamError> {
        Ok(())
    }

    fn write(&mut self, data: Bytes) -> Result<(), StreamError> {
        self.unsent.extend(data);
        self.most_unsent = self.most_unsent.max(self.unsent.len());
        Ok(())
    }

    fn unsent(&self) -> quipu_base::Bytes {
        quipu_base::Bytes(self.unsent.len() as u64)
    }

    fn read(&mut self, sink: &mut dyn FnMut(&[u8])) -> Result<ReadState, StreamError> {
        sink(&self.unread);
        self.unread.clear();
        Ok(if self.ended { ReadState::Finished } else { ReadState::Blocked })
    }

    fn round_trip_time(&self) -> Duration {
        Duration::from_millis(50)
    }
}

/// Both ends.
struct Session {
    client: Client,
    server: Server,
    muxes: [Mux; 2],
    ends: [End; 2],
    client_events: Vec<ClientEvent>,
    server_events: Vec<ServerEvent>,
    responses: BTreeMap<StreamId, Vec<u8>>,
    requests: BTreeMap<StreamId, Vec<u8>>,
    /// Streams that the server's mux asked more of.
    drained: Vec<StreamId>,
    now: Instant,
    random: u64,
}

/// Where a role's things are.
fn index(role: Role) -> usize {
    usize::from(role.is_client())
}

impl Session {
    fn new(seed: u64, config: Config, policy: fn() -> Box<dyn StreamPolicy>) -> Self {
        let numbering = Numbering::ByteStream;
        Session {
            client: Client::new(Limits::default()).with_numbering(numbering),
            server: Server::new(ServerConfig { numbering, ..ServerConfig::default() }),
            muxes: [Role::Server, Role::Client].map(|role| Mux::new(role, config, policy())),
            ends: [End::default(), End::default()],
            client_events: Vec::new(),
            server_events: Vec::new(),
            responses: BTreeMap::new(),
            requests: BTreeMap::new(),
            drained: Vec::new(),
            now: Instant::ZERO,
            random: seed.wrapping_mul(2) + 1,
        }
    }

    /// One whose client takes `limit` pushed responses at a time.
    fn with_push(seed: u64, config: Config, limit: u32) -> Self {
        let mut session = Session::new(seed, config, || Box::new(RoundRobin::new()));
        let client = Client::new(Limits::default()).with_numbering(Numbering::ByteStream);
        session.client = client.with_push(limit);
        session.start();
        session
    }

    fn started(seed: u64) -> Self {
        let mut session = Session::new(seed, Config::default(), || Box::new(RoundRobin::new()));
        session.start();
        session
    }

    fn start(&mut self) {
        self.at_client(|client, framed| client.start(framed, &[]).unwrap());
    }

    fn at_client<R>(&mut self, act: impl FnOnce(&mut Client, &mut Framed<'_, &mut End>) -> R) -> R {
        let at = index(Role::Client);
        let (mux, pipe) = (&mut self.muxes[at], &mut self.ends[at]);
        act(&mut self.client, &mut Framed { mux, pipe, now: self.now })
    }

    fn at_server<R>(&mut self, act: impl FnOnce(&mut Server, &mut Framed<'_, &mut End>) -> R) -> R {
        let at = index(Role::Server);
        let (mux, pipe) = (&mut self.muxes[at], &mut self.ends[at]);
        act(&mut self.server, &mut Framed { mux, pipe, now: self.now })
    }

    fn request(&mut self, request: Request) -> StreamId {
        self.at_client(|client, framed| client.request(framed, request)).unwrap()
    }

    fn push(&mut self, request: StreamId, fields: &FieldList) -> Result<StreamId, PushError> {
        self.at_server(|server, framed| server.push(framed, request, fields))
    }

    fn respond(&mut self, stream: StreamId, fields: &FieldList, body: Body) {
        self.at_server(|server, framed| server.respond(framed, stream, fields, body)).unwrap();
    }

    /// Octets from nowhere for an end.
    fn inject(&mut self, to: Role, octets: &[u8]) {
        self.ends[index(to)].unread.extend_from_slice(octets);
        self.notify(to);
    }

    fn choice(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Lets DATA frames go at both ends.
    fn fill(&mut self) {
        self.at_client(|_, framed| framed.fill());
        if self.at_server(|_, framed| framed.fill()) {
            self.notify(Role::Server);
        }
        while let Some(stream) = self.muxes[index(Role::Server)].poll_drained() {
            self.drained.push(stream);
        }
    }

    /// Brings some octets from one end to the other. False if there were none.
    fn step(&mut self) -> bool {
        self.fill();
        let choice = self.choice();
        let full = |role: &Role| !self.ends[index(*role)].unsent.is_empty();
        let ready: Vec<Role> = [Role::Client, Role::Server].into_iter().filter(full).collect();
        let Some(&from) = ready.get((choice >> 32) as usize % ready.len().max(1)) else {
            return false;
        };
        let sender = &mut self.ends[index(from)].unsent;
        let amount = (1 + (choice & 0xffff_ffff) as usize % 3_000).min(sender.len());
        let octets: Vec<u8> = sender.drain(..amount).collect();
        self.inject(from.peer(), &octets);
        true
    }

    /// Delivers everything.
    fn settle(&mut self) {
        while self.step() {
            self.now += Duration::from_micros(10);
        }
    }

    fn notify(&mut self, role: Role) {
        match role {
            Role::Client => self.notify_client(),
            Role::Server => self.notify_server(),
        }
    }

    fn notify_client(&mut self) {
        let mut responses = std::mem::take(&mut self.responses);
        let mut sink = |stream: StreamId, octets: &[u8]| {
            responses.entry(stream).or_default().extend_from_slice(octets);
        };
        let mut events = Vec::new();
        self.at_client(|client, framed| {
            pass_to_client(client, framed, &mut sink);
            while let Some(event) = client.poll() {
                if let ClientEvent::ResponseHead { stream, .. } = event {
                    client.on_stream_readable(framed, stream, &mut sink);
                }
                events.push(event);
            }
        });
        self.responses = responses;
        self.client_events.extend(events);
    }

    fn notify_server(&mut self) {
        let mut requests = std::mem::take(&mut self.requests);
        let mut sink = |stream: StreamId, octets: &[u8]| {
            requests.entry(stream).or_default().extend_from_slice(octets);
        };
        let (mut events, now) = (Vec::new(), self.now);
        self.at_server(|server, framed| {
            pass_to_server(server, framed, &mut sink);
            while let Some(event) = server.poll() {
                if let ServerEvent::RequestHead { stream, .. } = event {
                    server.on_stream_readable(framed, stream, now, &mut sink);
                }
                events.push(event);
            }
        });
        self.requests = requests;
        self.server_events.extend(events);
    }
}
