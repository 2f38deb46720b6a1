//! From options to a scenario, and to where its results go.

use std::path::Path;

use quipu_lab::results::Output;
use quipu_lab::scenario::units::Unit;
use quipu_lab::scenario::{Network, PathSpec, Scenario, ScenarioError, Series, find_network};

use crate::args::ScenarioOptions;
use crate::failure::Failure;

/// The scenario that the options describe, not yet checked as a whole.
pub(crate) fn build(options: &ScenarioOptions) -> Result<Scenario, Failure> {
    let mut scenario = match &options.scenario {
        Some(file) => Scenario::load(file).map_err(Failure::usage)?,
        None => Scenario::default(),
    };
    if !options.page.is_empty() {
        scenario.pages.clone_from(&options.page);
    }
    if !options.network.is_empty() {
        let networks: Result<Vec<Network>, ScenarioError> =
            options.network.iter().map(|name| find_network(name)).collect();
        scenario.networks = networks.map_err(Failure::usage)?;
    }
    if !options.link.is_empty() {
        let paths = options.link.iter().map(|text| {
            text.parse::<PathSpec>()
                .map_err(|error| Failure::Usage(format!("--link {text}: {error}")))
        });
        scenario.networks = vec![Network::from_links(paths.collect::<Result<_, _>>()?)];
    }
    let fields = [
        ("browser", &options.browser),
        ("priorities", &options.priorities),
        ("policies.ack", &options.ack),
        ("policies.congestion", &options.congestion),
        ("discovery", &options.discovery),
        ("http", &options.http),
        ("transport.tls", &options.tls),
        ("transport.start", &options.start),
        ("seed", &options.seed),
        ("series", &options.series),
    ];
    for (field, value) in fields {
        scenario = set(scenario, field, value.as_deref())?;
    }
    assign(scenario, &options.set)
}

/// The scenario with all fields set that `assignments`, of the form `KEY=VALUE`, name.
pub(crate) fn assign(mut scenario: Scenario, assignments: &[String]) -> Result<Scenario, Failure> {
    for assignment in assignments {
        let Some((field, value)) = assignment.split_once('=') else {
            return Err(Failure::Usage(format!("--set {assignment}: expected KEY=VALUE")));
        };
        scenario = set(scenario, field, Some(value))?;
    }
    Ok(scenario)
}

/// Makes sure of a folder for results, if there is one, and that a time series has one to go to.
pub(crate) fn prepare_output(
    scenario: &Scenario,
    folder: Option<&Path>,
    force: bool,
) -> Result<Option<Output>, Failure> {
    match folder {
        Some(folder) => Output::prepare(folder, force).map(Some).map_err(Failure::usage),
        None if scenario.series == Series::None => Ok(None),
        None => Err(Failure::Usage(format!(
            "series is {}, but there is no folder for it; give one with --out DIR",
            scenario.series.print()
        ))),
    }
}

/// The scenario with `field` set, if there is a value.
pub(crate) fn set(
    scenario: Scenario,
    field: &str,
    value: Option<&str>,
) -> Result<Scenario, Failure> {
    match value {
        Some(value) => scenario.with_field(field, value).map_err(Failure::usage),
        None => Ok(scenario),
    }
}
