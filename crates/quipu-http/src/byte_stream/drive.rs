//! What the mux has to tell, passed to HTTP's ends.

use quipu_base::StreamId;

use super::entry::Notice;
use super::{Framed, Pipe};
use crate::h2::{Client, Server};

/// Where bodies go.
type Sink<'a> = &'a mut dyn FnMut(StreamId, &[u8]);

/// Takes what came through the pipe, and tells a client. Bodies go to `sink`. To be called when the
/// pipe has become readable; calls without cause do nothing.
pub fn pass_to_client<P: Pipe>(client: &mut Client, framed: &mut Framed<'_, P>, sink: Sink<'_>) {
    framed.receive();
    while let Some(notice) = framed.pop_notice() {
        match notice {
            Notice::Readable(stream) => client.on_stream_readable(framed, stream, sink),
            Notice::Reset(stream, code) => client.on_stream_reset(framed, stream, code),
            Notice::Stopped(stream, code) => client.on_stream_stopped(stream, code),
            Notice::Failed(error) => client.fail_connection(error.into()),
            Notice::Delivered(_) => {}
        }
    }
    if client.has_failed() {
        framed.mux.stop();
    }
}

/// Takes what came through the pipe, and tells a server. Bodies go to `sink`. To be called when the
/// pipe has become readable, and after a [`fill`](Framed::fill) that let frames go; calls without
/// cause do nothing.
pub fn pass_to_server<P: Pipe>(server: &mut Server, framed: &mut Framed<'_, P>, sink: Sink<'_>) {
    let now = framed.now;
    framed.receive();
    while let Some(notice) = framed.pop_notice() {
        match notice {
            Notice::Readable(stream) => server.on_stream_readable(framed, stream, now, sink),
            Notice::Reset(stream, code) => server.on_stream_reset(framed, stream, code, now),
            Notice::Stopped(stream, code) => server.on_stream_stopped(framed, stream, code, now),
            Notice::Delivered(stream) => server.on_stream_delivered(framed, stream, now),
            Notice::Failed(error) => server.fail_connection(error.into()),
        }
    }
    if server.has_failed() {
        framed.mux.stop();
    }
}
