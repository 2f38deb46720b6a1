//! The client's end.

use bytes::Bytes;
use quipu_base::{Role, StreamDirection, StreamId};
use quipu_http::field::FieldList;
use quipu_http::h2::{self, FrameStreamId, Numbering, StreamPriority};
use quipu_http::h3;
use quipu_http::transport::quic::{self, Carrier as _};
use quipu_policy::Urgency;
use quipu_quic::ConnectionEvent;
use quipu_scenario::{HttpVersion, Priorities, Push, Scenario};
use quipu_web::scheme::{Change, Dependency, PhantomNode, Signal};

use super::streams;
use crate::run::wire::{Wire, numbering};

/// Pushed responses that the browser takes at a time: our choice, more than the objects of any page that comes
/// with the program. What is beyond is requested.
const MOST_PUSHED: u32 = 1_000;

/// The client's end of either version.
pub(in crate::run) enum ClientEnd {
    H2 {
        client: Box<h2::Client>,
        numbering: Numbering,
        /// How the browser says what is urgent.
        priorities: Priorities,
    },
    H3(Box<h3::Client>),
}

/// What happened at the client's end.
pub(in crate::run) enum ClientNews {
    /// The server promised a response on a stream.
    Promised(StreamId, FieldList),
    /// The head of a response came.
    Head(StreamId),
    /// A response is complete.
    Finished(StreamId),
    /// A response, or the connection, failed.
    Failed(String),
}

/// Why a request was not sent.
pub(in crate::run) enum Refusal {
    /// No stream is free: later.
    NoStream,
    /// Anything else.
    Failed(String),
}

impl ClientEnd {
    pub(in crate::run) fn new(scenario: &Scenario, http: HttpVersion) -> ClientEnd {
        if http == HttpVersion::H3 {
            return ClientEnd::H3(Box::new(h3::Client::new(h3::ClientConfig::default())));
        }
        let numbering = numbering(http);
        let client = h2::Client::new(h2::Limits::default()).with_numbering(numbering);
        let client = match scenario.push {
            Push::None => client,
            _ => client.with_push(MOST_PUSHED),
        };
        let client = match scenario.priorities {
            Priorities::Tree => client,
            Priorities::Urgency => client.with_urgencies(),
        };
        let priorities = scenario.priorities;
        ClientEnd::H2 { client: Box::new(client), numbering, priorities }
    }

    /// How the browser says what is urgent.
    pub(in crate::run) fn priorities(&self) -> Priorities {
        match self {
            ClientEnd::H2 { priorities, .. } => *priorities,
            ClientEnd::H3(_) => Priorities::Urgency,
        }
    }

    /// The stream of the first request.
    pub(in crate::run) fn first_stream(&self) -> StreamId {
        match self {
            ClientEnd::H2 { numbering, .. } => numbering.first(),
            ClientEnd::H3(_) => StreamId::new(Role::Client, StreamDirection::Bidirectional, 0),
        }
    }

    /// The stream of the request after that on `stream`.
    pub(in crate::run) fn next_stream(&self, stream: StreamId) -> StreamId {
        match self {
            ClientEnd::H2 { numbering, .. } => numbering.next(stream),
            ClientEnd::H3(_) => {
                let next = stream.index() + 1;
                StreamId::new(Role::Client, StreamDirection::Bidirectional, next)
            }
        }
    }

    /// What the browser's scheme calls a stream: what frames do, and in HTTP/3 what those of HTTP/2
    /// over streams would, so that the first is no root.
    pub(in crate::run) fn node(&self, stream: StreamId) -> StreamId {
        match self {
            ClientEnd::H2 { numbering, .. } => {
                let id = FrameStreamId::of(stream, *numbering);
                id.map_or(stream, |id| StreamId(u64::from(id.value())))
            }
            ClientEnd::H3(_) => StreamId(stream.0 + 4),
        }
    }

