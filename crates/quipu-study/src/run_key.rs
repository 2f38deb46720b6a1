//! What a run depends on, as one number: runs with the same number give the same.

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use quipu_lab::bound::windows_are_known;
use quipu_lab::plan::{Cell, Plan, RunNetwork};
use quipu_lab::policies::PolicyRow;
use quipu_scenario::{Network, Policies, Scenario, ScenarioError};

/// The number of each run of `plan`, in the order of its cells: a hash (XXH3, 128 bits) of the code that
/// decides the run (see [`quipu_lab::program`]), of the scenario without what other runs have, of the content of
/// the page, of the network, the policy and the run's number. It does not depend on how many other pages,
/// networks, policies and runs there are, nor on their order.
///
/// # Errors
/// If a scenario cannot be written out, or the program does not know itself.
pub(crate) fn run_keys(plan: &Plan) -> Result<Vec<u128>, ScenarioError> {
    // What differs from cell to cell is left out here.
    let bare = Scenario {
        runs: 1,
        pages: Vec::new(),
        networks: Vec::new(),
        policies: Policies::default(),
        ..plan.scenario.clone()
    };
    let scenario = bare.to_toml()?;
    let mut networks = Networks::default();
    let mut keys = Vec::new();
    let mut last: Option<(Cell, String)> = None;
    for cell in plan.cells() {
        let place = Cell { run: 0, ..cell };
        let known = last.take().filter(|(known, _)| *known == place);
        let (_, hash) = last.insert(match known {
            Some(known) => known,
            None => (place, of_place(plan, place, &scenario, networks.of(plan, place))?),
        });
        keys.push(hash_of(&[hash.clone(), cell.run.to_string()]));
    }
    Ok(keys)
}

/// The hashes of what runs go over, each made once.
#[derive(Default)]
struct Networks<'p>(Vec<(&'p Arc<RunNetwork>, String)>);

impl<'p> Networks<'p> {
    fn of(&mut self, plan: &'p Plan, cell: Cell) -> &str {
        let over = &plan.networks[cell.network].over[cell.policy];
        let known = self.0.iter().position(|(known, _)| Arc::ptr_eq(known, over));
        let position = known.unwrap_or_else(|| {
            self.0.push((over, of_network(over)));
            self.0.len() - 1
        });
        &self.0[position].1
    }
}

/// What decides anything of what a run goes over: the network, where records say that its paths are, and
/// which traffic goes where.
fn of_network(over: &RunNetwork) -> String {
    let RunNetwork { network, paths, owners, flow_paths, cross_paths } = over;
    // Where files are does not matter, but for which of them are in one folder.
    let network = Network { about: String::new(), ..network.portable() };
    let places = format!("{paths:?} {owners:?} {flow_paths:?} {cross_paths:?}");
    format!("{:032x}", hash_of(&[format!("{network:?}"), places]))
}

/// What the runs of a page over a network with a policy depend on.
fn of_place(
    plan: &Plan,
    cell: Cell,
    scenario: &str,
    network: &str,
) -> Result<String, ScenarioError> {
    let planned = &plan.networks[cell.network];
    let policy = &planned.policies[cell.policy];
    let page = plan.pages.get(cell.page).map(|page| {
        let note = &page.note;
        // What is drawn for each run follows from seed and run; its hash is that of all runs.
        let hash = if note.drawn.is_none() { note.hash.as_str() } else { "drawn" };
        (note.name.as_str(), hash)
    });
    let flows: Vec<String> = policy.flows.iter().map(|spec| spec.full_text()).collect();
    let parts = [
        code_of(plan, [policy])?,
        plan.world.name().to_owned(),
        scenario.to_owned(),
        format!("{page:?}"),
        network.to_owned(),
        // Texts, as what makes a policy has another address in each process.
        policy.full_text(),
        policy.http.to_string(),
        flows.join("\n"),
        windows_are_known(plan, cell).to_string(),
    ];
    Ok(format!("{:032x}", hash_of(&parts)))
}

/// What the runs of `rows` depend on of the program that runs `plan`.
///
/// # Errors
/// If that is the executable, and it cannot be read.
pub(crate) fn code_of<'r>(
    plan: &Plan,
    rows: impl IntoIterator<Item = &'r PolicyRow>,
) -> Result<String, ScenarioError> {
    let code = plan.program.code_of(rows.into_iter().flat_map(PolicyRow::specs));
    let expected = "an executable that can be read, as its policies are known by it alone";
    code.ok_or_else(|| ScenarioError::invalid("program", "unreadable", expected))
}

