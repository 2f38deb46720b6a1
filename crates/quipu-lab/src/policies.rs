//! Policies by name: the seam to `quipu-policy`.

use crate::scenario::{Network, Scenario, ScenarioError};

/// A row of a comparison: who decides on both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRow {
    /// What tables call it, such as `rr + minrtt`.
    pub label: String,
    /// Which policies make it up.
    pub parts: Parts,
}

/// The policies of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parts {
    /// One orders streams, the other picks paths.
    Pair {
        /// The stream policy.
        stream: String,
        /// The path policy.
        path: String,
    },
    /// One decides both.
    Joint(String),
}

impl PolicyRow {
    fn pair(stream: &str, path: &str) -> PolicyRow {
        PolicyRow {
            label: format!("{stream} + {path}"),
            parts: Parts::Pair { stream: stream.to_owned(), path: path.to_owned() },
        }
    }
}

/// The rows of `scenario` on `network`: every stream policy with every path policy, every joint one,
/// and each path alone if there are several.
///
/// # Errors
/// If a policy is unknown or its parameters are wrong.
pub(crate) fn rows(
    scenario: &Scenario,
    network: &Network,
) -> Result<Vec<PolicyRow>, ScenarioError> {
    let policies = &scenario.policies;
    let mut rows: Vec<PolicyRow> = Vec::new();
    let mut add = |row: PolicyRow| {
        if !rows.contains(&row) {
            rows.push(row);
        }
    };
    for path in &policies.path {
        for stream in &policies.stream {
            add(PolicyRow::pair(stream, path));
        }
    }
    for joint in &policies.joint {
        add(PolicyRow { label: joint.clone(), parts: Parts::Joint(joint.clone()) });
    }
    if policies.baselines && network.paths.len() > 1 {
        let stream = policies.stream.first().map_or("rr", String::as_str);
        for id in 0..network.paths.len() {
            add(PolicyRow::pair(stream, &format!("single:id={id}")));
        }
    }
    Ok(rows)
}
