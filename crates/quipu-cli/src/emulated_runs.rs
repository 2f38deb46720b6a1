//! Runs over emulated links for programs that are more than the command, such as an interpreter.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use quipu_lab::plan::{Maker, Plan};
use quipu_scenario::Scenario;
use thiserror::Error;

use crate::args::PriorityOption;
use crate::failure::Failure;
use crate::foreign::ForeignStacks;
use crate::{own, page_loads, world};

/// The folder of simulated runs of experiments, beside emulated ones.
pub const SIMULATED: &str = "simulated";

/// Why runs cannot be made over emulated links.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EmulationError {
    /// The scenario asks for what such runs cannot be, or links are emulated on other systems alone.
    #[error("{0}")]
    Scenario(String),
    /// This user may not emulate links, what they need is missing, or a file cannot be written.
    #[error("{0}")]
    Run(String),
}

impl From<Failure> for EmulationError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Usage(reason) => EmulationError::Scenario(reason),
            other => EmulationError::Run(other.reason()),
        }
    }
}

/// What makes runs over emulated links, as the commands with `--world emulated` do. Hosts and links last until it is
/// dropped.
///
/// [Check](Self::check) the scenario, build the plan and hand it to [`emulated`](Self::emulated), [`start`](Self::start),
/// make its runs, then [`write`](Self::write).
#[derive(Debug)]
pub struct EmulatedRuns(Arc<world::Emulator>);

impl EmulatedRuns {
    /// `started_by`, a file and its first arguments, starts the command with all policies that runs name: hosts are
    /// processes of their own. It takes the place of what was said before. A user who is not root gets a user namespace for
    /// this process, for which it must have a single thread.
    ///
    /// # Errors
    /// If this user may not emulate links, or this system has none.
    pub fn new(started_by: Vec<OsString>) -> Result<EmulatedRuns, EmulationError> {
        own::is_started_by(started_by);
        Ok(EmulatedRuns(world::Emulator::new(PriorityOption { priority: None }, None)?))
    }

    /// Checks that a scenario asks for nothing that only simulated runs can be, nor for stacks of other libraries.
    ///
    /// # Errors
    /// If it does: the field, and what was expected.
    pub fn check(scenario: &Scenario) -> Result<(), EmulationError> {
        Ok(world::check(scenario, &ForeignStacks::default())?)
    }

    /// Checks that a scenario asks for nothing that only emulated runs can be.
    ///
    /// # Errors
    /// If it does: the field, and what was expected.
    pub fn check_simulated(scenario: &Scenario) -> Result<(), EmulationError> {
        Ok(page_loads::check_simulated(scenario)?)
    }

    /// The same plan for runs that this makes.
    pub fn emulated(&self, plan: Plan) -> Plan {
        plan.emulated(self.maker())
    }

    /// What makes runs of any plan, one after the other.
    pub fn maker(&self) -> Arc<dyn Maker> {
        world::as_maker(&self.0)
    }

    /// Starts what the first run of `plan` needs, so that what is missing here is told before any run.
    ///
    /// # Errors
    /// If links cannot be emulated here, the page cannot be served, or there is no browser for a row that needs one.
    pub fn start(&self, plan: &Plan) -> Result<(), EmulationError> {
        Ok(self.0.start(plan)?)
    }

    /// Appends what the emulator says of the loads since the last call to `emulation.jsonl` in `folder`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), EmulationError> {
        Ok(self.0.write(folder)?)
    }
}
