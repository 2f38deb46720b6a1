//! The client's end of a connection.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quipu_base::StreamId;
use quipu_policy::{PriorityEdit, Urgency};
use thiserror::Error;

use super::control::{CONTROL_STREAM, ConnectionError, Control, Incoming, Limits};
use super::event::ClientEvent;
use super::exchange::{Body, Failure, Phase, Progress, Receiving, abandon};
use super::frame::{self, Settings, StreamPriority};
use super::{ErrorCode, FrameStreamId, Numbering};
use crate::field::FieldList;
use crate::hpack::Outcome;
use crate::message::{self, MessageError};
use crate::priority::PriorityField;
use crate::transport::{StreamError, Transport};

/// Requests at a time until the server has said how many it takes: what a server may be expected to
/// allow at least, so that none is refused whose SETTINGS are late or lost.
///
/// <https://www.rfc-editor.org/rfc/rfc9113#section-6.5.2>
//# It is recommended that this value be no smaller than 100, so as to not unnecessarily limit
//# parallelism.
const REQUESTS_BEFORE_SETTINGS: u32 = 100;

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

/// Why the rest of a body was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BodyError {
    /// No body is being sent on the stream: it was not announced as streamed, or it ended.
    #[error("no body is being sent on {0}")]
    NotSending(StreamId),
    /// The transport refused.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

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
        }
    }

    /// The same client with RFC 9218's priorities in place of RFC 7540's: it says so in its settings, and
    /// sends no places in the dependency tree. A request's urgency is in its `priority` field
    /// ([`PriorityField`]). <https://www.rfc-editor.org/rfc/rfc9218#section-2.1>
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
            enable_push: Some(false),
            no_rfc7540_priorities: self.no_tree.then_some(true),
            ..Settings::default()
        };
        self.control.announce(transport, settings, &mut out);
        for &(group, priority) in groups.iter().filter(|_| !self.no_tree) {
            frame::encode_priority(group, priority, &mut out);
        }
        transport.write(CONTROL_STREAM, Bytes::from(out))?;
        self.state = State::Open;
        Ok(())
    }

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
        };
        self.exchanges.insert(stream, exchange);
        let end_stream = body == Body::Empty;
        let priority = priority.filter(|_| !self.no_tree);
        self.control.send_headers(transport, id, &fields, priority, end_stream)?;
        let size = match &body {
            Body::Empty => None,
            Body::Whole(octets) => Some(octets.len() as u64),
            Body::Streamed => info.content_length,
        };
        if let Some(size) = size {
            transport.edit_priority(PriorityEdit::Size { stream, size: quipu_base::Bytes(size) });
        }
        match body {
            Body::Empty => transport.finish(stream)?,
            Body::Whole(octets) => {
                transport.write(stream, octets)?;
                transport.finish(stream)?;
            }
            Body::Streamed => {}
        }
        Ok(stream)
    }

    /// Sends more of a [streamed](Body::Streamed) body.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub fn send_body<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        octets: Bytes,
    ) -> Result<(), BodyError> {
        self.exchange_sending(stream)?;
        Ok(transport.write(stream, octets)?)
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

    /// Sends a PRIORITY frame: another place for a request, or for a group.
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
        let mut out = Vec::new();
        frame::encode_priority(node, priority, &mut out);
        Ok(transport.write(CONTROL_STREAM, Bytes::from(out))?)
    }

    /// Sends a PRIORITY_UPDATE frame: another urgency for a request. Does nothing if the server's
    /// settings came and do not say that it goes by urgencies.
    ///
    /// # Errors
    /// [`RequestError::NotOpen`], [`RequestError::IdentifiersUsedUp`] for a stream that cannot be a
    /// request, or the transport refused.
    pub fn update_priority<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        urgency: Urgency,
    ) -> Result<(), RequestError> {
        if self.state != State::Open {
            return Err(RequestError::NotOpen);
        }
        let id = FrameStreamId::try_from(stream)
            .ok()
            .filter(|id| id.request(self.numbering).is_some())
            .ok_or(RequestError::IdentifiersUsedUp)?;
        // https://www.rfc-editor.org/rfc/rfc9218#section-2.1.1
        //# If the value was 0 or if the settings parameter was absent, it
        //# SHOULD stop sending PRIORITY_UPDATE frames
        if self.control.peer_no_tree() == Some(false) {
            return Ok(());
        }
        let mut out = Vec::new();
        let value = PriorityField::from(urgency).to_string();
        frame::encode_priority_update(id, &value, &mut out);
        Ok(transport.write(CONTROL_STREAM, Bytes::from(out))?)
    }

    /// Abandons a request and its response. No more events come of it; if it is over, nothing happens.
    pub fn cancel<T: Transport>(&mut self, transport: &mut T, stream: StreamId, code: ErrorCode) {
        if self.exchanges.remove(&stream).is_some() {
            self.events.retain(|event| event.stream() != Some(stream));
            abandon(transport, stream, code);
        }
    }

    /// Number of requests whose exchange is not over.
    pub fn active(&self) -> usize {
        self.exchanges.len()
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
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return };
        if exchange.receiving.phase != Phase::Body {
            return;
        }
        match exchange.receiving.read(transport, stream, sink) {
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

    fn check_request(
        &self,
        fields: &FieldList,
        priority: Option<StreamPriority>,
    ) -> Result<message::RequestInfo, RequestError> {
        if self.state != State::Open {
            return Err(RequestError::NotOpen);
        }
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
        let concurrency = self.control.peer_concurrency().unwrap_or(REQUESTS_BEFORE_SETTINGS);
        if self.exchanges.len() as u64 >= u64::from(concurrency) {
            return Err(RequestError::NoStream);
        }
        Ok(info)
    }

    fn read_control<T: Transport>(&mut self, transport: &mut T) -> Result<(), ConnectionError> {
        self.control.receive(transport)?;
        while let Some(incoming) = self.control.next(transport)? {
            match incoming {
                Incoming::Headers { stream, end_stream, fields, outcome, .. } => {
                    self.on_headers(transport, stream, end_stream, fields, outcome)?;
                }
                // A server has no say in its own order of sending.
                Incoming::Priority { .. } => {}
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
        // https://www.rfc-editor.org/rfc/rfc7540#section-8.2
        //# Clients MUST reject any attempt to change the SETTINGS_ENABLE_PUSH
        //# setting to a value other than 0
        if self.control.peer_push() { Err(ConnectionError::PushEnabled) } else { Ok(()) }
    }

    fn on_headers<T: Transport>(
        &mut self,
        transport: &mut T,
        id: FrameStreamId,
        end_stream: bool,
        fields: FieldList,
        outcome: Outcome,
    ) -> Result<(), ConnectionError> {
        let request = id.request(self.numbering);
        let stream = request.filter(|&stream| stream <= self.last_opened).ok_or(
            ConnectionError::WrongStream { stream: id, problem: "is no request of this client" },
        )?;
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
                Err(error) => Failure::Malformed(error),
            },
            (Phase::AwaitHead, Outcome::TooLarge) => Failure::FieldsTooLarge { limit },
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
                stream.0 > u64::from(last_stream.value())
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
        self.exchanges.remove(&stream);
        abandon(transport, stream, failure.code());
        self.events.push_back(ClientEvent::ResponseFailed { stream, failure });
    }

    /// Whether nothing more is taken from the server.
    pub(crate) fn has_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// Nothing more is taken from the server.
    pub(crate) fn fail_connection(&mut self, error: ConnectionError) {
        if self.state != State::Failed {
            self.state = State::Failed;
            self.events.push_back(ClientEvent::ConnectionFailed(error));
        }
    }

    fn exchange_sending(&mut self, stream: StreamId) -> Result<&mut Exchange, BodyError> {
        self.exchanges
            .get_mut(&stream)
            .filter(|exchange| exchange.sending)
            .ok_or(BodyError::NotSending(stream))
    }

    fn forget_if_done(&mut self, stream: StreamId) {
        let done =
            |exchange: &Exchange| exchange.receiving.phase == Phase::Done && !exchange.sending;
        if self.exchanges.get(&stream).is_some_and(done) {
            self.exchanges.remove(&stream);
        }
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

fn check_priority(node: FrameStreamId, priority: StreamPriority) -> Result<(), RequestError> {
    if !(1..=256).contains(&priority.weight) {
        return Err(RequestError::Weight(priority.weight));
    }
    // The root cannot be placed either.
    if node == priority.parent || node.is_zero() {
        return Err(RequestError::SelfDependency(node));
    }
    Ok(())
}
