//! What a paper leaves open: claims judged in every combination of plausible settings.

use super::places::{Spot, Unit, places, policy_of};
use super::select::Runs;
use super::verdict::judge;
use quipu_lab::plan::Cell;
use quipu_record::threshold::Amount;
use quipu_record::verdict::{Agreement, Effect, RuleKind, ValueAgreement};
use quipu_scenario::experiment::{OpenSetting, Rule, Test};

/// One combination of settings, to be run.
#[derive(Debug)]
pub(super) struct Combination {
    /// For each setting the position of its value.
    pub(super) chosen: Vec<usize>,
    /// Position among the units of the job.
    pub(super) unit: usize,
}

/// Whether `rule` is judged in combinations of settings: it is a claim about the scenario itself.
pub(super) fn is_swept(rule: &Rule) -> bool {
    rule.kind == RuleKind::Claim && rule.sides().all(|side| side.variant.is_none())
}

/// Leaves only those runs of `unit` that one of `rules` looks at.
///
/// # Errors
/// If a rule names what is not there.
pub(super) fn keep_wanted(unit: &mut Unit, rules: &[Rule]) -> Result<(), String> {
    let mut spots = Vec::new();
    for rule in rules.iter().filter(|rule| is_swept(rule)) {
        let found = places(rule, std::slice::from_ref(unit));
        let found = found.map_err(|message| format!("rule {}: {message}", rule.name))?;
        for point in found.iter().flat_map(|place| place.points()) {
            spots.push(point.spot);
            // A metric may look at the runs of another policy too.
            if let Some(label) = &point.metric.against {
                let policy = policy_of(&unit.plan, point.spot.network, label)?;
                spots.push(Spot { policy, ..point.spot });
            }
        }
    }
    spots.sort_unstable();
    spots.dedup();
    let is_wanted = |cell: &Cell| {
        let spot = Spot { page: cell.page, network: cell.network, policy: cell.policy };
        spots.binary_search(&spot).is_ok()
    };
    unit.cells.retain(is_wanted);
    Ok(())
}

/// The number of a rule in one combination.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Number {
    /// For each setting the position of its value.
    pub(super) chosen: Vec<usize>,
    /// The number of the place that decides; `None` if a place has none.
    pub(super) value: Option<f64>,
}

