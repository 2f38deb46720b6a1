//! The server's end.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Version};
use quipu_base::{Duration, StreamId};
use quipu_http::h2;
use quipu_http::h3::{ErrorCode, Server, ServerConfig, TableUse};

use super::body::Exchange;
use super::convert;
use super::end::ServerEnd;
use super::error::Http3Error;
use super::session::Session;
use crate::connection::Connection;

/// A connection on which requests come. Clones are the same one; each request is given to one of them.
#[derive(Clone)]
pub struct Http3Server {
    session: Arc<Session<dyn ServerEnd>>,
}

impl Http3Server {
    /// Takes a connection over whose protocol is [`ALPN`](super::ALPN). Of one that was
    /// [accepted early](crate::Incoming::accept_early), requests that came in 0-RTT can be answered before
    /// the handshake is complete. While [`Connection::is_early`] they may be replays: answer safe methods
    /// alone, or with status 425. <https://www.rfc-editor.org/rfc/rfc8470#section-5.2>
    ///
    /// # Errors
    /// Why the connection ended, or that the client does not let this end open the streams that HTTP/3 needs.
    pub fn new(connection: Connection, config: ServerConfig) -> Result<Http3Server, Http3Error> {
        let end = Box::new(Server::new(config)) as Box<dyn ServerEnd>;
        Ok(Http3Server { session: Session::begin(connection, end, true)? })
    }

    /// Takes a connection over whose protocol is [`HTTP2_ALPN`](super::HTTP2_ALPN): the same calls over HTTP/2
    /// on QUIC streams. It carries no trailers and no responses with status 1xx, and nothing is pushed. Places in
    /// the dependency tree and urgencies both reach the policies.
    ///
    /// # Errors
    /// Why the connection ended.
    pub fn http2(
        connection: Connection,
        config: h2::ServerConfig,
    ) -> Result<Http3Server, Http3Error> {
        let end = Box::new(h2::Server::new(config)) as Box<dyn ServerEnd>;
        Ok(Http3Server { session: Session::begin(connection, end, true)? })
    }

    /// Which version it speaks: HTTP/2 or HTTP/3.
    pub fn version(&self) -> Version {
        self.session.version
    }

    /// Ends the connection once the client has all that was sent, at the latest after `limit`.
    pub fn close_when_delivered(&self, limit: Duration) {
        let code = self.session.lock().end.no_error();
        self.session.connection.close_when_delivered(limit, code, b"");
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.session.connection
    }

    /// How much QPACK's dynamic tables are used; not at all over HTTP/2.
    pub fn table_use(&self) -> TableUse {
        self.session.lock().end.table_use()
    }

    /// Requests whose exchange is not over.
    pub fn active(&self) -> usize {
        self.session.lock().end.active()
    }

    /// The next request, once its head is there. Cancelling loses none. Requests that the `http` crate
    /// does not take are refused.
    ///
    /// # Errors
    /// Why the connection ended.
    pub async fn accept(&self) -> Result<Http3Request, Http3Error> {
        loop {
            let notified = self.session.arrived.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let next = self.session.call(|state, _| {
                let stream = state.waiting.pop_front()?;
                let slot = state.slots.get_mut(&stream)?;
                let (_, fields) = slot.heads.pop_front()?;
                Some((stream, fields, Arc::clone(&slot.changed)))
            })?;
            let Some((stream, fields, changed)) = next else {
                if !self.session.lock().waiting.is_empty() {
                    continue;
                }
                notified.await;
                continue;
            };
            let session = Arc::clone(&self.session);
            let exchange = Exchange::new(session, stream, changed, false);
            match convert::request(self.session.version, &fields) {
                Ok(head) => return Ok(Http3Request { head, exchange: Arc::new(exchange) }),
                Err(_) => exchange.abandon(ErrorCode::MESSAGE_ERROR),
            }
        }
    }

    /// Tells the client that no further requests are taken; those that came are answered.
    ///
    /// # Errors
    /// Why the connection ended.
    pub fn go_away(&self) -> Result<(), Http3Error> {
        self.session.call(|state, streams| state.end.go_away(streams))
    }
}

/// A request, and its response. It is abandoned when it is dropped before the response is complete.
pub struct Http3Request {
    head: Request<()>,
    exchange: Arc<Exchange<dyn ServerEnd>>,
}

/// What follows the head of a request.
pub struct Http3RequestBody {
    exchange: Arc<Exchange<dyn ServerEnd>>,
}

/// Sends the response to a request.
pub struct Http3Responder {
    exchange: Arc<Exchange<dyn ServerEnd>>,
}

impl Http3Request {
    /// The stream of both.
    pub fn stream(&self) -> StreamId {
        self.exchange.stream
    }

    /// What is asked for.
    pub fn head(&self) -> &Request<()> {
        &self.head
    }

    /// The head, what follows it, and what answers it, for those who read and answer at the same time. It
    /// is abandoned when the last two are dropped before the response is complete.
    pub fn into_parts(self) -> (Request<()>, Http3RequestBody, Http3Responder) {
        let exchange = Arc::clone(&self.exchange);
        (self.head, Http3RequestBody { exchange }, Http3Responder { exchange: self.exchange })
    }
}

impl Http3RequestBody {
    /// The next octets of the request's body, `most` of them at most; `None` at its end. What is not
    /// read gives the client no credit. Cancelling loses none.
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
}

impl Http3Responder {
    /// Tells something before the response: status 1xx. HTTP/2 over QUIC streams does not carry it.
    ///
    /// # Errors
    /// See [`Http3Error`].
    pub fn inform(&mut self, response: &Response<()>) -> Result<(), Http3Error> {
        let stream = self.exchange.stream;
        let fields = convert::response_fields(response);
        let session = self.exchange.session();
        session.call(|state, streams| state.end.inform(streams, stream, &fields))?
    }

    /// Sends the head of the response, which has no body unless it `has_body`: then
    /// [`send_data`](Http3Responder::send_data) and [`finish`](Http3Responder::finish) follow.
    ///
    /// # Errors
    /// See [`Http3Error`].
    pub fn respond<B>(&mut self, response: &Response<B>, has_body: bool) -> Result<(), Http3Error> {
        let stream = self.exchange.stream;
        let fields = convert::response_fields(response);
        self.exchange
            .session()
            .call(|state, streams| state.end.respond(streams, stream, &fields, has_body))??;
        if !has_body {
            self.exchange.set_sent();
        }
        Ok(())
    }

    /// Sends octets of the response's body; waits while there is no room. If it is cancelled, some of
    /// them may have been sent.
    ///
    /// # Errors
    /// See [`Http3Error`].
    pub async fn send_data(&mut self, octets: Bytes) -> Result<(), Http3Error> {
        self.exchange.send_data(octets).await
    }

    /// Ends the response's body, with trailers or without. HTTP/2 over QUIC streams carries no trailers, and
    /// drops them.
    ///
    /// # Errors
    /// See [`Http3Error`].
    pub fn finish(&mut self, trailers: Option<&HeaderMap>) -> Result<(), Http3Error> {
        self.exchange.finish(trailers)
    }

    /// Abandons request and response with that code.
    pub fn abandon(self, code: ErrorCode) {
        self.exchange.abandon(code);
    }
}
