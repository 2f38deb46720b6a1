//! What can go wrong: with the peer, and with the caller.

use quipu_base::{StreamDirection, StreamId};
use thiserror::Error;

/// The peer broke a rule of streams; the connection closes with the error of that name.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-20.1>
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StreamFault {
    /// FLOW_CONTROL_ERROR.
    #[error("data beyond the credit of the stream or the connection")]
    FlowControl,
    /// FINAL_SIZE_ERROR.
    #[error("final size of a stream changed, or lies below data already sent")]
    FinalSize,
    /// STREAM_LIMIT_ERROR.
    #[error("more streams than allowed")]
    StreamLimit,
    /// STREAM_STATE_ERROR.
    #[error("frame for a stream that cannot have it")]
    StreamState,
    /// PROTOCOL_VIOLATION: see [`CancelLimit`](crate::CancelLimit).
    #[error("more streams opened and cancelled than are served")]
    Cancelled,
}

/// Why a stream was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The peer allows no more; [`StreamEvent::Available`](crate::internals::StreamEvent) follows.
    #[error("the peer allows {limit} streams of direction {direction:?}, and all were opened")]
    Limit {
        /// Direction asked for.
        direction: StreamDirection,
        /// Streams of that direction that the peer allows over the life of the connection.
        limit: u64,
    },
}

/// Why the application's call on a stream was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The stream was never opened, or this half of it is over.
    #[error("{0} is not open in that direction")]
    NotOpen(StreamId),
    /// Bytes after the end.
    #[error("{0} was finished; nothing can be written after that")]
    Finished(StreamId),
    /// More bytes than a stream can number.
    #[error("{0} would grow beyond 2^62 - 1 bytes")]
    TooLong(StreamId),
}
