//! Studies: many scenarios at once, and what their runs say together.
//!
//! - [`sweep`]: grids and random samples over fields of a scenario, each run kept in a store.
//! - [`reproduce`]: experiments of the papers, with rules and verdicts; those in `experiments/` come with
//!   the program.
//! - [`agree`]: the same loads over emulated links and in the simulator, and where they differ.
//! - [`check`]: everything that is wrong with a scenario file, with its experiment and its sweep.
//! - [`replay`]: loads of results run again, to be shown in full.
//! - [`self_test`]: how well pages are inferred from recordings.
//! - [`predict`]: what a recording at one speed says of others, beside what was measured there.
//! - [`cost`]: what decisions of policies cost.
//!
//! Start with [`Sweep`](sweep::Sweep), [`Job`](reproduce::Job) and [`check()`](check::check).
//!
//! Not here: how one scenario is planned and run ([`quipu_lab`]), the formats of `[experiment]` and `[sweep]`
//! ([`quipu_scenario`]), and what is known of a run ([`quipu_record`]).

pub mod agree;
pub mod check;
pub mod cost;
mod one_path;
pub mod predict;
pub mod replay;
pub mod reproduce;
mod run_key;
pub mod self_test;
pub mod sweep;

pub use one_path::LoadError;
