//! What a request asks for, as its `object` field says: several objects of a recording may have one
//! URL, and a session may load a page again.

use std::fmt;
use std::str::FromStr;

use quipu_base::Bytes;
use quipu_http::field::FieldList;
use quipu_web::page::{Object, ObjectId};

use super::OBJECT_FIELD;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asked {
    /// An object of a page.
    Page(VisitObject),
    /// Nothing but windows and round-trip times.
    WarmUp,
}

/// An object of a page of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VisitObject {
    /// Number of the page in the session, from 0.
    pub(super) visit: u32,
    /// The object.
    pub(super) object: ObjectId,
}

const WARM_UP: &str = "warm";
/// Between object and visit; the first visit is not told.
const AT: char = '@';

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Asked::WarmUp => f.write_str(WARM_UP),
            Asked::Page(VisitObject { visit: 0, object }) => write!(f, "{}", object.0),
            Asked::Page(VisitObject { visit, object }) => write!(f, "{}{AT}{visit}", object.0),
        }
    }
}

/// The head of a request for what `asked` names: `object`, or one that belongs to no page.
pub(super) fn head(asked: Asked, object: Option<&Object>) -> FieldList {
    let body = object.map_or(Bytes::ZERO, |object| object.request.body);
    let method = if body.is_zero() { "GET" } else { "POST" };
    let (host, path) = object.map_or(("page.test", "/"), |object| (object.host(), object.path()));
    let mut fields = FieldList::new()
        .with(":method", method)
        .with(":scheme", "https")
        .with(":authority", host)
        .with(":path", path);
    fields.push(OBJECT_FIELD, asked.to_string());
    if !body.is_zero() {
        fields.push("content-length", body.0.to_string());
    }
    fields
}

/// What the head of a request asks for.
pub(super) fn named(fields: &FieldList) -> Option<Asked> {
    std::str::from_utf8(fields.get(OBJECT_FIELD)?).ok()?.parse().ok()
}

impl FromStr for Asked {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Asked, Self::Err> {
        if text == WARM_UP {
            return Ok(Asked::WarmUp);
        }
        let (object, visit) = text.split_once(AT).unwrap_or((text, "0"));
        Ok(Asked::Page(VisitObject { visit: visit.parse()?, object: ObjectId(object.parse()?) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_the_first_page_is_only_a_number() {
        let page = |visit, object| Asked::Page(VisitObject { visit, object: ObjectId(object) });
        for asked in [Asked::WarmUp, page(0, 7), page(3, 7), page(0, u32::MAX)] {
            assert_eq!(asked.to_string().parse(), Ok(asked));
        }
        assert_eq!(page(0, 7).to_string(), "7");
        for text in ["", "cold", "7@", "@1", "-1", "4294967296"] {
            assert!(text.parse::<Asked>().is_err(), "{text}");
        }
    }
}
