//! Why a trace is not read.

use thiserror::Error;

/// Why a trace could not be read. Each prints as one line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file is larger than is read.
    #[error("the trace has {bytes} bytes; at most {limit} are read")]
    TooLarge {
        /// Bytes of the file.
        bytes: usize,
        /// The most that is read.
        limit: usize,
    },
    /// The file is gzip or a zip archive.
    #[error("the trace is compressed; unpack it first")]
    Compressed,
    /// The JSON text ends before it is complete.
    #[error("the trace ends in the middle{}, at line {line}, column {column}", of_event(*.event))]
    Truncated {
        /// Number of the event that is cut, from 1, if it is known.
        event: Option<usize>,
        /// Line of the end, from 1.
        line: usize,
        /// Column of the end, from 1.
        column: usize,
    },
    /// The text is not JSON, or a part has another shape than a trace has.
    #[error("not a trace: {message}{} at line {line}, column {column}", of_event(*.event))]
    Malformed {
        /// Number of the event that the fault is in or before, from 1, if it is known.
        event: Option<usize>,
        /// Line of the fault, from 1.
        line: usize,
        /// Column of the fault, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// The outer object has no list of events.
    #[error("not a trace: no field `traceEvents` in the outer object")]
    NoEvents,
    /// More events than are read.
    #[error("the trace has more than {limit} events; record fewer categories")]
    TooManyEvents {
        /// The most that is read.
        limit: usize,
    },
    /// No event tells of a renderer's main thread.
    #[error("no main thread of a renderer in the trace; record the category devtools.timeline")]
    NoMainThread,
    /// A recording has no such load.
    #[error("no load `{asked}` in the file; it has: {}", .known.join(", "))]
    NoSuchLoad {
        /// The load asked for.
        asked: String,
        /// The loads of the file.
        known: Vec<String>,
    },
}

impl TraceError {
    /// Line and column of the fault, from 1, if it is at one place of the file.
    pub fn place(&self) -> Option<(usize, usize)> {
        match *self {
            TraceError::Truncated { line, column, .. }
            | TraceError::Malformed { line, column, .. } => Some((line, column)),
            _ => None,
        }
    }

    /// `event` is the number of the one at fault.
    pub(super) fn from_json(error: &serde_json::Error, event: Option<usize>) -> TraceError {
        let (line, column) = (error.line(), error.column());
        if error.is_eof() {
            return TraceError::Truncated { event, line, column };
        }
        let text = error.to_string();
        let message = match text.rfind(" at line ") {
            Some(end) => text[..end].to_owned(),
            None => text,
        };
        TraceError::Malformed { event, line, column, message }
    }
}

/// ` in event N`, or nothing.
fn of_event(event: Option<usize>) -> String {
    event.map(|number| format!(" in event {number}")).unwrap_or_default()
}
