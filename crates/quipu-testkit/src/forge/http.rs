//! A victim that speaks HTTP/2 over QUIC streams.

use quipu_base::StreamId;
use quipu_http::field::FieldList;
use quipu_http::h2::{Body, Server, ServerConfig, ServerEvent};
use quipu_http::transport::quic::{QuicStreams, pass_to_server};

use super::end::Application;

/// A server that answers each request with a body of so many bytes, and closes when its client
/// breaks the rules of HTTP/2.
pub fn server(config: ServerConfig, body: usize) -> Application {
    let mut server = Server::new(config);
    Box::new(move |connection, now, event| {
        let mut streams = QuicStreams { connection, now };
        let mut sink = |_: StreamId, _: &[u8]| {};
        pass_to_server(&mut server, &mut streams, event, &mut sink);
        while let Some(event) = server.poll() {
            match event {
                ServerEvent::RequestHead { stream, .. } => {
                    let fields = FieldList::new().with(":status", "200");
                    let whole = Body::Whole(vec![7; body].into());
                    // Fails for a stream that the client gave up meanwhile.
                    let _ = server.respond(&mut streams, stream, &fields, whole);
                    server.on_stream_readable(&mut streams, stream, now, &mut sink);
                }
                ServerEvent::ConnectionFailed(error) => {
                    let code = error.code().to_quic();
                    streams.connection.close(now, code, b"HTTP/2");
                }
                _ => {}
            }
        }
    })
}
