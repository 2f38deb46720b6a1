//! The `quipu` command, with the policies of Python that are registered.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::policy::registry;
use crate::policy::session::Session;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(command, module)?)
}

/// Runs the command with `arguments`, of which the first is its name, and returns its exit code. `started_by`, a file and
/// its first arguments, starts the command in a process of its own, as emulated links need it. An exception of a policy is
/// printed, and ends the process with 1.
#[pyfunction]
fn command(py: Python<'_>, started_by: Vec<OsString>, arguments: Vec<OsString>) -> u8 {
    Session::for_command();
    let known = registry::current();
    py.detach(|| quipu_cli::run_with_arguments(&known.registry, started_by, arguments))
}
