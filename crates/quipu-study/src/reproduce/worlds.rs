//! What the same experiments say in two worlds.

use quipu_lab::table::{Align, Grid};
use quipu_record::verdict::{Judged, RuleVerdict};

/// Each rule of `emulated` with its number and verdict there and in `simulated`, which has the same ids.
pub fn beside(simulated: &[Judged], emulated: &[Judged]) -> Grid {
    let columns = ["id", "rule", "paper", "simulated", "verdict", "emulated", "95 %", "verdict"];
    // Intervals, then the paper's words, are left out where it is narrow.
    let grid = Grid::new(columns.map(|title| (title, Align::Left)));
    let mut grid = grid.optional([(6, 0), (2, 1)]);
    for there in emulated {
        let here = simulated.iter().find(|judged| judged.id == there.id);
        for rule in &there.rules {
            let same = |other: &&RuleVerdict| other.name == rule.name;
            let other = here.and_then(|judged| judged.rules.iter().find(same));
            grid.row([
                there.id.clone(),
                rule.name.clone(),
                rule.reported.clone(),
                other.map_or_else(String::new, |other| other.here.clone()),
                other.map_or_else(String::new, |other| other.verdict.to_string()),
                rule.here.clone(),
                rule.interval.clone(),
                rule.verdict.to_string(),
            ]);
        }
    }
    grid
}