/// The hash of `parts` and of where each ends.
pub(crate) fn hash_of(parts: &[String]) -> u128 {
    let mut hash = Xxh3::new();
    for part in parts {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.digest128()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn plan(change: impl Fn(&mut Scenario)) -> Plan {
        let mut scenario = Scenario { runs: 2, ..Scenario::default() };
        scenario.pages = vec!["sitespeed".to_owned(), "pries".to_owned()];
        scenario.policies.stream = vec!["rr".to_owned(), "dwrr".to_owned()];
        change(&mut scenario);
        Plan::new(scenario).unwrap()
    }

    fn keys(plan: &Plan) -> BTreeSet<u128> {
        run_keys(plan).unwrap().into_iter().collect()
    }

    #[test]
    fn a_run_is_the_same_whatever_else_is_run() {
        let first = plan(|_| {});
        let keys_of_first = keys(&first);
        assert_eq!(keys_of_first.len(), first.cells().count(), "all differ");
        let larger = plan(|scenario| {
            scenario.runs = 5;
            scenario.pages.reverse();
            scenario.pages.push("google".to_owned());
            scenario.policies.stream = ["fifo", "dwrr", "rr"].map(str::to_owned).to_vec();
            scenario
                .networks
                .extend(quipu_scenario::builtin_networks().into_iter().skip(1).take(1));
            scenario.networks[0].about = "other words".to_owned();
        });
        // The paths alone come with the first stream policy.
        let alone = 2 * 2 * 2;
        assert_eq!(keys(&larger).intersection(&keys_of_first).count(), keys_of_first.len() - alone);
    }

    #[test]
    fn a_path_alone_is_the_same_whatever_other_paths_there_are() {
        let with = |text: &str| {
            let keys_of = |plan: &Plan| run_keys(plan).unwrap();
            let plan = plan(|it| {
                it.pages.truncate(1);
                it.networks = vec![toml::from_str(text).unwrap()];
            });
            let labels = plan
                .cells()
                .map(|cell| plan.networks[cell.network].policies[cell.policy].label.clone());
            labels.zip(keys_of(&plan)).collect::<Vec<_>>()
        };
        let first = "name = \"n\"\npaths = [{ name = \"a\", down = { rate = \"9mbit\", delay = \"5ms\" } }, \
                     { name = \"b\", down = { rate = \"5mbit\", delay = \"9ms\" } }]\n";
        let (one, other) = (with(first), with(&first.replace("5mbit", "6mbit")));
        for ((label, one), (_, other)) in one.iter().zip(&other) {
            assert_eq!(one == other, label == "a alone", "{label}");
        }
        // Records have the path's position, so it must be the same.
        let turned = "name = \"n\"\npaths = [{ name = \"b\", down = { rate = \"5mbit\", delay = \"9ms\" } }, \
                      { name = \"a\", down = { rate = \"9mbit\", delay = \"5ms\" } }]\n";
        let turned: BTreeSet<u128> = with(turned).into_iter().map(|(_, key)| key).collect();
        assert!(one.iter().all(|(_, key)| !turned.contains(key)));
    }

    #[test]
    fn whatever_decides_a_run_makes_another() {
        let first = keys(&plan(|_| {}));
        let changes: [fn(&mut Scenario); 6] = [
            |it| it.seed = 2,
            |it| it.browser = "firefox".to_owned(),
            |it| it.transport.initial_window = 32,
            |it| it.policies.congestion = "cubic".to_owned(),
            |it| it.policies.path = vec!["ecf".to_owned()],
            |it| it.networks[0].paths.reverse(),
        ];
        for (index, change) in changes.into_iter().enumerate() {
            let changed = keys(&plan(change));
            let same = changed.intersection(&first).count();
            // Each path alone needs no path policy.
            let expected = if index == 4 { 8 } else { 0 };
            assert_eq!(same, expected, "change {index}");
        }
        // One policy without known windows lowers the bounds of all.
        let with_bbr = keys(&plan(|it| it.policies.congestion = "newreno,bbr".to_owned()));
        assert_eq!(with_bbr.intersection(&first).count(), 0);
    }
}
