//! The client's end of a connection.

mod push;
mod request;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quipu_base::StreamId;

use super::control::{CONTROL_STREAM, ConnectionError, Control, Incoming, Limits};
use super::event::ClientEvent;
use super::exchange::{Phase, Progress, Receiving, abandon, failure_code};
use super::frame::{self, Settings, StreamPriority};
use super::{ErrorCode, FrameStreamId, Numbering};
use crate::exchange::Failure;
use crate::field::FieldList;
use crate::hpack::Outcome;
use crate::message::{self, MessageError};
use crate::transport::{ReadState, StreamError, StreamTransport, Transport};

use push::Promises;
use request::{REQUESTS_BEFORE_SETTINGS, check_priority};
pub use request::{Request, RequestError};

/// The client's end of a connection: sends requests, receives responses.
///
/// [Start](Client::start) it first. After each `on_*` call take [events](Client::poll) until there is
/// none, and do what they ask for. Octets of bodies go from the transport to the `sink` of
/// [`on_stream_readable`](Client::on_stream_readable) as they lie there.
#[derive(Debug)]
pub struct Client {
    control: Control,
    exchanges: BTreeMap<StreamId, Exchange>,
    events: VecDeque<ClientEvent>,
    state: State,
    numbering: Numbering,
    last_opened: StreamId,
    /// The stream of the next request.
    next: StreamId,
    /// Whether it says nothing of the dependency tree.
    no_tree: bool,
    /// The last request that a server that goes away may answer.
    last_answered: Option<FrameStreamId>,
    /// What the server promised.
    promises: Promises,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Open,
    Failed,
}

#[derive(Debug)]
struct Exchange {
    receiving: Receiving,
    is_head: bool,
    /// Whether more of the request's body may come from the application.
    sending: bool,
    /// Whether the server promised it unasked.
    pushed: bool,
}

impl Client {
    /// A client that has not started.
    pub fn new(limits: Limits) -> Self {
        Client {
            control: Control::new(limits),
            exchanges: BTreeMap::new(),
            events: VecDeque::new(),
            state: State::Idle,
            numbering: Numbering::Quic,
            last_opened: CONTROL_STREAM,
            next: Numbering::Quic.first(),
            no_tree: false,
            last_answered: None,
            promises: Promises::default(),
        }
    }

    /// The same client with RFC 9218's priorities in place of RFC 7540's: it says so in its settings, and
    /// sends no places in the dependency tree. A request's urgency is in its `priority` field
    /// ([`PriorityField`](crate::priority::PriorityField)). <https://www.rfc-editor.org/rfc/rfc9218#section-2.1>
    #[must_use]
    pub fn with_urgencies(mut self) -> Self {
        self.no_tree = true;
        self
    }

    /// The same client with requests on other streams than QUIC's: the transport decides which.
    #[must_use]
    pub fn with_numbering(mut self, numbering: Numbering) -> Self {
        (self.numbering, self.next) = (numbering, numbering.first());
        self
    }

    /// The same client, which takes pushed responses: `limit` at a time. Without it none are taken.
    #[must_use]
    pub fn with_push(mut self, limit: u32) -> Self {
        self.control = self.control.with_promises();
        self.promises = Promises::up_to(limit);
        self
    }

