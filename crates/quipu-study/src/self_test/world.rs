//! The worlds of the test: one path of some rate, and what is known of a load in it.

use quipu_base::{Duration, Seed};
use quipu_lab::batch::Runner;
use quipu_lab::detail;
use quipu_lab::pages::PlannedPage;
use quipu_lab::plan::{Cell, Plan};
use quipu_scenario::{Network, Scenario};
use quipu_web::page::{Compute, Page, ReadOptions, read};
use quipu_web::recording::join;
use quipu_web::synthetic;

use super::SelfTestError;

/// Delay of the path in either direction: our choice.
const DELAY: &str = "15ms";

/// The only run of each plan.
const CELL: Cell = Cell { page: 0, network: 0, policy: 0, run: 0 };

/// A page whose dependencies, think times and computing are known. What infers pages gets its recordings alone.
#[derive(Debug)]
pub(super) struct Truth(Page);

/// What a browser would have written of a load.
#[derive(Debug)]
pub(super) struct Recording(Vec<u8>);

/// What was measured of a load, in ns: page time, critical time, ObjectIndex.
pub(super) type Times = [f64; 3];

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
    let mut scenario = Scenario {
        runs: 1,
        host_jitter: Duration::ZERO,
        browser: "chrome".to_owned(),
        ..Scenario::default()
    };
    scenario.networks = vec![Network::from_links(vec![
        format!("rate={rate}mbit,delay={DELAY}")
            .parse()
            .map_err(|source| SelfTestError::Rate { rate, source })?,
    ])];
    scenario.policies.stream = vec!["wrr".to_owned()];
    scenario.policies.path = vec!["minrtt".to_owned()];
    scenario.policies.joint = Vec::new();
    scenario.policies.baselines = false;
    let mut plan = Plan::new(scenario)?;
    plan.pages = vec![PlannedPage::of_page(page.clone(), Seed::new(1))?];
    Ok(plan)
}

fn load(page: &Page, rate: u64) -> Result<Times, SelfTestError> {
    let plan = plan(page, rate)?;
    let records = Runner::new(&plan).without_bounds().run_session(CELL)?;
    let times =
        records.first().map(|record| [record.page_time, record.critical_time, record.object_index]);
    Ok(times.unwrap_or_default().map(|time| time.as_nanos() as f64))
}
