//! Why a page was not loaded.

use quipu_base::Duration;
use quipu_tokio::http3::Http3Error;
use thiserror::Error;

use crate::foreign::ForeignFailure;
use crate::tcp::TcpFailure;

/// Why a request or its response failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// Over HTTP/3.
    #[error(transparent)]
    Http3(#[from] Http3Error),
    /// Over TCP.
    #[error(transparent)]
    Tcp(#[from] TcpFailure),
    /// The server has no objects to warm a connection up.
    #[error("{path}: status {status}, expected a small object to warm the connection up")]
    WarmUp {
        /// Where it was asked for one.
        path: &'static str,
        /// Its answer.
        status: u16,
    },
    /// Over another library.
    #[error(transparent)]
    Foreign(#[from] ForeignFailure),
}

/// A page that was not loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The connection, or a response, failed.
    #[error("{url}: {source}")]
    Exchange {
        /// What was asked for.
        url: String,
        /// Why.
        source: ExchangeError,
    },
    /// An object whose URL is none.
    #[error("{url}: {reason}")]
    Url {
        /// What the page says.
        url: String,
        /// What is wrong with it.
        reason: http::Error,
    },
    /// Not all was there in time.
    #[error("{open} of {objects} objects are not there after {after}")]
    Unfinished {
        /// The time that the load was given.
        after: Duration,
        /// Objects that are missing.
        open: usize,
        /// Objects of the page.
        objects: usize,
    },
}
