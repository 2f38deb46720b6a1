//! Paths, streams and parcels as objects of Python: copies of the engine's views. Each is expired after the call for which
//! it was filled: [`Views`](super::views::Views).

use pyo3::prelude::*;
use quipu_base::{Duration, Instant};
use quipu_policy::path::{is_promising, opens_by};
use quipu_policy::{
    Class, Parcel, PathKey, PathState, PathStatus, PathView, StreamKey, StreamView,
};

use crate::error::ExpiredViewError;

/// Says that an object was used after its call.
pub(super) fn expired<T>() -> PyResult<T> {
    Err(ExpiredViewError::new_err(
        "this view was valid during the call that got it; copy the numbers that are to be kept",
    ))
}

fn nanos(time: Option<Duration>) -> Option<u64> {
    time.map(Duration::as_nanos)
}

/// One path, as the engine sees it now.
#[pyclass(module = "quipu", name = "PathView")]
pub(crate) struct PathObject {
    path: Option<PathView>,
    now: Instant,
    eligible: bool,
}

impl PathObject {
    /// One that shows nothing.
    pub(super) fn new() -> PathObject {
        PathObject { path: None, now: Instant::ZERO, eligible: false }
    }

    /// Shows `path` as it is `now`; `eligible` says whether data may take it.
    pub(super) fn show(&mut self, path: &PathView, now: Instant, eligible: bool) {
        (self.now, self.eligible) = (now, eligible);
        match &mut self.path {
            Some(old) => old.clone_from(path),
            none => *none = Some(path.clone()),
        }
    }

    pub(super) fn expire(&mut self) {
        self.path = None;
    }

    fn read(&self) -> PyResult<&PathView> {
        self.path.as_ref().map_or_else(expired, Ok)
    }

    pub(crate) fn key(&self) -> PyResult<PathKey> {
        self.read().map(|path| path.key)
    }
}

#[pymethods]
impl PathObject {
    /// Identifier of the path on the wire.
    #[getter]
    fn id(&self) -> PyResult<u32> {
        Ok(self.read()?.key.id.0)
    }

    /// `validating`, `usable`, `suspect` or `closing`.
    #[getter]
    fn state(&self) -> PyResult<&'static str> {
        Ok(match self.read()?.state {
            PathState::Validating => "validating",
            PathState::Usable => "usable",
            PathState::Suspect => "suspect",
            PathState::Closing => "closing",
        })
    }

    /// Whether an end asked that it be used only if no other can (PATH_STATUS_BACKUP).
    #[getter]
    fn is_backup(&self) -> PyResult<bool> {
        Ok(self.read()?.status == PathStatus::Backup)
    }

    /// Whether a data packet may leave on it now: it is usable, its window has room, and its pacer lets go.
    #[getter]
    fn is_open(&self) -> PyResult<bool> {
        Ok(self.read()?.is_open(self.now))
    }

    /// Whether data may take it, now or later: it is usable, and no backup that has to stay idle.
    #[getter]
    fn is_eligible(&self) -> PyResult<bool> {
        self.read()?;
        Ok(self.eligible)
    }

    /// Whether it can be expected to carry data soon.
    #[getter]
    fn is_promising(&self) -> PyResult<bool> {
        Ok(is_promising(self.read()?))
    }

    /// Packets sent on it so far.
    #[getter]
    fn packets_sent(&self) -> PyResult<u64> {
        Ok(self.read()?.packets_sent)
    }

    /// When the last packet left, in nanoseconds since the start of the run.
    #[getter]
    fn last_sent_at_ns(&self) -> PyResult<Option<u64>> {
        Ok(self.read()?.last_sent_at.map(Instant::as_nanos))
    }

    /// Probe timeouts in a row without an acknowledgement.
    #[getter]
    fn pto_count(&self) -> PyResult<u32> {
        Ok(self.read()?.pto_count)
    }

    /// Smoothed round-trip time in nanoseconds; `None` before the first sample.
    #[getter]
    fn srtt_ns(&self) -> PyResult<Option<u64>> {
        Ok(nanos(self.read()?.srtt))
    }

    /// Mean deviation of the round-trip time in nanoseconds.
    #[getter]
    fn rttvar_ns(&self) -> PyResult<u64> {
        Ok(self.read()?.rttvar.as_nanos())
    }

    /// Least round-trip time in nanoseconds; `None` before the first sample.
    #[getter]
    fn min_rtt_ns(&self) -> PyResult<Option<u64>> {
        Ok(nanos(self.read()?.min_rtt))
    }

    /// The last sample of the round-trip time in nanoseconds.
    #[getter]
    fn latest_rtt_ns(&self) -> PyResult<Option<u64>> {
        Ok(nanos(self.read()?.latest_rtt))
    }

    /// Congestion window in bytes.
    #[getter]
    fn cwnd_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.cwnd.0)
    }

    /// Slow-start threshold in bytes; `None` while it is infinite.
    #[getter]
    fn ssthresh_bytes(&self) -> PyResult<Option<u64>> {
        Ok(self.read()?.ssthresh.map(|bytes| bytes.0))
    }

    /// Bytes in flight.
    #[getter]
    fn in_flight_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.in_flight.0)
    }

    /// Congestion window less bytes in flight.
    #[getter]
    fn room_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.room().0)
    }

    /// The pacer lets nothing go before this, in nanoseconds since the start of the run.
    #[getter]
    fn release_at_ns(&self) -> PyResult<u64> {
        Ok(self.read()?.release_at.as_nanos())
    }

    /// When it should have opened, if it is closed: when its pacer lets go, or when its next acknowledgement is late; in
    /// nanoseconds since the start of the run. What `Wait` wants.
    #[getter]
    fn opens_by_ns(&self) -> PyResult<u64> {
        Ok(opens_by(self.read()?, self.now).as_nanos())
    }

    /// Delivery rate in bits per second; `None` while nothing has held sending back.
    #[getter]
    fn rate_bps(&self) -> PyResult<Option<u64>> {
        Ok(self.read()?.rate.map(|rate| rate.bits_per_sec()))
    }

    /// Share of packets lost, smoothed, in thousandths.
    #[getter]
    fn loss_permille(&self) -> PyResult<u16> {
        Ok(self.read()?.loss.0)
    }

    /// Stream bytes that fit one packet.
    #[getter]
    fn payload_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.payload.0)
    }

    fn __repr__(&self) -> String {
        match &self.path {
            None => "<PathView, expired>".to_owned(),
            Some(path) => format!(
                "<PathView {}: srtt {:?} ns, {} of {} bytes in flight>",
                path.key.id.0,
                nanos(path.srtt),
                path.in_flight.0,
                path.cwnd.0
            ),
        }
    }
}

