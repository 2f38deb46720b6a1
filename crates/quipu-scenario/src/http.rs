//! How HTTP is carried.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::choice::HttpVersion;
use super::error::ScenarioError;
use super::form::text::read;
use super::form::{Kind, Names, Numbers, Text, field_types};

/// One way to carry HTTP, or several: each is rows of a comparison then. In text separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpVersions(Vec<HttpVersion>);

impl HttpVersions {
    /// In the order in which they were named; at least one.
    pub fn iter(&self) -> impl Iterator<Item = HttpVersion> {
        self.0.iter().copied()
    }

    /// Whether that is one of them.
    pub fn has(&self, version: HttpVersion) -> bool {
        self.0.contains(&version)
    }

    /// Whether there is no HTTP, but raw streams.
    pub fn is_raw(&self) -> bool {
        self.has(HttpVersion::Raw)
    }

    /// Whether there are several.
    pub fn are_several(&self) -> bool {
        self.0.len() > 1
    }
}

impl Default for HttpVersions {
    fn default() -> Self {
        HttpVersion::default().into()
    }
}

impl From<HttpVersion> for HttpVersions {
    fn from(version: HttpVersion) -> Self {
        HttpVersions(vec![version])
    }
}

impl fmt::Display for HttpVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, version) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{version}")?;
        }
        Ok(())
    }
}

impl FromStr for HttpVersions {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        let mut versions = Vec::new();
        for part in text.split(',') {
            let version: HttpVersion = part.trim().parse()?;
            if versions.contains(&version) {
                return Err(ScenarioError::invalid("http", text, "different versions"));
            }
            versions.push(version);
        }
        if versions.len() > 1 && versions.contains(&HttpVersion::Raw) {
            return Err(ScenarioError::invalid("http", text, "raw alone, or versions of HTTP"));
        }
        Ok(HttpVersions(versions))
    }
}

impl Serialize for HttpVersions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HttpVersions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Ways to carry HTTP.
static HTTP: Text = Text {
    name: "versions of HTTP",
    expected: "h2, h2-tcp or h3, several separated by commas, or raw alone",
    pattern: "^ *(raw|(h2|h2-tcp|h3)( *, *(h2|h2-tcp|h3))*) *$",
    accepts: read::<HttpVersions>,
    numbers: Numbers::None,
    names: Names::Usual(|| HttpVersion::NAMES.iter().map(|&name| name.to_owned()).collect()),
    examples: &["h2", "h2-tcp", "h3", "h2,h2-tcp,h3", "raw"],
    refused: &["http2", "h2,raw", ""],
};

field_types! {
    HttpVersions: Kind::Text(&HTTP),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_versions_are_a_list_without_repetitions() {
        let versions: HttpVersions = "h2, h2-tcp".parse().unwrap();
        assert_eq!(versions.to_string(), "h2,h2-tcp");
        assert!(versions.are_several() && versions.has(HttpVersion::H2Tcp));
        for (text, told) in [
            ("h2,h2", "different versions"),
            ("h2,raw", "raw alone"),
            ("h2-tpc", "did you mean `h2-tcp`?"),
            ("", "there are: h2"),
        ] {
            let error = text.parse::<HttpVersions>().unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
