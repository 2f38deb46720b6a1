//! A single connection, from the handshake to its end.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use http::header::HeaderValue;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use super::announce::Announced;
use super::idle::{self, Idle, Watched};
use super::limits::Limits;
use super::linger::{LINGER, Lent, lent, linger};
use crate::body::Body;

/// What all connections of a server share.
#[derive(Clone)]
pub(super) struct Terms<S> {
    pub(super) service: S,
    pub(super) tls: Option<Arc<ServerConfig>>,
    pub(super) alt_svc: Option<HeaderValue>,
    pub(super) limits: Arc<Limits>,
    /// True once the server stops.
    pub(super) stops: watch::Receiver<bool>,
}

/// Why a connection failed.
type Failure = Box<dyn Error + Send + Sync>;

impl<S> Terms<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
{
    /// Serves a connection until it ends.
    pub(super) async fn serve(self, stream: TcpStream, client: SocketAddr) {
        if let Err(error) = self.try_serve(stream, client).await {
            tracing::debug!(target: "quipu_serve", %client, error, "a connection over TCP has ended");
        }
    }

    async fn try_serve(self, stream: TcpStream, client: SocketAddr) -> Result<(), Failure> {
        // Nagle's algorithm would delay the last segment of each response.
        stream.set_nodelay(true)?;
        let patience = LINGER.min(self.limits.stop / 2);
        let (stream, given_back) = lent(stream);
        let (stream, idle) = idle::watch(stream, self.limits.idle);
        self.speak(stream, client, idle).await?;
        linger(given_back, patience).await;
        Ok(())
    }

    async fn speak(
        mut self,
        stream: Watched<Lent<TcpStream>>,
        client: SocketAddr,
        idle: Idle,
    ) -> Result<(), Failure> {
        let Some(config) = self.tls.take() else {
            return self.http1(TokioIo::new(stream), client, idle).await;
        };
        let handshake = TlsAcceptor::from(config).accept(stream);
        let handshake = tokio::time::timeout(self.limits.handshake, handshake);
        let mut stops = self.stops.clone();
        let Some(accepted) = until(stopped(&mut stops), handshake).await else { return Ok(()) };
        let stream = accepted??;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let stream = TokioIo::new(stream);
        // A client that offers no protocol speaks HTTP/1.1.
        if is_http2 {
            self.http2(stream, client, idle).await
        } else {
            self.http1(stream, client, idle).await
        }
    }

    async fn http1(
        self,
        stream: impl Read + Write + Unpin + 'static,
        client: SocketAddr,
        idle: Idle,
    ) -> Result<(), Failure> {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.header)
            .max_headers(self.limits.header_count)
            .max_header_size(usize::try_from(self.limits.header_size.0).unwrap_or(usize::MAX))
            .serve_connection(stream, TowerToHyperService::new(self.announced(client)));
        drive(connection, idle, self.stops).await
    }

    async fn http2(
        self,
        stream: impl Read + Write + Unpin + Send + 'static,
        client: SocketAddr,
        idle: Idle,
    ) -> Result<(), Failure> {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.limits.streams)
            .max_header_list_size(u32::try_from(self.limits.header_size.0).unwrap_or(u32::MAX))
            .serve_connection(stream, TowerToHyperService::new(self.announced(client)));
        drive(connection, idle, self.stops).await
    }

    fn announced(&self, client: SocketAddr) -> Announced<S> {
        let alt_svc = self.alt_svc.clone();
        Announced { inner: self.service.clone(), client, alt_svc }
    }
}

/// Drives a connection. When the server stops or the connection is idle for too long, it is shut down gracefully:
/// HTTP/2 sends GOAWAY, HTTP/1.1 closes after the current response. If it is then idle for as long again, it is
/// cut.
async fn drive<C>(
    connection: C,
    mut idle: Idle,
    mut stops: watch::Receiver<bool>,
) -> Result<(), Failure>
where
    C: GracefulConnection,
    C::Error: Into<Failure>,
{
    let mut connection = pin!(connection);
    let mut stop = pin!(stopped(&mut stops));
    let (mut is_stopping, mut is_ending) = (false, false);
    poll_fn(|cx| {
        loop {
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                return Poll::Ready(ended.map_err(Into::into));
            }
            let is_idle = idle.poll_idle(cx).is_ready();
            if is_idle && is_ending {
                return Poll::Ready(Err("nothing moved".into()));
            }
            let stops = !is_stopping && stop.as_mut().poll(cx).is_ready();
            is_stopping |= stops;
            if !is_idle && !stops {
                return Poll::Pending;
            }
            is_ending = true;
            connection.as_mut().graceful_shutdown();
        }
    })
    .await
}

/// Waits until the server stops or is dropped.
async fn stopped(stops: &mut watch::Receiver<bool>) {
    // An error means that it was dropped.
    let _ = stops.wait_for(|stops| *stops).await;
}

/// The output of `work`, or `None` if `end` completes first.
pub(super) async fn until<T>(
    end: impl Future<Output = ()>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let (mut end, mut work) = (pin!(end), pin!(work));
    poll_fn(|cx| match end.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => work.as_mut().poll(cx).map(Some),
    })
    .await
}
