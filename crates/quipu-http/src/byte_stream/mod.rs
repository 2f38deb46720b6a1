//! HTTP/2 over one byte stream, as over TCP: real framing of
//! [RFC 9113](https://www.rfc-editor.org/rfc/rfc9113), where a loss holds up all that follows it.
//!
//! The ends are [`h2::Client`](crate::h2::Client) and [`h2::Server`](crate::h2::Server), told that
//! requests have [odd numbers](crate::h2::Numbering::ByteStream). What they take for a transport is
//! [`Framed`]: a [`Mux`] with the [`Pipe`] below it.
//!
//! - Bodies wait in the mux, by stream. A [`StreamPolicy`](quipu_policy::StreamPolicy) picks the next
//!   DATA frame, seeing HTTP/2's streams, their priorities and their credit; a frame is to it what a
//!   packet is over QUIC's streams. Frames of at most [`Config::frame_size`] octets go into the pipe
//!   while fewer than [`Config::unsent_limit`] wait there, so that the choice is made late.
//! - All other frames go into the pipe at once: they are small, and none of them waits for credit.
//! - [Credit](Config) of stream and connection is HTTP/2's. More than half of it used up is given back
//!   at once, as Chrome does.
//! - RST_STREAM ends both directions of a stream. PING is answered.
//!
//! A frame that breaks the rules fails the connection with the code that RFC 9113 gives, a connection
//! error also where a stream error would do. The application closes the pipe with that code; GOAWAY
//! is not written before.
//!
//! What TCP has and a QUIC stream as pipe has not, so that results do not show it: a handshake of its
//! own before that of TLS; at most three or four blocks in a selective acknowledgement; doubt about
//! which transmission an acknowledgement is for; records of TLS, which wait until all of their up
//! to 16 KiB are there.

mod demux;
mod drive;
mod entry;
mod framed;
mod mux;
mod queue;
mod table;
mod window;

use quipu_base::{Bytes, Duration};

use crate::h2::frame::DEFAULT_FRAME_SIZE;
use crate::transport::{ReadState, StreamError};

pub use drive::{pass_to_client, pass_to_server};
pub use framed::Framed;
pub use mux::Mux;
pub use window::{DEFAULT_WINDOW, LARGEST_WINDOW};

/// The protocol's name in TLS where the byte stream is one of QUIC's; private.
pub const ALPN: &[u8] = b"quipu-h2-tcp";

/// A byte stream in both directions.
pub trait Pipe {
    /// Opens it, at the end that does. To be called once, before anything is written.
    ///
    /// # Errors
    /// If it cannot be opened now.
    fn open(&mut self) -> Result<(), StreamError>;

    /// Appends `data` to what this end sends. All of it is buffered.
    ///
    /// # Errors
    /// See [`StreamError`]; nothing was buffered then.
    fn write(&mut self, data: bytes::Bytes) -> Result<(), StreamError>;

    /// Octets that were written and have not left for the first time.
    fn unsent(&self) -> Bytes;

    /// False while so much is buffered, sent or not, that no more bodies should be written.
    fn has_room(&self) -> bool {
        true
    }

    /// Hands all octets that are next in order to `sink`.
    ///
    /// # Errors
    /// See [`StreamError`].
    fn read(&mut self, sink: &mut dyn FnMut(&[u8])) -> Result<ReadState, StreamError>;

    /// Largest smoothed round-trip time; an initial guess before the first sample.
    fn round_trip_time(&self) -> Duration;
}

/// How an end treats its byte stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Octets of body that the peer may send beyond what was read, per stream: 1 to
    /// [`LARGEST_WINDOW`]. 6 MiB, as Chromium's `kSpdyStreamMaxRecvWindowSize`.
    pub stream_window: u32,
    /// The same over all streams; at least the [`DEFAULT_WINDOW`] that none can take back. 15 MiB, as
    /// Chromium's `kSpdySessionMaxRecvWindowSize`.
    pub connection_window: u32,
    /// Octets of body in a DATA frame that this end sends, at most; 16,384, what every peer takes, is
    /// the most. <https://www.rfc-editor.org/rfc/rfc9113#section-4.2>
    pub frame_size: u32,
    /// DATA frames are written while fewer octets than this wait unsent in the pipe. 16 KiB, the value
    /// of `TCP_NOTSENT_LOWAT` that P. Meenan found to let priorities of HTTP/2 work
    /// (<https://blog.cloudflare.com/http-2-prioritization-with-nginx/>, 2018). A frame may go beyond it.
    pub unsent_limit: Bytes,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            stream_window: 6 << 20,
            connection_window: 15 << 20,
            frame_size: DEFAULT_FRAME_SIZE,
            unsent_limit: Bytes(16 << 10),
        }
    }
}
