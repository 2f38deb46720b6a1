//! The streams of a `quipu-quic` connection, as HTTP wants them: one for each request, or one for all.
//!
//! For each event of the connection, make [`QuicStreams`] and [pass it on](pass_to_client); then take
//! the events of the HTTP end. What the events of HTTP ask for, do with [`QuicStreams`] too. For HTTP
//! over one stream, make a [`Framed`] mux with a [`QuicPipe`] instead. [`Carrier`] is what both are.
//! [`h3`] passes events on to the ends of HTTP/3.

pub mod h3;

use bytes::Bytes;
use quipu_base::{Duration, Instant, StreamDirection, StreamId};
use quipu_policy::PriorityEdit;
use quipu_quic::connection::Calls;
use quipu_quic::{Connection, ConnectionEvent};

use super::{ReadState, StreamError, StreamTransport, Transport};
use crate::byte_stream::{self, Framed, Pipe};
use crate::h2::{CONTROL_STREAM, Client, Server};

/// Assumed before the first sample. <https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2>
const INITIAL_ROUND_TRIP_TIME: Duration = Duration::from_millis(333);

/// A connection at one moment.
pub struct QuicStreams<'a, C = Connection> {
    /// The connection.
    pub connection: &'a mut C,
    /// The time now.
    pub now: Instant,
}

impl<C: Calls> QuicStreams<'_, C> {
    /// Does `act`, and again with the stream open if it is one of the peer's that has yet to arrive.
    /// Requests that are answered need no such care: their stream was opened with their node.
    fn on_stream(
        &mut self,
        stream: StreamId,
        mut act: impl FnMut(&mut C) -> Result<(), quipu_quic::StreamError>,
    ) -> Result<(), StreamError> {
        let mut result = act(self.connection);
        if result.is_err() && stream.initiator() != self.connection.connection().role() {
            if stream.direction() == StreamDirection::Unidirectional {
                if self.connection.expect_stream(self.now, stream) {
                    result = act(self.connection);
                }
                return result.map_err(|_| StreamError::NotOpen(stream));
            }
            // An edit opens a stream of the peer. This one says what holds of a new stream anyway.
            let edit = PriorityEdit::Urgency { stream, urgency: 3, incremental: false };
            if self.connection.edit_priority(self.now, edit).is_ok() {
                result = act(self.connection);
            }
        }
        result.map_err(|_| StreamError::NotOpen(stream))
    }
}

impl<C: Calls> Transport for QuicStreams<'_, C> {
    fn open(&mut self) -> Option<StreamId> {
        self.connection.open_stream(self.now, StreamDirection::Bidirectional)
    }

    fn open_unidirectional(&mut self) -> Option<StreamId> {
        self.connection.open_stream(self.now, StreamDirection::Unidirectional)
    }

    fn write(&mut self, stream: StreamId, data: Bytes) -> Result<(), StreamError> {
        let written = self.connection.write_all(self.now, stream, data);
        written.map_err(|_| StreamError::NotOpen(stream))
    }

    fn write_some(&mut self, stream: StreamId, data: Bytes) -> Result<usize, StreamError> {
        let taken = self.connection.write(self.now, stream, data);
        taken.map_err(|_| StreamError::NotOpen(stream))
    }

    fn finish(&mut self, stream: StreamId) -> Result<(), StreamError> {
        let finished = self.connection.finish(self.now, stream);
        finished.map_err(|_| StreamError::NotOpen(stream))
    }

    fn reset(&mut self, stream: StreamId, code: u64) -> Result<(), StreamError> {
        let now = self.now;
        self.on_stream(stream, |connection| connection.reset(now, stream, code))
    }

    fn stop_sending(&mut self, stream: StreamId, code: u64) -> Result<(), StreamError> {
        let now = self.now;
        self.on_stream(stream, |connection| connection.stop_sending(now, stream, code))
    }

    fn read(
        &mut self,
        stream: StreamId,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<ReadState, StreamError> {
        self.read_at_most(stream, u64::MAX, sink)
    }

    fn set_control(&mut self, stream: StreamId) {
        // A stream that is over cannot be the control stream; the next write tells.
        let _ = self.connection.set_control(self.now, stream);
    }

    fn edit_priority(&mut self, edit: PriorityEdit) {
        // What the tree refuses has no effect, as the trait says.
        let _ = self.connection.edit_priority(self.now, edit);
    }

    fn round_trip_time(&self) -> Duration {
        round_trip_time(self.connection.connection())
    }
}

impl<C: Calls> StreamTransport for QuicStreams<'_, C> {
    fn read_at_most(
        &mut self,
        stream: StreamId,
        max: u64,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<ReadState, StreamError> {
        match self.connection.read_at_most(self.now, stream, max, sink) {
            Ok(read) if read.end => Ok(ReadState::Finished),
            Ok(_) => Ok(ReadState::Blocked),
            Err(_) => Err(StreamError::NotOpen(stream)),
        }
    }

    fn may_be_open(&self, stream: StreamId) -> bool {
        stream.index() < self.connection.connection().peer_stream_limit(stream.direction())
    }

    fn takes_datagrams(&self) -> bool {
        self.connection.connection().takes_datagrams()
    }
}

fn round_trip_time(connection: &Connection) -> Duration {
    let samples = connection.path_views().filter_map(|path| path.srtt);
    samples.max().unwrap_or(INITIAL_ROUND_TRIP_TIME)
}

/// The first bidirectional stream of a connection's client, as a byte stream at one moment.
pub struct QuicPipe<'a> {
    /// The connection.
    pub connection: &'a mut Connection,
    /// The time now.
    pub now: Instant,
}

