//! Learned policies by name: `linear:file=policy.json`, and with the feature `onnx` `onnx:file=policy.onnx`.

use std::fmt::Display;

use quipu_policy::registry::{AddError, BuildError, Param, PolicyFile};
use quipu_policy::registry::{Confidence, Values};
use quipu_policy::{Built, Entry, Layer, Registry};

use crate::choosing::Choosing;
use crate::linear::Linear;
use crate::score::{Greatest, Score};

/// Every policy that comes with the program: those of `quipu-policy`, and those of this crate.
pub fn registry() -> Registry {
    let mut registry = Registry::builtin();
    add_to(&mut registry).expect("no policy of quipu-policy has these names, as a test shows");
    registry
}

/// Adds the policies of this crate to `registry`, as policies that come with the program.
///
/// # Errors
/// If it has others of these names.
pub fn add_to(registry: &mut Registry) -> Result<(), AddError> {
    for entry in entries() {
        registry.add_builtin(entry)?;
    }
    Ok(())
}

fn entries() -> Vec<Entry> {
    vec![
        linear(),
        #[cfg(feature = "onnx")]
        onnx(),
    ]
}

fn linear() -> Entry {
    Entry {
        name: "linear",
        layer: Layer::Path,
        about: "a linear policy that was learned: the place of greatest score",
        formula: "score(place) = bias(place) + sum over i of weight(place, i) * number(i), numbers of docs/learned.md;\n\
                  the allowed place of greatest score, lowest first: now if its path is open, else a wait for it",
        params: vec![Param::file("file", "JSON with names, weights and bias")],
        source: "our choice",
        confidence: Confidence::High,
        build: &|values, _| built(values, Linear::read),
    }
}

#[cfg(feature = "onnx")]
fn onnx() -> Entry {
    Entry {
        name: "onnx",
        layer: Layer::Path,
        about: "a neural network that was learned: the place of greatest score",
        formula: "scores of places = the network's output for the numbers of docs/learned.md;\n\
                  the allowed place of greatest score, lowest first: now if its path is open, else a wait for it",
        params: vec![Param::file("file", "ONNX model with one input and one output")],
        source: "our choice",
        confidence: Confidence::High,
        build: &|values, _| built(values, crate::onnx::Network::read),
    }
}

/// The policy of the file, which is parsed for the first connection.
fn built<S: Score + 'static, E: Display>(
    values: &Values,
    read: impl FnOnce(&[u8]) -> Result<S, E>,
) -> Result<Built, BuildError> {
    let file: &PolicyFile = values.file("file")?;
    let scores = file
        .parsed(read)
        .map_err(|error| BuildError::Failed { reason: format!("file={file}: {error}") })?;
    Ok(Built::path(Choosing::new(Greatest(scores))))
}

#[cfg(test)]
mod tests {
    use quipu_policy::PolicySpec;

    use super::*;

    #[test]
    fn learned_policies_come_with_the_program_and_need_a_file() {
        let registry = registry();
        for entry in entries() {
            let known = registry.get(Layer::Path, entry.name).unwrap();
            assert!(registry.is_builtin(known) && known.needs_file());
            let error = PolicySpec::choose(&registry, [(Layer::Path, entry.name)]).unwrap_err();
            assert!(error.to_string().contains(":file=FILE"), "{error}");
            assert!(registry.without_files().get(Layer::Path, entry.name).is_none());
        }
    }

    #[test]
    fn a_file_that_is_no_policy_is_an_error_that_names_it() {
        for entry in entries() {
            let text = format!("{}:file=Cargo.toml", entry.name);
            let error = PolicySpec::choose(&registry(), [(Layer::Path, &*text)]).unwrap_err();
            assert!(error.to_string().contains(": file=Cargo.toml: "), "{error}");
            assert!(error.to_string().contains("expected "), "{error}");
        }
    }
}
