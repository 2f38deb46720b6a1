//! HTTP/2 over one byte stream: whatever comes, in whatever pieces, fails the connection or is served,
//! and what is kept of it is bounded.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use quipu_base::{Duration, Instant, Role};
use quipu_http::byte_stream::{Config, Framed, Mux, Pipe, pass_to_server};
use quipu_http::h2::{Numbering, Server, ServerConfig};
use quipu_http::transport::{ReadState, StreamError};
use quipu_policy::stream::RoundRobin;

/// A pipe that takes all and brings what the input has.
struct Input<'a>(&'a [u8]);

impl Pipe for Input<'_> {
    fn open(&mut self) -> Result<(), StreamError> {
        Ok(())
    }

    fn write(&mut self, _: Bytes) -> Result<(), StreamError> {
        Ok(())
    }

    fn unsent(&self) -> quipu_base::Bytes {
        quipu_base::Bytes::ZERO
    }

    fn read(&mut self, sink: &mut dyn FnMut(&[u8])) -> Result<ReadState, StreamError> {
        sink(std::mem::take(&mut self.0));
        Ok(ReadState::Blocked)
    }

    fn round_trip_time(&self) -> Duration {
        Duration::ZERO
    }
}

fuzz_target!(|pieces: Vec<Vec<u8>>| {
    let config = ServerConfig { numbering: Numbering::ByteStream, ..ServerConfig::default() };
    let mut server = Server::new(config);
    let mut mux = Mux::new(Role::Server, Config::default(), Box::new(RoundRobin::new()));
    let mut body = 0_usize;
    let opening: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for piece in std::iter::once(opening).chain(pieces.iter().map(Vec::as_slice)) {
        let mut framed = Framed { mux: &mut mux, pipe: Input(piece), now: Instant::ZERO };
        pass_to_server(&mut server, &mut framed, &mut |_, octets| body += octets.len());
        while server.poll().is_some() {}
        framed.fill();
        assert!(server.active() <= config.max_requests as usize);
    }
    assert!(body <= pieces.iter().map(Vec::len).sum());
});
