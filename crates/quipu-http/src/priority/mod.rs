//! The `priority` field: urgency and incremental flag of a response.
//! <https://www.rfc-editor.org/rfc/rfc9218>
//!
//! A client states it in a request, or later in a PRIORITY_UPDATE frame; a server may state it in a
//! response, and what it states overrides what the client did.

mod dictionary;

use std::fmt;

use quipu_policy::Urgency;
use thiserror::Error;

use self::dictionary::Value;
use crate::field::FieldList;

/// The name of the field.
pub const PRIORITY: &str = "priority";

/// Priority parameters as they were stated; `None` where one was not, or not in a way that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriorityField {
    /// 0 (most urgent) to 7. <https://www.rfc-editor.org/rfc/rfc9218#section-4.1>
    pub urgency: Option<u8>,
    /// Whether parts of the response are of use.
    /// <https://www.rfc-editor.org/rfc/rfc9218#section-4.2>
    pub incremental: Option<bool>,
}

/// A field that is no dictionary of structured fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no dictionary of structured fields, from octet {at}")]
pub struct MalformedPriority {
    /// Where reading came to an end, in octets.
    pub at: usize,
}

impl PriorityField {
    /// Reads the value of a field, or of a PRIORITY_UPDATE frame.
    ///
    /// <https://www.rfc-editor.org/rfc/rfc9218#section-4>
    //# Where the Dictionary is successfully parsed, this document places the additional
    //# requirement that unknown priority parameters, priority parameters with out-of-range
    //# values, or values of unexpected types MUST be ignored.
    ///
    /// # Errors
    /// If the value is no dictionary.
    pub fn parse(value: &[u8]) -> Result<PriorityField, MalformedPriority> {
        let mut field = PriorityField::default();
        dictionary::read(value, |key, value| match (key, value) {
            (b"u", Value::Integer(level)) => {
                field.urgency = u8::try_from(level).ok().filter(|&level| level <= 7);
            }
            // Of a key that comes twice, the last value counts.
            (b"u", _) => field.urgency = None,
            (b"i", Value::Boolean(incremental)) => field.incremental = Some(incremental),
            (b"i", _) => field.incremental = None,
            _ => {}
        })?;
        Ok(field)
    }

    /// What the fields of a message state; `None` if they have no such field. One that is malformed
    /// states nothing, so that the defaults hold.
    /// <https://www.rfc-editor.org/rfc/rfc9218#section-5>
    pub fn of(fields: &FieldList) -> Option<PriorityField> {
        let mut lines =
            fields.iter().filter(|field| field.name == PRIORITY.as_bytes()).map(|line| line.value);
        let first = lines.next()?;
        let Some(second) = lines.next() else {
            return Some(PriorityField::parse(first).unwrap_or_default());
        };
        // https://www.rfc-editor.org/rfc/rfc8941#section-4.2
        // Several lines are one value, joined by commas.
        let lines: Vec<&[u8]> = [first, second].into_iter().chain(lines).collect();
        Some(PriorityField::parse(&lines.join(&b", "[..])).unwrap_or_default())
    }

    /// The client's parameters with those that the server states in their place.
    /// <https://www.rfc-editor.org/rfc/rfc9218#section-8>
    #[must_use]
    pub fn merged(self, response: PriorityField) -> PriorityField {
        PriorityField {
            urgency: response.urgency.or(self.urgency),
            incremental: response.incremental.or(self.incremental),
        }
    }

    /// What they mean, defaults filled in.
    pub fn resolved(self) -> Urgency {
        let default = Urgency::default();
        Urgency {
            // https://www.rfc-editor.org/rfc/rfc9218#section-4
            //# When receiving an HTTP request that does not carry these priority parameters, a
            //# server SHOULD act as if their default values were specified.
            level: self.urgency.unwrap_or(default.level),
            incremental: self.incremental.unwrap_or(default.incremental),
        }
    }

    /// True if nothing is stated, so that the field can be left out of a request.
    pub fn is_empty(self) -> bool {
        self == PriorityField::default()
    }
}

impl From<Urgency> for PriorityField {
    /// States what differs from the defaults.
    fn from(urgency: Urgency) -> Self {
        let default = Urgency::default();
        PriorityField {
            urgency: (urgency.level != default.level).then_some(urgency.level),
            incremental: (urgency.incremental != default.incremental)
                .then_some(urgency.incremental),
        }
    }
}

