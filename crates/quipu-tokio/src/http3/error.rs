//! What can go wrong.

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
    /// This exchange failed; others go on.
    #[error(transparent)]
    Exchange(#[from] Failure),
    /// The body cannot be sent.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The peer wants no more of the body; it said so with this code.
    #[error("the peer wants no more of the body: {0}")]
    Stopped(h3::ErrorCode),
    /// The request cannot be sent.
    #[error(transparent)]
    Request(h3::RequestError),
    /// The response cannot be sent.
    #[error(transparent)]
    Respond(#[from] h3::RespondError),
    /// A message that the `http` crate, or HTTP/3, does not have.
    #[error(transparent)]
    Convert(#[from] ConvertError),
}
