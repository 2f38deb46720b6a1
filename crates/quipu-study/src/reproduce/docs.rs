//! Verdicts as text: tables for a terminal and for the docs, and files of the whole set.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use quipu_lab::table::{Align, Cell, Grid, Screen, Tone};
use quipu_record::threshold::{Amount, Dimension};
use quipu_record::verdict::{Agreement, Judged, Outcome, RuleVerdict, VERDICTS, Verdict};
use quipu_record::write_whole;
use quipu_scenario::experiment::{OpenSetting, Rule};

use super::agreement::Number;

mod by_chance;
mod canvas;
mod curves;
mod figure;
mod kept;
mod page;
mod picture;
mod result_table;
mod text;

pub use by_chance::{survivors, unexplained};
pub use page::Page;

/// What stands where there is nothing.
const NOTHING: &str = "–";

/// `value` as JSON, as all files have it.
pub(super) fn json(value: &impl Serialize) -> String {
    // Texts, numbers and lists of them always have a form in JSON; numbers are finite or null.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// The world of runs that were not simulated, behind other words.
fn world_of(judged: &Judged) -> String {
    match judged.world.as_str() {
        "simulated" => String::new(),
        world => format!(" · {world}"),
    }
}

/// What was found for one id, for a terminal.
pub fn terminal(judged: &Judged, screen: Screen) -> String {
    let mut text = format!("{} · {}", judged.id, judged.title);
    if !judged.figure.is_empty() {
        let _ = write!(text, " · {}, {}", judged.paper, judged.figure);
    }
    let world = world_of(judged);
    let _ = writeln!(text, " · {} runs{world}", judged.runs);
    let mut text = screen.fold(&text);
    let columns = ["", "rule", "claim", "paper", "here", "95 %", "verdict"];
    // The interval, then the paper's words, are left out where it is narrow.
    let grid = Grid::new(columns.map(|title| (title, Align::Left)));
    let mut grid = grid.optional([(5, 0), (3, 1)]);
    for rule in &judged.rules {
        let mark = if rule.is_as_expected(judged.quick) { " " } else { "!" };
        grid.row([
            Cell::from(mark),
            Cell::from(rule.name.clone()),
            Cell::from(rule.claim.clone()),
            Cell::from(or_nothing(&rule.reported)),
            Cell::from(or_nothing(&rule.here)),
            Cell::from(or_nothing(&rule.interval)),
            Cell::toned(ended(rule, judged), tone(rule, judged)),
        ]);
    }
    text.push_str(&grid.on(screen));
    let mut lines = String::new();
    for rule in judged.surprises() {
        let _ = writeln!(
            lines,
            "! {} {}, expected {}: {}",
            rule.name, rule.verdict, rule.expect, rule.rule
        );
        for finding in rule.findings.iter().filter(|finding| finding.verdict != rule.expect) {
            let problem = finding.problem.as_deref().unwrap_or_default();
            let value = finding.value.map_or(String::new(), |value| format!("{value:.4}"));
            let _ = writeln!(lines, "    {}: {} {value}{problem}", finding.place, finding.verdict);
        }
    }
    for failure in &judged.failures {
        let _ = writeln!(lines, "! run failed: {failure}");
    }
    for (place, policies) in from_bound(judged) {
        let _ = writeln!(lines, "× bound, {place}: {policies}");
    }
    lines.push('\n');
    text + &screen.fold(&lines)
}

/// Each page and network with its bound, and how many times of it page time and critical time are under
/// each policy.
fn from_bound(judged: &Judged) -> Vec<(String, String)> {
    let mut places: Vec<(String, String)> = Vec::new();
    for row in &judged.bounds {
        let bound = Amount { value: row.page_bound_ns as f64, dimension: Dimension::Time };
        let place = match row.page.as_str() {
            "" => row.network.clone(),
            page => format!("{page} over {}", row.network),
        };
        let place = format!("{place} ({bound})");
        let critical = row.critical_over_bound;
        let critical = critical.map_or(String::new(), |over| format!("/{over:.2}"));
        let policy = format!("{} {:.2}{critical}", row.policy, row.page_over_bound);
        match places.last_mut() {
            Some((last, policies)) if *last == place => {
                policies.push_str(&format!(", {policy}"));
            }
            _ => places.push((place, policy)),
        }
    }
    places
}

/// What a verdict says at a glance: good if it is as its file expects and holds, bad if it is otherwise.
fn tone(rule: &RuleVerdict, judged: &Judged) -> Tone {
    match rule.verdict {
        _ if !rule.is_as_expected(judged.quick) => Tone::Bad,
        Verdict::Holds => Tone::Good,
        _ => Tone::Plain,
    }
}

fn or_nothing(text: &str) -> &str {
    if text.is_empty() { NOTHING } else { text }
}

/// The verdict, what was expected if it is something else, and what became of a claim.
fn ended(rule: &RuleVerdict, judged: &Judged) -> String {
    let mut text = rule.verdict.to_string();
    if rule.verdict != rule.expect {
        let _ = write!(text, " (expected {})", rule.expect);
    }
    if let Some(outcome) = judged.outcome(rule) {
        let _ = write!(text, "; {outcome}");
        if let Some(Agreement { holds, of, .. }) = rule.agreement {
            let _ = write!(text, ", {holds} of {of} settings");
        }
    }
    text
}

/// Why a rule does not hold, and what shows that.
fn reason(rule: &RuleVerdict, judged: &Judged) -> String {
    let mut text = rule.because.clone();
    let ablation = rule.ablation.as_ref();
    if let Some(shown) = judged.rules.iter().find(|other| Some(&other.name) == ablation) {
        if !text.is_empty() {
            text.push_str("; ");
        }
        let _ = write!(
            text,
            "shown by {}: {} ({})",
            shown.name,
            or_nothing(&shown.here),
            shown.verdict
        );
    }
    text
}

/// A cell of a table.
fn markdown(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<&str>>().join(" ").replace('|', "\\|");
    // Angle brackets begin tags.
    let text = text.replace('<', "&lt;").replace('*', "\\*").replace("\\*\\*", "**");
    or_nothing(&text).to_owned()
}

/// A row of a table.
fn row(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| markdown(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Writes the files of the whole set into `folder`: JSON, CSV, Markdown.
pub(super) fn write_set(folder: &Path, all: &[Judged]) -> Result<(), (PathBuf, io::Error)> {
    let page = Page::new(all, &[]).text();
    let files = [
        (VERDICTS, json(&all)),
        ("verdicts.csv", rules(all)),
        ("places.csv", places_table(all)),
        ("verdicts.md", page),
    ];
    for (name, text) in files {
        let file = folder.join(name);
        write_whole(&file, text).map_err(|source| (file, source))?;
    }
    Ok(())
}

/// The verdicts of all rules as comma-separated values, as `verdicts.csv` of a set has them.
pub fn rules(all: &[Judged]) -> String {
    rules_table(&all.iter().collect::<Vec<&Judged>>())
}

/// One row for each claim in each combination of settings; `None` if there are none.
pub(super) fn settings_table(
    settings: &[OpenSetting],
    swept: &[(&Rule, Vec<Number>)],
) -> Option<String> {
    if swept.is_empty() {
        return None;
    }
    let mut rows = csv::Writer::from_writer(Vec::new());
    let names = settings.iter().map(|setting| setting.name.as_str());
    // Writing to memory cannot fail.
    let _ = rows.write_record(["rule"].into_iter().chain(names).chain(["number", "holds"]));
    for (rule, numbers) in swept {
        for number in numbers {
            let both = settings.iter().zip(&number.chosen);
            let values = both.map(|(setting, value)| setting.values[*value].name.clone());
            let text =
                |value: f64| (value.to_string(), rule.test.threshold().has(value).to_string());
            let (value, holds) = number.value.map(text).unwrap_or_default();
            let row = [rule.name.clone()].into_iter().chain(values).chain([value, holds]);
            let _ = rows.write_record(row);
        }
    }
    String::from_utf8(rows.into_inner().unwrap_or_default()).ok()
}

/// One row for each rule.
fn rules_table(all: &[&Judged]) -> String {
    let mut rows = csv::Writer::from_writer(Vec::new());
    for judged in all {
        for rule in &judged.rules {
            let agreement = rule.agreement.as_ref();
            let moved = agreement.and_then(Agreement::moved_most_by);
            let decided = agreement.and_then(Agreement::decided_by);
            // Writing to memory cannot fail.
            let _ = rows.serialize(RuleRow {
                id: &judged.id,
                paper: judged.paper.name(),
                figure: &judged.figure,
                rule: &rule.name,
                kind: rule.kind.name(),
                claim: &rule.claim,
                reported: &rule.reported,
                threshold: &rule.rule,
                here: &rule.here,
                interval: &rule.interval,
                verdict: rule.verdict.name(),
                expected: rule.expect.name(),
                outcome: judged.outcome(rule).map_or("", Outcome::name),
                settings_agree: agreement.map(|it| it.holds),
                settings: agreement.map(|it| it.of),
                settings_range: agreement.map_or("", |it| &it.range),
                moved_most_by: moved.map_or("", |it| &it.setting),
                moved: moved.map_or("", |it| &it.moved),
                decided_by: decided.map_or("", |it| &it.setting),
                because: &rule.because,
                shown_by: rule.ablation.as_deref().unwrap_or_default(),
            });
        }
    }
    String::from_utf8(rows.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// The columns of the table of rules.
#[derive(Serialize)]
struct RuleRow<'a> {
    id: &'a str,
    paper: &'a str,
    figure: &'a str,
    rule: &'a str,
    kind: &'a str,
    claim: &'a str,
    reported: &'a str,
    threshold: &'a str,
    here: &'a str,
    interval: &'a str,
    verdict: &'a str,
    expected: &'a str,
    outcome: &'a str,
    settings_agree: Option<usize>,
    settings: Option<usize>,
    settings_range: &'a str,
    moved_most_by: &'a str,
    moved: &'a str,
    decided_by: &'a str,
    because: &'a str,
    shown_by: &'a str,
}

/// One row for each place of each rule.
fn places_table(all: &[Judged]) -> String {
    const COLUMNS: [&str; 16] = [
        "id",
        "paper",
        "figure",
        "rule",
        "kind",
        "claim",
        "reported",
        "threshold",
        "place",
        "value",
        "low",
        "high",
        "runs",
        "verdict",
        "rule_verdict",
        "expected",
    ];
    let mut rows = csv::Writer::from_writer(Vec::new());
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    // Writing to memory cannot fail.
    let _ = rows.write_record(COLUMNS);
    for judged in all {
        for rule in &judged.rules {
            for finding in &rule.findings {
                let _ = rows.write_record([
                    judged.id.as_str(),
                    judged.paper.name(),
                    &judged.figure,
                    &rule.name,
                    rule.kind.name(),
                    &rule.claim,
                    &rule.reported,
                    &rule.rule,
                    &finding.place,
                    &number(finding.value),
                    &number(finding.low),
                    &number(finding.high),
                    &finding.runs.to_string(),
                    finding.verdict.name(),
                    rule.verdict.name(),
                    rule.expect.name(),
                ]);
            }
        }
    }
    let bytes = rows.into_inner().unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_record::Provenance;
    use quipu_record::verdict::{BoundRow, Finding, Paper, RuleKind, Verdict};

    fn rule(name: &str, verdict: Verdict, expect: Verdict) -> RuleVerdict {
        RuleVerdict {
            name: name.to_owned(),
            claim: "a | b".to_owned(),
            kind: RuleKind::Claim,
            reported: "−7 %".to_owned(),
            paper: Some(1.5e6),
            dimension: Dimension::Time,
            deciding: Some(2e6),
            deciding_interval: None,
            test: "value".to_owned(),
            at_least: Some(1e9),
            at_most: None,
            direction: None,
            agreement: None,
            rule: "page: median each: > 1s".to_owned(),
            here: "2.000 ms".to_owned(),
            interval: String::new(),
            verdict,
            expect,
            because: "it rains".to_owned(),
            ablation: (name == "first").then(|| "second".to_owned()),
            findings: vec![Finding {
                place: "everywhere".to_owned(),
                value: Some(2e6),
                low: None,
                high: None,
                runs: 1,
                verdict,
                problem: None,
            }],
            by_chance: None,
            by_chance_because: String::new(),
        }
    }

    pub(super) fn judged() -> Judged {
        Judged {
            id: "one".to_owned(),
            paper: Paper::Ns3,
            figure: "Figure 1".to_owned(),
            title: "t".to_owned(),
            reported: String::new(),
            note: String::new(),
            file: "one.toml".to_owned(),
            provenance: Provenance::default(),
            world: "simulated".to_owned(),
            fingerprint: "f".to_owned(),
            quick: false,
            seed: 1,
            runs: 30,
            failures: Vec::new(),
            rules: vec![
                rule("first", Verdict::Fails, Verdict::Fails),
                rule("second", Verdict::Unclear, Verdict::Holds),
            ],
            settings: Vec::new(),
            untestable: Vec::new(),
            data: Vec::new(),
            tables: Vec::new(),
            bounds: ["rr", "wrr"]
                .map(|policy| BoundRow {
                    page: "wikipedia".to_owned(),
                    network: "dsl".to_owned(),
                    policy: policy.to_owned(),
                    page_bound_ns: 250_000_000,
                    page_over_bound: 1.25,
                    critical_over_bound: Some(2.0),
                })
                .to_vec(),
        }
    }

    #[test]
    fn a_terminal_has_bounds_and_what_was_not_expected() {
        let shown = terminal(&judged(), Screen::ANY);
        assert!(shown.contains("× bound, wikipedia over dsl (250.0 ms): rr 1.25/2.00"), "{shown}");
        assert!(!shown.contains("! second"), "{shown}");
        let mut firm = judged();
        firm.rules[1].kind = RuleKind::Firm;
        let shown = terminal(&firm, Screen::ANY);
        assert!(shown.contains("! second unclear, expected holds"), "{shown}");
    }
}
