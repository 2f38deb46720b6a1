//! What comes from the server.

use bytes::Bytes;
use quipu_base::{StreamDirection, StreamId};

use super::super::event::ClientEvent;
use super::super::receiving::{Phase, Step};
use super::super::{ConnectionError, ErrorCode, Failure};
use super::request::is_request;
use super::{Client, Incoming};
use crate::field::FieldList;
use crate::message;
use crate::transport::StreamTransport;

impl Client {
    /// Octets, an end or a reset came on `stream`. Bodies go to `sink`, in order per stream.
    pub fn on_stream_readable<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) {
        self.read(transport, stream, u64::MAX, sink);
    }

    /// The same with `most` octets of a body at most: what is left waits in the transport, and gives no
    /// credit. To be called again when the application has room. Returns how many octets there were.
    pub fn read<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        most: u64,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) -> u64 {
        if self.failed {
            return 0;
        }
        let mut room = most;
        let result = match stream.direction() {
            StreamDirection::Unidirectional => self.read_control(transport, stream),
            StreamDirection::Bidirectional => {
                self.read_response(transport, stream, &mut room, sink)
            }
        };
        match result {
            Ok(()) => self.flush(transport),
            Err(error) => self.fail_connection(error),
        }
        most - room
    }

    /// The server abandoned what it sends on `stream`.
    pub fn on_stream_reset<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        code: u64,
    ) {
        if stream.direction() == StreamDirection::Unidirectional {
            if let Err(error) = self.control.on_reset(stream) {
                self.fail_connection(error);
            }
        } else if self.exchanges.contains_key(&stream) {
            let refused = code == ErrorCode::REQUEST_REJECTED.0;
            let failure = if refused { Failure::Refused } else { Failure::Reset(code) };
            self.fail(transport, stream, failure);
            self.flush(transport);
        }
    }

    /// The server sent STOP_SENDING for `stream`.
    pub fn on_stream_stopped(&mut self, stream: StreamId, code: u64) {
        if stream.direction() == StreamDirection::Unidirectional {
            if let Err(error) = self.control.on_stopped(stream) {
                self.fail_connection(error);
            }
            return;
        }
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return };
        // https://www.rfc-editor.org/rfc/rfc9114#section-4.1
        //# Clients MUST NOT discard complete responses as a result of having their request
        //# terminated abruptly, though clients can always discard responses at their discretion for
        //# other reasons.
        if exchange.sending.take().is_some() {
            self.events.push_back(ClientEvent::UploadStopped { stream, code });
            self.forget_if_done(stream);
        }
    }

    /// A QUIC datagram came.
    pub fn on_datagram(&mut self, datagram: &Bytes) {
        match self.control.on_datagram(datagram) {
            Ok(Some((stream, payload))) if self.exchanges.contains_key(&stream) => {
                self.events.push_back(ClientEvent::Datagram { stream, payload });
            }
            // Of a request that is over, or not asked for.
            Ok(_) => {}
            Err(error) => self.fail_connection(error),
        }
    }

    fn read_response<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        room: &mut u64,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) -> Result<(), ConnectionError> {
        // https://www.rfc-editor.org/rfc/rfc9114#section-6.1
        //# Clients MUST treat receipt of a server-initiated bidirectional stream as a connection
        //# error of type H3_STREAM_CREATION_ERROR unless such an extension has been negotiated.
        if !is_request(stream) {
            let problem = "a bidirectional one, as a server";
            return Err(ConnectionError::StreamCreation { stream, problem });
        }
        while let Some(exchange) = self.exchanges.get_mut(&stream)
            && !matches!(exchange.receiving.phase, Phase::HeadQueued | Phase::Done)
        {
            let step =
                exchange.receiving.read((transport, stream), &mut self.control, room, sink)?;
            match step {
                Step::Pending => return Ok(()),
                Step::Section(fields) => self.on_section(transport, stream, fields)?,
                Step::Finished => {
                    exchange.receiving.phase = Phase::Done;
                    self.events.push_back(ClientEvent::ResponseFinished { stream });
                    self.forget_if_done(stream);
                }
                Step::Failed(failure) => self.fail(transport, stream, failure),
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
    ) -> Result<(), ConnectionError> {
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return Ok(()) };
        if exchange.receiving.phase == Phase::Body {
            // https://www.rfc-editor.org/rfc/rfc9114#section-4.1
            //# On a given stream, receipt of multiple requests or receipt of an additional HTTP
            //# response following a final HTTP response MUST be treated as malformed.
            match message::check_trailers(&fields) {
                Ok(()) => {
                    exchange.receiving.phase = Phase::Trailers;
                    self.events.push_back(ClientEvent::Trailers { stream, fields });
                }
                Err(error) => self.fail(transport, stream, error.into()),
            }
            return Ok(());
        }
        match message::check_response(&fields) {
            // https://www.rfc-editor.org/rfc/rfc9114#section-4.5
            Ok(info) if info.status == 101 => {
                let value = "101".to_owned();
                self.fail(transport, stream, message::MessageError::Status { value }.into());
            }
            Ok(info) if info.status < 200 => {
                let status = info.status;
                self.events.push_back(ClientEvent::Informational { stream, status, fields });
            }
            Ok(info) => {
                let tunnel = exchange.receiving.tunnel && info.status < 300;
                exchange.receiving.tunnel = tunnel;
                let bodiless = exchange.is_head || matches!(info.status, 204 | 304);
                let length = info.content_length.filter(|_| !tunnel);
                exchange.receiving.on_head(
                    (transport, stream),
                    &mut self.control,
                    length,
                    bodiless,
                )?;
                let status = info.status;
                self.events.push_back(ClientEvent::ResponseHead { stream, status, fields });
            }
            // https://www.rfc-editor.org/rfc/rfc9114#section-4.1.2
            //# Clients MUST NOT accept a malformed response.
            Err(error) => self.fail(transport, stream, error.into()),
        }
        Ok(())
    }

    /// Reads the control stream or one of QPACK's.
    fn read_control<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
    ) -> Result<(), ConnectionError> {
        let mut incoming = Vec::new();
        let read = self.control.on_readable(transport, stream, &mut incoming);
        for frame in incoming {
            match frame {
                Incoming::Settings => self.events.push_back(ClientEvent::Settings),
                Incoming::GoAway(id) => self.on_go_away(transport, id)?,
                // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.3
                //# If a CANCEL_PUSH frame is received that references a push ID greater than
                //# currently allowed on the connection, this MUST be treated as a connection error
                //# of type H3_ID_ERROR.
                Incoming::CancelPush(id) => {
                    let problem = "nothing may be pushed";
                    return Err(ConnectionError::Id { frame: "CANCEL_PUSH", id, problem });
                }
                // Refused before they are read.
                Incoming::MaxPushId(_) | Incoming::PriorityUpdate { .. } => {}
            }
        }
        read?;
        // Those that waited for QPACK's table have their heads, or trailers, now; no body comes of it.
        while let Some(stream) = self.control.decoder.poll_unblocked() {
            self.read_response(transport, stream, &mut 0, &mut |_, _| {})?;
        }
        Ok(())
    }

    fn on_go_away<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        id: u64,
    ) -> Result<(), ConnectionError> {
        let first = StreamId(id);
        let wrong = |problem| Err(ConnectionError::Id { frame: "GOAWAY", id, problem });
        // https://www.rfc-editor.org/rfc/rfc9114#section-7.2.6
        //# A client MUST treat receipt of a GOAWAY frame containing a stream ID of any other type
        //# as a connection error of type H3_ID_ERROR.
        if !is_request(first) {
            return wrong("is no request's");
        }
        // https://www.rfc-editor.org/rfc/rfc9114#section-5.2
        //# Receiving a GOAWAY containing a larger identifier than previously received MUST be
        //# treated as a connection error of type H3_ID_ERROR.
        if self.first_refused.is_some_and(|before| first > before) {
            return wrong("is larger than the one before");
        }
        self.first_refused = Some(first);
        self.events.push_back(ClientEvent::GoAway { first_refused: first });
        let refused: Vec<StreamId> =
            self.exchanges.range(first..).map(|(&stream, _)| stream).collect();
        for stream in refused {
            self.fail(transport, stream, Failure::Refused);
        }
        Ok(())
    }

    /// A response does not come to its end.
    fn fail<T: StreamTransport>(&mut self, transport: &mut T, stream: StreamId, failure: Failure) {
        let code = match failure {
            // https://www.rfc-editor.org/rfc/rfc9114#section-4.1.1
            //# Client SHOULD use the error code H3_REQUEST_CANCELLED to cancel requests.
            Failure::Reset(_) | Failure::Refused => ErrorCode::REQUEST_CANCELLED,
            // https://www.rfc-editor.org/rfc/rfc9114#section-4.1.2
            //# Malformed requests or responses that are detected MUST be treated as a stream error
            //# of type H3_MESSAGE_ERROR.
            Failure::Malformed(_) | Failure::NoHead => ErrorCode::MESSAGE_ERROR,
            Failure::FieldsTooLarge { .. } => ErrorCode::EXCESSIVE_LOAD,
        };
        self.abandon(transport, stream, code);
        self.events.push_back(ClientEvent::ResponseFailed { stream, failure });
    }
}
