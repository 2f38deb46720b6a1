//! Takes responses that the server sends unasked. <https://www.rfc-editor.org/rfc/rfc9113#section-8.4>

use std::collections::BTreeSet;

use quipu_base::StreamId;

use super::super::event::ClientEvent;
use super::super::exchange::{Receiving, abandon};
use super::super::{Client, ConnectionError, ErrorCode, FrameStreamId};
use super::Exchange;
use crate::field::FieldList;
use crate::hpack::Outcome;
use crate::message;
use crate::transport::Transport;

/// Promises of a connection that may be refused, and pushed responses that may be reset before their
/// promise came; our choice. A server that keeps to the limit needs few.
const MAX_REFUSED: usize = 1_000;

/// What a server promised.
#[derive(Debug, Default)]
pub(super) struct Promises {
    /// Promised responses at a time that are not complete; `None` if there may be no promise.
    limit: Option<u32>,
    /// How many are not complete.
    open: usize,
    /// The last promised stream; zero before the first.
    last: FrameStreamId,
    /// How many were refused in all.
    refused: usize,
    /// Streams that were reset before their promise came.
    reset: BTreeSet<StreamId>,
}

impl Promises {
    pub(super) fn up_to(limit: u32) -> Self {
        Promises { limit: Some(limit), ..Promises::default() }
    }

    pub(super) fn limit(&self) -> Option<u32> {
        self.limit
    }

    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// One of them is over.
    pub(super) fn end(&mut self) {
        self.open -= 1;
    }
}

impl Client {
    /// The stream of a response that was promised, and may be over.
    pub(super) fn promised(&self, id: FrameStreamId) -> Option<StreamId> {
        id.pushed(self.numbering).filter(|_| id <= self.promises.last)
    }

    /// A PUSH_PROMISE frame.
    pub(super) fn on_promise<T: Transport>(
        &mut self,
        transport: &mut T,
        id: FrameStreamId,
        promised: FrameStreamId,
        fields: FieldList,
        outcome: Outcome,
    ) -> Result<(), ConnectionError> {
        let wrong = |problem| ConnectionError::WrongPromise { stream: id, promised, problem };
        let request = id.request(self.numbering).filter(|&request| request <= self.last_opened);
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.6
        //# A receiver MUST treat the receipt of a PUSH_PROMISE on a stream that is neither "open"
        //# nor "half-closed (local)" as a connection error (Section 5.4.1) of type
        //# PROTOCOL_ERROR.
        // A stream that is over is another matter: where bodies travel apart from frames, the end of
        // one may come before the promise that was sent first.
        let request = request.ok_or(wrong("which is no request of this client"))?;
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.6
        //# A receiver MUST treat the receipt of a PUSH_PROMISE that promises an illegal stream
        //# identifier (Section 5.1.1) as a connection error (Section 5.4.1) of type
        //# PROTOCOL_ERROR.
        let stream = promised.pushed(self.numbering).ok_or(wrong("a server cannot open it"))?;
        if promised <= self.promises.last {
            return Err(wrong("it is not idle"));
        }
        self.promises.last = promised;
        let reset = self.promises.reset.remove(&stream);
        // Promises come in the order of their streams: those of older ones never will.
        while self.promises.reset.first().is_some_and(|&other| other < stream) {
            self.promises.reset.pop_first();
        }
        let limit = self.promises.limit.unwrap_or(0);
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.6
        //# However, an endpoint that has sent RST_STREAM on the associated stream MUST handle
        //# PUSH_PROMISE frames that might have been created before the RST_STREAM frame is
        //# received and processed.
        let is_wanted = self.exchanges.contains_key(&request);
        let (is_head, refusal) = match message::check_promise(&fields) {
            // https://www.rfc-editor.org/rfc/rfc9113#section-10.5
            //# A client that accepts server push SHOULD limit the number of streams it allows to
            //# be in the "reserved (remote)" state.
            _ if !is_wanted || self.promises.open as u64 >= u64::from(limit) => {
                (false, Some(ErrorCode::REFUSED_STREAM))
            }
            _ if outcome == Outcome::TooLarge => (false, Some(ErrorCode::ENHANCE_YOUR_CALM)),
            // https://www.rfc-editor.org/rfc/rfc9113#section-8.4
            //# Clients that receive a promised request that is not cacheable, that is not known to
            //# be safe, or that indicates the presence of request content MUST reset the promised
            //# stream with a stream error (Section 5.4.2) of type PROTOCOL_ERROR.
            // https://www.rfc-editor.org/rfc/rfc9113#section-8.4.1
            //# If a client receives a PUSH_PROMISE that does not include a complete and valid set
            //# of header fields or the ":method" pseudo-header field identifies a method that is
            //# not safe, it MUST respond on the promised stream with a stream error (Section
            //# 5.4.2) of type PROTOCOL_ERROR.
            Err(_) => (false, Some(ErrorCode::PROTOCOL_ERROR)),
            Ok(info) => (info.is_head, None),
        };
        if let Some(code) = refusal {
            abandon(transport, stream, code);
            return self.count_refused();
        }
        if reset {
            return self.count_refused();
        }
        let receiving = Receiving::new();
        self.exchanges
            .insert(stream, Exchange { receiving, is_head, sending: false, pushed: true });
        self.promises.open += 1;
        self.events.push_back(ClientEvent::Promised { request, stream, fields });
        Ok(())
    }

    fn count_refused(&mut self) -> Result<(), ConnectionError> {
        self.promises.refused += 1;
        // https://www.rfc-editor.org/rfc/rfc9113#section-10.5
        //# Implementations SHOULD track the use of these features and set limits on their use.
        if self.promises.refused > MAX_REFUSED {
            return Err(ConnectionError::TooManyPromises { limit: MAX_REFUSED });
        }
        Ok(())
    }

    /// A stream of which nothing is known was reset. If it is to be promised, nothing will come of it; it
    /// is remembered until then.
    pub(super) fn note_reset_promise(&mut self, stream: StreamId) {
        let id = FrameStreamId::of(stream, self.numbering).ok();
        let is_ahead = |id: &FrameStreamId| {
            id.pushed(self.numbering) == Some(stream) && *id > self.promises.last
        };
        if self.promises.limit.is_none() || id.filter(is_ahead).is_none() {
            return;
        }
        self.promises.reset.insert(stream);
        if self.promises.reset.len() > MAX_REFUSED {
            self.fail_connection(ConnectionError::TooManyPromises { limit: MAX_REFUSED });
        }
    }
}
