//! Paths, streams and parcels as objects of Python: copies of the engine's views. Each is expired after the call for which
//! it was filled: [`Views`](super::views::Views).

use pyo3::prelude::*;
use quipu_base::{Duration, Instant, PathId, StreamId};
use quipu_policy::path::{is_promising, opens_by};
use quipu_policy::{
    Class, Parcel, PathKey, PathState, PathStatus, PathView, StreamKey, StreamView,
};

use super::shown::{Flag, Life, Number, Perhaps};

fn nanos(time: Option<Duration>) -> Option<u64> {
    time.map(Duration::as_nanos)
}

/// What Python calls the states of paths, by number.
const STATES: [&str; 4] = ["validating", "usable", "suspect", "closing"];

/// Where the name of `state` is in [`STATES`].
fn number_of(state: PathState) -> usize {
    match state {
        PathState::Validating => 0,
        PathState::Usable => 1,
        PathState::Suspect => 2,
        PathState::Closing => 3,
    }
}

/// One path, as the engine sees it now.
#[pyclass(frozen, module = "quipu", name = "PathView")]
#[derive(Default)]
pub(crate) struct PathObject {
    pub(super) life: Life,
    slot: Number,
    id: Number,
    state: Number,
    is_backup: Flag,
    is_open: Flag,
    is_eligible: Flag,
    is_promising: Flag,
    packets_sent: Number,
    last_sent_at: Perhaps,
    pto_count: Number,
    srtt: Perhaps,
    rttvar: Number,
    min_rtt: Perhaps,
    latest_rtt: Perhaps,
    cwnd: Number,
    ssthresh: Perhaps,
    in_flight: Number,
    room: Number,
    release_at: Number,
    opens_by: Number,
    rate: Perhaps,
    loss: Number,
    payload: Number,
}

impl PathObject {
    /// Shows `path` as it is `now`; `eligible` says whether data may take it.
    pub(super) fn show(&self, path: &PathView, now: Instant, eligible: bool) {
        self.life.begin();
        self.slot.set(path.key.slot.into());
        self.id.set(path.key.id.0.into());
        self.state.set(number_of(path.state) as u64);
        self.is_backup.set(path.status == PathStatus::Backup);
        self.is_open.set(path.is_open(now));
        self.is_eligible.set(eligible);
        self.is_promising.set(is_promising(path));
        self.packets_sent.set(path.packets_sent);
        self.last_sent_at.set(path.last_sent_at.map(Instant::as_nanos));
        self.pto_count.set(path.pto_count.into());
        self.srtt.set(nanos(path.srtt));
        self.rttvar.set(path.rttvar.as_nanos());
        self.min_rtt.set(nanos(path.min_rtt));
        self.latest_rtt.set(nanos(path.latest_rtt));
        self.cwnd.set(path.cwnd.0);
        self.ssthresh.set(path.ssthresh.map(|bytes| bytes.0));
        self.in_flight.set(path.in_flight.0);
        self.room.set(path.room().0);
        self.release_at.set(path.release_at.as_nanos());
        self.opens_by.set(opens_by(path, now).as_nanos());
        self.rate.set(path.rate.map(|rate| rate.bits_per_sec()));
        self.loss.set(path.loss.0.into());
        self.payload.set(path.payload.0);
    }

    fn read(&self) -> PyResult<&PathObject> {
        self.life.check().map(|()| self)
    }

    pub(crate) fn key(&self) -> PyResult<PathKey> {
        let path = self.read()?;
        // Both were set from a key.
        Ok(PathKey { slot: path.slot.get() as u8, id: PathId(path.id.get() as u32) })
    }
}

#[pymethods]
impl PathObject {
    /// Identifier of the path on the wire.
    #[getter]
    fn id(&self) -> PyResult<u64> {
        Ok(self.read()?.id.get())
    }

