//! Serves the files of a folder.
//!
//! - `target` checks request paths;
//! - `root` opens files and confines them to the folder;
//! - `ranges` corrects the handling of ranges.
//!
//! Everything else is [`tower_http::services::ServeDir`]: media types, conditions, precompressed files, index pages.

mod ranges;
mod root;
mod target;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::header::{
    ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, HeaderName,
    HeaderValue, IF_RANGE, LAST_MODIFIED, RANGE, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use httpdate::fmt_http_date;
use thiserror::Error;
use tower_http::services::ServeDir;
use tower_http::services::fs::DefaultServeDirFallback;
use tower_service::Service;

use self::ranges::Correction;
use self::root::Root;
use crate::body::{self, Body};
use crate::clock;

/// Why a folder cannot be served.
#[derive(Debug, Error)]
#[error("cannot serve {folder}: {source}; give a folder that this user may read")]
#[non_exhaustive]
pub struct FilesError {
    /// The folder.
    pub folder: PathBuf,
    /// The error of the host.
    pub source: io::Error,
}

/// A service that answers with the files of a folder, for any version of HTTP. It is always ready.
///
/// - Methods other than `GET` and `HEAD` get 405.
/// - `/a/b.html` is that file below the folder, after percent-decoding. `/a/` is `a/index.html`, and `/a` redirects
///   to `/a/` with 307.
/// - 404, with a body in plain text, for files that do not exist, are not regular, may not be read, are outside of
///   the folder because of symbolic links, or have a name with a leading dot. The only such name that is served is
///   the folder `.well-known` at the top ([RFC 8615](https://www.rfc-editor.org/rfc/rfc8615)). Paths are not
///   normalised: those with empty, `.` or `..` segments, encoded slashes, backslashes or control characters get 404.
/// - `Content-Type` depends on the extension, with `charset=utf-8` for text and `nosniff` for browsers.
/// - A strong `ETag` made of size and modification time, and `Last-Modified`, with all conditions of
///   [RFC 9110, section 13](https://www.rfc-editor.org/rfc/rfc9110#section-13).
/// - A single byte range gets 206, or 416 if it cannot be satisfied. Several ranges get the whole file, with 200.
/// - If `a.js.zst`, `a.js.br` or `a.js.gz` exist next to `a.js`, they are sent in its place to clients that accept
///   them, by the client's weights, then in this order.
/// - `Cache-Control: no-cache` by default, so that caches revalidate, which mostly gets 304; see
///   [`cache_control`](Self::cache_control).
/// - Every response has a `Date`.
#[derive(Clone, Debug)]
pub struct Files {
    inner: ServeDir<DefaultServeDirFallback, Root>,
    cache_control: HeaderValue,
}

impl Files {
    /// Serves the files below `folder`, as they are at the time of each request. They are opened and read on the
    /// runtime's threads for blocking calls, of which a few are enough: with hundreds, allocators that keep
    /// memory for each thread keep a lot.
    ///
    /// # Errors
    /// [`FilesError`] if it is not a folder, or may not be read.
    pub fn new(folder: impl AsRef<Path>) -> Result<Self, FilesError> {
        let folder = folder.as_ref();
        let root =
            Root::new(folder).map_err(|source| FilesError { folder: folder.to_owned(), source })?;
        let path = root.path().to_owned();
        let inner = ServeDir::with_backend(path, root)
            .precompressed_zstd()
            .precompressed_br()
            .precompressed_gzip()
            .ignore_multi_range_requests(true);
        Ok(Files { inner, cache_control: HeaderValue::from_static("no-cache") })
    }

    /// Sets `Cache-Control` of files, for example `max-age=3600`.
    #[must_use]
    pub fn cache_control(self, value: HeaderValue) -> Self {
        Files { cache_control: value, ..self }
    }

