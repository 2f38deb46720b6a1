//! From the text of a scenario to a plan.

use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use quipu_lab::plan::Plan;
use quipu_scenario::{Document, Origin, Scenario};

use crate::error;
use crate::policy::registry::{self, Known};
use crate::policy::session::Session;

/// What the text of a scenario is called in messages that is no file.
pub(crate) const ARGUMENTS: &str = "arguments";

/// The text of a scenario, in whose folder the files that it names are.
pub(crate) fn document(text: &str, file: Option<&Path>) -> Document {
    match file {
        Some(file) => Document::new(text, file.display().to_string()),
        None => Document::new(text, ARGUMENTS),
    }
}

/// The plan of the scenario that `document` is, with the policies of Python that are registered.
///
/// # Errors
/// `ScenarioError` with all that is wrong, or the exception of a policy that was made to see whether it can be.
pub(crate) fn plan(document: Document, session: &Arc<Session>) -> PyResult<Plan> {
    let scenario = document.scenario().map_err(error::scenario)?;
    plan_of(scenario, &Origin::from(document), session)
}

/// The plan of `scenario`.
///
/// # Errors
/// See [`plan`].
pub(crate) fn plan_of(
    scenario: Scenario,
    origin: &Origin,
    session: &Arc<Session>,
) -> PyResult<Plan> {
    plan_with(scenario, origin, session, &registry::current())
}

/// The plan of `scenario` with the policies that are `known`.
///
/// # Errors
/// See [`plan`].
pub(crate) fn plan_with(
    scenario: Scenario,
    origin: &Origin,
    session: &Arc<Session>,
    known: &Known,
) -> PyResult<Plan> {
    let planned = session.enter(|| Plan::build(scenario, &known.registry));
    if let Some(raised) = session.take() {
        return Err(raised);
    }
    let mut plan = planned.map_err(|errors| {
        let findings = errors.iter().flat_map(|error| error.findings()).collect::<Vec<_>>();
        match origin.explain(findings) {
            Some(findings) => error::scenario(findings),
            None => error::scenario("the scenario cannot be run"),
        }
    })?;
    plan.program = known.program()?;
    plan.stop = Arc::clone(session.stop());
    Ok(plan)
}
