//! The figures of the report, each as a Vega-Lite specification, and the report itself.

use std::path::PathBuf;

use pyo3::prelude::*;
use quipu_record::write_whole;
use quipu_report::document::Document;
use quipu_report::page::{inline, page};
use quipu_report::{Options, report};
use quipu_study::replay::Replayer;

use crate::error;
use crate::policy::registry;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(figures, module)?)?;
    module.add_function(wrap_pyfunction!(write_report, module)?)
}

/// The figures of the folder's report: name, caption, and specification as JSON, with its data in it.
#[pyfunction]
fn figures(py: Python<'_>, folder: PathBuf) -> PyResult<Vec<(String, String, String)>> {
    let document = read(py, &folder)?;
    let figures = document.sections.iter().flat_map(|section| &section.figures);
    let told = figures.map(|figure| {
        let spec = serde_json::to_string(&inline(&document, figure)).map_err(error::run)?;
        Ok((figure.id.clone(), figure.caption.clone(), spec))
    });
    told.collect()
}

/// Writes the folder's report to `file`: one page of HTML that works offline. Returns what it could not show.
#[pyfunction]
fn write_report(py: Python<'_>, folder: PathBuf, file: PathBuf) -> PyResult<Vec<String>> {
    let document = read(py, &folder)?;
    write_whole(&file, page(&document))
        .map_err(|error| error::run(format!("cannot write {}: {error}", file.display())))?;
    Ok(document.notices)
}

fn read(py: Python<'_>, folder: &std::path::Path) -> PyResult<Document> {
    let known = registry::current();
    py.detach(|| report(folder, &Options::default(), &Replayer(&known.registry)))
        .map_err(error::scenario)
}
