//! The two forms of qlog that are written.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A form of qlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// The current drafts: draft-ietf-quic-qlog-main-schema-14 and
    /// draft-ietf-quic-qlog-quic-events-13, with [our schemas](crate::MULTIPATH_SCHEMA) for
    /// multipath and for scheduling. One file per connection.
    #[default]
    Current,
    /// `qlog_version` 0.3 (draft-ietf-quic-qlog-main-schema-05 and
    /// draft-ietf-quic-qlog-quic-events-04), which tools such as qvis read. Such a tool takes all
    /// packets of a file for one packet number space, so each path has a file of its own.
    Version03,
}

/// A form of qlog that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("qlog version {0}; expected current or 0.3")]
pub struct UnknownForm(String);

impl FromStr for Form {
    type Err = UnknownForm;

    fn from_str(text: &str) -> Result<Self, UnknownForm> {
        match text {
            "current" => Ok(Form::Current),
            "0.3" => Ok(Form::Version03),
            other => Err(UnknownForm(other.to_owned())),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::Current => "current",
            Form::Version03 => "0.3",
        })
    }
}

impl Form {
    /// One of two names for the same.
    pub(crate) fn pick(self, current: &'static str, old: &'static str) -> &'static str {
        match self {
            Form::Current => current,
            Form::Version03 => old,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_refused() {
        for form in [Form::Current, Form::Version03] {
            assert_eq!(form.to_string().parse(), Ok(form));
        }
        let error = "0.4".parse::<Form>().unwrap_err().to_string();
        assert_eq!(error, "qlog version 0.4; expected current or 0.3");
    }
}
