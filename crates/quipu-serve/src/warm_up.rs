//! A small object that warms a connection up before a recorded page is asked for.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use quipu_web::load::WARM_UP_BYTES;

use crate::body::Body;

/// Where it is, beside any recorded page. <https://www.rfc-editor.org/rfc/rfc8615#section-3>
pub const PATH: &str = "/.well-known/quipu/warm-up";

/// The response: [`WARM_UP_BYTES`] of no meaning.
pub(crate) fn response() -> Response<Body> {
    // A few kilobytes.
    let octets = vec![b'.'; usize::try_from(WARM_UP_BYTES.0).unwrap_or_default()];
    let body = Full::new(Bytes::from(octets)).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(WARM_UP_BYTES.0));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
