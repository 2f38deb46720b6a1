//! Access logs and counters of requests.
//!
//! [`Recorded`] wraps the service that answers; [`AccessLog`] writes the lines, and [`Metrics`] counts. `entry`
//! defines the formats, `counted` counts the bytes of a body.

mod counted;
mod entry;
mod log;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use jiff::Timestamp;
use tower_service::Service;

pub use self::entry::{Entry, Format};
pub use self::log::{AccessLog, LogWriter};

use self::counted::{Counted, Note};
use crate::body::Body;
use crate::metrics::Metrics;

/// A service that logs and counts each request when its response has ended or was cut off.
#[derive(Clone, Debug)]
pub struct Recorded<S> {
    inner: S,
    log: Option<AccessLog>,
    metrics: Option<Metrics>,
}

impl<S> Recorded<S> {
    /// Wraps `inner`, without log and metrics.
    pub fn new(inner: S) -> Self {
        Recorded { inner, log: None, metrics: None }
    }

    /// Logs each request to `log`.
    #[must_use]
    pub fn log(self, log: AccessLog) -> Self {
        Recorded { log: Some(log), ..self }
    }

    /// Counts each request in `metrics`.
    #[must_use]
    pub fn metrics(self, metrics: Metrics) -> Self {
        Recorded { metrics: Some(metrics), ..self }
    }
}

impl<S, B> Service<Request<B>> for Recorded<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let entry = Entry::of(&request, Timestamp::now());
        let version = request.version();
        // Also logged if it is dropped before there is a response.
        let mut note = Note::new(entry, version, self.log.clone(), self.metrics.clone());
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await?;
            note.answered(&response);
            Ok(response.map(|body| Body::new(Counted::new(body, note))))
        })
    }
}
