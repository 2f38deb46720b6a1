//! Verdicts of experiments: counts by paper, ratios beside their thresholds, all rules, and the papers'
//! numbers beside ours.

use std::collections::BTreeSet;

use quipu_record::verdict::{Agreement, Counts, Judged, Outcome, Paper, RuleVerdict};
use serde_json::Value;

use super::Draft;
use super::data::{Rows, text};
use super::words;
use crate::document::{Choice, Column, Control, Figure, Section, Table, number};
use crate::notices::clean;
use crate::read::Folders;
use crate::spec::{Field, Layer, Mark, Spec};

/// Rows of a table.
const MOST_ROWS: usize = 3_000;

/// Verdicts in the order of figures.
const VERDICTS: [&str; 4] = ["holds", "unclear", "fails", "error"];

/// All verdicts that were read.
pub(super) fn verdicts(folders: &Folders, draft: &mut Draft) {
    if folders.judged.is_empty() {
        return;
    }
    let judged = &folders.judged;
    let figures = [counts(judged, draft), ratios(judged, draft)];
    let tables = [table_of_rules(judged), table_of_numbers(judged)];
    draft.section(Section {
        id: "verdicts".to_owned(),
        title: "Verdicts".to_owned(),
        text: text_of(judged),
        figures: figures.into_iter().flatten().collect(),
        tables: tables.into_iter().filter(|table| !table.rows.is_empty()).collect(),
    });
}

fn text_of(judged: &[Judged]) -> Vec<String> {
    let mut text = vec![
        "A rule turns a claim of a paper into a threshold for a number with a 95 % interval. It holds \
         if all of the interval satisfies the threshold, fails if none of it does, and is unclear if \
         the interval straddles it."
            .to_owned(),
    ];
    if let [one] = judged {
        let Judged { paper, figure, title, reported, note, .. } = one;
        text.push(clean(&format!("{title} ({paper}, {figure}).")));
        if !reported.is_empty() {
            text.push(format!("The paper reports: {}.", reported.trim_end_matches('.')));
        }
        if !note.is_empty() {
            text.push(format!("Reconstructed: {}.", note.trim_end_matches('.')));
        }
    }
    text
}

/// How many claims of each paper became what.
fn counts(judged: &[Judged], draft: &mut Draft) -> Option<Figure> {
    let id = "verdict-counts";
    let mut papers: Vec<String> = Vec::new();
    let mut rows = Rows::new(["paper", "outcome", "claims"]);
    let mut told = Vec::new();
    for paper in Paper::ALL.iter().filter(|paper| **paper != Paper::Quipu) {
        let counts = Counts::of(judged.iter().filter(|judged| judged.paper == *paper));
        if counts.all_claims() == 0 {
            continue;
        }
        papers.push(paper.to_string());
        let mut parts = Vec::new();
        for outcome in Outcome::ALL {
            let count = counts.claims_of(*outcome);
            if count > 0 {
                rows.row([text(paper.name()), text(outcome.name()), Value::from(count)]);
                parts.push(format!("{count} {outcome}"));
            }
        }
        told.push(format!("{paper}: {}", parts.join(", ")));
    }
    if rows.is_empty() {
        return None;
    }
    draft.dataset(id, rows.build());
    let outcomes: Vec<String> = Outcome::ALL.iter().map(ToString::to_string).collect();
    let spec = Spec::steps(id, 30).layer(
        Layer::new(Mark::bar(0.75))
            .with("x", Field::number("claims", "claims").stacked().whole())
            .with("y", Field::row("paper", "paper", &papers))
            .with("color", Field::verdict("outcome", "outcome", &outcomes))
            .with(
                "tooltip",
                vec![
                    Field::label("paper").titled("paper"),
                    Field::label("outcome").titled("outcome"),
                    Field::number("claims", "claims"),
                ],
            ),
    );
    Some(Figure {
        id: id.to_owned(),
        title: "Claims by paper".to_owned(),
        caption: "Claims of the papers by outcome. Our own rules are not counted.".to_owned(),
        alt: format!("Bars of what became of each paper's claims. {}.", told.join("; ")),
        spec: spec.value(),
        datasets: vec![id.to_owned()],
        controls: Vec::new(),
    })
}

