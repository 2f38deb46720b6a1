//! What comes from the client.

use bytes::Bytes;
use quipu_base::{Instant, StreamDirection, StreamId};

use super::super::control::Incoming;
use super::super::event::ServerEvent;
use super::super::receiving::{Phase, Receiving, Step};
use super::super::{ConnectionError, ErrorCode, Failure};
use super::{Exchange, Server, State};
use crate::field::FieldList;
use crate::message;
use crate::transport::StreamTransport;

impl Server {
    /// Octets, an end or a reset came on `stream`. Bodies go to `sink`, in order per stream.
    pub fn on_stream_readable<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        now: Instant,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) {
        self.read(transport, stream, now, u64::MAX, sink);
    }

    /// The same with `most` octets of a body at most: what is left waits in the transport, and gives no
    /// credit. To be called again when the application has room. Returns how many octets there were.
    pub fn read<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        now: Instant,
        most: u64,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) -> u64 {
        if self.failed {
            return 0;
        }
        let mut room = most;
        let result = self.start(transport).and_then(|()| match stream.direction() {
            StreamDirection::Unidirectional => self.read_control(transport, stream, now),
            StreamDirection::Bidirectional => {
                self.open(transport, stream);
                self.read_request(transport, stream, now, &mut room, sink)
            }
        });
        match result {
            Ok(()) => self.flush(transport),
            Err(error) => self.fail_connection(error),
        }
        most - room
    }

    /// The client abandoned what it sends on `stream`.
    pub fn on_stream_reset<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        code: u64,
        now: Instant,
    ) {
        if stream.direction() == StreamDirection::Unidirectional {
            if let Err(error) = self.control.on_reset(stream) {
                self.fail_connection(error);
            }
            return;
        }
        let is_new = self.see(stream);
        if self.exchanges.contains_key(&stream) {
            self.fail(transport, stream, Failure::Reset(code), now);
        } else if is_new {
            // Nothing of it came: nobody waits for an answer.
            self.updates.remove(&stream);
            let _ = transport.reset(stream, ErrorCode::REQUEST_CANCELLED.0);
            self.count_cancelled(now);
        }
        self.flush(transport);
    }

    /// The client sent STOP_SENDING for `stream`.
    pub fn on_stream_stopped(&mut self, stream: StreamId, code: u64, now: Instant) {
        if stream.direction() == StreamDirection::Unidirectional {
            if let Err(error) = self.control.on_stopped(stream) {
                self.fail_connection(error);
            }
            return;
        }
        if let Some(exchange) = self.exchanges.get_mut(&stream)
            && exchange.sending != State::Done
        {
            exchange.sending = State::Done;
            self.events.push_back(ServerEvent::ResponseStopped { stream, code });
            self.forget_if_done(stream);
            self.count_cancelled(now);
        }
    }

    /// A QUIC datagram came.
    pub fn on_datagram(&mut self, datagram: &Bytes) {
        match self.control.on_datagram(datagram) {
            Ok(Some((stream, payload))) if self.exchanges.contains_key(&stream) => {
                self.events.push_back(ServerEvent::Datagram { stream, payload });
            }
            // https://www.rfc-editor.org/rfc/rfc9297#section-2.1
            //# If an HTTP/3 Datagram is received and its Quarter Stream ID field maps to a stream
            //# that has not yet been created, the receiver SHALL either drop that datagram silently
            //# or buffer it temporarily (on the order of a round trip) while awaiting the creation
            //# of the corresponding stream.
            // https://www.rfc-editor.org/rfc/rfc9297#section-2.1
            //# If a datagram is received after the corresponding stream's receive side is closed,
            //# the received datagrams MUST be silently dropped.
            // Of a request that is over or has not come, or not asked for.
            Ok(_) => {}
            Err(error) => self.fail_connection(error),
        }
    }

    /// Notes that a request's stream came; false if it was known.
    fn see(&mut self, stream: StreamId) -> bool {
        let index = stream.index();
        self.seen.insert(index..index + 1) > 0
    }

    /// Gives a request its exchange when its stream comes, unless it is refused.
    fn open<T: StreamTransport>(&mut self, transport: &mut T, stream: StreamId) {
        if self.exchanges.contains_key(&stream) || !self.see(stream) {
            return;
        }
        let stated = self.updates.remove(&stream);
        // https://www.rfc-editor.org/rfc/rfc9114#section-5.2
        //# Upon sending a GOAWAY frame, the endpoint SHOULD explicitly cancel (see Sections 4.1.1
        //# and 7.2.3) any requests or pushes that have identifiers greater than or equal to the one
        //# indicated, in order to clean up transport state for the affected streams. The endpoint
        //# SHOULD continue to do so as more requests or pushes arrive.
        let is_late = self.first_refused.is_some_and(|first| stream >= first);
        if is_late || self.exchanges.len() - self.awaiting_end >= self.allowed() {
            // https://www.rfc-editor.org/rfc/rfc9114#section-4.1.1
            //# The server SHOULD abort its response stream with the error code H3_REQUEST_REJECTED.
            //# [...] Servers MUST NOT use the H3_REQUEST_REJECTED error code for requests that were
            //# partially or fully processed.
            let _ = transport.stop_sending(stream, ErrorCode::REQUEST_REJECTED.0);
            let _ = transport.reset(stream, ErrorCode::REQUEST_REJECTED.0);
            return;
        }
        let exchange = Exchange {
            receiving: Receiving::new(),
            is_head: false,
            sending: State::AwaitHead,
            stated,
            awaits_end: false,
        };
        self.exchanges.insert(stream, exchange);
    }

    fn read_request<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        now: Instant,
        room: &mut u64,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) -> Result<(), ConnectionError> {
        while let Some(exchange) = self.exchanges.get_mut(&stream)
            && !matches!(exchange.receiving.phase, Phase::HeadQueued | Phase::Done)
        {
            let step =
                exchange.receiving.read((transport, stream), &mut self.control, room, sink)?;
            match step {
                Step::Pending => return Ok(()),
                Step::Section(fields) => self.on_section(transport, stream, fields, now)?,
                Step::Finished => {
                    exchange.receiving.phase = Phase::Done;
                    self.events.push_back(ServerEvent::RequestFinished { stream });
                    self.forget_if_done(stream);
                }
                Step::Failed(failure) => self.fail(transport, stream, failure, now),
            }
        }
        Ok(())
    }

    /// A head or trailers.
    fn on_section<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        fields: FieldList,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return Ok(()) };
        if exchange.receiving.phase == Phase::Body {
            // https://www.rfc-editor.org/rfc/rfc9114#section-4.1
            //# On a given stream, receipt of multiple requests or receipt of an additional HTTP
            //# response following a final HTTP response MUST be treated as malformed.
            match message::check_trailers(&fields) {
                Ok(()) => {
                    exchange.receiving.phase = Phase::Trailers;
                    self.events.push_back(ServerEvent::Trailers { stream, fields });
                }
                Err(error) => self.fail(transport, stream, error.into(), now),
            }
            return Ok(());
        }
        match message::check_h3_request(&fields, self.config.extended_connect) {
            Ok(info) => {
                exchange.is_head = info.is_head;
                exchange.receiving.tunnel = fields.get(":method") == Some(b"CONNECT");
                let length = info.content_length.filter(|_| !exchange.receiving.tunnel);
                exchange.receiving.on_head(
                    (transport, stream),
                    &mut self.control,
                    length,
                    false,
                )?;
                let end_stream = exchange.receiving.is_at_end();
                self.state_urgency(transport, stream, &fields);
                self.events.push_back(ServerEvent::RequestHead { stream, fields, end_stream });
            }
            Err(_) => {
                // https://www.rfc-editor.org/rfc/rfc9114#section-4.1.2
                //# Malformed requests or responses that are detected MUST be treated as a stream
                //# error of type H3_MESSAGE_ERROR.
                // The application never heard of it.
                self.abandon(transport, stream, ErrorCode::MESSAGE_ERROR);
                self.count_cancelled(now);
            }
        }
        Ok(())
    }

    /// Reads the control stream or one of QPACK's.
    fn read_control<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        now: Instant,
    ) -> Result<(), ConnectionError> {
        let mut incoming = Vec::new();
        let read = self.control.on_readable(transport, stream, &mut incoming);
        for frame in incoming {
            match frame {
                Incoming::Settings => {}
                // It names a push: none was promised, and it says that the client is about to close.
                Incoming::GoAway(id) => {
                    // https://www.rfc-editor.org/rfc/rfc9114#section-5.2
                    //# Receiving a GOAWAY containing a larger identifier than previously received
                    //# MUST be treated as a connection error of type H3_ID_ERROR.
                    if self.client_leaves.is_some_and(|before| id > before) {
                        let problem = "is larger than the one before";
                        return Err(ConnectionError::Id { frame: "GOAWAY", id, problem });
                    }
                    self.client_leaves = Some(id);
                    self.events.push_back(ServerEvent::GoAway);
                }
                // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.3
                //# If a server receives a CANCEL_PUSH frame for a push ID that has not yet been
                //# mentioned by a PUSH_PROMISE frame, this MUST be treated as a connection error of
                //# type H3_ID_ERROR.
                Incoming::CancelPush(id) => {
                    let problem = "nothing was promised";
                    return Err(ConnectionError::Id { frame: "CANCEL_PUSH", id, problem });
                }
                Incoming::MaxPushId(id) => {
                    // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.7
                    //# A MAX_PUSH_ID frame cannot reduce the maximum push ID; receipt of a
                    //# MAX_PUSH_ID frame that contains a smaller value than previously received
                    //# MUST be treated as a connection error of type H3_ID_ERROR.
                    if self.max_push_id.is_some_and(|before| id < before) {
                        let problem = "is less than before";
                        return Err(ConnectionError::Id { frame: "MAX_PUSH_ID", id, problem });
                    }
                    self.max_push_id = Some(id);
                }
                Incoming::PriorityUpdate { is_push, id, value } => {
                    self.on_priority_update(transport, is_push, id, &value)?;
                }
            }
        }
        read?;
        // Those that waited for QPACK's table have their heads, or trailers, now; no body comes of it.
        while let Some(stream) = self.control.decoder.poll_unblocked() {
            self.read_request(transport, stream, now, &mut 0, &mut |_, _| {})?;
        }
        Ok(())
    }

    /// A request's receiving half ends early. A reset leaves the response alone; a malformed request is
    /// abandoned altogether.
    fn fail<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        failure: Failure,
        now: Instant,
    ) {
        // Of one without a head the application never heard.
        let is_known = self
            .exchanges
            .get(&stream)
            .is_some_and(|exchange| exchange.receiving.phase != Phase::Head);
        match failure {
            Failure::Reset(_) if is_known => {
                self.control.decoder.cancel(stream);
                if let Some(exchange) = self.exchanges.get_mut(&stream) {
                    exchange.receiving.phase = Phase::Done;
                }
                self.events.push_back(ServerEvent::RequestFailed { stream, failure });
                self.forget_if_done(stream);
            }
            failure => {
                let code = match failure {
                    // https://www.rfc-editor.org/rfc/rfc9114#section-4.1.1
                    //# When a server abandons a response after partial processing, it SHOULD abort
                    //# its response stream with the error code H3_REQUEST_CANCELLED.
                    Failure::Reset(_) | Failure::Refused => ErrorCode::REQUEST_CANCELLED,
                    // https://www.rfc-editor.org/rfc/rfc9114#section-4.1
                    //# If a client-initiated stream terminates without enough of the HTTP message
                    //# to provide a complete response, the server SHOULD abort its response stream
                    //# with the error code H3_REQUEST_INCOMPLETE.
                    Failure::NoHead => ErrorCode::REQUEST_INCOMPLETE,
                    Failure::Malformed(_) => ErrorCode::MESSAGE_ERROR,
                    Failure::FieldsTooLarge { .. } => ErrorCode::EXCESSIVE_LOAD,
                };
                self.abandon(transport, stream, code);
                if is_known {
                    self.events.push_back(ServerEvent::RequestFailed { stream, failure });
                }
                self.count_cancelled(now);
            }
        }
    }
}
