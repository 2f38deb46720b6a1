//! The data of a scheme.

use serde::Deserialize;
use thiserror::Error;

use super::RequestFacts;
use super::facts::Fact;
use crate::page::{ChromePriority, ObjectKind, SniffedClass};

/// The longest profile that is read, in bytes: our choice, a hundred times the longest shipped.
const MAX_TEXT: usize = 256 << 10;

/// How the requests hang in the dependency tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeShape {
    /// Each request depends exclusively on the newest open stream of equal or higher weight.
    ExclusiveChain,
    /// Each request is a child of the root or of a phantom node and shares by weight.
    Weighted,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) tree: TreeShape,
    /// Whether the rules give urgencies too.
    #[serde(default)]
    pub(super) urgencies: bool,
    /// Whether requests under way get another priority when layout shows what is in view.
    #[serde(default)]
    pub(super) reprioritises: bool,
    recorded: Option<RecordedLevels>,
    #[serde(default, rename = "phantom")]
    pub(super) phantoms: Vec<Phantom>,
    #[serde(rename = "rule")]
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Phantom {
    pub(super) name: String,
    pub(super) stream: u64,
    pub(super) parent: Option<String>,
    pub(super) weight: u16,
}

/// The first rule that matches a request gives its priority.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(default)]
    kinds: Vec<ObjectKind>,
    #[serde(default)]
    sniffed: Vec<SniffedClass>,
    #[serde(default)]
    when: Vec<Fact>,
    parent: Option<String>,
    weight: u16,
    urgency: Option<u8>,
    #[serde(default)]
    incremental: bool,
}

/// Values for the priority that a recording states.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RecordedLevels {
    very_high: Level,
    high: Level,
    medium: Level,
    low: Level,
    very_low: Level,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Level {
    weight: u16,
    urgency: u8,
}

/// What a profile gives a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice {
    /// Stream of the phantom node that it depends on; 0 is the root.
    pub(super) parent: u64,
    pub(super) weight: u16,
    pub(super) urgency: u8,
    pub(super) incremental: bool,
}

/// Why a profile is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The text is not TOML, or a field is missing, unknown or of another type.
    #[error("profile: {message}")]
    Toml {
        /// What is wrong, in one line.
        message: String,
    },
    /// The text is too long.
    #[error("profile: the text has {bytes} bytes; at most {MAX_TEXT} are read")]
    TooLong {
        /// Bytes of the text.
        bytes: usize,
    },
    /// A weight that HTTP/2 cannot carry.
    #[error("profile: {place}: weight {weight} is out of range; expected 1 to 256")]
    Weight {
        /// The phantom or rule.
        place: String,
        /// Its weight.
        weight: u16,
    },
    /// An urgency that RFC 9218 does not have.
    #[error("profile: {place}: urgency {urgency} is out of range; expected 0 to 7")]
    Urgency {
        /// The rule.
        place: String,
        /// Its urgency.
        urgency: u8,
    },
    /// A stream that requests could use, or that two phantoms use.
    #[error("profile: phantom `{name}`: stream {stream} must be odd, below 2^31 and used once")]
    Stream {
        /// The phantom.
        name: String,
        /// Its stream.
        stream: u64,
    },
    /// A parent that was not declared before.
    #[error("profile: {place}: no phantom `{parent}` was declared before; known: {}", .known.join(", "))]
    Parent {
        /// The phantom or rule.
        place: String,
        /// The parent it names.
        parent: String,
        /// Phantoms that were.
        known: Vec<String>,
    },
    /// Some request would match no rule.
    #[error("profile: the last rule must match every request: no kinds, sniffed or when")]
    NoLastRule,
}

