//! The server's end of a connection.

mod push;
mod requests;
mod respond;
mod urgencies;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use quipu_base::{Duration, Instant, StreamId};
use quipu_policy::PriorityEdit;

use super::control::{CONTROL_STREAM, ConnectionError, Control, Limits};
use super::event::ServerEvent;
use super::exchange::{Phase, Progress, Receiving, abandon, failure_code};
use super::frame;
use super::tree::TreeNames;
use super::{ErrorCode, FrameStreamId, Numbering};
use crate::budget::{CANCEL_BURST, CancelBudget};
use crate::exchange::Failure;
use crate::priority::PriorityField;
use crate::transport::{ReadState, StreamError, StreamTransport, Transport};

pub use push::PushError;
pub use respond::RespondError;

/// Streams whose data is still under way that are kept, per request at a time that is allowed; our
/// choice. A client that never acknowledges could else let them grow.
const UNCLOSED_PER_REQUEST: usize = 4;

/// How a server behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// What the server is ready to spend on a client's messages.
    pub limits: Limits,
    /// Requests at a time; 128 by default, as nginx allows.
    pub max_requests: u32,
    /// Least time for which a closed stream's node stays in the dependency tree; it stays two round-trip
    /// times if they are longer. 100 ms by default, our choice.
    pub closed_retention: Duration,
    /// Whether clients are told to state urgencies alone, and what they say of the dependency tree is
    /// ignored; not by default. <https://www.rfc-editor.org/rfc/rfc9218#section-2.1>
    pub urgencies_only: bool,
    /// Which numbers name requests; the transport decides. QUIC's by default.
    pub numbering: Numbering,
}

impl Default for ServerConfig {
    fn default() -> Self {
        ServerConfig {
            limits: Limits::default(),
            max_requests: 128,
            closed_retention: Duration::from_millis(100),
            urgencies_only: false,
            numbering: Numbering::Quic,
        }
    }
}

/// The server's end of a connection: receives requests, sends responses, and keeps the transport's
/// dependency tree as the client wants it.
///
/// It starts by itself when the control stream becomes readable. After each `on_*` call take
/// [events](Server::poll) until there is none, and do what they ask for. Octets of bodies go from the
/// transport to the `sink` of [`on_stream_readable`](Server::on_stream_readable) as they lie there.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    control: Control,
    names: TreeNames,
    exchanges: BTreeMap<StreamId, Exchange>,
    events: VecDeque<ServerEvent>,
    state: State,
    /// The last request that is answered when going away.
    last_answered: Option<FrameStreamId>,
    /// Whether the client said that it goes away.
    client_leaves: bool,
    /// Pushed responses whose exchange is not over.
    pushed: usize,
    /// Exchanges that [await an end](Exchange::awaits_end).
    awaiting_end: usize,
    /// Pushed responses that the client does not have to their end.
    pushing: BTreeSet<StreamId>,
    /// Streams that were cancelled before their HEADERS came.
    cancelled: BTreeSet<StreamId>,
    cancels: CancelBudget,
    /// What PRIORITY_UPDATE frames said of requests to come.
    updates: BTreeMap<StreamId, PriorityField>,
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
    sending: Sending,
    /// The priority that the client stated last.
    stated: Option<PriorityField>,
    /// Whether nobody asked.
    pushed: bool,
    /// Whether the response was handed over while the request's end is still to come.
    awaits_end: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// The application has not answered.
    AwaitHead,
    /// More of the body may come from the application.
    Body,
    Done,
}

impl Server {
    /// A server that waits for the control stream.
    pub fn new(config: ServerConfig) -> Self {
        Server {
            control: Control::new(config.limits),
            config,
            names: TreeNames::new(config.numbering),
            exchanges: BTreeMap::new(),
            events: VecDeque::new(),
            state: State::Idle,
            last_answered: None,
            client_leaves: false,
            pushed: 0,
            awaiting_end: 0,
            pushing: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            cancels: CancelBudget::new(),
            updates: BTreeMap::new(),
        }
    }

