//! HTTP/1.1 and HTTP/2 over TCP, beside HTTP/3 on the same port.
//!
//! [`Listener`] has the socket, [`Server`] accepts its connections, within [`Limits`]. `connection` serves one
//! of them, `idle` notices that nothing moves on it, and `announce` tells clients of HTTP/3.

mod announce;
mod connection;
mod idle;
mod limits;
mod listener;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use tower_service::Service;

pub use self::announce::AltSvc;
pub use self::limits::{Limits, LimitsError};
pub use self::listener::{ListenError, Listener};

use self::connection::{Terms, until};
use crate::body::Body;
use crate::metrics::{Metrics, Transport};

/// Until connections are accepted again after the host refused one, such as for want of files. Our choice.
const PAUSE: Duration = Duration::from_millis(100);

/// A server over TCP, not running yet.
#[derive(Debug)]
pub struct Server<S> {
    listener: Listener,
    service: S,
    tls: Option<Arc<ServerConfig>>,
    alt_svc: Option<AltSvc>,
    limits: Limits,
    metrics: Option<Metrics>,
}

/// How a server stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Connections that did not end in time and were cut.
    pub cut: usize,
}

impl<S> Server<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
{
    /// HTTP/1.1 and HTTP/2 over TLS, whichever the client takes of those that `tls` names:
    /// [`Certificates::tcp`](crate::Certificates::tcp). Responses announce HTTP/3 on the same port, unless
    /// [`announce`](Self::announce) says otherwise; what is refused before it reaches `service`, such as
    /// headers that are too large, announces nothing. Requests have the extension [`Client`](crate::Client).
    pub fn new(listener: Listener, tls: Arc<ServerConfig>, service: S) -> Self {
        let alt_svc = Some(AltSvc::h3(listener.local_address().port()));
        Server { alt_svc, tls: Some(tls), ..Self::plain(listener, service) }
    }

    /// HTTP/1.1 without TLS, which announces nothing: for addresses that only this host reaches, such as one
    /// for metrics.
    pub fn plain(listener: Listener, service: S) -> Self {
        let limits = Limits::default();
        Server { listener, service, tls: None, alt_svc: None, limits, metrics: None }
    }

    /// The same which announces that, or nothing.
    #[must_use]
    pub fn announce(self, alt_svc: Option<AltSvc>) -> Self {
        Server { alt_svc, ..self }
    }

    /// The same within those limits.
    ///
    /// # Errors
    /// [`LimitsError`] if one is out of its range.
    pub fn limits(self, limits: Limits) -> Result<Self, LimitsError> {
        limits.validate()?;
        Ok(Server { limits, ..self })
    }

    /// The same which counts its connections.
    #[must_use]
    pub fn metrics(self, metrics: Metrics) -> Self {
        Server { metrics: Some(metrics), ..self }
    }

    /// Accepts and serves connections until `stop` is ready. Then no more are accepted, those that are open are
    /// told to end after their responses, and cut if that takes longer than [`Limits::stop`]. All are cut at
    /// once when the future is dropped.
    ///
    /// Connections that fail harm no other one, and are told to `tracing` alone.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Stopped {
        let Server { listener, service, tls, alt_svc, limits, metrics } = self;
        let (stopping, stops) = watch::channel(false);
        let places = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
        let grace = limits.stop;
        let alt_svc = alt_svc.map(AltSvc::header);
        let terms = Terms { service, tls, alt_svc, limits: Arc::new(limits), stops };
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        while let Some(next) = until(stop.as_mut(), next(&listener, &places)).await {
            while let Some(ended) = connections.try_join_next() {
                note(ended);
            }
            match next {
                Ok((stream, client, place)) => {
                    let terms = terms.clone();
                    let open =
                        metrics.as_ref().map(|metrics| metrics.open_connection(Transport::Tcp));
                    connections.spawn(async move {
                        terms.serve(stream, client).await;
                        drop((open, place));
                    });
                }
                Err(error) if is_of_client(&error) => {}
                Err(error) => {
                    tracing::warn!(target: "quipu_serve", %error, "no connection is accepted for a moment");
                    if until(stop.as_mut(), tokio::time::sleep(PAUSE)).await.is_none() {
                        break;
                    }
                }
            }
        }
        drop(listener);
        stopping.send_replace(true);
        let all = async {
            while let Some(ended) = connections.join_next().await {
                note(ended);
            }
        };
        // Those that are left are counted.
        let _ = tokio::time::timeout(grace, all).await;
        let cut = connections.len();
        connections.shutdown().await;
        Stopped { cut }
    }
}

/// The next connection, once there is a place for it.
async fn next(
    listener: &Listener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, client) = listener.socket().accept().await?;
    Ok((stream, client, place))
}

/// True if a connection was gone before it was accepted, which is no matter of this host.
fn is_of_client(error: &io::Error) -> bool {
    let kinds = [
        io::ErrorKind::ConnectionAborted,
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::ConnectionRefused,
    ];
    kinds.contains(&error.kind())
}

fn note(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(target: "quipu_serve", %error, "a service panicked");
    }
}
