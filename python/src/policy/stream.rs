//! Stream policies of Python.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use quipu_policy::{Event, Kind, Notes, StreamPolicy, Turn, View};

use super::answer::{bytes_of, stream_of};
use super::callee::Callee;
use super::event::kind;
use super::ready::Ready;

/// An object with a method `next(view)`, and perhaps `on_taken`, `on_returned`, `order` and methods for events.
pub(crate) struct PythonStream {
    callee: Callee,
    ready: Ready,
    next: Py<PyAny>,
    on_taken: Option<Py<PyAny>>,
    on_returned: Option<Py<PyAny>>,
    order: Option<Py<PyAny>>,
}

impl PythonStream {
    /// The policy that `callee` is.
    pub(crate) fn new(py: Python<'_>, callee: Callee) -> PyResult<PythonStream> {
        Ok(PythonStream {
            next: callee.required(py, "next", "next(self, view)")?,
            on_taken: callee.method(py, "on_taken")?,
            on_returned: callee.method(py, "on_returned")?,
            order: callee.method(py, "order")?,
            ready: Ready::default(),
            callee,
        })
    }
}

/// The turn that a policy answered with: a stream, or a stream and bytes, or none.
fn turn(answer: &Bound<'_, PyAny>, ready: &Ready) -> PyResult<Option<Turn>> {
    if answer.is_none() {
        return Ok(None);
    }
    if let Ok(pair) = answer.cast::<PyTuple>()
        && pair.len() == 2
    {
        let stream = stream_of(&pair.get_item(0)?, |id| ready.by_id(id))?;
        return Ok(Some(Turn { stream, max: bytes_of(&pair.get_item(1)?)? }));
    }
    stream_of(answer, |id| ready.by_id(id)).map(|stream| Some(Turn::unlimited(stream)))
}

impl StreamPolicy for PythonStream {
    fn next(&mut self, view: &View<'_>, _notes: &mut Notes) -> Option<Turn> {
        let (next, ready) = (&self.next, &self.ready);
        let answer = self.callee.ask(view, ready.keys(), |py, views| {
            turn(next.call1(py, (views.view(py),))?.bind(py), ready)
        });
        // After an exception the run ends; until then streams go as they came.
        answer.unwrap_or_else(|| ready.keys().next().map(Turn::unlimited))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.ready.on_event(event, view);
        self.callee.tell(event, view, self.ready.keys());
    }

    fn on_taken(&mut self, turn: Turn, why: Kind, view: &View<'_>) {
        let Some(on_taken) = &self.on_taken else { return };
        self.callee.ask(view, self.ready.keys(), |py, views| {
            let what = (turn.stream.id.0, turn.max.0, kind(why), views.view(py));
            on_taken.call1(py, what).map(drop)
        });
    }

    fn on_returned(&mut self, turn: Turn, view: &View<'_>) {
        let Some(on_returned) = &self.on_returned else { return };
        self.callee.ask(view, self.ready.keys(), |py, views| {
            on_returned.call1(py, (turn.stream.id.0, turn.max.0, views.view(py))).map(drop)
        });
    }

    fn order(&self) -> u64 {
        let Some(order) = &self.order else { return 0 };
        self.callee.plain(|py| Ok(bytes_of(order.call0(py)?.bind(py))?.0)).unwrap_or(0)
    }
}
