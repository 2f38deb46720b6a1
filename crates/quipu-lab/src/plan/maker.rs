//! Runs that are made outside of the simulator.

use std::fmt;

use quipu_record::RunRecord;
use thiserror::Error;

use super::{Cell, Plan};

/// Why a run outside of the simulator gave no result, in words.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct MakeError(pub String);

/// Makes runs in real time, of which one is made after the other.
pub trait Maker: fmt::Debug + Send + Sync {
    /// Makes the run of `cell`: the records that a [`Runner`](crate::batch::Runner) gives of a simulated one.
    ///
    /// # Errors
    /// If it gives no result, or [`Plan::stop`] is set.
    fn make(&self, plan: &Plan, cell: Cell) -> Result<Vec<RunRecord>, MakeError>;
}
