//! Verdicts: what the runs say of each rule.

use std::collections::BTreeMap;

use quipu_base::Seed;

use super::compare::{self, Estimate};
use super::places::{MAIN, Place, Point, Unit, places};
use super::select::Runs;
use quipu_record::stats::Comparison;
use quipu_record::threshold::{Amount, Dimension, Position};
use quipu_record::verdict::{BoundRow, Finding, Places, RuleVerdict, Verdict};
use quipu_record::{Metric, RowSummary, Summary};
use quipu_scenario::experiment::{Others, Rule, Side, Test};

/// How far each row of `summary` is from its bound; those that have one.
pub(super) fn bounds(summary: &Summary) -> Vec<BoundRow> {
    let row = |row: &RowSummary| {
        let page = row.metric(Metric::PageTime)?;
        let critical = row.metric(Metric::CriticalTime);
        Some(BoundRow {
            page: row.page.clone(),
            network: row.network.clone(),
            policy: row.policy.clone(),
            page_bound_ns: page.bound?,
            page_over_bound: page.over_bound?,
            critical_over_bound: critical.and_then(|critical| critical.over_bound),
        })
    };
    summary.rows.iter().filter_map(row).collect()
}

/// The verdict of `rule`. `runs` has those of each unit.
pub(super) fn judge(rule: &Rule, units: &[Unit], runs: &[Runs<'_>]) -> RuleVerdict {
    let dimension = rule.test.threshold().dimension();
    let findings: Vec<Finding> = match places(rule, units) {
        Ok(places) => places.iter().map(|place| finding(rule, place, units, runs)).collect(),
        Err(problem) => vec![without("", problem)],
    };
    let deciding = deciding(rule, &findings);
    RuleVerdict {
        name: rule.name.clone(),
        claim: rule.claim.clone(),
        kind: rule.kind,
        reported: rule.reported.clone(),
        paper: rule.paper.map(|paper| paper.value),
        dimension,
        deciding: deciding.and_then(|finding| finding.value),
        deciding_interval: deciding.and_then(|finding| finding.low.zip(finding.high)),
        test: rule.test.name().to_owned(),
        at_least: rule.test.threshold().ends().0,
        at_most: rule.test.threshold().ends().1,
        direction: direction(rule, &findings),
        agreement: None,
        rule: in_words(rule),
        here: range(&findings, |finding| finding.value, |finding| finding.value, dimension),
        interval: range(&findings, |finding| finding.low, |finding| finding.high, dimension),
        verdict: together(&findings, rule.places),
        expect: rule.expect,
        because: rule.because.clone(),
        ablation: rule.ablation.clone(),
        findings,
        by_chance: None,
        by_chance_because: rule.by_chance.clone(),
    }
}

/// The place that decides: of all places the one nearest to failing, or, where one is enough, the one nearest to
/// holding.
fn deciding<'a>(rule: &Rule, findings: &'a [Finding]) -> Option<&'a Finding> {
    let threshold = rule.test.threshold();
    let margins = findings.iter().filter_map(|it| Some((it, threshold.margin(it.value?))));
    let decides = match rule.places {
        Places::All => margins.min_by(|(_, one), (_, other)| one.total_cmp(other)),
        Places::Any => margins.max_by(|(_, one), (_, other)| one.total_cmp(other)),
    };
    decides.map(|(finding, _)| finding)
}

/// Whether the intervals lie on the threshold's side of no difference; `None` if it has no such side.
fn direction(rule: &Rule, findings: &[Finding]) -> Option<bool> {
    let middle = match rule.test {
        Test::Value(_) => return None,
        Test::Ratio(_) => 1.0,
        Test::Difference(_) => 0.0,
    };
    let side = rule.test.threshold().side_of(middle)?;
    let is_there = |finding: &Finding| {
        finding.value.is_some_and(|value| {
            let (low, high) = (finding.low.unwrap_or(value), finding.high.unwrap_or(value));
            side.position(low, high) == Position::Inside
        })
    };
    Some(match rule.places {
        Places::All => !findings.is_empty() && findings.iter().all(is_there),
        Places::Any => findings.iter().any(is_there),
    })
}

/// What the verdicts of all places amount to.
fn together(findings: &[Finding], places: Places) -> Verdict {
    let any = |verdict| findings.iter().any(|finding| finding.verdict == verdict);
    let all = |verdict| findings.iter().all(|finding| finding.verdict == verdict);
    // What cannot be decided in one place is wrong in all.
    if findings.is_empty() || any(Verdict::Error) {
        return Verdict::Error;
    }
    let (holds, fails) = match places {
        Places::All => (all(Verdict::Holds), any(Verdict::Fails)),
        Places::Any => (any(Verdict::Holds), all(Verdict::Fails)),
    };
    match (holds, fails) {
        (true, _) => Verdict::Holds,
        (false, true) => Verdict::Fails,
        (false, false) => Verdict::Unclear,
    }
}

fn without(place: &str, problem: String) -> Finding {
    Finding {
        place: place.to_owned(),
        value: None,
        low: None,
        high: None,
        runs: 0,
        verdict: Verdict::Error,
        problem: Some(problem),
    }
}

