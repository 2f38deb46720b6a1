//! What can be wrong with a policy.

use thiserror::Error;

use super::super::finding::Finding;

/// Why the text of a policy is refused, as whoever knows the policies tells it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct PolicyError {
    /// In one sentence.
    pub message: String,
    /// The same with value, expectation and nearest name apart, for the place in a file.
    pub finding: Box<Finding>,
}
