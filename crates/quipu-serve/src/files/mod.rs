//! The files of a folder, as responses.
//!
//! - `target` says which paths may name a file, before the file system is asked;
//! - `root` opens files and keeps to the folder;
//! - `ranges` says which ranges count.
//!
//! The rest is [`tower_http::services::ServeDir`]: types, conditions, precompressed files, index pages.

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

/// A folder cannot be served.
#[derive(Debug, Error)]
#[error("cannot serve {folder}: {source}; give a folder that this user may read")]
#[non_exhaustive]
pub struct FilesError {
    /// Which.
    pub folder: PathBuf,
    /// What the host said.
    pub source: io::Error,
}

/// The files of a folder, as a service of any version of HTTP. It is always ready, and its clones are the
/// same.
///
/// - `GET` and `HEAD` are answered, others get 405.
/// - A path names the file that its segments name, percent-decoded, below the folder: `/a/b.html`. `/a/` names
///   `a/index.html`, and `/a` leads there with a redirection, 307.
/// - 404, in plain text, for what is missing or no regular file, may not be read, lies outside of the folder
///   behind symbolic links, or has a name with a leading dot; only the folder `.well-known` at the top may have
///   one ([RFC 8615](https://www.rfc-editor.org/rfc/rfc8615)). Paths are not repaired: with an empty, `.`
///   or `..` segment, an encoded slash, a backslash or control characters, they name nothing.
/// - `Content-Type` follows from the ending of the name; text is UTF-8. Browsers shall not guess another.
/// - `ETag`, strong, of size and time of change, and `Last-Modified`, with all conditions of
///   [RFC 9110, section 13](https://www.rfc-editor.org/rfc/rfc9110#section-13).
/// - One range of bytes: 206, or 416 if there is none. Several get the whole file.
/// - `a.js.zst`, `a.js.br` and `a.js.gz`, where they are there beside `a.js`, are sent in its place to clients that accept
///   them: the highest weight first, then in this order.
/// - `Cache-Control: no-cache`, unless [`cache_control`](Self::cache_control) says otherwise: caches ask
///   whether the file is the same, and mostly get 304.
/// - Every response has a `Date`.
#[derive(Clone, Debug)]
pub struct Files {
    inner: ServeDir<DefaultServeDirFallback, Root>,
    cache_control: HeaderValue,
}

impl Files {
    /// The files below `folder`, as they are when they are requested.
    ///
    /// # Errors
    /// [`FilesError`] if it is no folder, or one that may not be read.
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

    /// The same with that `Cache-Control` for files, such as `max-age=3600`.
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

    /// The file, to be sent or, for `HEAD`, to be described.
    async fn find(&mut self, mut parts: Parts, is_head: bool) -> Response<Body> {
        let path = parts.uri.path_and_query().filter(|path| target::may_name_file(path.path()));
        let Some(path) = path.cloned() else { return not_found() };
        // Redirections then lead to a path, whatever host the client has named.
        parts.uri = Uri::from(path);
        // What answers HEAD else would not open the file, and has other errors.
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
                refusal(response.status(), "the file is another one than the request is about")
            }
            StatusCode::RANGE_NOT_SATISFIABLE => unsatisfiable(response.headers()),
            _ => self.dressed(response),
        }
    }

    /// The response with what is the same for each file.
    fn dressed(&self, mut response: Response<Body>) -> Response<Body> {
        let status = response.status();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, self.cache_control.clone());
        if status == StatusCode::NOT_MODIFIED {
            // What the whole file has, too.
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

/// A response without a file: its status, and why.
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
