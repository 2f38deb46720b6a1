//! Path policies of Python.

use std::iter::empty;

use pyo3::prelude::*;
use quipu_base::Bytes;
use quipu_policy::path::{IdleProbe, rest_unless_stuck};
use quipu_policy::{Choice, Event, Notes, Parcel, PathKey, PathPolicy, PathView, TakeBack, View};

use super::answer::{bytes_of, choice, path_of};
use super::callee::Callee;

/// An object with a method `select(parcel, view)`, and perhaps `fill`, `commit_limit`, `take_back` and methods for events.
pub(crate) struct PythonPath {
    callee: Callee,
    select: Py<PyAny>,
    fill: Option<Py<PyAny>>,
    commit_limit: Option<Py<PyAny>>,
    take_back: Option<Py<PyAny>>,
    stays: bool,
    probe: IdleProbe,
}

impl PythonPath {
    /// The policy that `callee` is. Paths that were idle for the time that its `probe_interval_ns` says get a PING,
    /// as with the policies that come with the program.
    pub(crate) fn new(py: Python<'_>, callee: Callee) -> PyResult<PythonPath> {
        let select = callee.required(py, "select", "select(self, parcel, view)")?;
        let interval = callee.attribute::<Option<u64>>(py, "probe_interval_ns")?;
        let probe = match interval.flatten() {
            Some(nanos) => IdleProbe::new(quipu_base::Duration::from_nanos(nanos)),
            None => IdleProbe::default(),
        };
        Ok(PythonPath {
            select,
            fill: callee.method(py, "fill")?,
            commit_limit: callee.method(py, "commit_limit")?,
            take_back: callee.method(py, "take_back")?,
            stays: callee.attribute::<bool>(py, "stays")?.unwrap_or(false),
            probe,
            callee,
        })
    }
}

impl PathPolicy for PythonPath {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, _notes: &mut Notes) -> Choice {
        let select = &self.select;
        let answer = self.callee.ask(view, empty(), |py, views| {
            let answer = select.call1(py, views.parcel_and_view(parcel))?;
            choice(answer.bind(py), view)
        });
        match answer {
            // Where nothing is in flight, only a pacer can be waited for.
            Some(Choice::None) | None => rest_unless_stuck(parcel, view),
            Some(choice) => choice,
        }
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.probe.on_event(event);
        self.callee.tell(event, view, empty());
    }

    fn fill(&mut self, path: PathKey, parcel: &Parcel<'_>, view: &View<'_>) -> bool {
        let Some(fill) = &self.fill else { return true };
        let answer = self.callee.ask(view, empty(), |py, views| {
            let answer = fill.call1(py, (path.id.0, views.parcel(py, parcel), views.view(py)))?;
            answer.bind(py).is_truthy()
        });
        answer.unwrap_or(true)
    }

    fn commit_limit(&self, _view: &View<'_>) -> Bytes {
        // Asked with the policy borrowed: it sees no view, as the limit seldom depends on one.
        let Some(limit) = &self.commit_limit else { return Bytes::ZERO };
        self.callee.plain(|py| bytes_of(limit.call0(py)?.bind(py))).unwrap_or(Bytes::ZERO)
    }

    fn take_back(&mut self, view: &View<'_>) -> TakeBack {
        let Some(take_back) = &self.take_back else { return TakeBack::Nothing };
        let answer = self.callee.ask(view, empty(), |py, views| {
            let answer = take_back.call1(py, (views.view(py),))?;
            let answer = answer.bind(py);
            if answer.is_none() {
                Ok(TakeBack::Nothing)
            } else if answer.extract::<&str>().is_ok_and(|text| text == "all") {
                Ok(TakeBack::All)
            } else {
                path_of(answer, view).map(TakeBack::Path)
            }
        });
        answer.unwrap_or(TakeBack::Nothing)
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.probe.due(view)
    }

    fn stays_on(&self, path: &PathView) -> bool {
        self.stays && path.srtt.is_some()
    }
}
