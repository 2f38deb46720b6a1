//! The server's end of a connection.

mod events;
mod respond;
mod urgencies;

use std::collections::{BTreeMap, VecDeque};

use quipu_base::{Instant, Role, StreamDirection, StreamId};
use quipu_quic::RangeSet;

use super::control::{Control, Limits, TableUse};
use super::event::ServerEvent;
use super::frame::{self, Settings};
use super::receiving::{Phase, Receiving};
use super::sending::Sending;
use super::{ConnectionError, ErrorCode};
use crate::budget::{CANCEL_BURST, CancelBudget};
use crate::priority::PriorityField;
use crate::transport::{StreamError, StreamTransport};

pub use respond::RespondError;

/// How a server behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// What the server is ready to spend on a client's messages.
    pub limits: Limits,
    /// Requests at a time; 128 by default. The transport's limit of streams holds, too.
    pub max_requests: u32,
    /// Whether CONNECT may name a protocol; not by default.
    pub extended_connect: bool,
    /// Whether HTTP datagrams are taken; the transport must take datagrams then. Not by default.
    pub datagrams: bool,
    /// A number from which frames and settings that mean nothing are drawn; none are sent by default.
    /// <https://www.rfc-editor.org/rfc/rfc9114#section-7.2.8>
    pub grease: Option<u64>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        ServerConfig {
            limits: Limits::default(),
            max_requests: 128,
            extended_connect: false,
            datagrams: false,
            grease: None,
        }
    }
}

/// The server's end of a connection: receives requests, sends responses, and tells the transport their
/// urgencies.
///
/// [Start](Server::start) it as soon as streams can be opened; else it starts with the first stream that
/// becomes readable. After each `on_*` call take [events](Server::poll) until there is none, and do what
/// they ask for. Octets of bodies go from the transport to the `sink` of
/// [`on_stream_readable`](Server::on_stream_readable) as they lie there.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    control: Control,
    exchanges: BTreeMap<StreamId, Exchange>,
    /// Requests that came, by their index; also those that are over.
    seen: RangeSet,
    events: VecDeque<ServerEvent>,
    failed: bool,
    /// The first request that is refused when going away.
    first_refused: Option<StreamId>,
    cancels: CancelBudget,
    /// What PRIORITY_UPDATE frames said of requests to come.
    updates: BTreeMap<StreamId, PriorityField>,
    max_push_id: Option<u64>,
    /// What the client named when it said last that it goes away.
    client_leaves: Option<u64>,
    /// Exchanges whose response was handed over while the request's end is still to come.
    awaiting_end: usize,
}

#[derive(Debug)]
struct Exchange {
    receiving: Receiving,
    is_head: bool,
    sending: State,
    /// The priority that the client stated last.
    stated: Option<PriorityField>,
    awaits_end: bool,
}

/// How far a response was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The application has not answered.
    AwaitHead,
    /// More of the body may come from the application.
    Body(Sending),
    Done,
}

impl Server {
    /// A server that has not started.
    pub fn new(config: ServerConfig) -> Self {
        let settings = Settings {
            extended_connect: config.extended_connect,
            datagrams: config.datagrams,
            ..Settings::default()
        };
        Server {
            control: Control::new(Role::Server, config.limits, settings, config.grease),
            config,
            exchanges: BTreeMap::new(),
            seen: RangeSet::default(),
            events: VecDeque::new(),
            failed: false,
            first_refused: None,
            cancels: CancelBudget::new(),
            updates: BTreeMap::new(),
            max_push_id: None,
            client_leaves: None,
            awaiting_end: 0,
        }
    }

    /// Opens the server's streams and states its settings, unless that was done.
    ///
    /// # Errors
    /// The transport opens no streams, or refuses to write.
    pub fn start<T: StreamTransport>(&mut self, transport: &mut T) -> Result<(), ConnectionError> {
        if self.control.is_started() { Ok(()) } else { self.control.start(transport) }
    }

    /// The connection is there: starts, unless that was done.
    pub fn on_connected<T: StreamTransport>(&mut self, transport: &mut T) {
        if let Err(error) = self.start(transport) {
            self.fail_connection(error);
        }
    }

    /// What the client stated, if it came.
    pub fn peer_settings(&self) -> Option<&Settings> {
        self.control.settings()
    }

