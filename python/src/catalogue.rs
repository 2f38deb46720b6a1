//! What comes with the program, by name.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use quipu_lab::pages;
use quipu_lab::policies::{check, explain};
use quipu_policy::registry::Layer;

use crate::error;
use crate::policy::registry;
use crate::policy::session::Session;
use crate::running::with_policies;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(builtin_pages, module)?)?;
    module.add_function(wrap_pyfunction!(builtin_networks, module)?)?;
    module.add_function(wrap_pyfunction!(builtin_traces, module)?)?;
    module.add_function(wrap_pyfunction!(builtin_browsers, module)?)?;
    module.add_function(wrap_pyfunction!(policies, module)?)?;
    module.add_function(wrap_pyfunction!(describe_policy, module)?)?;
    module.add_function(wrap_pyfunction!(check_policy, module)?)?;
    module.add_function(wrap_pyfunction!(resolve_field, module)?)
}

/// The pages that come with the program: names and what they are.
#[pyfunction]
fn builtin_pages() -> Vec<(String, String)> {
    pages::builtin_pages().map(|(name, about)| (name.to_string(), about.to_string())).collect()
}

/// The networks that come with the program: names, paths in words, and where they are from.
#[pyfunction]
fn builtin_networks() -> Vec<(String, Vec<String>, String)> {
    let networks = quipu_scenario::builtin_networks().into_iter();
    let told = networks.map(|network| {
        let paths = network.paths.iter().map(|path| path.summary()).collect();
        (network.name, paths, network.about)
    });
    told.collect()
}

/// The recordings of links that come with the program: names and what they are.
#[pyfunction]
fn builtin_traces() -> Vec<(String, String)> {
    let traces = quipu_scenario::builtin_traces().into_iter();
    traces.map(|trace| (trace.name.to_owned(), trace.about.to_owned())).collect()
}

/// The browsers that pages can be loaded with: names and what they are.
#[pyfunction]
fn builtin_browsers() -> Vec<(String, String)> {
    pages::browsers().map(|(name, _, about)| (name.to_owned(), about)).collect()
}

/// All policies, or those of one layer: layer, name, what it does, where it is from, and whether it is a class of
/// Python.
#[pyfunction]
fn policies(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let known = registry::current();
    let mut all = Vec::new();
    for entry in Layer::ALL.iter().flat_map(|layer| known.registry.of(*layer)) {
        let told = PyDict::new(py);
        told.set_item("layer", entry.layer.name())?;
        told.set_item("name", entry.name)?;
        told.set_item("about", entry.about)?;
        told.set_item("source", entry.source)?;
        told.set_item("is_python", !known.registry.is_builtin(entry))?;
        all.push(told);
    }
    Ok(all)
}

/// Everything about the policies of that name, as `quipu schedulers NAME` prints it.
#[pyfunction]
fn describe_policy(name: &str) -> PyResult<String> {
    explain(&registry::current().registry, name).map_err(error::scenario)
}

/// How a policy stood the suite: its layer, decisions, refused answers, and what went against the rules.
type Held = (String, u64, u64, Vec<String>);

/// Holds the policies that `text` names to the rules of the seam, in `scripts` random scripts: for each layer its name, how
/// many decisions were made, how many answers were refused, and what went against the rules.
#[pyfunction]
fn check_policy(py: Python<'_>, text: &str, scripts: u32) -> PyResult<Vec<Held>> {
    let session = Session::new();
    let known = registry::current();
    let (checked, ended) =
        with_policies(py, &session, || session.enter(|| check(&known.registry, text, scripts)));
    ended?;
    let checked = checked.map_err(error::scenario)?;
    let told = checked.into_iter().map(|(layer, verdict)| {
        (layer.name().to_owned(), verdict.decisions, verdict.refused, verdict.faults)
    });
    Ok(told.collect())
}

/// The whole path of the field `name` of scenarios, which may be the last part of it.
#[pyfunction]
fn resolve_field(name: &str) -> PyResult<String> {
    quipu_scenario::resolve_field(name).map_err(error::scenario)
}
