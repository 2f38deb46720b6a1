//! Loads over one path, without anything random.

use quipu_base::{Duration, Seed};
use quipu_lab::batch::Runner;
use quipu_lab::pages::{PageLoadError, PlannedPage};
use quipu_lab::plan::{Cell, Plan, PlanError};
use quipu_lab::run::RunError;
use quipu_scenario::{Network, PathSpec, Scenario};
use quipu_web::page::Page;
use thiserror::Error;

/// The only run of each plan.
pub(crate) const CELL: Cell = Cell { page: 0, network: 0, policy: 0, run: 0 };

/// What was measured of a load, in ns: page time, critical time, ObjectIndex.
pub(crate) type Times = [f64; 3];

/// Why a load could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A page is too large to be loaded.
    #[error(transparent)]
    TooLarge(Box<PageLoadError>),
    /// The scenario makes no sense.
    #[error(transparent)]
    Plan(Box<PlanError>),
    /// A load did not end.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl From<PageLoadError> for LoadError {
    fn from(error: PageLoadError) -> Self {
        LoadError::TooLarge(Box::new(error))
    }
}

impl From<PlanError> for LoadError {
    fn from(error: PlanError) -> Self {
        LoadError::Plan(Box::new(error))
    }
}

/// The load of `page` over `path` by Chrome; `base` has all else.
pub(crate) fn plan(page: &Page, path: PathSpec, base: Scenario) -> Result<Plan, LoadError> {
    let mut scenario =
        Scenario { runs: 1, host_jitter: Duration::ZERO, browser: "chrome".to_owned(), ..base };
    scenario.networks = vec![Network::from_links(vec![path])];
    scenario.policies.stream = vec!["wrr".to_owned()];
    scenario.policies.path = vec!["minrtt".to_owned()];
    scenario.policies.joint = Vec::new();
    scenario.policies.baselines = false;
    let mut plan = Plan::new(scenario)?;
    plan.pages = vec![PlannedPage::of_page(page.clone(), Seed::new(1))?];
    Ok(plan)
}

/// What such a load takes.
pub(crate) fn load(plan: &Plan) -> Result<Times, LoadError> {
    let records = Runner::new(plan).without_bounds().run_session(CELL)?;
    let times =
        records.first().map(|record| [record.page_time, record.critical_time, record.object_index]);
    Ok(times.unwrap_or_default().map(|time| time.as_nanos() as f64))
}