/// Ratios of an id with their intervals and thresholds.
fn ratios(judged: &[Judged], draft: &mut Draft) -> Option<Figure> {
    let id = "verdict-ratios";
    let columns = ["id", "rule", "place", "ratio", "low", "high", "at_least", "at_most", "verdict"];
    let mut rows = Rows::new(columns);
    let mut ids: Vec<String> = Vec::new();
    let mut told = None;
    for judged in judged {
        let mut seen = Vec::new();
        for rule in &judged.rules {
            if rule.test != "ratio" {
                continue;
            }
            let RuleVerdict { at_least, at_most, .. } = *rule;
            let several = rule.findings.len() > 1;
            for (position, finding) in rule.findings.iter().enumerate() {
                let Some(value) = finding.value else { continue };
                let name = match several {
                    true => format!("{} ({})", rule.name, position + 1),
                    false => rule.name.clone(),
                };
                let optional = |value: Option<f64>| value.map_or(Value::Null, number);
                let verdict = finding.verdict.to_string();
                rows.row([
                    text(&judged.id),
                    text(&clean(&name)),
                    text(&clean(&finding.place)),
                    number(value),
                    number(finding.low.unwrap_or(value)),
                    number(finding.high.unwrap_or(value)),
                    optional(at_least),
                    optional(at_most),
                    text(&verdict),
                ]);
                seen.push(format!("{name} {} ({verdict})", words::ratio(value)));
            }
        }
        if !seen.is_empty() {
            ids.push(judged.id.clone());
            let line = || format!("Ratios of {}: {}.", judged.id, words::list(&seen, 12));
            told.get_or_insert_with(line);
        }
    }
    let alt = told?;
    draft.dataset(id, rows.build());
    let verdicts = VERDICTS.map(str::to_owned);
    let tooltip = [
        Field::label("rule").titled("rule"),
        Field::label("place").titled("where"),
        Field::number("ratio", "ratio"),
        Field::number("low", "95 % from"),
        Field::number("high", "95 % to"),
        Field::number("at_least", "threshold from"),
        Field::number("at_most", "threshold to"),
        Field::label("verdict").titled("verdict"),
    ];
    let color = Field::verdict("verdict", "verdict", &verdicts);
    let x = |column| Field::number(column, "ratio").from_least();
    let end = |column| {
        Layer::new(Mark::tick(16.0)).with("x", x(column)).with("tooltip", tooltip.to_vec())
    };
    let spec = Spec::steps(id, 20)
        .with("y", Field::row("rule", "rule", []))
        .band(0.95, 1.05)
        .intervals(x("ratio"), &color, &tooltip)
        .layer(end("at_least"))
        .layer(end("at_most"));
    let options = ids.iter().map(|id| Choice { value: id.clone(), label: id.clone() });
    let controls = match ids.as_slice() {
        [first, _, ..] => vec![Control {
            id: "id".to_owned(),
            label: "id".to_owned(),
            options: options.collect(),
            default: first.clone(),
        }],
        _ => Vec::new(),
    };
    Some(Figure {
        id: id.to_owned(),
        title: "Ratios next to their thresholds".to_owned(),
        caption:
            "Each rule about a ratio, in each place that it looks at: the ratio with its 95 % \
                  interval, and the ends of its threshold as upright lines. The band is 5 % to either \
                  side of 1."
                .to_owned(),
        alt,
        spec: spec.value(),
        datasets: vec![id.to_owned()],
        controls,
    })
}

