//! Browsers' priority schemes: which priority goes with which request.
//!
//! A scheme is data (`profiles/*.toml`), because the values change with every release of a
//! browser: [`BrowserScheme::builtin`] gives the shipped ones, [`BrowserScheme::parse`] reads
//! others. What a scheme must remember during a connection, such as the open streams of Chrome's
//! chain, is in the [`SchemeState`] that [`BrowserScheme::session`] makes.
//!
//! Each [`Signal`] has the two worlds' priorities side by side: the HTTP/2 dependency with its
//! effective weight, and HTTP/3's urgency.

mod chain;
mod facts;
mod profile;
mod state;

use std::sync::Arc;

pub use facts::{FetchPriority, RequestFacts};
pub use profile::{ProfileError, TreeShape};
pub use state::{Change, Dependency, PhantomNode, SchemeState, Signal};

use crate::name::UnknownName;
use profile::Profile;

/// A browser's priority scheme.
#[derive(Debug, Clone, PartialEq)]
pub struct BrowserScheme {
    profile: Arc<Profile>,
}

/// Shipped schemes with the text of their profile.
const BUILTIN: [(&str, &str); 11] = [
    ("chrome", include_str!("../../profiles/chrome.toml")),
    ("firefox", include_str!("../../profiles/firefox.toml")),
    ("framework-chrome", include_str!("../../profiles/framework-chrome.toml")),
    ("framework-chrome-batches", include_str!("../../profiles/framework-chrome-batches.toml")),
    ("framework-firefox", include_str!("../../profiles/framework-firefox.toml")),
    ("framework-safari", include_str!("../../profiles/framework-safari.toml")),
    ("mobileh2", include_str!("../../profiles/mobileh2.toml")),
    ("none", include_str!("../../profiles/none.toml")),
    ("pw-pats", include_str!("../../profiles/pw-pats.toml")),
    ("pw-pats-figure4", include_str!("../../profiles/pw-pats-figure4.toml")),
    ("safari", include_str!("../../profiles/safari.toml")),
];

/// Why a named scheme is not there.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemeError {
    /// No scheme has this name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// The profile is faulty.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

impl BrowserScheme {
    /// The shipped scheme `name`.
    ///
    /// # Errors
    /// If there is none of this name; the error names the nearest.
    pub fn builtin(name: &str) -> Result<BrowserScheme, SchemeError> {
        let (_, text) = BUILTIN
            .iter()
            .find(|(builtin, _)| *builtin == name)
            .ok_or_else(|| UnknownName::new("browser", name, BrowserScheme::names()))?;
        Ok(BrowserScheme::parse(text)?)
    }

    /// Names of the shipped schemes, sorted.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// A scheme from the text of a profile.
    ///
    /// # Errors
    /// If the text is not TOML, has unknown fields or values out of range, or some request would
    /// match no rule.
    pub fn parse(text: &str) -> Result<BrowserScheme, ProfileError> {
        Ok(BrowserScheme { profile: Arc::new(Profile::parse(text)?) })
    }

    /// Name of the scheme.
    pub fn name(&self) -> &str {
        &self.profile.name
    }

    /// One line about it.
    pub fn about(&self) -> &str {
        &self.profile.about
    }

    /// Shape of its dependency tree.
    pub fn tree(&self) -> TreeShape {
        self.profile.tree
    }

    /// Whether it knows urgencies of RFC 9218; if not, every request has the default.
    pub fn has_urgencies(&self) -> bool {
        self.profile.urgencies
    }

    /// Whether it gives requests under way another priority when layout shows what is in view.
    pub fn reprioritises(&self) -> bool {
        self.profile.reprioritises
    }

    /// What the scheme remembers of one connection, at its start.
    pub fn session(&self) -> SchemeState {
        SchemeState::new(Arc::clone(&self.profile))
    }
}

#[cfg(test)]
mod tests;
