//! Why a file is not read.

use thiserror::Error;

/// Why a HAR file could not be read. Each prints as one line.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum HarError {
    /// The file is larger than is read.
    #[error("the file has {bytes} bytes; at most {limit} are read")]
    TooLarge {
        /// Bytes of the file.
        bytes: usize,
        /// The most that is read.
        limit: usize,
    },
    /// The file begins as gzip does.
    #[error("the file is compressed with gzip; unpack it first")]
    Compressed,
    /// The JSON text ends before it is complete.
    #[error("the file ends in the middle, at line {line}, column {column}")]
    Truncated {
        /// Line of the end, from 1.
        line: usize,
        /// Column of the end, from 1.
        column: usize,
    },
    /// The text is not JSON.
    #[error("not JSON: {message} at line {line}, column {column}")]
    NotJson {
        /// Line of the fault, from 1.
        line: usize,
        /// Column of the fault, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// The text is JSON, but a part has another shape than HAR 1.2 says.
    #[error("not a HAR file: {message} at line {line}, column {column}")]
    NotHar {
        /// Line of the fault, from 1.
        line: usize,
        /// Column of the fault, from 1.
        column: usize,
        /// What was found and what was expected.
        message: String,
    },
    /// The outer object has no `log`.
    #[error("not a HAR file: no field `log` in the outer object")]
    NoLog,
    /// There is nothing to load.
    #[error("the file has no entries")]
    NoEntries,
    /// More entries than a page has.
    #[error("the file has {count} entries; at most {limit} are read")]
    TooManyEntries {
        /// Entries of the file.
        count: usize,
        /// The most that is read.
        limit: usize,
    },
    /// An object larger than is believed.
    #[error("entry {entry}: {field} is {value} bytes; at most 1 GiB is believed")]
    AbsurdSize {
        /// Number of the entry in the file, from 1.
        entry: usize,
        /// The field that states it.
        field: &'static str,
        /// The size that it states, in bytes.
        value: f64,
    },
}

impl HarError {
    pub(super) fn from_json(error: serde_json::Error) -> HarError {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let message = match text.rfind(" at line ") {
            Some(end) => text[..end].to_owned(),
            None => text,
        };
        match error.classify() {
            serde_json::error::Category::Eof => HarError::Truncated { line, column },
            serde_json::error::Category::Data => HarError::NotHar { line, column, message },
            _ => HarError::NotJson { line, column, message },
        }
    }
}
