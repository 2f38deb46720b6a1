//! The client's end.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Version};
use quipu_base::StreamId;
use quipu_http::h2::{self, StreamPriority};
use quipu_http::h3::{Client, ClientConfig, ErrorCode, Settings, TableUse};
use quipu_policy::Urgency;

use super::body::Exchange;
use super::convert;
use super::end::{ClientEnd, Outgoing};
use super::error::Http3Error;
use super::session::{Session, Slot};
use crate::connection::Connection;

/// How a client of HTTP/2 behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Http2ClientConfig {
    /// What the client is ready to spend on a server's messages.
    pub limits: h2::Limits,
    /// Whether requests have places in the dependency tree of RFC 7540 ([`StreamPriority`] as an extension of a
    /// request). Else, by default, the server is told to go by urgencies alone.
    /// <https://www.rfc-editor.org/rfc/rfc9218#section-2.1>
    pub tree: bool,
}

/// A connection on which requests are sent. Clones are the same one.
#[derive(Clone)]
pub struct Http3Client {
    session: Arc<Session<dyn ClientEnd>>,
}

impl Http3Client {
    /// Takes a connection over whose protocol is [`ALPN`](super::ALPN). On one that was
    /// [opened early](crate::Endpoint::connect_early), requests go in 0-RTT, within the limits of the
    /// settings that are [remembered](ClientConfig::remembered).
    ///
    /// # Errors
    /// Why the connection ended, or that the server does not let this end open the streams that HTTP/3 needs.
    pub fn new(connection: Connection, config: ClientConfig) -> Result<Http3Client, Http3Error> {
        let end = Box::new(Client::new(config)) as Box<dyn ClientEnd>;
        Ok(Http3Client { session: Session::begin(connection, end, false)? })
    }

    /// Takes a connection over whose protocol is [`HTTP2_ALPN`](super::HTTP2_ALPN): the same calls over HTTP/2
    /// on QUIC streams. It carries no trailers and no responses with status 1xx, and takes no pushed responses.
    ///
    /// # Errors
    /// Why the connection ended, or that the server does not let this end open a stream.
    pub fn http2(
        connection: Connection,
        config: Http2ClientConfig,
    ) -> Result<Http3Client, Http3Error> {
        let client = h2::Client::new(config.limits);
        let client = if config.tree { client } else { client.with_urgencies() };
        let end = Box::new(client) as Box<dyn ClientEnd>;
        Ok(Http3Client { session: Session::begin(connection, end, false)? })
    }

    /// Which version it speaks: HTTP/2 or HTTP/3.
    pub fn version(&self) -> Version {
        self.session.version
    }

    /// Ends the connection; what is under way is abandoned.
    pub fn close(&self) {
        let code = self.session.lock().end.no_error();
        self.session.connection.close(code, b"");
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.session.connection
    }

    /// What the server is ready for, once it said so: to be
    /// [remembered](ClientConfig::remembered) for the next connection. `None` over HTTP/2.
    pub fn peer_settings(&self) -> Option<Settings> {
        self.session.lock().end.peer_settings()
    }

    /// How much QPACK's dynamic tables are used; not at all over HTTP/2.
    pub fn table_use(&self) -> TableUse {
        self.session.lock().end.table_use()
    }

    /// Sends a request, whose body is empty unless it `has_body`: then
    /// [`send_data`](Http3Exchange::send_data) and [`finish`](Http3Exchange::finish) follow. Waits while
    /// the server allows no more requests. Cancelling sends none. A [`StreamPriority`] among the request's
    /// extensions is its place in the dependency tree, for [HTTP/2 with a tree](Http2ClientConfig::tree) alone.
    ///
    /// # Errors
    /// See [`Http3Error`].
    pub async fn request<B>(
        &self,
        request: Request<B>,
        has_body: bool,
    ) -> Result<Http3Exchange, Http3Error> {
        let fields = convert::request_fields(&request)?;
        let place = request.extensions().get::<StreamPriority>().copied();
        loop {
            let notified = self.session.available.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let request = Outgoing { fields: &fields, has_body, place };
            let sent = self.session.call(|state, streams| {
                let Some(stream) = state.end.request(streams, &request)? else { return Ok(None) };
                let slot = Slot::default();
                let changed = Arc::clone(&slot.changed);
                state.slots.insert(stream, slot);
                Ok::<_, Http3Error>(Some((stream, changed)))
            })??;
            if let Some((stream, changed)) = sent {
                let session = Arc::clone(&self.session);
                let exchange = Exchange::new(session, stream, changed, !has_body);
                return Ok(Http3Exchange { exchange });
            }
            notified.await;
        }
    }

