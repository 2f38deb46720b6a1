//! Metrics as a service.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use prometheus_client::encoding::prometheus_text::CONTENT_TYPE as PROMETHEUS;
use tower_service::Service;

use super::Metrics;
use crate::body::{Body, text};

/// Answers `GET /metrics` with [`Metrics::render`], and everything else with 404 or 405. It needs a listener of
/// its own, on an address that is not public: see [`Server::plain`](crate::tcp::Server::plain).
#[derive(Clone, Debug)]
pub struct Scrape(pub Metrics);

impl<B> Service<Request<B>> for Scrape {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let response = if request.uri().path() != "/metrics" {
            text(StatusCode::NOT_FOUND, "404 Not Found: metrics are at /metrics\n".to_owned())
        } else if request.method() != Method::GET {
            let reason = "405 Method Not Allowed: only GET\n".to_owned();
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, reason);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            response
        } else {
            let mut response = text(StatusCode::OK, self.0.render());
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROMETHEUS));
            response
        };
        ready(Ok(response))
    }
}