    async fn answer(mut self, parts: Parts) -> Response<Body> {
        let is_head = parts.method == Method::HEAD;
        let mut response = if is_head || parts.method == Method::GET {
            self.find(parts, is_head).await
        } else {
            let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            response
        };
        let headers = response.headers_mut();
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Ok(date) = HeaderValue::try_from(fmt_http_date(clock::now())) {
            headers.insert(DATE, date);
        }
        if is_head {
            *response.body_mut() = body::empty();
        }
        response
    }

    /// The response to `GET`, also for `HEAD`, whose body is removed later.
    async fn find(&mut self, mut parts: Parts, is_head: bool) -> Response<Body> {
        let path = parts.uri.path_and_query().filter(|path| target::may_name_file(path.path()));
        let Some(path) = path.cloned() else { return not_found() };
        // Redirects then contain only a path, and not a host that the client chose.
        parts.uri = Uri::from(path);
        // `ServeDir` does not open files for HEAD, and answers some invalid names with 500.
        parts.method = Method::GET;
        if is_head {
            // https://www.rfc-editor.org/rfc/rfc9110#section-14.2
            parts.headers.remove(RANGE);
        }
        ranges::drop_unknown(&mut parts.headers);
        let Some(range) = parts.headers.get(RANGE).cloned() else { return self.read(parts).await };
        let condition = parts.headers.remove(IF_RANGE);
        let mut again = parts.clone();
        let response = self.read(parts).await;
        match ranges::correction(&range, condition.as_ref(), &response, clock::now()) {
            None => return response,
            Some(Correction::Whole) => again.headers.remove(RANGE),
            Some(Correction::All) => again.headers.insert(RANGE, ranges::ALL),
        };
        self.read(again).await
    }

    async fn read(&mut self, parts: Parts) -> Response<Body> {
        let read = self.inner.try_call(Request::from_parts(parts, body::empty())).await;
        let response = match read {
            Ok(response) => response.map(Body::new),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return not_found(),
            Err(error) => {
                tracing::error!(target: "quipu_serve", %error, "a file cannot be read");
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                return refusal(status, "the file cannot be read");
            }
        };
        match response.status() {
            StatusCode::NOT_FOUND => not_found(),
            StatusCode::PRECONDITION_FAILED => {
                refusal(response.status(), "the file does not meet the conditions of the request")
            }
            StatusCode::RANGE_NOT_SATISFIABLE => unsatisfiable(response.headers()),
            _ => self.dressed(response),
        }
    }

    /// Adds the headers that all files have.
    fn dressed(&self, mut response: Response<Body>) -> Response<Body> {
        let status = response.status();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, self.cache_control.clone());
        if status == StatusCode::NOT_MODIFIED {
            // As in the response with the file.
            // https://www.rfc-editor.org/rfc/rfc9110#section-15.4.5
            headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        }
        let plain = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if let Some(kind) = plain.filter(|kind| kind.starts_with("text/") && !kind.contains(';'))
            && let Ok(kind) = HeaderValue::try_from(format!("{kind}; charset=utf-8"))
        {
            headers.insert(CONTENT_TYPE, kind);
        }
        response
    }
}

/// An error response: the status, and the reason as its body.
fn refusal(status: StatusCode, reason: &str) -> Response<Body> {
    body::text(status, format!("{status}: {reason}\n"))
}

fn not_found() -> Response<Body> {
    refusal(StatusCode::NOT_FOUND, "there is no file at this address")
}

fn unsatisfiable(headers: &HeaderMap) -> Response<Body> {
    const KEPT: [HeaderName; 4] = [ACCEPT_RANGES, CONTENT_RANGE, ETAG, LAST_MODIFIED];
    let mut response =
        refusal(StatusCode::RANGE_NOT_SATISFIABLE, "the file has no such range of bytes");
    for name in KEPT {
        if let Some(value) = headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

impl<B> Service<Request<B>> for Files {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    /// The body of the request is dropped unread.
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let files = self.clone();
        let parts = request.into_parts().0;
        Box::pin(async move { Ok(files.answer(parts).await) })
    }
}
