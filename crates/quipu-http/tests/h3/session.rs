//! A client and a server on a loopback, driven as a runtime would drive them.

use std::collections::BTreeMap;

use quipu_base::{Duration, Instant, Role, StreamId};
use quipu_http::field::FieldList;
use quipu_http::h3::{
    Body, Client, ClientConfig, ClientEvent, Request, Server, ServerConfig, ServerEvent,
};

use crate::loopback::{Loopback, Notice};

pub(crate) const FIRST: StreamId = StreamId(0);

pub(crate) struct Session {
    pub(crate) loopback: Loopback,
    pub(crate) client: Client,
    pub(crate) server: Server,
    pub(crate) client_events: Vec<ClientEvent>,
    pub(crate) server_events: Vec<ServerEvent>,
    /// Bodies received.
    pub(crate) responses: BTreeMap<StreamId, Vec<u8>>,
    pub(crate) requests: BTreeMap<StreamId, Vec<u8>>,
    pub(crate) now: Instant,
    random: u64,
}

impl Session {
    /// A connection that has not started.
    pub(crate) fn idle(seed: u64, client: ClientConfig, server: ServerConfig) -> Self {
        Session {
            loopback: Loopback::new(),
            client: Client::new(client),
            server: Server::new(server),
            client_events: Vec::new(),
            server_events: Vec::new(),
            responses: BTreeMap::new(),
            requests: BTreeMap::new(),
            now: Instant::ZERO,
            random: seed.wrapping_mul(2) + 1,
        }
    }

    /// A connection whose client has started, with all default settings.
    pub(crate) fn started(seed: u64) -> Self {
        Session::with(seed, ClientConfig::default(), ServerConfig::default())
    }

    /// A connection whose client has started.
    pub(crate) fn with(seed: u64, client: ClientConfig, server: ServerConfig) -> Self {
        let mut session = Session::idle(seed, client, server);
        session.client.start(&mut session.loopback.client).unwrap();
        session
    }

    /// The next number of a xorshift generator.
    pub(crate) fn choice(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Delivers one piece, and lets the ends work on it. False if there was none.
    pub(crate) fn step(&mut self) -> bool {
        let choice = self.choice();
        let Some(notices) = self.loopback.deliver(choice) else { return false };
        for (role, notice) in notices {
            match role {
                Role::Client => self.notify_client(notice),
                Role::Server => self.notify_server(notice),
            }
        }
        true
    }

    /// Delivers everything.
    pub(crate) fn settle(&mut self) {
        while self.step() {
            self.now += Duration::from_micros(10);
        }
        assert!(self.loopback.is_idle());
    }

    pub(crate) fn notify_client(&mut self, notice: Notice) {
        let (transport, bodies) = (&mut self.loopback.client, &mut self.responses);
        let heads = &self.client_events;
        let mut sink = |stream: StreamId, octets: &[u8]| {
            let told = |event: &ClientEvent| matches!(event, ClientEvent::ResponseHead { stream: s, .. } if *s == stream);
            assert!(heads.iter().any(told), "a body before its head");
            bodies.entry(stream).or_default().extend_from_slice(octets);
        };
        match notice {
            Notice::Readable(stream) => {
                self.client.on_stream_readable(transport, stream, &mut sink);
            }
            Notice::Stopped(stream, code) => self.client.on_stream_stopped(stream, code),
            Notice::Reset(stream, code) => self.client.on_stream_reset(transport, stream, code),
            Notice::Delivered(_) => {}
        }
        self.take_client_events();
    }

    pub(crate) fn take_client_events(&mut self) {
        while let Some(event) = self.client.poll() {
            let head = match &event {
                ClientEvent::ResponseHead { stream, .. } => Some(*stream),
                _ => None,
            };
            self.client_events.push(event);
            if let Some(stream) = head {
                self.notify_client(Notice::Readable(stream));
            }
        }
    }

    pub(crate) fn notify_server(&mut self, notice: Notice) {
        let now = self.now;
        let (transport, bodies) = (&mut self.loopback.server, &mut self.requests);
        let heads = &self.server_events;
        let mut sink = |stream: StreamId, octets: &[u8]| {
            let told = |event: &ServerEvent| matches!(event, ServerEvent::RequestHead { stream: s, .. } if *s == stream);
            assert!(heads.iter().any(told), "a body before its head");
            bodies.entry(stream).or_default().extend_from_slice(octets);
        };
        match notice {
            Notice::Readable(stream) => {
                self.server.on_stream_readable(transport, stream, now, &mut sink);
            }
            Notice::Stopped(stream, code) => self.server.on_stream_stopped(stream, code, now),
            Notice::Reset(stream, code) => {
                self.server.on_stream_reset(transport, stream, code, now);
            }
            Notice::Delivered(_) => {}
        }
        self.take_server_events();
    }

    pub(crate) fn take_server_events(&mut self) {
        while let Some(event) = self.server.poll() {
            let head = match &event {
                ServerEvent::RequestHead { stream, .. } => Some(*stream),
                _ => None,
            };
            self.server_events.push(event);
            if let Some(stream) = head {
                self.notify_server(Notice::Readable(stream));
            }
        }
    }

    pub(crate) fn request(&mut self, request: Request) -> StreamId {
        self.client.request(&mut self.loopback.client, request).unwrap()
    }

    pub(crate) fn get(&mut self, path: &str) -> StreamId {
        self.request(Request { fields: get(path), body: Body::Empty })
    }

    pub(crate) fn respond(&mut self, stream: StreamId, fields: &FieldList, body: Body) {
        self.server.respond(&mut self.loopback.server, stream, fields, body).unwrap();
    }

    /// Whether the server was told of the request's head.
    pub(crate) fn is_asked(&self, stream: StreamId) -> bool {
        self.server_events.iter().any(
            |event| matches!(event, ServerEvent::RequestHead { stream: s, .. } if *s == stream),
        )
    }
}

pub(crate) fn get(path: &str) -> FieldList {
    head("GET", path)
}

pub(crate) fn head(method: &str, path: &str) -> FieldList {
    [(":method", method), (":scheme", "https"), (":authority", "a.example"), (":path", path)]
        .into_iter()
        .collect()
}

pub(crate) fn ok() -> FieldList {
    FieldList::new().with(":status", "200")
}

/// Octets that tell streams and positions apart.
pub(crate) fn body(stream: StreamId, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as u64 * 31 + stream.0) as u8).collect()
}
