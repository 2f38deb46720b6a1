//! Sends responses.

use bytes::Bytes;
use quipu_base::StreamId;
use thiserror::Error;

use super::super::{Body, BodyError, datagram, sending};
use super::{Server, State};
use crate::field::FieldList;
use crate::message::{self, MessageError};
use crate::transport::{StreamError, StreamTransport};

/// Why a response was not sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RespondError {
    /// No request waits for an answer on the stream: there is none, it was answered, or it was cancelled.
    #[error("no request waits for an answer on {0}")]
    NoRequest(StreamId),
    /// The response is malformed.
    #[error(transparent)]
    Malformed(#[from] MessageError),
    /// A status that the call is not for: 1xx with a response, others with what precedes it; 101 never.
    #[error("status {status}; expected {expected}")]
    Status {
        /// The status.
        status: u16,
        /// What was expected.
        expected: &'static str,
    },
    /// A body where the method or the status forbids one.
    #[error("a body for a response that has none: to HEAD, or with status {0}")]
    BodyNotAllowed(u16),
    /// The client does not take so many fields.
    #[error("the fields take {size} octets, where the client takes {limit}")]
    FieldsTooLarge {
        /// Size as [`FieldList::size`] counts.
        size: u64,
        /// The client's limit, in octets.
        limit: u64,
    },
    /// This end or the client takes no datagrams, or the client has not said so yet.
    #[error("not both ends take datagrams")]
    NoDatagrams,
    /// The transport refused, as it does after the client cancelled.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

impl Server {
    /// Answers a request. Tells the transport how large the response is: from `body`, else from the
    /// content length in `fields`.
    ///
    /// # Errors
    /// See [`RespondError`]; nothing was sent then, except after [`RespondError::Stream`].
    pub fn respond<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        fields: &FieldList,
        body: Body,
    ) -> Result<(), RespondError> {
        let info = self.check_head(stream, fields)?;
        if info.status < 200 {
            let expected = "200 to 999";
            return Err(RespondError::Status { status: info.status, expected });
        }
        let exchange = self.exchanges.get_mut(&stream).ok_or(RespondError::NoRequest(stream))?;
        let bodiless = exchange.is_head || matches!(info.status, 204 | 304);
        if bodiless && body != Body::Empty {
            return Err(RespondError::BodyNotAllowed(info.status));
        }
        let tunnel = exchange.receiving.tunnel && info.status < 300;
        exchange.receiving.tunnel = tunnel;
        let announced = info.content_length.filter(|_| !tunnel);
        Self::merge_urgency(transport, stream, exchange.stated, fields);
        let sent = sending::send((transport, stream), &mut self.control, fields, body, announced);
        exchange.sending = match &sent {
            Ok(Some(sending)) => State::Body(*sending),
            Ok(None) | Err(_) => State::Done,
        };
        self.forget_if_done(stream);
        Ok(sent.map(|_| ())?)
    }

    /// Tells something before the response: status 100, or 102 to 199, such as 103 (Early Hints).
    ///
    /// # Errors
    /// See [`RespondError`]; nothing was sent then, except after [`RespondError::Stream`].
    pub fn inform<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        fields: &FieldList,
    ) -> Result<(), RespondError> {
        let info = self.check_head(stream, fields)?;
        if info.status >= 200 || info.status == 101 {
            let expected = "100, or 102 to 199";
            return Err(RespondError::Status { status: info.status, expected });
        }
        self.control.send_section(transport, stream, fields, None)?;
        Ok(())
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
        match self.exchanges.get_mut(&stream).map(|exchange| &mut exchange.sending) {
            Some(State::Body(sending)) => sending.send(transport, stream, octets),
            _ => Err(BodyError::NotSending(stream)),
        }
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
        let State::Body(sending) = exchange.sending else {
            return Err(BodyError::NotSending(stream));
        };
        sending.finish((transport, stream), &mut self.control, trailers)?;
        exchange.sending = State::Done;
        self.forget_if_done(stream);
        Ok(())
    }

    /// The octets of a QUIC datagram that carries `payload` for a request.
    ///
    /// # Errors
    /// [`RespondError::NoRequest`] if the exchange is over; [`RespondError::NoDatagrams`].
    pub fn datagram(&self, stream: StreamId, payload: &[u8]) -> Result<Bytes, RespondError> {
        if !self.control.may_send_datagrams() {
            return Err(RespondError::NoDatagrams);
        }
        if !self.exchanges.contains_key(&stream) {
            return Err(RespondError::NoRequest(stream));
        }
        Ok(datagram::encode(stream, payload))
    }

    /// Whether a head may be sent now, and is well-formed.
    fn check_head(
        &self,
        stream: StreamId,
        fields: &FieldList,
    ) -> Result<message::ResponseInfo, RespondError> {
        let waits = self
            .exchanges
            .get(&stream)
            .is_some_and(|exchange| exchange.sending == State::AwaitHead);
        if self.failed || !waits {
            return Err(RespondError::NoRequest(stream));
        }
        let info = message::check_response(fields)?;
        // https://www.rfc-editor.org/rfc/rfc9114#section-4.2.2
        //# An implementation that has received this parameter SHOULD NOT send an HTTP message
        //# header that exceeds the indicated size, as the peer will likely refuse to process it.
        let limit = self.control.peer().max_field_section.unwrap_or(u64::MAX);
        if fields.size() > limit {
            return Err(RespondError::FieldsTooLarge { size: fields.size(), limit });
        }
        Ok(info)
    }
}
