//! What comes on the control stream: requests, and what is said of their priorities.

use bytes::Bytes;
use quipu_base::{Instant, StreamId};

use super::super::control::{CONTROL_STREAM, ConnectionError, Incoming};
use super::super::event::ServerEvent;
use super::super::exchange::{Receiving, abandon};
use super::super::frame::{Settings, StreamPriority};
use super::super::{ErrorCode, FrameStreamId, Server};
use super::{Exchange, Sending, State, UNCLOSED_PER_REQUEST, edit_tree};
use crate::budget::CANCEL_BURST;
use crate::exchange::Failure;
use crate::field::FieldList;
use crate::hpack::Outcome;
use crate::message::{self, MessageError};
use crate::transport::Transport;

impl Server {
    /// Takes what came on the control stream; the first time, announces itself there.
    pub(super) fn read_control<T: Transport>(
        &mut self,
        transport: &mut T,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        if self.state == State::Idle {
            self.state = State::Open;
            transport.set_control(CONTROL_STREAM);
            let settings = Settings {
                max_concurrent_streams: Some(self.config.max_requests),
                // https://www.rfc-editor.org/rfc/rfc9218#section-2.1
                //# If endpoints use SETTINGS_NO_RFC7540_PRIORITIES, they MUST send it in the
                //# first SETTINGS frame.
                no_rfc7540_priorities: self.config.urgencies_only.then_some(true),
                ..Settings::default()
            };
            let mut out = Vec::new();
            // https://www.rfc-editor.org/rfc/rfc9113#section-3.3
            //# Likewise, the server MUST send a connection preface (Section 3.4).
            // https://www.rfc-editor.org/rfc/rfc9113#section-3.4
            //# The server connection preface consists of a potentially empty SETTINGS frame
            //# (Section 6.5) that MUST be the first frame the server sends in the HTTP/2
            //# connection.
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.5
            //# A SETTINGS frame MUST be sent by both endpoints at the start of a connection and
            //# MAY be sent at any other time by either endpoint over the lifetime of the
            //# connection.
            self.control.announce(transport, settings, &mut out);
            transport.write(CONTROL_STREAM, Bytes::from(out))?;
        }
        self.control.receive(transport)?;
        while self.state != State::Failed
            && let Some(incoming) = self.control.next(transport)?
        {
            match incoming {
                Incoming::Headers { stream, priority, end_stream, fields, outcome } => {
                    let stream = self.open(transport, stream, priority, outcome, now)?;
                    if let Some(stream) = stream {
                        self.state_urgency(transport, stream, &fields);
                        self.on_head(transport, stream, end_stream, fields, now);
                    }
                }
                // The decoder of a server refuses them.
                Incoming::Promise { stream, promised, .. } => {
                    let problem = "from a client";
                    return Err(ConnectionError::WrongPromise { stream, promised, problem });
                }
                Incoming::Priority { stream, priority } => {
                    self.on_priority(transport, stream, priority, now)?;
                }
                Incoming::PriorityUpdate { stream, value } => {
                    self.on_priority_update(transport, stream, &value)?;
                }
                Incoming::GoAway { code, .. } => {
                    self.client_leaves = true;
                    self.events.push_back(ServerEvent::GoAway { code });
                }
            }
        }
        Ok(())
    }

