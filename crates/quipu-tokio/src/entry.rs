//! What the users of a connection wait for, and what they were not told yet.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Waker;

use quipu_base::{Duration, PathId, StreamDirection, StreamId};
use quipu_policy::PathStatus;
use quipu_quic::connection::{CloseReason, Migration};
use quipu_quic::recorder::Started;
use quipu_quic::tls::EarlyData;
use quipu_quic::{Connection, ConnectionEvent};
use tokio::sync::{Notify, broadcast};
use tracing::Span;

use crate::error::ConnectionError;
use crate::icmp::{Hint, Report, Verdict};
use crate::spans;

/// Path events that a slow reader may be behind; more are counted as missed.
const PATH_EVENTS: usize = 64;

/// What happened to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathEvent {
    /// It became usable.
    Up(PathId),
    /// It stopped answering while another went on.
    Suspect(PathId),
    /// It answers again.
    Revived(PathId),
    /// The peer asks to spare it, or no longer does.
    Status(PathId, PathStatus),
    /// It was abandoned, by either end.
    Gone(PathId),
    /// It goes by other addresses.
    Migrated(Migration),
    /// Full datagrams have that many bytes of UDP payload.
    DatagramSize(PathId, u16),
    /// A ping was answered after that time.
    Pong(PathId, Duration),
    /// The reader was too slow for so many events.
    Missed(u64),
}

/// Wakes those who wait for a connection.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// It is connected, confirmed or closed, or a path came or went.
    pub(crate) changed: Notify,
    /// The peer opened a stream.
    pub(crate) opened: Notify,
    /// More streams may be opened.
    pub(crate) available: Notify,
    /// Datagrams came.
    pub(crate) datagrams: Notify,
    /// There is room for datagrams.
    pub(crate) datagram_room: Notify,
    /// Something happened that a layer above streams waits for.
    pub(crate) layer: Notify,
}

/// A stream, as its users see it.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Somebody has the half.
    pub(crate) sending: bool,
    pub(crate) receiving: bool,
    /// Bytes or the end may be there.
    pub(crate) readable: bool,
    pub(crate) reader: Option<Waker>,
    /// A write may be taken.
    pub(crate) writable: bool,
    pub(crate) writer: Option<Waker>,
    /// The peer has all bytes and the end.
    pub(crate) delivered: bool,
    /// The peer gave up sending, with that code.
    pub(crate) reset: Option<u64>,
    /// The peer wants no more, with that code.
    pub(crate) stopped: Option<u64>,
}

impl Stream {
    /// A stream whose halves somebody is to have.
    pub(crate) fn new(sending: bool, receiving: bool) -> Self {
        Stream { sending, receiving, writable: true, ..Stream::default() }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.sending || self.receiving
    }

    fn wake_reader(&mut self) {
        self.readable = true;
        wake(&mut self.reader);
    }

