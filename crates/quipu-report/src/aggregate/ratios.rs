//! Ratios of paired loads, and who is fastest where.

use std::collections::BTreeMap;

use quipu_base::Seed;
use quipu_record::stats::Comparison;

use crate::results::{Cell, Ratio, Scene};
use quipu_record::Metric;

/// `metric` of `cell` as a ratio to that of `base`, over loads with the same run, client and visit.
/// The clients of a run share its chance and count once, as in summaries. `None` without pairs, or if
/// one is zero.
pub fn ratio(cell: &Cell, base: &Cell, metric: Metric, with: &Comparison) -> Option<Ratio> {
    let known = base.loads.iter().filter_map(|load| Some((load.key(), load.get(metric)?)));
    let known: BTreeMap<(u64, u64, u64), u64> = known.collect();
    let several = cell.loads.iter().any(|load| load.client > 0);
    let groups = cell.loads.chunk_by(|one, next| several && one.run == next.run);
    let groups: Vec<Vec<(u64, u64)>> = groups
        .map(|loads| {
            let pair =
                |load: &crate::results::Load| Some((load.get(metric)?, *known.get(&load.key())?));
            loads.iter().filter_map(pair).collect()
        })
        .collect();
    let ratio = with.ratio_of_groups(groups.iter().map(Vec::as_slice))?;
    Some(Ratio { mean: ratio.mean, interval: ratio.interval })
}

/// Takes from the loads the ratios of `metric` to the first policy that no summary has told.
pub fn fill(scene: &mut Scene, metric: Metric, seed: u64) {
    let with = Comparison::new(Seed::new(seed), true);
    let has = |cell: &Cell| cell.loads.iter().any(|load| load.get(metric).is_some());
    let Some(first) = scene.cells.iter().position(has) else { return };
    let (base, others) = scene.cells[first..].split_at_mut(1);
    for cell in others.iter_mut().filter(|cell| !cell.ratios.contains_key(&metric)) {
        if let Some(ratio) = ratio(cell, &base[0], metric, &with) {
            cell.ratios.insert(metric, ratio);
        }
    }
}

/// The policies of a scene, fastest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The fastest policy: its position among the cells.
    pub best: usize,
    /// The others with their ratios to it, least first: positions among the cells.
    pub others: Vec<(usize, Ratio)>,
}

/// How two policies compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The interval of their ratio holds 1.
    Unclear,
    /// It does not.
    Clear,
    /// Every run is the same.
    Same,
    /// There is no interval: chance decides nothing, or there was one run.
    Single,
}

impl Ratio {
    /// What it says of a policy beside another.
    pub fn difference(&self) -> Difference {
        match self.interval {
            Some((low, high)) if low == 1.0 && high == 1.0 => Difference::Same,
            Some((low, high)) if low <= 1.0 && high >= 1.0 => Difference::Unclear,
            Some(_) => Difference::Clear,
            None if self.mean == 1.0 => Difference::Same,
            None => Difference::Single,
        }
    }
}

/// Who is fastest in `scene` by `metric`: by the geometric mean of paired ratios. Policies without
/// such loads are left out. `None` if there are not two policies with pairs.
pub fn standing(scene: &Scene, metric: Metric, seed: u64) -> Option<Standing> {
    let plain = Comparison::new(Seed::new(seed), false);
    let base = scene.cells.iter().find(|cell| !cell.values(metric).is_empty())?;
    let means =
        scene.cells.iter().enumerate().filter_map(|(position, cell)| {
            Some((position, ratio(cell, base, metric, &plain)?.mean))
        });
    let (best, _) = means.min_by(|one, other| one.1.total_cmp(&other.1))?;
    let with = Comparison::new(Seed::new(seed), true);
    let others = scene.cells.iter().enumerate().filter(|(position, _)| *position != best);
    let mut others: Vec<(usize, Ratio)> = others
        .filter_map(|(position, cell)| {
            Some((position, ratio(cell, &scene.cells[best], metric, &with)?))
        })
        .collect();
    others.sort_by(|one, other| one.1.mean.total_cmp(&other.1.mean));
    (!others.is_empty()).then_some(Standing { best, others })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Load;

    fn cell(policy: &str, times: &[u64]) -> Cell {
        let loads = times.iter().enumerate().map(|(run, time)| {
            let mut load = Load::new(run as u64, 0, 0);
            load.set(Metric::PageTime, Some(*time));
            load
        });
        Cell { policy: policy.to_owned(), loads: loads.collect(), ..Cell::default() }
    }

    #[test]
    fn the_fastest_is_found_by_pairs_and_what_is_unclear_is_told() {
        let cells = vec![
            cell("slow", &[200, 210, 220, 230]),
            cell("fast", &[100, 110, 120, 130]),
            cell("as fast", &[101, 109, 121, 129]),
            cell("same", &[100, 110, 120, 130]),
            cell("other runs", &[]),
        ];
        let scene = Scene { cells, ..Scene::default() };
        let standing = standing(&scene, Metric::PageTime, 1).unwrap();
        assert_eq!(standing.best, 1);
        let told: Vec<(usize, Difference)> =
            standing.others.iter().map(|(at, ratio)| (*at, ratio.difference())).collect();
        assert_eq!(told, [(3, Difference::Same), (2, Difference::Unclear), (0, Difference::Clear)]);
    }

    #[test]
    fn clients_of_a_run_count_once() {
        let with = Comparison::new(Seed::new(1), true);
        let both = |times: [u64; 4]| {
            let mut cell = cell("any", &times);
            for (index, load) in cell.loads.iter_mut().enumerate() {
                (load.run, load.client) = (index as u64 / 2, index as u64 % 2);
            }
            cell
        };
        let found =
            ratio(&both([4, 4, 1, 1]), &both([1, 4, 1, 1]), Metric::PageTime, &with).unwrap();
        assert!((found.mean - 2_f64.sqrt()).abs() < 1e-12, "{}", found.mean);
        assert_eq!(found.interval.map(|(low, high)| (low, high.round())), Some((1.0, 2.0)));
    }
}