    /// Opens the control stream and sends SETTINGS, and a PRIORITY frame for each of `groups`: nodes that
    /// never carry data, by numbers below those of all requests or that name none. To be called once, before any other
    /// stream is opened.
    ///
    /// # Errors
    /// The transport has no stream to open, opens another than stream 0, or refuses to write; or a
    /// group has an invalid place.
    pub fn start<T: Transport>(
        &mut self,
        transport: &mut T,
        groups: &[(FrameStreamId, StreamPriority)],
    ) -> Result<(), RequestError> {
        for &(group, priority) in groups {
            check_priority(group, priority)?;
        }
        if self.state != State::Idle || transport.open() != Some(CONTROL_STREAM) {
            return Err(RequestError::NoStream);
        }
        transport.set_control(CONTROL_STREAM);
        let mut out = Vec::new();
        let settings = Settings {
            enable_push: Some(self.promises.limit().is_some()),
            max_concurrent_streams: self.promises.limit(),
            // https://www.rfc-editor.org/rfc/rfc9218#section-2.1
            //# If endpoints use SETTINGS_NO_RFC7540_PRIORITIES, they MUST send it in the first
            //# SETTINGS frame.
            no_rfc7540_priorities: self.no_tree.then_some(true),
            ..Settings::default()
        };
        // https://www.rfc-editor.org/rfc/rfc9113#section-3.4
        //# This sequence MUST be followed by a SETTINGS frame (Section 6.5), which MAY be empty.
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.5
        //# A SETTINGS frame MUST be sent by both endpoints at the start of a connection and MAY
        //# be sent at any other time by either endpoint over the lifetime of the connection.
        self.control.announce(transport, settings, &mut out);
        for &(group, priority) in groups.iter().filter(|_| !self.no_tree) {
            frame::encode_priority(group, priority, &mut out);
        }
        transport.write(CONTROL_STREAM, Bytes::from(out))?;
        self.state = State::Open;
        Ok(())
    }

    /// Abandons a request and its response, or a pushed response. No more events come of it; if it is over,
    /// nothing happens.
    pub fn cancel<T: Transport>(&mut self, transport: &mut T, stream: StreamId, code: ErrorCode) {
        if self.remove(stream) {
            self.events.retain(|event| event.stream() != Some(stream));
            abandon(transport, stream, code);
        }
    }

    /// Number of requests and promised responses whose exchange is not over.
    pub fn active(&self) -> usize {
        self.exchanges.len()
    }

    /// Requests that the server's limit leaves room for; the transport's limit of streams holds, too.
    pub fn free(&self) -> u64 {
        let limit = self.control.peer_concurrency().unwrap_or(REQUESTS_BEFORE_SETTINGS);
        let requests = self.exchanges.len() - self.promises.open();
        u64::from(limit).saturating_sub(requests as u64)
    }

