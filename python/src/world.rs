//! In which world runs are made: in virtual time, or over emulated links.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use quipu_cli::{EmulatedRuns, EmulationError};
use quipu_lab::plan::{Maker, Plan};
use quipu_lab::policies::PolicyRow;
use quipu_policy::PolicySpec;

use crate::error;

/// In which world runs are made.
#[derive(FromPyObject)]
pub(crate) struct World {
    /// What starts the command, by file and first arguments; `None`: runs are simulated.
    #[pyo3(item)]
    started_by: Option<Vec<OsString>>,
    /// Policies of Python that processes of emulated hosts can import, by layer, name, and what the command's `--import` takes.
    #[pyo3(item)]
    known: Vec<(String, String, OsString)>,
}

/// What the package calls it.
fn failed(error: EmulationError) -> PyErr {
    match error {
        EmulationError::Scenario(reason) => error::scenario(reason),
        other => error::run(other),
    }
}

impl World {
    /// Checks that the runs of `plan` can be made in this world, by as many threads as `jobs` says. From now on, hosts have its
    /// policies.
    ///
    /// # Errors
    /// `ScenarioError`: the field or the policy, and what was expected.
    pub(crate) fn check(&mut self, plan: &Plan, jobs: Option<usize>) -> PyResult<()> {
        let Some(started_by) = &mut self.started_by else {
            return EmulatedRuns::check_simulated(&plan.scenario).map_err(failed);
        };
        EmulatedRuns::check(&plan.scenario).map_err(failed)?;
        if let Some(jobs) = jobs {
            return Err(error::scenario(format!(
                "jobs: {jobs}: expected none with an emulated world, as one load is made after the other"
            )));
        }
        let parts = plan.rows().flat_map(PolicyRow::specs).flat_map(PolicySpec::parts);
        for part in parts.filter(|part| !part.is_builtin()) {
            let (layer, name) = (part.entry().layer.name(), part.name());
            let mut known = self.known.iter();
            let Some((.., import)) = known.find(|known| known.0 == layer && known.1 == name) else {
                return Err(error::scenario(format!(
                    "policies.{layer}: {name}: expected a class that can be imported, as emulated hosts are processes of \
                     their own; put it into a module"
                )));
            };
            if !started_by.contains(import) {
                started_by.extend(["--import".into(), import.clone()]);
            }
        }
        Ok(())
    }

    /// What makes the runs, if they are not simulated. To be called before this has started a thread.
    ///
    /// # Errors
    /// `RunError` if this user may not emulate links.
    pub(crate) fn runs(self) -> PyResult<Option<Runs>> {
        let runs = self.started_by.map(EmulatedRuns::new).transpose();
        runs.map(|runs| runs.map(Runs)).map_err(failed)
    }
}

/// What makes runs over emulated links.
pub(crate) struct Runs(EmulatedRuns);

impl Runs {
    /// The plan whose runs `runs` makes, or that of simulated ones.
    pub(crate) fn of(runs: Option<&Runs>, plan: Plan) -> Plan {
        match runs {
            Some(Runs(runs)) => runs.emulated(plan),
            None => plan,
        }
    }

    /// What makes runs of any plan.
    pub(crate) fn maker(&self) -> Arc<dyn Maker> {
        self.0.maker()
    }

    /// Appends what the emulator says of the runs since the last call to its file in `folder`.
    ///
    /// # Errors
    /// `RunError` if it cannot be written.
    pub(crate) fn write(&self, folder: &Path) -> PyResult<()> {
        self.0.write(folder).map_err(failed)
    }

    /// Does `work`, which makes runs of `plan`, when what the first one needs is there, and then writes what the emulator says of
    /// them into `folder`.
    ///
    /// # Errors
    /// `RunError` if something is missing here, or cannot be written.
    pub(crate) fn around<T>(
        runs: Option<&Runs>,
        plan: &Plan,
        folder: &Path,
        work: impl FnOnce() -> T,
    ) -> PyResult<T> {
        let Some(runs) = runs else { return Ok(work()) };
        runs.0.start(plan).map_err(failed)?;
        let result = work();
        runs.write(folder)?;
        Ok(result)
    }
}
