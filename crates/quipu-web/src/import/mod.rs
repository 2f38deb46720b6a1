//! Recordings of other kinds than HAR, made into HAR files.
//!
//! [`har_file`] takes a file of any supported kind, detects which from its content, and returns a HAR file of the same
//! loads:
//!
//! - a HAR file is returned unchanged;
//! - `netlog`: Chrome's network log, of `--log-net-log` and `chrome://net-export`;
//! - `devtools`: a recording of the performance panel of the developer tools, or any trace of Chromium with events of
//!   requests. The HAR file contains it as the trace of the load.
//!
//! Both produce loads (`load::Load`), which `har` writes. Not here: gzip and archives, which [`crate::archive`] unpacks.

mod devtools;
mod har;
mod kind;
mod load;
mod netlog;

use std::borrow::Cow;

use thiserror::Error;

use crate::recording::AddTraceError;
use crate::trace::TraceError;

use kind::Kind;

/// Why a file cannot be converted. Each prints as one line.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// JSON of another kind.
    #[error(
        "not a recording: {found}; expected a HAR file (`log`), a network log of Chrome (`constants` and `events`) or a \
         performance recording of its developer tools (`traceEvents`)"
    )]
    UnknownKind {
        /// What the outermost value is.
        found: String,
    },
    /// The netlog is damaged in another way than by ending early.
    #[error("not a netlog: {message} at line {line}, column {column}")]
    Malformed {
        /// Line of the fault, from 1.
        line: usize,
        /// Column of the fault, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// The numbers of a netlog's events have no names.
    #[error(
        "a netlog without the names of its events: expected `constants` with `{missing}` before `events`"
    )]
    NoConstants {
        /// The first that is missing.
        missing: &'static str,
    },
    /// More events than are read.
    #[error("the netlog has more than {limit} events")]
    TooManyEvents {
        /// The most that is read.
        limit: usize,
    },
    /// Nothing was requested.
    #[error("a netlog without URL_REQUEST events: none of its {events} events is of a request")]
    NoUrlRequests {
        /// Events of the log.
        events: usize,
    },
    /// No page was loaded.
    #[error(
        "a netlog without a page load: none of its {requests} requests is for the document of a main frame; start \
         logging before the page is loaded"
    )]
    NoPageLoad {
        /// Requests of the log.
        requests: usize,
    },
    /// The trace was not read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace tells no requests.
    #[error(
        "a trace without ResourceSendRequest events of a page; record the category devtools.timeline"
    )]
    NoTracedRequests,
    /// The trace and the requests in it do not fit together.
    #[error(transparent)]
    AddTrace(#[from] AddTraceError),
}

/// Converts `file`, a recording of any supported kind, to a HAR file. A file that is not JSON is returned unchanged: the
/// reader of HAR files reports what is wrong with it.
///
/// # Errors
/// If the file is JSON of an unsupported kind, or contains no page load.
pub fn har_file(file: &[u8]) -> Result<Cow<'_, [u8]>, ImportError> {
    match kind::detect(file)? {
        Kind::Har => Ok(Cow::Borrowed(file)),
        Kind::Netlog => netlog::har_file(file).map(Cow::Owned),
        Kind::Trace => devtools::har_file(file).map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests;
