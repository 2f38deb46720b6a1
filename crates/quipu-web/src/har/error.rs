//! Why a file is not read.

use thiserror::Error;

use super::place;

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
    #[error("the file ends in the middle{}, at line {line}, column {column}", in_field(.field))]
    Truncated {
        /// The value that is cut, such as `log.entries[3].request`.
        field: String,
        /// Line of the end, from 1.
        line: usize,
        /// Column of the end, from 1.
        column: usize,
    },
    /// The text is not JSON.
    #[error("not JSON: {message}{} at line {line}, column {column}", in_field(.field))]
    NotJson {
        /// The value that it is in, such as `log.entries[3].request`.
        field: String,
        /// Line of the fault, from 1.
        line: usize,
        /// Column of the fault, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// The text is JSON, but a part has another shape than HAR 1.2 says.
    #[error("not a HAR file: {}{message} at line {line}, column {column}", of_field(.field))]
    NotHar {
        /// The value, such as `log.entries[3].request`.
        field: String,
        /// Line of the fault, from 1.
        line: usize,
        /// Column of the fault, from 1.
        column: usize,
        /// What was found and what was expected.
        message: String,
    },
    /// The outer object has no `log`.
    #[error("not a HAR file: no field `log` in the outer object{}", instead(.nearest))]
    NoLog {
        /// A field that may have been meant to be it.
        nearest: Option<String>,
    },
    /// There is nothing to load.
    #[error("the file has no entries{}", instead(.nearest))]
    NoEntries {
        /// A field that may have been meant to be `log.entries`.
        nearest: Option<String>,
    },
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
    /// Line and column of the fault, from 1, if it is at one place of the file.
    pub fn place(&self) -> Option<(usize, usize)> {
        match *self {
            HarError::Truncated { line, column, .. }
            | HarError::NotJson { line, column, .. }
            | HarError::NotHar { line, column, .. } => Some((line, column)),
            _ => None,
        }
    }

    /// The value with the fault, such as `log.entries[3].request`; empty for the whole file.
    pub fn field(&self) -> String {
        match self {
            HarError::Truncated { field, .. }
            | HarError::NotJson { field, .. }
            | HarError::NotHar { field, .. } => field.clone(),
            HarError::NoLog { .. } => "log".to_owned(),
            HarError::NoEntries { .. } => "log.entries".to_owned(),
            HarError::AbsurdSize { entry, field, .. } => {
                format!("log.entries[{}].{field}", entry.saturating_sub(1))
            }
            _ => String::new(),
        }
    }

    /// What is wrong, without what [`HarError::place`] and, where the JSON text itself is at fault,
    /// [`HarError::field`] tell.
    pub fn fault(&self) -> String {
        match self {
            HarError::Truncated { .. } => "the file ends in the middle".to_owned(),
            HarError::NotJson { message, .. } => format!("not JSON: {message}"),
            HarError::NotHar { field, message, .. } => {
                format!("not a HAR file: {}{message}", of_field(field))
            }
            other => other.to_string(),
        }
    }

    pub(super) fn from_json(file: &[u8], error: serde_json::Error) -> HarError {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let message = match text.rfind(" at line ") {
            Some(end) => text[..end].to_owned(),
            None => text,
        };
        let field = place::path_at(file, line, column);
        match error.classify() {
            serde_json::error::Category::Eof => HarError::Truncated { field, line, column },
            serde_json::error::Category::Data => HarError::NotHar { field, line, column, message },
            _ => HarError::NotJson { field, line, column, message },
        }
    }

    pub(super) fn no_log(text: &[u8]) -> HarError {
        HarError::NoLog { nearest: place::near_key(text, &[], "log") }
    }

    pub(super) fn no_entries(text: &[u8]) -> HarError {
        HarError::NoEntries { nearest: place::near_key(text, &["log"], "entries") }
    }
}

/// ` in FIELD`, or nothing.
fn in_field(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!(" in {field}") }
}

/// `FIELD: `, or nothing.
fn of_field(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!("{field}: ") }
}

/// `; did you mean …?`, or nothing.
fn instead(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map(|name| format!("; did you mean `{}`?", name.escape_debug()))
        .unwrap_or_default()
}
