//! Events of a connection that carries HTTP/3.

use quipu_base::StreamId;
use quipu_quic::ConnectionEvent;
use quipu_quic::connection::Calls;
use quipu_quic::tls::EarlyData;

use super::QuicStreams;
use crate::h3::{Client, Server};

/// Tells a client of an event of its connection. The client starts when the connection is there; one
/// that sends early is started before. Bodies go to `sink`.
pub fn pass_to_client<C: Calls>(
    client: &mut Client,
    streams: &mut QuicStreams<'_, C>,
    event: &ConnectionEvent,
    sink: &mut dyn FnMut(StreamId, &[u8]),
) {
    match *event {
        ConnectionEvent::Connected => client.on_connected(streams),
        ConnectionEvent::Readable(stream) => client.on_stream_readable(streams, stream, sink),
        ConnectionEvent::Reset(stream, code) => client.on_stream_reset(streams, stream, code),
        ConnectionEvent::Stopped(stream, code) => client.on_stream_stopped(stream, code),
        ConnectionEvent::EarlyData(EarlyData::Rejected) => {
            client.on_early_data_rejected();
        }
        ConnectionEvent::DatagramReceived => {
            while let Some(datagram) = streams.connection.read_datagram(streams.now) {
                client.on_datagram(&datagram);
            }
        }
        _ => {}
    }
}

/// Tells a server of an event of its connection. Bodies go to `sink`.
pub fn pass_to_server<C: Calls>(
    server: &mut Server,
    streams: &mut QuicStreams<'_, C>,
    event: &ConnectionEvent,
    sink: &mut dyn FnMut(StreamId, &[u8]),
) {
    let now = streams.now;
    match *event {
        ConnectionEvent::Connected => server.on_connected(streams),
        ConnectionEvent::Readable(stream) => server.on_stream_readable(streams, stream, now, sink),
        ConnectionEvent::Reset(stream, code) => server.on_stream_reset(streams, stream, code, now),
        ConnectionEvent::Stopped(stream, code) => server.on_stream_stopped(stream, code, now),
        ConnectionEvent::DatagramReceived => {
            while let Some(datagram) = streams.connection.read_datagram(streams.now) {
                server.on_datagram(&datagram);
            }
        }
        _ => {}
    }
}
