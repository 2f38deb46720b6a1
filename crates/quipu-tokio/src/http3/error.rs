//! What can go wrong.

use quipu_http::h2;
use quipu_http::h3::{self, BodyError, Failure};
use thiserror::Error;

use super::convert::ConvertError;
use crate::error::ConnectionError;

/// Why a request or a response failed.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Http3Error {
    /// The connection ended.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The peer broke HTTP/3, and the connection was closed.
    #[error("HTTP/3: {0}")]
    Protocol(#[from] h3::ConnectionError),
    /// The peer broke HTTP/2, and the connection was closed.
    #[error("HTTP/2 over QUIC: {0}")]
    Http2Protocol(#[from] h2::ConnectionError),
    /// This exchange failed; others go on.
    #[error(transparent)]
    Exchange(#[from] Failure),
    /// The body cannot be sent.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The peer wants no more of the body; it said so with this code. A code of HTTP/2 is told as the one of
    /// HTTP/3 that means the same.
    #[error("the peer wants no more of the body: {0}")]
    Stopped(h3::ErrorCode),
    /// The request cannot be sent.
    #[error(transparent)]
    Request(h3::RequestError),
    /// The request cannot be sent over HTTP/2.
    #[error(transparent)]
    Http2Request(h2::RequestError),
    /// The response cannot be sent.
    #[error(transparent)]
    Respond(#[from] h3::RespondError),
    /// The response cannot be sent over HTTP/2.
    #[error(transparent)]
    Http2Respond(#[from] h2::RespondError),
    /// A message that the `http` crate, or HTTP/3, does not have.
    #[error(transparent)]
    Convert(#[from] ConvertError),
}
