//! What the runs of a plan say together: medians, percentiles, paired ratios.

use quipu_base::Seed;
use quipu_record::stats::{Comparison, Ratio, median, median_of_numbers, p95};
use quipu_record::{
    Bounds, Contender, Failure, FasterAlone, Identical, Metric, MetricSummary, PathRecord,
    PathShare, RowSummary, RunRecord, Runs, Summary, between_clients, faster_alone, groups,
    stream_summaries,
};
use rayon::prelude::*;

use super::runs::runs_of;
use super::sharing;
use crate::plan::{Cell, Plan, World};
use crate::policies::PolicyRow;

/// The run of `cell` failed for `reason`.
pub fn failure(plan: &Plan, cell: Cell, reason: String) -> Failure {
    let network = &plan.networks[cell.network];
    Failure {
        page: plan.page_name(cell.page).to_owned(),
        network: network.network.name.clone(),
        policy: network.policies[cell.policy].label.clone(),
        run: cell.run,
        reason,
    }
}

/// Summarises the runs of `plan` that ended well, in the order of its cells.
pub fn summary(plan: &Plan, finished: &[(Cell, RunRecord)], failures: Vec<Failure>) -> Summary {
    let planned = plan.cells().count();
    let runs_finished = finished.iter().filter(|(_, record)| record.is_first()).count();
    Summary {
        provenance: plan.provenance(),
        world: plan.world.name(),
        seed: plan.scenario.seed,
        complete: runs_finished == planned,
        runs_planned: planned,
        runs_finished,
        failures,
        pages: plan.pages.iter().map(|page| page.note.clone()).collect(),
        rows: rows(plan, finished),
        sharing: sharing::all(plan, finished),
        identical: identical(plan, finished),
        faster_alone: alone(plan, finished),
        computing_range: None,
    }
}

/// The paths alone that are faster than every policy over all paths.
fn alone(plan: &Plan, finished: &[(Cell, RunRecord)]) -> Vec<FasterAlone> {
    let mut all = Vec::new();
    for page in 0..plan.pages.len() {
        for (network, planned) in plan.networks.iter().enumerate() {
            let rows = planned.policies.iter().enumerate();
            let runs: Vec<Runs<'_>> =
                rows.map(|(policy, _)| runs_of(finished, page, network, policy)).collect();
            let rows = planned.policies.iter().zip(&runs);
            let rows: Vec<Contender<'_>> =
                rows.map(|(row, runs)| contender(row, runs, planned.runs)).collect();
            let random = plan.world.is_random(&plan.scenario, &planned.network);
            all.extend(faster_alone(
                [plan.page_name(page), &planned.network.name],
                // At most 32.
                planned.network.paths.len() as u32,
                &rows,
                &Comparison::new(Seed::new(plan.scenario.seed), random),
                random,
            ));
        }
    }
    all
}

/// A row of which `planned` runs were planned.
fn contender<'r>(row: &'r PolicyRow, runs: &'r Runs<'r>, planned: u32) -> Contender<'r> {
    Contender {
        policy: &row.label,
        alone: row.alone.as_ref().map(|path| path.name.as_str()),
        runs,
        complete: firsts(runs) == planned as usize,
    }
}

/// How many runs there are, each of which may have several loads.
fn firsts(runs: &Runs<'_>) -> usize {
    runs.iter().filter(|(_, record)| record.is_first()).count()
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
    let random = plan.world.is_random(&plan.scenario, &network.network);
    let comparison = Comparison::new(Seed::new(plan.scenario.seed), random);
    let metrics = Metric::of_loads().filter_map(|(metric, _)| {
        let of = |record: &RunRecord| metric.of(record);
        let values: Vec<u64> = runs.iter().filter_map(|(_, record)| of(record)).collect();
        // The first row is what the others are compared with.
        let ratio = if cell.policy == 0 {
            None
        } else {
            let groups = groups(runs, base, of);
            comparison.ratio_of_groups(groups.iter().map(Vec::as_slice))
        };
        let interval = ratio.and_then(|Ratio { interval, .. }| interval);
        let bounds: Vec<(u64, Bounds)> = runs
            .iter()
            .filter_map(|(_, record)| Some((of(record)?, metric.bound(record)?)))
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
    });
    let metrics = metrics.collect();
    RowSummary {
        page: plan.page_name(cell.page).to_owned(),
        network: network.network.name.clone(),
        policy: network.policies[cell.policy].label.clone(),
        choice: network.policies[cell.policy].full_text(),
        alone: network.policies[cell.policy].alone.as_ref().map(|path| path.name.clone()),
        runs: firsts(runs),
        metrics,
        shares: shares(plan, cell, runs),
        streams: stream_summaries(runs, (cell.policy != 0).then_some(base), &comparison),
        fairness: between_clients(runs),
        refused: runs.iter().map(|(_, record)| record.refused).sum(),
        overridden: runs.iter().map(|(_, record)| record.overridden).sum(),
    }
}

/// The middle of the ratios of times to their bounds.
fn over_bound(times: &[(u64, Bounds)]) -> Option<f64> {
    let ratio = |(time, bounds): &(u64, Bounds)| *time as f64 / bounds.tight.as_nanos() as f64;
    median_of_numbers(&times.iter().map(ratio).collect::<Vec<f64>>())
}

fn shares(plan: &Plan, cell: Cell, runs: &Runs<'_>) -> Vec<PathShare> {
    let network = &plan.networks[cell.network].network;
    let paths = &network.paths;
    // What a real server sent is not known, only what came of it.
    let is_real = plan.world != World::Simulated;
    let amount = |record: &RunRecord, path: &PathRecord| match is_real {
        true if path.end != record.sender => path.datagrams_received,
        false if path.end == record.sender => path.bytes_sent.0,
        _ => 0,
    };
    let sent = |id: Option<u32>| -> u128 {
        let paths = runs
            .iter()
            .flat_map(|(_, record)| record.paths.iter().map(move |path| (*record, path)));
        paths
            .filter(|(_, path)| id.is_none_or(|id| path.path == id))
            .map(|(record, path)| u128::from(amount(record, path)))
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
