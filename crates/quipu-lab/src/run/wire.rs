//! What carries HTTP on a connection: a stream for each request, or one for all.

use bytes::Bytes as Buffer;
use quipu_base::{Bytes, Duration, Instant, Role, StreamId};
use quipu_http::byte_stream::{self, Framed, Mux};
use quipu_http::h2::frame::{FrameError, Settings};
use quipu_http::h2::{self, Client, Numbering, Server};
use quipu_http::h3;
use quipu_http::transport::quic::{Carrier, QuicPipe, QuicStreams};
use quipu_http::transport::{ReadState, StreamError, Transport};
use quipu_policy::PriorityEdit;
use quipu_quic::{Connection, ConnectionEvent};

use super::error::SetupError;
use super::instruments::Setting;
use super::pairs::{PageLine, page_seed};
use crate::policies::build_stream;
use quipu_scenario::HttpVersion;

/// A connection at one moment, as HTTP's ends want it.
pub(super) enum Wire<'a> {
    Streams(QuicStreams<'a>),
    ByteStream(Framed<'a, QuicPipe<'a>>),
}

/// The same call on whichever it is.
macro_rules! each {
    ($wire:expr, $it:ident => $call:expr) => {
        match $wire {
            Wire::Streams($it) => $call,
            Wire::ByteStream($it) => $call,
        }
    };
}

impl<'a> Wire<'a> {
    /// Over one byte stream if there is a mux.
    pub(super) fn new(
        connection: &'a mut Connection,
        mux: Option<&'a mut Mux>,
        now: Instant,
    ) -> Self {
        match mux {
            None => Wire::Streams(QuicStreams { connection, now }),
            Some(mux) => Wire::ByteStream(Framed { mux, pipe: QuicPipe { connection, now }, now }),
        }
    }

    /// Lets the mux fill its byte stream; true if that led to anything.
    pub(super) fn fill(&mut self) -> bool {
        match self {
            Wire::Streams(_) => false,
            Wire::ByteStream(framed) => framed.fill(),
        }
    }

    /// Tells the server which responses are in the byte stream to their end.
    pub(super) fn tell_delivered(&mut self, server: &mut Server) {
        if let Wire::ByteStream(framed) = self {
            // What came was passed on before, so that no body comes.
            byte_stream::pass_to_server(server, framed, &mut |_, _| {});
        }
    }
}

/// The mux of an end, if the row has its HTTP over one byte stream.
pub(super) fn mux(
    setting: Setting<'_>,
    line: PageLine,
    role: Role,
) -> Result<Option<Mux>, SetupError> {
    if setting.http() != HttpVersion::H2Tcp {
        return Ok(None);
    }
    let name = if role.is_client() { "client.http" } else { "server.http" };
    let transport = &setting.scenario().transport;
    let seed = page_seed(setting.plan, setting.cell, line).child(name, 0);
    let policy = build_stream(&setting.row().spec, transport.initial_window, (role, seed))?;
    Ok(Some(Mux::new(role, config(transport), policy)))
}

fn config(transport: &quipu_scenario::Transport) -> byte_stream::Config {
    // Ranges were checked with the scenario.
    let octets = |bytes: Bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX);
    byte_stream::Config {
        stream_window: octets(transport.stream_credit),
        connection_window: octets(transport.connection_credit),
        frame_size: octets(transport.data_frame),
        unsent_limit: transport.unsent_limit,
    }
}

/// The name of the protocol in the handshake.
pub(super) fn alpn(http: HttpVersion) -> &'static [u8] {
    match http {
        HttpVersion::H2 => h2::ALPN,
        HttpVersion::H3 => h3::ALPN,
        HttpVersion::H2Tcp => byte_stream::ALPN,
        HttpVersion::Raw => b"quipu-raw",
    }
}

/// Which numbers requests have.
pub(super) fn numbering(http: HttpVersion) -> Numbering {
    match http {
        HttpVersion::H2 | HttpVersion::H3 | HttpVersion::Raw => Numbering::Quic,
        HttpVersion::H2Tcp => Numbering::ByteStream,
    }
}

/// Receive credit below HTTP, of a stream and of the connection. Where HTTP/2 gives credit itself,
/// twice as much, so that its own is what counts: frames' headers are not in it.
pub(super) fn credit(transport: &quipu_scenario::Transport, http: HttpVersion) -> [Bytes; 2] {
    let own = [transport.stream_credit, transport.connection_credit];
    match http {
        HttpVersion::H2 | HttpVersion::H3 | HttpVersion::Raw => own,
        HttpVersion::H2Tcp => [own[0].max(own[1]).saturating_mul(2); 2],
    }
}

impl Transport for Wire<'_> {
    fn open(&mut self) -> Option<StreamId> {
        each!(self, it => it.open())
    }

    fn open_unidirectional(&mut self) -> Option<StreamId> {
        each!(self, it => it.open_unidirectional())
    }

    fn write(&mut self, stream: StreamId, data: Buffer) -> Result<(), StreamError> {
        each!(self, it => it.write(stream, data))
    }

    fn write_some(&mut self, stream: StreamId, data: Buffer) -> Result<usize, StreamError> {
        each!(self, it => it.write_some(stream, data))
    }

    fn write_head(
        &mut self,
        stream: StreamId,
        frames: Buffer,
        end_stream: bool,
    ) -> Result<(), StreamError> {
        each!(self, it => it.write_head(stream, frames, end_stream))
    }

    fn finish(&mut self, stream: StreamId) -> Result<(), StreamError> {
        each!(self, it => it.finish(stream))
    }

    fn reset(&mut self, stream: StreamId, code: u64) -> Result<(), StreamError> {
        each!(self, it => it.reset(stream, code))
    }

    fn stop_sending(&mut self, stream: StreamId, code: u64) -> Result<(), StreamError> {
        each!(self, it => it.stop_sending(stream, code))
    }

    fn read(
        &mut self,
        stream: StreamId,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<ReadState, StreamError> {
        each!(self, it => it.read(stream, sink))
    }

    fn set_control(&mut self, stream: StreamId) {
        each!(self, it => it.set_control(stream));
    }

    fn complete_settings(&self, settings: &mut Settings) {
        each!(self, it => it.complete_settings(settings));
    }

    fn on_settings(&mut self, settings: &Settings) -> Result<(), FrameError> {
        each!(self, it => it.on_settings(settings))
    }

    fn edit_priority(&mut self, edit: PriorityEdit) {
        each!(self, it => it.edit_priority(edit));
    }

    fn round_trip_time(&self) -> Duration {
        each!(self, it => it.round_trip_time())
    }
}

impl Carrier for Wire<'_> {
    fn connection(&mut self) -> &mut Connection {
        each!(self, it => it.connection())
    }

    fn now(&self) -> Instant {
        each!(self, it => it.now())
    }

    fn pass_to_client(
        &mut self,
        client: &mut Client,
        event: &ConnectionEvent,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) {
        each!(self, it => it.pass_to_client(client, event, sink));
    }

    fn pass_to_server(
        &mut self,
        server: &mut Server,
        event: &ConnectionEvent,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) {
        each!(self, it => it.pass_to_server(server, event, sink));
    }

    fn poll_drained(&mut self) -> Option<StreamId> {
        each!(self, it => it.poll_drained())
    }
}
