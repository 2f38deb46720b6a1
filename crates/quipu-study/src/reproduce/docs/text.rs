//! The page as Markdown: counts, and for each paper its figures with their claims.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::figure::{Claim, Figure};
use super::{by_chance, or_nothing, picture, reason, row};
use quipu_record::threshold::{Amount, Dimension};
use quipu_record::verdict::{Agreement, Counts, DataRow, Judged, Outcome, Paper, RuleVerdict};

const HEAD: &str = "# What becomes of the papers' claims\n\nWritten by `quipu reproduce --docs`; not to be \
                    changed by hand. The words of verdicts are explained in\n\
                    [reproduce.md](reproduce.md#what-becomes-of-a-claim). All runs are simulated.";
const QUICK: &str = "**Quick runs**: few of them, so intervals are wide.\n\n";

/// The page of `all`. `pictures` is the folder beside the page that has them, if there is one.
pub(super) fn page(all: &[&Judged], figures: &[Figure<'_>], pictures: Option<&str>) -> String {
    let mut text = HEAD.to_owned();
    if let Some(folder) = pictures {
        let _ = write!(
            text,
            " Every rule, our own included, is in\n[verdicts.csv]({folder}/verdicts.csv), and with each place in \
             the report of `quipu reproduce`'s folder."
        );
    }
    text.push_str("\n\n");
    if all.iter().any(|judged| judged.quick) {
        text.push_str(QUICK);
    }
    text.push_str(&counts(all));
    for paper in Paper::ALL.iter().filter(|paper| **paper != Paper::Quipu) {
        let own: Vec<&Figure<'_>> = figures.iter().filter(|it| it.paper == *paper).collect();
        if own.is_empty() {
            continue;
        }
        let _ = write!(text, "\n## {}\n\n", paper.title());
        if let Some(summary) = summaries().get(paper.name()) {
            let _ = write!(text, "{}\n\n", summary.trim());
        }
        text.push_str(&of_figures(&own, pictures));
    }
    let ours: Vec<&Figure<'_>> = figures.iter().filter(|it| it.paper == Paper::Quipu).collect();
    if !ours.is_empty() {
        let _ = write!(text, "\n## {}\n\n", Paper::Quipu.title());
        text.push_str("| experiment | what it shows | rules |\n| --- | --- | --- |\n");
        for figure in ours {
            let Counts { own: [hold, fail, unclear, none], .. } = Counts::of(figure.judged());
            let ended =
                format!("{hold} hold, {fail} fail, {unclear} unclear, {none} without an answer");
            text.push_str(&row(&[&figure.name, &figure.title(), &ended]));
        }
    }
    text.push_str(&by_chance::section(all));
    text
}

/// Sentences on each paper, by its name.
fn summaries() -> BTreeMap<String, String> {
    // Its form is held by a test.
    toml::from_str(include_str!("summaries.toml")).unwrap_or_default()
}

/// Checks that each number in the sentences on a paper stands in what the page has on it.
///
/// # Errors
/// The numbers that do not.
pub(super) fn unfounded(figures: &[Figure<'_>]) -> Result<(), String> {
    let all = summaries();
    for paper in Paper::ALL {
        let own: Vec<&Figure<'_>> = figures.iter().filter(|it| it.paper == *paper).collect();
        let (Some(summary), false) = (all.get(paper.name()), own.is_empty()) else { continue };
        let judged: Vec<&Judged> = own.iter().flat_map(|figure| figure.judged()).collect();
        let there = numbers(&(of_figures(&own, None) + &counts(&judged)));
        let missing: Vec<String> = numbers(summary).difference(&there).cloned().collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Err(format!("the sentences on {paper} name {missing}, which the page has not"));
        }
    }
    Ok(())
}

/// The numbers in `text`, as they are written there.
fn numbers(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '.' || c == '-'));
    let words = words.map(|word| word.trim_matches(['.', '-']));
    words.filter(|word| word.parse::<f64>().is_ok()).map(str::to_owned).collect()
}