    /// Gives a request its exchange and its node, unless it is refused.
    fn open<T: Transport>(
        &mut self,
        transport: &mut T,
        id: FrameStreamId,
        priority: Option<StreamPriority>,
        outcome: Outcome,
        now: Instant,
    ) -> Result<Option<StreamId>, ConnectionError> {
        let problem = "the client cannot open";
        let request = id.request(self.config.numbering);
        // https://www.rfc-editor.org/rfc/rfc9113#section-5.1.1
        //# An endpoint that receives an unexpected stream identifier MUST respond with a
        //# connection error (Section 5.4.1) of type PROTOCOL_ERROR.
        let stream = request.ok_or(ConnectionError::WrongStream { stream: id, problem })?;
        if self.exchanges.contains_key(&stream) {
            // https://www.rfc-editor.org/rfc/rfc9113#section-8.1
            //# An endpoint that receives pseudo-header fields in trailers MUST treat the request
            //# or response as malformed (Section 8.1.1). An endpoint that receives a HEADERS
            //# frame without the END_STREAM flag set after receiving the HEADERS frame that opens
            //# a request or after receiving a final (non-informational) status code MUST treat
            //# the corresponding request or response as malformed (Section 8.1.1).
            self.fail(transport, stream, Failure::Malformed(MessageError::Trailers), now);
            return Ok(None);
        }
        // https://www.rfc-editor.org/rfc/rfc9113#section-5.1.1
        //# The identifier of a newly established stream MUST be numerically greater than all
        //# streams that the initiating endpoint has opened or reserved.
        if id <= self.names.last_request() {
            return Err(ConnectionError::StreamClosed { stream: id });
        }
        let allowed = self.allowed();
        let cancelled = self.cancelled.remove(&stream);
        if cancelled && !self.cancels.spend(now) {
            return Err(ConnectionError::TooManyResets { burst: CANCEL_BURST });
        }
        // HEADERS come in the order of their streams: those of older ones never will.
        while self.cancelled.first().is_some_and(|&other| other < stream) {
            self.cancelled.pop_first();
        }
        let refusal = if cancelled {
            Some(ErrorCode::CANCEL)
        } else if self.last_answered.is_some()
            || self.requests() >= allowed
            || self.names.live() - self.pushing.len()
                >= allowed.saturating_mul(UNCLOSED_PER_REQUEST)
        {
            // https://www.rfc-editor.org/rfc/rfc9113#section-5.1.2
            //# An endpoint that receives a HEADERS frame that causes its advertised concurrent
            //# stream limit to be exceeded MUST treat this as a stream error (Section 5.4.2) of
            //# type PROTOCOL_ERROR or REFUSED_STREAM.
            // https://www.rfc-editor.org/rfc/rfc9113#section-8.7
            //# A server MUST NOT indicate that a stream has not been processed unless it can
            //# guarantee that fact. If frames that are on a stream are passed to the application
            //# layer for any stream, then REFUSED_STREAM MUST NOT be used for that stream, and a
            //# GOAWAY frame MUST include a stream identifier that is greater than or equal to the
            //# given stream identifier.
            Some(ErrorCode::REFUSED_STREAM)
        } else if outcome == Outcome::TooLarge {
            Some(ErrorCode::ENHANCE_YOUR_CALM)
        } else {
            None
        };
        let ignored = self.ignores_tree();
        let priority = priority.filter(|_| !ignored);
        let edit = &mut |edit| edit_tree(transport, ignored, edit);
        let refusal = match refusal {
            Some(code) => {
                self.names.skip(id, edit);
                Some(code)
            }
            None => {
                self.names.open(id, stream, priority, edit).err().map(|_| ErrorCode::PROTOCOL_ERROR)
            }
        };
        if let Some(code) = refusal {
            abandon(transport, stream, code);
            // A client that has not seen the limit yet may exceed it, and one that cancelled was counted.
            if !matches!(code, ErrorCode::REFUSED_STREAM | ErrorCode::CANCEL) {
                self.count_cancelled(now);
            }
            return Ok(None);
        }
        let exchange = Exchange {
            receiving: Receiving::new(),
            is_head: false,
            sending: Sending::AwaitHead,
            stated: None,
            pushed: false,
            awaits_end: false,
        };
        self.exchanges.insert(stream, exchange);
        Ok(Some(stream))
    }

    fn on_head<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        end_stream: bool,
        fields: FieldList,
        now: Instant,
    ) {
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return };
        let checked = message::check_request(&fields).and_then(|info| {
            exchange.is_head = info.is_head;
            exchange.receiving.on_head(info.content_length, end_stream, false)
        });
        if checked.is_ok() {
            self.events.push_back(ServerEvent::RequestHead { stream, fields, end_stream });
        } else {
            // The application never heard of it.
            self.abandon(transport, stream, ErrorCode::PROTOCOL_ERROR, now);
            self.count_cancelled(now);
        }
    }

    fn on_priority<T: Transport>(
        &mut self,
        transport: &mut T,
        id: FrameStreamId,
        priority: StreamPriority,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        // https://www.rfc-editor.org/rfc/rfc9218#section-2.1
        //# A server that receives SETTINGS_NO_RFC7540_PRIORITIES with a value of 1 MUST ignore
        //# HTTP/2 priority signals.
        if self.ignores_tree() {
            return Ok(());
        }
        let edit = &mut |edit| transport.edit_priority(edit);
        if self.names.reprioritise(id, priority, edit).is_ok() {
            return Ok(());
        }
        // https://www.rfc-editor.org/rfc/rfc7540#section-5.3.1
        //# An endpoint MUST treat this as a stream error (Section 5.4.2) of
        //# type PROTOCOL_ERROR.
        let stream = id.stream(self.config.numbering);
        match stream.filter(|stream| self.exchanges.contains_key(stream)) {
            Some(stream) => {
                self.reset(transport, stream, ErrorCode::PROTOCOL_ERROR, now);
                self.count_cancelled(now);
                Ok(())
            }
            None => Err(ConnectionError::SelfDependency { stream: id }),
        }
    }
}