    /// Abandons a request and its response, or a pushed response. No more events come of it; if it is over, nothing happens.
    pub fn reset<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        code: ErrorCode,
        now: Instant,
    ) {
        if self.exchanges.contains_key(&stream) {
            self.events.retain(|event| event.stream() != Some(stream));
            self.abandon(transport, stream, code, now);
        }
    }

    /// Needs no more of a request that was answered: the client is told, unless the request has no body, and
    /// the response goes on. <https://www.rfc-editor.org/rfc/rfc9113#section-8.1>
    pub fn ignore_rest<T: Transport>(&mut self, transport: &mut T, stream: StreamId) {
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return };
        let is_over = exchange.receiving.phase == Phase::Done;
        if is_over || exchange.receiving.is_bodiless() {
            return;
        }
        exchange.receiving.phase = Phase::Done;
        // A request that came to its end needs nothing.
        let _ = transport.stop_sending(stream, ErrorCode::NO_ERROR.to_quic());
        self.forget_if_done(stream);
    }

    /// Tells the client that no further requests are taken: those that came are answered, later ones
    /// are refused.
    ///
    /// # Errors
    /// The transport refused to write.
    pub fn go_away<T: Transport>(
        &mut self,
        transport: &mut T,
        code: ErrorCode,
    ) -> Result<(), StreamError> {
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.8
        //# Endpoints MUST NOT increase the value they send in the last stream identifier, since
        //# the peers might already have retried unprocessed requests on another connection.
        let last_stream = *self.last_answered.get_or_insert(self.names.last_request());
        let mut out = Vec::new();
        frame::encode_go_away(last_stream, code, &mut out);
        transport.write(CONTROL_STREAM, Bytes::from(out))
    }

    /// Number of requests and pushed responses whose exchange is not over.
    pub fn active(&self) -> usize {
        self.exchanges.len()
    }

    /// Octets, an end or a reset came on `stream`. Bodies go to `sink`, in order per stream.
    pub fn on_stream_readable<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        now: Instant,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) {
        if self.state == State::Failed {
            return;
        }
        if stream == CONTROL_STREAM {
            if let Err(error) = self.read_control(transport, now) {
                self.fail_connection(error);
            }
            return;
        }
        let read = |transport: &mut T, sink: &mut dyn FnMut(&[u8])| transport.read(stream, sink);
        self.read_body(transport, (stream, now), read, sink);
    }

    /// Reads `most` octets of a request's body at most, into `sink`, and returns how many. What is not read
    /// gives the client no credit; reading none finds an end that nothing precedes. Nothing is read before
    /// the head was [told](Server::poll). To be called in place of
    /// [`on_stream_readable`](Server::on_stream_readable) for the streams of requests, where bodies are read as the
    /// application asks for them.
    pub fn read<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        now: Instant,
        most: u64,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) -> u64 {
        if self.state == State::Failed || stream == CONTROL_STREAM {
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
        self.read_body(transport, (stream, now), read, sink);
        taken
    }

    fn read_body<T: Transport>(
        &mut self,
        transport: &mut T,
        (stream, now): (StreamId, Instant),
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
                self.events.push_back(ServerEvent::RequestFinished { stream });
                self.forget_if_done(stream);
            }
            Progress::Failed(failure) => self.fail(transport, stream, failure, now),
        }
    }

    /// The client abandoned what it sends on `stream`.
    pub fn on_stream_reset<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        code: u64,
        now: Instant,
    ) {
        if stream == CONTROL_STREAM {
            self.fail_connection(ConnectionError::ControlEnded);
        } else if self.exchanges.contains_key(&stream) {
            self.fail(transport, stream, Failure::Reset(code), now);
        } else {
            self.note_cancelled(stream);
        }
    }

    /// The client sent STOP_SENDING for `stream`.
    pub fn on_stream_stopped<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        code: u64,
        now: Instant,
    ) {
        if stream == CONTROL_STREAM {
            self.fail_connection(ConnectionError::ControlEnded);
            return;
        }
        if let Some(exchange) = self.exchanges.get_mut(&stream) {
            exchange.sending = Sending::Done;
            self.events.push_back(ServerEvent::ResponseStopped { stream, code });
            self.forget_if_done(stream);
            self.count_cancelled(now);
        } else {
            self.note_cancelled(stream);
        }
        self.close_node(transport, stream, now);
    }

    /// The client has all of the response on `stream`. The stream's node stays in the dependency tree
    /// for a while, as requests under way may still name it.
    pub fn on_stream_delivered<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        now: Instant,
    ) {
        self.close_node(transport, stream, now);
    }

    /// When [`handle_timeout`](Server::handle_timeout) is due next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.names.next_expiry()
    }

    /// Removes the nodes of streams that were closed long enough ago.
    pub fn handle_timeout<T: Transport>(&mut self, transport: &mut T, now: Instant) {
        let ignored = self.ignores_tree();
        self.names.expire(now, &mut |edit| edit_tree(transport, ignored, edit));
    }

    /// The next event.
    pub fn poll(&mut self) -> Option<ServerEvent> {
        let event = self.events.pop_front()?;
        if let ServerEvent::RequestHead { stream, .. } = event
            && let Some(exchange) = self.exchanges.get_mut(&stream)
        {
            exchange.receiving.phase = Phase::Body;
        }
        Some(event)
    }

    /// A request's receiving half ends early. A reset leaves the response alone; a malformed request is
    /// abandoned altogether.
    fn fail<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        failure: Failure,
        now: Instant,
    ) {
        if let Failure::Reset(_) = failure {
            if let Some(exchange) = self.exchanges.get_mut(&stream) {
                exchange.receiving.phase = Phase::Done;
            }
            self.forget_if_done(stream);
            self.events.push_back(ServerEvent::RequestFailed { stream, failure });
        } else {
            self.abandon(transport, stream, failure_code(&failure), now);
            self.events.push_back(ServerEvent::RequestFailed { stream, failure });
            self.count_cancelled(now);
        }
    }

    /// Ends an exchange and its stream in both directions.
    fn abandon<T: Transport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        code: ErrorCode,
        now: Instant,
    ) {
        self.remove(stream);
        abandon(transport, stream, code);
        self.close_node(transport, stream, now);
    }

    /// Nothing more is sent on `stream`: its node goes after a while.
    fn close_node<T: Transport>(&mut self, transport: &mut T, stream: StreamId, now: Instant) {
        self.pushing.remove(&stream);
        let Ok(id) = FrameStreamId::of(stream, self.config.numbering) else { return };
        let retention =
            transport.round_trip_time().saturating_mul(2).max(self.config.closed_retention);
        let ignored = self.ignores_tree();
        self.names.close(id, now + retention, &mut |edit| edit_tree(transport, ignored, edit));
    }

    /// A stream was reset or stopped. If that came before its HEADERS, nobody waits for an answer any
    /// more; it is remembered until they come.
    fn note_cancelled(&mut self, stream: StreamId) {
        let Ok(id) = FrameStreamId::of(stream, self.config.numbering) else { return };
        if id.request(self.config.numbering).is_none() || id <= self.names.last_request() {
            return;
        }
        self.cancelled.insert(stream);
        let limit = self.allowed().saturating_mul(UNCLOSED_PER_REQUEST);
        if self.cancelled.len() > limit {
            self.fail_connection(ConnectionError::TooManyCancelled { limit });
        }
    }

    /// The client cancelled a request for which the server may have worked, or made the server cancel it by
    /// what it sent.
    fn count_cancelled(&mut self, now: Instant) {
        // https://www.rfc-editor.org/rfc/rfc9113#section-10.5
        //# Implementations SHOULD track the use of these features and set limits on their use.
        if !self.cancels.spend(now) {
            self.fail_connection(ConnectionError::TooManyResets { burst: CANCEL_BURST });
        }
    }

    /// Requests at a time that are allowed.
    fn allowed(&self) -> usize {
        usize::try_from(self.config.max_requests).unwrap_or(usize::MAX)
    }

    /// Requests that count against the limit: those without a response. A client that has the whole response
    /// opens the next request, and the packet with the end of the last one may be lost on the way; how many
    /// of these there may be is bounded by the nodes of the tree.
    fn requests(&self) -> usize {
        self.exchanges.len() - self.pushed - self.awaiting_end
    }

    fn remove(&mut self, stream: StreamId) {
        if let Some(exchange) = self.exchanges.remove(&stream) {
            self.pushed -= usize::from(exchange.pushed);
            self.awaiting_end -= usize::from(exchange.awaits_end);
        }
    }

    /// Whether nothing more is taken from the client.
    pub(crate) fn has_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// Nothing more is taken from the client.
    pub(crate) fn fail_connection(&mut self, error: ConnectionError) {
        // https://www.rfc-editor.org/rfc/rfc9113#section-5.4
        //# Implementations MAY discover multiple errors during processing, but they SHOULD report
        //# at most one stream and one connection error as a result. In comparison, the protocol
        //# permits multiple GOAWAY frames, though an endpoint SHOULD report just one type of
        //# connection error unless an error is encountered during graceful shutdown. If a frame
        //# causes a connection error, that error MUST be reported.
        if self.state != State::Failed {
            self.state = State::Failed;
            self.events.push_back(ServerEvent::ConnectionFailed(error));
        }
    }

    fn forget_if_done(&mut self, stream: StreamId) {
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return };
        match (exchange.receiving.phase, exchange.sending) {
            (Phase::Done, Sending::Done) => self.remove(stream),
            (_, Sending::Done) if !exchange.awaits_end => {
                exchange.awaits_end = true;
                self.awaiting_end += 1;
            }
            _ => {}
        }
    }
}

/// Edits the dependency tree, unless what clients say of it is ignored.
fn edit_tree<T: Transport>(transport: &mut T, ignored: bool, edit: PriorityEdit) {
    if !ignored {
        transport.edit_priority(edit);
    }
}
