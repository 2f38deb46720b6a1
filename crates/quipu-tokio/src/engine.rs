//! The engine as the runtime calls it. Whatever it decides by goes through here, so that a recording of
//! these inputs repeats its decisions: see [`replay`](crate::replay).

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use quipu_base::{Duration, Instant, PathId, StreamDirection, StreamId};
use quipu_policy::{PathStatus, PriorityEdit};
use quipu_quic::connection::{
    self, Calls as _, EditError, MigrateError, OpenPathError, SendDatagramError,
};
use quipu_quic::endpoint::{
    ClientConfig, Closed, ConnectError, EndpointConfig, Held, Incoming, ServerConfig,
};
use quipu_quic::error::ErrorCode;
use quipu_quic::random::SecureSource;
use quipu_quic::recorder::{RecorderFactory, Started};
use quipu_quic::wire::ConnectionId;
use quipu_quic::{
    Arrival, ConfigError, Connection, ConnectionEvent, ConnectionHandle, DatagramId, Drain,
    Endpoint, Outbox, Read, Route, StreamError,
};

use crate::recording::{Call, Input, Noting, Recording};

/// What an engine is made of.
pub(crate) struct Parts {
    pub(crate) config: EndpointConfig,
    pub(crate) source: Arc<dyn SecureSource>,
    /// What it accepts connections with, and the time since 1970.
    pub(crate) server: Option<(ServerConfig, Duration)>,
    pub(crate) recorders: Option<RecorderFactory>,
}

/// An endpoint without sockets.
pub(crate) struct Engine {
    endpoint: Endpoint,
    recording: Option<Recording>,
    /// The connection that began last.
    started: Arc<Mutex<Option<Started>>>,
}

impl Engine {
    pub(crate) fn new(
        parts: Parts,
        now: Instant,
        recording: Option<Recording>,
    ) -> Result<Self, ConfigError> {
        let Parts { config, source, server, recorders } = parts;
        // What had come of it can still be read.
        let config = EndpointConfig { closed: Closed::HandedOver, ..config };
        let source = match &recording {
            Some(recording) => recording.noting(source),
            None => source,
        };
        let mut endpoint = Endpoint::new(config, source)?;
        if let Some((mut server, unix_time)) = server {
            // The application decides about every client.
            server.admission.ask = true;
            endpoint.listen(server)?;
            endpoint.set_unix_time(now, unix_time);
            if let Some(recording) = &recording {
                recording.begin(now, unix_time);
            }
        }
        let started = Arc::default();
        endpoint.record(noting_started(&started, recorders));
        Ok(Engine { endpoint, recording, started })
    }

    fn note(&self, now: Instant, input: impl FnOnce() -> Input) {
        if let Some(recording) = &self.recording {
            recording.note(now, input());
        }
    }

    pub(crate) fn connection(&self, handle: ConnectionHandle) -> Option<&Connection> {
        self.endpoint.connection(handle)
    }

