//! The client's end of a connection.

mod events;
mod request;

use std::collections::{BTreeMap, VecDeque};

use quipu_base::{Role, StreamId};

use super::control::{Control, Incoming, Limits, TableUse};
use super::event::ClientEvent;
use super::frame::Settings;
use super::receiving::{Phase, Receiving};
use super::sending::Sending;
use super::{ConnectionError, ErrorCode, frame};
use crate::transport::{StreamError, StreamTransport};

pub(super) use request::is_request;
pub use request::{Request, RequestError};

/// How a client behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientConfig {
    /// What the client is ready to spend on a server's messages.
    pub limits: Limits,
    /// Whether HTTP datagrams are taken; the transport must take datagrams then. Not by default.
    pub datagrams: bool,
    /// A number from which frames and settings that mean nothing are drawn; none are sent by default.
    /// <https://www.rfc-editor.org/rfc/rfc9114#section-7.2.8>
    pub grease: Option<u64>,
    /// What the server stated on an earlier connection: holds for what is sent early.
    pub remembered: Option<Settings>,
}

/// The client's end of a connection: sends requests, receives responses.
///
/// [Start](Client::start) it as soon as streams can be opened. After each `on_*` call take
/// [events](Client::poll) until there is none, and do what they ask for. Octets of bodies go from the
/// transport to the `sink` of [`on_stream_readable`](Client::on_stream_readable) as they lie there.
#[derive(Debug)]
pub struct Client {
    control: Control,
    exchanges: BTreeMap<StreamId, Exchange>,
    events: VecDeque<ClientEvent>,
    failed: bool,
    /// The first request that a server that goes away does not look at.
    first_refused: Option<StreamId>,
}

#[derive(Debug)]
struct Exchange {
    receiving: Receiving,
    is_head: bool,
    /// What of the request's body may come from the application.
    sending: Option<Sending>,
}

impl Client {
    /// A client that has not started.
    pub fn new(config: ClientConfig) -> Self {
        let settings = Settings { datagrams: config.datagrams, ..Settings::default() };
        let mut control = Control::new(Role::Client, config.limits, settings, config.grease);
        control.remember(config.remembered);
        Client {
            control,
            exchanges: BTreeMap::new(),
            events: VecDeque::new(),
            failed: false,
            first_refused: None,
        }
    }

    /// Opens the client's streams and states its settings. To be called once, before any request.
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

    /// What the server stated, if it came: to be remembered for the next connection.
    pub fn peer_settings(&self) -> Option<&Settings> {
        self.control.settings()
    }

    /// The server refused what was sent early: what it stated on an earlier connection holds no more.
    pub fn on_early_data_rejected(&mut self) {
        self.control.remember(None);
    }

    /// How much QPACK's dynamic tables are used.
    pub fn table_use(&self) -> TableUse {
        self.control.table_use()
    }

    /// Abandons a request and its response. No more events come of it; if it is over, nothing happens.
    pub fn cancel<T: StreamTransport>(
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

    /// Tells the server that this end is about to close.
    ///
    /// # Errors
    /// The transport refused to write.
    pub fn go_away<T: StreamTransport>(&mut self, transport: &mut T) -> Result<(), StreamError> {
        let mut out = Vec::new();
        // A client names a push: none was promised.
        frame::put_id_frame(frame::kind::GOAWAY, 0, &mut out);
        self.control.write(transport, out)
    }

    /// Number of requests whose exchange is not over.
    pub fn active(&self) -> usize {
        self.exchanges.len()
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

    /// Ends an exchange and its stream in both directions. Directions that are over already need
    /// nothing, so that errors say nothing.
    fn abandon<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        code: ErrorCode,
    ) {
        self.forget(stream);
        // https://www.rfc-editor.org/rfc/rfc9114#section-4.1.1
        //# Implementations SHOULD cancel requests by abruptly terminating any directions of a
        //# stream that are still open.
        let _ = transport.stop_sending(stream, code.0);
        let _ = transport.reset(stream, code.0);
    }

    fn forget(&mut self, stream: StreamId) {
        if let Some(exchange) = self.exchanges.remove(&stream)
            && exchange.receiving.is_incomplete()
        {
            self.control.decoder.cancel(stream);
        }
    }

    fn forget_if_done(&mut self, stream: StreamId) {
        if self.exchanges.get(&stream).is_some_and(|exchange| {
            // https://www.rfc-editor.org/rfc/rfc9114#section-4.1
            //# If the server sends a partial or complete response but does not abort reading the
            //# request, clients SHOULD continue sending the content of the request and close the
            //# stream normally.
            exchange.receiving.phase == Phase::Done && exchange.sending.is_none()
        }) {
            self.forget(stream);
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
            self.events.push_back(ClientEvent::ConnectionFailed(error));
        }
    }
}
