//! What the two ends tell their applications.

use quipu_base::StreamId;

use super::{ConnectionError, ErrorCode, Failure, FrameStreamId};
use crate::field::FieldList;

/// What happened at the client's end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The server promises a response that it will send unasked, on `stream`. What the client does not
    /// want, or what the server has no authority over, is to be [cancelled](super::Client::cancel).
    Promised {
        /// The request whose response refers to it.
        request: StreamId,
        /// The stream that the response will come on.
        stream: StreamId,
        /// All fields of the request that it answers; GET or HEAD.
        fields: FieldList,
    },
    /// The head of a response. Call [`Client::on_stream_readable`](super::Client::on_stream_readable) for the stream after this event: its
    /// body may have come before.
    ResponseHead {
        /// The stream that [`Client::request`](super::Client::request) returned, or that was promised.
        stream: StreamId,
        /// Status code, 200 to 999.
        status: u16,
        /// All fields, the status included.
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
    /// The server takes no more requests on this connection. Those above `last_stream` without a
    /// response fail as [refused](Failure::Refused).
    GoAway {
        /// The last request that the server may answer.
        last_stream: FrameStreamId,
        /// Why.
        code: ErrorCode,
    },
    /// The connection cannot go on. Close it with the error's code.
    ConnectionFailed(ConnectionError),
}

/// What happened at the server's end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// The head of a request. Call [`Server::on_stream_readable`](super::Server::on_stream_readable) for the stream after this event: its
    /// body may have come before.
    RequestHead {
        /// The stream, for the response.
        stream: StreamId,
        /// All fields, pseudo-header fields first.
        fields: FieldList,
        /// Whether the body is empty, so that there is nothing to wait for.
        end_stream: bool,
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
    /// The client takes no more pushed responses, and is about to close.
    GoAway {
        /// Why.
        code: ErrorCode,
    },
    /// The connection cannot go on. Close it with the error's code.
    ConnectionFailed(ConnectionError),
}

impl ClientEvent {
    /// The stream that the event is about.
    pub(super) fn stream(&self) -> Option<StreamId> {
        match self {
            ClientEvent::Promised { stream, .. }
            | ClientEvent::ResponseHead { stream, .. }
            | ClientEvent::ResponseFinished { stream }
            | ClientEvent::ResponseFailed { stream, .. }
            | ClientEvent::UploadStopped { stream, .. } => Some(*stream),
            ClientEvent::GoAway { .. } | ClientEvent::ConnectionFailed(_) => None,
        }
    }
}

impl ServerEvent {
    /// The stream that the event is about.
    pub(super) fn stream(&self) -> Option<StreamId> {
        match self {
            ServerEvent::RequestHead { stream, .. }
            | ServerEvent::RequestFinished { stream }
            | ServerEvent::RequestFailed { stream, .. }
            | ServerEvent::ResponseStopped { stream, .. } => Some(*stream),
            ServerEvent::GoAway { .. } | ServerEvent::ConnectionFailed(_) => None,
        }
    }
}
