//! Gauges by connection and path.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use quipu_base::{Bytes, PathId};
use quipu_tokio::PathInfo;

/// The state of one path of a QUIC connection. Each field becomes a metric `quipu_path_...` with the labels
/// `connection`, `path` and, if known, `interface`.
#[derive(Clone, Debug, PartialEq)]
pub struct PathGauge {
    /// Name of the connection, constant for its lifetime.
    pub connection: String,
    /// Identifier of the path within the connection.
    pub path: PathId,
    /// Name of the local interface.
    pub interface: Option<String>,
    /// Smoothed round-trip time, as `quipu_path_rtt_seconds`; omitted while `None`.
    pub rtt: Option<Duration>,
    /// Congestion window, as `quipu_path_cwnd_bytes`.
    pub cwnd: Bytes,
    /// Bytes in flight, as `quipu_path_in_flight_bytes`.
    pub in_flight: Bytes,
    /// Bytes sent so far, as `quipu_path_sent_bytes_total`.
    pub sent: Bytes,
    /// Bytes received so far, as `quipu_path_received_bytes_total`.
    pub received: Bytes,
    /// Packets sent so far, as `quipu_path_sent_packets_total`.
    pub packets: u64,
    /// Packets declared lost so far, as `quipu_path_lost_packets_total`.
    pub lost: u64,
}

impl PathGauge {
    /// The state of `path`, of the connection named `connection`.
    pub fn of(connection: &str, path: &PathInfo) -> Self {
        let counters = path.sample.counters;
        PathGauge {
            connection: connection.to_owned(),
            path: path.id,
            interface: path.interface.clone(),
            rtt: path.sample.srtt.map(|rtt| Duration::from_nanos(rtt.as_nanos())),
            cwnd: path.sample.cwnd,
            in_flight: path.sample.in_flight,
            sent: Bytes(counters.bytes_sent),
            received: Bytes(counters.bytes_received),
            packets: counters.packets_sent,
            lost: counters.packets_lost,
        }
    }

    fn labels(&self) -> Vec<(&'static str, String)> {
        let mut labels =
            vec![("connection", self.connection.clone()), ("path", self.path.0.to_string())];
        labels.extend(self.interface.iter().map(|name| ("interface", name.clone())));
        labels
    }
}

/// Collects the paths whenever metrics are rendered.
pub(super) struct Paths<F>(F);

impl<F: Fn() -> Vec<PathGauge>> Paths<F> {
    pub(super) fn new(read: F) -> Self {
        Paths(read)
    }
}

impl<F> fmt::Debug for Paths<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paths").finish_non_exhaustive()
    }
}

/// Name, help and value of a gauge.
type GaugeOf = (&'static str, &'static str, fn(&PathGauge) -> Option<f64>);

const GAUGES: [GaugeOf; 3] = [
    ("quipu_path_rtt_seconds", "Smoothed round-trip time", |path| {
        path.rtt.map(|rtt| rtt.as_secs_f64())
    }),
    ("quipu_path_cwnd_bytes", "Congestion window", |path| Some(path.cwnd.0 as f64)),
    ("quipu_path_in_flight_bytes", "Bytes in flight", |path| Some(path.in_flight.0 as f64)),
];

/// Name, help and value of a counter, without the ending of the name.
type CounterOf = (&'static str, &'static str, fn(&PathGauge) -> u64);

const COUNTERS: [CounterOf; 4] = [
    ("quipu_path_sent_bytes", "Bytes sent", |path| path.sent.0),
    ("quipu_path_received_bytes", "Bytes received", |path| path.received.0),
    ("quipu_path_sent_packets", "Packets sent", |path| path.packets),
    ("quipu_path_lost_packets", "Packets declared lost", |path| path.lost),
];

impl<F> Collector for Paths<F>
where
    F: Fn() -> Vec<PathGauge> + Send + Sync + 'static,
{
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let paths = (self.0)();
        for (name, help, value) in GAUGES {
            let kind = ConstGauge::new(0.0).metric_type();
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            for path in &paths {
                let Some(value) = value(path) else { continue };
                ConstGauge::new(value).encode(metric.encode_family(&path.labels())?)?;
            }
        }
        for (name, help, value) in COUNTERS {
            let kind = ConstCounter::new(0_u64).metric_type();
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            for path in &paths {
                ConstCounter::new(value(path)).encode(metric.encode_family(&path.labels())?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::Metrics;

    fn path(id: u32) -> PathGauge {
        PathGauge {
            connection: "a\"b".to_owned(),
            path: PathId(id),
            interface: (id == 1).then(|| "wlan0".to_owned()),
            rtt: (id == 1).then(|| Duration::from_millis(25)),
            cwnd: Bytes(12_000),
            in_flight: Bytes(1_200),
            sent: Bytes(1 << 40),
            received: Bytes(3),
            packets: 4,
            lost: 5,
        }
    }

    #[test]
    fn paths_are_read_for_each_rendering() {
        let paths = Arc::new(Mutex::new(vec![path(0), path(1)]));
        let metrics = Metrics::new();
        let shared = Arc::clone(&paths);
        metrics.add_paths(move || shared.lock().unwrap().clone());
        let text = metrics.render();
        for line in [
            "# TYPE quipu_path_rtt_seconds gauge",
            "quipu_path_rtt_seconds{connection=\"a\\\"b\",path=\"1\",interface=\"wlan0\"} 0.025",
            "quipu_path_cwnd_bytes{connection=\"a\\\"b\",path=\"0\"} 12000.0",
            "# TYPE quipu_path_sent_bytes_total counter",
            "quipu_path_sent_bytes_total{connection=\"a\\\"b\",path=\"0\"} 1099511627776",
            "quipu_path_lost_packets_total{connection=\"a\\\"b\",path=\"0\"} 5",
        ] {
            assert!(text.lines().any(|other| other == line), "no {line:?} in:\n{text}");
        }
        assert!(!text.contains("rtt_seconds{connection=\"a\\\"b\",path=\"0\"}"), "{text}");
        paths.lock().unwrap().clear();
        assert!(!metrics.render().contains("connection="));
    }
}
