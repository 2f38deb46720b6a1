//! Experiments: scenarios, runs, sweeps, statistics and result files.
//!
//! From above to below:
//!
//! - [`plan::Plan`]: a scenario with its pages read and its policies combined, as a list of runs.
//! - [`run::run`]: one run, in virtual time.
//! - [`batch::run_all`]: all runs on all cores, collected in the plan's order.
//! - [`sweep`]: grids and random samples over fields of a scenario, kept in a store.
//! - [`results`]: what a run measured, what all say together, and the files of both.
//! - [`stats`]: medians, paired ratios, bootstrap intervals.
//! - [`detail`]: one load in full, replayed: what each path carried when.
//! - [`logs`]: qlog files of runs, beside all that.
//! - [`table`]: both as text for a terminal.
//! - [`reproduce`]: experiments of the papers, with rules and verdicts.
//!
//! Start with [`Scenario`](quipu_scenario::Scenario), [`Plan`](plan::Plan) and
//! [`Summary`](results::Summary). [`pages`] and [`policies`] are the seams to the crates that know pages and policies by name.
//!
//! Not here: scenario files ([`quipu_scenario`]), the command line, the wall clock, sockets.

/// Ids, time and units: what signatures here are made of.
pub use quipu_base as base;
/// The scheduling seam, for policies of one's own.
pub use quipu_policy as policy;

pub mod batch;
pub mod bound;
pub mod check;
pub mod cost;
pub mod detail;
pub mod draw;
pub mod logs;
pub mod pages;
pub mod plan;
pub mod policies;
pub mod reproduce;
pub mod results;
pub mod run;
mod run_key;
pub mod stats;
pub mod sweep;
pub mod table;
pub mod whole_file;