fn finding(rule: &Rule, place: &Place, units: &[Unit], runs: &[Runs<'_>]) -> Finding {
    let name = name_of(place, units);
    match estimate(rule, place, units, runs) {
        Err(problem) => without(&name, problem),
        Ok(estimate) => {
            let (low, high) = estimate.ends();
            let verdict = match rule.test.threshold().position(low, high) {
                Position::Inside => Verdict::Holds,
                Position::Outside => Verdict::Fails,
                Position::Across => Verdict::Unclear,
            };
            Finding {
                place: name,
                value: Some(estimate.value),
                low: estimate.interval.map(|(low, _)| low),
                high: estimate.interval.map(|(_, high)| high),
                runs: estimate.runs,
                verdict,
                problem: None,
            }
        }
    }
}

fn estimate(
    rule: &Rule,
    place: &Place,
    units: &[Unit],
    runs: &[Runs<'_>],
) -> Result<Estimate, String> {
    let samples = |point: &Point| runs[point.unit].samples(point.spot, &point.metric);
    let chance = chance_of(place.points(), units);
    let of = samples(&place.of)?;
    let metric = &place.of.metric;
    let Some(other) = &place.to else {
        return compare::value(&of, metric, rule.over, &chance);
    };
    let (to, metrics) = (samples(other)?, [metric, &other.metric]);
    match (&rule.test, &place.beside) {
        (Test::Difference(_), _) => compare::difference(&of, &to, metrics, &chance),
        (_, Some([a, b])) => {
            let (a, b) = (samples(a)?, samples(b)?);
            compare::ratio_of_ratios([&of, &to], [&a, &b], &chance)
        }
        (_, None) => compare::ratio(&of, &to, metrics, &chance),
    }
}

/// The chance of runs at `points`.
pub(super) fn chance_of<'a>(
    mut points: impl Iterator<Item = &'a Point>,
    units: &[Unit],
) -> Comparison {
    let random = points.any(|point| {
        let plan = &units[point.unit].plan;
        plan.scenario.is_random(&plan.networks[point.spot.network].network)
    });
    let seed = units.first().map_or(0, |unit| unit.plan.scenario.seed);
    Comparison::new(Seed::new(seed), random)
}

/// What a place is called: what both sides share, then what they differ in.
fn name_of(place: &Place, units: &[Unit]) -> String {
    let own = |point: &Point| {
        let names = point.names(units);
        let mut parts = vec![names.policy, names.network, names.page, names.variant];
        parts.push(point.metric.to_string());
        parts
    };
    let of = own(&place.of);
    let to = place.to.as_ref().map(own);
    let mut shared = Vec::new();
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for (index, part) in of.iter().enumerate() {
        match &to {
            Some(to) if to[index] != *part => {
                left.push(part.clone());
                right.push(to[index].clone());
            }
            // The metric stands in the rule; a page may be missing.
            _ if index == 4 || part.is_empty() || (index == 3 && part == MAIN) => {}
            _ => shared.push(part.clone()),
        }
    }
    shared.reverse();
    let mut text = shared.join(", ");
    if to.is_some() {
        let words = format!("{} to {}", left.join(", "), right.join(", "));
        text = if text.is_empty() { words } else { format!("{text}: {words}") };
    }
    text
}

/// One number, or the least and the largest of several places.
fn range(
    findings: &[Finding],
    low: impl Fn(&Finding) -> Option<f64>,
    high: impl Fn(&Finding) -> Option<f64>,
    dimension: Dimension,
) -> String {
    let least = findings.iter().filter_map(low).min_by(f64::total_cmp);
    let most = findings.iter().filter_map(high).max_by(f64::total_cmp);
    let (Some(least), Some(most)) = (least, most) else { return String::new() };
    let [least, most] = [least, most].map(|value| Amount { value, dimension }.to_string());
    if least == most { least } else { format!("{least} to {most}") }
}

/// Metric, what is compared, threshold.
fn in_words(rule: &Rule) -> String {
    let side = |side: &Side| {
        let mut parts = Vec::new();
        parts.extend(side.policy.clone());
        parts.extend(side.network.as_ref().map(|name| format!("over {name}")));
        parts.extend(side.page.as_ref().map(|name| format!("of {name}")));
        parts.extend(side.variant.as_ref().map(|name| format!("in {name}")));
        parts.extend(side.metric.as_ref().map(|metric| format!("({metric})")));
        if parts.is_empty() { "each".to_owned() } else { parts.join(" ") }
    };
    let list = |sides: &[Side]| sides.iter().map(side).collect::<Vec<String>>().join(" | ");
    let threshold = rule.test.threshold();
    let mut text = rule.metric.to_string();
    let compared = match (&rule.to, rule.steps.as_slice()) {
        (_, [_, ..]) => {
            let steps: Vec<String> = rule.steps.iter().map(side).collect();
            format!("{}, each to the one before", steps.join(", "))
        }
        (Others::None, _) => list(&rule.of),
        (Others::Policies, _) => format!("{} to each other policy", list(&rule.of)),
        (Others::Sides(to), _) => format!("{} to {}", list(&rule.of), list(to)),
    };
    text.push_str(": ");
    match &rule.test {
        Test::Value(_) => text.push_str(&format!("{} {compared}", rule.over)),
        test => text.push_str(&format!("{} {compared}", test.name())),
    }
    if let Some(beside) = &rule.beside {
        text.push_str(&format!(", by the same {}", side(beside)));
    }
    text.push_str(&format!(": {threshold}"));
    let mut only: BTreeMap<&str, &[String]> = BTreeMap::new();
    for (name, list) in
        [("pages", &rule.pages), ("networks", &rule.networks), ("policies", &rule.policies)]
    {
        if !list.is_empty() {
            only.insert(name, list);
        }
    }
    for (name, list) in only {
        text.push_str(&format!("; {name} {}", list.join(", ")));
    }
    if rule.places == Places::Any {
        text.push_str("; in one place at least");
    }
    text
}

#[cfg(test)]
mod tests;
