//! What an engine is given, and what leaves it, as it is noted live.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use quipu_base::{Duration, Instant, PathId, StreamDirection, StreamId};
use quipu_policy::{PathStatus, PriorityEdit};
use quipu_quic::error::ErrorCode;
use quipu_quic::random::{NoRandomness, SecureSource};
use quipu_quic::wire::ConnectionId;
use quipu_quic::{Arrival, ConnectionHandle, Outbox, Route, Transmit};

/// What an engine is given.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Input {
    /// A datagram came.
    Datagram(Arrival, Vec<u8>),
    /// The deadline is due.
    Timeout,
    /// It may send. The answers of the outbox, in order: whether it has room, whether a route is blocked.
    /// All events are taken then.
    Transmit(Vec<bool>),
    /// A route that was blocked takes datagrams again.
    Unblocked,
    /// A connection is opened.
    Connect {
        /// The name that the server's certificate is to have.
        server_name: String,
        /// Of the first path.
        route: Route,
    },
    /// The application asked for a client that waits, and got one.
    PollIncoming,
    /// It let the client in that sent to this connection ID.
    Admit(ConnectionId),
    /// It had the client prove its address.
    Retry(ConnectionId),
    /// It refused the client.
    Refuse(ConnectionId),
    /// It forgot the client.
    Ignore(ConnectionId),
    /// A connection is called.
    Call(ConnectionHandle, Call),
}

/// A call of a connection; see the methods of [`quipu_quic::Connection`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Call {
    /// It is looked at, and polled again.
    Nothing,
    /// A stream is opened.
    OpenStream(StreamDirection),
    /// Bytes are written, of which all, some or none were taken.
    Write(StreamId, Bytes),
    /// Bytes are written, all of them.
    WriteAll(StreamId, Bytes),
    /// The stream ends.
    Finish(StreamId),
    /// A stream of the peer is opened before anything of it came.
    ExpectStream(StreamId),
    /// A stream is made a control stream.
    SetControl(StreamId),
    /// Sending is given up, with that code.
    Reset(StreamId, u64),
    /// The peer is asked to send no more, with that code.
    StopSending(StreamId, u64),
    /// So many bytes are read, at most.
    Read(StreamId, u64),
    /// A datagram is sent.
    SendDatagram(Bytes),
    /// The same unless it would displace others.
    OfferDatagram(Bytes),
    /// A datagram is read.
    ReadDatagram,
    /// The connection is closed, with code and reason.
    Close(u64, Vec<u8>),
    /// The same once all is delivered, after that time at the latest.
    CloseWhenDelivered(Duration, u64, Vec<u8>),
    /// A path is opened.
    OpenPath(Route, PathStatus),
    /// A path is abandoned.
    AbandonPath(PathId, ErrorCode),
    /// A path is moved to these addresses.
    Migrate(PathId, Route),
    /// The local address of a path is gone, and another takes its place.
    Rebind(PathId, Route),
    /// A client that heard nothing begins again by that route.
    BeginBy(Route),
    /// The next key phase begins.
    UpdateKeys,
    /// A path is spared, or used again.
    SetPathStatus(PathId, PathStatus),
    /// A path is asked for a sign of life.
    Ping(PathId),
    /// A priority changes.
    EditPriority(PriorityEdit),
}

/// An input, and when the engine got it.
#[derive(Clone, Debug)]
pub struct Step {
    /// The engine's time, which counts from when the endpoint was made.
    pub at: Instant,
    /// What it got.
    pub input: Input,
}

/// A datagram that left the engine.
#[derive(Clone, PartialEq, Eq)]
pub struct Sent {
    /// When it was polled.
    pub at: Instant,
    /// Its path, addresses and ECN mark.
    pub transmit: Transmit,
    /// UDP payload.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for Sent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Sent { at, transmit, bytes } = self;
        let first = bytes.get(..bytes.len().min(16)).unwrap_or_default();
        write!(f, "Sent at {at:?}: {transmit:?}, beginning {first:02x?}")
    }
}

/// What was recorded of an endpoint.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Recorded {
    /// The inputs, in order.
    pub steps: Vec<Step>,
    /// The datagrams that left, in order.
    pub sent: Vec<Sent>,
    /// Random bytes as they were drawn.
    pub(crate) draws: Vec<Vec<u8>>,
    /// When a server was made, and what the time since 1970 was.
    pub(crate) unix_time: Option<(Instant, Duration)>,
}

/// Notes what an endpoint's engine is given. Clones are the same recording; one is for one endpoint.
#[derive(Clone, Debug, Default)]
pub struct Recording(Arc<Mutex<Recorded>>);

impl Recording {
    /// What was recorded so far, which is not kept.
    pub fn take(&self) -> Recorded {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self, now: Instant, unix_time: Duration) {
        self.lock().unix_time = Some((now, unix_time));
    }

    pub(crate) fn note(&self, at: Instant, input: Input) {
        self.lock().steps.push(Step { at, input });
    }

    pub(crate) fn note_poll(&self, noting: Noting<'_>) {
        let Noting { at, answers, sent, .. } = noting;
        let answers = answers.into_inner();
        let mut recorded = self.lock();
        recorded.steps.push(Step { at, input: Input::Transmit(answers) });
        recorded.sent.extend(sent);
    }

    /// The same source, whose draws are noted.
    pub(crate) fn noting(&self, source: Arc<dyn SecureSource>) -> Arc<dyn SecureSource> {
        Arc::new(NotingSource { source, recording: self.clone() })
    }
}

struct NotingSource {
    source: Arc<dyn SecureSource>,
    recording: Recording,
}

impl SecureSource for NotingSource {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoRandomness> {
        self.source.fill(bytes)?;
        self.recording.lock().draws.push(bytes.to_vec());
        Ok(())
    }
}

/// An outbox of which everything is noted.
pub(crate) struct Noting<'a> {
    at: Instant,
    outbox: &'a mut dyn Outbox,
    answers: RefCell<Vec<bool>>,
    sent: Vec<Sent>,
    /// The next datagram is written here first.
    buffer: Vec<u8>,
}

impl<'a> Noting<'a> {
    pub(crate) fn new(at: Instant, outbox: &'a mut dyn Outbox) -> Self {
        Noting { at, outbox, answers: RefCell::default(), sent: Vec::new(), buffer: Vec::new() }
    }

    fn note(&self, answer: bool) -> bool {
        self.answers.borrow_mut().push(answer);
        answer
    }
}

impl Outbox for Noting<'_> {
    fn has_room(&self) -> bool {
        self.note(self.outbox.has_room())
    }

    fn is_blocked(&self, route: &Route) -> bool {
        self.note(self.outbox.is_blocked(route))
    }

    fn buffer(&mut self, size: usize) -> &mut [u8] {
        // As large as it would be: datagrams are made to fit.
        let size = self.outbox.buffer(size).len();
        self.buffer.resize(size, 0);
        &mut self.buffer
    }

    fn send(&mut self, transmit: Transmit) {
        let bytes = self.buffer.get(..transmit.len).unwrap_or_default();
        if let Some(place) = self.outbox.buffer(transmit.len).get_mut(..bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.sent.push(Sent { at: self.at, transmit, bytes: bytes.to_vec() });
        self.outbox.send(transmit);
    }
}
