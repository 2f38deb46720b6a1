//! What the listener adds to requests and responses.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{ALT_SVC, HeaderValue};
use http::{Request, Response};
use tower_service::Service;

use crate::body::Body;
use crate::client::Client;

/// Where the same server speaks HTTP/3, announced in each response over HTTP/1.1 and HTTP/2.
/// <https://www.rfc-editor.org/rfc/rfc9114#section-3.1.1>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AltSvc {
    /// UDP port, on the same host.
    pub port: u16,
    /// How long clients may remember it; the header has whole seconds.
    pub max_age: Duration,
}

impl AltSvc {
    /// HTTP/3 on `port` for 24 hours, the default of RFC 7838.
    /// <https://www.rfc-editor.org/rfc/rfc7838#section-3.1>
    pub fn h3(port: u16) -> Self {
        AltSvc { port, max_age: Duration::from_secs(24 * 60 * 60) }
    }

    /// The value of the header field: `h3=":443"; ma=86400`.
    pub fn header(self) -> HeaderValue {
        let AltSvc { port, max_age } = self;
        let value = format!("h3=\":{port}\"; ma={}", max_age.as_secs());
        // Digits, quotes and signs are valid in a header; `clear` announces nothing.
        HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static("clear"))
    }
}

/// The service of one connection: adds the client to requests and `Alt-Svc` to responses.
#[derive(Clone, Debug)]
pub(super) struct Announced<S> {
    pub(super) inner: S,
    pub(super) client: SocketAddr,
    pub(super) alt_svc: Option<HeaderValue>,
}

impl<S, B> Service<Request<B>> for Announced<S>
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

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.extensions_mut().insert(Client(self.client));
        let response = self.inner.call(request);
        let alt_svc = self.alt_svc.clone();
        Box::pin(async move {
            let mut response = response.await?;
            if let Some(alt_svc) = alt_svc {
                response.headers_mut().insert(ALT_SVC, alt_svc);
            }
            Ok(response)
        })
    }
}