fn table_of_rules(judged: &[Judged]) -> Table {
    let columns = [
        ("id", "id"),
        ("rule", "rule"),
        ("verdict", "verdict"),
        ("here", "here"),
        ("interval", "95 % interval"),
        ("threshold", "threshold"),
        ("reported", "the paper"),
        ("outcome", "outcome"),
        ("expected", "expected"),
        ("kind", "kind"),
        ("settings", "settings that agree"),
        ("range", "range over settings"),
        ("moved", "moved most by"),
        ("paper", "paper"),
        ("figure", "figure"),
        ("claim", "claim"),
        ("because", "reason"),
    ];
    let rows = judged.iter().flat_map(|judged| judged.rules.iter().map(move |rule| (judged, rule)));
    let row = |(judged, rule): (&Judged, &RuleVerdict)| {
        let agreement = rule.agreement.as_ref();
        let moved = agreement.and_then(Agreement::moved_most_by);
        let cells = [
            judged.id.clone(),
            rule.name.clone(),
            rule.verdict.to_string(),
            rule.here.clone(),
            rule.interval.clone(),
            rule.rule.clone(),
            rule.reported.clone(),
            judged.outcome(rule).map_or(String::new(), |outcome| outcome.to_string()),
            rule.expect.to_string(),
            rule.kind.to_string(),
            agreement.map_or(String::new(), |it| format!("{} of {}", it.holds, it.of)),
            agreement.map_or(String::new(), |it| it.range.clone()),
            moved.map_or(String::new(), |it| format!("{} ({})", it.setting, it.moved)),
            judged.paper.to_string(),
            judged.figure.clone(),
            rule.claim.clone(),
            rule.because.clone(),
        ];
        cells.iter().map(|cell| Value::from(clean(cell))).collect()
    };
    let rows: Vec<Vec<Value>> = rows.take(MOST_ROWS).map(row).collect();
    Table {
        id: "verdict-table".to_owned(),
        title: "All rules".to_owned(),
        caption: "Firm rules must hold, claims are what the paper says, controls separate two \
                  effects, ablations show a reason."
            .to_owned(),
        columns: columns.map(|(key, title)| Column::text(key, title)).to_vec(),
        rows,
    }
}

fn table_of_numbers(judged: &[Judged]) -> Table {
    let texts = |names: &[(&str, &str)]| -> Vec<Column> {
        names.iter().map(|(key, title)| Column::text(key, title)).collect()
    };
    let mut columns =
        texts(&[("id", "id"), ("policy", "policy"), ("paper", "the paper"), ("here", "here")]);
    columns.push(Column::number("ratio", "here to the paper", "x", 2));
    columns.extend(texts(&[
        ("interval", "95 % interval"),
        ("metric", "metric"),
        ("stat", "number"),
        ("page", "page"),
        ("network", "network"),
    ]));
    let rows = judged.iter().flat_map(|judged| {
        judged.data.iter().map(|it| {
            let cells = |cells: &[&String]| -> Vec<Value> {
                cells.iter().map(|cell| Value::from(clean(cell))).collect()
            };
            let mut row = cells(&[&judged.id, &it.policy, &it.paper, &it.here]);
            let ratio = it.here_value.filter(|_| it.paper_value != 0.0);
            row.push(ratio.map_or(Value::Null, |here| number(here / it.paper_value)));
            row.extend(cells(&[&it.interval, &it.metric, &it.stat, &it.page, &it.network]));
            row
        })
    });
    Table {
        id: "paper-numbers".to_owned(),
        title: "The papers' numbers next to ours".to_owned(),
        caption: "Numbers that the papers or their data give, and what the same cell has here."
            .to_owned(),
        columns,
        rows: rows.take(MOST_ROWS).collect(),
    }
}

/// Sentences for the summary.
pub(super) fn sentences(folders: &Folders) -> Vec<String> {
    let judged = &folders.judged;
    let rules: Vec<&RuleVerdict> = judged.iter().flat_map(|judged| &judged.rules).collect();
    if rules.is_empty() {
        return Vec::new();
    }
    let mut sentences = vec![format!("{}.", Counts::of(judged))];
    let surprises: BTreeSet<String> = judged
        .iter()
        .flat_map(|judged| {
            judged.surprises().map(move |rule| clean(&format!("{} of {}", rule.name, judged.id)))
        })
        .collect();
    let surprises: Vec<String> = surprises.into_iter().collect();
    sentences.push(match surprises.len() {
        0 => "No rule contradicts what its file expects.".to_owned(),
        1 => format!("One rule has another verdict than its file expects: {}.", surprises[0]),
        count => format!(
            "{count} rules have other verdicts than their files expect: {}.",
            words::list(&surprises, 4)
        ),
    });
    let quick = judged.iter().filter(|judged| judged.quick).count();
    if quick > 0 {
        sentences.push(format!(
            "{} only a few runs, so intervals are wide.",
            words::count(quick as u64, "id has", "ids have")
        ));
    }
    sentences
}
