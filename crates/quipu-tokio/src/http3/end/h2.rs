//! The ends of HTTP/2 over QUIC streams.

use bytes::Bytes;
use http::Version;
use quipu_base::StreamId;
use quipu_http::field::FieldList;
use quipu_http::h2::{
    BodyError, CONTROL_STREAM, Client, ClientEvent, ConnectionError, ErrorCode, FrameStreamId,
    Request, RequestError, Server, ServerEvent, StreamPriority,
};
use quipu_http::h3;
use quipu_http::transport::quic;
use quipu_policy::Urgency;
use quipu_quic::ConnectionEvent;

use super::code::{of_http2, to_http2};
use super::{ClientEnd, End, News, Outgoing, ServerEnd, Streams, body};
use crate::http3::error::Http3Error;

fn failed(error: ConnectionError) -> News {
    News::ConnectionFailed { code: error.code().to_quic(), error: error.into() }
}

impl End for Client {
    fn version(&self) -> Version {
        Version::HTTP_2
    }

    fn no_error(&self) -> u64 {
        ErrorCode::NO_ERROR.to_quic()
    }

    fn start(&mut self, streams: &mut Streams<'_, '_>) -> Result<(), Http3Error> {
        Client::start(self, streams, &[]).map_err(Http3Error::Http2Request)
    }

    fn pass(&mut self, streams: &mut Streams<'_, '_>, event: &ConnectionEvent) {
        match *event {
            ConnectionEvent::Readable(stream) if stream != CONTROL_STREAM => {
                Client::read(self, streams, stream, 0, &mut |_, _| {});
            }
            ref event => quic::pass_to_client(self, streams, event, &mut |_, _| {}),
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
        use ClientEvent as Event;
        loop {
            return Some(match Client::poll(self)? {
                Event::ResponseHead { stream, status, fields } => {
                    News::Head { stream, status, fields }
                }
                Event::ResponseFinished { stream } => News::Finished { stream },
                Event::ResponseFailed { stream, failure } => News::Failed { stream, failure },
                Event::UploadStopped { stream, code } => {
                    News::Stopped { stream, code: of_http2(code) }
                }
                Event::ConnectionFailed(error) => failed(error),
                _ => continue,
            });
        }
    }

    fn free(&self) -> u64 {
        Client::free(self)
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
        _: Option<&FieldList>,
    ) -> Result<(), BodyError> {
        Client::finish(self, streams, stream)
    }

    fn abandon(&mut self, streams: &mut Streams<'_, '_>, stream: StreamId, code: h3::ErrorCode) {
        self.cancel(streams, stream, to_http2(code));
    }

    fn drop_exchange(&mut self, streams: &mut Streams<'_, '_>, stream: StreamId, _is_sent: bool) {
        // One whose end was there needs no cancelling.
        Client::read(self, streams, stream, 0, &mut |_, _| {});
        self.cancel(streams, stream, ErrorCode::CANCEL);
    }
}

impl End for Server {
    fn version(&self) -> Version {
        Version::HTTP_2
    }

    fn no_error(&self) -> u64 {
        ErrorCode::NO_ERROR.to_quic()
    }

    fn start(&mut self, _: &mut Streams<'_, '_>) -> Result<(), Http3Error> {
        // It starts when the client's control stream is there.
        Ok(())
    }

    fn pass(&mut self, streams: &mut Streams<'_, '_>, event: &ConnectionEvent) {
        let now = streams.now;
        // Without a timer of their own: nodes that stay longer while nothing happens harm nobody.
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.handle_timeout(streams, now);
        }
        match *event {
            ConnectionEvent::Readable(stream) if stream != CONTROL_STREAM => {
                Server::read(self, streams, stream, now, 0, &mut |_, _| {});
            }
            ref event => quic::pass_to_server(self, streams, event, &mut |_, _| {}),
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
        use ServerEvent as Event;
        loop {
            return Some(match Server::poll(self)? {
                Event::RequestHead { stream, fields, .. } => {
                    News::Head { stream, status: 0, fields }
                }
                Event::RequestFinished { stream } => News::Finished { stream },
                Event::RequestFailed { stream, failure } => News::Failed { stream, failure },
                Event::ResponseStopped { stream, code } => {
                    News::Stopped { stream, code: of_http2(code) }
                }
                Event::ConnectionFailed(error) => failed(error),
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
        _: Option<&FieldList>,
    ) -> Result<(), BodyError> {
        Server::finish(self, streams, stream)
    }

    fn abandon(&mut self, streams: &mut Streams<'_, '_>, stream: StreamId, code: h3::ErrorCode) {
        let now = streams.now;
        self.reset(streams, stream, to_http2(code), now);
    }

    fn drop_exchange(&mut self, streams: &mut Streams<'_, '_>, stream: StreamId, is_sent: bool) {
        let now = streams.now;
        if is_sent {
            // A request whose end was there is over.
            Server::read(self, streams, stream, now, 0, &mut |_, _| {});
            self.ignore_rest(streams, stream);
        } else {
            self.reset(streams, stream, ErrorCode::INTERNAL_ERROR, now);
        }
    }
}

impl ClientEnd for Client {
    fn request(
        &mut self,
        streams: &mut Streams<'_, '_>,
        request: &Outgoing<'_>,
    ) -> Result<Option<StreamId>, Http3Error> {
        let Outgoing { fields, has_body, place } = *request;
        let request = Request { fields: fields.clone(), body: body(has_body), priority: place };
        match Client::request(self, streams, request) {
            Ok(stream) => Ok(Some(stream)),
            Err(RequestError::NoStream) => Ok(None),
            Err(error) => Err(Http3Error::Http2Request(error)),
        }
    }

    fn update_priority(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        urgency: Urgency,
    ) -> Result<(), Http3Error> {
        let updated = Client::update_priority(self, streams, stream, urgency);
        updated.map_err(Http3Error::Http2Request)
    }

    fn place(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        place: StreamPriority,
    ) -> Result<(), Http3Error> {
        let node = FrameStreamId::try_from(stream);
        let node = node.map_err(|_| Http3Error::Http2Request(RequestError::IdentifiersUsedUp))?;
        self.prioritise(streams, node, place).map_err(Http3Error::Http2Request)
    }

    fn peer_settings(&self) -> Option<h3::Settings> {
        None
    }
}

impl ServerEnd for Server {
    fn inform(
        &mut self,
        _: &mut Streams<'_, '_>,
        _: StreamId,
        _: &FieldList,
    ) -> Result<(), Http3Error> {
        Ok(())
    }

    fn respond(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        fields: &FieldList,
        has_body: bool,
    ) -> Result<(), Http3Error> {
        Ok(Server::respond(self, streams, stream, fields, body(has_body))?)
    }

    fn go_away(&mut self, streams: &mut Streams<'_, '_>) {
        // A connection that cannot write ends.
        let _ = Server::go_away(self, streams, ErrorCode::NO_ERROR);
    }

    fn active(&self) -> usize {
        Server::active(self)
    }
}
