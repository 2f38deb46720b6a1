//! Reproducing the papers: experiments with verdicts.
//!
//! - [`Experiment`](quipu_scenario::experiment::Experiment): the `[experiment]` table of a scenario file: claims, rules, the papers' numbers.
//! - [`cases`](quipu_scenario::experiment::cases): the ids of a file, each with its own scenario and experiment; [`choose`]: those that come
//!   with the program, by name.
//! - [`Job`]: an id ready to run. [`reproduce`]: all of them on all cores, and what was found ([`Judged`](quipu_record::verdict::Judged)).
//!
//! Within: `catalogue` finds ids, `places` tells what a rule compares, `select` and `samples` take numbers
//! from runs by the statistics of `stat`, `compare` makes estimates of them, `verdict` judges, `agreement` does so
//! where the paper leaves settings open, `chance` with policies `dealt` out anew; `result_table` has the
//! numbers of tables that texts show, `docs` writes it down, and `worlds` puts what two worlds say side by side. The format is explained in `docs/reproduce.md`.

mod agreement;
mod catalogue;
mod chance;
mod compare;
mod data;
mod dealt;
mod docs;
mod error;
mod job;
mod places;
mod result_table;
mod runner;
mod samples;
mod select;
mod stat;
mod todo;
mod verdict;
mod workshop;
mod worlds;

pub use catalogue::{Origin, builtin, choose, load};
pub use docs::{Page, rules, survivors, terminal, unexplained};
pub use error::ExperimentError;
pub use job::{Effort, Job};
pub use runner::reproduce;
pub use todo::{Place, Progress, ReproduceError, Todo};
pub use worlds::beside;
