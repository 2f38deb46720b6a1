//! Sweeps: all of one, a part of one, and what is needed to have the parts made by others.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quipu_lab::plan::Plan;
use quipu_study::sweep::{Place, Shard, Sweep, Todo};

use crate::error;
use crate::policy::registry;
use crate::policy::session::Session;
use crate::run::Told;
use crate::running::{interruptible, with_policies};
use crate::scenario::document;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Gathering>()?;
    module.add_function(wrap_pyfunction!(sweep, module)?)
}

/// The sweep that a scenario asks for, with the policies of Python that are registered.
fn read(scenario: &str, file: Option<PathBuf>, session: &Arc<Session>) -> PyResult<Sweep> {
    let known = registry::current();
    let document = document(scenario, file.as_deref());
    let read = session.enter(|| Sweep::read(&document, &known.registry));
    if let Some(raised) = session.take() {
        return Err(raised);
    }
    let sweep = read.map_err(error::scenario)?;
    let sweep = sweep
        .ok_or_else(|| error::scenario("a scenario without a sweep; expected a table `sweep`"))?;
    Ok(sweep.made_by(&known.program()?))
}

fn asks_python(sweep: &Sweep) -> bool {
    sweep.points.iter().any(|point| registry::uses_python(&point.plan))
}

fn part(text: &str) -> PyResult<Shard> {
    text.parse().map_err(|error| error::scenario(format!("shard: {error}")))
}

/// Bytes of a key.
const KEY: usize = size_of::<u128>();

/// Keys of runs, one after the other.
fn keys(bytes: &[u8]) -> PyResult<BTreeSet<u128>> {
    let (keys, rest) = bytes.as_chunks::<KEY>();
    if !rest.is_empty() {
        let length = bytes.len();
        return Err(error::scenario(format!(
            "kept: {length} bytes; expected keys of {KEY} bytes each"
        )));
    }
    Ok(keys.iter().map(|key| u128::from_le_bytes(*key)).collect())
}

/// Makes what is missing of a sweep, or of its part `shard`, in the folder `out`; runs that the folders `from` have
/// count as made, and those whose keys are in `kept` are left out. Returns how many runs were made, are missing, and
/// failed.
#[pyfunction]
#[pyo3(signature = (
    scenario, out, *, file=None, force=false, jobs=None, shard=None, from_=Vec::new(), kept=Vec::new(), progress=None
))]
#[expect(clippy::too_many_arguments, reason = "each is named where it is called")]
fn sweep(
    py: Python<'_>,
    scenario: &str,
    out: PathBuf,
    file: Option<PathBuf>,
    force: bool,
    jobs: Option<usize>,
    shard: Option<&str>,
    from_: Vec<PathBuf>,
    kept: Vec<u8>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(usize, usize, usize)> {
    let session = Session::new();
    let sweep = read(scenario, file, &session)?;
    let jobs = if asks_python(&sweep) { Some(1) } else { jobs };
    let place = Place { out, from: from_, force, jobs, shard: shard.map(part).transpose()? };
    let mut todo = Todo::new(sweep, place).map_err(error::scenario)?;
    todo.leave_out(&keys(&kept)?);
    let planned = todo.runs();
    let counted = Told::new(progress, planned);
    let (made, ended) = with_policies(py, &session, || {
        let within = |plan: &Plan, run: &mut dyn FnMut()| {
            session.enter(|| registry::attached(plan, run));
            // What was decided after an exception is nobody's decision.
            !session.has_failed() || !registry::uses_python(plan)
        };
        let made = todo.run_within(session.stop(), &|| counted.tell_one(&session), &within);
        made.and_then(|()| todo.write().map(drop))
    });
    ended?;
    made.map_err(error::run)?;
    let status = todo.status();
    Ok((planned - todo.runs(), status.missing, status.failed))
}

/// A sweep whose parts others make, and the folder into which they are joined.
#[pyclass(module = "quipu._quipu", frozen)]
struct Gathering {
    /// `None` once the results were written: its store is closed then, whoever still holds this object.
    todo: Mutex<Option<Todo>>,
    /// Whether runs ask policies of Python.
    #[pyo3(get)]
    uses_python: bool,
}

/// The sweep was asked for something after its results were written.
fn over() -> PyErr {
    error::run("the results of this sweep were written already")
}

impl Gathering {
    fn lock(&self) -> MutexGuard<'_, Option<Todo>> {
        // What is in the folder was written as a whole or not at all.
        self.todo.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `work` makes of the sweep.
    fn with<T>(&self, work: impl FnOnce(&mut Todo) -> PyResult<T>) -> PyResult<T> {
        work(self.lock().as_mut().ok_or_else(over)?)
    }
}

#[pymethods]
impl Gathering {
    /// Begins the sweep in the folder `out`; runs that the folders `from` have count as made.
    #[new]
    #[pyo3(signature = (scenario, out, *, file=None, force=false, from_=Vec::new()))]
    fn new(
        py: Python<'_>,
        scenario: &str,
        out: PathBuf,
        file: Option<PathBuf>,
        force: bool,
        from_: Vec<PathBuf>,
    ) -> PyResult<Gathering> {
        let session = Session::new();
        let sweep = read(scenario, file, &session)?;
        let uses_python = asks_python(&sweep);
        let place = Place { out, from: from_, force, jobs: None, shard: None };
        let mut todo = Todo::new(sweep, place).map_err(error::scenario)?;
        py.detach(|| todo.begin()).map_err(error::run)?;
        Ok(Gathering { todo: Mutex::new(Some(todo)), uses_python })
    }

    /// How many runs are missing; of the part `shard` alone, if it is given.
    #[pyo3(signature = (shard=None))]
    fn missing(&self, shard: Option<&str>) -> PyResult<usize> {
        let shard = shard.map(part).transpose()?;
        self.with(|todo| Ok(shard.map_or_else(|| todo.runs(), |shard| todo.missing_of(shard))))
    }

    /// Keys of the runs of the part `shard` that are there, for the `kept` of who makes the others.
    fn kept<'py>(&self, py: Python<'py>, shard: &str) -> PyResult<Bound<'py, PyBytes>> {
        let shard = part(shard)?;
        let keys = self.with(|todo| Ok(todo.kept(shard)))?;
        let keys: Vec<u8> = keys.into_iter().flat_map(u128::to_le_bytes).collect();
        Ok(PyBytes::new(py, &keys))
    }

    /// Takes the runs that are missing and in `folder`, and returns how many these are.
    fn merge(&self, py: Python<'_>, folder: PathBuf) -> PyResult<usize> {
        py.detach(|| self.with(|todo| todo.merge(&folder).map_err(error::run)))
    }

    /// Writes the files of the results from what is there, and is over. Returns how many runs are missing, and failed.
    fn write(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        let mut todo = self.lock().take().ok_or_else(over)?;
        let (written, ended) = interruptible(py, &Arc::default(), move || {
            todo.settle()?;
            todo.write()?;
            Ok((todo.status().missing, todo.status().failed))
        });
        let written = written.map_err(|error: quipu_study::sweep::SweepError| error::run(error));
        ended?;
        written
    }
}
