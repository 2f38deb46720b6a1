//! Counters and gauges of a server in the format of Prometheus.
//!
//! [`Metrics`] counts and renders; [`Scrape`] is a service that answers with the rendered text; a caller describes
//! QUIC paths with [`PathGauge`]. The renderer is [`prometheus_client`], re-exported in the version that is used
//! here.

mod paths;
mod scrape;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::Version;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{EncodeLabelSet, prometheus_text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

pub use self::paths::PathGauge;
pub use self::scrape::Scrape;
pub use prometheus_client;

use self::paths::Paths;

/// Upper bounds of the buckets of durations, in seconds. Our choice: from a cached file over loopback to a large
/// file over a slow link.
const DURATIONS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// The transport of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// HTTP/3 over QUIC.
    Quic,
    /// HTTP/1.1 and HTTP/2 over TCP.
    Tcp,
}

impl Transport {
    fn labels(self) -> OfTransport {
        let transport = match self {
            Transport::Quic => "quic",
            Transport::Tcp => "tcp",
        };
        OfTransport { transport }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTransport {
    transport: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfVersion {
    version: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfResponse {
    version: &'static str,
    status: &'static str,
}

/// The metrics of a server. Clones share their values.
///
/// | name | labels | what |
/// | --- | --- | --- |
/// | `quipu_http_requests_total` | `version` 1.0, 1.1, 2 or 3; `status` 1xx to 5xx, or `none` if the client left before the response | requests whose responses have ended |
/// | `quipu_http_response_bytes_total` | `version` | bytes of response bodies passed to the transport |
/// | `quipu_http_request_duration_seconds` | `version` | histogram of the time from the request to the end of the response |
/// | `quipu_connections` | `transport` tcp or quic | open connections |
/// | `quipu_connections_opened_total` | `transport` | connections so far |
///
/// [`add_paths`](Self::add_paths) and [`add`](Self::add) add more.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<RwLock<Registry>>,
    requests: Family<OfResponse, Counter>,
    bytes: Family<OfVersion, Counter>,
    durations: Family<OfVersion, Histogram>,
    connections: Family<OfTransport, Gauge>,
    opened: Family<OfTransport, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// New metrics, all zero.
    pub fn new() -> Self {
        let metrics = Metrics {
            registry: Arc::default(),
            requests: Family::default(),
            bytes: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(DURATIONS)),
            connections: Family::default(),
            opened: Family::default(),
        };
        metrics.register();
        // Gauges are visible before the first connection.
        for transport in [Transport::Quic, Transport::Tcp] {
            let labels = transport.labels();
            metrics.connections.get_or_create(&labels).set(0);
            metrics.opened.get_or_create(&labels).inc_by(0);
        }
        metrics
    }

    fn register(&self) {
        let mut registry = self.registry.write().unwrap_or_else(PoisonError::into_inner);
        registry.register(
            "quipu_http_requests",
            "Requests whose responses have ended, by class of status",
            self.requests.clone(),
        );
        registry.register(
            "quipu_http_response_bytes",
            "Bytes of the bodies of responses",
            self.bytes.clone(),
        );
        registry.register_with_unit(
            "quipu_http_request_duration",
            "From the request to the end of the response",
            Unit::Seconds,
            self.durations.clone(),
        );
        registry.register(
            "quipu_connections",
            "Connections that are open",
            self.connections.clone(),
        );
        registry.register(
            "quipu_connections_opened",
            "Connections that were opened",
            self.opened.clone(),
        );
    }

    /// Adds metrics per connection and path. `read` is called for each rendering and returns the current paths; it
    /// must not block. See [`PathGauge`] for the metrics.
    pub fn add_paths(&self, read: impl Fn() -> Vec<PathGauge> + Send + Sync + 'static) {
        self.add(Paths::new(read));
    }

    /// Adds any collector of [`prometheus_client`].
    pub fn add(&self, collector: impl Collector) {
        let mut registry = self.registry.write().unwrap_or_else(PoisonError::into_inner);
        registry.register_collector(Box::new(collector));
    }

    /// Counts a connection as open until the returned guard is dropped.
    #[must_use]
    pub fn open_connection(&self, transport: Transport) -> OpenConnection {
        let labels = transport.labels();
        self.opened.get_or_create(&labels).inc();
        let open = self.connections.get_or_create_owned(&labels);
        open.inc();
        OpenConnection(open)
    }

    /// Counts a request whose response has ended.
    pub(crate) fn on_response(
        &self,
        version: Version,
        status: Option<u16>,
        bytes: u64,
        lasted: Duration,
    ) {
        let version = name(version);
        let status = class(status);
        self.requests.get_or_create(&OfResponse { version, status }).inc();
        self.bytes.get_or_create(&OfVersion { version }).inc_by(bytes);
        self.durations.get_or_create(&OfVersion { version }).observe(lasted.as_secs_f64());
    }

    /// Renders all metrics in the text format of Prometheus, version 0.0.4. The order of the label sets of a metric
    /// is unspecified. <https://prometheus.io/docs/instrumenting/exposition_formats/>
    pub fn render(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.read().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = prometheus_text::encode(&mut text, &registry) {
            tracing::error!(target: "quipu_serve", %error, "metrics cannot be rendered");
        }
        text
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// Counts one connection as open: see [`Metrics::open_connection`].
#[derive(Debug)]
pub struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn name(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "0.9",
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    }
}

/// The class of a status, so that the label has few values.
fn class(status: Option<u16>) -> &'static str {
    match status {
        None => "none",
        Some(100..200) => "1xx",
        Some(200..300) => "2xx",
        Some(300..400) => "3xx",
        Some(400..500) => "4xx",
        Some(_) => "5xx",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(metrics: &Metrics, line: &str) -> bool {
        let text = metrics.render();
        let found = text.lines().any(|other| other == line);
        assert!(found, "no {line:?} in:\n{text}");
        found
    }

    #[test]
    fn requests_are_counted_by_version_and_class() {
        let metrics = Metrics::new();
        for status in [200, 206, 404] {
            metrics.on_response(Version::HTTP_3, Some(status), 10, Duration::from_millis(2));
        }
        metrics.on_response(Version::HTTP_11, None, 0, Duration::from_secs(100));
        has(&metrics, "quipu_http_requests_total{version=\"3\",status=\"2xx\"} 2");
        has(&metrics, "quipu_http_requests_total{version=\"3\",status=\"4xx\"} 1");
        has(&metrics, "quipu_http_requests_total{version=\"1.1\",status=\"none\"} 1");
        has(&metrics, "quipu_http_response_bytes_total{version=\"3\"} 30");
        let bucket = "quipu_http_request_duration_seconds_bucket";
        has(&metrics, &format!("{bucket}{{version=\"3\",le=\"0.001\"}} 0"));
        has(&metrics, &format!("{bucket}{{version=\"3\",le=\"0.0025\"}} 3"));
        has(&metrics, &format!("{bucket}{{version=\"1.1\",le=\"60\"}} 0"));
        has(&metrics, &format!("{bucket}{{version=\"1.1\",le=\"+Inf\"}} 1"));
    }

    #[test]
    fn connections_are_open_until_they_are_dropped() {
        let metrics = Metrics::new();
        let first = metrics.open_connection(Transport::Tcp);
        let second = metrics.open_connection(Transport::Tcp);
        let third = metrics.open_connection(Transport::Quic);
        has(&metrics, "quipu_connections{transport=\"tcp\"} 2");
        has(&metrics, "quipu_connections{transport=\"quic\"} 1");
        drop((first, second, third));
        has(&metrics, "quipu_connections{transport=\"tcp\"} 0");
        has(&metrics, "quipu_connections_opened_total{transport=\"tcp\"} 2");
    }
}