    fn wake_writer(&mut self) {
        self.writable = true;
        wake(&mut self.writer);
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

/// A connection, as its users see it.
pub(crate) struct Entry {
    /// What happens to it is told there.
    pub(crate) span: Span,
    /// What it began with.
    pub(crate) started: Option<Started>,
    /// The network says that nobody listens at the server's port.
    pub(crate) refused: bool,
    /// What else it says of the first datagrams.
    pub(crate) hint: Option<Hint>,
    pub(crate) signals: Arc<Signals>,
    /// Data can be read and answered before the handshake is over: a server took 0-RTT.
    pub(crate) early: bool,
    pub(crate) connected: bool,
    pub(crate) confirmed: bool,
    pub(crate) ended: Option<ConnectionError>,
    /// Streams that somebody has, or that wait to be accepted.
    pub(crate) streams: BTreeMap<StreamId, Stream>,
    /// Streams of the peer that wait to be accepted: bidirectional and unidirectional ones.
    pub(crate) opened: [VecDeque<StreamId>; 2],
    /// Datagrams may be there.
    pub(crate) has_datagrams: bool,
    pub(crate) path_events: broadcast::Sender<PathEvent>,
    /// Addresses of paths that the application removed: it does not want them back.
    pub(crate) unwanted: Vec<IpAddr>,
    /// What a layer above streams, if there is one, was not told yet: it has all streams then.
    pub(crate) layer: Option<VecDeque<ConnectionEvent>>,
    /// The connection itself once the engine has no more to do with it, if something of it was not read yet.
    pub(crate) unread: Option<Box<Connection>>,
}

/// Where streams of that direction wait.
pub(crate) const fn index(direction: StreamDirection) -> usize {
    match direction {
        StreamDirection::Bidirectional => 0,
        StreamDirection::Unidirectional => 1,
    }
}

impl Entry {
    pub(crate) fn new(started: Option<Started>, span: Span) -> Self {
        Entry {
            span,
            started,
            refused: false,
            hint: None,
            signals: Arc::default(),
            early: false,
            connected: false,
            confirmed: false,
            ended: None,
            streams: BTreeMap::new(),
            opened: [VecDeque::new(), VecDeque::new()],
            has_datagrams: false,
            path_events: broadcast::Sender::new(PATH_EVENTS),
            unwanted: Vec::new(),
            layer: None,
            unread: None,
        }
    }

    /// A layer above streams has all of them from now on, also those that wait to be accepted.
    pub(crate) fn begin_layer(&mut self) {
        let mut events = VecDeque::new();
        for stream in self.opened.iter_mut().flat_map(std::mem::take) {
            let Some(state) = self.streams.remove(&stream) else { continue };
            let readable = state.readable.then_some(ConnectionEvent::Readable(stream));
            let reset = state.reset.map(|code| ConnectionEvent::Reset(stream, code));
            let stopped = state.stopped.map(|code| ConnectionEvent::Stopped(stream, code));
            events.extend(readable.into_iter().chain(reset).chain(stopped));
        }
        if self.has_datagrams {
            events.push_back(ConnectionEvent::DatagramReceived);
        }
        self.layer = Some(events);
        self.signals.layer.notify_one();
    }

    /// Keeps what a layer above streams is to be told. True if the event is nobody else's.
    fn keep_for_layer(&mut self, event: &ConnectionEvent) -> bool {
        let Some(events) = &mut self.layer else { return false };
        let is_of_streams = matches!(
            event,
            ConnectionEvent::StreamOpened(_)
                | ConnectionEvent::Readable(_)
                | ConnectionEvent::Writable(_)
                | ConnectionEvent::Finished(_)
                | ConnectionEvent::Stopped(..)
                | ConnectionEvent::Reset(..)
                | ConnectionEvent::StreamsAvailable(_)
                | ConnectionEvent::DatagramReceived
        );
        let is_of_both =
            matches!(event, ConnectionEvent::Connected | ConnectionEvent::EarlyData(_));
        if is_of_streams || is_of_both {
            events.push_back(event.clone());
            self.signals.layer.notify_one();
        }
        is_of_streams
    }

    /// The connection ended: everybody hears of it.
    pub(crate) fn end(&mut self, error: ConnectionError) {
        self.ended.get_or_insert(error);
        for stream in self.streams.values_mut() {
            stream.wake_reader();
            stream.wake_writer();
        }
        self.signals.changed.notify_waiters();
        self.signals.opened.notify_waiters();
        self.signals.available.notify_waiters();
        self.signals.datagrams.notify_waiters();
        self.signals.datagram_room.notify_waiters();
        self.signals.layer.notify_one();
    }

    /// Why there is nothing to read any more, if the connection ended like that.
    pub(crate) fn end_of_reading(&self) -> Option<&ConnectionError> {
        self.ended.as_ref().filter(|error| !error.leaves_unread())
    }

    /// The engine has no more to do with the connection.
    pub(crate) fn keep_unread(&mut self, connection: Connection) {
        let is_read = |stream: &Stream| stream.receiving && stream.readable;
        let may_be_read =
            self.layer.is_some() || self.has_datagrams || self.streams.values().any(is_read);
        if may_be_read && self.end_of_reading().is_none() {
            self.unread = Some(Box::new(connection));
        }
    }

    /// True while a client's handshake goes on.
    pub(crate) fn is_beginning(&self) -> bool {
        let is_client = self.started.is_some_and(|started| started.role.is_client());
        is_client && !self.connected && self.ended.is_none()
    }

    /// The network says that datagrams did not arrive: of this handshake, or of something else.
    pub(crate) fn on_report(&mut self, report: &Report) {
        let verdict = self
            .started
            .and_then(|started| report.verdict(started.route.remote, &started.original_dcid));
        match verdict {
            Some(Verdict::Refused) => self.refused = true,
            Some(Verdict::Hint) => self.hint = Some(report.hint),
            None => return,
        }
        spans::tell_report(&self.span, report);
        self.signals.changed.notify_waiters();
    }

    /// The host itself says why datagrams of a handshake cannot leave. What the network says tells more.
    pub(crate) fn on_hint(&mut self, hint: Hint) {
        if self.is_beginning() && self.hint.is_none() {
            self.hint = Some(hint);
            self.signals.changed.notify_waiters();
        }
    }

    /// The engine tells.
    pub(crate) fn on_event(&mut self, event: ConnectionEvent) {
        if self.keep_for_layer(&event) {
            return;
        }
        match event {
            ConnectionEvent::Connected => {
                self.connected = true;
                self.signals.changed.notify_waiters();
            }
            ConnectionEvent::EarlyData(EarlyData::Accepted) => {
                self.early = true;
                self.signals.changed.notify_waiters();
            }
            ConnectionEvent::Confirmed => {
                self.confirmed = true;
                self.signals.changed.notify_waiters();
            }
            ConnectionEvent::StreamOpened(stream) => self.on_opened(stream),
            ConnectionEvent::Readable(stream) => self.on_stream(stream, Stream::wake_reader),
            ConnectionEvent::Writable(stream) => self.on_stream(stream, Stream::wake_writer),
            ConnectionEvent::Finished(stream) => self.on_stream(stream, |stream| {
                stream.delivered = true;
                stream.wake_writer();
            }),
            ConnectionEvent::Stopped(stream, code) => self.on_stream(stream, |stream| {
                stream.stopped = Some(code);
                stream.wake_writer();
            }),
            ConnectionEvent::Reset(stream, code) => self.on_reset(stream, code),
            ConnectionEvent::StreamsAvailable(_) => self.signals.available.notify_waiters(),
            ConnectionEvent::DatagramReceived => {
                self.has_datagrams = true;
                self.signals.datagrams.notify_waiters();
            }
            ConnectionEvent::DatagramRoom => self.signals.datagram_room.notify_waiters(),
            ConnectionEvent::Closed(reason) => self.end(ConnectionError::Closed(reason)),
            event => self.on_path_event(event),
        }
    }

    fn on_opened(&mut self, stream: StreamId) {
        let direction = stream.direction();
        let both = direction == StreamDirection::Bidirectional;
        self.streams.insert(stream, Stream::new(both, true));
        self.opened[index(direction)].push_back(stream);
        self.signals.opened.notify_waiters();
    }

    fn on_reset(&mut self, stream: StreamId, code: u64) {
        let opened = &mut self.opened[index(StreamDirection::Unidirectional)];
        if let Some(at) = opened.iter().position(|waiting| *waiting == stream) {
            // Nobody has it and nothing is left of it: a peer cannot make the list grow.
            opened.remove(at);
            self.streams.remove(&stream);
        }
        self.on_stream(stream, |stream| {
            stream.reset = Some(code);
            stream.wake_reader();
        });
    }

    fn on_stream(&mut self, stream: StreamId, change: impl FnOnce(&mut Stream)) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            change(stream);
        }
    }

    fn on_path_event(&mut self, event: ConnectionEvent) {
        let event = match event {
            ConnectionEvent::PathUp(path) => PathEvent::Up(path),
            ConnectionEvent::PathSuspect(path) => PathEvent::Suspect(path),
            ConnectionEvent::PathRevived(path) => PathEvent::Revived(path),
            ConnectionEvent::PathStatus(path, status) => PathEvent::Status(path, status),
            ConnectionEvent::PathGone(path) => PathEvent::Gone(path),
            ConnectionEvent::PathMigrated(migration) => PathEvent::Migrated(*migration),
            ConnectionEvent::DatagramSize(path, size) => PathEvent::DatagramSize(path, size),
            ConnectionEvent::Pong(path, rtt) => PathEvent::Pong(path, rtt),
            // Of no interest to those who read and write: what became of single datagrams, 0-RTT.
            _ => return,
        };
        // Nobody may listen.
        let _ = self.path_events.send(event);
        self.signals.changed.notify_waiters();
    }

    /// The reason, if the application closed the connection itself.
    pub(crate) fn end_by_application(&mut self, code: u64) {
        self.end(ConnectionError::Closed(CloseReason::Application { code }));
    }
}
