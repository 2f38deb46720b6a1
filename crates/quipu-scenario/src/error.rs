//! Why a scenario is refused.

mod link;
mod policy;

use std::borrow::Cow;
use std::fmt::Display;
use std::io;

use thiserror::Error;

use super::finding::{Finding, Findings, Place, Spot};
use quipu_record::{nearest, suggestion};

pub use link::LinkError;
pub use policy::PolicyError;

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
    #[error("{0}")]
    Found(Findings),
    /// Something that a part of a file says is wrong, where its line is all that is known.
    #[error("{file}{line}: {message}", line = .line.map(|line| format!(":{line}")).unwrap_or_default())]
    Toml {
        /// The file.
        file: String,
        /// The line, from 1, if known.
        line: Option<usize>,
        /// What is wrong.
        message: String,
    },
    /// Another error, and the field that it is about.
    #[error("{source}")]
    At {
        /// The field, with dots and indices from the top.
        field: String,
        /// What is wrong.
        source: Box<ScenarioError>,
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
    #[error("unknown {what} `{given}`; there are: {known}{suggestion}")]
    Unknown {
        /// What kind of name, such as `network`.
        what: Cow<'static, str>,
        /// The name.
        given: String,
        /// `; did you mean …?`, or empty.
        suggestion: String,
        /// What was probably meant.
        nearest: Option<String>,
        /// The names there are.
        known: String,
    },
    /// A link makes none.
    #[error("{field}: {source}")]
    Link {
        /// Which link or path, with dots and indices from the top.
        field: String,
        /// What is wrong.
        source: LinkError,
    },
    /// A policy's parameters are wrong.
    #[error(transparent)]
    Policy(#[from] PolicyError),
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
        what: impl Into<Cow<'static, str>>,
        given: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        ScenarioError::Unknown {
            what: what.into(),
            given: given.to_owned(),
            suggestion: suggestion(given, known.iter().copied()),
            nearest: nearest(given, known.iter().copied()).map(str::to_owned),
            known: shown(&known),
        }
    }

    /// The same error, of `field`, unless it tells its field itself.
    #[must_use]
    pub fn at(self, field: impl Into<String>) -> Self {
        match self {
            ScenarioError::Unknown { .. } | ScenarioError::Policy(_) => {
                ScenarioError::At { field: field.into(), source: Box::new(self) }
            }
            // A name that is known to a part of the program only by its last part.
            ScenarioError::Invalid { field: known, value, expected } => {
                let field = field.into();
                let last = field.rsplit('.').next().unwrap_or_default();
                let is_last = last.split('[').next().unwrap_or_default().starts_with(&known);
                let field = if is_last { field } else { known };
                ScenarioError::Invalid { field, value, expected }
            }
            other => other,
        }
    }

    /// The part of a scenario that it is about: the first name of the field, with its index.
    pub(crate) fn part(&self) -> String {
        let finding = self.findings().into_iter().next().unwrap_or_default();
        finding.field.split('.').next().unwrap_or_default().to_owned()
    }

    /// What is wrong, with field and value and without a place.
    pub fn findings(&self) -> Vec<Finding> {
        let one = match self {
            ScenarioError::Found(findings) => return findings.iter().cloned().collect(),
            ScenarioError::At { field, source } => {
                let mut findings = source.findings();
                for finding in findings.iter_mut().filter(|finding| finding.field.is_empty()) {
                    finding.field.clone_from(field);
                }
                return findings;
            }
            ScenarioError::Toml { file, line, message } => {
                let place = Place::File(Spot::in_line(file, line.unwrap_or(1)));
                Finding::new("", message, "").at(place)
            }
            ScenarioError::Invalid { field, value, expected } => {
                Finding::new(field, value, expected)
            }
            ScenarioError::Unknown { what, given, nearest, known, .. } => {
                let article = if what.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
                let expected = format!("{article} {what}: {known}");
                Finding::new("", format!("`{given}`"), expected).near(nearest.as_deref())
            }
            ScenarioError::Link { field, source } => source.finding(field),
            ScenarioError::Policy(error) => Finding::clone(&error.finding),
            ScenarioError::Read { .. } | ScenarioError::Write { .. } => {
                Finding::new("", self.to_string(), "")
            }
        };
        vec![one]
    }
}

/// Checks that no two of `names`, of the items of the list `field`, are the same: results tell them
/// apart by name alone.
///
/// # Errors
/// The second of the two.
pub fn distinct<'a>(
    field: &str,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), ScenarioError> {
    let mut seen = std::collections::BTreeSet::new();
    for (index, name) in names.enumerate() {
        if !seen.insert(name) {
            let field = format!("{field}[{index}]");
            return Err(ScenarioError::invalid(field, format!("{name} twice"), "different names"));
        }
    }
    Ok(())
}

/// Names in a list, as far as a line of an error holds them.
fn shown(names: &[&str]) -> String {
    const MOST: usize = 600;
    let mut text = String::new();
    for (index, name) in names.iter().enumerate() {
        if text.len() + name.len() > MOST {
            return format!("{text}, … and {} more", names.len() - index);
        }
        if index > 0 {
            text.push_str(", ");
        }
        text.push_str(name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_knows_its_field_or_is_told() {
        let told = |error: ScenarioError| {
            error.findings().iter().map(Finding::to_string).collect::<Vec<_>>().join("\n")
        };
        let unknown = ScenarioError::unknown("browser", "chrom", ["chrome", "firefox"]);
        assert_eq!(
            told(unknown.at("browser")),
            "browser: `chrom`; expected a browser: chrome, firefox; did you mean `chrome`?"
        );
        let page = ScenarioError::invalid("page", "pries:x", "pries:N");
        assert_eq!(told(page.at("pages[3]")), "pages[3]: pries:x; expected pries:N");
        let other = ScenarioError::invalid("runs", 0, "1 or more");
        assert_eq!(told(other.at("networks[1]")), "runs: 0; expected 1 or more");
    }
}
