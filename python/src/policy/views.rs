//! What a decision may read, as objects of Python: copies of the engine's views, made for one call and used again.
//!
//! Whoever keeps one gets an exception: after the call it is expired, and if anybody still holds it the next call gets
//! new ones.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use quipu_base::Instant;
use quipu_policy::path::eligible;
use quipu_policy::{ConnView, Parcel, StreamKey, View};

use super::view::{ParcelObject, PathObject, StreamObject, expired};

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
            parcel: Py::new(py, ParcelObject::new())?,
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
            let eligible = may.next_if_eq(&path.key).is_some();
            self.paths[paths].borrow_mut(py).show(path, view.now, eligible);
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
        self.parcel.borrow_mut(py).show(parcel);
        self.parcel.bind(py).clone()
    }

    /// The call is over: whoever has kept an object finds it expired, now and later.
    pub(crate) fn expire(&mut self, py: Python<'_>) -> PyResult<()> {
        let (paths, streams) = self.shown;
        for path in &self.paths[..paths] {
            path.borrow_mut(py).expire();
        }
        for stream in &self.streams[..streams] {
            stream.borrow_mut(py).0 = None;
        }
        self.parcel.borrow_mut(py).expire();
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
