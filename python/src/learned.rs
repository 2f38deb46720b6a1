//! Learned policies on arrays of observations, to compare with what trained them.

use pyo3::prelude::*;
use quipu_learned::observation::{LENGTH, PLACES, names};
use quipu_learned::{Linear, Score, greatest};
use quipu_policy::registry::PolicyFile;

use crate::error;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LearnedPolicy>()?;
    module.add_function(wrap_pyfunction!(observation_names, module)?)
}

/// The names of the numbers of an observation, in order.
#[pyfunction]
fn observation_names() -> Vec<String> {
    names()
}

/// A policy of a file, and what it decides.
#[pyclass(frozen, module = "quipu")]
struct LearnedPolicy(Box<dyn Score>);

#[pymethods]
impl LearnedPolicy {
    /// Reads an ONNX model from a file whose name ends in `.onnx`, a linear policy from others.
    #[new]
    fn new(file: &str) -> PyResult<Self> {
        let read = PolicyFile::read(file);
        let read = read.map_err(|error| error::scenario(format!("{file}: expected {error}")))?;
        let wrong = |error: String| error::scenario(format!("{file}: {error}"));
        #[cfg(feature = "onnx")]
        if file.ends_with(".onnx") {
            let network = quipu_learned::onnx::Network::read(read.bytes());
            return network
                .map(|network| LearnedPolicy(Box::new(network)))
                .map_err(|error| wrong(error.to_string()));
        }
        let linear = Linear::read(read.bytes()).map_err(|error| wrong(error.to_string()))?;
        Ok(LearnedPolicy(Box::new(linear)))
    }

    /// The place that each row gets. `numbers` are rows of float32, `allowed` rows of a byte for each place.
    fn decide_rows(&self, py: Python<'_>, numbers: &[u8], allowed: &[u8]) -> PyResult<Vec<usize>> {
        let (numbers, rest) = numbers.as_chunks::<4>();
        let (rows, more) = numbers.as_chunks::<LENGTH>();
        let (allowed, other) = allowed.as_chunks::<PLACES>();
        let is_whole = rest.is_empty() && more.is_empty() && other.is_empty();
        if !is_whole || rows.len() != allowed.len() {
            let expected = format!(
                "numbers, allowed: expected as many rows of {LENGTH} float32 as of {PLACES} bools"
            );
            return Err(error::scenario(expected));
        }
        py.detach(|| {
            let decided = rows.iter().zip(allowed).enumerate().map(|(row, (numbers, allowed))| {
                let numbers = numbers.map(f32::from_ne_bytes);
                let scores = self.0.scores(&numbers).ok_or_else(|| {
                    error::run(format!("numbers[{row}]: the policy gives no scores"))
                })?;
                greatest(&scores, &allowed.map(|it| it != 0)).ok_or_else(|| {
                    error::scenario(format!("allowed[{row}]: no place; expected at least one"))
                })
            });
            decided.collect()
        })
    }
}
