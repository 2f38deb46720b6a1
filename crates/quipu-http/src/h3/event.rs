//! What the two ends tell their applications.

use bytes::Bytes;
use quipu_base::StreamId;

use super::{ConnectionError, Failure};
use crate::field::FieldList;

/// What happened at the client's end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The server stated what it is ready for: see [`Client::peer_settings`](super::Client::peer_settings).
    Settings,
    /// A response before the response: status 1xx. More come, or the head.
    Informational {
        /// The stream.
        stream: StreamId,
        /// Status code, 100 to 199.
        status: u16,
        /// All fields, the status included.
        fields: FieldList,
    },
    /// The head of a response. Call [`Client::on_stream_readable`](super::Client::on_stream_readable)
    /// for the stream after this event: its body may have come before.
    ResponseHead {
        /// The stream that [`Client::request`](super::Client::request) returned.
        stream: StreamId,
        /// Status code, 200 to 999.
        status: u16,
        /// All fields, the status included.
        fields: FieldList,
    },
    /// The fields behind the body of a response.
    Trailers {
        /// The stream.
        stream: StreamId,
        /// All of them.
        fields: FieldList,
    },
    /// A response is complete; its body was handed over before.
    ResponseFinished {
        /// The stream.
        stream: StreamId,
    },
    /// A response will not be complete. Nothing more comes of the stream.
    ResponseFailed {
        /// The stream.
        stream: StreamId,
        /// Why.
        failure: Failure,
    },
    /// The server does not want the rest of a request's body. The response goes on.
    UploadStopped {
        /// The stream.
        stream: StreamId,
        /// The server's code, below 2^62.
        code: u64,
    },
    /// A datagram for a request.
    Datagram {
        /// Its stream.
        stream: StreamId,
        /// What it says.
        payload: Bytes,
    },
    /// The server takes no more requests on this connection. Those from `first_refused` on fail as
    /// [refused](Failure::Refused).
    GoAway {
        /// The first request that the server does not look at.
        first_refused: StreamId,
    },
    /// The connection cannot go on. Close it with the error's code.
    ConnectionFailed(ConnectionError),
}

/// What happened at the server's end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// The head of a request. Call [`Server::on_stream_readable`](super::Server::on_stream_readable)
    /// for the stream after this event: its body may have come before.
    RequestHead {
        /// The stream, for the response.
        stream: StreamId,
        /// All fields, pseudo-header fields first.
        fields: FieldList,
        /// Whether the end came with the head, so that there is no body. Else it may still be empty.
        end_stream: bool,
    },
    /// The fields behind the body of a request.
    Trailers {
        /// The stream.
        stream: StreamId,
        /// All of them.
        fields: FieldList,
    },
    /// A request is complete; its body was handed over before.
    RequestFinished {
        /// The stream.
        stream: StreamId,
    },
    /// A request will not be complete. It may still be answered, unless it is malformed.
    RequestFailed {
        /// The stream.
        stream: StreamId,
        /// Why.
        failure: Failure,
    },
    /// The client does not want the rest of a response. Not told when the application has handed over
    /// all of it: the transport drops what it has not sent.
    ResponseStopped {
        /// The stream.
        stream: StreamId,
        /// The client's code, below 2^62.
        code: u64,
    },
    /// A datagram for a request.
    Datagram {
        /// Its stream.
        stream: StreamId,
        /// What it says.
        payload: Bytes,
    },
    /// The client is about to close.
    GoAway,
    /// The connection cannot go on. Close it with the error's code.
    ConnectionFailed(ConnectionError),
}

impl ClientEvent {
    /// The stream that the event is about.
    pub(super) const fn stream(&self) -> Option<StreamId> {
        match self {
            ClientEvent::Informational { stream, .. }
            | ClientEvent::ResponseHead { stream, .. }
            | ClientEvent::Trailers { stream, .. }
            | ClientEvent::ResponseFinished { stream }
            | ClientEvent::ResponseFailed { stream, .. }
            | ClientEvent::UploadStopped { stream, .. }
            | ClientEvent::Datagram { stream, .. } => Some(*stream),
            ClientEvent::Settings
            | ClientEvent::GoAway { .. }
            | ClientEvent::ConnectionFailed(_) => None,
        }
    }
}

impl ServerEvent {
    /// The stream that the event is about.
    pub(super) const fn stream(&self) -> Option<StreamId> {
        match self {
            ServerEvent::RequestHead { stream, .. }
            | ServerEvent::Trailers { stream, .. }
            | ServerEvent::RequestFinished { stream }
            | ServerEvent::RequestFailed { stream, .. }
            | ServerEvent::ResponseStopped { stream, .. }
            | ServerEvent::Datagram { stream, .. } => Some(*stream),
            ServerEvent::GoAway | ServerEvent::ConnectionFailed(_) => None,
        }
    }
}
