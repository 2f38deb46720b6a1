//! What scenarios, which know policies by name only, are told of them.

use quipu_policy::registry::{Layer, Registry, SpecError};
use quipu_scenario::{Finding, PolicyError, PolicyLayer, ScenarioError};

/// Names of the policies of a layer that can be chosen by them alone, in order of registration.
pub fn names(registry: &Registry, layer: PolicyLayer) -> Vec<String> {
    let layer = match layer {
        PolicyLayer::Stream => Layer::Stream,
        PolicyLayer::Path => Layer::Path,
        PolicyLayer::Joint => Layer::Joint,
        PolicyLayer::Ack => Layer::Ack,
        PolicyLayer::Congestion => Layer::Congestion,
        PolicyLayer::Pack => Layer::Pack,
        PolicyLayer::Resend => Layer::Resend,
        PolicyLayer::Reinject => Layer::Reinject,
    };
    let alone = registry.of(layer).filter(|entry| !entry.needs_file());
    alone.map(|entry| entry.name.to_owned()).collect()
}

/// `error` as an error of the scenario that has the text.
pub(super) fn refused(error: SpecError) -> ScenarioError {
    let finding = Box::new(finding(&error));
    PolicyError { message: error.to_string(), finding }.into()
}

/// What is wrong with the text of a policy, of whichever field.
fn finding(error: &SpecError) -> Finding {
    match error {
        SpecError::UnknownPolicy { layer, name, hint } => {
            let expected = format!("a {layer} policy: {}", hint.valid.join(", "));
            Finding::new("", format!("`{name}`"), expected).near(hint.nearest.as_deref())
        }
        SpecError::UnknownParam { policy, param, hint } => {
            let found = format!("{policy} has no parameter `{param}`");
            let expected = match hint.valid.is_empty() {
                true => "no parameter".to_owned(),
                false => format!("one of {}", hint.valid.join(", ")),
            };
            Finding::new("", found, expected).near(hint.nearest.as_deref())
        }
        SpecError::NeedsFile { policy, param } => {
            Finding::new("", format!("{policy} without a file"), format!("{policy}:{param}=FILE"))
        }
        SpecError::BadValue { policy, param, value, expected } => {
            Finding::new("", format!("{policy}: {param}={value}"), expected)
        }
        other => Finding::new("", other.to_string(), ""),
    }
}
