//! A peer that says anything: raw streams against an end of ours.

use bytes::Bytes;
use quipu_base::{Instant, Role, StreamId};
use quipu_http::field::FieldList;
use quipu_http::h3::frame::{kind, put_frame, put_varint};
use quipu_http::h3::{
    Client, ClientConfig, ClientEvent, ErrorCode, Request, Server, ServerConfig, ServerEvent,
};
use quipu_http::qpack;
use quipu_http::transport::Transport as _;

use crate::loopback::{Loopback, Notice};
use crate::session::get;

pub(crate) const CONTROL: u64 = 0;
pub(crate) const ENCODER: u64 = 2;
pub(crate) const DECODER: u64 = 3;

/// One end of ours, and a peer that writes octets.
pub(crate) struct Raw {
    pub(crate) loopback: Loopback,
    end: Ours,
    /// What the end of ours told.
    pub(crate) failed: Option<ErrorCode>,
    pub(crate) client_events: Vec<ClientEvent>,
    pub(crate) server_events: Vec<ServerEvent>,
    /// What the peer was told: streams that were stopped or reset.
    pub(crate) refusals: Vec<(StreamId, u64)>,
    pub(crate) body: Vec<u8>,
}

enum Ours {
    Client(Client),
    Server(Server),
}

impl Raw {
    /// A server of ours before a raw client.
    pub(crate) fn client(config: ServerConfig) -> Raw {
        Raw::new(Ours::Server(Server::new(config)))
    }

    /// A client of ours before a raw server; its first request is on stream 0.
    pub(crate) fn server(config: ClientConfig) -> Raw {
        let mut raw = Raw::new(Ours::Client(Client::new(config)));
        raw.request(get("/"));
        raw
    }

