//! Sweeps: grids and random samples over fields of a scenario, of any size.
//!
//! - [`Sweep`]: what a file with a table `[sweep]` amounts to, a plan for each point.
//! - `store`: what was run, by the content of what was asked for, in a database.
//! - [`Todo`]: what of a sweep is not in the store yet, and how it gets there.
//! - `gather`: runs that are made elsewhere, part by part, and merged as they come.
//! - `files`, `summary`, `status`: the files of a result, made from the store.
//! - [`overview`]: the same as text for a terminal.
//!
//! A run is known by a number that everything which decides it goes into (`run_key`), so that it is
//! made once, whatever else the file asks for, however often it was stopped, and by whichever shard.

mod files;
mod gather;
mod overview;
mod points;
mod shard;
mod status;
mod store;
mod summary;
mod todo;

pub use files::Written;
pub use overview::overview;
pub use points::{Point, Sweep};
pub use shard::Shard;
pub use status::{State, Status};
pub use store::StoreError;
pub use todo::{Place, SweepError, Todo, Within};
