//! Sends requests, and says what the server shall send first.

use bytes::Bytes;
use quipu_base::StreamId;
use quipu_policy::Urgency;
use thiserror::Error;

use super::super::control::CONTROL_STREAM;
use super::super::exchange::{self, Receiving};
use super::super::frame::{self, StreamPriority};
use super::super::{Client, FrameStreamId};
use super::{Exchange, State};
use crate::exchange::{Body, BodyError};
use crate::field::FieldList;
use crate::message::{self, MessageError};
use crate::priority::PriorityField;
use crate::transport::{StreamError, Transport};

/// Requests at a time until the server has said how many it takes: what a server may be expected to
/// allow at least, so that none is refused whose SETTINGS are late or lost.
///
/// <https://www.rfc-editor.org/rfc/rfc9113#section-6.5.2>
//# It is recommended that this value be no smaller than 100, so as to not unnecessarily limit
//# parallelism.
pub(super) const REQUESTS_BEFORE_SETTINGS: u32 = 100;

/// A request to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// All fields, pseudo-header fields first.
    pub fields: FieldList,
    /// The body.
    pub body: Body,
    /// Place in the server's dependency tree; `None` leaves the default, or what
    /// [`Client::prioritise`] said before of the stream. Not sent by a client
    /// [with urgencies](Client::with_urgencies): the `priority` field says it.
    pub priority: Option<StreamPriority>,
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
    /// The server's limit of requests at a time is reached, or QUIC's of streams. Try again when a
    /// response is complete.
    #[error("no stream is free")]
    NoStream,
    /// All stream identifiers of a connection were used.
    #[error("the stream identifiers below 2^31 are used up")]
    IdentifiersUsedUp,
    /// The request is malformed.
    #[error(transparent)]
    Malformed(#[from] MessageError),
    /// The server does not take so many fields.
    #[error("the fields take {size} octets, where the server takes {limit}")]
    FieldsTooLarge {
        /// Size as [`FieldList::size`] counts.
        size: u64,
        /// The server's limit, in octets.
        limit: u32,
    },
    /// A weight out of range.
    #[error("weight {0}; expected 1 to 256")]
    Weight(u16),
    /// A node that depends on itself.
    #[error("stream {0} would depend on itself")]
    SelfDependency(FrameStreamId),
    /// The transport refused.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

impl Client {
    /// Sends a request on the next stream, whose identifier is returned. Tells the transport the size of
    /// the body, if it is known.
    ///
    /// # Errors
    /// See [`RequestError`]; nothing was sent then, except after [`RequestError::Stream`].
    pub fn request<T: Transport>(
        &mut self,
        transport: &mut T,
        request: Request,
    ) -> Result<StreamId, RequestError> {
        let Request { fields, body, priority } = request;
        let info = self.check_request(&fields, priority)?;
        let stream = transport.open().ok_or(RequestError::NoStream)?;
        let id = FrameStreamId::try_from(stream).map_err(|_| RequestError::IdentifiersUsedUp)?;
        (self.last_opened, self.next) = (stream, self.numbering.next(stream));
        let exchange = Exchange {
            receiving: Receiving::new(),
            is_head: info.is_head,
            sending: body == Body::Streamed,
            pushed: false,
        };
        self.exchanges.insert(stream, exchange);
        let end_stream = body == Body::Empty;
        let priority = priority.filter(|_| !self.no_tree);
        self.control.send_headers(transport, (id, stream), &fields, priority, end_stream)?;
        exchange::send(transport, stream, body, info.content_length)?;
        Ok(stream)
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
        self.exchange_sending(stream)?.sending = false;
        self.forget_if_done(stream);
        Ok(transport.finish(stream)?)
    }

    /// Sends a PRIORITY frame: another place for a request, or for a group. A client
    /// [with urgencies](Client::with_urgencies) sends none.
    ///
    /// # Errors
    /// [`RequestError::NotOpen`], [`RequestError::Weight`], [`RequestError::SelfDependency`], or the
    /// transport refused.
    pub fn prioritise<T: Transport>(
        &mut self,
        transport: &mut T,
        node: FrameStreamId,
        priority: StreamPriority,
    ) -> Result<(), RequestError> {
        if self.state != State::Open {
            return Err(RequestError::NotOpen);
        }
        check_priority(node, priority)?;
        if self.no_tree {
            return Ok(());
        }
        let mut out = Vec::new();
        frame::encode_priority(node, priority, &mut out);
        Ok(transport.write(CONTROL_STREAM, Bytes::from(out))?)
    }

    /// Sends a PRIORITY_UPDATE frame: another urgency for a request, or for a promised response. Does nothing if the server's
    /// settings came and do not say that it goes by urgencies.
    ///
    /// # Errors
    /// [`RequestError::NotOpen`], [`RequestError::IdentifiersUsedUp`] for a stream that cannot be a
    /// request and was not promised, or the transport refused.
    pub fn update_priority<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        urgency: Urgency,
    ) -> Result<(), RequestError> {
        if self.state != State::Open {
            return Err(RequestError::NotOpen);
        }
        // https://www.rfc-editor.org/rfc/rfc9218#section-7.1
        //# Clients MUST NOT provide a prioritized stream ID that refers to a push stream in the
        //# "idle" state.
        let id = FrameStreamId::of(stream, self.numbering)
            .ok()
            .filter(|&id| id.request(self.numbering).or_else(|| self.promised(id)).is_some())
            .ok_or(RequestError::IdentifiersUsedUp)?;
        // https://www.rfc-editor.org/rfc/rfc9218#section-2.1.1
        //# Similarly, if the client receives SETTINGS_NO_RFC7540_PRIORITIES with a value of 0 or
        //# if the settings parameter was absent, it SHOULD stop sending PRIORITY_UPDATE frames
        //# (Section 7.1), since those frames are likely to be ignored.
        if self.control.peer_no_tree() == Some(false) {
            return Ok(());
        }
        let mut out = Vec::new();
        let value = PriorityField::from(urgency).to_string();
        frame::encode_priority_update(id, &value, &mut out);
        Ok(transport.write(CONTROL_STREAM, Bytes::from(out))?)
    }

    fn check_request(
        &self,
        fields: &FieldList,
        priority: Option<StreamPriority>,
    ) -> Result<message::RequestInfo, RequestError> {
        if self.state != State::Open {
            return Err(RequestError::NotOpen);
        }
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.8
        //# Receivers of a GOAWAY frame MUST NOT open additional streams on the connection,
        //# although a new connection can be established for new streams.
        if self.last_answered.is_some() {
            return Err(RequestError::GoingAway);
        }
        let info = message::check_request(fields)?;
        if let Some(limit) = self.control.peer_field_list()
            && fields.size() > u64::from(limit)
        {
            return Err(RequestError::FieldsTooLarge { size: fields.size(), limit });
        }
        // Before a stream is opened that would then never have a head.
        let next =
            FrameStreamId::try_from(self.next).map_err(|_| RequestError::IdentifiersUsedUp)?;
        if let Some(priority) = priority {
            check_priority(next, priority)?;
        }
        // https://www.rfc-editor.org/rfc/rfc9113#section-5.1.2
        //# Endpoints MUST NOT exceed the limit set by their peer.
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.5.2
        //# A value of 0 for SETTINGS_MAX_CONCURRENT_STREAMS SHOULD NOT be treated as special by
        //# endpoints.
        if self.free() == 0 {
            return Err(RequestError::NoStream);
        }
        Ok(info)
    }

    fn exchange_sending(&mut self, stream: StreamId) -> Result<&mut Exchange, BodyError> {
        self.exchanges
            .get_mut(&stream)
            .filter(|exchange| exchange.sending)
            .ok_or(BodyError::NotSending(stream))
    }
}

pub(super) fn check_priority(
    node: FrameStreamId,
    priority: StreamPriority,
) -> Result<(), RequestError> {
    if !(1..=256).contains(&priority.weight) {
        return Err(RequestError::Weight(priority.weight));
    }
    // The root cannot be placed either.
    if node == priority.parent || node.is_zero() {
        return Err(RequestError::SelfDependency(node));
    }
    Ok(())
}
