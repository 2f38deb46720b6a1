//! Why a scenario is refused.

use std::fmt::Display;
use std::io;

use quipu_policy::registry::SpecError;
use thiserror::Error;

use super::link::LinkError;
use super::nearest::suggestion;

/// A scenario, or a part of one, that cannot be run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// A file could not be read.
    #[error("cannot read {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// A file is no TOML, or not of the form wanted.
    #[error("{file}{line}: {message}", line = .line.map(|line| format!(" line {line}")).unwrap_or_default())]
    Toml {
        /// The file.
        file: String,
        /// The line, from 1, if known.
        line: Option<usize>,
        /// What is wrong.
        message: String,
    },
    /// A scenario cannot be written as TOML.
    #[error("cannot write the scenario: {message}")]
    Write {
        /// Why.
        message: String,
    },
    /// A field has a value out of its range.
    #[error("{field} is {value}; expected {expected}")]
    Invalid {
        /// The field, with dots from the top.
        field: String,
        /// The value found.
        value: String,
        /// What would have been right.
        expected: String,
    },
    /// A name that nothing has.
    #[error("unknown {what} `{given}`{suggestion}; there are: {known}")]
    Unknown {
        /// What kind of name, such as `network`.
        what: &'static str,
        /// The name.
        given: String,
        /// `; did you mean …?`, or empty.
        suggestion: String,
        /// The names there are.
        known: String,
    },
    /// A link makes none.
    #[error("{place}: {source}")]
    Link {
        /// Which link.
        place: String,
        /// What is wrong.
        source: LinkError,
    },
    /// A policy's parameters are wrong.
    #[error(transparent)]
    Policy(#[from] SpecError),
    /// Something that exists by name but not yet in this program.
    #[error("{field} = {value} is not implemented; expected {expected}")]
    NotImplemented {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// What there is.
        expected: &'static str,
    },
}

impl ScenarioError {
    /// `field` has `value` but should be `expected`.
    pub fn invalid(
        field: impl Into<String>,
        value: impl Display,
        expected: impl Into<String>,
    ) -> Self {
        let (field, value) = (field.into(), value.to_string());
        ScenarioError::Invalid { field, value, expected: expected.into() }
    }

    /// There is no `what` called `given`; `known` are those there are.
    pub fn unknown<'a>(
        what: &'static str,
        given: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        ScenarioError::Unknown {
            what,
            given: given.to_owned(),
            suggestion: suggestion(given, known.iter().copied()),
            known: known.join(", "),
        }
    }

    /// What `toml` found wrong in `text`, the content of `file`.
    pub(super) fn toml(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let before = error.span().and_then(|span| text.get(..span.start));
        ScenarioError::Toml {
            file: file.to_owned(),
            line: before.map(|before| before.matches('\n').count() + 1),
            // One line is all that a message may have.
            message: error.message().replace('\n', ", "),
        }
    }
}
