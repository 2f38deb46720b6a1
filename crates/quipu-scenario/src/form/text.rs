//! Texts that fields hold: what reads each, and a pattern of the same for JSON Schema.
//!
//! Here are those of no type in particular; others stand beside the type that is read from them.

use serde::de::value::{self, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::policy_layer::PolicyLayer;
use crate::units::Unit;

/// A form of text.
#[derive(Debug)]
pub(crate) struct Text {
    /// What the reference calls it, such as `time`.
    pub(crate) name: &'static str,
    /// What is wanted, as messages have it.
    pub(crate) expected: &'static str,
    /// A regular expression, as JSON Schema has it, that matches what is accepted, and little else.
    pub(crate) pattern: &'static str,
    /// Whether a text is one.
    pub(crate) accepts: fn(&str) -> bool,
    /// Numbers that may stand there without quotation marks.
    pub(crate) numbers: Numbers,
    /// Names that such a text may be.
    pub(crate) names: Names,
    /// Some that are accepted.
    pub(crate) examples: &'static [&'static str],
    /// Some that are not, by reader and pattern alike.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests hold reader and pattern to it"))]
    pub(crate) refused: &'static [&'static str],
}

/// Names that a text may be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Names {
    /// None in particular.
    None,
    /// These, among others.
    Usual(fn() -> Vec<String>),
    /// These, and what the pattern matches.
    All(fn() -> Vec<String>),
    /// Those of the policies of this layer, which only whoever runs scenarios knows.
    Policies(PolicyLayer),
}

impl Names {
    /// The names, as far as they are known here.
    pub(crate) fn list(self) -> Vec<String> {
        match self {
            Names::None | Names::Policies(_) => Vec::new(),
            Names::Usual(names) | Names::All(names) => names(),
        }
    }
}

impl Text {
    /// What is wanted, with all names where there are no others.
    pub(crate) fn wanted(&self) -> String {
        match self.names {
            Names::All(names) => format!("{}; there are: {}", self.expected, names().join(", ")),
            Names::None | Names::Usual(_) | Names::Policies(_) => self.expected.to_owned(),
        }
    }
}

/// Which numbers may stand for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// None.
    None,
    /// Zero, which needs no unit.
    Zero,
    /// Those from 0 to 1.
    Share,
    /// Whole ones from 0.
    Index,
}

/// Whether `text` is an amount or a word of `T`.
pub(crate) fn unit<T: Unit>(text: &str) -> bool {
    T::read(text).is_ok()
}

/// Whether serde reads a `T` from a text.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> bool {
    let input: StrDeserializer<'_, value::Error> = text.into_deserializer();
    T::deserialize(input).is_ok()
}

/// Whether there is anything in a text.
pub(crate) fn any(text: &str) -> bool {
    !text.trim().is_empty()
}

/// A name that a user gives.
pub(crate) static NAME: Text = Text {
    name: "name",
    expected: "a name",
    pattern: ".",
    accepts: |text| !text.is_empty(),
    numbers: Numbers::None,
    names: Names::None,
    examples: &["wifi"],
    refused: &[""],
};

/// A text of any kind.
pub(crate) static ANY: Text = Text {
    name: "text",
    expected: "a text",
    pattern: "^",
    accepts: |_| true,
    numbers: Numbers::None,
    names: Names::None,
    examples: &["the framework paper's two paths"],
    refused: &[],
};

/// A path of a network.
pub(crate) static PATH_NAME: Text = Text {
    name: "name of a path",
    expected: "the name of a path, or its number from 0",
    pattern: ".",
    accepts: any,
    numbers: Numbers::Index,
    names: Names::None,
    examples: &["wifi", "0"],
    refused: &[""],
};
