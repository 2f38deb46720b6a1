//! The server's end.

use bytes::Bytes;
use quipu_base::{Instant, StreamId};
use quipu_http::field::FieldList;
use quipu_http::h2;
use quipu_http::h3;
use quipu_http::transport::quic::{self, Carrier as _};
use quipu_quic::ConnectionEvent;
use quipu_scenario::{HttpVersion, Priorities, Scenario};

use super::streams;
use crate::run::wire::{Wire, numbering};

/// The server's end of either version.
pub(in crate::run) enum ServerEnd {
    H2(Box<h2::Server>),
    H3(Box<h3::Server>),
}

/// What happened at the server's end.
pub(in crate::run) enum ServerNews {
    /// The head of a request came; whether that was all of it.
    Head(StreamId, FieldList, bool),
    /// A request is complete.
    Finished(StreamId),
    /// The client does not want the rest of a response.
    Stopped(StreamId),
    /// A request, or the connection, failed.
    Failed(String),
}

impl ServerEnd {
    pub(in crate::run) fn new(scenario: &Scenario, http: HttpVersion) -> ServerEnd {
        let max_requests = scenario.transport.request_limit;
        if http == HttpVersion::H3 {
            let config = h3::ServerConfig { max_requests, ..h3::ServerConfig::default() };
            return ServerEnd::H3(Box::new(h3::Server::new(config)));
        }
        ServerEnd::H2(Box::new(h2::Server::new(h2::ServerConfig {
            numbering: numbering(http),
            urgencies_only: scenario.priorities == Priorities::Urgency,
            max_requests,
            ..h2::ServerConfig::default()
        })))
    }

    /// HTTP/2's, over one byte stream or over many.
    pub(in crate::run) fn h2(&mut self) -> Option<&mut h2::Server> {
        match self {
            ServerEnd::H2(server) => Some(server),
            ServerEnd::H3(_) => None,
        }
    }

    /// When [`ServerEnd::handle_timeout`] is due.
    pub(in crate::run) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            ServerEnd::H2(server) => server.poll_timeout(),
            ServerEnd::H3(_) => None,
        }
    }

    /// Does what is due.
    pub(in crate::run) fn handle_timeout(&mut self, wire: &mut Wire<'_>, now: Instant) {
        if let ServerEnd::H2(server) = self {
            server.handle_timeout(wire, now);
        }
    }

    /// Passes an event of the connection on; what requests' bodies hold changes nothing.
    pub(in crate::run) fn pass(&mut self, wire: &mut Wire<'_>, event: &ConnectionEvent) {
        match self {
            ServerEnd::H2(server) => wire.pass_to_server(server, event, &mut |_, _| {}),
            ServerEnd::H3(server) => {
                if let Ok(streams) = streams(wire) {
                    quic::h3::pass_to_server(server, streams, event, &mut |_, _| {});
                }
            }
        }
    }

    /// Reads what came of the body of a request whose head was told.
    pub(in crate::run) fn read(&mut self, wire: &mut Wire<'_>, stream: StreamId) {
        let now = wire.now();
        match self {
            ServerEnd::H2(server) => server.on_stream_readable(wire, stream, now, &mut |_, _| {}),
            ServerEnd::H3(server) => {
                if let Ok(streams) = streams(wire) {
                    server.on_stream_readable(streams, stream, now, &mut |_, _| {});
                }
            }
        }
    }

    /// What happened.
    pub(in crate::run) fn poll(&mut self) -> Option<ServerNews> {
        match self {
            ServerEnd::H2(server) => loop {
                use h2::ServerEvent as Event;
                return Some(match server.poll()? {
                    Event::RequestHead { stream, fields, end_stream } => {
                        ServerNews::Head(stream, fields, end_stream)
                    }
                    Event::RequestFinished { stream } => ServerNews::Finished(stream),
                    Event::ResponseStopped { stream, .. } => ServerNews::Stopped(stream),
                    Event::RequestFailed { stream, failure } => {
                        ServerNews::Failed(format!("{stream}: {failure}"))
                    }
                    Event::ConnectionFailed(error) => ServerNews::Failed(error.to_string()),
                    _ => continue,
                });
            },
            ServerEnd::H3(server) => loop {
                use h3::ServerEvent as Event;
                return Some(match server.poll()? {
                    Event::RequestHead { stream, fields, end_stream } => {
                        ServerNews::Head(stream, fields, end_stream)
                    }
                    Event::RequestFinished { stream } => ServerNews::Finished(stream),
                    Event::ResponseStopped { stream, .. } => ServerNews::Stopped(stream),
                    Event::RequestFailed { stream, failure } => {
                        ServerNews::Failed(format!("{stream}: {failure}"))
                    }
                    Event::ConnectionFailed(error) => ServerNews::Failed(error.to_string()),
                    _ => continue,
                });
            },
        }
    }

    /// Promises the answer to a request that was not made; `None` if the client takes no more.
    pub(in crate::run) fn push(
        &mut self,
        wire: &mut Wire<'_>,
        stream: StreamId,
        fields: &FieldList,
    ) -> Result<Option<StreamId>, String> {
        match self {
            ServerEnd::H2(server) => match server.push(wire, stream, fields) {
                Ok(promised) => Ok(Some(promised)),
                Err(h2::PushError::NoStream) => Ok(None),
                Err(error) => Err(error.to_string()),
            },
            ServerEnd::H3(_) => Err("nothing is pushed over HTTP/3".to_owned()),
        }
    }

    /// Sends the head of an answer, whose body follows if there is one.
    pub(in crate::run) fn respond(
        &mut self,
        wire: &mut Wire<'_>,
        stream: StreamId,
        fields: &FieldList,
        has_body: bool,
    ) -> Result<(), String> {
        let body = if has_body { h2::Body::Streamed } else { h2::Body::Empty };
        match self {
            ServerEnd::H2(server) => {
                server.respond(wire, stream, fields, body).map_err(|error| error.to_string())
            }
            ServerEnd::H3(server) => server
                .respond(streams(wire)?, stream, fields, body)
                .map_err(|error| error.to_string()),
        }
    }

    /// Sends more of an answer's body, in parts; `last` ends it.
    pub(in crate::run) fn send_body(
        &mut self,
        wire: &mut Wire<'_>,
        stream: StreamId,
        mut parts: impl Iterator<Item = Bytes>,
        last: bool,
    ) -> Result<(), String> {
        let sent = match self {
            ServerEnd::H2(server) => parts
                .try_for_each(|part| server.send_body(wire, stream, part).map(|_| ()))
                .and_then(|()| if last { server.finish(wire, stream) } else { Ok(()) }),
            ServerEnd::H3(server) => {
                let streams = streams(wire)?;
                parts
                    .try_for_each(|part| server.send_body(streams, stream, part).map(|_| ()))
                    .and_then(|()| if last { server.finish(streams, stream, None) } else { Ok(()) })
            }
        };
        sent.map_err(|error| error.to_string())
    }
}
