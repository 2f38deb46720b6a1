//! Experiments: scenarios, runs, sweeps, statistics and result files.

pub mod scenario;
