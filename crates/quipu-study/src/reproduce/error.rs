//! What can be wrong with an experiment.

use thiserror::Error;

use quipu_lab::plan::PlanError;
use quipu_scenario::ScenarioError;

/// An experiment that cannot be run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// Its file is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Its scenario, or a variant of it, cannot be run.
    #[error("{id}{variant}: {source}", variant = .variant.as_ref().map(|name| format!(" [{name}]")).unwrap_or_default())]
    Plan {
        /// The id.
        id: String,
        /// Name of the variant.
        variant: Option<String>,
        /// Why.
        source: Box<PlanError>,
    },
    /// A rule or a number of the paper is about something that is not there.
    #[error("{file}{line}: {id}: {message}", line = .line.map(|line| format!(":{line}")).unwrap_or_default())]
    Rule {
        /// The file.
        file: String,
        /// The line, if known.
        line: Option<usize>,
        /// The id.
        id: String,
        /// What is wrong.
        message: String,
    },
}
