//! The log entry of a request.

use std::fmt::{self, Write};
use std::net::IpAddr;
use std::time::Duration;

use http::header::{HOST, HeaderName, REFERER, USER_AGENT};
use http::{Request, StatusCode, Version};
use jiff::Timestamp;
use serde::Serialize;

use crate::client::Client;

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// The combined log format of Apache: client, time in UTC, request, status, bytes of the body, referrer and user
    /// agent. <https://httpd.apache.org/docs/2.4/logs.html#combined>
    Combined,
    /// One JSON object per line, with the fields of [`Entry`].
    #[default]
    Json,
}

/// A request and its response. The fields have the same names in JSON, except that [`lasted`](Self::lasted) is
/// `duration`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Entry {
    /// Time of the request in UTC; milliseconds in JSON.
    #[serde(serialize_with = "millis")]
    pub time: Timestamp,
    /// Address of the client; `None` if the listener does not set [`Client`].
    pub client: Option<IpAddr>,
    /// Method of the request.
    pub method: String,
    /// Requested host, with the port if the request has one.
    pub host: Option<String>,
    /// Path and query.
    pub target: String,
    /// `HTTP/1.1`, `HTTP/2.0` or `HTTP/3.0`.
    pub version: &'static str,
    /// Status of the response; `None` if the client left before there was one.
    pub status: Option<u16>,
    /// Bytes of the response body passed to the transport.
    pub bytes: u64,
    /// Whether they are the whole body.
    pub complete: bool,
    /// Time from the request to the end of the response; seconds in JSON.
    #[serde(rename = "duration", serialize_with = "seconds")]
    pub lasted: Duration,
    /// The `Referer` header.
    pub referrer: Option<String>,
    /// The `User-Agent` header.
    pub user_agent: Option<String>,
}

fn millis<S: serde::Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"))
}

fn seconds<S: serde::Serializer>(lasted: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(lasted.as_secs_f64())
}

impl Entry {
    /// The entry of a request without a response.
    pub(super) fn of<B>(request: &Request<B>, time: Timestamp) -> Self {
        let header = |name: HeaderName| {
            let value = request.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let uri = request.uri();
        let target = uri.path_and_query().map_or_else(|| uri.to_string(), ToString::to_string);
        Entry {
            time,
            client: request.extensions().get::<Client>().map(|client| client.0.ip()),
            method: request.method().to_string(),
            host: uri.authority().map(ToString::to_string).or_else(|| header(HOST)),
            target,
            version: version(request.version()),
            status: None,
            bytes: 0,
            complete: false,
            lasted: Duration::ZERO,
            referrer: header(REFERER),
            user_agent: header(USER_AGENT),
        }
    }

    /// The line, with a newline.
    pub(super) fn line(&self, format: Format) -> String {
        let mut line = match format {
            Format::Combined => Combined(self).to_string(),
            // Strings and numbers always serialize.
            Format::Json => serde_json::to_string(self).unwrap_or_default(),
        };
        line.push('\n');
        line
    }

    /// Sets the status of the response.
    pub(super) fn set_status(&mut self, status: StatusCode) {
        self.status = Some(status.as_u16());
    }
}

/// Name of a version in logs.
fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

struct Combined<'e>(&'e Entry);

impl fmt::Display for Combined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = self.0;
        match entry.client {
            Some(client) => write!(f, "{client}")?,
            None => f.write_char('-')?,
        }
        let time = entry.time.strftime("%d/%b/%Y:%H:%M:%S +0000");
        write!(f, " - - [{time}] \"")?;
        escaped(f, &entry.method)?;
        f.write_char(' ')?;
        escaped(f, &entry.target)?;
        write!(f, " {}\" ", entry.version)?;
        match entry.status {
            Some(status) => write!(f, "{status}")?,
            None => f.write_char('-')?,
        }
        match entry.bytes {
            0 => f.write_str(" -")?,
            bytes => write!(f, " {bytes}")?,
        }
        for text in [&entry.referrer, &entry.user_agent] {
            f.write_str(" \"")?;
            escaped(f, text.as_deref().unwrap_or("-"))?;
            f.write_char('"')?;
        }
        Ok(())
    }
}

/// Escapes what a client could use to forge lines or fields.
fn escaped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for sign in text.chars() {
        match sign {
            '"' | '\\' => write!(f, "\\{sign}")?,
            sign if sign.is_control() => write!(f, "\\x{:02x}", u32::from(sign))?,
            sign => f.write_char(sign)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        let mut request = Request::builder()
            .method("GET")
            .uri("https://example.org/a?b=%22")
            .version(Version::HTTP_3)
            .header(USER_AGENT, "a \"browser\" \\ 1")
            .body(())
            .unwrap();
        request.extensions_mut().insert(Client("[2001:db8::1]:5".parse().unwrap()));
        let mut entry = Entry::of(&request, Timestamp::from_second(1_795_773_600).unwrap());
        entry.set_status(StatusCode::OK);
        entry.bytes = 7;
        entry.complete = true;
        entry.lasted = Duration::from_micros(1_500);
        entry
    }

    #[test]
    fn a_line_of_json_has_all_fields() {
        assert_eq!(
            entry().line(Format::Json),
            "{\"time\":\"2026-11-27T10:00:00.000Z\",\"client\":\"2001:db8::1\",\"method\":\"GET\",\
             \"host\":\"example.org\",\"target\":\"/a?b=%22\",\"version\":\"HTTP/3.0\",\"status\":200,\
             \"bytes\":7,\"complete\":true,\"duration\":0.0015,\"referrer\":null,\
             \"user_agent\":\"a \\\"browser\\\" \\\\ 1\"}\n"
        );
    }

    #[test]
    fn a_combined_line_is_as_analysers_read_it() {
        assert_eq!(
            entry().line(Format::Combined),
            "2001:db8::1 - - [27/Nov/2026:10:00:00 +0000] \"GET /a?b=%22 HTTP/3.0\" 200 7 \"-\" \
             \"a \\\"browser\\\" \\\\ 1\"\n"
        );
    }

    #[test]
    fn a_client_cannot_write_lines_of_its_own() {
        let mut entry = entry();
        entry.user_agent = Some("a\nb\u{7f}\u{85}".to_owned());
        for format in [Format::Combined, Format::Json] {
            assert_eq!(entry.line(format).matches('\n').count(), 1, "{format:?}");
        }
        assert!(entry.line(Format::Combined).contains("a\\x0ab\\x7f\\x85"));
    }

    #[test]
    fn a_request_without_an_answer_has_no_status() {
        let request = Request::builder().uri("/").body(()).unwrap();
        let line = Entry::of(&request, Timestamp::UNIX_EPOCH).line(Format::Combined);
        assert_eq!(line, "- - - [01/Jan/1970:00:00:00 +0000] \"GET / HTTP/1.1\" - - \"-\" \"-\"\n");
    }
}