    /// Starts on a connection that is there; `phantoms` are nodes that never carry data.
    pub(in crate::run) fn start(
        &mut self,
        wire: &mut Wire<'_>,
        phantoms: &[PhantomNode],
    ) -> Result<(), String> {
        match self {
            ClientEnd::H2 { client, .. } => {
                let groups: Vec<_> = phantoms.iter().filter_map(group).collect();
                client.start(wire, &groups).map_err(|error| error.to_string())
            }
            ClientEnd::H3(client) => {
                client.start(streams(wire)?).map_err(|error| error.to_string())
            }
        }
    }

    /// Passes an event of the connection on. Bodies go to `sink`.
    pub(in crate::run) fn pass(
        &mut self,
        wire: &mut Wire<'_>,
        event: &ConnectionEvent,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) {
        match self {
            ClientEnd::H2 { client, .. } => wire.pass_to_client(client, event, sink),
            ClientEnd::H3(client) => {
                if let Ok(streams) = streams(wire) {
                    quic::h3::pass_to_client(client, streams, event, sink);
                }
            }
        }
    }

    /// Reads what came of the body of a response whose head was told.
    pub(in crate::run) fn read(
        &mut self,
        wire: &mut Wire<'_>,
        stream: StreamId,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) {
        match self {
            ClientEnd::H2 { client, .. } => client.on_stream_readable(wire, stream, sink),
            ClientEnd::H3(client) => {
                if let Ok(streams) = streams(wire) {
                    client.on_stream_readable(streams, stream, sink);
                }
            }
        }
    }

    /// What happened.
    pub(in crate::run) fn poll(&mut self) -> Option<ClientNews> {
        match self {
            ClientEnd::H2 { client, .. } => loop {
                use h2::ClientEvent as Event;
                return Some(match client.poll()? {
                    Event::Promised { stream, fields, .. } => ClientNews::Promised(stream, fields),
                    Event::ResponseHead { stream, .. } => ClientNews::Head(stream),
                    Event::ResponseFinished { stream } => ClientNews::Finished(stream),
                    Event::ResponseFailed { stream, failure } => {
                        ClientNews::Failed(format!("{stream}: {failure}"))
                    }
                    Event::ConnectionFailed(error) => ClientNews::Failed(error.to_string()),
                    _ => continue,
                });
            },
            ClientEnd::H3(client) => loop {
                use h3::ClientEvent as Event;
                return Some(match client.poll()? {
                    Event::ResponseHead { stream, .. } => ClientNews::Head(stream),
                    Event::ResponseFinished { stream } => ClientNews::Finished(stream),
                    Event::ResponseFailed { stream, failure } => {
                        ClientNews::Failed(format!("{stream}: {failure}"))
                    }
                    Event::ConnectionFailed(error) => ClientNews::Failed(error.to_string()),
                    _ => continue,
                });
            },
        }
    }

    /// Sends a request, whose body follows if there is one; `signal` is its place in the tree.
    pub(in crate::run) fn request(
        &mut self,
        wire: &mut Wire<'_>,
        fields: FieldList,
        has_body: bool,
        signal: Signal,
    ) -> Result<StreamId, Refusal> {
        match self {
            ClientEnd::H2 { client, .. } => {
                let body = if has_body { h2::Body::Streamed } else { h2::Body::Empty };
                let priority = Some(priority(signal.into()));
                client.request(wire, h2::Request { fields, body, priority }).map_err(|error| {
                    match error {
                        h2::RequestError::NoStream => Refusal::NoStream,
                        error => Refusal::Failed(error.to_string()),
                    }
                })
            }
            ClientEnd::H3(client) => {
                let body = if has_body { h3::Body::Streamed } else { h3::Body::Empty };
                let streams = streams(wire).map_err(|error| Refusal::Failed(error.to_owned()))?;
                client.request(streams, h3::Request { fields, body }).map_err(|error| match error {
                    h3::RequestError::NoStream => Refusal::NoStream,
                    error => Refusal::Failed(error.to_string()),
                })
            }
        }
    }

