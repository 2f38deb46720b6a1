//! Requests and responses.

use std::path::Path;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};

use crate::{Case, Failure, files};

/// Fields that a server echoes begin with it.
const ECHOED: &str = "x-";

/// Of the response's trailers: bytes of its body.
pub(super) const OCTETS: HeaderName = HeaderName::from_static("x-octets");

/// A request to send.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Head and body.
    pub request: Request<Bytes>,
    /// The fields after the body.
    pub trailers: Option<HeaderMap>,
    /// Bytes of the response's body after which the request is cancelled with
    /// [`REQUEST_CANCELLED`](super::REQUEST_CANCELLED).
    pub stop_after: Option<usize>,
    /// A PRIORITY_UPDATE with this urgency follows the request, 0 to 7, by clients that can send one.
    pub update: Option<u8>,
}

/// A response, or as much of it as came before the request was cancelled.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Head and body.
    pub response: Response<Bytes>,
    /// The fields after the body.
    pub trailers: Option<HeaderMap>,
}

/// The server sent GOAWAY: the request was not sent, or not processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoneAway;

impl std::fmt::Display for GoneAway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the server sent GOAWAY")
    }
}

impl std::error::Error for GoneAway {}

/// What a server answers: a file of `www` to GET, the body of the request to POST, in the case
/// `h3-trailers` with the request's trailers and a count of bytes behind it.
///
/// # Errors
/// If the head is none that can be sent.
pub fn answer(
    case: Case,
    www: &Path,
    request: Request<Bytes>,
    trailers: Option<HeaderMap>,
) -> Result<Answer, Failure> {
    let (head, body) = request.into_parts();
    let (status, body) = match head.method {
        Method::POST => (StatusCode::OK, body),
        _ => match files::answer(www, &files::request(head.uri.path())) {
            Ok(file) => (StatusCode::OK, file.into()),
            Err(_) => (StatusCode::NOT_FOUND, Bytes::new()),
        },
    };
    let octets = HeaderValue::from(body.len());
    let mut response = Response::builder().status(status).header("content-length", octets.clone());
    for (name, value) in &head.headers {
        if name.as_str().starts_with(ECHOED) {
            response = response.header(name, value);
        }
    }
    let trailers = (case == Case::Http3Trailers).then(|| {
        let mut sent = trailers.unwrap_or_default();
        sent.insert(OCTETS, octets);
        sent
    });
    Ok(Answer { response: response.body(body)?, trailers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_fields_and_trailers_come_back() {
        let request = Request::post("https://a/b").header("x-a", "1").header("accept", "*/*");
        let request = request.body(Bytes::from_static(b"body")).unwrap();
        let trailers = HeaderMap::from_iter([(
            HeaderName::from_static("x-last"),
            HeaderValue::from_static("2"),
        )]);
        let www = Path::new("nowhere");
        let got = answer(Case::Http3Trailers, www, request.clone(), Some(trailers)).unwrap();
        assert_eq!(got.response.body().as_ref(), b"body");
        assert_eq!(got.response.headers()["x-a"], "1");
        assert!(!got.response.headers().contains_key("accept"));
        let trailers = got.trailers.unwrap();
        assert_eq!(
            (&trailers["x-last"], &trailers["x-octets"]),
            (&HeaderValue::from_static("2"), &HeaderValue::from_static("4"),)
        );
        assert!(answer(Case::Http3Upload, www, request, None).unwrap().trailers.is_none());
    }

    #[test]
    fn a_file_that_is_missing_is_not_found() {
        let request = Request::get("https://a/../b").body(Bytes::new()).unwrap();
        let got = answer(Case::Http3Many, Path::new("nowhere"), request, None).unwrap();
        assert_eq!(got.response.status(), StatusCode::NOT_FOUND);
    }
}
