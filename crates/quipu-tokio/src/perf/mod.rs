//! How fast a connection is: a server that sends and takes as much as a client asks for, and the
//! client.
//!
//! On each bidirectional stream the client sends eight bytes, in network order: how many bytes it
//! wants. Whatever follows is counted and thrown away. At once the server sends so many bytes, and
//! ends the stream. <https://datatracker.ietf.org/doc/html/draft-banks-quic-performance-00>, whose
//! servers wait for the end of the request.

mod client;
mod server;

pub use client::{Amount, Direction, Load, Outcome, Progress, measure};
pub use server::serve;

/// The application protocol.
pub const ALPN: &[u8] = b"perf";

/// Bytes that one write of a stream has.
const PIECE: usize = 1 << 17;
