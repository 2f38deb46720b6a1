//! The worlds of the test: one path of some rate, and what is known of a load in it.

use quipu_base::Seed;
use quipu_lab::detail;
use quipu_lab::plan::Plan;
use quipu_scenario::Scenario;
use quipu_web::page::{Compute, Page, ReadOptions, read};
use quipu_web::recording::join;
use quipu_web::synthetic;

use super::SelfTestError;
use crate::one_path::{self, CELL};

pub(super) use crate::one_path::Times;

/// Delay of the path in either direction: our choice.
const DELAY: &str = "15ms";

/// A page whose dependencies, think times and computing are known. What infers pages gets its recordings alone.
#[derive(Debug)]
pub(super) struct Truth(Page);

/// What a browser would have written of a load.
#[derive(Debug)]
pub(super) struct Recording(Vec<u8>);

impl Truth {
    /// The `index`-th random page of `seed`.
    pub(super) fn drawn(seed: Seed, index: u64) -> Result<Truth, SelfTestError> {
        Ok(Truth(synthetic::by_rules(seed, index)?))
    }

    /// The load over a path of `rate` Mbit/s.
    pub(super) fn load(&self, rate: u64) -> Result<Times, SelfTestError> {
        load(&self.0, rate)
    }

    /// The same, recorded, with or without what Chrome tells of initiators.
    pub(super) fn record(&self, rate: u64, initiators: bool) -> Result<Recording, SelfTestError> {
        let plan = plan(&self.0, rate)?;
        Ok(Recording(detail::recording(&plan, CELL, initiators)?.into_bytes()))
    }
}

impl Recording {
    /// Several recordings of one page as one.
    pub(super) fn joined(recordings: &[&Recording]) -> Result<Recording, SelfTestError> {
        let files: Vec<&[u8]> = recordings.iter().map(|recording| &*recording.0).collect();
        Ok(Recording(join(&files)?))
    }

    /// The page that is inferred from it.
    pub(super) fn infer(&self, compute: Compute) -> Result<Inferred, SelfTestError> {
        let options = ReadOptions { compute, join: true, ..ReadOptions::default() };
        Ok(Inferred(read("inferred", &self.0, &options)?.page))
    }
}

/// A page inferred from recordings.
#[derive(Debug)]
pub(super) struct Inferred(Page);

impl Inferred {
    pub(super) fn load(&self, rate: u64) -> Result<Times, SelfTestError> {
        load(&self.0, rate)
    }
}

fn plan(page: &Page, rate: u64) -> Result<Plan, SelfTestError> {
    let path = format!("rate={rate}mbit,delay={DELAY}")
        .parse()
        .map_err(|source| SelfTestError::Rate { rate, source })?;
    Ok(one_path::plan(page, path, Scenario::default())?)
}

fn load(page: &Page, rate: u64) -> Result<Times, SelfTestError> {
    Ok(one_path::load(&plan(page, rate)?)?)
}
