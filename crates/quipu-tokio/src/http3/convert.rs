//! Between field lists and the types of the `http` crate.

use http::header::{HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use quipu_http::field::FieldList;
use thiserror::Error;

/// A message that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// A request whose URI has no scheme or no authority.
    #[error("the URI {0} has no scheme or no authority")]
    Relative(String),
    /// A field that the `http` crate does not take.
    #[error("field {name}: {problem}")]
    Field {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: String,
    },
}

fn wrong(name: &str, problem: impl ToString) -> ConvertError {
    ConvertError::Field { name: name.to_owned(), problem: problem.to_string() }
}

/// The fields of a request.
pub(super) fn request_fields<B>(request: &Request<B>) -> Result<FieldList, ConvertError> {
    let uri = request.uri();
    let mut fields = FieldList::new().with(":method", request.method().as_str());
    let authority = uri.authority().map(Authority::as_str);
    let authority = authority.ok_or_else(|| ConvertError::Relative(uri.to_string()))?;
    if request.method() != Method::CONNECT {
        let scheme = uri.scheme_str().ok_or_else(|| ConvertError::Relative(uri.to_string()))?;
        fields.push(":scheme", scheme);
    }
    // Without the part for user and password, which is not sent.
    fields.push(":authority", authority.rsplit('@').next().unwrap_or(authority));
    if request.method() != Method::CONNECT {
        fields.push(":path", uri.path_and_query().map_or("/", PathAndQuery::as_str));
    }
    push_headers(request.headers(), &mut fields);
    Ok(fields)
}

/// The fields of a response.
pub(super) fn response_fields<B>(response: &Response<B>) -> FieldList {
    let mut fields = FieldList::new().with(":status", response.status().as_str());
    push_headers(response.headers(), &mut fields);
    fields
}

/// Fields without a start line.
pub(super) fn trailer_fields(headers: &HeaderMap) -> FieldList {
    let mut fields = FieldList::new();
    push_headers(headers, &mut fields);
    fields
}

fn push_headers(headers: &HeaderMap, fields: &mut FieldList) {
    for (name, value) in headers {
        // Fields of HTTP/1 connections, which HTTP/2 and HTTP/3 do not have.
        let of_connection = matches!(
            name.as_str(),
            "connection"
                | "keep-alive"
                | "proxy-connection"
                | "transfer-encoding"
                | "upgrade"
                | "host"
        );
        if of_connection {
            continue;
        }
        if value.is_sensitive() {
            fields.push_sensitive(name.as_str(), value.as_bytes());
        } else {
            fields.push(name.as_str(), value.as_bytes());
        }
    }
}

/// A request of these fields, which were checked.
pub(super) fn request(version: Version, fields: &FieldList) -> Result<Request<()>, ConvertError> {
    let text = |name: &str| {
        let value = fields.get(name);
        value
            .map(|value| std::str::from_utf8(value).map_err(|error| wrong(name, error)))
            .transpose()
    };
    let method = Method::from_bytes(fields.get(":method").unwrap_or_default())
        .map_err(|error| wrong(":method", error))?;
    let mut uri = Uri::builder();
    let authority = match text(":authority")? {
        Some(authority) => Some(authority),
        None => text("host")?,
    };
    if let Some(authority) = authority {
        uri = uri.authority(authority);
    }
    if let Some(scheme) = text(":scheme")? {
        uri = uri.scheme(Scheme::try_from(scheme).map_err(|error| wrong(":scheme", error))?);
    }
    if let Some(path) = text(":path")? {
        uri = uri.path_and_query(path);
    }
    let mut request = Request::new(());
    *request.uri_mut() = uri.build().map_err(|error| wrong(":path", error))?;
    *request.method_mut() = method;
    *request.version_mut() = version;
    *request.headers_mut() = headers(fields)?;
    Ok(request)
}

/// A response of these fields, which were checked.
pub(super) fn response(
    version: Version,
    status: u16,
    fields: &FieldList,
) -> Result<Response<()>, ConvertError> {
    let mut response = Response::new(());
    *response.status_mut() =
        StatusCode::from_u16(status).map_err(|error| wrong(":status", error))?;
    *response.version_mut() = version;
    *response.headers_mut() = headers(fields)?;
    Ok(response)
}

/// Those that are no pseudo-header fields.
pub(super) fn headers(fields: &FieldList) -> Result<HeaderMap, ConvertError> {
    let mut headers = HeaderMap::new();
    for field in fields.iter().filter(|field| !field.name.starts_with(b":")) {
        let told = || field.name.escape_ascii().to_string();
        let name = HeaderName::from_bytes(field.name).map_err(|error| wrong(&told(), error))?;
        let mut value =
            HeaderValue::from_bytes(field.value).map_err(|error| wrong(&told(), error))?;
        value.set_sensitive(field.sensitive);
        headers.append(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_survive_both_ways() {
        let mut sent = Request::post("https://user@a.example:8443/p?q=1").body(()).unwrap();
        sent.headers_mut().insert("x-a", HeaderValue::from_static("1"));
        sent.headers_mut().append("x-a", HeaderValue::from_static("2"));
        sent.headers_mut().insert("connection", HeaderValue::from_static("close"));
        let fields = request_fields(&sent).unwrap();
        assert_eq!(fields.get(":authority"), Some(&b"a.example:8443"[..]));
        let received = request(Version::HTTP_3, &fields).unwrap();
        assert_eq!(received.uri(), "https://a.example:8443/p?q=1");
        assert_eq!(received.headers().get_all("x-a").iter().count(), 2);
        assert!(!received.headers().contains_key("connection"));
    }

    #[test]
    fn a_request_has_an_authority_and_connect_has_nothing_else() {
        let relative = Request::get("/index.html").body(()).unwrap();
        assert!(matches!(request_fields(&relative), Err(ConvertError::Relative(_))));
        let connect = Request::connect("b.example:443").body(()).unwrap();
        let fields = request_fields(&connect).unwrap();
        assert_eq!(fields.len(), 2);
        assert_eq!(request(Version::HTTP_3, &fields).unwrap().uri(), "b.example:443");
    }

    #[test]
    fn responses_survive_both_ways() {
        let sent = Response::builder().status(418).header("x", "y").body(()).unwrap();
        let received = response(Version::HTTP_2, 418, &response_fields(&sent)).unwrap();
        assert_eq!((received.status(), received.headers()), (sent.status(), sent.headers()));
    }

    #[test]
    fn a_path_that_is_none_is_an_error_and_no_panic() {
        for path in ["no slash", "\u{7f}", "//", "*"] {
            let fields = FieldList::new()
                .with(":method", "GET")
                .with(":scheme", "https")
                .with(":authority", "a.example")
                .with(":path", path);
            let _ = request(Version::HTTP_3, &fields);
        }
    }
}
