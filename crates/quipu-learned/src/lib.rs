//! Path policies that were learned.
//!
//! - [`observation`]: what a decision looks like as numbers, and which answers are allowed.
//! - [`choosing`]: a path policy that asks a [`Decider`] for one of the places of an observation.
//!
//! An environment in which a policy learns asks through the same [`Choosing`] as an exported policy, so what was learned
//! serves as it was trained.
//!
//! Not here: how policies learn, which is for Python.

pub mod choosing;
pub mod observation;

pub use choosing::{Choosing, Decider};