    /// `validating`, `usable`, `suspect` or `closing`.
    #[getter]
    fn state(&self) -> PyResult<&'static str> {
        Ok(STATES[self.read()?.state.get() as usize])
    }

    /// Whether an end asked that it be used only if no other can (PATH_STATUS_BACKUP).
    #[getter]
    fn is_backup(&self) -> PyResult<bool> {
        Ok(self.read()?.is_backup.get())
    }

    /// Whether a data packet may leave on it now: it is usable, its window has room, and its pacer lets go.
    #[getter]
    fn is_open(&self) -> PyResult<bool> {
        Ok(self.read()?.is_open.get())
    }

    /// Whether data may take it, now or later: it is usable, and no backup that has to stay idle.
    #[getter]
    fn is_eligible(&self) -> PyResult<bool> {
        Ok(self.read()?.is_eligible.get())
    }

    /// Whether it can be expected to carry data soon.
    #[getter]
    fn is_promising(&self) -> PyResult<bool> {
        Ok(self.read()?.is_promising.get())
    }

    /// Packets sent on it so far.
    #[getter]
    fn packets_sent(&self) -> PyResult<u64> {
        Ok(self.read()?.packets_sent.get())
    }

    /// When the last packet left, in nanoseconds since the start of the run.
    #[getter]
    fn last_sent_at_ns(&self) -> PyResult<Option<u64>> {
        Ok(self.read()?.last_sent_at.get())
    }

    /// Probe timeouts in a row without an acknowledgement.
    #[getter]
    fn pto_count(&self) -> PyResult<u64> {
        Ok(self.read()?.pto_count.get())
    }

    /// Smoothed round-trip time in nanoseconds; `None` before the first sample.
    #[getter]
    fn srtt_ns(&self) -> PyResult<Option<u64>> {
        Ok(self.read()?.srtt.get())
    }

    /// Mean deviation of the round-trip time in nanoseconds.
    #[getter]
    fn rttvar_ns(&self) -> PyResult<u64> {
        Ok(self.read()?.rttvar.get())
    }

    /// Least round-trip time in nanoseconds; `None` before the first sample.
    #[getter]
    fn min_rtt_ns(&self) -> PyResult<Option<u64>> {
        Ok(self.read()?.min_rtt.get())
    }

    /// The last sample of the round-trip time in nanoseconds.
    #[getter]
    fn latest_rtt_ns(&self) -> PyResult<Option<u64>> {
        Ok(self.read()?.latest_rtt.get())
    }

    /// Congestion window in bytes.
    #[getter]
    fn cwnd_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.cwnd.get())
    }

    /// Slow-start threshold in bytes; `None` while it is infinite.
    #[getter]
    fn ssthresh_bytes(&self) -> PyResult<Option<u64>> {
        Ok(self.read()?.ssthresh.get())
    }

    /// Bytes in flight.
    #[getter]
    fn in_flight_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.in_flight.get())
    }

    /// Congestion window less bytes in flight.
    #[getter]
    fn room_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.room.get())
    }

    /// The pacer lets nothing go before this, in nanoseconds since the start of the run.
    #[getter]
    fn release_at_ns(&self) -> PyResult<u64> {
        Ok(self.read()?.release_at.get())
    }

    /// When it should have opened, if it is closed: when its pacer lets go, or when its next acknowledgement is late; in
    /// nanoseconds since the start of the run. What `Wait` wants.
    #[getter]
    fn opens_by_ns(&self) -> PyResult<u64> {
        Ok(self.read()?.opens_by.get())
    }

    /// Delivery rate in bits per second; `None` while nothing has held sending back.
    #[getter]
    fn rate_bps(&self) -> PyResult<Option<u64>> {
        Ok(self.read()?.rate.get())
    }

    /// Share of packets lost, smoothed, in thousandths.
    #[getter]
    fn loss_permille(&self) -> PyResult<u64> {
        Ok(self.read()?.loss.get())
    }

    /// Stream bytes that fit one packet.
    #[getter]
    fn payload_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.payload.get())
    }

    fn __repr__(&self) -> String {
        if !self.life.lasts() {
            return "<PathView, expired>".to_owned();
        }
        format!(
            "<PathView {}: srtt {:?} ns, {} of {} bytes in flight>",
            self.id.get(),
            self.srtt.get(),
            self.in_flight.get(),
            self.cwnd.get()
        )
    }
}

/// One stream that can send.
#[pyclass(frozen, module = "quipu", name = "StreamView")]
#[derive(Default)]
pub(crate) struct StreamObject {
    pub(super) life: Life,
    slot: Number,
    id: Number,
    seq: Number,
    opened_at: Number,
    size: Perhaps,
    written: Number,
    sent: Number,
    sendable: Number,
    is_finished: Flag,
    urgency: Number,
    is_incremental: Flag,
}