    /// Octets, an end or a reset came on `stream`. Bodies go to `sink`, in order per stream.
    pub fn on_stream_readable<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) {
        if self.state != State::Open {
            return;
        }
        if stream == CONTROL_STREAM {
            if let Err(error) = self.read_control(transport) {
                self.fail_connection(error);
            }
            return;
        }
        self.read_body(transport, stream, |transport, sink| transport.read(stream, sink), sink);
    }

    /// Reads `most` octets of a response's body at most, into `sink`, and returns how many. What is not read
    /// gives the server no credit; reading none finds an end that nothing precedes. Nothing is read before
    /// the head was [told](Client::poll). To be called in place of
    /// [`on_stream_readable`](Client::on_stream_readable) for the streams of requests, where bodies are read as the
    /// application asks for them.
    pub fn read<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        most: u64,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) -> u64 {
        if self.state != State::Open || stream == CONTROL_STREAM {
            return 0;
        }
        let mut taken = 0;
        let sink = &mut |stream, octets: &[u8]| {
            taken += octets.len() as u64;
            sink(stream, octets);
        };
        let read = |transport: &mut T, sink: &mut dyn FnMut(&[u8])| {
            transport.read_at_most(stream, most, sink)
        };
        self.read_body(transport, stream, read, sink);
        taken
    }

    fn read_body<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        read: impl FnOnce(&mut T, &mut dyn FnMut(&[u8])) -> Result<ReadState, StreamError>,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) {
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return };
        if exchange.receiving.phase != Phase::Body {
            return;
        }
        match exchange.receiving.read(|sink| read(transport, sink), stream, sink) {
            Progress::Pending => {}
            Progress::Finished => {
                exchange.receiving.phase = Phase::Done;
                self.events.push_back(ClientEvent::ResponseFinished { stream });
                self.forget_if_done(stream);
            }
            Progress::Failed(failure) => self.fail(transport, stream, failure),
        }
    }

    /// The server abandoned what it sends on `stream`.
    pub fn on_stream_reset<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        code: u64,
    ) {
        if stream == CONTROL_STREAM {
            self.fail_connection(ConnectionError::ControlEnded);
        } else if self.exchanges.contains_key(&stream) {
            self.fail(transport, stream, Failure::Reset(code));
        } else {
            self.note_reset_promise(stream);
        }
    }

    /// The server sent STOP_SENDING for `stream`.
    pub fn on_stream_stopped(&mut self, stream: StreamId, code: u64) {
        if stream == CONTROL_STREAM {
            self.fail_connection(ConnectionError::ControlEnded);
            return;
        }
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return };
        if std::mem::take(&mut exchange.sending) {
            self.events.push_back(ClientEvent::UploadStopped { stream, code });
            self.forget_if_done(stream);
        }
    }

    /// The next event.
    pub fn poll(&mut self) -> Option<ClientEvent> {
        let event = self.events.pop_front()?;
        if let ClientEvent::ResponseHead { stream, .. } = event
            && let Some(exchange) = self.exchanges.get_mut(&stream)
        {
            exchange.receiving.phase = Phase::Body;
        }
        Some(event)
    }

    fn read_control<T: Transport>(&mut self, transport: &mut T) -> Result<(), ConnectionError> {
        self.control.receive(transport)?;
        while let Some(incoming) = self.control.next(transport)? {
            match incoming {
                Incoming::Headers { stream, end_stream, fields, outcome, .. } => {
                    self.on_headers(transport, stream, end_stream, fields, outcome)?;
                }
                Incoming::Promise { stream, promised, fields, outcome } => {
                    self.on_promise(transport, stream, promised, fields, outcome)?;
                }
                // A server has no say in its own order of sending.
                Incoming::Priority { .. } => {}
                // https://www.rfc-editor.org/rfc/rfc9218#section-7.1
                //# If a client receives a PRIORITY_UPDATE frame, it MUST respond
                //# with a connection error of type PROTOCOL_ERROR.
                Incoming::PriorityUpdate { stream, .. } => {
                    let problem = "from a server";
                    return Err(ConnectionError::WrongUpdate { stream, problem });
                }
                Incoming::GoAway { last_stream, code } => {
                    self.on_go_away(transport, last_stream, code);
                }
            }
        }
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.5.2
        //# A client MUST treat receipt of a SETTINGS frame with SETTINGS_ENABLE_PUSH set to 1 as
        //# a connection error (Section 5.4.1) of type PROTOCOL_ERROR.
        let push = self.control.peer_push() == Some(true);
        if push { Err(ConnectionError::PushEnabled) } else { Ok(()) }
    }

    fn on_headers<T: Transport>(
        &mut self,
        transport: &mut T,
        id: FrameStreamId,
        end_stream: bool,
        fields: FieldList,
        outcome: Outcome,
    ) -> Result<(), ConnectionError> {
        // https://www.rfc-editor.org/rfc/rfc9113#section-5.1
        //# If this stream is initiated by the server, as described in Section 5.1.1, then
        //# receiving a HEADERS frame MUST also be treated as a connection error (Section 5.4.1)
        //# of type PROTOCOL_ERROR.
        let request = id.request(self.numbering).filter(|&stream| stream <= self.last_opened);
        let stream = request.or_else(|| self.promised(id)).ok_or({
            let problem = "is no request of this client, and was not promised";
            ConnectionError::WrongStream { stream: id, problem }
        })?;
        // A cancelled request may still be answered.
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return Ok(()) };
        let limit = self.control.limits().field_list;
        let failure = match (exchange.receiving.phase, outcome) {
            (Phase::AwaitHead, Outcome::Complete) => match exchange.on_head(&fields, end_stream) {
                Ok(status) if status < 200 => return Ok(()),
                Ok(status) => {
                    self.events.push_back(ClientEvent::ResponseHead { stream, status, fields });
                    return Ok(());
                }
                // https://www.rfc-editor.org/rfc/rfc9113#section-8.1.1
                //# Clients MUST NOT accept a malformed response.
                Err(error) => Failure::Malformed(error),
            },
            (Phase::AwaitHead, Outcome::TooLarge) => Failure::FieldsTooLarge { limit },
            // https://www.rfc-editor.org/rfc/rfc9113#section-8.1
            //# An endpoint that receives pseudo-header fields in trailers MUST treat the request
            //# or response as malformed (Section 8.1.1). An endpoint that receives a HEADERS
            //# frame without the END_STREAM flag set after receiving the HEADERS frame that opens
            //# a request or after receiving a final (non-informational) status code MUST treat
            //# the corresponding request or response as malformed (Section 8.1.1).
            _ => Failure::Malformed(MessageError::Trailers),
        };
        self.fail(transport, stream, failure);
        Ok(())
    }

    fn on_go_away<T: Transport>(
        &mut self,
        transport: &mut T,
        last_stream: FrameStreamId,
        code: ErrorCode,
    ) {
        // https://www.rfc-editor.org/rfc/rfc7540#section-6.8
        // Later frames only lower the identifier.
        let last_stream = self.last_answered.map_or(last_stream, |last| last.min(last_stream));
        self.last_answered = Some(last_stream);
        self.events.push_back(ClientEvent::GoAway { last_stream, code });
        let refused: Vec<StreamId> = self
            .exchanges
            .iter()
            .filter(|&(stream, exchange)| {
                !exchange.pushed
                    && stream.0 > u64::from(last_stream.value())
                    && exchange.receiving.phase == Phase::AwaitHead
            })
            .map(|(&stream, _)| stream)
            .collect();
        for stream in refused {
            self.fail(transport, stream, Failure::Refused);
        }
    }

    /// Ends an exchange. No head of it waits in the queue that was not told, or it is told first.
    fn fail<T: Transport>(&mut self, transport: &mut T, stream: StreamId, failure: Failure) {
        self.remove(stream);
        abandon(transport, stream, failure_code(&failure));
        self.events.push_back(ClientEvent::ResponseFailed { stream, failure });
    }

    /// Whether nothing more is taken from the server.
    pub(crate) fn has_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// Nothing more is taken from the server.
    pub(crate) fn fail_connection(&mut self, error: ConnectionError) {
        // https://www.rfc-editor.org/rfc/rfc9113#section-5.4
        //# Implementations MAY discover multiple errors during processing, but they SHOULD report
        //# at most one stream and one connection error as a result. In comparison, the protocol
        //# permits multiple GOAWAY frames, though an endpoint SHOULD report just one type of
        //# connection error unless an error is encountered during graceful shutdown. If a frame
        //# causes a connection error, that error MUST be reported.
        if self.state != State::Failed {
            self.state = State::Failed;
            self.events.push_back(ClientEvent::ConnectionFailed(error));
        }
    }

    fn forget_if_done(&mut self, stream: StreamId) {
        let done =
            |exchange: &Exchange| exchange.receiving.phase == Phase::Done && !exchange.sending;
        if self.exchanges.get(&stream).is_some_and(done) {
            self.remove(stream);
        }
    }

    /// Forgets an exchange; true if there was one.
    fn remove(&mut self, stream: StreamId) -> bool {
        let exchange = self.exchanges.remove(&stream);
        if exchange.as_ref().is_some_and(|exchange| exchange.pushed) {
            self.promises.end();
        }
        exchange.is_some()
    }
}

impl Exchange {
    /// Checks a response's head; returns its status. Informational ones change nothing.
    fn on_head(&mut self, fields: &FieldList, end_stream: bool) -> Result<u16, MessageError> {
        let info = message::check_response(fields)?;
        if info.status >= 200 {
            let bodiless = self.is_head || matches!(info.status, 204 | 304);
            self.receiving.on_head(info.content_length, end_stream, bodiless)?;
        }
        Ok(info.status)
    }
}
