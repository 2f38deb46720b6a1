//! Congestion controllers of Python.

use std::sync::Arc;

use pyo3::prelude::*;
use quipu_base::{Bytes, Duration, Rate};
use quipu_policy::Controller;
use quipu_policy::congestion::{AckedInfo, LostInfo, PathChange, Peers, Published, SentInfo};

use super::callee::Callee;
use super::session::Session;

/// What happened on a path, as controllers see it: numbers that may be kept.
#[pyclass(frozen, module = "quipu", name = "CongestionEvent", get_all)]
pub(crate) struct CongestionEvent {
    /// When, in nanoseconds since the start of the run.
    now_ns: u64,
    /// Bytes sent, acknowledged or lost.
    bytes: u64,
    /// Bytes in flight on the path now.
    in_flight_bytes: u64,
    /// Whether application or policy limited sending, and not the window.
    is_limited: bool,
    /// Smoothed round-trip time in nanoseconds, of acknowledgements.
    srtt_ns: Option<u64>,
    /// Least round-trip time in nanoseconds, of acknowledgements.
    min_rtt_ns: Option<u64>,
    /// The sample of this acknowledgement in nanoseconds, if it gave one.
    latest_rtt_ns: Option<u64>,
    /// Delivery rate in bits per second as this acknowledgement shows it, if it does.
    rate_bps: Option<u64>,
    /// When the newest of the packets was sent, in nanoseconds since the start of the run.
    newest_sent_at_ns: u64,
    /// Whether losses show persistent congestion.
    is_persistent: bool,
}

impl CongestionEvent {
    const NONE: CongestionEvent = CongestionEvent {
        now_ns: 0,
        bytes: 0,
        in_flight_bytes: 0,
        is_limited: false,
        srtt_ns: None,
        min_rtt_ns: None,
        latest_rtt_ns: None,
        rate_bps: None,
        newest_sent_at_ns: 0,
        is_persistent: false,
    };
}

/// An object with attributes `cwnd_bytes`, perhaps `ssthresh_bytes` and `pacing_bps`, and methods `on_sent`, `on_acked`,
/// `on_lost`, `on_change`.
pub(crate) struct PythonController {
    callee: Callee,
    on_sent: Option<Py<PyAny>>,
    on_acked: Option<Py<PyAny>>,
    on_lost: Option<Py<PyAny>>,
    on_change: Option<Py<PyAny>>,
    published: Published,
}

impl PythonController {
    /// The controller that `object` is.
    pub(crate) fn new(
        object: Bound<'_, PyAny>,
        session: Arc<Session>,
    ) -> PyResult<PythonController> {
        let py = object.py();
        let callee = Callee::new(object, session)?;
        let mut controller = PythonController {
            on_sent: callee.method(py, "on_sent")?,
            on_acked: callee.method(py, "on_acked")?,
            on_lost: callee.method(py, "on_lost")?,
            on_change: callee.method(py, "on_change")?,
            published: Published::default(),
            callee,
        };
        controller.published = controller.read(py)?;
        Ok(controller)
    }

    /// What the object's attributes say.
    fn read(&self, py: Python<'_>) -> PyResult<Published> {
        let number = |name: &str| self.callee.attribute::<Option<f64>>(py, name);
        let whole = |value: f64| value.clamp(0.0, u64::MAX as f64) as u64;
        let Some(Some(cwnd)) = number("cwnd_bytes")? else {
            return Err(pyo3::exceptions::PyTypeError::new_err(
                "a congestion controller: expected an attribute cwnd_bytes, its window",
            ));
        };
        Ok(Published {
            cwnd: Bytes(whole(cwnd)),
            ssthresh: number("ssthresh_bytes")?.flatten().map(|bytes| Bytes(whole(bytes))),
            pacing_rate: number("pacing_bps")?
                .flatten()
                .map(|rate| Rate::from_bits_per_sec(whole(rate))),
            state: "python",
            ..Published::default()
        })
    }

    fn tell(&mut self, which: Which, what: CongestionEvent) {
        let method = match which {
            Which::Sent => &self.on_sent,
            Which::Acked => &self.on_acked,
            Which::Lost => &self.on_lost,
        };
        let Some(method) = method else { return };
        let published = self.callee.plain(|py| {
            method.call1(py, (what,))?;
            self.read(py)
        });
        self.published = published.unwrap_or(self.published);
    }
}

enum Which {
    Sent,
    Acked,
    Lost,
}

fn nanos(time: Option<Duration>) -> Option<u64> {
    time.map(Duration::as_nanos)
}

impl Controller for PythonController {
    fn on_sent(&mut self, sent: &SentInfo, _peers: &Peers<'_>) {
        let what = CongestionEvent {
            now_ns: sent.now.as_nanos(),
            bytes: sent.bytes.0,
            in_flight_bytes: sent.in_flight.0,
            is_limited: sent.limited,
            newest_sent_at_ns: sent.now.as_nanos(),
            ..CongestionEvent::NONE
        };
        self.tell(Which::Sent, what);
    }

    fn on_acked(&mut self, acked: &AckedInfo<'_>, _peers: &Peers<'_>) {
        let bytes = acked.packets.iter().map(|packet| packet.bytes.0).sum();
        let newest = acked.packets.iter().map(|packet| packet.sent_at.as_nanos()).max();
        let what = CongestionEvent {
            now_ns: acked.now.as_nanos(),
            bytes,
            in_flight_bytes: acked.in_flight.0,
            is_limited: acked.limited,
            srtt_ns: nanos(acked.srtt),
            min_rtt_ns: nanos(acked.min_rtt),
            latest_rtt_ns: nanos(acked.latest_rtt),
            rate_bps: acked.rate.map(|sample| sample.rate.bits_per_sec()),
            newest_sent_at_ns: newest.unwrap_or_default(),
            ..CongestionEvent::NONE
        };
        self.tell(Which::Acked, what);
    }

    fn on_lost(&mut self, lost: &LostInfo<'_>, _peers: &Peers<'_>) {
        let what = CongestionEvent {
            now_ns: lost.now.as_nanos(),
            bytes: lost.bytes.0,
            in_flight_bytes: lost.in_flight.0,
            newest_sent_at_ns: lost.newest_sent_at.as_nanos(),
            is_persistent: lost.persistent,
            ..CongestionEvent::NONE
        };
        self.tell(Which::Lost, what);
    }

    fn on_change(&mut self, change: PathChange, _peers: &Peers<'_>) {
        let Some(method) = &self.on_change else { return };
        let (name, number) = match change {
            PathChange::EcnCongestion { marks, .. } => ("ecn", marks),
            PathChange::Pto => ("pto", 0),
            PathChange::ApplicationLimited => ("limited", 0),
            PathChange::ReturnRoute => ("return_route", 0),
            PathChange::DatagramSize(bytes) => ("datagram_bytes", bytes.0),
            PathChange::PathMtu(bytes) => ("mtu_bytes", bytes.0),
            PathChange::SpuriousLoss { .. } => ("spurious_loss", 0),
            _ => return,
        };
        let published = self.callee.plain(|py| {
            method.call1(py, (name, number))?;
            self.read(py)
        });
        self.published = published.unwrap_or(self.published);
    }

    fn published(&self) -> Published {
        self.published
    }
}
