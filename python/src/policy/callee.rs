//! A policy that is an object of Python, and how it is called.

use std::sync::Arc;

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use quipu_policy::{Event, StreamKey, View};

use super::event::{self, Handlers};
use super::session::Session;
use super::views::Views;

/// An object that is asked.
pub(crate) struct Callee {
    object: Py<PyAny>,
    session: Arc<Session>,
    handlers: Handlers,
    views: Views,
}

impl Callee {
    /// `object`, whose exceptions end the runs of `session`.
    pub(crate) fn new(object: Bound<'_, PyAny>, session: Arc<Session>) -> PyResult<Callee> {
        Ok(Callee {
            handlers: Handlers::of(&object)?,
            views: Views::new(object.py())?,
            object: object.unbind(),
            session,
        })
    }

    /// The method `name` of the object, bound to it; `None` if its class has none.
    pub(crate) fn method(&self, py: Python<'_>, name: &str) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.object.bind(py).getattr_opt(name)?.map(Bound::unbind))
    }

    /// The same for a method that the class has to have, written as `form`.
    pub(crate) fn required(&self, py: Python<'_>, name: &str, form: &str) -> PyResult<Py<PyAny>> {
        self.method(py, name)?.ok_or_else(|| {
            let class = self.object.bind(py).get_type();
            let class = class.name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
            PyTypeError::new_err(format!("class {class}: expected a method {form}"))
        })
    }

    /// The value of the attribute `name`, if there is one.
    pub(crate) fn attribute<'py, T: FromPyObjectOwned<'py>>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<Option<T>> {
        let found = self.object.bind(py).getattr_opt(name)?;
        found.map(|value| value.extract::<T>().map_err(Into::into)).transpose()
    }

    /// What `ask` gets from the object without a view; `None` once a policy has raised an exception.
    pub(crate) fn plain<T>(&self, ask: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.session.has_failed() {
            return None;
        }
        Python::attach(|py| match ask(py) {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.session.fail(error);
                None
            }
        })
    }

    /// What `ask` gets from the object, which sees `view` and the streams `ready`; `None` once a policy has raised an
    /// exception.
    pub(crate) fn ask<T>(
        &mut self,
        view: &View<'_>,
        ready: impl Iterator<Item = StreamKey>,
        ask: impl FnOnce(Python<'_>, &Views) -> PyResult<T>,
    ) -> Option<T> {
        if self.session.has_failed() {
            return None;
        }
        Python::attach(|py| {
            let answer = self.views.fill(py, view, ready).and_then(|()| ask(py, &self.views));
            let expired = self.views.expire(py);
            match answer.and_then(|answer| expired.map(|()| answer)) {
                Ok(answer) => Some(answer),
                Err(error) => {
                    self.session.fail(error);
                    None
                }
            }
        })
    }

    /// Tells the object what happened, if its class wants to know.
    pub(crate) fn tell(
        &mut self,
        event: &Event<'_>,
        view: &View<'_>,
        ready: impl Iterator<Item = StreamKey>,
    ) {
        if self.handlers.handler(event).is_none() || self.session.has_failed() {
            return;
        }
        Python::attach(|py| {
            let told = self.views.fill(py, view, ready).and_then(|()| {
                match self.handlers.handler(event) {
                    Some(handler) => {
                        event::call(py, handler, event, self.views.view(py).into_any())
                    }
                    None => Ok(()),
                }
            });
            let expired = self.views.expire(py);
            if let Err(error) = told.and(expired) {
                self.session.fail(error);
            }
        });
    }

    /// An answer that is none: what was expected in place of `value`.
    pub(crate) fn refuse(value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
        let shown = value.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
        let kind = value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "the policy answered {shown} of type {kind}; expected {expected}"
        ))
    }
}