impl StreamObject {
    /// Shows `stream`.
    pub(super) fn show(&self, stream: &StreamView) {
        self.life.begin();
        self.slot.set(stream.key.slot.into());
        self.id.set(stream.key.id.0);
        self.seq.set(stream.seq);
        self.opened_at.set(stream.opened_at.as_nanos());
        self.size.set(stream.size.map(|bytes| bytes.0));
        self.written.set(stream.written.0);
        self.sent.set(stream.high_sent.0);
        self.sendable.set(stream.sendable.0);
        self.is_finished.set(stream.fin);
        self.urgency.set(stream.priority.urgency.into());
        self.is_incremental.set(stream.priority.incremental);
    }

    fn read(&self) -> PyResult<&StreamObject> {
        self.life.check().map(|()| self)
    }

    pub(crate) fn key(&self) -> PyResult<StreamKey> {
        let stream = self.read()?;
        // Both were set from a key.
        Ok(StreamKey { slot: stream.slot.get() as u32, id: StreamId(stream.id.get()) })
    }
}

#[pymethods]
impl StreamObject {
    /// Identifier of the stream on the wire.
    #[getter]
    fn id(&self) -> PyResult<u64> {
        Ok(self.read()?.id.get())
    }

    /// Order of arrival, from zero, over the connection.
    #[getter]
    fn seq(&self) -> PyResult<u64> {
        Ok(self.read()?.seq.get())
    }

    /// When it was opened, in nanoseconds since the start of the run.
    #[getter]
    fn opened_at_ns(&self) -> PyResult<u64> {
        Ok(self.read()?.opened_at.get())
    }

    /// Total bytes, if the application told.
    #[getter]
    fn size_bytes(&self) -> PyResult<Option<u64>> {
        Ok(self.read()?.size.get())
    }

    /// End of what the application wrote.
    #[getter]
    fn written_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.written.get())
    }

    /// End of what was ever sent.
    #[getter]
    fn sent_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.sent.get())
    }

    /// Pending bytes within stream credit: fresh, lost and skipped ones.
    #[getter]
    fn sendable_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.sendable.get())
    }

    /// Whether the application finished it.
    #[getter]
    fn is_finished(&self) -> PyResult<bool> {
        Ok(self.read()?.is_finished.get())
    }

    /// Urgency, 0 (most) to 7 (RFC 9218).
    #[getter]
    fn urgency(&self) -> PyResult<u64> {
        Ok(self.read()?.urgency.get())
    }

    /// Whether parts of it are of use (RFC 9218).
    #[getter]
    fn is_incremental(&self) -> PyResult<bool> {
        Ok(self.read()?.is_incremental.get())
    }

    fn __repr__(&self) -> String {
        if !self.life.lasts() {
            return "<StreamView, expired>".to_owned();
        }
        format!(
            "<StreamView {}: urgency {}, {} bytes to send>",
            self.id.get(),
            self.urgency.get(),
            self.sendable.get()
        )
    }
}

/// What looks for a path.
#[pyclass(frozen, module = "quipu", name = "Parcel")]
#[derive(Default)]
pub(crate) struct ParcelObject {
    pub(super) life: Life,
    stream: Number,
    bytes: Number,
    lost_on: Perhaps,
    back_fits: Flag,
}

impl ParcelObject {
    /// Shows `parcel`.
    pub(super) fn show(&self, parcel: &Parcel<'_>) {
        self.life.begin();
        self.stream.set(parcel.stream.id.0);
        self.bytes.set(parcel.len.0);
        self.lost_on.set(match parcel.class {
            Class::Lost { origin } => Some(origin.id.0.into()),
            _ => None,
        });
        self.back_fits.set(parcel.back_fits);
    }

    fn read(&self) -> PyResult<&ParcelObject> {
        self.life.check().map(|()| self)
    }
}

#[pymethods]
impl ParcelObject {
    /// Identifier of the stream whose bytes they are.
    #[getter]
    fn stream(&self) -> PyResult<u64> {
        Ok(self.read()?.stream.get())
    }

    /// How many: at most one packet's worth.
    #[getter]
    fn bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.bytes.get())
    }

    /// Whether they were lost before; such bytes must not wait.
    #[getter]
    fn is_lost(&self) -> PyResult<bool> {
        Ok(self.read()?.lost_on.get().is_some())
    }

    /// Identifier of the path that lost them.
    #[getter]
    fn lost_on(&self) -> PyResult<Option<u64>> {
        Ok(self.read()?.lost_on.get())
    }

    /// Whether the end of the stream's pending bytes may be sent in place of their start.
    #[getter]
    fn back_fits(&self) -> PyResult<bool> {
        Ok(self.read()?.back_fits.get())
    }
}
