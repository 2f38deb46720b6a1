//! How fast a connection is: a server that sends and takes as much as a client asks for, and the
//! client.
//!
//! On each bidirectional stream the client sends eight bytes, in network order: how many bytes it
//! wants. Whatever follows is counted and thrown away. At once the server sends so many bytes, and
//! ends the stream. <https://datatracker.ietf.org/doc/html/draft-banks-quic-performance-00>, whose
//! servers wait for the end of the request.
//!
//! On a unidirectional stream the client asks for a flow of datagrams, of which there is one at a time;
//! the forms are in `flow`, and our choice. Whoever sends them numbers them and says in the end how many
//! there were, so that the other end knows what was lost. What a server received it tells on a
//! unidirectional stream of its own.

mod client;
mod datagrams;
mod flow;
mod load;
mod server;

pub use client::{DatagramFlow, Outcome, Progress, measure};
pub use datagrams::{DatagramError, measure_datagrams};
pub use flow::{LEAST_DATAGRAM, Received};
pub use load::{Amount, DatagramLoad, Direction, Load};
pub use server::serve;

use crate::error::ReadError;
use crate::recv_stream::RecvStream;

/// The application protocol.
pub const ALPN: &[u8] = b"perf";

/// Bytes that one write of a stream has.
const PIECE: usize = 1 << 17;

/// The next bytes of a stream; `None` if it ends before.
async fn read_exactly<const N: usize>(
    stream: &mut RecvStream,
) -> Result<Option<[u8; N]>, ReadError> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match stream.read(&mut bytes[filled..]).await? {
            Some(read) => filled += read,
            None => return Ok(None),
        }
    }
    Ok(Some(bytes))
}
