//! What can be wrong with a link.

use std::path::Path;

use quipu_link::InvalidConfig;
use quipu_record::read_at_most;
use thiserror::Error;

use super::super::field_path::joined;
use super::super::finding::{Finding, Place, Spot};
use super::super::limits::MOST_TRACE_BYTES;
use super::super::units::UnitError;

/// A description of a link that makes none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// A value is no amount of its kind.
    #[error("{field} is {source}")]
    Value {
        /// The field.
        field: String,
        /// What is wrong with the value.
        source: UnitError,
    },
    /// There is no such field.
    #[error("no field `{field}`; expected {known}{suggestion}")]
    UnknownField {
        /// The field.
        field: String,
        /// The fields there are.
        known: &'static str,
        /// The nearest one, as text; may be empty.
        suggestion: String,
    },
    /// A part is not of the form `field=value`.
    #[error("`{part}`: expected field=value, such as rate=30mbit")]
    NotAssigned {
        /// The part.
        part: String,
    },
    /// A field without default is missing.
    #[error("{field} is missing; expected {expected}")]
    Missing {
        /// The field.
        field: String,
        /// What it looks like.
        expected: &'static str,
    },
    /// A field is there twice.
    #[error("{field} is given twice")]
    Twice {
        /// The field.
        field: String,
    },
    /// A recording cannot be read, or is none of the kind wanted.
    #[error("{field} {name}: {message}")]
    Trace {
        /// The field.
        field: &'static str,
        /// The recording's name or file.
        name: String,
        /// What is wrong, with the line where there is one.
        message: String,
    },
    /// A value that the simulator's links refuse.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// A value that does not go with the others.
    #[error("{field} is {value}; expected {expected}")]
    Field {
        /// The field.
        field: String,
        /// Its value.
        value: String,
        /// What would have been right.
        expected: String,
    },
    /// Something is wrong with one link of a path.
    #[error("{link}: {source}")]
    Of {
        /// The link, such as `down`.
        link: &'static str,
        /// What is wrong.
        source: Box<LinkError>,
    },
    /// Values that make no path together.
    #[error("{0}")]
    Invalid(String),
}

impl LinkError {
    /// What is wrong with the link or path at `field`.
    pub(crate) fn finding(&self, field: &str) -> Finding {
        let joined = |name: &str| joined(field, name);
        match self {
            LinkError::Value { field, source } => {
                Finding::new(joined(field), format!("`{}`", source.text), source.expected)
            }
            LinkError::Missing { field, expected } => {
                Finding::new(joined(field), "missing", *expected)
            }
            LinkError::Config(InvalidConfig { field, value, expected }) => {
                Finding::new(joined(field), &**value, *expected)
            }
            LinkError::Field { field, value, expected } => {
                Finding::new(joined(field), value, expected)
            }
            LinkError::Of { link, source } => source.finding(&joined(link)),
            LinkError::Trace { field, name, message } => in_trace(&joined(field), name, message),
            other => Finding::new(field, other.to_string(), ""),
        }
    }
}

/// What is wrong with the recording `name`, which `field` names: in its file, if that is one and a
/// line is told.
fn in_trace(field: &str, name: &str, message: &str) -> Finding {
    let line = message.strip_prefix("line ").and_then(|rest| {
        let (line, rest) = rest.split_once(": ")?;
        Some((line.parse::<usize>().ok()?, rest))
    });
    let text = || {
        let bytes = read_at_most(Path::new(name), MOST_TRACE_BYTES).ok().flatten()?;
        String::from_utf8(bytes).ok()
    };
    match line.and_then(|(line, rest)| Some((line, rest, text()?))) {
        Some((line, rest, text)) => {
            let spot = Spot::at(name, &text, line, 1);
            Finding::new(field, rest, "").at(Place::File(spot))
        }
        None => Finding::new(field, format!("{name}: {message}"), ""),
    }
}
