//! Policies by name: the seam to `quipu-policy`.

use quipu_base::Seed;
use quipu_policy::registry::{BuildContext, Layer, Policies, PolicySpec, Registry};

use crate::scenario::{Network, Scenario, ScenarioError};

pub use quipu_policy::registry::SpecError;

/// A row of a comparison: who decides on both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyRow {
    /// What tables call it, such as `rr + minrtt`.
    pub label: String,
    /// Everything that was chosen.
    pub spec: PolicySpec,
}

/// What stands in a scenario where a layer is left to the others.
const LEFT_OUT: [&str; 2] = ["default", "none"];

/// The rows of `scenario` on `network`: every stream policy with every path policy, every joint one,
/// and each path alone if there are several.
///
/// # Errors
/// If a policy is unknown, its parameters are wrong, or policies do not go together.
pub(crate) fn rows(
    scenario: &Scenario,
    network: &Network,
) -> Result<Vec<PolicyRow>, ScenarioError> {
    let registry = Registry::builtin();
    let policies = &scenario.policies;
    let mut rows: Vec<PolicyRow> = Vec::new();
    let mut add = |choice: &[(Layer, &str)]| -> Result<(), ScenarioError> {
        let row = row(&registry, scenario, choice)?;
        if !rows.contains(&row) {
            rows.push(row);
        }
        Ok(())
    };
    for path in &policies.path {
        for stream in &policies.stream {
            add(&[(Layer::Stream, stream), (Layer::Path, path)])?;
        }
    }
    for joint in &policies.joint {
        add(&[(Layer::Joint, joint)])?;
    }
    if policies.baselines && network.paths.len() > 1 {
        let stream = policies.stream.first().map_or("rr", String::as_str);
        for id in 0..network.paths.len() {
            add(&[(Layer::Stream, stream), (Layer::Path, &format!("single:id={id}"))])?;
        }
    }
    Ok(rows)
}

fn row(
    registry: &Registry,
    scenario: &Scenario,
    choice: &[(Layer, &str)],
) -> Result<PolicyRow, ScenarioError> {
    let policies = &scenario.policies;
    let common = [
        (Layer::Pack, &policies.pack),
        (Layer::Resend, &policies.resend),
        (Layer::Reinject, &policies.reinject),
        (Layer::Ack, &policies.ack),
        (Layer::Congestion, &scenario.transport.controller),
    ];
    let common = common
        .into_iter()
        .filter(|(_, text)| !LEFT_OUT.contains(&text.as_str()))
        .map(|(layer, text)| (layer, text.as_str()));
    let spec = PolicySpec::choose(registry, choice.iter().copied().chain(common))?;
    let names: Vec<&str> = choice.iter().map(|(_, text)| *text).collect();
    Ok(PolicyRow { label: names.join(" + "), spec })
}

/// The policies of one end of a connection, whose chance comes from `seed`.
///
/// # Errors
/// None for a row of a plan, which was built once before.
pub(crate) fn build(
    spec: &PolicySpec,
    initial_window: u32,
    seed: Seed,
) -> Result<Policies, SpecError> {
    let mut context = BuildContext::new(seed);
    context.initial_window = initial_window;
    spec.build(&context)
}

/// A table of all policies.
pub fn list() -> String {
    Registry::builtin().list()
}

/// What there is to know of every policy called `name`.
///
/// # Errors
/// If there is none; the error names the nearest.
pub fn explain(name: &str) -> Result<String, SpecError> {
    // Somebody may have written parameters too, as on the command line.
    let name = name.split(':').next().unwrap_or(name);
    Registry::builtin().describe(name)
}
