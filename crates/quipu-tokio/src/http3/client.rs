//! The client's end.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use quipu_base::StreamId;
use quipu_http::h3::{Body, Client, ClientConfig, ErrorCode, RequestError, Settings, TableUse};
use quipu_policy::Urgency;

use super::body::Exchange;
use super::convert;
use super::error::Http3Error;
use super::session::{Session, Slot};
use crate::connection::Connection;

/// A connection on which requests are sent. Clones are the same one.
#[derive(Clone)]
pub struct Http3Client {
    session: Arc<Session<Client>>,
}

impl Http3Client {
    /// Takes a connection over whose protocol is [`ALPN`](super::ALPN). On one that was
    /// [opened early](crate::Endpoint::connect_early), requests go in 0-RTT, within the limits of the
    /// settings that are [remembered](ClientConfig::remembered).
    ///
    /// # Errors
    /// Why the connection ended, or that the server does not let this end open the streams that HTTP/3 needs.
    pub fn new(connection: Connection, config: ClientConfig) -> Result<Http3Client, Http3Error> {
        let session = Session::begin(connection, Client::new(config), false)?;
        session.call(|state, streams| state.end.start(streams))??;
        Ok(Http3Client { session })
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.session.connection
    }

    /// What the server is ready for, once it said so: to be
    /// [remembered](ClientConfig::remembered) for the next connection.
    pub fn peer_settings(&self) -> Option<Settings> {
        self.session.lock().end.peer_settings().copied()
    }

    /// How much QPACK's dynamic tables are used.
    pub fn table_use(&self) -> TableUse {
        self.session.lock().end.table_use()
    }

    /// Sends a request, whose body is empty unless it `has_body`: then
    /// [`send_data`](Http3Exchange::send_data) and [`finish`](Http3Exchange::finish) follow. Waits while
    /// the server allows no more requests. Cancelling sends none.
    ///
    /// # Errors
    /// See [`Http3Error`].
    pub async fn request<B>(
        &self,
        request: Request<B>,
        has_body: bool,
    ) -> Result<Http3Exchange, Http3Error> {
        let fields = convert::request_fields(&request)?;
        loop {
            let notified = self.session.available.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let body = if has_body { Body::Streamed } else { Body::Empty };
            let request = quipu_http::h3::Request { fields: fields.clone(), body };
            let sent = self.session.call(|state, streams| {
                let stream = state.end.request(streams, request)?;
                let slot = Slot::default();
                let changed = Arc::clone(&slot.changed);
                state.slots.insert(stream, slot);
                Ok((stream, changed))
            })?;
            match sent {
                Ok((stream, changed)) => {
                    let session = Arc::clone(&self.session);
                    let exchange = Exchange::new(session, stream, changed, !has_body);
                    return Ok(Http3Exchange { exchange });
                }
                Err(RequestError::NoStream) => notified.await,
                Err(error) => return Err(Http3Error::Request(error)),
            }
        }
    }
}

/// A request, and its response.
pub struct Http3Exchange {
    exchange: Exchange<Client>,
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
        Ok(convert::response(status, &fields)?)
    }

    /// The next octets of the response's body, `most` of them at most; `None` at its end. What is not
    /// read gives the server no credit. Cancelling loses none.
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

    /// Ends the request's body, with trailers or without.
    ///
    /// # Errors
    /// See [`Http3Error`].
    pub fn finish(&mut self, trailers: Option<&HeaderMap>) -> Result<(), Http3Error> {
        self.exchange.finish(trailers)
    }

    /// Tells the server another urgency of the response: PRIORITY_UPDATE.
    ///
    /// # Errors
    /// See [`Http3Error`].
    pub fn update_priority(&mut self, urgency: Urgency) -> Result<(), Http3Error> {
        let stream = self.exchange.stream;
        let told = self
            .exchange
            .session()
            .call(|state, streams| state.end.update_priority(streams, stream, urgency))?;
        told.map_err(Http3Error::Request)
    }

    /// Abandons request and response with that code; dropping them does it with
    /// [`REQUEST_CANCELLED`](ErrorCode::REQUEST_CANCELLED).
    pub fn cancel(self, code: ErrorCode) {
        self.exchange.abandon(code);
    }
}
