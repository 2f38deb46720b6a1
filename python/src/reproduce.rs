//! The experiments of the papers, with verdicts on their claims.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use quipu_scenario::experiment::Case;
use quipu_study::reproduce::{
    Effort, Job, Origin, Place, Progress, Todo, choose, reproduce as judge_all, rules,
};

use crate::error;
use crate::policy::registry;
use crate::policy::session::Session;
use crate::run::Told;
use crate::running::with_policies;
use crate::world::{Runs, World};

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
/// --format csv` prints it, and all that was judged as JSON. In an emulated world simulated runs come first, and the third is
/// what was judged of them.
#[pyfunction]
#[pyo3(signature = (names, out, *, world, force=false, jobs=None, quick=false, runs=None, settings=true, progress=None))]
#[expect(clippy::too_many_arguments, reason = "each is named where it is called")]
fn reproduce(
    py: Python<'_>,
    names: Vec<String>,
    out: PathBuf,
    mut world: World,
    force: bool,
    jobs: Option<usize>,
    quick: bool,
    runs: Option<u32>,
    settings: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String, Option<String>)> {
    let session = Session::new();
    let known = registry::current();
    let program = known.program()?;
    let effort = Effort { quick, runs, settings };
    let chosen = choose(&names).map_err(error::scenario)?;
    let planned = |runs: Option<&Runs>| {
        let maker = runs.map(Runs::maker);
        let job = |(case, origin): &(Case, Origin)| {
            Job::new(case.clone(), origin, effort, &known.registry, &program, maker.as_ref())
        };
        chosen.iter().map(job).collect::<Result<Vec<Job>, _>>().map_err(error::scenario)
    };
    let simulated = planned(None)?;
    simulated.iter().flat_map(Job::plans).try_for_each(|plan| world.check(plan, jobs))?;
    let place = |out| Place { out, force, jobs, deals: 0 };
    let Some(runs) = world.runs()? else {
        let (rules, json) = judged(py, &session, simulated, &place(out), progress)?;
        return Ok((rules, json, None));
    };
    // The same in the simulator, to compare with.
    let beside = place(out.join(quipu_cli::SIMULATED));
    let (_, there) = judged(py, &session, simulated, &beside, None)?;
    let emulated = judged(py, &session, planned(Some(&runs))?, &place(out.clone()), progress);
    runs.write(&out)?;
    let (rules, json) = emulated?;
    Ok((rules, json, Some(there)))
}

/// Makes the runs of `jobs`, judges them, and returns their rules as CSV, and all that was judged as JSON.
fn judged(
    py: Python<'_>,
    session: &Arc<Session>,
    jobs: Vec<Job>,
    place: &Place,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let todo = Todo::new(jobs, place).map_err(error::scenario)?;
    let counted = Told::new(progress, todo.runs());
    let made = AtomicUsize::new(0);
    let tell = |what: Progress<'_>| {
        if let Progress::Run = what {
            counted.tell(made.fetch_add(1, Ordering::Relaxed) + 1, session);
        }
    };
    let stop = Arc::clone(session.stop());
    let (judged, ended) = with_policies(py, session, || judge_all(todo, place, &stop, &tell));
    ended?;
    let judged = judged.map_err(error::run)?;
    let json = serde_json::to_string(&judged).map_err(error::run)?;
    Ok((rules(&judged), json))
}