    pub(crate) fn handles(&self) -> impl Iterator<Item = ConnectionHandle> + '_ {
        self.endpoint.handles()
    }

    /// Forgets a connection without a word.
    #[cfg(test)]
    pub(crate) fn remove(&mut self, handle: ConnectionHandle) {
        self.endpoint.remove(handle);
    }

    /// What the connection that began last began with, once.
    pub(crate) fn take_started(&self) -> Option<Started> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn held(&self) -> Held {
        self.endpoint.held()
    }

    pub(crate) fn destination(&self, datagram: &[u8]) -> Option<ConnectionId> {
        self.endpoint.destination(datagram)
    }

    pub(crate) fn holds(&self, datagram: &[u8]) -> bool {
        self.endpoint.holds(datagram)
    }

    pub(crate) fn ignored_datagrams(&self) -> u64 {
        self.endpoint.ignored_datagrams()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    /// A connection, to be called. That alone has it polled again.
    pub(crate) fn call(&mut self, now: Instant, handle: ConnectionHandle) -> Option<Calls<'_>> {
        self.endpoint.connection(handle)?;
        self.note(now, || Input::Call(handle, Call::Nothing));
        let connection = self.endpoint.connection_mut(handle)?;
        Some(Calls { connection, handle, recording: self.recording.as_ref() })
    }

    pub(crate) fn connect(
        &mut self,
        now: Instant,
        config: &ClientConfig,
        server_name: &str,
        route: Route,
    ) -> Result<ConnectionHandle, ConnectError> {
        self.note(now, || Input::Connect { server_name: server_name.to_owned(), route });
        self.endpoint.connect(now, config, server_name, route)
    }

    pub(crate) fn poll_incoming(&mut self, now: Instant) -> Option<Incoming> {
        let incoming = self.endpoint.poll_incoming();
        if incoming.is_some() {
            self.note(now, || Input::PollIncoming);
        }
        incoming
    }

    pub(crate) fn admit(
        &mut self,
        now: Instant,
        incoming: Incoming,
        config: Option<&ServerConfig>,
    ) -> Option<ConnectionHandle> {
        self.note(now, || Input::Admit(incoming.destination()));
        self.endpoint.admit(now, incoming, config)
    }

    pub(crate) fn retry(&mut self, now: Instant, incoming: Incoming) -> bool {
        self.note(now, || Input::Retry(incoming.destination()));
        self.endpoint.retry(now, incoming)
    }

    pub(crate) fn refuse(&mut self, now: Instant, incoming: Incoming) {
        self.note(now, || Input::Refuse(incoming.destination()));
        self.endpoint.refuse(incoming);
    }

    pub(crate) fn ignore(&mut self, now: Instant, incoming: Incoming) {
        self.note(now, || Input::Ignore(incoming.destination()));
        self.endpoint.ignore(incoming);
    }

    pub(crate) fn handle_datagram(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]) {
        // It is opened in place.
        self.note(now, || Input::Datagram(arrival, datagram.to_vec()));
        self.endpoint.handle_datagram(now, arrival, datagram);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.note(now, || Input::Timeout);
        self.endpoint.handle_timeout(now);
    }

    pub(crate) fn handle_unblocked(&mut self, now: Instant) {
        self.note(now, || Input::Unblocked);
        self.endpoint.handle_unblocked();
    }

    /// All events are to be taken after it.
    pub(crate) fn poll_transmit(&mut self, now: Instant, outbox: &mut dyn Outbox) -> Drain {
        let Some(recording) = &self.recording else {
            return self.endpoint.poll_transmit(now, outbox);
        };
        let mut noting = Noting::new(now, outbox);
        let drain = self.endpoint.poll_transmit(now, &mut noting);
        recording.note_poll(noting);
        drain
    }

    /// A connection that is over, and of no more interest to the engine.
    pub(crate) fn poll_closed(&mut self) -> Option<(ConnectionHandle, Connection)> {
        self.endpoint.poll_closed()
    }

    pub(crate) fn poll_event(&mut self) -> Option<(ConnectionHandle, ConnectionEvent)> {
        self.endpoint.poll_event()
    }
}

/// The recorders of `recorders`, if any; with what each connection begins is noted.
fn noting_started(
    noted: &Arc<Mutex<Option<Started>>>,
    recorders: Option<RecorderFactory>,
) -> RecorderFactory {
    let noted = Arc::clone(noted);
    Arc::new(move |started| {
        *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(*started);
        recorders.as_ref().and_then(|make| make(started))
    })
}

/// A connection that is called: to be looked at as it is, and changed by these calls alone.
pub(crate) struct Calls<'a> {
    connection: &'a mut Connection,
    handle: ConnectionHandle,
    recording: Option<&'a Recording>,
}

impl<'a> Calls<'a> {
    /// One that has left its engine: what it is asked for decides nothing.
    pub(crate) fn of_closed(connection: &'a mut Connection, handle: ConnectionHandle) -> Self {
        Calls { connection, handle, recording: None }
    }
}

