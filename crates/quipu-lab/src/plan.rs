//! What a scenario amounts to: pages read, policies combined, and the list of runs.

use std::path::Path;

use quipu_base::Seed;
use quipu_web::scheme::BrowserScheme;
use thiserror::Error;

use crate::logs::Logs;
use crate::pages::{PageLoadError, PlannedPage, RunPage};
use crate::policies::{self, PolicyRow, Registry};
use crate::scenario::{Network, Priorities, Scenario, ScenarioError, distinct};

/// A scenario, ready to run.
#[derive(Debug)]
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// Its browser's priorities.
    pub browser: BrowserScheme,
    /// Its pages.
    pub pages: Vec<PlannedPage>,
    /// Its networks, each with the policies that make sense on it.
    pub networks: Vec<PlannedNetwork>,
    /// Where its runs are logged, if they are: no part of the scenario, as no result depends on it.
    pub logs: Option<Logs>,
}

/// A network and the policies that are compared on it.
#[derive(Debug)]
pub struct PlannedNetwork {
    /// The network.
    pub network: Network,
    /// The policies; the others are compared with the first.
    pub policies: Vec<PolicyRow>,
    /// Runs of each page with each policy.
    pub runs: u32,
    /// Per flow of the scenario, positions of its paths among those of the network.
    pub flow_paths: Vec<Vec<usize>>,
    /// Per sender of cross traffic, the position of its path.
    pub cross_paths: Vec<usize>,
}

/// One run: where in the plan, and which seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Index of the page; 0 if there are none.
    pub page: usize,
    /// Index of the network.
    pub network: usize,
    /// Index of the policy among those of the network.
    pub policy: usize,
    /// Number of the run, which decides its seed.
    pub run: u32,
}

/// A scenario that cannot be run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A field is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A page cannot be read.
    #[error(transparent)]
    Page(#[from] PageLoadError),
}

impl Plan {
    /// Checks everything in `scenario` and reads its pages. Policies are those that come with the
    /// program.
    ///
    /// # Errors
    /// If a field is wrong, a page is unreadable, or a browser or policy unknown.
    pub fn new(scenario: Scenario) -> Result<Plan, PlanError> {
        Plan::with_registry(scenario, &Registry::builtin())
    }

    /// The same with the policies of `registry`.
    ///
    /// # Errors
    /// See [`Plan::new`].
    pub fn with_registry(scenario: Scenario, registry: &Registry) -> Result<Plan, PlanError> {
        scenario.validate()?;
        if let Some((field, value, expected)) = crate::run::unsupported(&scenario) {
            return Err(ScenarioError::NotImplemented { field, value, expected }.into());
        }
        let browser = crate::pages::browser(&scenario.browser)?;
        if scenario.priorities == Priorities::Urgency && !browser.has_urgencies() {
            let known = crate::pages::browsers_with_urgencies().join(", ");
            let expected = format!("a browser with urgencies: {known}");
            return Err(ScenarioError::invalid("browser", browser.name(), expected).into());
        }
        let seed = Seed::new(scenario.seed);
        let pages = if scenario.http.is_raw() && !scenario.raw.objects.is_empty() {
            vec![PlannedPage::of_objects(&scenario.raw, seed)?]
        } else {
            let pages = scenario.pages.iter();
            pages
                .map(|name| PlannedPage::new(name, seed, scenario.runs, scenario.session))
                .collect::<Result<Vec<_>, _>>()?
        };
        distinct("pages", pages.iter().map(|page| page.note.name.as_str()))?;
        let networks = scenario
            .networks
            .iter()
            .map(|network| planned(&scenario, network, registry))
            .collect::<Result<Vec<_>, ScenarioError>>()?;
        Ok(Plan { scenario, browser, pages, networks, logs: None })
    }

    /// All runs: by page, then network, then policy, then number.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        (0..self.page_count()).flat_map(move |page| {
            self.networks.iter().enumerate().flat_map(move |(network, planned)| {
                (0..planned.policies.len()).flat_map(move |policy| {
                    (0..planned.runs).map(move |run| Cell { page, network, policy, run })
                })
            })
        })
    }

    /// Pages, or one if there are flows only.
    pub(crate) fn page_count(&self) -> usize {
        self.pages.len().max(1)
    }

    /// The name of the page at that index; empty if there are flows only.
    pub(crate) fn page_name(&self, page: usize) -> &str {
        self.pages.get(page).map_or("", |page| &page.note.name)
    }

    /// What the run of `cell` loads, first if it is a session of several pages.
    ///
    /// # Errors
    /// If there are flows only. Else none for a cell of the plan, whose pages were all read or drawn
    /// before.
    pub fn page(&self, cell: Cell) -> Result<RunPage, PageLoadError> {
        self.visit(cell, 0)
    }

    /// Page `visit` of the session of `cell`, from 0.
    ///
    /// # Errors
    /// As [`Plan::page`].
    pub fn visit(&self, cell: Cell, visit: u32) -> Result<RunPage, PageLoadError> {
        let none = || ScenarioError::invalid("pages", "empty", "a page");
        self.pages.get(cell.page).ok_or_else(none)?.visit(cell.run, visit)
    }

    /// What `cell` is called in messages, such as `wikipedia over wifi+lte with rr + minrtt, run 3`.
    pub fn name_of(&self, cell: Cell) -> String {
        let network = &self.networks[cell.network];
        let (name, policy) = (&network.network.name, &network.policies[cell.policy].label);
        let what = match self.page_name(cell.page) {
            "" => "flows",
            page => page,
        };
        format!("{what} over {name} with {policy}, run {}", cell.run)
    }
}

fn planned(
    scenario: &Scenario,
    network: &Network,
    registry: &Registry,
) -> Result<PlannedNetwork, ScenarioError> {
    let (flows, cross) = (scenario.flows.iter(), scenario.cross.iter());
    Ok(PlannedNetwork {
        network: network.clone(),
        policies: policies::rows(scenario, network, registry)?,
        runs: scenario.runs_on(network),
        flow_paths: flows.map(|flow| flow.paths_on(&network.paths)).collect::<Result<_, _>>()?,
        cross_paths: cross
            .map(|sender| sender.path_on(&network.paths))
            .collect::<Result<_, _>>()?,
    })
}

/// True if `name` means a file rather than something that comes with the program.
pub(crate) fn is_file_name(name: &str) -> bool {
    let path = Path::new(name);
    name.contains(['/', '\\']) || path.extension().is_some_and(|ending| ending == "har")
}
