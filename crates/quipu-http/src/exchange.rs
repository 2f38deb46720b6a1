//! What versions of HTTP share of one request and its response.

use bytes::Bytes;
use quipu_base::StreamId;
use thiserror::Error;

use crate::message::MessageError;
use crate::transport::StreamError;

/// A body to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Body {
    /// None; the stream ends at once.
    #[default]
    Empty,
    /// All of it; the stream ends behind it.
    Whole(Bytes),
    /// It follows through `send_body` and `finish`.
    Streamed,
}

/// Why the rest of a body was not sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BodyError {
    /// No body is being sent on the stream: it was not announced as streamed, or it ended.
    #[error("no body is being sent on {0}")]
    NotSending(StreamId),
    /// The body would be longer than its head announced, or is not all there.
    #[error("{sent} octets on {stream}, where {left} are left of the length that was stated")]
    WrongLength {
        /// The stream.
        stream: StreamId,
        /// Octets to be sent.
        sent: u64,
        /// Octets that are left to send.
        left: u64,
    },
    /// The peer does not take so many trailers.
    #[error("the trailers take {size} octets, where the peer takes {limit}")]
    TrailersTooLarge {
        /// Size as [`FieldList::size`](crate::field::FieldList::size) counts.
        size: u64,
        /// The peer's limit, in octets.
        limit: u64,
    },
    /// The trailers are malformed.
    #[error("trailers: {0}")]
    Trailers(MessageError),
    /// The transport refused.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

/// Why a request or a response did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Failure {
    /// The peer abandoned it; the code is one of the version's in a sane peer, at any rate below 2^62.
    #[error("abandoned by the peer with code {0:#x}")]
    Reset(u64),
    /// The server did not look at the request, which may be sent again elsewhere.
    #[error("refused: the server did not look at the request")]
    Refused,
    /// The message breaks the rules of HTTP.
    #[error("malformed message: {0}")]
    Malformed(#[from] MessageError),
    /// The fields are larger than this end allows.
    #[error("the fields take more than {limit} octets")]
    FieldsTooLarge {
        /// The limit, in octets, counted as [`FieldList::size`](crate::field::FieldList::size) does.
        limit: u32,
    },
    /// The stream ended before the head.
    #[error("the stream ended before the head of the message")]
    NoHead,
}
