//! What the runs of a plan say together: medians, percentiles, paired ratios.

use serde::Serialize;

use crate::fairness::Fairness;
use crate::faster_alone::FasterAlone;
use crate::metric::Metric;
use crate::page::PageNote;
use crate::provenance::Provenance;
use crate::sharing::{PathShare, Sharing};
use crate::streams::StreamSummary;
use crate::turned::ComputingRange;

/// The runs of one metric; of sessions, all their pages, and of all clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricSummary {
    /// The metric.
    pub metric: Metric,
    /// The middle run, in nanoseconds, bytes or packets.
    pub median: u64,
    /// What 95 % of the runs do not exceed.
    pub p95: u64,
    /// Geometric mean of the paired ratios to the first row; `null` for what has none.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's 95 % interval; `null` without randomness.
    pub ratio_low: Option<f64>,
    /// Upper end of the ratio's 95 % interval.
    pub ratio_high: Option<f64>,
    /// The middle of the fluid bounds, in nanoseconds; `null` for what has none.
    pub fluid_bound: Option<u64>,
    /// The middle of the tight bounds, which no scheduler can beat.
    pub bound: Option<u64>,
    /// The middle of the runs' ratios to their tight bounds: 1 and more.
    pub over_bound: Option<f64>,
}

/// All runs of one page over one network with one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowSummary {
    /// The page.
    pub page: String,
    /// The network.
    pub network: String,
    /// The policy.
    pub policy: String,
    /// The same with every layer and parameter.
    pub choice: String,
    /// The path that was the whole network; `null` with all paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone: Option<String>,
    /// Runs that ended well.
    pub runs: usize,
    /// Each metric.
    pub metrics: Vec<MetricSummary>,
    /// Each path of the network.
    pub shares: Vec<PathShare>,
    /// Each raw stream that carried something; none with HTTP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamSummary>,
    /// How evenly the clients of a run were served; `null` if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
    /// Answers that the engine refused, over all runs.
    pub refused: u64,
    /// Decisions that the engine took itself, over all runs.
    pub overridden: u64,
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The page.
    pub page: String,
    /// The network.
    pub network: String,
    /// The policy.
    pub policy: String,
    /// The run.
    pub run: u32,
    /// Why.
    pub reason: String,
}

/// Policies that gave the same in every run, to the nanosecond: nothing made them differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Identical {
    /// The page.
    pub page: String,
    /// The network.
    pub network: String,
    /// The policies, two or more.
    pub policies: Vec<String>,
}

/// What a sweep says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The program.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Which world the numbers are from.
    pub world: &'static str,
    /// Seed of the experiment.
    pub seed: u64,
    /// Whether all planned runs ended well.
    pub complete: bool,
    /// Runs that were planned.
    pub runs_planned: usize,
    /// Runs that ended well.
    pub runs_finished: usize,
    /// Runs that failed.
    pub failures: Vec<Failure>,
    /// The pages.
    pub pages: Vec<PageNote>,
    /// One row per page, network and policy, in that order; none without pages.
    pub rows: Vec<RowSummary>,
    /// Flows, links and cross traffic of each page, network and policy, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sharing: Vec<Sharing>,
    /// Rows that are not merely alike.
    pub identical: Vec<Identical>,
    /// Paths alone that are faster than every policy over all paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faster_alone: Vec<FasterAlone>,
    /// What other readings of the recordings turn, if they were tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computing_range: Option<ComputingRange>,
}

impl RowSummary {
    /// The summary of `metric`; `None` if no run ended well.
    pub fn metric(&self, metric: Metric) -> Option<&MetricSummary> {
        self.metrics.iter().find(|summary| summary.metric == metric)
    }
}