/// What `rule` gives in each of `combinations`, of which the first is the scenario itself.
pub(super) fn numbers(
    rule: &Rule,
    combinations: &[Combination],
    units: &[Unit],
    runs: &[Runs<'_>],
) -> Vec<Number> {
    let of = |combination: &Combination| {
        let at = combination.unit..=combination.unit;
        let verdict = judge(rule, &units[at.clone()], &runs[at]);
        let is_whole = verdict.findings.iter().all(|finding| finding.value.is_some());
        Number { chosen: combination.chosen.clone(), value: verdict.deciding.filter(|_| is_whole) }
    };
    combinations.iter().map(of).collect()
}

/// What `numbers` say of `rule`; the first are those of the scenario itself.
pub(super) fn agreement(rule: &Rule, settings: &[OpenSetting], numbers: &[Number]) -> Agreement {
    let threshold = rule.test.threshold();
    let known = || numbers.iter().filter_map(|number| Some((number, number.value?)));
    let holds = |number: &Number| number.value.map(|value| threshold.has(value));
    let count = |chosen: &dyn Fn(&Number) -> bool| {
        let all: Vec<bool> =
            known().filter(|(number, _)| chosen(number)).map(|(_, it)| threshold.has(it)).collect();
        (all.iter().filter(|holds| **holds).count(), all.len())
    };
    let (all_hold, of) = count(&|_| true);
    let low = known().map(|(_, value)| value).min_by(f64::total_cmp);
    let high = known().map(|(_, value)| value).max_by(f64::total_cmp);
    let own = numbers.first().and_then(holds);
    let show = |value: f64| Amount { value, dimension: threshold.dimension() }.to_string();
    let effect = |(index, setting): (usize, &OpenSetting)| {
        let values = setting.values.iter().enumerate().map(|(position, value)| {
            let (holds_here, of) = count(&|number| number.chosen[index] == position);
            let alone = numbers.iter().find(|number| {
                let others = number.chosen.iter().enumerate().filter(|(at, _)| *at != index);
                number.chosen[index] == position && others.clone().all(|(_, value)| *value == 0)
            });
            let turned = alone.and_then(holds).zip(own).is_some_and(|(here, own)| here != own);
            let value = value.name.clone();
            ValueAgreement { value, holds: holds_here, of, turns: turned }
        });
        let moves = moves(rule, index, numbers);
        let moved = match (moves, &rule.test) {
            (None, _) => String::new(),
            (Some(moves), Test::Difference(_)) => show(moves),
            (Some(moves), _) => format!("× {moves:.2}"),
        };
        Effect { setting: setting.name.clone(), moves, moved, values: values.collect() }
    };
    Agreement {
        holds: all_hold,
        of,
        low,
        high,
        range: match low.zip(high) {
            None => String::new(),
            Some((low, high)) if show(low) == show(high) => show(low),
            Some((low, high)) => format!("{} to {}", show(low), show(high)),
        },
        effects: settings.iter().enumerate().map(effect).collect(),
    }
}

/// How far the values of the setting at `index` lie apart, all others being equal, in the mean over these:
/// greatest by least (the geometric mean), or, of differences, the distance.
fn moves(rule: &Rule, index: usize, numbers: &[Number]) -> Option<f64> {
    let is_difference = matches!(rule.test, Test::Difference(_));
    let others = |number: &Number| {
        let mut chosen = number.chosen.clone();
        chosen.remove(index);
        chosen
    };
    let mut groups: std::collections::BTreeMap<Vec<usize>, Vec<f64>> = Default::default();
    for number in numbers {
        let Some(value) = number.value else { continue };
        let value = match is_difference {
            true => value,
            false if value > 0.0 => libm::log(value),
            false => continue,
        };
        groups.entry(others(number)).or_default().push(value);
    }
    let spread = |values: &Vec<f64>| {
        let most = values.iter().copied().max_by(f64::total_cmp)?;
        Some(most - values.iter().copied().min_by(f64::total_cmp)?)
    };
    let spreads: Vec<f64> =
        groups.values().filter(|values| values.len() > 1).filter_map(spread).collect();
    let mean = spreads.iter().sum::<f64>() / spreads.len() as f64;
    (!spreads.is_empty()).then(|| if is_difference { mean } else { libm::exp(mean) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_scenario::experiment::{Case, cases};

    fn case(test: &str) -> Case {
        let text = format!(
            r#"
[experiment]
id = "one"
paper = "ns3"
title = "t"

[[experiment.settings]]
name = "queue"
values = [{{ name = "short" }}, {{ name = "long", set = {{ runs = 3 }} }}]

[[experiment.settings]]
name = "window"
values = [{{ name = "10" }}, {{ name = "32", set = {{ runs = 4 }} }}, {{ name = "64", set = {{ runs = 5 }} }}]

[[experiment.rules]]
name = "r"
claim = "c"
metric = "page"
of = "a"
to = "b"
{test}
"#
        );
        cases(&text, "one.toml").unwrap().remove(0)
    }

    fn found(test: &str, values: [f64; 6]) -> Agreement {
        let experiment = case(test).experiment;
        let numbers: Vec<Number> = experiment
            .combinations()
            .into_iter()
            .zip(values)
            .map(|(chosen, value)| Number { chosen, value: value.is_finite().then_some(value) })
            .collect();
        assert_eq!(numbers.len(), 6);
        agreement(&experiment.rules[0], &experiment.settings, &numbers)
    }

    /// Short queue with windows of 10, 32 and 64, then the long queue with the same.
    #[test]
    fn agreement_is_counted_by_setting_and_by_value() {
        let found = found("ratio = \"< 0.8\"", [0.9, 0.7, 0.7, 0.9, 0.9, f64::NAN]);
        assert_eq!((found.holds, found.of, found.range.as_str()), (2, 5, "0.700 to 0.900"));
        let [queue, window] = found.effects.as_slice() else { panic!("{found:?}") };
        let counts = |effect: &Effect| -> Vec<(usize, usize, bool)> {
            effect.values.iter().map(|it| (it.holds, it.of, it.turns)).collect()
        };
        assert_eq!(counts(queue), [(2, 3, false), (0, 2, false)]);
        assert_eq!(counts(window), [(0, 2, false), (1, 2, true), (1, 1, true)]);
        assert_eq!(found.decided_by().unwrap().setting, "window");
        // Of the two windows that both queues have: 1 and 0.9/0.7.
        let expected = (0.9_f64 / 0.7).sqrt();
        assert!((queue.moves.unwrap() - expected).abs() < 1e-12, "{queue:?}");
        // Of the short queue 0.9/0.7, of the long one 1.
        assert!((window.moves.unwrap() - expected).abs() < 1e-12, "{window:?}");
        assert_eq!(queue.moved, "× 1.13");
    }

    #[test]
    fn differences_move_by_their_distance() {
        let second = 1e9;
        let values = [-2.0, -1.0, 0.0, -2.0, -1.0, 0.0].map(|value| value * second);
        let found = found("difference = \"< -1.5s\"", values);
        assert_eq!((found.holds, found.of), (2, 6));
        let moved: Vec<&str> = found.effects.iter().map(|it| it.moved.as_str()).collect();
        assert_eq!(moved, ["0.000 ms", "2000 ms"]);
        assert_eq!(found.moved_most_by().unwrap().setting, "window");
    }

    #[test]
    fn claims_about_the_scenario_itself_are_swept() {
        let rule = |change: &str| {
            let mut case = case("ratio = \"< 1\"");
            let rule = &mut case.experiment.rules[0];
            match change {
                "variant" => rule.of[0].variant = Some("main".to_owned()),
                "control" => rule.kind = RuleKind::Control,
                _ => {}
            }
            is_swept(rule)
        };
        assert!(rule(""));
        assert!(!rule("variant") && !rule("control"));
    }
}
