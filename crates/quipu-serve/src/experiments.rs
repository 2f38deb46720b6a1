//! Endpoints with policies that clients choose: whoever compares policies over real uplinks has to choose those of
//! the server, which sends most bytes.
//!
//! A client asks at [`PATH`] for policies, and is told the port of an endpoint that has them. [`Experiments`] holds
//! these endpoints, as many as [`Limits`] allow, until they are idle for a while; [`Beside`] is the service that
//! answers the questions, and passes all other requests on.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use quipu_tokio::{BindError, Endpoint};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tower_service::Service;

use crate::body::{Body, text};
use crate::http3::{RequestBody, Server};

/// Where clients ask, with POST and [`Policies`] as a JSON object.
/// <https://www.rfc-editor.org/rfc/rfc8615#section-3>
pub const PATH: &str = "/.well-known/quipu/policies";

/// Bytes of a question, at most; our choice.
const MOST_BODY: usize = 16 * 1_024;

/// How often it is looked whether an endpoint is idle, at most.
const LOOK: Duration = Duration::from_secs(1);

/// Policies by layer, such as `path` and `ecf:beta=0.25`.
pub type Policies = BTreeMap<String, String>;

/// Opens an endpoint.
pub type Bind = Box<dyn FnOnce() -> Result<Endpoint, BindError> + Send>;

/// What a client's choice amounts to.
pub struct Chosen {
    /// All layers with all parameters, by which equal choices are known.
    pub policies: Policies,
    /// Opens an endpoint that has them.
    pub bind: Bind,
}

/// What endpoints may cost. The defaults are our choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Endpoints that are open at a time. If there are so many, the one that was idle for longest gives way.
    pub endpoints: usize,
    /// How long an endpoint is kept without connections.
    pub idle: Duration,
    /// How long open exchanges have when the server stops.
    pub stop: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let (idle, stop) = (Duration::from_secs(60), Duration::from_secs(10));
        Limits { endpoints: 64, idle, stop }
    }
}

/// Turns what a client asks for into an endpoint, or says what is wrong with it.
type Choose = dyn Fn(&Policies) -> Result<Chosen, String> + Send + Sync;

/// The endpoints that clients asked for. Clones hold the same ones.
pub struct Experiments<S>(Arc<Held<S>>);

struct Held<S> {
    service: S,
    choose: Box<Choose>,
    limits: Limits,
    open: Mutex<BTreeMap<Policies, Open>>,
    /// One for each endpoint, which tells how many exchanges were cut.
    servers: Mutex<JoinSet<usize>>,
    stop: watch::Sender<bool>,
}

/// An endpoint that is open.
struct Open {
    endpoint: Endpoint,
    port: u16,
    /// When it was last asked for, or had a connection.
    used_at: Instant,
    /// Tells its server that it gave way.
    gives_way: Arc<Notify>,
}

/// Why a client gets no endpoint.
struct Refusal(StatusCode, String);

impl<S> Clone for Experiments<S> {
    fn clone(&self) -> Self {
        Experiments(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for Experiments<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = lock(&self.0.open).len();
        f.debug_struct("Experiments").field("open", &open).finish_non_exhaustive()
    }
}

/// What it guards is whole at any time, whoever panicked.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S> Experiments<S>
where
    S: Service<Request<RequestBody>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    /// No endpoints yet. Each will serve `service`; `choose` says what a choice amounts to, or what is wrong with it,
    /// in one line that the client is told.
    pub fn new(
        service: S,
        limits: Limits,
        choose: impl Fn(&Policies) -> Result<Chosen, String> + Send + Sync + 'static,
    ) -> Self {
        Experiments(Arc::new(Held {
            service,
            choose: Box::new(choose),
            limits,
            open: Mutex::default(),
            servers: Mutex::default(),
            stop: watch::Sender::new(false),
        }))
    }

    /// `inner`, with an answer at [`PATH`].
    pub fn beside<I>(&self, inner: I) -> Beside<I, S> {
        Beside { inner, experiments: self.clone() }
    }

    /// How many endpoints are open.
    pub fn open(&self) -> usize {
        lock(&self.0.open).len()
    }

    /// Ends all endpoints, whose open exchanges have as long as [`Limits::stop`] says. Returns how many were cut.
    /// To be called when no more questions come.
    pub async fn finish(&self) -> usize {
        self.0.stop.send_replace(true);
        let mut servers = std::mem::take(&mut *lock(&self.0.servers));
        let mut cut = 0;
        while let Some(ended) = servers.join_next().await {
            cut += ended.unwrap_or_default();
        }
        lock(&self.0.open).clear();
        cut
    }