impl QuicPipe<'_> {
    const STREAM: StreamId = CONTROL_STREAM;
}

impl Pipe for QuicPipe<'_> {
    fn open(&mut self) -> Result<(), StreamError> {
        let opened = self.connection.open_stream(self.now, StreamDirection::Bidirectional);
        if opened == Some(Self::STREAM) { Ok(()) } else { Err(StreamError::NotOpen(Self::STREAM)) }
    }

    fn write(&mut self, data: Bytes) -> Result<(), StreamError> {
        let written = self.connection.write_all(self.now, Self::STREAM, data);
        written.map_err(|_| StreamError::NotOpen(Self::STREAM))
    }

    fn unsent(&self) -> quipu_base::Bytes {
        self.connection.unsent_on(Self::STREAM)
    }

    fn has_room(&self) -> bool {
        // A peer that acknowledges only in part makes the connection keep what it was sent.
        self.connection.send_room(Self::STREAM) > 0
    }

    fn read(&mut self, sink: &mut dyn FnMut(&[u8])) -> Result<ReadState, StreamError> {
        let streams = &mut QuicStreams { connection: self.connection, now: self.now };
        streams.read(Self::STREAM, sink)
    }

    fn round_trip_time(&self) -> Duration {
        round_trip_time(self.connection)
    }
}

/// A connection that carries HTTP/2, one way or the other.
pub trait Carrier: Transport {
    /// The connection.
    fn connection(&mut self) -> &mut Connection;

    /// The time now.
    fn now(&self) -> Instant;

    /// Tells a client of an event of the connection. Bodies go to `sink`.
    fn pass_to_client(
        &mut self,
        client: &mut Client,
        event: &ConnectionEvent,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    );

    /// Tells a server of an event of the connection. Bodies go to `sink`.
    fn pass_to_server(
        &mut self,
        server: &mut Server,
        event: &ConnectionEvent,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    );

    /// A stream all of whose body that was written has left this layer, where the connection's own
    /// [`Drained`](ConnectionEvent::Drained) does not say it.
    fn poll_drained(&mut self) -> Option<StreamId> {
        None
    }
}

impl Carrier for QuicStreams<'_> {
    fn connection(&mut self) -> &mut Connection {
        self.connection
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn pass_to_client(
        &mut self,
        client: &mut Client,
        event: &ConnectionEvent,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) {
        pass_to_client(client, self, event, sink);
    }

    fn pass_to_server(
        &mut self,
        server: &mut Server,
        event: &ConnectionEvent,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) {
        pass_to_server(server, self, event, sink);
    }
}

impl Carrier for Framed<'_, QuicPipe<'_>> {
    fn connection(&mut self) -> &mut Connection {
        self.pipe.connection
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn pass_to_client(
        &mut self,
        client: &mut Client,
        event: &ConnectionEvent,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) {
        match *event {
            ConnectionEvent::Readable(QuicPipe::STREAM) => {
                byte_stream::pass_to_client(client, self, sink);
            }
            ConnectionEvent::Reset(QuicPipe::STREAM, code) => {
                client.on_stream_reset(self, CONTROL_STREAM, code);
            }
            ConnectionEvent::Stopped(QuicPipe::STREAM, code) => {
                client.on_stream_stopped(CONTROL_STREAM, code);
            }
            _ => {}
        }
    }

    fn pass_to_server(
        &mut self,
        server: &mut Server,
        event: &ConnectionEvent,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) {
        let now = self.now;
        match *event {
            ConnectionEvent::Readable(QuicPipe::STREAM) => {
                byte_stream::pass_to_server(server, self, sink);
            }
            ConnectionEvent::Reset(QuicPipe::STREAM, code) => {
                server.on_stream_reset(self, CONTROL_STREAM, code, now);
            }
            ConnectionEvent::Stopped(QuicPipe::STREAM, code) => {
                server.on_stream_stopped(self, CONTROL_STREAM, code, now);
            }
            _ => {}
        }
    }

    fn poll_drained(&mut self) -> Option<StreamId> {
        self.mux.poll_drained()
    }
}

/// Tells a client of an event of its connection, if it is about streams. Bodies go to `sink`.
pub fn pass_to_client<C: Calls>(
    client: &mut Client,
    streams: &mut QuicStreams<'_, C>,
    event: &ConnectionEvent,
    sink: &mut dyn FnMut(StreamId, &[u8]),
) {
    match *event {
        ConnectionEvent::Readable(stream) => client.on_stream_readable(streams, stream, sink),
        ConnectionEvent::Reset(stream, code) => client.on_stream_reset(streams, stream, code),
        ConnectionEvent::Stopped(stream, code) => client.on_stream_stopped(stream, code),
        _ => {}
    }
}

/// Tells a server of an event of its connection, if it is about streams. Bodies go to `sink`.
pub fn pass_to_server<C: Calls>(
    server: &mut Server,
    streams: &mut QuicStreams<'_, C>,
    event: &ConnectionEvent,
    sink: &mut dyn FnMut(StreamId, &[u8]),
) {
    let now = streams.now;
    match *event {
        ConnectionEvent::Readable(stream) => server.on_stream_readable(streams, stream, now, sink),
        ConnectionEvent::Reset(stream, code) => server.on_stream_reset(streams, stream, code, now),
        ConnectionEvent::Stopped(stream, code) => {
            server.on_stream_stopped(streams, stream, code, now);
        }
        ConnectionEvent::Finished(stream) => server.on_stream_delivered(streams, stream, now),
        _ => {}
    }
}
