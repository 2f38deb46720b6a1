//! Addresses of objects, as a browser requests them.

use http::Request;
use http::header::HOST;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use quipu_web::page::Object;

/// What browsers encode in the path of a URL, a little more than the standard, since what is encoded needs no
/// quotes in any language. <https://url.spec.whatwg.org/#path-percent-encode-set>
const IN_PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`').add(b'^').add(b'{').add(b'}');

/// What browsers encode in the query of a URL.
/// <https://url.spec.whatwg.org/#special-query-percent-encode-set>
const IN_QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\'');

/// Authority and path with query. The scheme is always `https`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    /// In lower case, without a usual port.
    pub(super) authority: String,
    /// With the query, beginning with `/`.
    pub(super) path: String,
}

impl Address {
    /// The address at which `object` is served, whatever the scheme of its URL.
    pub(super) fn of(object: &Object) -> Address {
        let path = object.path();
        // A query may follow the authority without a path.
        let path = match object.url.split_once("://") {
            Some((_, rest)) => match rest.find(['/', '?', '#']) {
                Some(start) if rest[start..].starts_with('?') => format!("/{}", &rest[start..]),
                Some(start) if rest[start..].starts_with('/') => path.to_owned(),
                _ => "/".to_owned(),
            },
            None => path.to_owned(),
        };
        Address { authority: authority(object.host()), path: encoded(&path) }
    }

    /// The address of a request; `None` if it has no authority.
    pub(super) fn requested<B>(request: &Request<B>) -> Option<Address> {
        let from_header = || request.headers().get(HOST)?.to_str().ok();
        let named = request.uri().authority().map(http::uri::Authority::as_str);
        let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        Some(Address { authority: authority(named.or_else(from_header)?), path: encoded(path) })
    }

    /// The URL.
    pub(super) fn url(&self) -> String {
        format!("https://{}{}", self.authority, self.path)
    }

    /// The shortest reference to this address from a document of `authority`.
    pub(super) fn from(&self, authority: &str) -> String {
        // A path with two strokes would be read as an authority.
        if self.authority == authority && !self.path.starts_with("//") {
            return self.path.clone();
        }
        format!("//{}{}", self.authority, self.path)
    }

    /// The name of the host, without a port.
    pub(super) fn host(&self) -> &str {
        host(&self.authority)
    }

    /// Host and port, where the port is always told.
    pub(super) fn host_and_port(&self) -> String {
        let port = if self.host().len() == self.authority.len() { ":443" } else { "" };
        format!("{}{port}", self.authority)
    }
}

/// The host of `authority`: what stands before the colon of a port. Addresses of IPv6 keep their brackets.
fn host(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|sign| sign.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// In lower case, without names of users and usual ports.
fn authority(text: &str) -> String {
    let text = text.rsplit_once('@').map_or(text, |(_, authority)| authority);
    let text = text.to_ascii_lowercase();
    // Recordings over HTTP without TLS are served like others.
    let usual = [":443", ":80", ":"];
    usual.iter().find_map(|port| text.strip_suffix(port)).unwrap_or(&text).to_owned()
}

/// Path and query as a browser writes them: without a fragment, and without what may not be in a URL.
fn encoded(path: &str) -> String {
    let path = path.split('#').next().unwrap_or_default();
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path, None),
    };
    let path = without_dots(&path.replace('\\', "/"));
    let mut whole = utf8_percent_encode(&path, IN_PATH).to_string();
    if let Some(query) = query {
        whole.push('?');
        whole.extend(utf8_percent_encode(query, IN_QUERY));
    }
    whole
}

/// The path without the segments `.` and `..`, which browsers resolve.
/// <https://www.rfc-editor.org/rfc/rfc3986#section-5.2.4>
fn without_dots(path: &str) -> String {
    let is_dot = |segment: &str| matches!(segment, "." | ".." | "%2e" | "%2E");
    if !path.split('/').any(is_dot) {
        return path.to_owned();
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        if segment == ".." {
            kept.pop();
        }
        match is_dot(segment) {
            // A folder remains one.
            true if segments.peek().is_none() => kept.push(""),
            true => {}
            false => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use quipu_base::Bytes;
    use quipu_web::page::{ObjectId, ObjectKind};

    use super::*;

    fn address(url: &str) -> String {
        Address::of(&Object::new(ObjectId(0), url, ObjectKind::Image, Bytes(1))).url()
    }

    #[test]
    fn addresses_are_written_as_browsers_request_them() {
        for (url, expected) in [
            ("https://A.test:443/b?c#d", "https://a.test/b?c"),
            ("http://a.test:80/", "https://a.test/"),
            ("http://a.test:8080/x", "https://a.test:8080/x"),
            ("https://a.test", "https://a.test/"),
            ("https://a.test?q=/x", "https://a.test/?q=/x"),
            ("https://a.test#x", "https://a.test/"),
            ("https://u@a.test/a b\"'<>\\c?d'\"", "https://a.test/a%20b%22'%3C%3E/c?d%27%22"),
            ("https://a.test/ä", "https://a.test/%C3%A4"),
            ("https://a.test/a/./b/../c/..", "https://a.test/a/"),
            ("https://a.test/../x", "https://a.test/x"),
            ("no-url", "https://page.test/"),
        ] {
            assert_eq!(address(url), expected, "{url}");
        }
    }

    #[test]
    fn references_are_short_where_they_may_be() {
        let object = |url| Address::of(&Object::new(ObjectId(0), url, ObjectKind::Image, Bytes(1)));
        assert_eq!(object("https://a.test/b").from("a.test"), "/b");
        assert_eq!(object("https://a.test/b").from("c.test"), "//a.test/b");
        assert_eq!(object("https://a.test//b").from("a.test"), "//a.test//b");
        assert_eq!(object("https://a.test/").host_and_port(), "a.test:443");
        assert_eq!(object("https://a.test:8443/").host_and_port(), "a.test:8443");
        assert_eq!(object("https://[::1]/").host_and_port(), "[::1]:443");
        assert_eq!(object("https://[::1]:8443/").host(), "[::1]");
    }
}