    /// Tells the server a place in the dependency tree, over HTTP/2 with one: that of a request, also of one that is still
    /// to be made, or of a group that never carries data. `node` is the number of the stream; the requests of this client
    /// have 4, 8 and so on, in their order. HTTP/3 has no such tree, and nothing is sent.
    ///
    /// # Errors
    /// See [`Http3Error`].
    pub fn place(&self, node: StreamId, place: StreamPriority) -> Result<(), Http3Error> {
        self.session.call(|state, streams| state.end.place(streams, node, place))?
    }
}

/// A request, and its response.
pub struct Http3Exchange {
    exchange: Exchange<dyn ClientEnd>,
}

impl Http3Exchange {
    /// The stream of both.
    pub fn stream(&self) -> StreamId {
        self.exchange.stream
    }

    /// The response, once its head is there; responses with status 1xx are passed over.
    ///
    /// # Errors
    /// See [`Http3Error`].
    pub async fn response(&mut self) -> Result<Response<()>, Http3Error> {
        loop {
            let response = self.next_response().await?;
            if !response.status().is_informational() {
                return Ok(response);
            }
        }
    }

    /// The next head: the response's, or one with status 1xx before it.
    ///
    /// # Errors
    /// See [`Http3Error`].
    pub async fn next_response(&mut self) -> Result<Response<()>, Http3Error> {
        let (status, fields) = self.exchange.head().await?;
        Ok(convert::response(self.exchange.session().version, status, &fields)?)
    }

    /// The next octets of the response's body, `most` of them at most; `None` at its end. What is not
    /// read gives the server no credit. Cancelling loses none. What had come before the server closed the
    /// connection is there after it, too.
    ///
    /// # Errors
    /// See [`Http3Error`].
    pub async fn data(&mut self, most: usize) -> Result<Option<Bytes>, Http3Error> {
        self.exchange.data(most).await
    }

    /// The fields behind the body, once it was read to its end, if there are any.
    ///
    /// # Errors
    /// Fields that the `http` crate does not take.
    pub fn trailers(&mut self) -> Result<Option<HeaderMap>, Http3Error> {
        self.exchange.trailers()
    }

    /// Sends octets of the request's body; waits while there is no room. If it is cancelled, some of them
    /// may have been sent.
    ///
    /// # Errors
    /// See [`Http3Error`].
    pub async fn send_data(&mut self, octets: Bytes) -> Result<(), Http3Error> {
        self.exchange.send_data(octets).await
    }

    /// Ends the request's body, with trailers or without. HTTP/2 over QUIC streams carries no trailers, and drops
    /// them.
    ///
    /// # Errors
    /// See [`Http3Error`].
    pub fn finish(&mut self, trailers: Option<&HeaderMap>) -> Result<(), Http3Error> {
        self.exchange.finish(trailers)
    }

    /// Tells the server another urgency of the response: PRIORITY_UPDATE. Over HTTP/2, a server that does not
    /// say that it goes by urgencies alone is not told.
    ///
    /// # Errors
    /// See [`Http3Error`].
    pub fn update_priority(&mut self, urgency: Urgency) -> Result<(), Http3Error> {
        let stream = self.exchange.stream;
        let session = self.exchange.session();
        session.call(|state, streams| state.end.update_priority(streams, stream, urgency))?
    }

    /// Tells the server another place of the response in the dependency tree, over HTTP/2 with one; HTTP/3 has
    /// none, and nothing is sent.
    ///
    /// # Errors
    /// See [`Http3Error`].
    pub fn update_place(&mut self, place: StreamPriority) -> Result<(), Http3Error> {
        let stream = self.exchange.stream;
        let session = self.exchange.session();
        session.call(|state, streams| state.end.place(streams, stream, place))?
    }

    /// Abandons request and response with that code; dropping them does it with
    /// [`REQUEST_CANCELLED`](ErrorCode::REQUEST_CANCELLED).
    pub fn cancel(self, code: ErrorCode) {
        self.exchange.abandon(code);
    }
}
