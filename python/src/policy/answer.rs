//! What policies of Python answer.

use pyo3::prelude::*;
use quipu_base::{Bytes, Instant};
use quipu_policy::{Choice, PathKey, StreamKey, View};

use super::callee::Callee;
use super::view::{PathObject, StreamObject};

/// On this path, when its window opens; later bytes may go elsewhere now.
#[pyclass(frozen, module = "quipu")]
pub(crate) struct Later(Py<PyAny>);

/// On this path, now, from the end of the stream's pending bytes.
#[pyclass(frozen, module = "quipu")]
pub(crate) struct FromBack(Py<PyAny>);

/// Not yet: ask again at `until_ns`, or when something happens.
#[pyclass(frozen, module = "quipu")]
pub(crate) struct Wait {
    until: u64,
    on: Option<Py<PyAny>>,
}

#[pymethods]
impl Later {
    #[new]
    fn new(path: Py<PyAny>) -> Later {
        Later(path)
    }
}

#[pymethods]
impl FromBack {
    #[new]
    fn new(path: Py<PyAny>) -> FromBack {
        FromBack(path)
    }
}

#[pymethods]
impl Wait {
    #[new]
    #[pyo3(signature = (until_ns, on=None))]
    fn new(until_ns: u64, on: Option<Py<PyAny>>) -> Wait {
        Wait { until: until_ns, on }
    }
}

impl Wait {
    /// When to ask again, and which path is waited for.
    pub(crate) fn read(
        &self,
        py: Python<'_>,
        view: &View<'_>,
    ) -> PyResult<(Instant, Option<PathKey>)> {
        let on = self.on.as_ref().map(|path| path_of(path.bind(py), view)).transpose()?;
        Ok((Instant::from_nanos(self.until), on))
    }
}

/// The path that `value` is: a view of it, or its identifier.
pub(crate) fn path_of(value: &Bound<'_, PyAny>, view: &View<'_>) -> PyResult<PathKey> {
    if let Ok(path) = value.cast::<PathObject>() {
        return path.get().key();
    }
    let id = value.extract::<u32>().ok();
    let known = id.and_then(|id| view.paths.by_id(quipu_base::PathId(id)));
    known.map(|path| path.key).ok_or_else(|| {
        let ids: Vec<String> = view.paths.iter().map(|path| path.key.id.0.to_string()).collect();
        let expected = format!("a path of the view, or its id, which is one of {}", ids.join(", "));
        Callee::refuse(value, &expected)
    })
}

/// The stream that `value` is: a view of it, or its identifier, which `known` has.
pub(crate) fn stream_of(
    value: &Bound<'_, PyAny>,
    known: impl Fn(u64) -> Option<StreamKey>,
) -> PyResult<StreamKey> {
    if let Ok(stream) = value.cast::<StreamObject>() {
        return stream.get().key();
    }
    let id = value.extract::<u64>().ok();
    id.and_then(known).ok_or_else(|| Callee::refuse(value, "a stream of the view, or its id"))
}

/// A number of bytes; what is negative or no number is refused.
pub(crate) fn bytes_of(value: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    value.extract::<u64>().map(Bytes).map_err(|_| Callee::refuse(value, "a number of bytes"))
}

/// The choice that a path policy answered with.
pub(crate) fn choice(value: &Bound<'_, PyAny>, view: &View<'_>) -> PyResult<Choice> {
    let py = value.py();
    if value.is_none() {
        return Ok(Choice::None);
    }
    if let Ok(path) = value.cast::<PathObject>() {
        return path.get().key().map(Choice::Now);
    }
    if let Ok(wait) = value.cast::<Wait>() {
        let (until, on) = wait.get().read(py, view)?;
        return Ok(Choice::Wait { until, on });
    }
    if let Ok(later) = value.cast::<Later>() {
        return path_of(later.get().0.bind(py), view).map(Choice::Later);
    }
    if let Ok(back) = value.cast::<FromBack>() {
        return path_of(back.get().0.bind(py), view).map(Choice::NowFromBack);
    }
    let id = value.extract::<u32>().is_ok();
    if id { path_of(value, view).map(Choice::Now) } else { Err(Callee::refuse(value, CHOICES)) }
}

const CHOICES: &str = "a path, Later(path), FromBack(path), Wait(until_ns, on=path), or None";
