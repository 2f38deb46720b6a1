//! A linear policy keeps the rules of the seam.

use std::path::Path;

use quipu_learned::observation::{LENGTH, PLACES, names};
use quipu_policy::conformance::stands;
use quipu_policy::{Layer, PolicySpec};

/// A linear policy of weights of many sizes and both signs.
fn file() -> String {
    let weight = |number: usize| (number * 7_919 % 41) as f64 / 20.0 - 1.0;
    let rows: Vec<Vec<f64>> = (0..PLACES)
        .map(|place| (0..LENGTH).map(|index| weight(place * LENGTH + index)).collect())
        .collect();
    let policy =
        serde_json::json!({ "names": names(), "weights": rows, "bias": vec![0.0; PLACES] });
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance.json");
    std::fs::write(&path, policy.to_string()).expect("the folder of tests is there");
    path.to_str().expect("a name in UTF-8").to_owned()
}

#[test]
fn a_linear_policy_stands_the_conformance_suite() {
    let text = format!("linear:file={}", file());
    let spec = PolicySpec::choose(&quipu_learned::registry(), [(Layer::Path, &*text)]).unwrap();
    let verdict = stands(&spec, 200).unwrap();
    assert!(verdict.is_sound(), "{verdict:?}");
    assert!(verdict.decisions > 1_000, "{verdict:?}");
}