    /// The port of an endpoint with the policies that were asked for, and these policies.
    fn port(&self, asked: &[u8]) -> Result<(u16, Policies), Refusal> {
        let wrong = |reason: String| Refusal(StatusCode::BAD_REQUEST, reason);
        let asked: Policies = serde_json::from_slice(asked).map_err(|error| {
            wrong(format!("expected a JSON object such as {{\"path\": \"minrtt\"}}: {error}"))
        })?;
        let Chosen { policies, bind } = (self.0.choose)(&asked).map_err(wrong)?;
        let mut open = lock(&self.0.open);
        if let Some(known) = open.get_mut(&policies) {
            known.used_at = Instant::now();
            return Ok((known.port, policies));
        }
        if open.len() >= self.0.limits.endpoints {
            let idle = open.iter().filter(|(_, it)| it.endpoint.stats().connections == 0);
            let longest = idle.min_by_key(|(_, it)| it.used_at).map(|(key, _)| key.clone());
            let Some(gone) = longest.and_then(|key| open.remove(&key)) else {
                let most = self.0.limits.endpoints;
                let reason = format!("all {most} endpoints are in use; try again later");
                return Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, reason));
            };
            gone.gives_way.notify_one();
        }
        let failed = |reason: String| Refusal(StatusCode::SERVICE_UNAVAILABLE, reason);
        let endpoint = bind().map_err(|error| failed(error.to_string()))?;
        let address = endpoint.local_addresses().first().copied();
        let port = address.ok_or_else(|| failed("the endpoint has no address".to_owned()))?.port();
        let gives_way = Arc::new(Notify::new());
        let over = self.clone().over(policies.clone(), endpoint.clone(), Arc::clone(&gives_way));
        let server = Server::new(endpoint.clone(), self.0.service.clone());
        let server = server.stop_within(self.0.limits.stop).run(over);
        {
            let mut servers = lock(&self.0.servers);
            while servers.try_join_next().is_some() {}
            servers.spawn(server);
        }
        let used_at = Instant::now();
        open.insert(policies.clone(), Open { endpoint, port, used_at, gives_way });
        Ok((port, policies))
    }

    /// Returns when the endpoint with these policies is to end: it was idle for too long, gave way, or the server
    /// stops.
    async fn over(self, policies: Policies, endpoint: Endpoint, gives_way: Arc<Notify>) {
        let Held { limits, open, stop, .. } = &*self.0;
        let mut stops = stop.subscribe();
        loop {
            tokio::select! {
                () = gives_way.notified() => return,
                _ = stops.wait_for(|stop| *stop) => return,
                () = sleep(LOOK.min(limits.idle)) => {}
            }
            let mut open = lock(open);
            let Some(this) = open.get_mut(&policies) else { return };
            if endpoint.stats().connections > 0 {
                this.used_at = Instant::now();
            } else if this.used_at.elapsed() >= limits.idle {
                open.remove(&policies);
                return;
            }
        }
    }
}

/// A service that answers at [`PATH`] itself, and passes all other requests on.
#[derive(Debug)]
pub struct Beside<I, S> {
    inner: I,
    experiments: Experiments<S>,
}

impl<I: Clone, S> Clone for Beside<I, S> {
    fn clone(&self) -> Self {
        Beside { inner: self.inner.clone(), experiments: self.experiments.clone() }
    }
}

impl<I, S, B> Service<Request<B>> for Beside<I, S>
where
    I: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
    I::Future: Send + 'static,
    S: Service<Request<RequestBody>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if request.uri().path() != PATH {
            return Box::pin(self.inner.call(request));
        }
        let experiments = self.experiments.clone();
        Box::pin(async move { Ok(answer(&experiments, request).await) })
    }
}

async fn answer<S, B>(experiments: &Experiments<S>, request: Request<B>) -> Response<Body>
where
    S: Service<Request<RequestBody>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    if request.method() != Method::POST {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "expected POST\n".to_owned());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    let body = match Limited::new(request.into_body(), MOST_BODY).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            let reason = format!("expected at most {MOST_BODY} bytes\n");
            return text(StatusCode::PAYLOAD_TOO_LARGE, reason);
        }
        Err(error) => return text(StatusCode::BAD_REQUEST, format!("{error}\n")),
    };
    match experiments.port(&body) {
        Ok((port, policies)) => {
            let answer = serde_json::json!({ "port": port, "policies": policies });
            let mut response = text(StatusCode::CREATED, format!("{answer}\n"));
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, json);
            response
        }
        Err(Refusal(status, reason)) => text(status, format!("{reason}\n")),
    }
}
