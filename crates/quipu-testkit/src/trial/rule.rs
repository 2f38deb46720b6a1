//! What must hold in every trial.

use std::net::SocketAddr;

use quipu_base::{Bytes, Instant, PathId, Role, StreamId};
use quipu_quic::connection::CloseReason;
use quipu_sim::RunError;

/// Something that must not be, and when it was seen.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{rule} ({role:?} at {now})")]
pub struct Violation {
    /// When.
    pub now: Instant,
    /// At which end, where it is one.
    pub role: Option<Role>,
    /// Which rule was broken, and how.
    pub rule: Rule,
}

/// What must hold; each with what was found instead.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Rule {
    /// Streams carry what was written.
    #[error("{stream} has a wrong byte at {offset}")]
    Content {
        /// The stream.
        stream: StreamId,
        /// The first wrong byte.
        offset: u64,
    },
    /// The bytes in flight of the paths are those of the connection.
    #[error("{paths} in flight on the paths, but {counted} in all")]
    Balance {
        /// Sum over the paths.
        paths: Bytes,
        /// What the connection counts.
        counted: Bytes,
    },
    /// What was sent on a path is in flight, acknowledged or lost, but for packets that only
    /// acknowledge and those of the handshake whose keys are gone.
    #[error("path {path:?} sent {sent}, but {known} are in flight, acknowledged or lost")]
    Counters {
        /// The path.
        path: PathId,
        /// Bytes in flight, acknowledged or lost.
        known: Bytes,
        /// Bytes sent.
        sent: Bytes,
    },
    /// No more is in flight than the window, and what probes need.
    #[error("path {path:?} has {in_flight} in flight with a window of {cwnd}")]
    Window {
        /// The path.
        path: PathId,
        /// Its bytes in flight.
        in_flight: Bytes,
        /// Its window.
        cwnd: Bytes,
    },
    /// Built-in policies give answers that hold.
    #[error("{refused} answers refused, {overridden} overridden")]
    Refused {
        /// Answers refused.
        refused: u64,
        /// Times that the engine chose itself.
        overridden: u64,
    },
    /// After a deadline was served, the next lies later, or something was sent.
    #[error("a deadline stands: served at {at}, and nothing came of it")]
    Stuck {
        /// When it was served, by the end's clock.
        at: Instant,
    },
    /// An endpoint whose connection is dropped has nothing left of it.
    #[error("left of a connection that is over: {what}")]
    Left {
        /// What is left.
        what: String,
    },
    /// What is over leaves no memory behind.
    #[error("{what} holds {held} bytes, expected at most {most}")]
    Memory {
        /// What was dropped then.
        what: &'static str,
        /// Bytes that it held.
        held: i64,
        /// The bound.
        most: i64,
    },
    /// What the application is told of paths makes sense.
    #[error("told of path {path:?}: {what}")]
    Told {
        /// The path.
        path: PathId,
        /// What was wrong.
        what: String,
    },
    /// Both ends send a path's packets to where the other is.
    #[error("the client is at {client} on path {path:?}, and the server sends to {server}")]
    Routes {
        /// The path.
        path: PathId,
        /// Where the client can be reached.
        client: SocketAddr,
        /// Where the server sends to.
        server: SocketAddr,
    },
    /// Engine and policies keep the rules of the seam, and the policies decide the same before the
    /// mock engine's bookkeeping.
    #[error("{finding}")]
    Seam {
        /// The first finding of the [`Watch`](crate::Watch).
        finding: String,
    },
    /// No end finds a fault in the other.
    #[error("a fault: {reason}")]
    Fault {
        /// The engine's words.
        reason: String,
    },
    /// Three times what came from an address may go there before it is proved.
    #[error("{address} was sent {sent} and sent {received} before it was proved")]
    Amplified {
        /// The address.
        address: SocketAddr,
        /// Bytes from the client.
        received: Bytes,
        /// Bytes from the server.
        sent: Bytes,
    },
    /// Every stream ends: read to its end or given up.
    #[error("not done in time: {what}")]
    Unfinished {
        /// What is missing.
        what: String,
    },
    /// A stream that nobody gave up has all its bytes.
    #[error("{stream} has {received} of {written} bytes")]
    Incomplete {
        /// The stream.
        stream: StreamId,
        /// Bytes written by the sender.
        written: u64,
        /// Bytes read by the receiver.
        received: u64,
    },
    /// At last nothing is in flight, nothing waits, nothing is sent.
    #[error("not quiet: {what}")]
    Restless {
        /// What goes on.
        what: String,
    },
    /// Both ends have the same paths.
    #[error("the client has paths {client:?}, the server {server:?}")]
    Paths {
        /// Of the client.
        client: Vec<PathId>,
        /// Of the server.
        server: Vec<PathId>,
    },
    /// Both ends say the same about why the connection ended.
    #[error("the client says {client:?}, the server {server:?}")]
    Farewell {
        /// The client's reason.
        client: Option<CloseReason>,
        /// The server's.
        server: Option<CloseReason>,
    },
    /// The simulation goes on.
    #[error(transparent)]
    Run(#[from] RunError),
}
