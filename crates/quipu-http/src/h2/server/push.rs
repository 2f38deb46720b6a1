//! Pushes responses that nobody asked for. <https://www.rfc-editor.org/rfc/rfc9113#section-8.4>

use quipu_base::StreamId;
use thiserror::Error;

use super::super::exchange::{Phase, Receiving};
use super::super::{FrameStreamId, Server};
use super::urgencies::set;
use super::{Exchange, Sending, State, edit_tree};
use crate::field::FieldList;
use crate::message::{self, MessageError};
use crate::priority::PriorityField;
use crate::transport::{StreamError, Transport};

/// Pushed responses at a time if the client does not say how many it takes; our choice.
const PUSHES_UNSAID: u32 = 100;

/// Why a response was not promised.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PushError {
    /// The client takes no pushed responses, goes away, or the connection failed.
    #[error("the client takes no pushed responses")]
    NotAllowed,
    /// No request waits for an answer on the stream: there is none, it was answered, it was cancelled, or
    /// it is itself a promise.
    #[error("no request waits for an answer on {0}")]
    NoRequest(StreamId),
    /// The client's limit of pushed responses at a time is reached, or the transport's of streams.
    #[error("no stream is free")]
    NoStream,
    /// All stream identifiers of a connection were used.
    #[error("the stream identifiers below 2^31 are used up")]
    IdentifiersUsedUp,
    /// The promised request is malformed, or cannot be pushed.
    #[error(transparent)]
    Malformed(#[from] MessageError),
    /// The client does not take so many fields.
    #[error("the fields take {size} octets, where the client takes {limit}")]
    FieldsTooLarge {
        /// Size as [`FieldList::size`] counts.
        size: u64,
        /// The client's limit, in octets.
        limit: u32,
    },
    /// The transport refused.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

impl Server {
    /// Promises the response to a request with these `fields`, and returns its stream: to be
    /// [answered](Server::respond) as if the client had asked. `request` is the one whose response
    /// refers to it, and must not have been answered: a promise that came after that answer would come
    /// too late. The caller is to have authority over what it promises.
    ///
    /// # Errors
    /// See [`PushError`]; nothing was sent then, except after [`PushError::Stream`].
    pub fn push<T: Transport>(
        &mut self,
        transport: &mut T,
        request: StreamId,
        fields: &FieldList,
    ) -> Result<StreamId, PushError> {
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.5.2
        //# A server MUST NOT send a PUSH_PROMISE frame if it receives this parameter set to a
        //# value of 0; see Section 8.4.
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.6
        //# PUSH_PROMISE MUST NOT be sent if the SETTINGS_ENABLE_PUSH setting of the peer endpoint
        //# is set to 0.
        let refused = self.control.peer_push() == Some(false);
        if refused || self.state != State::Open || self.client_leaves {
            return Err(PushError::NotAllowed);
        }
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.6
        //# PUSH_PROMISE frames MUST only be sent on a peer-initiated stream that is in either the
        //# "open" or "half-closed (remote)" state.
        // https://www.rfc-editor.org/rfc/rfc9113#section-8.4.1
        //# The server SHOULD send PUSH_PROMISE (Section 6.6) frames prior to sending any frames
        //# that reference the promised responses.
        let numbering = self.config.numbering;
        let parent = self
            .exchanges
            .get(&request)
            .filter(|exchange| !exchange.pushed && exchange.sending == Sending::AwaitHead)
            .and_then(|_| FrameStreamId::of(request, numbering).ok())
            .ok_or(PushError::NoRequest(request))?;
        // https://www.rfc-editor.org/rfc/rfc9113#section-8.4.1
        //# The header fields in PUSH_PROMISE and any subsequent CONTINUATION frames MUST be a
        //# valid and complete set of request header fields (Section 8.3.1). The server MUST
        //# include a method in the ":method" pseudo-header field that is safe and cacheable.
        let info = message::check_promise(fields)?;
        if let Some(limit) = self.control.peer_field_list()
            && fields.size() > u64::from(limit)
        {
            return Err(PushError::FieldsTooLarge { size: fields.size(), limit });
        }
        // Reserved streams do not count for RFC 9113, but a client has to remember them.
        let limit = self.control.peer_concurrency().unwrap_or(PUSHES_UNSAID);
        if self.pushing.len() as u64 >= u64::from(limit) {
            return Err(PushError::NoStream);
        }
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.6
        //# The promised stream identifier MUST be a valid choice for the next stream sent by the
        //# sender (see "new stream identifier" in Section 5.1.1).
        let stream = transport.open_unidirectional().ok_or(PushError::NoStream)?;
        let id = FrameStreamId::of(stream, numbering).map_err(|_| PushError::IdentifiersUsedUp)?;
        self.control.send_promise(transport, parent, id, fields)?;
        let ignored = self.ignores_tree();
        self.names.promise(id, stream, parent, &mut |edit| edit_tree(transport, ignored, edit));
        let stated = PriorityField::of(fields);
        if stated.is_some() || ignored {
            set(transport, stream, stated.unwrap_or_default());
        }
        let mut receiving = Receiving::new();
        receiving.phase = Phase::Done;
        let sending = Sending::AwaitHead;
        let (is_head, pushed, awaits_end) = (info.is_head, true, false);
        let exchange = Exchange { receiving, is_head, sending, stated, pushed, awaits_end };
        self.exchanges.insert(stream, exchange);
        self.pushed += 1;
        self.pushing.insert(stream);
        Ok(stream)
    }
}
