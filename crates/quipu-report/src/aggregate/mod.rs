//! What figures are drawn from: many runs become few numbers.
//!
//! - [`samples::Samples`]: any number of times in bounded memory.
//! - [`curve`]: distribution functions as few points; [`boxes`]: the numbers of a box plot.
//! - [`ratios`]: pairs of runs, and who is fastest in a scene.
//! - [`heat`]: ratios over how unlike the paths of networks are.

pub mod boxes;
pub mod curve;
pub mod heat;
pub mod ratios;
pub mod samples;
