//! Rules held against chance: whether they tell policies apart.

use quipu_base::Seed;

use super::dealt::Dealt;
use super::places::Unit;
use super::select::Runs;
use super::verdict::judge;
use quipu_record::verdict::{ByChance, Verdict};
use quipu_scenario::experiment::Rule;

/// For each of `rules` in how many of so many deals it holds, where policies are dealt out anew among the
/// results of each page, network and run. A rule that says something of policies holds in few of them;
/// one that holds in most says what is true of all policies alike.
pub(super) fn by_chance(
    rules: &[Rule],
    units: &[Unit],
    runs: &[Runs<'_>],
    deals: u32,
) -> Vec<ByChance> {
    let mut found = vec![ByChance { held: 0, deals }; rules.len()];
    let seed = units.first().map_or(0, |unit| unit.plan.scenario.seed);
    for deal in 0..deals {
        let seed = Seed::new(seed).child("deal", u64::from(deal));
        let dealt: Vec<Dealt> = (0..)
            .zip(units)
            .map(|(index, unit)| Dealt::new(&unit.plan, seed.child("unit", index)))
            .collect();
        let dealt_runs = runs.iter().zip(&dealt);
        let runs: Vec<Runs<'_>> =
            dealt_runs.map(|(runs, dealt)| Runs { dealt: Some(dealt), ..*runs }).collect();
        for (rule, found) in rules.iter().zip(&mut found) {
            found.held += u32::from(judge(rule, units, &runs).verdict == Verdict::Holds);
        }
    }
    found
}
