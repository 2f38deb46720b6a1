//! Path policies that were learned.
//!
//! - [`observation`]: what a decision looks like as numbers, and which answers are allowed.
//! - [`choosing`]: a path policy that asks a [`Decider`] for one of the places of an observation.
//! - [`score`]: a decider that takes the place of greatest score.
//! - [`linear`] and, with the feature `onnx`, `onnx`: what gives scores, read from files.
//! - [`entries`]: these policies by name, and [`registry`] with all that come with the program.
//!
//! An environment in which a policy learns asks through the same [`Choosing`] as an exported policy, so what was learned
//! serves as it was trained.
//!
//! Not here: how policies learn, which is for Python.

pub mod choosing;
pub mod entries;
pub mod linear;
pub mod observation;
#[cfg(feature = "onnx")]
pub mod onnx;
pub mod score;

pub use choosing::{Choosing, Decider};
pub use entries::{add_to, registry};
pub use linear::Linear;
pub use score::{Score, greatest};
