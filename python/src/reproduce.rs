//! The experiments of the papers, with verdicts on their claims.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use quipu_study::reproduce::{
    Effort, Job, Place, Progress, Todo, choose, reproduce as judge_all, rules,
};

use crate::error;
use crate::policy::registry;
use crate::policy::session::Session;
use crate::run::Told;
use crate::running::with_policies;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(experiments, module)?)?;
    module.add_function(wrap_pyfunction!(reproduce, module)?)
}

/// The experiments of those names, all if there are none: ids, papers, figures, and what they show.
#[pyfunction]
fn experiments(names: Vec<String>) -> PyResult<Vec<(String, String, String, String)>> {
    let chosen = choose(&names).map_err(error::scenario)?;
    let told = chosen.into_iter().map(|(case, _)| {
        let experiment = &case.experiment;
        let (paper, figure) = (experiment.paper.to_string(), experiment.figure.clone());
        (case.id.clone(), paper, figure, experiment.title.clone())
    });
    Ok(told.collect())
}

/// Runs experiments into the folder `out`, and returns what came of each of their rules: CSV as `quipu reproduce
/// --format csv` prints it, and all that was judged as JSON.
#[pyfunction]
#[pyo3(signature = (names, out, *, force=false, jobs=None, quick=false, runs=None, settings=true, progress=None))]
#[expect(clippy::too_many_arguments, reason = "each is named where it is called")]
fn reproduce(
    py: Python<'_>,
    names: Vec<String>,
    out: PathBuf,
    force: bool,
    jobs: Option<usize>,
    quick: bool,
    runs: Option<u32>,
    settings: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let session = Session::new();
    let known = registry::current();
    let program = known.program()?;
    let effort = Effort { quick, runs, settings };
    let chosen = choose(&names).map_err(error::scenario)?;
    let jobs_planned: Result<Vec<Job>, _> = chosen
        .iter()
        .map(|(case, origin)| {
            Job::new(case.clone(), origin, effort, &known.registry, &program, None)
        })
        .collect();
    let planned = jobs_planned.map_err(error::scenario)?;
    let place = Place { out, force, jobs, deals: 0 };
    let todo = Todo::new(planned, &place).map_err(error::scenario)?;
    let counted = Told::new(progress, todo.runs());
    let made = AtomicUsize::new(0);
    let tell = |what: Progress<'_>| {
        if let Progress::Run = what {
            counted.tell(made.fetch_add(1, Ordering::Relaxed) + 1, &session);
        }
    };
    let stop = Arc::clone(session.stop());
    let (judged, ended) = with_policies(py, &session, || judge_all(todo, &place, &stop, &tell));
    ended?;
    let judged = judged.map_err(error::run)?;
    let json = serde_json::to_string(&judged).map_err(error::run)?;
    Ok((rules(&judged), json))
}
