//! Rules held against chance: whether they tell policies apart.

use quipu_base::Seed;

use super::dealt::Dealt;
use super::places::{Unit, places};
use super::select::Runs;
use super::verdict::judge;
use quipu_record::verdict::{ByChance, Verdict};
use quipu_scenario::experiment::Rule;

/// For each of `rules` in how many of so many deals it holds, where policies are dealt out anew among the
/// results of each page, network and run; none for a rule about networks with one policy only. A rule that says something of policies holds in few of them;
/// one that holds in most says what is true of all policies alike.
pub(super) fn by_chance(
    rules: &[Rule],
    units: &[Unit],
    runs: &[Runs<'_>],
    deals: u32,
) -> Vec<ByChance> {
    let of = |rule| ByChance { held: 0, deals: if exchanges(rule, units) { deals } else { 0 } };
    let mut found: Vec<ByChance> = rules.iter().map(of).collect();
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
        let rules = rules.iter().zip(&mut found).filter(|(_, found)| found.deals > 0);
        for (rule, found) in rules {
            found.held += u32::from(judge(rule, units, &runs).verdict == Verdict::Holds);
        }
    }
    found
}

/// Whether any network that `rule` looks at has policies that can be exchanged.
fn exchanges(rule: &Rule, units: &[Unit]) -> bool {
    let places = places(rule, units).unwrap_or_default();
    places
        .iter()
        .flat_map(|place| place.points())
        .any(|point| units[point.unit].plan.networks[point.spot.network].policies.len() > 1)
}