/// Claims of each paper by what became of them, and all else in a sentence.
fn counts(all: &[&Judged]) -> String {
    let names = Outcome::ALL.iter().map(|outcome| outcome.name());
    let head: Vec<&str> = ["paper", "claims"].into_iter().chain(names).collect();
    let mut text = row(&head);
    let _ = writeln!(text, "|{}", " --- |".repeat(head.len()));
    for paper in Paper::ALL.iter().filter(|paper| **paper != Paper::Quipu) {
        let counts = Counts::of(all.iter().filter(|it| it.paper == *paper).copied());
        if counts.ids == 0 {
            continue;
        }
        let mut cells = vec![paper.title().to_owned(), counts.all_claims().to_string()];
        cells.extend(counts.claims.iter().map(usize::to_string));
        text.push_str(&row(&cells.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    let _ = write!(text, "\n{}.\n", Counts::of(all.iter().copied()));
    text
}

fn of_figures(figures: &[&Figure<'_>], pictures: Option<&str>) -> String {
    let mut text = String::new();
    for (index, figure) in figures.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&of_figure(figure, pictures));
    }
    text
}

fn of_figure(figure: &Figure<'_>, pictures: Option<&str>) -> String {
    let Some(first) = figure.judged().next() else { return String::new() };
    let name = if first.figure.is_empty() { "Beside its figures" } else { &first.figure };
    let mut text = format!("### {name}: {}\n\n", figure.title());
    let _ = write!(text, "`{}`", figure.name);
    if figure.ids.len() > 1 {
        let _ = write!(text, ", {} ids", figure.ids.len());
    }
    if !first.reported.is_empty() {
        let _ = write!(text, ". The paper: {}", first.reported.trim_end_matches('.'));
    }
    if !first.note.is_empty() {
        let _ = write!(text, ". Reconstruction: {}", first.note.trim_end_matches('.'));
    }
    text.push_str(".\n\n");
    for (kind, _) in pictures.map_or_else(Vec::new, |_| picture::all(figure)) {
        let (name, folder) = (&figure.name, pictures.unwrap_or_default());
        let _ = writeln!(text, "![{name}]({folder}/{name}{kind}.svg)\n");
    }
    text.push_str(&of_claims(figure, first));
    text.push_str(&absolute(figure));
    text.push_str(&left_open(figure, first));
    text
}

fn of_claims(figure: &Figure<'_>, first: &Judged) -> String {
    let claims = figure.claims();
    if claims.is_empty() && first.untestable.is_empty() {
        return "No claim of the paper is judged here; what is, is in the table of all rules.\n"
            .to_owned();
    }
    let mut text = row(&["claim", "the paper", "here", "verdict", "settings that agree", "why"]);
    text.push_str("| --- | --- | --- | --- | --- | --- |\n");
    for claim in &claims {
        let rule = claim.first;
        let name = format!("{}: {}", rule.name, rule.claim);
        let cells =
            [&name, &reported(claim), &here(claim), &became(claim), &agreeing(claim), &why(claim)];
        text.push_str(&row(&cells.map(String::as_str)));
    }
    for claim in &first.untestable {
        let verdict = Outcome::Untestable.name();
        text.push_str(&row(&[&claim.claim, &claim.reported, "", verdict, "", &claim.because]));
    }
    text
}

/// What the paper says, of all ids.
fn reported(claim: &Claim<'_>) -> String {
    let mut all: Vec<&str> = Vec::new();
    for (_, rule, _) in &claim.all {
        if !rule.reported.is_empty() && !all.contains(&rule.reported.as_str()) {
            all.push(&rule.reported);
        }
    }
    all.join("; ")
}

/// Our numbers with their intervals: of one id as they are, of several from the least to the largest.
fn here(claim: &Claim<'_>) -> String {
    if let [(_, rule, _)] = claim.all.as_slice() {
        return match rule.interval.as_str() {
            "" => rule.here.clone(),
            interval => format!("{} ({interval})", rule.here),
        };
    }
    let numbers = claim.all.iter().filter_map(|(_, rule, _)| rule.deciding);
    range(numbers, claim.first.dimension)
}

fn range(numbers: impl Iterator<Item = f64> + Clone, dimension: Dimension) -> String {
    let ends = (numbers.clone().min_by(f64::total_cmp), numbers.max_by(f64::total_cmp));
    let (Some(low), Some(high)) = ends else { return String::new() };
    let [low, high] = [low, high].map(|value| Amount { value, dimension }.to_string());
    if low == high { low } else { format!("{low} to {high}") }
}

fn became(claim: &Claim<'_>) -> String {
    match claim.counts().as_slice() {
        [(outcome, _)] if claim.all.len() == 1 => format!("**{outcome}**"),
        [(outcome, count)] => format!("**{outcome}** in all {count}"),
        several => {
            let parts = several.iter().map(|(outcome, count)| format!("{count} {outcome}"));
            parts.collect::<Vec<String>>().join(", ")
        }
    }
}

fn agreements<'c>(claim: &'c Claim<'_>) -> impl Iterator<Item = &'c Agreement> + Clone {
    claim.all.iter().filter_map(|(_, rule, _)| rule.agreement.as_ref())
}

/// In how many combinations of what the paper leaves open it holds, the range over them, and what moves it.
fn agreeing(claim: &Claim<'_>) -> String {
    let all = agreements(claim);
    let (holds, of) = all.clone().fold((0, 0), |(holds, of), it| (holds + it.holds, of + it.of));
    if of == 0 {
        return String::new();
    }
    let ends = all.clone().flat_map(|it| [it.low, it.high]).flatten();
    let mut text = format!("{holds} of {of}; {}", range(ends, claim.first.dimension));
    if let Some((setting, moved)) = most(all.filter_map(Agreement::moved_most_by)) {
        let _ = write!(text, "; moved most by {setting} ({moved})");
    }
    text
}

/// The setting that most of `effects` are of, and the largest of these moves.
fn most<'e>(
    effects: impl Iterator<Item = &'e quipu_record::verdict::Effect>,
) -> Option<(&'e str, &'e str)> {
    let mut by_name: BTreeMap<&str, Vec<(f64, &str)>> = BTreeMap::new();
    for effect in effects {
        let moved = (effect.moves.unwrap_or_default(), effect.moved.as_str());
        by_name.entry(&effect.setting).or_default().push(moved);
    }
    let (name, moves) = by_name.into_iter().max_by_key(|(_, moves)| moves.len())?;
    let (_, moved) = moves.into_iter().max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    Some((name, moved))
}

/// What decides a claim among the settings, and why it does not hold.
fn why(claim: &Claim<'_>) -> String {
    let mut parts: Vec<String> = Vec::new();
    let depends = claim.all.iter().filter(|(.., outcome)| *outcome == Outcome::Depends);
    let deciding = depends.filter_map(|(_, rule, _)| rule.agreement.as_ref()?.decided_by());
    let mut named: Vec<String> = Vec::new();
    for effect in deciding {
        let parts =
            effect.values.iter().map(|it| format!("{} {} of {}", it.value, it.holds, it.of));
        let text = format!("by {}: {}", effect.setting, parts.collect::<Vec<_>>().join(", "));
        if !named.iter().any(|known| known.starts_with(&format!("by {}:", effect.setting))) {
            named.push(text);
        }
    }
    parts.extend(named);
    for (kept, rule, outcome) in &claim.all {
        let failed: &RuleVerdict = rule;
        if *outcome == Outcome::Reproduced || failed.because.is_empty() {
            continue;
        }
        let text = match claim.all.len() {
            1 => reason(rule, &kept.judged),
            _ => rule.because.clone(),
        };
        if !parts.contains(&text) {
            parts.push(text);
        }
    }
    parts.join("; ")
}

/// Ours by the paper's of all numbers that it gives, in a sentence.
fn absolute(figure: &Figure<'_>) -> String {
    let rows: Vec<&DataRow> = figure.judged().flat_map(|judged| &judged.data).collect();
    let ratio = |row: &&DataRow| {
        row.here_value.filter(|_| row.paper_value > 0.0).map(|it| it / row.paper_value)
    };
    let mut ratios: Vec<f64> = rows.iter().filter_map(ratio).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let (Some(least), Some(most)) = (ratios.first(), ratios.last()) else { return String::new() };
    let median = quipu_record::stats::quantile_of_numbers(&ratios, 500).unwrap_or_default();
    format!(
        "\nAbsolute numbers: ours are {least:.2} to {most:.2} times the paper's {}, {median:.2} in the median.\n",
        ratios.len()
    )
}

/// What the paper leaves open, with the claims that hold with each value.
fn left_open(figure: &Figure<'_>, first: &Judged) -> String {
    if first.settings.is_empty() {
        return String::new();
    }
    let mut text = "\n<details><summary>What the paper leaves open</summary>\n\n".to_owned();
    text.push_str(&row(&[
        "setting",
        "value",
        "claims that hold",
        "turned by it alone",
        "why these values",
    ]));
    text.push_str("| --- | --- | --- | --- | --- |\n");
    let claims = figure.claims();
    for setting in &first.settings {
        for (index, value) in setting.values.iter().enumerate() {
            let (mut holds, mut of) = (0, 0);
            let mut turned: Vec<&str> = Vec::new();
            for claim in &claims {
                let effects = agreements(claim).flat_map(|agreement| &agreement.effects);
                let effects = effects.filter(|effect| effect.setting == setting.name);
                for found in effects.filter_map(|effect| effect.values.get(index)) {
                    holds += found.holds;
                    of += found.of;
                    if found.turns && !turned.contains(&claim.first.name.as_str()) {
                        turned.push(&claim.first.name);
                    }
                }
            }
            let about = if index == 0 { setting.about.as_str() } else { "" };
            let name = if index == 0 { setting.name.as_str() } else { "" };
            let held = format!("{holds} of {of}");
            text.push_str(&row(&[
                or_blank(name),
                value,
                &held,
                or_nothing(&turned.join(", ")),
                about,
            ]));
        }
    }
    text.push_str("\n</details>\n");
    text
}

/// A cell that repeats the one above.
fn or_blank(text: &str) -> &str {
    if text.is_empty() { "″" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Page;
    use crate::reproduce::docs::tests::judged;
    use quipu_record::verdict::{Effect, Setting, Untested, ValueAgreement, Verdict};

    fn with_settings() -> Judged {
        let mut one = judged();
        one.settings = vec![Setting {
            name: "queue".to_owned(),
            about: "not told".to_owned(),
            values: vec!["own".to_owned(), "100p".to_owned()],
        }];
        one.untestable = vec![Untested {
            claim: "it costs 3 % more".to_owned(),
            reported: "+3 %".to_owned(),
            because: "no processor".to_owned(),
        }];
        let value = |value: &str, holds, turns| ValueAgreement {
            value: value.to_owned(),
            holds,
            of: 1,
            turns,
        };
        one.rules[0].agreement = Some(Agreement {
            holds: 1,
            of: 2,
            low: Some(0.5e6),
            high: Some(2e6),
            range: String::new(),
            effects: vec![Effect {
                setting: "queue".to_owned(),
                moves: Some(4.0),
                moved: "× 4.00".to_owned(),
                values: vec![value("own", 0, false), value("100p", 1, true)],
            }],
        });
        one
    }

    #[test]
    fn a_claim_has_its_verdict_agreement_and_reason() {
        let text = Page::new(&[with_settings()], &[]).text();
        let row = "| first: a \\| b | −7 % | 2.000 ms | **depends on the set-up** | 1 of 2; 500.0 µs to 2.000 ms; \
                   moved most by queue (× 4.00) | by queue: own 0 of 1, 100p 1 of 1; it rains; shown by second: \
                   2.000 ms (unclear) |";
        assert!(text.contains(row), "{text}");
        assert!(
            text.contains(
                "| it costs 3 % more | +3 % | – | not testable here | – | no processor |"
            )
        );
        assert!(
            text.contains(
                "| queue | own | 0 of 1 | – | not told |\n| ″ | 100p | 1 of 1 | first | – |"
            ),
            "{text}"
        );
        let counts = "| ns-3 QUIC (Paro et al., MSWiM 2020) | 3 | 0 | 1 | 0 | 0 | 1 | 1 |";
        assert!(text.contains(counts), "{text}");
    }

    #[test]
    fn ids_of_one_file_are_one_figure() {
        let mut other = Judged { id: "two".to_owned(), title: "t two".to_owned(), ..judged() };
        other.rules[0].verdict = Verdict::Holds;
        let text = Page::new(&[judged(), other], &[]).text();
        assert!(text.contains("### Figure 1: t\n\n`one`, 2 ids."), "{text}");
        assert!(text.contains("| 1 reproduced, 1 not reproduced |"), "{text}");
        assert!(text.contains("2 ids; 4 claims of papers: 1 reproduced"), "{text}");
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        let found = numbers("HTTP/2 took 0.477 (−48.9 %), 30 runs. Figure 8, 802.11a, ns-3.");
        let expected = ["0.477", "2", "30", "48.9", "8"].map(str::to_owned);
        assert_eq!(found, BTreeSet::from(expected));
    }

    #[test]
    fn every_paper_has_two_sentences() {
        let all = summaries();
        for paper in Paper::ALL.iter().filter(|paper| **paper != Paper::Quipu) {
            let text = all.get(paper.name()).unwrap_or_else(|| panic!("none of {paper}"));
            let ends = text.trim().split_inclusive(['.', '?']).filter(|it| it.ends_with('.'));
            assert!(!text.trim().is_empty() && ends.count() >= 2, "{paper}: {text}");
        }
        assert_eq!(all.len(), 4);
    }
}
