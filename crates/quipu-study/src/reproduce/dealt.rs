//! Policies dealt out anew: what one of them made counts as another's.

use std::collections::BTreeMap;

use quipu_base::{Seed, shuffle};
use quipu_lab::plan::{Cell, Plan};

/// Policies dealt out by chance among the results of each page, network and run.
#[derive(Debug)]
pub(super) struct Dealt(BTreeMap<Cell, usize>);

impl Dealt {
    /// A deal of the runs of `plan`.
    pub(super) fn new(plan: &Plan, seed: Seed) -> Dealt {
        let mut random = seed.stream("policies", 0);
        let mut together: BTreeMap<(usize, usize, u32), Vec<Cell>> = BTreeMap::new();
        for cell in plan.cells() {
            together.entry((cell.page, cell.network, cell.run)).or_default().push(cell);
        }
        let mut all = BTreeMap::new();
        for cells in together.into_values() {
            let mut policies: Vec<usize> = cells.iter().map(|cell| cell.policy).collect();
            shuffle(&mut policies, &mut random);
            all.extend(cells.into_iter().zip(policies));
        }
        Dealt(all)
    }

    /// The policy as whose the results of `cell` count.
    pub(super) fn policy(&self, cell: &Cell) -> usize {
        self.0.get(cell).copied().unwrap_or(cell.policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_scenario::Scenario;

    #[test]
    fn each_run_has_every_policy_once_and_deals_differ() {
        let scenario: Scenario = toml::from_str("pages = [\"sitespeed\"]\nruns = 20").unwrap();
        let plan = Plan::new(scenario).unwrap();
        let count = plan.networks[0].policies.len();
        let deals = [1, 2].map(|seed| Dealt::new(&plan, Seed::new(seed)));
        let mut moved = 0;
        for run in 0..20 {
            let cells: Vec<Cell> = plan.cells().filter(|cell| cell.run == run).collect();
            let mut policies: Vec<usize> = cells.iter().map(|cell| deals[0].policy(cell)).collect();
            moved += cells.iter().filter(|cell| deals[0].policy(cell) != cell.policy).count();
            policies.sort_unstable();
            assert_eq!(policies, (0..count).collect::<Vec<usize>>());
        }
        assert!(moved > 20 * count / 2, "{moved}");
        assert_ne!(deals[0].0, deals[1].0);
    }
}
