//! The Python package's native part: experiments as functions, policies as classes.
//!
//! From above to below:
//!
//! - `run`: a comparison or a load, from a scenario's text to a folder of results.
//! - `sweep`: sweeps, made here or by others.
//! - `reproduce`: the experiments of the papers, with verdicts.
//! - `table`: tables of results as Arrow streams.
//! - `figure`: the figures of the report as Vega-Lite specifications.
//! - `learned`: what learned policies decide, on arrays of observations.
//! - `catalogue`: pages, networks, traces, browsers and policies that come with the program.
//! - `policy`: classes of Python as policies of the engine.
//! - `gym`: simulations that stop at every question to an agent.
//! - `world`: whether runs are simulated, or made over emulated links.
//! - `running`: work that leaves the interpreter to others, and ends at Ctrl-C.
//!
//! Not here: what users see of it (`python/quipu`), how scenarios are run (`quipu-lab`, `quipu-study`).

mod catalogue;
mod command;
mod error;
mod figure;
mod gym;
mod learned;
mod policy;
mod reproduce;
mod run;
mod running;
mod scenario;
mod sweep;
mod table;
mod world;

use pyo3::prelude::*;

/// The native part of the package `quipu`.
#[pymodule]
fn _quipu(module: &Bound<'_, PyModule>) -> PyResult<()> {
    error::add(module)?;
    catalogue::add(module)?;
    command::add(module)?;
    figure::add(module)?;
    gym::add(module)?;
    learned::add(module)?;
    policy::add(module)?;
    reproduce::add(module)?;
    run::add(module)?;
    sweep::add(module)?;
    table::add(module)
}
