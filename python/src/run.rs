//! Experiments from the text of a scenario to a folder of results, which are those of the command.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use quipu_lab::batch::{Batch, Runner, run_all};
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::results::{summary, write};
use quipu_lab::table::{self, Order, Screen};
use quipu_record::{Metric, Output};

use crate::error;
use crate::policy::registry;
use crate::policy::session::Session;
use crate::running::with_policies;
use crate::scenario::{document, plan};
use crate::world::{Runs, World};

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(compare, module)?)?;
    module.add_function(wrap_pyfunction!(load, module)?)
}

/// Runs the scenario, writes its results into the folder `out`, and returns the tables that the command prints.
#[pyfunction]
#[pyo3(signature = (scenario, out, *, world, file=None, force=false, jobs=None, sort=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "each is named where it is called")]
fn compare(
    py: Python<'_>,
    scenario: &str,
    out: PathBuf,
    mut world: World,
    file: Option<PathBuf>,
    force: bool,
    jobs: Option<usize>,
    sort: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let session = Session::new();
    let plan = plan(document(scenario, file.as_deref()), &session)?;
    world.check(&plan, jobs)?;
    let order = Order { sort: sort.map(metric).transpose()?, top: None };
    let output = Output::prepare(&out, force).map_err(error::scenario)?;
    let runs = world.runs()?;
    let plan = Runs::of(runs.as_ref(), plan);
    let counted = Told::new(progress, plan.cells().count());
    let jobs = if registry::uses_python(&plan) { Some(1) } else { jobs };
    let (batch, ended) = with_policies(py, &session, || {
        let runner = Runner::new(&plan);
        let one = |_: &Plan, cell| {
            session.enter(|| registry::attached(&plan, || runner.run_into(Some(&output), cell)))
        };
        let tell = |done| counted.tell(done, &session);
        Runs::around(runs.as_ref(), &plan, output.folder(), || {
            run_all(&plan, jobs, &plan.stop, &tell, &one)
        })
    });
    let batch: Batch = batch?.map_err(error::run)?;
    // What is finished is kept at Ctrl-C, and lost if a policy failed, which decided something in all of it.
    if ended.is_ok() || !session.has_failed() {
        write(output, &plan, &batch.finished, &batch.summary).map_err(error::run)?;
    }
    ended?;
    Ok(table::compare(&plan, &batch.summary, order, Screen::default()))
}

/// Loads the one page of the scenario once, as its run number `run`, and writes the results into the folder `out`.
#[pyfunction]
#[pyo3(signature = (scenario, out, *, world, file=None, force=false, run=0))]
fn load(
    py: Python<'_>,
    scenario: &str,
    out: PathBuf,
    mut world: World,
    file: Option<PathBuf>,
    force: bool,
    run: u32,
) -> PyResult<String> {
    let session = Session::new();
    let plan = plan(document(scenario, file.as_deref()), &session)?;
    let choices = plan.networks.iter().map(|network| network.policies.len()).sum::<usize>();
    if plan.page_count() != 1 || plan.networks.len() != 1 || choices != 1 {
        let what = "one load takes one page, one network and one choice of policies";
        return Err(error::scenario(what));
    }
    world.check(&plan, None)?;
    let output = Output::prepare(&out, force).map_err(error::scenario)?;
    let runs = world.runs()?;
    let plan = Runs::of(runs.as_ref(), plan);
    let cell = Cell { page: 0, network: 0, policy: 0, run };
    let (records, ended) = with_policies(py, &session, || {
        let runner = Runner::new(&plan);
        Runs::around(runs.as_ref(), &plan, output.folder(), || {
            session.enter(|| registry::attached(&plan, || runner.run_into(Some(&output), cell)))
        })
    });
    ended?;
    let records = records?.map_err(error::run)?;
    let finished: Vec<_> = records.into_iter().map(|record| (cell, record)).collect();
    let summary = summary(&plan, &finished, Vec::new());
    write(output, &plan, &finished, &summary).map_err(error::run)?;
    let told = finished.iter().map(|(cell, record)| table::load_summary(&plan, *cell, record));
    Ok(told.collect())
}

/// The metric of that name.
fn metric(name: &str) -> PyResult<Metric> {
    Metric::of_loads().map(|(metric, _)| metric).find(|metric| metric.name() == name).ok_or_else(
        || {
            let known: Vec<&str> = Metric::of_loads().map(|(metric, _)| metric.name()).collect();
            error::scenario(format!("sort: {name}: expected one of {}", known.join(", ")))
        },
    )
}

/// A function of Python's that is told how many of how many runs are made.
pub(crate) struct Told {
    function: Option<Py<PyAny>>,
    planned: usize,
    made: AtomicUsize,
}

impl Told {
    pub(crate) fn new(function: Option<Py<PyAny>>, planned: usize) -> Told {
        Told { function, planned, made: Default::default() }
    }

    /// Tells that `made` runs are made. What it raises ends the runs.
    pub(crate) fn tell(&self, made: usize, session: &Arc<Session>) {
        let Some(function) = &self.function else { return };
        Python::attach(|py| {
            if let Err(error) = function.call1(py, (made, self.planned)) {
                session.fail(error);
            }
        });
    }

    /// Tells that one more run is made.
    pub(crate) fn tell_one(&self, session: &Arc<Session>) {
        self.tell(self.made.fetch_add(1, Ordering::Relaxed) + 1, session);
    }
}
