//! HTTP/3, and HTTP/2 over QUIC streams: the same services over QUIC, over as many paths as a client opens.

mod body;
mod connection;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Response};
use quipu_tokio::http3::{ALPN, ErrorCode, HTTP2_ALPN, ServerConfig};
use quipu_tokio::{Connection, Endpoint};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower_service::Service;

pub use self::body::RequestBody;

use self::connection::serve;
use crate::body::Body;
use crate::metrics::{Metrics, PathGauge, Transport};

/// How long open exchanges have when a server stops; that of the server over TCP.
const STOP: Duration = Duration::from_secs(10);

/// The protocols that the server speaks, by their names in TLS: HTTP/3, and HTTP/2 over QUIC streams.
pub const ALPNS: [&[u8]; 2] = [ALPN, HTTP2_ALPN];

/// A server of HTTP/3, and of HTTP/2 over QUIC streams; not running yet.
pub struct Server<S> {
    endpoint: Endpoint,
    service: S,
    config: ServerConfig,
    metrics: Option<Metrics>,
    stop: Duration,
}

/// The connections that are open, with the names that metrics have for them.
type Open = Arc<Mutex<Vec<(u64, Connection)>>>;

impl<S> Server<S>
where
    S: Service<Request<RequestBody>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
{
    /// A server of what `endpoint` accepts. Its configuration is made with
    /// [`Certificates::quic`](crate::Certificates::quic), of [`ALPNS`] or those of them that it is to speak: each
    /// connection has the version that its client chose. Requests have the extension
    /// [`Client`](crate::Client).
    pub fn new(endpoint: Endpoint, service: S) -> Self {
        let config = ServerConfig { grease: grease(), ..ServerConfig::default() };
        Server { endpoint, service, config, metrics: None, stop: STOP }
    }

    /// The same with that configuration of HTTP/3. Its limits hold for HTTP/2, too.
    #[must_use]
    pub fn config(self, config: ServerConfig) -> Self {
        Server { config, ..self }
    }

    /// The same which counts its connections, and shows their paths.
    #[must_use]
    pub fn metrics(self, metrics: Metrics) -> Self {
        Server { metrics: Some(metrics), ..self }
    }

    /// The same whose open exchanges have so long when it stops.
    #[must_use]
    pub fn stop_within(self, stop: Duration) -> Self {
        Server { stop, ..self }
    }

    /// Accepts and serves connections until `stop` is ready. Then no more are accepted, clients are told
    /// to send no more requests, and connections are closed once those that came are answered, at the
    /// latest after [`stop_within`](Self::stop_within). Returns how many exchanges were cut then.
    ///
    /// Connections that fail harm no other one, and are told to `tracing` alone.
    pub async fn run(self, stop: impl Future<Output = ()>) -> usize {
        let Server { endpoint, service, config, metrics, stop: grace } = self;
        let (stopping, stops) = watch::channel(false);
        let open = Open::default();
        if let Some(metrics) = &metrics {
            let open = Arc::clone(&open);
            metrics.add_paths(move || gauges(&open));
        }
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        let mut number = 0;
        loop {
            let incoming = tokio::select! {
                biased;
                () = stop.as_mut() => break,
                incoming = endpoint.accept() => incoming,
            };
            let Some(incoming) = incoming else { break };
            while connections.try_join_next().is_some() {}
            number += 1;
            let (service, stops, open) = (service.clone(), stops.clone(), Arc::clone(&open));
            let counted = metrics.as_ref().map(|it| it.open_connection(Transport::Quic));
            connections.spawn(async move {
                let cut = match incoming.accept().await {
                    Ok(connection) => {
                        lock(&open).push((number, connection.clone()));
                        let cut = serve(connection, service, config, stops).await;
                        lock(&open).retain(|(other, _)| *other != number);
                        cut
                    }
                    Err(error) => {
                        tracing::debug!(target: "quipu_serve", %error, "a handshake failed");
                        0
                    }
                };
                drop(counted);
                cut
            });
        }
        stopping.send_replace(true);
        let mut cut = 0;
        let all = async {
            while let Some(ended) = connections.join_next().await {
                cut += ended.unwrap_or_default();
            }
        };
        if tokio::time::timeout(grace, all).await.is_err() {
            cut += connections.len();
        }
        connections.shutdown().await;
        endpoint.close(ErrorCode::NO_ERROR.0, b"");
        endpoint.wait_idle_for(quipu_base::Duration::from_secs(1)).await;
        cut
    }
}

fn lock(open: &Open) -> std::sync::MutexGuard<'_, Vec<(u64, Connection)>> {
    // A list is a list, whoever panicked.
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The paths of all connections, as they are.
fn gauges(open: &Open) -> Vec<PathGauge> {
    let connections = lock(open).clone();
    let of = |(number, connection): (u64, Connection)| {
        let name = number.to_string();
        connection.paths().iter().map(|path| PathGauge::of(&name, path)).collect::<Vec<_>>()
    };
    connections.into_iter().flat_map(of).collect()
}

/// A number for frames and settings that mean nothing; none if the host has no randomness.
fn grease() -> Option<u64> {
    let mut octets = [0; 8];
    let source = quipu_quic::tls::rustls::secure_source(&quipu_quic::tls::rustls::provider());
    source.fill(&mut octets).ok().map(|()| u64::from_le_bytes(octets))
}
