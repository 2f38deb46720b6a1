//! Random numbers for policies: the same for the same run and end of a connection.

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use quipu_base::{Rng, uniform};

/// The random numbers of one policy in one end of a connection. They depend on the run's seed and on the policy's name,
/// and on nothing else. Draw in the constructor and in methods for events, not in answers: a question may come twice.
#[pyclass(module = "quipu")]
pub(crate) struct Random(pub(crate) quipu_base::Random);

impl Random {
    /// A whole number below `end`, each as likely as any other.
    fn below(&mut self, end: u64) -> u64 {
        // Upper half of a product.
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }
}

#[pymethods]
impl Random {
    /// A number from 0 to below 1.
    fn random(&mut self) -> f64 {
        uniform(&mut self.0)
    }

    /// A whole number from 0 to below `stop`.
    fn randrange(&mut self, stop: u64) -> PyResult<u64> {
        if stop == 0 {
            return Err(PyValueError::new_err("randrange(0): expected at least 1"));
        }
        Ok(self.below(stop))
    }

    /// One of the items of a sequence.
    fn choice<'py>(&mut self, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let count = items.len()?;
        if count == 0 {
            return Err(PyIndexError::new_err("choice: the sequence is empty"));
        }
        items.get_item(self.below(count as u64))
    }
}
