//! The ends of HTTP/3.

use bytes::Bytes;
use http::Version;
use quipu_base::StreamId;
use quipu_http::field::FieldList;
use quipu_http::h2::StreamPriority;
use quipu_http::h3::{
    BodyError, Client, ClientEvent, ConnectionError, ErrorCode, Request, RequestError, Server,
    ServerEvent, Settings, TableUse,
};
use quipu_http::transport::quic;
use quipu_policy::Urgency;
use quipu_quic::ConnectionEvent;

use super::{ClientEnd, End, News, Outgoing, ServerEnd, Streams, body};
use crate::http3::error::Http3Error;

fn failed(error: ConnectionError) -> News {
    News::ConnectionFailed { code: error.code().0, error: error.into() }
}

impl End for Client {
    fn version(&self) -> Version {
        Version::HTTP_3
    }

    fn no_error(&self) -> u64 {
        ErrorCode::NO_ERROR.0
    }

    fn start(&mut self, streams: &mut Streams<'_, '_>) -> Result<(), Http3Error> {
        Ok(Client::start(self, streams)?)
    }

    fn table_use(&self) -> TableUse {
        Client::table_use(self)
    }

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
        use ClientEvent as Event;
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
                Event::UploadStopped { stream, code } => {
                    News::Stopped { stream, code: ErrorCode(code) }
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
    fn version(&self) -> Version {
        Version::HTTP_3
    }

    fn no_error(&self) -> u64 {
        ErrorCode::NO_ERROR.0
    }

    fn start(&mut self, streams: &mut Streams<'_, '_>) -> Result<(), Http3Error> {
        Ok(Server::start(self, streams)?)
    }

    fn table_use(&self) -> TableUse {
        Server::table_use(self)
    }

    fn pass(&mut self, streams: &mut Streams<'_, '_>, event: &ConnectionEvent) {
        match *event {
            ConnectionEvent::Readable(stream) => {
                let now = streams.now;
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
        use ServerEvent as Event;
        loop {
            return Some(match Server::poll(self)? {
                Event::RequestHead { stream, fields, .. } => {
                    News::Head { stream, status: 0, fields }
                }
                Event::Trailers { stream, fields } => News::Trailers { stream, fields },
                Event::RequestFinished { stream } => News::Finished { stream },
                Event::RequestFailed { stream, failure } => News::Failed { stream, failure },
                Event::ResponseStopped { stream, code } => {
                    News::Stopped { stream, code: ErrorCode(code) }
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

impl ClientEnd for Client {
    fn request(
        &mut self,
        streams: &mut Streams<'_, '_>,
        request: &Outgoing<'_>,
    ) -> Result<Option<StreamId>, Http3Error> {
        let Outgoing { fields, has_body, place: _ } = *request;
        let request = Request { fields: fields.clone(), body: body(has_body) };
        match Client::request(self, streams, request) {
            Ok(stream) => Ok(Some(stream)),
            Err(RequestError::NoStream) => Ok(None),
            Err(error) => Err(Http3Error::Request(error)),
        }
    }

    fn update_priority(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        urgency: Urgency,
    ) -> Result<(), Http3Error> {
        Client::update_priority(self, streams, stream, urgency).map_err(Http3Error::Request)
    }

    fn place(
        &mut self,
        _: &mut Streams<'_, '_>,
        _: StreamId,
        _: StreamPriority,
    ) -> Result<(), Http3Error> {
        Ok(())
    }

    fn peer_settings(&self) -> Option<Settings> {
        Client::peer_settings(self).copied()
    }
}

impl ServerEnd for Server {
    fn inform(
        &mut self,
        streams: &mut Streams<'_, '_>,
        stream: StreamId,
        fields: &FieldList,
    ) -> Result<(), Http3Error> {
        Ok(Server::inform(self, streams, stream, fields)?)
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
        let _ = Server::go_away(self, streams);
    }

    fn active(&self) -> usize {
        Server::active(self)
    }
}
