//! What the ends of both versions have in common.

mod code;
mod h2;
mod h3;

use bytes::Bytes;
use http::Version;
use quipu_base::StreamId;
use quipu_http::field::FieldList;
use quipu_http::h2::StreamPriority;
use quipu_http::h3::{BodyError, ErrorCode, Failure, Settings, TableUse};
use quipu_http::transport::quic::QuicStreams;
use quipu_quic::ConnectionEvent;

use super::error::Http3Error;
use crate::engine::Calls;

/// The streams of a connection while it is called.
pub(super) type Streams<'a, 'c> = QuicStreams<'a, Calls<'c>>;

/// What happened at an end.
pub(super) enum News {
    /// The head of a request, or of a response with its status.
    Head {
        stream: StreamId,
        status: u16,
        fields: FieldList,
    },
    /// What precedes a response.
    Informational {
        stream: StreamId,
        status: u16,
        fields: FieldList,
    },
    Trailers {
        stream: StreamId,
        fields: FieldList,
    },
    Finished {
        stream: StreamId,
    },
    Failed {
        stream: StreamId,
        failure: Failure,
    },
    /// The peer wants no more of what this end sends.
    Stopped {
        stream: StreamId,
        code: ErrorCode,
    },
    /// The connection is to be closed with that code.
    ConnectionFailed {
        code: u64,
        error: Http3Error,
    },
}

/// An end of HTTP. Error codes are those of HTTP/3; HTTP/2 has others, which mean the same.
pub(super) trait End: Send + 'static {
    fn version(&self) -> Version;

    /// What closes a connection without an error.
    fn no_error(&self) -> u64;

    /// To be called once, before anything else.
    fn start(&mut self, streams: &mut Streams<'_, '_>) -> Result<(), Http3Error>;

    /// Tells it of an event of the connection, unless that is about a body.
    fn pass(&mut self, streams: &mut Streams<'_, '_>, event: &ConnectionEvent);

    /// Reads `most` octets of a body at most.
    fn read(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        most: u64,
        sink: &mut dyn FnMut(&[u8]),
    ) -> u64;

    fn poll(&mut self) -> Option<News>;

    /// Requests that the peer's own limit leaves room for, if there is one beside the transport's.
    fn free(&self) -> u64 {
        u64::MAX
    }

    fn table_use(&self) -> TableUse {
        TableUse::default()
    }

    fn send_body(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        octets: Bytes,
    ) -> Result<usize, BodyError>;

    /// Trailers are dropped where the version has none.
    fn finish(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        trailers: Option<&FieldList>,
    ) -> Result<(), BodyError>;

    fn abandon(&mut self, streams: &mut Streams<'_, '_>, stream: StreamId, code: ErrorCode);

    /// Nobody has the exchange any more; whether this end's message is complete.
    fn drop_exchange(&mut self, streams: &mut Streams<'_, '_>, stream: StreamId, is_sent: bool);
}

/// A request to send.
pub(super) struct Outgoing<'a> {
    pub(super) fields: &'a FieldList,
    pub(super) has_body: bool,
    /// Its place in the dependency tree, which HTTP/3 does not have.
    pub(super) place: Option<StreamPriority>,
}

/// A client's end.
pub(super) trait ClientEnd: End {
    /// Sends a request; `None` if no stream is free.
    fn request(
        &mut self,
        streams: &mut Streams<'_, '_>,
        request: &Outgoing<'_>,
    ) -> Result<Option<StreamId>, Http3Error>;

    fn update_priority(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        urgency: quipu_policy::Urgency,
    ) -> Result<(), Http3Error>;

    /// Another place in the dependency tree for a request.
    fn place(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        place: StreamPriority,
    ) -> Result<(), Http3Error>;

    fn peer_settings(&self) -> Option<Settings>;
}

/// A server's end.
pub(super) trait ServerEnd: End {
    /// Status 1xx before a response; nothing where the version has none.
    fn inform(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        fields: &FieldList,
    ) -> Result<(), Http3Error>;

    fn respond(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        fields: &FieldList,
        has_body: bool,
    ) -> Result<(), Http3Error>;

    fn go_away(&mut self, streams: &mut Streams<'_, '_>);

    fn active(&self) -> usize;
}

/// A body that is said to be there, or not.
fn body(has_body: bool) -> quipu_http::exchange::Body {
    use quipu_http::exchange::Body;
    if has_body { Body::Streamed } else { Body::Empty }
}
