//! What the runs of a sweep say together: medians, percentiles, paired ratios.

use std::fmt;

use quipu_base::Seed;
use serde::Serialize;

use super::sharing::{self, Sharing};
use super::streams::{self, StreamSummary};
use super::{COMMIT, PageNote, RunRecord, VERSION};
use crate::plan::{Cell, Plan};
use crate::stats::{Comparison, Ratio, median, p95};

/// Where the results of this crate come from: virtual time and modelled links.
pub const WORLD: &str = "simulated";

/// A quantity measured once per run, or for each page of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Until the handshake's end.
    ConnectTime,
    /// Until the page is complete.
    PageTime,
    /// Mean completion of objects.
    ObjectIndex,
    /// Mean arrival of bytes.
    ByteIndex,
    /// Until all that blocks is complete.
    CriticalTime,
    /// Bytes that were sent again after a loss.
    BytesResent,
    /// Bytes that were sent as copies.
    BytesCopies,
    /// Packets per change of path.
    PathStability,
}

/// The runs of one metric; of sessions, all their pages.
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
}

/// How much of the sender's bytes went over a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathShare {
    /// The path.
    pub path: u32,
    /// What the network calls it.
    pub name: String,
    /// Share of all bytes of all runs, in thousandths.
    pub per_mille: u64,
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
    /// Runs that ended well.
    pub runs: usize,
    /// Each metric.
    pub metrics: Vec<MetricSummary>,
    /// Each path of the network.
    pub shares: Vec<PathShare>,
    /// Each raw stream that carried something; none with HTTP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamSummary>,
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
    /// Version of the program.
    pub version: &'static str,
    /// Commit of the program.
    pub commit: &'static str,
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
}

impl Metric {
    /// All metrics, in the order of the files.
    pub const ALL: [Metric; 8] = [
        Metric::ConnectTime,
        Metric::PageTime,
        Metric::ObjectIndex,
        Metric::ByteIndex,
        Metric::CriticalTime,
        Metric::BytesResent,
        Metric::BytesCopies,
        Metric::PathStability,
    ];

    /// The metric of `record`, in nanoseconds, bytes or packets.
    pub fn of(self, record: &RunRecord) -> u64 {
        match self {
            Metric::ConnectTime => record.connect_time.as_nanos(),
            Metric::PageTime => record.page_time.as_nanos(),
            Metric::ObjectIndex => record.object_index.as_nanos(),
            Metric::ByteIndex => record.byte_index.as_nanos(),
            Metric::CriticalTime => record.critical_time.as_nanos(),
            Metric::BytesResent => record.sender_total(|path| path.bytes_resent).0,
            Metric::BytesCopies => record.sender_total(|path| path.bytes_copies).0,
            Metric::PathStability => record.path_stability(),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Metric::ConnectTime => "connect time",
            Metric::PageTime => "page time",
            Metric::ObjectIndex => "ObjectIndex",
            Metric::ByteIndex => "ByteIndex",
            Metric::CriticalTime => "critical time",
            Metric::BytesResent => "resent bytes",
            Metric::BytesCopies => "copied bytes",
            Metric::PathStability => "packets per path switch",
        })
    }
}

impl RowSummary {
    /// The summary of `metric`; `None` if no run ended well.
    pub fn metric(&self, metric: Metric) -> Option<&MetricSummary> {
        self.metrics.iter().find(|summary| summary.metric == metric)
    }
}

impl Summary {
    /// Summarises the runs that ended well, in the order of the plan's cells.
    pub fn new(plan: &Plan, finished: &[(Cell, RunRecord)], failures: Vec<Failure>) -> Summary {
        let planned = plan.cells().count();
        let runs_finished = finished.iter().filter(|(_, record)| record.visit == 0).count();
        Summary {
            version: VERSION,
            commit: COMMIT,
            world: WORLD,
            seed: plan.scenario.seed,
            complete: runs_finished == planned,
            runs_planned: planned,
            runs_finished,
            failures,
            pages: plan.pages.iter().map(|page| page.note.clone()).collect(),
            rows: rows(plan, finished),
            sharing: sharing::all(plan, finished),
            identical: identical(plan, finished),
        }
    }
}

/// Loads by the number of the run and of the page in its session.
pub(super) type Runs<'a> = Vec<((u32, u32), &'a RunRecord)>;

/// What `value` says of runs and of those of `base` with the same number.
pub(super) fn pairs(
    runs: &Runs<'_>,
    base: &Runs<'_>,
    value: impl Fn(&RunRecord) -> Option<u64>,
) -> Vec<(u64, u64)> {
    let pair = |(load, record): &((u32, u32), &RunRecord)| {
        let position = base.binary_search_by_key(load, |(load, _)| *load).ok()?;
        Some((value(record)?, value(base[position].1)?))
    };
    runs.iter().filter_map(pair).collect()
}

