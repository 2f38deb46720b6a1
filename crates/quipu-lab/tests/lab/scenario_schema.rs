//! The schema of scenario files that the docs have.

use std::path::Path;

use quipu_lab::policies::{Registry, names};
use quipu_scenario::schema_text;

/// Holds the file of the docs to the schema with the built-in policies, or writes it if `QUIPU_RENEW` is
/// set.
#[test]
fn the_published_schema_is_this_one() {
    let registry = Registry::builtin();
    let ours = schema_text(&|layer| names(&registry, layer));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.schema.json");
    if std::env::var_os("QUIPU_RENEW").is_some() {
        std::fs::write(&file, &ours).unwrap();
    }
    let renew = "renew it: QUIPU_RENEW=1 cargo test -p quipu-lab --test lab scenario_schema";
    assert!(std::fs::read_to_string(&file).unwrap() == ours, "{} is old; {renew}", file.display());
}
