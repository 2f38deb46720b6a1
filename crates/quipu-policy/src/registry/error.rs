//! What can be wrong with a policy's text, its building, and an entry of the registry.

use thiserror::Error;

use super::layer::Layer;

/// The nearest valid name, and all of them, for an error message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// The nearest, if one is near.
    pub nearest: Option<String>,
    /// All valid names.
    pub valid: Vec<String>,
}

/// Why a text names no policy that can be built.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// No such policy in that layer.
    #[error("no {layer} policy is called `{name}`{}", .hint.text("Known"))]
    UnknownPolicy {
        /// The layer.
        layer: Layer,
        /// The name given.
        name: String,
        /// What it could have been.
        hint: Hint,
    },
    /// No policy of that name in any layer.
    #[error("no policy is called `{name}`{}", .hint.text("Known"))]
    UnknownName {
        /// The name given.
        name: String,
        /// What it could have been.
        hint: Hint,
    },
    /// A policy of another layer.
    #[error("`{name}` is no {layer} policy but a {is} policy")]
    OtherLayer {
        /// The name given.
        name: String,
        /// The layer asked for.
        layer: Layer,
        /// The layer it is of.
        is: Layer,
    },
    /// The policy has no such parameter.
    #[error("{policy} has no parameter `{param}`{}", .hint.text("It has"))]
    UnknownParam {
        /// The policy.
        policy: String,
        /// The name given.
        param: String,
        /// What it could have been.
        hint: Hint,
    },
    /// No such layer.
    #[error("no part of a policy is called `{name}`{}", .hint.text("Known"))]
    UnknownLayer {
        /// The name given.
        name: String,
        /// What it could have been.
        hint: Hint,
    },
    /// A value of another type, or out of range.
    #[error("{policy}: {param}={value}: expected {expected}")]
    BadValue {
        /// The policy.
        policy: String,
        /// Its parameter.
        param: String,
        /// The value given.
        value: String,
        /// What was expected.
        expected: String,
    },
    /// A policy that is made of a file, without one.
    #[error("{policy} needs a file: expected {policy}:{param}=FILE")]
    NeedsFile {
        /// The policy.
        policy: String,
        /// The parameter that names the file.
        param: &'static str,
    },
    /// Given twice.
    #[error("{what} is given twice")]
    Repeated {
        /// What.
        what: String,
    },
    /// The text has another form.
    #[error("`{text}`: expected {expected}")]
    Syntax {
        /// The text.
        text: String,
        /// The form expected.
        expected: &'static str,
    },
    /// Two parts that exclude each other.
    #[error("{first} and {second} exclude each other: {reason}")]
    Conflict {
        /// One.
        first: String,
        /// The other.
        second: String,
        /// Why.
        reason: &'static str,
    },
    /// The policy itself refused.
    #[error("{policy}: {error}")]
    Build {
        /// The policy.
        policy: String,
        /// Why.
        error: BuildError,
    },
}

/// Why a policy could not be built from its values.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The policy reads a parameter that its entry does not declare, or declares with another type.
    #[error("parameter `{param}` is read but not declared so")]
    Undeclared {
        /// The parameter.
        param: &'static str,
    },
    /// The policy's entry promises another layer than it built.
    #[error("it built no {layer} policy")]
    Missing {
        /// The layer promised.
        layer: Layer,
    },
    /// What makes it failed: a constructor in another language.
    #[error("{reason}")]
    Failed {
        /// Why.
        reason: String,
    },
    /// Values that are each in range do not go together.
    #[error("{param}={value}: expected {expected}")]
    Invalid {
        /// The parameter to change.
        param: &'static str,
        /// Its value.
        value: String,
        /// What was expected.
        expected: String,
    },
}

/// Why an entry cannot be added to a registry.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddError {
    /// The name is taken.
    #[error("a {layer} policy called `{name}` exists already")]
    Exists {
        /// The layer.
        layer: Layer,
        /// The name.
        name: &'static str,
    },
    /// A name has other signs than lower-case letters, digits, `-` and `_`, or none.
    #[error("`{name}`: names are of lower-case letters, digits, `-` and `_`")]
    Name {
        /// The name.
        name: String,
    },
    /// It does not say how it decides.
    #[error("{policy}: without a formula: where there is none, say why")]
    Formula {
        /// The policy.
        policy: &'static str,
    },
    /// A parameter's default is not in its range, or its name is taken.
    #[error("{policy}: parameter `{param}` is declared twice or its default is out of range")]
    Param {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        param: &'static str,
    },
}

impl Hint {
    /// `; did you mean …? Known: …`.
    fn text(&self, label: &str) -> String {
        let mut text = String::new();
        if let Some(nearest) = &self.nearest {
            text.push_str(&format!("; did you mean `{nearest}`?"));
        }
        if !self.valid.is_empty() {
            let punctuation = if self.nearest.is_some() { "" } else { "." };
            text.push_str(&format!("{punctuation} {label}: {}", self.valid.join(", ")));
        }
        text
    }
}
