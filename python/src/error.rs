//! The exceptions of the package.

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    quipu,
    ScenarioError,
    PyValueError,
    "A scenario, or a file that it names, is wrong: which field, its value, what was expected."
);
create_exception!(
    quipu,
    RunError,
    PyRuntimeError,
    "A run failed, or its results could not be written."
);
create_exception!(
    quipu,
    ExpiredViewError,
    PyRuntimeError,
    "A view, or what it gave out, was used after the call for which it was made."
);

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("ScenarioError", py.get_type::<ScenarioError>())?;
    module.add("RunError", py.get_type::<RunError>())?;
    module.add("ExpiredViewError", py.get_type::<ExpiredViewError>())
}

/// The scenario is wrong.
pub(crate) fn scenario(error: impl std::fmt::Display) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

/// A run failed.
pub(crate) fn run(error: impl std::fmt::Display) -> PyErr {
    RunError::new_err(error.to_string())
}
