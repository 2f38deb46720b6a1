//! What the runs of a plan give: their names in tables, their summary, and the files of both.

mod names;
mod networks;
mod runs;
mod sharing;
mod summary;
mod write;

pub use names::{Named, part_of, place};
pub use networks::add_networks;
pub use summary::{failure, summary};
pub use write::{copy_inputs, named, write};