/// One stream that can send.
#[pyclass(module = "quipu", name = "StreamView")]
pub(crate) struct StreamObject(pub(super) Option<StreamView>);

impl StreamObject {
    fn read(&self) -> PyResult<&StreamView> {
        self.0.as_ref().map_or_else(expired, Ok)
    }

    pub(crate) fn key(&self) -> PyResult<StreamKey> {
        self.read().map(|stream| stream.key)
    }
}

#[pymethods]
impl StreamObject {
    /// Identifier of the stream on the wire.
    #[getter]
    fn id(&self) -> PyResult<u64> {
        Ok(self.read()?.key.id.0)
    }

    /// Order of arrival, from zero, over the connection.
    #[getter]
    fn seq(&self) -> PyResult<u64> {
        Ok(self.read()?.seq)
    }

    /// When it was opened, in nanoseconds since the start of the run.
    #[getter]
    fn opened_at_ns(&self) -> PyResult<u64> {
        Ok(self.read()?.opened_at.as_nanos())
    }

    /// Total bytes, if the application told.
    #[getter]
    fn size_bytes(&self) -> PyResult<Option<u64>> {
        Ok(self.read()?.size.map(|bytes| bytes.0))
    }

    /// End of what the application wrote.
    #[getter]
    fn written_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.written.0)
    }

    /// End of what was ever sent.
    #[getter]
    fn sent_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.high_sent.0)
    }

    /// Pending bytes within stream credit: fresh, lost and skipped ones.
    #[getter]
    fn sendable_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.sendable.0)
    }

    /// Whether the application finished it.
    #[getter]
    fn is_finished(&self) -> PyResult<bool> {
        Ok(self.read()?.fin)
    }

    /// Urgency, 0 (most) to 7 (RFC 9218).
    #[getter]
    fn urgency(&self) -> PyResult<u8> {
        Ok(self.read()?.priority.urgency)
    }

    /// Whether parts of it are of use (RFC 9218).
    #[getter]
    fn is_incremental(&self) -> PyResult<bool> {
        Ok(self.read()?.priority.incremental)
    }

    fn __repr__(&self) -> String {
        match &self.0 {
            None => "<StreamView, expired>".to_owned(),
            Some(stream) => format!(
                "<StreamView {}: urgency {}, {} bytes to send>",
                stream.key.id.0, stream.priority.urgency, stream.sendable.0
            ),
        }
    }
}

/// What looks for a path.
#[pyclass(module = "quipu", name = "Parcel")]
pub(crate) struct ParcelObject(Option<ParcelCopy>);

struct ParcelCopy {
    stream: StreamKey,
    bytes: u64,
    class: Class,
    back_fits: bool,
}

impl ParcelObject {
    /// One that shows nothing.
    pub(super) fn new() -> ParcelObject {
        ParcelObject(None)
    }

    pub(super) fn show(&mut self, parcel: &Parcel<'_>) {
        self.0 = Some(ParcelCopy {
            stream: parcel.stream,
            bytes: parcel.len.0,
            class: parcel.class,
            back_fits: parcel.back_fits,
        });
    }

    pub(super) fn expire(&mut self) {
        self.0 = None;
    }

    fn read(&self) -> PyResult<&ParcelCopy> {
        self.0.as_ref().map_or_else(expired, Ok)
    }
}

#[pymethods]
impl ParcelObject {
    /// Identifier of the stream whose bytes they are.
    #[getter]
    fn stream(&self) -> PyResult<u64> {
        Ok(self.read()?.stream.id.0)
    }

    /// How many: at most one packet's worth.
    #[getter]
    fn bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.bytes)
    }

    /// Whether they were lost before; such bytes must not wait.
    #[getter]
    fn is_lost(&self) -> PyResult<bool> {
        Ok(matches!(self.read()?.class, Class::Lost { .. }))
    }

    /// Identifier of the path that lost them.
    #[getter]
    fn lost_on(&self) -> PyResult<Option<u32>> {
        Ok(match self.read()?.class {
            Class::Lost { origin } => Some(origin.id.0),
            _ => None,
        })
    }

    /// Whether the end of the stream's pending bytes may be sent in place of their start.
    #[getter]
    fn back_fits(&self) -> PyResult<bool> {
        Ok(self.read()?.back_fits)
    }
}
