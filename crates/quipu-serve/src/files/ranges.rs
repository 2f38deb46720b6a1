//! `Range` and `If-Range` where `ServeDir` deviates from RFC 9110.

use std::time::{Duration, SystemTime};

use http::header::{CONTENT_RANGE, ETAG, HeaderValue, LAST_MODIFIED, RANGE};
use http::{HeaderMap, Response, StatusCode};
use httpdate::parse_http_date;

/// A date is a strong validator if it is at least this much older than the response, since a file that changes
/// twice within a second has the same date for both contents.
/// <https://www.rfc-editor.org/rfc/rfc9110#section-8.8.2.2>
const STRONG_AFTER: Duration = Duration::from_secs(1);

/// Removes a `Range` that has to be ignored, because its unit is unknown, and invalid ones of several field lines.
///
/// <https://www.rfc-editor.org/rfc/rfc9110#section-14.2>
pub(super) fn drop_unknown(headers: &mut HeaderMap) {
    let mut ranges = headers.get_all(RANGE).iter();
    let Some(range) = ranges.next() else { return };
    // Units are case-insensitive, but all clients write lower case; ignoring a range is always allowed.
    let is_bytes = range.as_bytes().starts_with(b"bytes=");
    if !is_bytes || ranges.next().is_some() {
        headers.remove(RANGE);
    }
}

/// How to repeat a request whose `response` does not fit its `range` and its `If-Range`, which is `condition`;
/// `None` if the response is right.
pub(super) fn correction<B>(
    range: &HeaderValue,
    condition: Option<&HeaderValue>,
    response: &Response<B>,
    now: SystemTime,
) -> Option<Correction> {
    let headers = response.headers();
    let is_stale = || condition.is_some_and(|condition| !holds(condition, headers, now));
    match response.status() {
        // An empty file is sent whole: `Content-Range` cannot express an empty range.
        StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE
            if is_stale() || is_empty(headers) =>
        {
            Some(Correction::Whole)
        }
        StatusCode::RANGE_NOT_SATISFIABLE if is_suffix(range) => Some(Correction::All),
        _ => None,
    }
}

/// What to request in place of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Correction {
    /// The file without a range.
    Whole,
    /// The range of all bytes.
    All,
}

/// The range of all bytes.
pub(super) const ALL: HeaderValue = HeaderValue::from_static("bytes=0-");

/// True if the `Content-Range` of a response states a length of zero.
fn is_empty(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_RANGE).is_some_and(|range| range.as_bytes().ends_with(b"/0"))
}

/// True for a suffix range of a length other than zero. If it is longer than the file, it means the whole file,
/// but `http-range-header` rejects it.
///
/// <https://www.rfc-editor.org/rfc/rfc9110#section-14.1.2>
fn is_suffix(range: &HeaderValue) -> bool {
    let Some(length) = range.as_bytes().strip_prefix(b"bytes=-") else { return false };
    length.iter().all(u8::is_ascii_digit) && length.iter().any(|digit| *digit != b'0')
}

/// True if `condition`, an entity tag or a date, matches the representation that `headers` describe, by strong
/// comparison.
///
/// <https://www.rfc-editor.org/rfc/rfc9110#section-13.1.5>
fn holds(condition: &HeaderValue, headers: &HeaderMap, now: SystemTime) -> bool {
    if condition.as_bytes().first() == Some(&b'"') {
        return headers.get(ETAG) == Some(condition);
    }
    let date = |value: &HeaderValue| parse_http_date(value.to_str().ok()?).ok();
    let (Some(asked), Some(modified)) =
        (date(condition), headers.get(LAST_MODIFIED).and_then(date))
    else {
        return false;
    };
    let is_strong = now.duration_since(modified).is_ok_and(|age| age >= STRONG_AFTER);
    asked == modified && is_strong
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Fri, 27 Nov 2026 10:00:00 GMT";

    fn described() -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ETAG, HeaderValue::from_static("\"a\""));
        headers.insert(LAST_MODIFIED, HeaderValue::from_static(DATE));
        headers
    }

    fn holds_after(condition: &'static str, age: Duration) -> bool {
        let now = parse_http_date(DATE).unwrap() + age;
        holds(&HeaderValue::from_static(condition), &described(), now)
    }

    #[test]
    fn a_range_counts_for_the_same_tag_and_no_weak_one() {
        let holds = |condition| holds_after(condition, Duration::from_secs(60));
        assert!(holds("\"a\""));
        assert!(!holds("\"b\""));
        assert!(!holds("W/\"a\""));
        assert!(!holds("a"));
    }

    #[test]
    fn a_range_counts_for_the_same_date_once_that_is_strong() {
        assert!(holds_after(DATE, Duration::from_secs(1)));
        assert!(!holds_after(DATE, Duration::from_millis(999)));
        assert!(!holds_after("Fri, 27 Nov 2026 10:00:01 GMT", Duration::from_secs(60)));
        assert!(!holds_after("Fri, 27 Nov 2026 09:59:59 GMT", Duration::from_secs(60)));
    }

    #[test]
    fn other_units_and_several_lines_are_ignored() {
        let left = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(RANGE, HeaderValue::from_static(line));
            }
            drop_unknown(&mut headers);
            headers.contains_key(RANGE)
        };
        assert!(left(&["bytes=0-1"]));
        assert!(!left(&["lines=0-1"]));
        assert!(!left(&["bytes"]));
        assert!(!left(&["bytes=0-1", "bytes=2-3"]));
    }
}
