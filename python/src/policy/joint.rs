//! Joint policies of Python: stream and path in one answer.

use pyo3::prelude::*;
use quipu_base::{Bytes, Offset};
use quipu_policy::{Ask, Decision, Event, Joint, Notes, PathKey, View};

use super::answer::{Wait, path_of, stream_of};
use super::callee::Callee;
use super::ready::Ready;

/// Pending bytes of a stream, on a path: from byte `from_byte` (`None`: the lowest pending one), at most `max_bytes`.
#[pyclass(frozen, module = "quipu")]
pub(crate) struct Send {
    path: Py<PyAny>,
    stream: Py<PyAny>,
    from_byte: Option<u64>,
    max_bytes: Option<u64>,
}

#[pymethods]
impl Send {
    #[new]
    #[pyo3(signature = (stream, path, *, from_byte=None, max_bytes=None))]
    fn new(
        stream: Py<PyAny>,
        path: Py<PyAny>,
        from_byte: Option<u64>,
        max_bytes: Option<u64>,
    ) -> Send {
        Send { path, stream, from_byte, max_bytes }
    }
}

/// An object with a method `decide(filling, view)`, and perhaps methods for events.
pub(crate) struct PythonJoint {
    callee: Callee,
    ready: Ready,
    decide: Py<PyAny>,
}

impl PythonJoint {
    /// The policy that `callee` is.
    pub(crate) fn new(py: Python<'_>, callee: Callee) -> PyResult<PythonJoint> {
        let decide = callee.required(py, "decide", "decide(self, filling, view)")?;
        Ok(PythonJoint { decide, ready: Ready::default(), callee })
    }
}

fn decision(answer: &Bound<'_, PyAny>, view: &View<'_>, ready: &Ready) -> PyResult<Decision> {
    let py = answer.py();
    if answer.is_none() {
        return Ok(Decision::Idle);
    }
    if let Ok(wait) = answer.cast::<Wait>() {
        let (until, on) = wait.get().read(py, view)?;
        return Ok(Decision::Wait { until, on });
    }
    if let Ok(send) = answer.cast::<Send>() {
        let send = send.get();
        return Ok(Decision::Send {
            path: path_of(send.path.bind(py), view)?,
            stream: stream_of(send.stream.bind(py), |id| ready.by_id(id))?,
            from: send.from_byte.map(Offset),
            max: send.max_bytes.map_or(Bytes::MAX, Bytes),
        });
    }
    Err(Callee::refuse(answer, "Send(stream, path), Wait(until_ns, on=path), or None"))
}

impl Joint for PythonJoint {
    fn decide(&mut self, ask: Ask, view: &View<'_>, _notes: &mut Notes) -> Decision {
        let filling = match ask {
            Ask::Packet => None,
            Ask::Fill { path, .. } => Some(path),
        };
        let (decide, ready) = (&self.decide, &self.ready);
        let answer = self.callee.ask(view, ready.keys(), |py, views| {
            let path = filling.map(|path: PathKey| path.id.0);
            decision(decide.call1(py, (path, views.view(py)))?.bind(py), view, ready)
        });
        // After an exception the run ends.
        answer.unwrap_or(Decision::Idle)
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.ready.on_event(event, view);
        self.callee.tell(event, view, self.ready.keys());
    }
}
