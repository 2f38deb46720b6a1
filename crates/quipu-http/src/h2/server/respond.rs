//! Sends responses.

use bytes::Bytes;
use quipu_base::StreamId;
use thiserror::Error;

use super::super::exchange;
use super::super::{FrameStreamId, Server};
use super::{Exchange, Sending};
use crate::exchange::{Body, BodyError};
use crate::field::FieldList;
use crate::message::{self, MessageError};
use crate::transport::{StreamError, Transport};

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
    /// Responses with status 1xx are not carried.
    #[error("status {0}; expected 200 to 999")]
    Informational(u16),
    /// A body where the method or the status forbids one.
    #[error("a body for a response that has none: to HEAD, or with status {0}")]
    BodyNotAllowed(u16),
    /// The client does not take so many fields.
    #[error("the fields take {size} octets, where the client takes {limit}")]
    FieldsTooLarge {
        /// Size as [`FieldList::size`] counts.
        size: u64,
        /// The client's limit, in octets.
        limit: u32,
    },
    /// The transport refused, as it does after the client cancelled.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

impl Server {
    /// Answers a request, or what was [promised](Server::push). Tells the transport how large the response's body is: from `body`, else from
    /// the content length in `fields`.
    ///
    /// # Errors
    /// See [`RespondError`]; nothing was sent then, except after [`RespondError::Stream`].
    pub fn respond<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        fields: &FieldList,
        body: Body,
    ) -> Result<(), RespondError> {
        let exchange = self
            .exchanges
            .get_mut(&stream)
            .filter(|exchange| exchange.sending == Sending::AwaitHead)
            .ok_or(RespondError::NoRequest(stream))?;
        let id = FrameStreamId::of(stream, self.config.numbering)
            .map_err(|_| RespondError::NoRequest(stream))?;
        let info = message::check_response(fields)?;
        if info.status < 200 {
            return Err(RespondError::Informational(info.status));
        }
        let bodiless = exchange.is_head || matches!(info.status, 204 | 304);
        if bodiless && body != Body::Empty {
            return Err(RespondError::BodyNotAllowed(info.status));
        }
        if let Some(limit) = self.control.peer_field_list()
            && fields.size() > u64::from(limit)
        {
            return Err(RespondError::FieldsTooLarge { size: fields.size(), limit });
        }
        exchange.sending = if body == Body::Streamed { Sending::Body } else { Sending::Done };
        let stated = exchange.stated;
        self.forget_if_done(stream);
        let end_stream = body == Body::Empty;
        self.control.send_headers(transport, (id, stream), fields, None, end_stream)?;
        Self::merge_urgency(transport, stream, stated, fields);
        exchange::send(transport, stream, body, info.content_length)?;
        Ok(())
    }

    /// Sends more of a [streamed](Body::Streamed) body: as much as the transport has room for. Returns
    /// how many octets; the transport tells when there is room for the others.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub fn send_body<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        octets: Bytes,
    ) -> Result<usize, BodyError> {
        self.exchange_sending(stream)?;
        Ok(transport.write_some(stream, octets)?)
    }

    /// Ends a [streamed](Body::Streamed) body.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub fn finish<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
    ) -> Result<(), BodyError> {
        self.exchange_sending(stream)?.sending = Sending::Done;
        self.forget_if_done(stream);
        Ok(transport.finish(stream)?)
    }

    fn exchange_sending(&mut self, stream: StreamId) -> Result<&mut Exchange, BodyError> {
        self.exchanges
            .get_mut(&stream)
            .filter(|exchange| exchange.sending == Sending::Body)
            .ok_or(BodyError::NotSending(stream))
    }
}
