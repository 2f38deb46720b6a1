//! Which kind of recording a file is, by the first keys of its outermost object.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::ImportError;
use crate::name::UnknownName;

/// Keys of a file of unknown kind that are repeated: our choice.
const MOST_KEYS: usize = 4;

/// Characters of a key that are repeated: our choice.
const LONGEST_KEY: usize = 40;

/// A supported kind of recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A HAR file, or what was meant to be one.
    Har,
    /// A network log of Chromium.
    Netlog,
    /// A trace of Chromium.
    Trace,
}

/// What has been seen of a file.
#[derive(Default)]
struct Seen {
    kind: Option<Kind>,
    keys: Vec<String>,
    /// What the outermost value is, if it is no object.
    other: Option<&'static str>,
}

/// The kind of `file`. What is no JSON counts as a HAR file.
pub(super) fn detect(file: &[u8]) -> Result<Kind, ImportError> {
    let text = file.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(file);
    let mut seen = Seen::default();
    let mut from = serde_json::Deserializer::from_slice(text);
    let result = Outermost(&mut seen).deserialize(&mut from);
    if let Some(kind) = seen.kind {
        return Ok(kind);
    }
    let meant = UnknownName::new("field", "log", seen.keys.iter().map(String::as_str)).nearest;
    if result.is_err() || meant.is_some() {
        return Ok(Kind::Har);
    }
    let found = match (seen.other, seen.keys.is_empty()) {
        (Some(other), _) => other.to_owned(),
        (None, true) => "an empty object".to_owned(),
        (None, false) => {
            let quoted = |key: &String| format!("`{}`", key.escape_debug());
            format!("it has {}", seen.keys.iter().map(quoted).collect::<Vec<_>>().join(", "))
        }
    };
    Err(ImportError::UnknownKind { found })
}

struct Outermost<'s>(&'s mut Seen);

impl Outermost<'_> {
    /// Takes note of a value that is no object.
    fn other<E: Error>(self, what: &'static str) -> Result<(), E> {
        self.0.other = Some(what);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Outermost<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Outermost<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    /// A known key ends the reading with an error, which nobody sees.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.0.kind = match key.as_str() {
                "log" => Some(Kind::Har),
                "constants" | "polledData" => Some(Kind::Netlog),
                "traceEvents" => Some(Kind::Trace),
                _ => None,
            };
            if self.0.kind.is_some() {
                return Err(A::Error::custom("known"));
            }
            if self.0.keys.len() < MOST_KEYS {
                self.0.keys.push(key.chars().take(LONGEST_KEY).collect());
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    /// A trace may be the list of its events alone, and may lack its end.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        #[derive(serde::Deserialize)]
        struct Event {
            ph: IgnoredAny,
        }
        match list.next_element::<Event>() {
            Ok(Some(Event { ph: IgnoredAny })) => {
                self.0.kind = Some(Kind::Trace);
                Err(A::Error::custom("known"))
            }
            Ok(None) => self.other("an empty list"),
            Err(error) if error.to_string().starts_with("missing field") => {
                self.other("a list without events of a trace")
            }
            Err(error) => Err(error),
        }
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.other("a truth value")
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.other("a number")
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.other("a number")
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.other("a number")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.other("a text")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.other("null")
    }
}
