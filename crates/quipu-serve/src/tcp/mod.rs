//! HTTP/1.1 and HTTP/2 over TCP, beside HTTP/3 on the same port.
//!
//! [`Listener`] owns the socket; [`Server`] accepts connections within [`Limits`]. `connection` serves one
//! connection, `idle` detects that no byte moves on it, and `announce` adds `Alt-Svc` to its responses.

mod announce;
mod connection;
mod idle;
mod limits;
mod linger;
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

/// Pause after the host failed to accept a connection, for example because the process has too many open files.
/// Our choice.
const PAUSE: Duration = Duration::from_millis(100);

/// A server over TCP that is not running yet.
#[derive(Debug)]
pub struct Server<S> {
    listener: Listener,
    service: S,
    tls: Option<Arc<ServerConfig>>,
    alt_svc: Option<AltSvc>,
    limits: Limits,
    metrics: Option<Metrics>,
}

/// The outcome of stopping a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Number of connections that did not end in time and were cut.
    pub cut: usize,
}

impl<S> Server<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
{
    /// A server for HTTP/1.1 and HTTP/2 over TLS, negotiated by ALPN; `tls` comes from
    /// [`Certificates::tcp`](crate::Certificates::tcp). Responses of `service` announce HTTP/3 on the same port;
    /// change that with [`announce`](Self::announce). Errors that never reach `service`, such as 431, have no
    /// `Alt-Svc`. Requests carry the extension [`Client`](crate::Client).
    pub fn new(listener: Listener, tls: Arc<ServerConfig>, service: S) -> Self {
        let alt_svc = Some(AltSvc::h3(listener.local_address().port()));
        Server { alt_svc, tls: Some(tls), ..Self::plain(listener, service) }
    }

    /// A server for HTTP/1.1 without TLS and without `Alt-Svc`, for addresses that only this host can reach, such
    /// as the one for metrics.
    pub fn plain(listener: Listener, service: S) -> Self {
        let limits = Limits::default();
        Server { listener, service, tls: None, alt_svc: None, limits, metrics: None }
    }

    /// Announces another alternative, or none.
    #[must_use]
    pub fn announce(self, alt_svc: Option<AltSvc>) -> Self {
        Server { alt_svc, ..self }
    }

    /// Sets the limits.
    ///
    /// # Errors
    /// [`LimitsError`] if one is out of range.
    pub fn limits(self, limits: Limits) -> Result<Self, LimitsError> {
        limits.validate()?;
        Ok(Server { limits, ..self })
    }

    /// Counts connections in `metrics`.
    #[must_use]
    pub fn metrics(self, metrics: Metrics) -> Self {
        Server { metrics: Some(metrics), ..self }
    }

    /// Accepts and serves connections until `stop` completes. Then the listener is closed, open connections finish
    /// their responses and end, and those that take longer than [`Limits::stop`] are cut. Dropping the future cuts
    /// all connections at once.
    ///
    /// The failure of a connection affects no other; it is only reported to `tracing`, at debug level.
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
                    tracing::warn!(target: "quipu_serve", %error, "cannot accept a connection; trying again in 100 ms");
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
        // The connections that are left are counted below.
        let _ = tokio::time::timeout(grace, all).await;
        let cut = connections.len();
        connections.shutdown().await;
        Stopped { cut }
    }
}

/// The next connection, accepted once the limit allows it.
async fn next(
    listener: &Listener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, client) = listener.socket().accept().await?;
    Ok((stream, client, place))
}

/// True if the client closed the connection before it was accepted.
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