    fn new(end: Ours) -> Raw {
        Raw {
            loopback: Loopback::new(),
            end,
            failed: None,
            client_events: Vec::new(),
            server_events: Vec::new(),
            refusals: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(crate) fn request(&mut self, fields: FieldList) -> StreamId {
        let Ours::Client(client) = &mut self.end else { panic!("a server asks for nothing") };
        client.start(&mut self.loopback.client).unwrap();
        let request = Request { fields, ..Request::default() };
        client.request(&mut self.loopback.client, request).unwrap()
    }

    pub(crate) fn peer(&mut self) -> &mut crate::loopback::End {
        match self.end {
            Ours::Client(_) => &mut self.loopback.server,
            Ours::Server(_) => &mut self.loopback.client,
        }
    }

    /// The peer opens a unidirectional stream of that kind.
    pub(crate) fn uni(&mut self, kind: u64, octets: &[u8]) -> StreamId {
        let stream = self.peer().open_unidirectional().unwrap();
        let mut out = Vec::new();
        put_varint(kind, &mut out);
        out.extend_from_slice(octets);
        self.write(stream, &out);
        stream
    }

    /// The peer opens a bidirectional stream.
    pub(crate) fn bidi(&mut self, octets: &[u8]) -> StreamId {
        let stream = self.peer().open().unwrap();
        self.write(stream, octets);
        stream
    }

    pub(crate) fn write(&mut self, stream: StreamId, octets: &[u8]) {
        self.peer().write(stream, Bytes::copy_from_slice(octets)).unwrap();
        self.settle();
    }

    pub(crate) fn finish(&mut self, stream: StreamId) {
        // What was refused is over already.
        let _ = self.peer().finish(stream);
        self.settle();
    }

    pub(crate) fn reset(&mut self, stream: StreamId) {
        let _ = self.peer().reset(stream, 0x10c);
        self.settle();
    }

    /// The peer stops a stream of ours.
    pub(crate) fn stop(&mut self, stream: StreamId) {
        self.peer().stop_sending(stream, 0x10c).unwrap();
        self.settle();
    }

    /// The end of ours, a server, abandons a stream.
    pub(crate) fn reset_ours(&mut self, stream: StreamId) {
        if let Ours::Server(server) = &mut self.end {
            server.reset(&mut self.loopback.server, stream, ErrorCode::INTERNAL_ERROR);
        }
        self.settle();
    }

    /// Delivers all there is, small pieces first.
    pub(crate) fn settle(&mut self) {
        let mut choice = 1u64;
        loop {
            choice = choice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // One to sixteen octets at a time, so that each frame is cut somewhere.
            let Some(notices) = self.loopback.deliver(choice & !0xffff_ffff | (choice >> 20 & 15))
            else {
                break;
            };
            for (role, notice) in notices {
                self.notify(role, notice);
            }
        }
    }

    fn notify(&mut self, role: Role, notice: Notice) {
        let body = &mut self.body;
        let mut sink = |_: StreamId, octets: &[u8]| body.extend_from_slice(octets);
        let readable = match (&mut self.end, role) {
            (Ours::Client(client), Role::Client) => {
                let transport = &mut self.loopback.client;
                match notice {
                    Notice::Readable(stream) => {
                        client.on_stream_readable(transport, stream, &mut sink);
                    }
                    Notice::Stopped(stream, code) => client.on_stream_stopped(stream, code),
                    Notice::Reset(stream, code) => {
                        client.on_stream_reset(transport, stream, code);
                    }
                    Notice::Delivered(_) => {}
                }
                let mut readable = Vec::new();
                while let Some(event) = client.poll() {
                    match &event {
                        ClientEvent::ResponseHead { stream, .. } => readable.push(*stream),
                        ClientEvent::ConnectionFailed(error) => self.failed = Some(error.code()),
                        _ => {}
                    }
                    self.client_events.push(event);
                }
                readable
            }
            (Ours::Server(server), Role::Server) => {
                let (transport, now) = (&mut self.loopback.server, Instant::ZERO);
                match notice {
                    Notice::Readable(stream) => {
                        server.on_stream_readable(transport, stream, now, &mut sink);
                    }
                    Notice::Stopped(stream, code) => server.on_stream_stopped(stream, code, now),
                    Notice::Reset(stream, code) => {
                        server.on_stream_reset(transport, stream, code, now);
                    }
                    Notice::Delivered(_) => {}
                }
                let mut readable = Vec::new();
                while let Some(event) = server.poll() {
                    match &event {
                        ServerEvent::RequestHead { stream, .. } => readable.push(*stream),
                        ServerEvent::ConnectionFailed(error) => self.failed = Some(error.code()),
                        _ => {}
                    }
                    self.server_events.push(event);
                }
                readable
            }
            // What the raw peer hears.
            _ => {
                if let Notice::Stopped(stream, code) | Notice::Reset(stream, code) = notice {
                    self.refusals.push((stream, code));
                }
                Vec::new()
            }
        };
        for stream in readable {
            self.notify(role, Notice::Readable(stream));
        }
    }

    /// The streams of the end of ours that live as long as the connection.
    pub(crate) fn own_critical(&self) -> [StreamId; 3] {
        let first = match self.end {
            Ours::Client(_) => 2,
            Ours::Server(_) => 3,
        };
        [StreamId(first), StreamId(first + 4), StreamId(first + 8)]
    }

    /// Whether a stream was refused with that code in both directions, or in the only one.
    pub(crate) fn is_refused(&self, stream: StreamId, code: ErrorCode) -> bool {
        self.refusals.contains(&(stream, code.0))
    }
}

/// A frame.
pub(crate) fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_frame(kind, payload, &mut out);
    out
}

/// A field section without the dynamic table.
pub(crate) fn section(fields: &FieldList) -> Vec<u8> {
    let mut out = Vec::new();
    qpack::Encoder::new(0).encode(StreamId(0), fields, &mut out);
    out
}

/// A HEADERS frame without the dynamic table.
pub(crate) fn headers(fields: &FieldList) -> Vec<u8> {
    frame(kind::HEADERS, &section(fields))
}

/// SETTINGS with these identifiers and values.
pub(crate) fn settings(values: &[(u64, u64)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for &(id, value) in values {
        put_varint(id, &mut payload);
        put_varint(value, &mut payload);
    }
    frame(kind::SETTINGS, &payload)
}
