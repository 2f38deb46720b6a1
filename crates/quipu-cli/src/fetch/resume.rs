//! Going on behind what an earlier fetch kept of a file.

use http::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderName, HeaderValue, LAST_MODIFIED};
use http::{Response, StatusCode};

use super::error::FetchError;
use super::output::Part;

/// How many octets follow the part, in a response that goes on where it ends and to the end of the file; none if the
/// server says that the part is the file. `None` if all of the file comes anew.
///
/// # Errors
/// [`FetchError::RANGE`] if what comes is another part of the file, or the server does not have it.
pub(super) fn resumed(
    response: &Response<()>,
    part: Option<&Part>,
) -> Result<Option<u64>, FetchError> {
    let Some(part) = part else { return Ok(None) };
    let failed = |reason| Err(FetchError::new(FetchError::RANGE, reason));
    match response.status() {
        StatusCode::PARTIAL_CONTENT => {}
        // https://www.rfc-editor.org/rfc/rfc9110#section-15.5.17
        StatusCode::RANGE_NOT_SATISFIABLE if length_of(response) == Some(part.bytes) => {
            return Ok(Some(0));
        }
        StatusCode::RANGE_NOT_SATISFIABLE => {
            return failed(format!(
                "the server has no more than the {} bytes of the part",
                part.bytes
            ));
        }
        // It changed, or the server sends no ranges: all of it comes.
        _ => return Ok(None),
    }
    let told = content_range(response);
    let Some(range) = ContentRange::parse(told) else {
        return failed(format!(
            "the server sends the range {told:?}; expected bytes {}-LAST/LENGTH",
            part.bytes
        ));
    };
    if range.first != part.bytes {
        return failed(format!(
            "the server sends the range {told:?}, not what follows byte {}",
            part.bytes
        ));
    }
    if range.total.is_some_and(|total| total - 1 != range.last) {
        return failed(format!("the range {told:?} ends before the file does"));
    }
    match response.headers().get(CONTENT_LENGTH).and_then(number) {
        Some(length) if length != range.length() => failed(format!(
            "the range {told:?} has {} bytes, and the server sends {length}",
            range.length()
        )),
        _ => Ok(Some(range.length())),
    }
}

/// What the response says of the range that it is.
fn content_range(response: &Response<()>) -> &str {
    let told = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    told.unwrap_or_default()
}

/// The length of the file, of which the range that was asked for is no part.
fn length_of(response: &Response<()>) -> Option<u64> {
    content_range(response).strip_prefix("bytes */")?.parse().ok()
}

/// A range of octets, of a whole that may not be known.
/// <https://www.rfc-editor.org/rfc/rfc9110#section-14.4>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ContentRange {
    first: u64,
    /// No less than `first`.
    last: u64,
    /// More than `last`.
    total: Option<u64>,
}

impl ContentRange {
    fn parse(value: &str) -> Option<ContentRange> {
        let (range, total) = value.strip_prefix("bytes ")?.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        let total = if total == "*" { None } else { Some(total.parse().ok()?) };
        let is_valid = first <= last && last < total.unwrap_or(u64::MAX);
        is_valid.then_some(ContentRange { first, last, total })
    }

    fn length(self) -> u64 {
        // `last` is less than the largest number.
        self.last - self.first + 1
    }
}

/// By what the file is known again: a strong ETag, else its date.
pub(super) fn validator(response: &Response<()>) -> Option<&str> {
    let text =
        |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok());
    text(ETAG).filter(|etag| !etag.starts_with("W/")).or_else(|| text(LAST_MODIFIED))
}

/// A number of octets.
pub(super) fn number(value: &HeaderValue) -> Option<u64> {
    value.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partial(range: &'static str) -> Response<()> {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        response.headers_mut().insert(CONTENT_RANGE, HeaderValue::from_static(range));
        response
    }

    #[test]
    fn a_part_goes_on_only_where_it_ends_and_to_the_end_of_the_file() {
        let part = Part { bytes: 100, validator: "x".to_owned() };
        assert_eq!(resumed(&Response::new(()), Some(&part)), Ok(None));
        for range in ["bytes 100-199/200", "bytes 100-199/*"] {
            assert_eq!(resumed(&partial(range), Some(&part)), Ok(Some(100)), "{range}");
            assert_eq!(resumed(&partial(range), None), Ok(None));
        }
        for (range, told) in [
            ("bytes 0-199/200", "not what follows byte 100"),
            ("bytes 99-199/200", "not what follows byte 100"),
            ("bytes 101-199/200", "not what follows byte 100"),
            ("bytes 100-198/200", "ends before the file does"),
            ("bytes 100-200/200", "expected bytes 100-LAST/LENGTH"),
            ("bytes 100-99/200", "expected bytes 100-LAST/LENGTH"),
            ("bytes 100-199", "expected bytes 100-LAST/LENGTH"),
            ("bytes 100-18446744073709551615/*", "expected bytes 100-LAST/LENGTH"),
            ("bytes */200", "expected bytes 100-LAST/LENGTH"),
            ("items 100-199/200", "expected bytes 100-LAST/LENGTH"),
            ("", "expected bytes 100-LAST/LENGTH"),
        ] {
            let error = resumed(&partial(range), Some(&part)).expect_err(range);
            assert_eq!(error.code, FetchError::RANGE, "{range}");
            assert!(error.reason.contains(told), "{range}: {error}");
        }
    }

    #[test]
    fn a_part_is_the_file_if_the_server_says_that_the_file_is_as_long() {
        let part = Part { bytes: 100, validator: "x".to_owned() };
        let refused = |range| {
            let mut response = partial(range);
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            resumed(&response, Some(&part))
        };
        assert_eq!(refused("bytes */100"), Ok(Some(0)));
        for range in ["bytes */99", "bytes */101", "bytes */x", "bytes 0-99/100", ""] {
            let error = refused(range).expect_err(range);
            assert_eq!(error.code, FetchError::RANGE, "{range}");
        }
    }

    #[test]
    fn a_range_has_the_length_that_is_told() {
        let part = Part { bytes: 100, validator: "x".to_owned() };
        let mut response = partial("bytes 100-199/200");
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(100));
        assert_eq!(resumed(&response, Some(&part)), Ok(Some(100)));
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(99));
        let error = resumed(&response, Some(&part)).expect_err("one less");
        assert_eq!(error.code, FetchError::RANGE);
        assert!(error.reason.contains("has 100 bytes, and the server sends 99"), "{error}");
    }
}
