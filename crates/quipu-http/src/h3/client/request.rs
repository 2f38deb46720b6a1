//! Sends requests, and says what the server shall send first.

use bytes::Bytes;
use quipu_base::{Role, StreamDirection, StreamId};
use quipu_policy::Urgency;
use thiserror::Error;

use super::super::frame::{self, kind};
use super::super::receiving::Receiving;
use super::super::{Body, BodyError, datagram, sending};
use super::{Client, Exchange};
use crate::field::FieldList;
use crate::message::{self, MessageError};
use crate::priority::PriorityField;
use crate::transport::{StreamError, StreamTransport};

/// A request to send. Its urgency is in its `priority` field
/// ([`PriorityField`](crate::priority::PriorityField)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// All fields, pseudo-header fields first.
    pub fields: FieldList,
    /// The body.
    pub body: Body,
}

/// Why a request was not sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The client was not started, or the connection failed.
    #[error("the connection is not open")]
    NotOpen,
    /// The server takes no more requests on this connection.
    #[error("the server goes away")]
    GoingAway,
    /// The server's limit of streams is reached. Try again when a response is complete.
    #[error("no stream is free")]
    NoStream,
    /// The request is malformed, or names a protocol and the server did not allow it.
    #[error(transparent)]
    Malformed(#[from] MessageError),
    /// The server does not take so many fields.
    #[error("the fields take {size} octets, where the server takes {limit}")]
    FieldsTooLarge {
        /// Size as [`FieldList::size`] counts.
        size: u64,
        /// The server's limit, in octets.
        limit: u64,
    },
    /// A stream that is no request's.
    #[error("{0} is no stream of a request")]
    NoRequest(StreamId),
    /// This end or the server takes no datagrams, or the server has not said so yet.
    #[error("not both ends take datagrams")]
    NoDatagrams,
    /// The transport refused.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

impl Client {
    /// Sends a request on the next stream, whose identifier is returned. Tells the transport the size of
    /// the stream, if it is known.
    ///
    /// # Errors
    /// See [`RequestError`]; nothing was sent then, except after [`RequestError::Stream`].
    pub fn request<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        request: Request,
    ) -> Result<StreamId, RequestError> {
        let Request { fields, body } = request;
        if self.failed || !self.control.is_started() {
            return Err(RequestError::NotOpen);
        }
        // https://www.rfc-editor.org/rfc/rfc9114#section-5.2
        //# Endpoints MUST NOT initiate new requests or promise new pushes on the connection after
        //# receipt of a GOAWAY frame from the peer.
        if self.first_refused.is_some() {
            return Err(RequestError::GoingAway);
        }
        let peer = self.control.peer();
        // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.2
        //# An HTTP implementation MUST NOT send frames or requests that would be invalid based on
        //# its current understanding of the peer's settings.
        let info = message::check_h3_request(&fields, peer.extended_connect)?;
        // https://www.rfc-editor.org/rfc/rfc9114#section-4.2.2
        //# An implementation that has received this parameter SHOULD NOT send an HTTP message
        //# header that exceeds the indicated size, as the peer will likely refuse to process it.
        if let Some(limit) = peer.max_field_section
            && fields.size() > limit
        {
            return Err(RequestError::FieldsTooLarge { size: fields.size(), limit });
        }
        // https://www.rfc-editor.org/rfc/rfc9114#section-4.1
        //# A client MUST send only a single request on a given stream.
        let stream = transport.open().ok_or(RequestError::NoStream)?;
        let announced = info.content_length;
        let sent = sending::send((transport, stream), &mut self.control, &fields, body, announced)?;
        let mut receiving = Receiving::new();
        receiving.tunnel = fields.get(":method") == Some(b"CONNECT");
        let exchange = Exchange { receiving, is_head: info.is_head, sending: sent };
        self.exchanges.insert(stream, exchange);
        Ok(stream)
    }

    /// Sends more of a [streamed](Body::Streamed) body: as much as the transport has room for. Returns
    /// how many octets; the transport tells when there is room for the others.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub fn send_body<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        octets: Bytes,
    ) -> Result<usize, BodyError> {
        let exchange = self.exchanges.get_mut(&stream).ok_or(BodyError::NotSending(stream))?;
        let sending = exchange.sending.as_mut().ok_or(BodyError::NotSending(stream))?;
        sending.send(transport, stream, octets)
    }

    /// Ends a [streamed](Body::Streamed) body, with trailers or without.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub fn finish<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        trailers: Option<&FieldList>,
    ) -> Result<(), BodyError> {
        let exchange = self.exchanges.get_mut(&stream).ok_or(BodyError::NotSending(stream))?;
        let sending = exchange.sending.ok_or(BodyError::NotSending(stream))?;
        sending.finish((transport, stream), &mut self.control, trailers)?;
        exchange.sending = None;
        self.forget_if_done(stream);
        Ok(())
    }

    /// Sends a PRIORITY_UPDATE frame: another urgency for a request, sent or not.
    /// <https://www.rfc-editor.org/rfc/rfc9218#section-7.2>
    ///
    /// # Errors
    /// [`RequestError::NotOpen`], [`RequestError::NoRequest`], or the transport refused.
    pub fn update_priority<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        urgency: Urgency,
    ) -> Result<(), RequestError> {
        if self.failed || !self.control.is_started() {
            return Err(RequestError::NotOpen);
        }
        // https://www.rfc-editor.org/rfc/rfc9218#section-7.2
        //# The request-stream variant of PRIORITY_UPDATE (type=0xF0700) MUST reference a request
        //# stream.
        if !is_request(stream) {
            return Err(RequestError::NoRequest(stream));
        }
        // https://www.rfc-editor.org/rfc/rfc9218#section-7.2
        //# The PRIORITY_UPDATE frame MUST be sent on the client control stream (see Section
        //# 6.2.1 of [HTTP/3]).
        let mut payload = Vec::with_capacity(16);
        frame::put_varint(stream.0, &mut payload);
        payload.extend_from_slice(PriorityField::from(urgency).to_string().as_bytes());
        let mut out = Vec::with_capacity(24);
        frame::put_frame(kind::PRIORITY_UPDATE, &payload, &mut out);
        Ok(self.control.write(transport, out)?)
    }

    /// The octets of a QUIC datagram that carries `payload` for a request.
    ///
    /// # Errors
    /// [`RequestError::NoRequest`] if the exchange is over; [`RequestError::NoDatagrams`].
    pub fn datagram(&self, stream: StreamId, payload: &[u8]) -> Result<Bytes, RequestError> {
        if !self.control.may_send_datagrams() {
            return Err(RequestError::NoDatagrams);
        }
        if !self.exchanges.contains_key(&stream) {
            return Err(RequestError::NoRequest(stream));
        }
        Ok(datagram::encode(stream, payload))
    }
}

/// Whether a stream may be that of a request.
pub(in crate::h3) fn is_request(stream: StreamId) -> bool {
    stream.initiator() == Role::Client && stream.direction() == StreamDirection::Bidirectional
}