impl Deref for Calls<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

/// What protocols above streams call, too.
impl connection::Calls for Calls<'_> {
    fn connection(&self) -> &Connection {
        self.connection
    }

    fn open_stream(&mut self, now: Instant, direction: StreamDirection) -> Option<StreamId> {
        self.note(now, || Call::OpenStream(direction));
        self.connection.open_stream(now, direction)
    }

    fn write(&mut self, now: Instant, stream: StreamId, data: Bytes) -> Result<usize, StreamError> {
        self.note(now, || Call::Write(stream, data.clone()));
        self.connection.write(now, stream, data)
    }

    fn write_all(
        &mut self,
        now: Instant,
        stream: StreamId,
        data: Bytes,
    ) -> Result<(), StreamError> {
        self.note(now, || Call::WriteAll(stream, data.clone()));
        self.connection.write_all(now, stream, data)
    }

    fn finish(&mut self, now: Instant, stream: StreamId) -> Result<(), StreamError> {
        self.note(now, || Call::Finish(stream));
        self.connection.finish(now, stream)
    }

    fn reset(&mut self, now: Instant, stream: StreamId, code: u64) -> Result<(), StreamError> {
        self.note(now, || Call::Reset(stream, code));
        self.connection.reset(now, stream, code)
    }

    fn stop_sending(
        &mut self,
        now: Instant,
        stream: StreamId,
        code: u64,
    ) -> Result<(), StreamError> {
        self.note(now, || Call::StopSending(stream, code));
        self.connection.stop_sending(now, stream, code)
    }

    fn read_at_most(
        &mut self,
        now: Instant,
        stream: StreamId,
        max: u64,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<Read, StreamError> {
        self.note(now, || Call::Read(stream, max));
        self.connection.read_at_most(now, stream, max, sink)
    }

    fn expect_stream(&mut self, now: Instant, stream: StreamId) -> bool {
        self.note(now, || Call::ExpectStream(stream));
        self.connection.expect_stream(now, stream)
    }

    fn set_control(&mut self, now: Instant, stream: StreamId) -> Result<(), StreamError> {
        self.note(now, || Call::SetControl(stream));
        self.connection.set_control(now, stream)
    }

    fn edit_priority(&mut self, now: Instant, edit: PriorityEdit) -> Result<(), EditError> {
        self.note(now, || Call::EditPriority(edit));
        self.connection.edit_priority(now, edit)
    }

    fn read_datagram(&mut self, now: Instant) -> Option<Bytes> {
        self.note(now, || Call::ReadDatagram);
        self.connection.read_datagram()
    }
}