impl fmt::Display for PriorityField {
    /// As in a field: `u=1, i`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(urgency) = self.urgency {
            write!(f, "u={urgency}")?;
        }
        if self.urgency.is_some() && self.incremental.is_some() {
            f.write_str(", ")?;
        }
        match self.incremental {
            Some(true) => f.write_str("i"),
            Some(false) => f.write_str("i=?0"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<(Option<u8>, Option<bool>), MalformedPriority> {
        let field = PriorityField::parse(text.as_bytes())?;
        Ok((field.urgency, field.incremental))
    }

    #[test]
    fn what_counts_is_read_and_the_rest_ignored() {
        for (text, expected) in [
            ("", (None, None)),
            ("u=0", (Some(0), None)),
            ("u=5, i", (Some(5), Some(true))),
            ("i", (None, Some(true))),
            ("i=?0,u=7", (Some(7), Some(false))),
            (" u=1 ", (Some(1), None)),
            // Out of range, or of another type.
            ("u=8, i", (None, Some(true))),
            ("u=-1", (None, None)),
            ("u=2.0", (None, None)),
            ("u", (None, None)),
            ("u=?1, i=1", (None, None)),
            ("u=\"1\", i=(?1)", (None, None)),
            ("u=999999999999999", (None, None)),
            // The last of equal keys counts.
            ("u=1, u=2", (Some(2), None)),
            ("u=1, u=9", (None, None)),
            // Parameters and unknown members.
            ("u=1;x=2;y, i;z=:aGk=:", (Some(1), Some(true))),
            (
                "visible, *a-b_c.d=tok/en:x, s=\"a\\\"\\\\b\", l=(1 a \"b\";q);w=1, u=4",
                (Some(4), None),
            ),
            ("u=1\t,\ti", (Some(1), Some(true))),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_dictionary_states_nothing() {
        for (text, at) in [
            ("u=", 2),
            ("u=1,", 4),
            ("U=1", 0),
            ("u=1 i", 4),
            ("=1", 0),
            ("u=1;", 4),
            ("u=1.", 4),
            ("u=1.2345", 8),
            ("u=1234567890123456", 18),
            ("i=?2", 3),
            ("x=\"a", 4),
            ("x=\"\\a\"", 4),
            ("x=(1", 4),
            ("x=(1\"a\")", 4),
            ("x=:a b:", 4),
            ("\u{e9}", 0),
        ] {
            assert_eq!(parse(text), Err(MalformedPriority { at }), "{text}");
        }
        let fields = FieldList::new().with(PRIORITY, "u=1, i,");
        assert_eq!(PriorityField::of(&fields), Some(PriorityField::default()));
        assert_eq!(PriorityField::default().resolved(), Urgency::default());
    }

    #[test]
    fn several_lines_are_one_value() {
        let fields = FieldList::new().with("a", "u=1").with(PRIORITY, "u=2").with(PRIORITY, "i");
        let field = PriorityField::of(&fields);
        assert_eq!(field, Some(PriorityField { urgency: Some(2), incremental: Some(true) }));
        assert_eq!(PriorityField::of(&FieldList::new().with("a", "u=1")), None);
    }

    /// The example of RFC 9218, section 8.
    #[test]
    fn the_server_overrides_what_it_states() {
        let request = PriorityField { urgency: Some(5), incremental: Some(true) };
        let response = PriorityField { urgency: Some(1), incremental: None };
        let merged = PriorityField { urgency: Some(1), incremental: Some(true) };
        assert_eq!(request.merged(response), merged);
    }

    #[test]
    fn only_what_differs_from_the_defaults_is_stated() {
        let text =
            |level, incremental| PriorityField::from(Urgency { level, incremental }).to_string();
        assert_eq!(text(3, false), "");
        assert_eq!(text(3, true), "i");
        assert_eq!(text(0, false), "u=0");
        assert_eq!(text(5, true), "u=5, i");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            urgency in proptest::option::of(0_u8..8),
            incremental in proptest::option::of(any::<bool>()),
        ) {
            let field = PriorityField { urgency, incremental };
            prop_assert_eq!(PriorityField::parse(field.to_string().as_bytes()), Ok(field));
        }

        #[test]
        fn any_octets_are_a_field_or_an_error(
            octets in proptest::collection::vec(
                prop_oneof![any::<u8>(), proptest::sample::select(&b"ui=,;()?10\"\\: .-"[..])],
                0..40,
            ),
        ) {
            if let Err(error) = PriorityField::parse(&octets) {
                prop_assert!(error.at <= octets.len());
            }
        }
    }
}
