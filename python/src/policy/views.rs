//! What a decision may read, as objects of Python: copies of the engine's views, made for one call and used again.
//!
//! Whoever keeps one gets an exception: if anybody still holds an object after the call, all are expired, and the next call
//! gets new ones. Objects that nobody holds need not be expired, as nobody can read them.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use quipu_policy::path::eligible;
use quipu_policy::{Parcel, StreamKey, View};

use super::shown::{Life, Number};
use super::view::{ParcelObject, PathObject, StreamObject};

/// What a decision may read.
#[pyclass(frozen, module = "quipu", name = "View")]
pub(crate) struct ViewObject {
    life: Life,
    now: Number,
    credit: Number,
    unsent: Number,
    in_flight: Number,
    ready: Number,
    window_blocked: Number,
    paths: Py<PyTuple>,
    streams: Py<PyTuple>,
}

impl ViewObject {
    /// One of these paths and streams, which shows nothing yet.
    fn new(paths: Py<PyTuple>, streams: Py<PyTuple>) -> ViewObject {
        ViewObject {
            life: Life::default(),
            now: Number::default(),
            credit: Number::default(),
            unsent: Number::default(),
            in_flight: Number::default(),
            ready: Number::default(),
            window_blocked: Number::default(),
            paths,
            streams,
        }
    }

    /// Shows what `view` says of the connection.
    fn show(&self, view: &View<'_>) {
        self.life.begin();
        self.now.set(view.now.as_nanos());
        self.credit.set(view.conn.credit.0);
        self.unsent.set(view.conn.unsent.0);
        self.in_flight.set(view.conn.in_flight.0);
        self.ready.set(view.conn.ready.into());
        self.window_blocked.set(view.conn.window_blocked);
    }

    fn read(&self) -> PyResult<&ViewObject> {
        self.life.check().map(|()| self)
    }
}

#[pymethods]
impl ViewObject {
    /// The present, in nanoseconds since the start of the run.
    #[getter]
    fn now_ns(&self) -> PyResult<u64> {
        Ok(self.read()?.now.get())
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
            if path.get().key()?.id.0 == id {
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
        Ok(self.read()?.credit.get())
    }

    /// Never-sent bytes buffered on all streams.
    #[getter]
    fn unsent_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.unsent.get())
    }

    /// Bytes in flight over all paths.
    #[getter]
    fn in_flight_bytes(&self) -> PyResult<u64> {
        Ok(self.read()?.in_flight.get())
    }

    /// Streams with something to send.
    #[getter]
    fn ready(&self) -> PyResult<u64> {
        Ok(self.read()?.ready.get())
    }

    /// How many times connection credit stopped data.
    #[getter]
    fn window_blocked(&self) -> PyResult<u64> {
        Ok(self.read()?.window_blocked.get())
    }
}

/// The objects that one policy gets, call after call.
pub(crate) struct Views {
    view: Py<ViewObject>,
    parcel: Py<ParcelObject>,
    /// Both, as arguments of `select`.
    both: Py<PyTuple>,
    paths: Vec<Py<PathObject>>,
    streams: Vec<Py<StreamObject>>,
    /// How many of `paths` and `streams` the view's tuples have.
    shown: (usize, usize),
}

impl Views {
    pub(crate) fn new(py: Python<'_>) -> PyResult<Views> {
        Views::of(py, Vec::new(), Vec::new(), (0, 0))
    }

    /// With a view of the first of these paths and streams, as many as `shown` says.
    fn of(
        py: Python<'_>,
        paths: Vec<Py<PathObject>>,
        streams: Vec<Py<StreamObject>>,
        shown: (usize, usize),
    ) -> PyResult<Views> {
        let seen = PyTuple::new(py, &paths[..shown.0])?.unbind();
        let ready = PyTuple::new(py, &streams[..shown.1])?.unbind();
        let view = Py::new(py, ViewObject::new(seen, ready))?;
        let parcel = Py::new(py, ParcelObject::default())?;
        let both = PyTuple::new(py, [parcel.as_any(), view.as_any()])?.unbind();
        Ok(Views { view, parcel, both, paths, streams, shown })
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
                self.paths.push(Py::new(py, PathObject::default())?);
            }
            let eligible = may.next_if_eq(&path.key).is_some();
            self.paths[paths].get().show(path, view.now, eligible);
            paths += 1;
        }
        let mut streams = 0;
        for stream in ready.filter_map(|key| view.streams.get(key)) {
            if self.streams.len() == streams {
                self.streams.push(Py::new(py, StreamObject::default())?);
            }
            self.streams[streams].get().show(stream);
            streams += 1;
        }
        if self.shown != (paths, streams) {
            let had = (std::mem::take(&mut self.paths), std::mem::take(&mut self.streams));
            *self = Views::of(py, had.0, had.1, (paths, streams))?;
        }
        self.view.get().show(view);
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
        self.parcel.get().show(parcel);
        self.parcel.bind(py).clone()
    }

    /// `parcel` as an object, and the view: the arguments of `select`.
    pub(crate) fn parcel_and_view(&self, parcel: &Parcel<'_>) -> &Py<PyTuple> {
        self.parcel.get().show(parcel);
        &self.both
    }

    /// The call is over: whoever has kept an object finds it expired, now and later.
    pub(crate) fn expire(&mut self, py: Python<'_>) -> PyResult<()> {
        if !self.is_kept(py) {
            return Ok(());
        }
        let (paths, streams) = self.shown;
        self.paths[..paths].iter().for_each(|path| path.get().life.end());
        self.streams[..streams].iter().for_each(|stream| stream.get().life.end());
        self.parcel.get().life.end();
        self.view.get().life.end();
        *self = Views::new(py)?;
        Ok(())
    }

    /// Whether anybody else holds one of the objects.
    #[expect(deprecated, reason = "what replaces it is unsafe")]
    fn is_kept(&self, py: Python<'_>) -> bool {
        let (paths, streams) = self.shown;
        let view = self.view.get();
        // View, parcel, paths and streams are each here and in a tuple. There is but one empty tuple, which all hold.
        self.view.get_refcnt(py) > 2
            || self.parcel.get_refcnt(py) > 2
            || self.both.get_refcnt(py) > 1
            || (paths > 0 && view.paths.get_refcnt(py) > 1)
            || (streams > 0 && view.streams.get_refcnt(py) > 1)
            || self.paths[..paths].iter().any(|path| path.get_refcnt(py) > 2)
            || self.streams[..streams].iter().any(|stream| stream.get_refcnt(py) > 2)
    }
}