    /// How much QPACK's dynamic tables are used.
    pub fn table_use(&self) -> TableUse {
        self.control.table_use()
    }

    /// Abandons a request and its response. No more events come of it; if it is over, nothing happens.
    pub fn reset<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        code: ErrorCode,
    ) {
        if self.exchanges.contains_key(&stream) {
            self.events.retain(|event| event.stream() != Some(stream));
            self.abandon(transport, stream, code);
            self.flush(transport);
        }
    }

    /// Needs no more of a request that was answered: the client is told, and the response goes on.
    // https://www.rfc-editor.org/rfc/rfc9114#section-4.1
    //# The error code H3_NO_ERROR SHOULD be used when requesting that the client stop sending on
    //# the request stream.
    pub fn ignore_rest<T: StreamTransport>(&mut self, transport: &mut T, stream: StreamId) {
        if let Some(exchange) = self.exchanges.get_mut(&stream)
            && exchange.receiving.phase != Phase::Done
        {
            exchange.receiving.phase = Phase::Done;
            // A request that came to its end needs nothing.
            let _ = transport.stop_sending(stream, ErrorCode::NO_ERROR.0);
            self.forget_if_done(stream);
            self.flush(transport);
        }
    }

    /// Tells the client that no further requests are taken: those that came are answered, later ones
    /// are refused.
    ///
    /// # Errors
    /// The transport refused to write.
    pub fn go_away<T: StreamTransport>(&mut self, transport: &mut T) -> Result<(), StreamError> {
        let next = self.seen.last().map_or(0, |range| range.end);
        let next = StreamId::new(Role::Client, StreamDirection::Bidirectional, next);
        // https://www.rfc-editor.org/rfc/rfc9114#section-5.2
        //# An endpoint MAY send multiple GOAWAY frames indicating different identifiers, but the
        //# identifier in each frame MUST NOT be greater than the identifier in any previous frame,
        //# since clients might already have retried unprocessed requests on another HTTP
        //# connection.
        let first = *self.first_refused.get_or_insert(next);
        let mut out = Vec::new();
        frame::put_id_frame(frame::kind::GOAWAY, first.0, &mut out);
        self.control.write(transport, out)
    }

    /// Number of requests whose exchange is not over.
    pub fn active(&self) -> usize {
        self.exchanges.len()
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

    /// Ends an exchange and its stream in both directions. Directions that are over already need
    /// nothing, so that errors say nothing.
    fn abandon<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        code: ErrorCode,
    ) {
        self.forget(stream);
        let _ = transport.stop_sending(stream, code.0);
        let _ = transport.reset(stream, code.0);
    }

    fn forget(&mut self, stream: StreamId) {
        let Some(exchange) = self.exchanges.remove(&stream) else { return };
        self.awaiting_end -= usize::from(exchange.awaits_end);
        if exchange.receiving.is_incomplete() {
            self.control.decoder.cancel(stream);
        }
    }

    fn forget_if_done(&mut self, stream: StreamId) {
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return };
        match (exchange.receiving.phase, exchange.sending) {
            (Phase::Done, State::Done) => self.forget(stream),
            (_, State::Done) if !exchange.awaits_end => {
                exchange.awaits_end = true;
                self.awaiting_end += 1;
            }
            _ => {}
        }
    }

    /// Requests at a time that are allowed.
    fn allowed(&self) -> usize {
        usize::try_from(self.config.max_requests).unwrap_or(usize::MAX)
    }

    /// The client cancelled a request for which the server may have worked, or made the server cancel it
    /// by what it sent.
    fn count_cancelled(&mut self, now: Instant) {
        // https://www.rfc-editor.org/rfc/rfc9114#section-10.5
        //# Implementations SHOULD track the use of these features and set limits on their use.
        if !self.cancels.spend(now) {
            self.fail_connection(ConnectionError::TooManyResets { burst: CANCEL_BURST });
        }
    }

    /// Sends what QPACK has to say.
    fn flush<T: StreamTransport>(&mut self, transport: &mut T) {
        if let Err(error) = self.control.flush(transport) {
            self.fail_connection(error.into());
        }
    }

    fn fail_connection(&mut self, error: ConnectionError) {
        if !std::mem::replace(&mut self.failed, true) {
            self.events.push_back(ServerEvent::ConnectionFailed(error));
        }
    }
}