    /// Sends the body of a request, in parts.
    pub(in crate::run) fn send_body(
        &mut self,
        wire: &mut Wire<'_>,
        stream: StreamId,
        mut parts: impl Iterator<Item = Bytes>,
    ) -> Result<(), String> {
        // Connections of the laboratory take all that is written.
        let sent = match self {
            ClientEnd::H2 { client, .. } => parts
                .try_for_each(|part| client.send_body(wire, stream, part).map(|_| ()))
                .and_then(|()| client.finish(wire, stream)),
            ClientEnd::H3(client) => {
                let streams = streams(wire)?;
                parts
                    .try_for_each(|part| client.send_body(streams, stream, part).map(|_| ()))
                    .and_then(|()| client.finish(streams, stream, None))
            }
        };
        sent.map_err(|error| error.to_string())
    }

    /// Does not want what was promised, since the server has no authority over it or for another reason.
    pub(in crate::run) fn decline(
        &mut self,
        wire: &mut Wire<'_>,
        stream: StreamId,
        has_authority: bool,
    ) {
        if let ClientEnd::H2 { client, .. } = self {
            // https://www.rfc-editor.org/rfc/rfc9113#section-8.4
            //# A client MUST treat a PUSH_PROMISE for which the server is not authoritative as a
            //# stream error (Section 5.4.2) of type PROTOCOL_ERROR.
            let code =
                if has_authority { h2::ErrorCode::CANCEL } else { h2::ErrorCode::PROTOCOL_ERROR };
            client.cancel(wire, stream, code);
        }
    }

    /// Says how urgent a promised response is.
    pub(in crate::run) fn place(
        &mut self,
        wire: &mut Wire<'_>,
        stream: StreamId,
        signal: Signal,
    ) -> Result<(), String> {
        let node = self.node(stream);
        match self {
            ClientEnd::H2 { client, priorities: Priorities::Tree, .. } => {
                let node = FrameStreamId::try_from(node).unwrap_or_default();
                let told = client.prioritise(wire, node, priority(signal.into()));
                told.map_err(|error| error.to_string())
            }
            _ => self.update_urgency(
                wire,
                stream,
                Urgency { level: signal.urgency, incremental: signal.incremental },
            ),
        }
    }

    /// Says what has become more urgent, or less.
    pub(in crate::run) fn reprioritise(
        &mut self,
        wire: &mut Wire<'_>,
        stream: StreamId,
        change: Change,
    ) -> Result<(), String> {
        match self {
            ClientEnd::H2 { client, priorities: Priorities::Tree, .. } => {
                for (moved, place) in change.places {
                    let node = FrameStreamId::try_from(moved).unwrap_or_default();
                    let told = client.prioritise(wire, node, priority(place));
                    told.map_err(|error| error.to_string())?;
                }
                Ok(())
            }
            _ => match change.urgency {
                Some((level, incremental)) => {
                    self.update_urgency(wire, stream, Urgency { level, incremental })
                }
                None => Ok(()),
            },
        }
    }

    fn update_urgency(
        &mut self,
        wire: &mut Wire<'_>,
        stream: StreamId,
        urgency: Urgency,
    ) -> Result<(), String> {
        match self {
            ClientEnd::H2 { client, .. } => {
                client.update_priority(wire, stream, urgency).map_err(|error| error.to_string())
            }
            ClientEnd::H3(client) => client
                .update_priority(streams(wire)?, stream, urgency)
                .map_err(|error| error.to_string()),
        }
    }
}

fn priority(place: Dependency) -> StreamPriority {
    StreamPriority {
        parent: FrameStreamId::try_from(place.parent).unwrap_or_default(),
        weight: place.weight,
        exclusive: place.exclusive,
    }
}

/// A node that never carries data.
fn group(phantom: &PhantomNode) -> Option<(FrameStreamId, StreamPriority)> {
    let id = FrameStreamId::try_from(phantom.id).ok()?;
    let parent = FrameStreamId::try_from(phantom.parent).ok()?;
    Some((id, StreamPriority { parent, weight: phantom.weight, exclusive: false }))
}