impl Profile {
    pub(super) fn parse(text: &str) -> Result<Profile, ProfileError> {
        if text.len() > MAX_TEXT {
            return Err(ProfileError::TooLong { bytes: text.len() });
        }
        let profile: Profile = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| {
                text.get(..span.start).map_or(1, |before| before.matches('\n').count() + 1)
            });
            let message = error.message().replace('\n', " ");
            ProfileError::Toml { message: format!("line {line}: {message}") }
        })?;
        profile.check()?;
        Ok(profile)
    }

    fn check(&self) -> Result<(), ProfileError> {
        for (index, phantom) in self.phantoms.iter().enumerate() {
            let place = format!("phantom `{}`", phantom.name);
            let before = &self.phantoms[..index];
            check_weight(&place, phantom.weight)?;
            check_parent(&place, phantom.parent.as_deref(), before)?;
            // HTTP/2's stream identifiers have 31 bits; requests have even ones here.
            let fits = phantom.stream % 2 == 1 && phantom.stream < 1 << 31;
            if !fits || before.iter().any(|other| other.stream == phantom.stream) {
                let name = phantom.name.clone();
                return Err(ProfileError::Stream { name, stream: phantom.stream });
            }
        }
        for (number, rule) in (1..).zip(&self.rules) {
            let place = format!("rule {number}");
            check_weight(&place, rule.weight)?;
            check_parent(&place, rule.parent.as_deref(), &self.phantoms)?;
            check_urgency(&place, rule.urgency.unwrap_or(0))?;
        }
        for priority in ChromePriority::ALL {
            if let Some(level) = self.recorded.as_ref().map(|levels| levels.level(priority)) {
                check_weight("recorded", level.weight)?;
                check_urgency("recorded", level.urgency)?;
            }
        }
        let matches_all =
            |rule: &Rule| rule.kinds.is_empty() && rule.sniffed.is_empty() && rule.when.is_empty();
        if self.rules.last().is_some_and(matches_all) {
            Ok(())
        } else {
            Err(ProfileError::NoLastRule)
        }
    }

    /// What the profile gives a request with these facts.
    pub(super) fn choose(&self, facts: &RequestFacts) -> Choice {
        let mut choice =
            self.rules.iter().find(|rule| rule.matches(facts)).map_or(Choice::DEFAULT, |rule| {
                Choice {
                    parent: self.stream_of(rule.parent.as_deref()),
                    weight: rule.weight,
                    urgency: rule.urgency.unwrap_or(Choice::DEFAULT.urgency),
                    incremental: rule.incremental,
                }
            });
        if let (Some(levels), Some(priority)) = (&self.recorded, facts.recorded) {
            let level = levels.level(priority);
            (choice.weight, choice.urgency) = (level.weight, level.urgency);
        }
        choice
    }

    /// Stream of the phantom `name`; the root for none.
    pub(super) fn stream_of(&self, name: Option<&str>) -> u64 {
        let phantom = self.phantoms.iter().find(|phantom| Some(phantom.name.as_str()) == name);
        phantom.map_or(0, |phantom| phantom.stream)
    }
}

impl Choice {
    /// Without signals. <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.5>,
    /// <https://www.rfc-editor.org/rfc/rfc9218#section-4>
    const DEFAULT: Choice = Choice { parent: 0, weight: 16, urgency: 3, incremental: false };
}

impl Rule {
    fn matches(&self, facts: &RequestFacts) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&facts.kind))
            && (self.sniffed.is_empty() || self.sniffed.contains(&facts.sniffed))
            && self.when.iter().all(|&fact| facts.has(fact))
    }
}

impl RecordedLevels {
    fn level(&self, priority: ChromePriority) -> Level {
        match priority {
            ChromePriority::VeryHigh => self.very_high,
            ChromePriority::High => self.high,
            ChromePriority::Medium => self.medium,
            ChromePriority::Low => self.low,
            ChromePriority::VeryLow => self.very_low,
        }
    }
}

fn check_weight(place: &str, weight: u16) -> Result<(), ProfileError> {
    if (1..=256).contains(&weight) {
        return Ok(());
    }
    Err(ProfileError::Weight { place: place.to_owned(), weight })
}

fn check_urgency(place: &str, urgency: u8) -> Result<(), ProfileError> {
    if urgency <= 7 {
        return Ok(());
    }
    Err(ProfileError::Urgency { place: place.to_owned(), urgency })
}

fn check_parent(
    place: &str,
    parent: Option<&str>,
    declared: &[Phantom],
) -> Result<(), ProfileError> {
    let Some(parent) = parent else { return Ok(()) };
    if declared.iter().any(|phantom| phantom.name == parent) {
        return Ok(());
    }
    Err(ProfileError::Parent {
        place: place.to_owned(),
        parent: parent.to_owned(),
        known: declared.iter().map(|phantom| phantom.name.clone()).collect(),
    })
}
