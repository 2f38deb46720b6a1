//! Between quiche's lists of fields and the types of the `http` crate.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri};
use quiche::h3::{Header, NameValue};
use quipu_interop_live::Failure;

/// The fields of a request.
pub(crate) fn of_request(request: &Request<Bytes>) -> Vec<Header> {
    let uri = request.uri();
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let head = [
        (":method", request.method().as_str()),
        (":scheme", uri.scheme_str().unwrap_or("https")),
        (":authority", authority),
        (":path", path),
    ];
    let head = head.map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes()));
    head.into_iter().chain(of_map(request.headers())).collect()
}

/// The fields of a response.
pub(crate) fn of_response(response: &Response<Bytes>) -> Vec<Header> {
    let status = Header::new(b":status", response.status().as_str().as_bytes());
    std::iter::once(status).chain(of_map(response.headers())).collect()
}

/// Fields without a start line.
pub(crate) fn of_map(fields: &HeaderMap) -> Vec<Header> {
    let field = |(name, value): (&HeaderName, &HeaderValue)| {
        Header::new(name.as_str().as_bytes(), value.as_bytes())
    };
    fields.iter().map(field).collect()
}

/// A request of these fields.
pub(crate) fn to_request(list: &[Header], body: Bytes) -> Result<Request<Bytes>, Failure> {
    let path: Uri = std::str::from_utf8(pseudo(list, b":path")?)?.parse()?;
    let mut request = Request::builder().method(pseudo(list, b":method")?).uri(path).body(body)?;
    *request.headers_mut() = to_map(list)?;
    Ok(request)
}

/// A response of these fields.
pub(crate) fn to_response(list: &[Header], body: Bytes) -> Result<Response<Bytes>, Failure> {
    let mut response = Response::builder().status(pseudo(list, b":status")?).body(body)?;
    *response.headers_mut() = to_map(list)?;
    Ok(response)
}

/// Those that are no pseudo-header fields.
pub(crate) fn to_map(list: &[Header]) -> Result<HeaderMap, Failure> {
    let mut fields = HeaderMap::new();
    for field in list.iter().filter(|field| !field.name().starts_with(b":")) {
        let value = HeaderValue::from_bytes(field.value())?;
        fields.append(HeaderName::from_bytes(field.name())?, value);
    }
    Ok(fields)
}

fn pseudo<'a>(list: &'a [Header], name: &[u8]) -> Result<&'a [u8], Failure> {
    let found = list.iter().find(|field| field.name() == name);
    let found = found.ok_or_else(|| format!("there is no {}", name.escape_ascii()))?;
    Ok(found.value())
}
