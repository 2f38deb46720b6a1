//! What the page keeps of each id.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use quipu_record::verdict::{Judged, RuleVerdict};
use quipu_scenario::experiment::Case;

/// What was found for one id, without the numbers of each place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Hash of the experiment that was run; empty if it is not told.
    pub(super) experiment: String,
    /// The values of the file's axes that the id has.
    pub(super) axes: Vec<(String, String)>,
    #[serde(flatten)]
    pub(super) judged: Judged,
}

impl Kept {
    pub(super) fn new(judged: &Judged, cases: &[Case]) -> Kept {
        let case = cases.iter().find(|case| case.id == judged.id);
        let without_places =
            |rule: &RuleVerdict| RuleVerdict { findings: Vec::new(), ..rule.clone() };
        let rules = judged.rules.iter().map(without_places).collect();
        Kept {
            experiment: case.map(experiment_hash).unwrap_or_default(),
            axes: case.map(|case| case.values.clone()).unwrap_or_default(),
            judged: Judged { rules, bounds: Vec::new(), ..judged.clone() },
        }
    }
}

/// A hash of what an id is: the text of its file, whatever the runs.
pub(super) fn experiment_hash(case: &Case) -> String {
    format!("{:016x}", xxh3_64(format!("{}\0{}", case.id, case.text).as_bytes()))
}