/// The runs of one page over one network with one policy.
pub(super) fn runs_of(
    finished: &[(Cell, RunRecord)],
    page: usize,
    network: usize,
    policy: usize,
) -> Runs<'_> {
    finished
        .iter()
        .filter(|(cell, _)| (cell.page, cell.network, cell.policy) == (page, network, policy))
        .map(|(cell, record)| ((cell.run, record.visit), record))
        .collect()
}

fn identical(plan: &Plan, finished: &[(Cell, RunRecord)]) -> Vec<Identical> {
    let mut all = Vec::new();
    for page in 0..plan.page_count() {
        for (network, planned) in plan.networks.iter().enumerate() {
            // Policies by what their runs gave; the first of a group stands for it.
            let mut groups: Vec<(Runs<'_>, Vec<String>)> = Vec::new();
            for (policy, row) in planned.policies.iter().enumerate() {
                let runs = runs_of(finished, page, network, policy);
                match groups.iter_mut().find(|(first, _)| *first == runs) {
                    _ if runs.is_empty() => {}
                    Some((_, names)) => names.push(row.label.clone()),
                    None => groups.push((runs, vec![row.label.clone()])),
                }
            }
            let groups = groups.into_iter().filter(|(_, policies)| policies.len() > 1);
            all.extend(groups.map(|(_, policies)| Identical {
                page: plan.page_name(page).to_owned(),
                network: planned.network.name.clone(),
                policies,
            }));
        }
    }
    all
}

fn rows(plan: &Plan, finished: &[(Cell, RunRecord)]) -> Vec<RowSummary> {
    let mut rows = Vec::new();
    for page in 0..plan.pages.len() {
        for network in 0..plan.networks.len() {
            let base = runs_of(finished, page, network, 0);
            for policy in 0..plan.networks[network].policies.len() {
                let cell = Cell { page, network, policy, run: 0 };
                let runs = runs_of(finished, page, network, policy);
                rows.push(row(plan, cell, &runs, &base));
            }
        }
    }
    rows
}

fn row(plan: &Plan, cell: Cell, runs: &Runs<'_>, base: &Runs<'_>) -> RowSummary {
    let network = &plan.networks[cell.network];
    let random = plan.scenario.is_random(&network.network);
    let comparison = Comparison::new(Seed::new(plan.scenario.seed), random);
    let metrics = Metric::ALL
        .into_iter()
        .filter_map(|metric| {
            let values: Vec<u64> = runs.iter().map(|(_, record)| metric.of(record)).collect();
            let pairs = pairs(runs, base, |record| Some(metric.of(record)));
            // The first row is what the others are compared with.
            let ratio = if cell.policy == 0 { None } else { comparison.ratio(&pairs) };
            let interval = ratio.and_then(|Ratio { interval, .. }| interval);
            Some(MetricSummary {
                metric,
                median: median(&values)?,
                p95: p95(&values)?,
                ratio: ratio.map(|ratio| ratio.mean),
                ratio_low: interval.map(|(low, _)| low),
                ratio_high: interval.map(|(_, high)| high),
            })
        })
        .collect();
    RowSummary {
        page: plan.page_name(cell.page).to_owned(),
        network: network.network.name.clone(),
        policy: network.policies[cell.policy].label.clone(),
        choice: network.policies[cell.policy].full_text(),
        runs: runs.iter().filter(|(_, record)| record.visit == 0).count(),
        metrics,
        shares: shares(plan, cell, runs),
        streams: streams::summaries(runs, (cell.policy != 0).then_some(base), &comparison),
        refused: runs.iter().map(|(_, record)| record.refused).sum(),
        overridden: runs.iter().map(|(_, record)| record.overridden).sum(),
    }
}

fn shares(plan: &Plan, cell: Cell, runs: &Runs<'_>) -> Vec<PathShare> {
    let paths = &plan.networks[cell.network].network.paths;
    let sent = |id: Option<u32>| -> u128 {
        runs.iter()
            .flat_map(|(_, record)| record.paths_of(record.sender))
            .filter(|path| id.is_none_or(|id| path.path == id))
            .map(|path| u128::from(path.bytes_sent.0))
            .sum()
    };
    let total = sent(None).max(1);
    (0..)
        .zip(paths)
        .map(|(path, spec)| PathShare {
            path,
            name: spec.name.clone(),
            // At most 1,000, so it fits.
            per_mille: ((sent(Some(path)) * 1_000 + total / 2) / total) as u64,
        })
        .collect()
}
