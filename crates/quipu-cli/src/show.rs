//! `quipu scenario show`, `schema` and `fields`.

use std::path::Path;

use quipu_lab::draw::{Signs, draw};
use quipu_lab::policies::{self, Registry};
use quipu_scenario::{Network, Scenario, ScenarioError, find_network, reference, schema_text};

use crate::failure::Failure;
use crate::scenario::Given;
use crate::terminal::Terminal;

/// Draws the networks of the scenario `what`, or the network of that name.
pub(crate) fn run(
    what: &str,
    network: Option<&str>,
    ascii: bool,
    terminal: Terminal,
) -> Result<(), Failure> {
    let scenario = match Path::new(what).extension().is_some_and(|ending| ending == "toml") {
        true => Given::load(Some(Path::new(what)))?.checked()?,
        false => {
            let network = find_network(what).map_err(Failure::usage)?;
            Scenario { networks: vec![network], ..Scenario::default() }
        }
    };
    let chosen: Vec<&Network> = match network {
        None => scenario.networks.iter().collect(),
        Some(name) => {
            let found = scenario.networks.iter().find(|network| network.name == name);
            let names = || scenario.networks.iter().map(|network| network.name.as_str());
            let unknown = || Failure::usage(ScenarioError::unknown("network", name, names()));
            vec![found.ok_or_else(unknown)?]
        }
    };
    let signs = if ascii { Signs::Ascii } else { Signs::Unicode };
    let drawn: Result<Vec<String>, _> = chosen
        .into_iter()
        .map(|network| draw(&scenario, network, signs, terminal.screen))
        .collect();
    crate::print(&drawn.map_err(Failure::usage)?.join("\n"))
}

/// Prints the JSON Schema of scenario files, which names the policies of `registry`.
pub(crate) fn schema(registry: &Registry) -> Result<(), Failure> {
    crate::print(&schema_text(&|layer| policies::names(registry, layer)))
}

/// Prints all fields of scenario files.
pub(crate) fn fields() -> Result<(), Failure> {
    crate::print(&reference())
}
