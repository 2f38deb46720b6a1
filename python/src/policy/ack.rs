//! Acknowledgement policies of Python.

use std::iter::empty;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use quipu_policy::{AckPolicy, AckRoute, Event, PathKey, PathSet, View};

use super::answer::path_of;
use super::callee::Callee;

/// An object with a method `route(path, view)`, and perhaps methods for events.
pub(crate) struct PythonAck {
    callee: Callee,
    route: Py<PyAny>,
    rides: bool,
}

impl PythonAck {
    /// The policy that `callee` is. Acknowledgements may ride on any packet that leaves sooner if its `rides` is true.
    pub(crate) fn new(py: Python<'_>, callee: Callee) -> PyResult<PythonAck> {
        let route = callee.required(py, "route", "route(self, path, view)")?;
        Ok(PythonAck { route, rides: callee.attribute(py, "rides")?.unwrap_or(false), callee })
    }
}

/// A path, or several.
fn paths(answer: &Bound<'_, PyAny>, view: &View<'_>) -> PyResult<PathSet> {
    if answer.is_instance_of::<PyList>() || answer.is_instance_of::<PyTuple>() {
        let mut on = PathSet::EMPTY;
        for path in answer.try_iter()? {
            on = on.with(path_of(&path?, view)?);
        }
        if !on.is_empty() {
            return Ok(on);
        }
        return Err(Callee::refuse(answer, "a path, or a list of at least one"));
    }
    path_of(answer, view).map(PathSet::only)
}

impl AckPolicy for PythonAck {
    fn route(&mut self, data: PathKey, view: &View<'_>) -> AckRoute {
        let route = &self.route;
        let answer = self.callee.ask(view, empty(), |py, views| {
            paths(route.call1(py, (data.id.0, views.view(py)))?.bind(py), view)
        });
        // After an exception the run ends; until then each path acknowledges its own.
        AckRoute { on: answer.unwrap_or(PathSet::only(data)), ride: self.rides }
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.callee.tell(event, view, empty());
    }
}
