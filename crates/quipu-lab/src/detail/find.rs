//! From the names in a result to a run of its plan.

use quipu_base::Bytes;

use super::{DetailError, Options};
use crate::plan::{Cell, Plan};
use crate::policies::Registry;
use quipu_scenario::{Direction, Document, LinkSpec, PathSpec, ScenarioError};

/// What the tables of a result call a run: their columns `page`, `network`, `policy` and `run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunName<'a> {
    /// The page; empty if there are flows only.
    pub page: &'a str,
    /// The network.
    pub network: &'a str,
    /// The policies.
    pub policy: &'a str,
    /// Number of the run, from 0.
    pub run: u32,
}

/// The plan of a result, from its `scenario.toml`. Policies are those of `registry`.
///
/// # Errors
/// If the text is no scenario, or one that cannot be run here.
pub fn plan_of(document: &Document, registry: &Registry) -> Result<Plan, DetailError> {
    let scenario = document.scenario()?;
    Ok(Plan::with_registry(scenario, registry)?)
}

/// The cell of `plan` that a result calls `name`.
///
/// # Errors
/// If a name is unknown: the error tells those there are and the nearest.
pub fn find(plan: &Plan, name: &RunName<'_>) -> Result<Cell, DetailError> {
    let pages = || (0..plan.page_count()).map(|page| plan.page_name(page));
    let page = pages()
        .position(|page| page == name.page)
        .ok_or_else(|| ScenarioError::unknown("page", name.page, pages()))?;
    let networks = || plan.networks.iter().map(|planned| planned.network.name.as_str());
    let network = networks()
        .position(|network| network == name.network)
        .ok_or_else(|| ScenarioError::unknown("network", name.network, networks()))?;
    let planned = &plan.networks[network];
    let policies = || planned.policies.iter().map(|row| row.label.as_str());
    let policy = policies()
        .position(|policy| policy == name.policy)
        .ok_or_else(|| ScenarioError::unknown("policy", name.policy, policies()))?;
    let cell = Cell { page, network, policy, run: name.run };
    check_run(plan, cell)?;
    Ok(cell)
}

/// Checks that `plan` has the load of `cell` that `options` name, and that it is not too large.
pub(super) fn check(plan: &Plan, cell: Cell, options: &Options) -> Result<(), DetailError> {
    let network = plan.networks.get(cell.network);
    for (field, index, count) in [
        ("page", cell.page, plan.page_count()),
        ("network", cell.network, plan.networks.len()),
        ("policy", cell.policy, network.map_or(0, |network| network.policies.len())),
    ] {
        if index >= count {
            return Err(ScenarioError::invalid(field, index, below(count as u64)).into());
        }
    }
    check_run(plan, cell)?;
    let (clients, session) = match plan.pages.is_empty() {
        true => (1, 1),
        false => (plan.scenario.clients.count, plan.scenario.session),
    };
    for (field, number, count) in
        [("client", options.client, clients), ("visit", options.visit, session)]
    {
        if number >= count {
            return Err(ScenarioError::invalid(field, number, below(count.into())).into());
        }
    }
    let most = options.bytes;
    match carried(plan, cell, clients, session, most)? {
        bytes if bytes > most => Err(DetailError::TooLarge { bytes, most }),
        _ => Ok(()),
    }
}

/// Bytes of the bodies that the run of `cell` loads, counted until they are more than `most`; of flows
/// alone what all links carry at their usual rates.
fn carried(
    plan: &Plan,
    cell: Cell,
    clients: u32,
    session: u32,
    most: Bytes,
) -> Result<Bytes, DetailError> {
    if plan.pages.is_empty() {
        let network = &plan.networks[cell.network].network;
        let links = network.paths.iter().filter_map(PathSpec::own_links);
        let both = links.flat_map(|links| [Direction::Down, Direction::Up].map(|at| links.of(at)));
        let rates = both.filter_map(LinkSpec::usual_rate);
        return Ok(rates.map(|rate| rate.bytes_in(plan.scenario.duration)).sum());
    }
    let mut bytes = Bytes::ZERO;
    for client in 0..clients {
        for visit in 0..session {
            bytes += plan.visit_of(cell, client, visit)?.page.body_bytes();
            if bytes > most {
                return Ok(bytes);
            }
        }
    }
    Ok(bytes)
}

/// Checks the number of the run of `cell`, whose network there is. A result may have fewer runs than its
/// scenario, never more.
fn check_run(plan: &Plan, cell: Cell) -> Result<(), DetailError> {
    match plan.networks[cell.network].runs {
        runs if cell.run < runs => Ok(()),
        runs => Err(ScenarioError::invalid("run", cell.run, below(runs.into())).into()),
    }
}

/// The numbers below `count`, in words.
fn below(count: u64) -> String {
    match count {
        0 | 1 => "0".to_owned(),
        count => format!("0 to {}", count - 1),
    }
}
