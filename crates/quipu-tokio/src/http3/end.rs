//! What both ends have in common.

use bytes::Bytes;
use quipu_base::{Instant, StreamId};
use quipu_http::field::FieldList;
use quipu_http::h3::{self, BodyError, Client, ErrorCode, Failure, Server};
use quipu_http::transport::quic::{self, QuicStreams};
use quipu_quic::ConnectionEvent;

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
        code: u64,
    },
    ConnectionFailed(h3::ConnectionError),
}

/// An end of HTTP/3.
pub(super) trait End: Send + 'static {
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

    fn send_body(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        octets: Bytes,
    ) -> Result<usize, BodyError>;

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

impl End for Client {
    fn pass(&mut self, streams: &mut Streams<'_, '_>, event: &ConnectionEvent) {
        match *event {
            ConnectionEvent::Readable(stream) => {
                Client::read(self, streams, stream, 0, &mut |_, _| {});
            }
            ref event => quic::h3::pass_to_client(self, streams, event, &mut |_, _| {}),
        }
    }

    fn read(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        most: u64,
        sink: &mut dyn FnMut(&[u8]),
    ) -> u64 {
        Client::read(self, streams, stream, most, &mut |_, octets| sink(octets))
    }

    fn poll(&mut self) -> Option<News> {
        use h3::ClientEvent as Event;
        loop {
            return Some(match Client::poll(self)? {
                Event::ResponseHead { stream, status, fields } => {
                    News::Head { stream, status, fields }
                }
                Event::Informational { stream, status, fields } => {
                    News::Informational { stream, status, fields }
                }
                Event::Trailers { stream, fields } => News::Trailers { stream, fields },
                Event::ResponseFinished { stream } => News::Finished { stream },
                Event::ResponseFailed { stream, failure } => News::Failed { stream, failure },
                Event::UploadStopped { stream, code } => News::Stopped { stream, code },
                Event::ConnectionFailed(error) => News::ConnectionFailed(error),
                _ => continue,
            });
        }
    }

    fn send_body(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        octets: Bytes,
    ) -> Result<usize, BodyError> {
        Client::send_body(self, streams, stream, octets)
    }

    fn finish(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        trailers: Option<&FieldList>,
    ) -> Result<(), BodyError> {
        Client::finish(self, streams, stream, trailers)
    }

    fn abandon(&mut self, streams: &mut Streams<'_, '_>, stream: StreamId, code: ErrorCode) {
        self.cancel(streams, stream, code);
    }

    fn drop_exchange(&mut self, streams: &mut Streams<'_, '_>, stream: StreamId, _is_sent: bool) {
        self.cancel(streams, stream, ErrorCode::REQUEST_CANCELLED);
    }
}

impl End for Server {
    fn pass(&mut self, streams: &mut Streams<'_, '_>, event: &ConnectionEvent) {
        match *event {
            ConnectionEvent::Readable(stream) => {
                let now: Instant = streams.now;
                Server::read(self, streams, stream, now, 0, &mut |_, _| {});
            }
            ref event => quic::h3::pass_to_server(self, streams, event, &mut |_, _| {}),
        }
    }

    fn read(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        most: u64,
        sink: &mut dyn FnMut(&[u8]),
    ) -> u64 {
        let now = streams.now;
        Server::read(self, streams, stream, now, most, &mut |_, octets| sink(octets))
    }

    fn poll(&mut self) -> Option<News> {
        use h3::ServerEvent as Event;
        loop {
            return Some(match Server::poll(self)? {
                Event::RequestHead { stream, fields, .. } => {
                    News::Head { stream, status: 0, fields }
                }
                Event::Trailers { stream, fields } => News::Trailers { stream, fields },
                Event::RequestFinished { stream } => News::Finished { stream },
                Event::RequestFailed { stream, failure } => News::Failed { stream, failure },
                Event::ResponseStopped { stream, code } => News::Stopped { stream, code },
                Event::ConnectionFailed(error) => News::ConnectionFailed(error),
                _ => continue,
            });
        }
    }

    fn send_body(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        octets: Bytes,
    ) -> Result<usize, BodyError> {
        Server::send_body(self, streams, stream, octets)
    }

    fn finish(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        trailers: Option<&FieldList>,
    ) -> Result<(), BodyError> {
        Server::finish(self, streams, stream, trailers)
    }

    fn abandon(&mut self, streams: &mut Streams<'_, '_>, stream: StreamId, code: ErrorCode) {
        self.reset(streams, stream, code);
    }

    fn drop_exchange(&mut self, streams: &mut Streams<'_, '_>, stream: StreamId, is_sent: bool) {
        if is_sent {
            self.ignore_rest(streams, stream);
        } else {
            self.reset(streams, stream, ErrorCode::INTERNAL_ERROR);
        }
    }
}