/// Each does what the method of [`Connection`] does that has its name.
impl Calls<'_> {
    fn note(&self, now: Instant, call: impl FnOnce() -> Call) {
        if let Some(recording) = self.recording {
            recording.note(now, Input::Call(self.handle, call()));
        }
    }

    pub(crate) fn send_datagram(
        &mut self,
        now: Instant,
        data: Bytes,
    ) -> Result<DatagramId, SendDatagramError> {
        self.note(now, || Call::SendDatagram(data.clone()));
        self.connection.send_datagram(now, data)
    }

    pub(crate) fn offer_datagram(
        &mut self,
        now: Instant,
        data: Bytes,
    ) -> Result<Option<DatagramId>, SendDatagramError> {
        self.note(now, || Call::OfferDatagram(data.clone()));
        self.connection.offer_datagram(now, data)
    }

    pub(crate) fn close(&mut self, now: Instant, code: u64, reason: &[u8]) {
        self.note(now, || Call::Close(code, reason.to_vec()));
        self.connection.close(now, code, reason);
    }

    pub(crate) fn close_when_delivered(
        &mut self,
        now: Instant,
        limit: Duration,
        code: u64,
        reason: &[u8],
    ) {
        self.note(now, || Call::CloseWhenDelivered(limit, code, reason.to_vec()));
        self.connection.close_when_delivered(now, limit, code, reason);
    }

    pub(crate) fn open_path_as(
        &mut self,
        now: Instant,
        route: Route,
        status: PathStatus,
    ) -> Result<PathId, OpenPathError> {
        self.note(now, || Call::OpenPath(route, status));
        self.connection.open_path_as(now, route, status)
    }

    pub(crate) fn abandon_path(&mut self, now: Instant, path: PathId, code: ErrorCode) -> bool {
        self.note(now, || Call::AbandonPath(path, code));
        self.connection.abandon_path(now, path, code)
    }

    pub(crate) fn migrate(
        &mut self,
        now: Instant,
        path: PathId,
        route: Route,
    ) -> Result<(), MigrateError> {
        self.note(now, || Call::Migrate(path, route));
        self.connection.migrate(now, path, route)
    }

    pub(crate) fn rebind(
        &mut self,
        now: Instant,
        path: PathId,
        route: Route,
    ) -> Result<(), MigrateError> {
        self.note(now, || Call::Rebind(path, route));
        self.connection.rebind(now, path, route)
    }

    pub(crate) fn begin_by(&mut self, now: Instant, route: Route) -> bool {
        self.note(now, || Call::BeginBy(route));
        self.connection.begin_by(now, route)
    }

    pub(crate) fn update_keys(&mut self, now: Instant) -> bool {
        self.note(now, || Call::UpdateKeys);
        self.connection.update_keys()
    }

    pub(crate) fn set_path_status(
        &mut self,
        now: Instant,
        path: PathId,
        status: PathStatus,
    ) -> bool {
        self.note(now, || Call::SetPathStatus(path, status));
        self.connection.set_path_status(now, path, status)
    }

    pub(crate) fn ping(&mut self, now: Instant, path: PathId) -> bool {
        self.note(now, || Call::Ping(path));
        self.connection.ping(now, path)
    }

    /// What a recording says.
    pub(crate) fn repeat(&mut self, now: Instant, call: Call) {
        // What comes of it was the same then.
        match call {
            Call::Nothing => {}
            Call::OpenStream(direction) => drop(self.open_stream(now, direction)),
            Call::Write(stream, data) => drop(self.write(now, stream, data)),
            Call::WriteAll(stream, data) => drop(self.write_all(now, stream, data)),
            Call::ExpectStream(stream) => _ = self.expect_stream(now, stream),
            Call::SetControl(stream) => drop(self.set_control(now, stream)),
            Call::Finish(stream) => drop(self.finish(now, stream)),
            Call::Reset(stream, code) => drop(self.reset(now, stream, code)),
            Call::StopSending(stream, code) => drop(self.stop_sending(now, stream, code)),
            Call::Read(stream, max) => drop(self.read_at_most(now, stream, max, &mut |_| ())),
            Call::SendDatagram(data) => drop(self.send_datagram(now, data)),
            Call::OfferDatagram(data) => drop(self.offer_datagram(now, data)),
            Call::ReadDatagram => drop(self.read_datagram(now)),
            Call::Close(code, reason) => self.close(now, code, &reason),
            Call::CloseWhenDelivered(limit, code, reason) => {
                self.close_when_delivered(now, limit, code, &reason);
            }
            Call::OpenPath(route, status) => drop(self.open_path_as(now, route, status)),
            Call::AbandonPath(path, code) => _ = self.abandon_path(now, path, code),
            Call::Migrate(path, route) => drop(self.migrate(now, path, route)),
            Call::Rebind(path, route) => drop(self.rebind(now, path, route)),
            Call::BeginBy(route) => _ = self.begin_by(now, route),
            Call::UpdateKeys => _ = self.update_keys(now),
            Call::SetPathStatus(path, status) => _ = self.set_path_status(now, path, status),
            Call::Ping(path) => _ = self.ping(now, path),
            Call::EditPriority(edit) => drop(self.edit_priority(now, edit)),
        }
    }
}
