//! What a decision may read, as objects of Python: copies of the engine's views, made for one call and used again.
//!
//! Whoever keeps one gets an exception: after the call it is expired, and if anybody still holds it the next call gets
//! new ones.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use quipu_base::{Duration, Instant};
use quipu_policy::path::{eligible, is_promising, opens_by};
use quipu_policy::{
    Class, ConnView, Parcel, PathKey, PathState, PathStatus, PathView, StreamKey, StreamView, View,
};

use crate::error::ExpiredViewError;

/// Says that an object was used after its call.
fn expired<T>() -> PyResult<T> {
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
    fn new() -> PathObject {
        PathObject { path: None, now: Instant::ZERO, eligible: false }
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
pub(crate) struct StreamObject(Option<StreamView>);

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

/// What a decision may read.
#[pyclass(module = "quipu", name = "View")]
pub(crate) struct ViewObject {
    alive: bool,
    now: Instant,
    conn: ConnView,
    paths: Py<PyTuple>,
    streams: Py<PyTuple>,
}

impl ViewObject {
    fn read(&self) -> PyResult<&ViewObject> {
        if self.alive { Ok(self) } else { expired() }
    }
}

#[pymethods]
impl ViewObject {
    /// The present, in nanoseconds since the start of the run.
    #[getter]
    fn now_ns(&self) -> PyResult<u64> {
        Ok(self.read()?.now.as_nanos())
    }

    /// All paths, in order of identifier.
    #[getter]
    fn paths(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        Ok(self.read()?.paths.clone_ref(py))
    }

    /// The path of that identifier.
    fn path(&self, py: Python<'_>, id: u32) -> PyResult<Option<Py<PathObject>>> {
        for path in self.read()?.paths.bind(py).iter() {
            let path = path.cast_into::<PathObject>()?;
            if path.borrow().key()?.id.0 == id {
                return Ok(Some(path.unbind()));
            }
        }
        Ok(None)
    }

    /// The streams that have something to send, in order of arrival; empty for policies of paths and acknowledgements,
    /// which do not see them.
    #[getter]
    fn streams(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        Ok(self.read()?.streams.clone_ref(py))
    }

    /// Connection flow control left, in bytes.
    #[getter]
    fn credit_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.conn.credit.0)
    }

    /// Never-sent bytes buffered on all streams.
    #[getter]
    fn unsent_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.conn.unsent.0)
    }

    /// Bytes in flight over all paths.
    #[getter]
    fn in_flight_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.conn.in_flight.0)
    }

    /// Streams with something to send.
    #[getter]
    fn ready(&self) -> PyResult<u32> {
        Ok(self.read()?.conn.ready)
    }

    /// How many times connection credit stopped data.
    #[getter]
    fn window_blocked(&self) -> PyResult<u64> {
        Ok(self.read()?.conn.window_blocked)
    }
}

/// The objects that one policy gets, call after call.
pub(crate) struct Views {
    view: Py<ViewObject>,
    paths: Vec<Py<PathObject>>,
    streams: Vec<Py<StreamObject>>,
    parcel: Py<ParcelObject>,
    /// How many of `paths` and `streams` the view's tuples have.
    shown: (usize, usize),
}

impl Views {
    pub(crate) fn new(py: Python<'_>) -> PyResult<Views> {
        let none = || PyTuple::empty(py).unbind();
        let view = ViewObject {
            alive: false,
            now: Instant::ZERO,
            conn: ConnView::default(),
            paths: none(),
            streams: none(),
        };
        Ok(Views {
            view: Py::new(py, view)?,
            paths: Vec::new(),
            streams: Vec::new(),
            parcel: Py::new(py, ParcelObject(None))?,
            shown: (0, 0),
        })
    }

    /// Fills the objects from `view`, with the streams `ready`.
    pub(crate) fn fill(
        &mut self,
        py: Python<'_>,
        view: &View<'_>,
        ready: impl Iterator<Item = StreamKey>,
    ) -> PyResult<()> {
        let mut paths = 0;
        let mut may = eligible(view.paths).map(|path| path.key).peekable();
        for path in view.paths.iter() {
            if self.paths.len() == paths {
                self.paths.push(Py::new(py, PathObject::new())?);
            }
            let mut object = self.paths[paths].borrow_mut(py);
            object.now = view.now;
            object.eligible = may.next_if_eq(&path.key).is_some();
            match &mut object.path {
                Some(old) => old.clone_from(path),
                none => *none = Some(path.clone()),
            }
            paths += 1;
        }
        let mut streams = 0;
        for stream in ready.filter_map(|key| view.streams.get(key)) {
            if self.streams.len() == streams {
                self.streams.push(Py::new(py, StreamObject(None))?);
            }
            self.streams[streams].borrow_mut(py).0 = Some(stream.clone());
            streams += 1;
        }
        let mut object = self.view.borrow_mut(py);
        object.alive = true;
        object.now = view.now;
        object.conn.clone_from(view.conn);
        if self.shown != (paths, streams) {
            object.paths = PyTuple::new(py, &self.paths[..paths])?.unbind();
            object.streams = PyTuple::new(py, &self.streams[..streams])?.unbind();
            self.shown = (paths, streams);
        }
        Ok(())
    }

    /// The view that was filled.
    pub(crate) fn view<'py>(&self, py: Python<'py>) -> Bound<'py, ViewObject> {
        self.view.bind(py).clone()
    }

    /// `parcel` as an object.
    pub(crate) fn parcel<'py>(
        &self,
        py: Python<'py>,
        parcel: &Parcel<'_>,
    ) -> Bound<'py, ParcelObject> {
        self.parcel.borrow_mut(py).0 = Some(ParcelCopy {
            stream: parcel.stream,
            bytes: parcel.len.0,
            class: parcel.class,
            back_fits: parcel.back_fits,
        });
        self.parcel.bind(py).clone()
    }

    /// The call is over: whoever has kept an object finds it expired, now and later.
    pub(crate) fn expire(&mut self, py: Python<'_>) -> PyResult<()> {
        let (paths, streams) = self.shown;
        for path in &self.paths[..paths] {
            path.borrow_mut(py).path = None;
        }
        for stream in &self.streams[..streams] {
            stream.borrow_mut(py).0 = None;
        }
        self.parcel.borrow_mut(py).0 = None;
        self.view.borrow_mut(py).alive = false;
        if self.is_kept(py) {
            *self = Views::new(py)?;
        }
        Ok(())
    }

    /// Whether anybody else holds one of the objects.
    #[expect(deprecated, reason = "what replaces it is unsafe")]
    fn is_kept(&self, py: Python<'_>) -> bool {
        let (paths, streams) = self.shown;
        let view = self.view.borrow(py);
        // Each path and stream is in a list of ours and in a tuple of the view.
        self.view.get_refcnt(py) > 2
            || self.parcel.get_refcnt(py) > 1
            || view.paths.get_refcnt(py) > 1
            || view.streams.get_refcnt(py) > 1
            || self.paths[..paths].iter().any(|path| path.get_refcnt(py) > 2)
            || self.streams[..streams].iter().any(|stream| stream.get_refcnt(py) > 2)
    }
}
