//! What the runs of a sweep say together: medians, percentiles, paired ratios.

use std::fmt;

use quipu_base::Seed;
use rayon::prelude::*;
use serde::Serialize;

use super::fairness::{self, Fairness};
use super::sharing::{self, Sharing};
use super::streams::{self, StreamSummary};
use super::{Bounds, COMMIT, PageNote, RunRecord, VERSION};
use crate::plan::{Cell, Plan};
use crate::stats::{Comparison, Ratio, median, p95};

/// Where the results of this crate come from: virtual time and modelled links.
pub const WORLD: &str = "simulated";

/// A quantity measured once per run, or for each page of its session and each client.
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

    /// What the metric of `record` cannot be below, for those that have a bound.
    pub fn bound(self, record: &RunRecord) -> Option<Bounds> {
        let bounds = match self {
            Metric::PageTime => record.page_bound,
            Metric::CriticalTime => record.critical_bound,
            _ => return None,
        };
        (!bounds.tight.is_zero()).then_some(bounds)
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

impl Failure {
    /// The run of `cell` failed for `reason`.
    pub(crate) fn of(plan: &Plan, cell: Cell, reason: String) -> Failure {
        let network = &plan.networks[cell.network];
        Failure {
            page: plan.page_name(cell.page).to_owned(),
            network: network.network.name.clone(),
            policy: network.policies[cell.policy].label.clone(),
            run: cell.run,
            reason,
        }
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
        let runs_finished = finished.iter().filter(|(_, record)| record.is_first()).count();
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

/// Loads by the numbers of the run, of the client and of the page in its session.
pub(super) type Runs<'a> = Vec<(LoadKey, &'a RunRecord)>;

/// Numbers of the run, of the client and of the page in its session.
pub(super) type LoadKey = (u32, u32, u32);

/// What `value` says of runs and of those of `base` with the same number.
pub(super) fn pairs(
    runs: &[(LoadKey, &RunRecord)],
    base: &Runs<'_>,
    value: impl Fn(&RunRecord) -> Option<u64>,
) -> Vec<(u64, u64)> {
    let pair = |(load, record): &(LoadKey, &RunRecord)| {
        let position = base.binary_search_by_key(load, |(load, _)| *load).ok()?;
        Some((value(record)?, value(base[position].1)?))
    };
    runs.iter().filter_map(pair).collect()
}

/// The same in groups that chance decides together: the clients of a run share its links; of a run with
/// one client each page of its session is a group.
fn groups(
    runs: &Runs<'_>,
    base: &Runs<'_>,
    value: impl Fn(&RunRecord) -> Option<u64>,
) -> Vec<Vec<(u64, u64)>> {
    let several = runs.iter().any(|(_, record)| record.client > 0);
    let together =
        |one: &(LoadKey, &RunRecord), next: &(LoadKey, &RunRecord)| several && one.0.0 == next.0.0;
    runs.chunk_by(together).map(|group| pairs(group, base, &value)).collect()
}

/// The runs of one page over one network with one policy, out of those of all in the order of the plan's
/// cells.
pub(super) fn runs_of(
    finished: &[(Cell, RunRecord)],
    page: usize,
    network: usize,
    policy: usize,
) -> Runs<'_> {
    let place = (page, network, policy);
    let of = |cell: &Cell| (cell.page, cell.network, cell.policy);
    let start = finished.partition_point(|(cell, _)| of(cell) < place);
    let end = finished.partition_point(|(cell, _)| of(cell) <= place);
    finished[start..end]
        .iter()
        .map(|(cell, record)| ((cell.run, record.client, record.visit), record))
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
    let networks = || plan.networks.iter().enumerate();
    let places = (0..plan.pages.len()).flat_map(|page| {
        networks().flat_map(move |(network, planned)| {
            (0..planned.policies.len()).map(move |policy| Cell { page, network, policy, run: 0 })
        })
    });
    let places: Vec<Cell> = places.collect();
    // Intervals are drawn ten thousand times each.
    let of_place = |cell: &Cell| {
        let base = runs_of(finished, cell.page, cell.network, 0);
        let runs = runs_of(finished, cell.page, cell.network, cell.policy);
        row(plan, *cell, &runs, &base)
    };
    places.par_iter().map(of_place).collect()
}

fn row(plan: &Plan, cell: Cell, runs: &Runs<'_>, base: &Runs<'_>) -> RowSummary {
    let network = &plan.networks[cell.network];
    let random = plan.scenario.is_random(&network.network);
    let comparison = Comparison::new(Seed::new(plan.scenario.seed), random);
    let metrics = Metric::ALL
        .into_iter()
        .filter_map(|metric| {
            let values: Vec<u64> = runs.iter().map(|(_, record)| metric.of(record)).collect();
            // The first row is what the others are compared with.
            let ratio = if cell.policy == 0 {
                None
            } else {
                let groups = groups(runs, base, |record| Some(metric.of(record)));
                comparison.ratio_of_groups(groups.iter().map(Vec::as_slice))
            };
            let interval = ratio.and_then(|Ratio { interval, .. }| interval);
            let bounds: Vec<(u64, Bounds)> = runs
                .iter()
                .filter_map(|(_, record)| Some((metric.of(record), metric.bound(record)?)))
                .collect();
            let of_bounds = |value: fn(&Bounds) -> u64| {
                median(&bounds.iter().map(|(_, bounds)| value(bounds)).collect::<Vec<_>>())
            };
            Some(MetricSummary {
                metric,
                median: median(&values)?,
                p95: p95(&values)?,
                ratio: ratio.map(|ratio| ratio.mean),
                ratio_low: interval.map(|(low, _)| low),
                ratio_high: interval.map(|(_, high)| high),
                fluid_bound: of_bounds(|bounds| bounds.fluid.as_nanos()),
                bound: of_bounds(|bounds| bounds.tight.as_nanos()),
                over_bound: over_bound(&bounds),
            })
        })
        .collect();
    RowSummary {
        page: plan.page_name(cell.page).to_owned(),
        network: network.network.name.clone(),
        policy: network.policies[cell.policy].label.clone(),
        choice: network.policies[cell.policy].full_text(),
        runs: runs.iter().filter(|(_, record)| record.is_first()).count(),
        metrics,
        shares: shares(plan, cell, runs),
        streams: streams::summaries(runs, (cell.policy != 0).then_some(base), &comparison),
        fairness: fairness::between_clients(runs),
        refused: runs.iter().map(|(_, record)| record.refused).sum(),
        overridden: runs.iter().map(|(_, record)| record.overridden).sum(),
    }
}

/// The middle of the ratios of times to their bounds; the mean of the two middle ones if their number is
/// even.
fn over_bound(times: &[(u64, Bounds)]) -> Option<f64> {
    let ratio = |(time, bounds): &(u64, Bounds)| *time as f64 / bounds.tight.as_nanos() as f64;
    let mut ratios: Vec<f64> = times.iter().map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let middle = ratios.len() / 2;
    let upper = *ratios.get(middle)?;
    if ratios.len() % 2 == 1 { Some(upper) } else { Some(ratios[middle - 1].midpoint(upper)) }
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
