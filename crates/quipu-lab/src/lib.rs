//! Experiments: plans, runs and result files.
//!
//! From above to below:
//!
//! - [`plan::Plan`]: a scenario with its pages read and its policies combined, as a list of runs.
//! - [`run::measure`]: one run, in virtual time, with the instruments that look on.
//! - [`loading::Loading`]: a page as it arrives, over whatever network.
//! - [`observed::record_of`]: the record of a load that a browser made.
//! - [`batch::Runner`]: runs of a plan, each with its bounds; [`batch::run_all`]: all of them on all cores,
//!   collected in the plan's order.
//! - [`results`]: what the runs of a plan say together, and the files of a result.
//! - [`program`]: which program makes results, and what of it a run depends on.
//! - [`detail`]: one load in full, replayed: what each path carried when.
//! - [`run::logs`]: qlog files of runs, beside all that.
//! - [`table`]: both as text for a terminal.
//!
//! Start with [`Plan`](plan::Plan), [`run_all`](batch::run_all) and
//! [`results::summary`]. [`pages`] and [`policies`] are the seams to the crates that know pages and policies by name.
//!
//! Not here: many scenarios at once (`quipu-study`), scenario files ([`quipu_scenario`]), records and statistics ([`quipu_record`]), the command line, the wall clock, sockets.

/// Ids, time and units: what signatures here are made of.
pub use quipu_base as base;
/// The scheduling seam, for policies of one's own.
pub use quipu_policy as policy;

pub mod batch;
pub mod bound;
pub mod detail;
pub mod draw;
pub mod loading;
pub mod observed;
pub mod pages;
mod path_record;
pub mod plan;
pub mod policies;
pub mod program;
pub mod results;
pub mod run;
pub mod table;

pub use path_record::path_record;
