//! Requests, noted: a line of a log for each, and counters.
//!
//! [`Recorded`] wraps the service that answers; [`AccessLog`] writes the lines, and
//! [`Metrics`] counts. `entry` has the formats, `counted` the body that tells how much of it
//! was sent.

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

/// A service whose requests are noted, when their responses have ended.
#[derive(Clone, Debug)]
pub struct Recorded<S> {
    inner: S,
    log: Option<AccessLog>,
    metrics: Option<Metrics>,
}

impl<S> Recorded<S> {
    /// `inner`, of which nothing is noted yet.
    pub fn new(inner: S) -> Self {
        Recorded { inner, log: None, metrics: None }
    }

    /// The same with a line for each request.
    #[must_use]
    pub fn log(self, log: AccessLog) -> Self {
        Recorded { log: Some(log), ..self }
    }

    /// The same with counters.
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
        // Noted when it is dropped, if the client goes before there is a response, too.
        let mut note = Note::new(entry, version, self.log.clone(), self.metrics.clone());
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await?;
            note.answered(&response);
            Ok(response.map(|body| Body::new(Counted::new(body, note))))
        })
    }
}
