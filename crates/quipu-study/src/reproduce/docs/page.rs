//! The page of the docs: all verdicts by paper, the papers' numbers beside ours.
//!
//! Each row begins with the id that it is of, and each id has a mark at the end: a hash of its rows, and one of
//! the experiment that they were found for. So some ids can be run again and only their rows written anew, and
//! whoever reads the page can tell, without a run, which ids are not those of the program.

use std::fmt::Write;

use xxhash_rust::xxh3::xxh3_64;

use super::{from_bound, in_bold, markdown, reason};
use quipu_record::verdict::{Judged, Paper, Verdict};
use quipu_scenario::experiment::Case;

const HEAD: &str = "# Verdicts\n\nWritten by `quipu reproduce --docs`; not to be changed by hand. What the \
                    columns mean stands in\n[reproduce.md](reproduce.md).\n\n";
const QUICK: &str = "**Quick runs**: few of them, so intervals are wide.\n\n";
/// What stands above the rows of each of the tables of a paper.
const TABLES: [&str; 3] = [
    "| id | rule | claim | paper | here | 95 % interval | threshold | verdict | reason |\n\
     | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    "\nThe paper's numbers and ours:\n\n\
     | id | page | network | policy | metric | paper | here | 95 % interval |\n\
     | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    "\nTimes the bound that no scheduler can beat ([bound.md](bound.md)), page/critical time, medians; in \
     parentheses the page's bound:\n\n| id | page and network | policies |\n| --- | --- | --- |\n",
];

/// What the page says, id by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    parts: Vec<Part>,
}

/// The rows of one id.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    id: String,
    paper: Paper,
    /// Those of each of [`TABLES`].
    rows: [String; 3],
    /// Whether runs were few.
    quick: bool,
    /// Hash of the experiment that was run; empty if it is not told.
    experiment: String,
}

impl Page {
    /// A page of these ids, of which those in `cases` say what they are of.
    pub fn new(all: &[Judged], cases: &[Case]) -> Page {
        Page { parts: all.iter().map(|judged| Part::new(judged, cases)).collect() }
    }

    /// Reads a page that [`Page::text`] wrote.
    ///
    /// # Errors
    /// What is wrong with it, such as a change by hand.
    pub fn read(text: &str) -> Result<Page, String> {
        let mut page = Page::default();
        let (mut paper, mut table) = (None, 0);
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("## ") {
                paper = Paper::ALL.iter().copied().find(|paper| paper.title() == title);
                continue;
            }
            let is_above =
                |head: &&str| head.lines().any(|it| it == line && it.starts_with("| id "));
            if let Some(at) = TABLES.iter().position(is_above) {
                table = at;
            } else if let Some((id, _)) = line.strip_prefix("| `").and_then(|it| it.split_once('`'))
            {
                let paper = paper.ok_or_else(|| format!("{id} is of no paper"))?;
                let rows = &mut page.part(id, paper).rows[table];
                rows.push_str(line);
                rows.push('\n');
            } else if let Some(mark) =
                line.strip_prefix("<!-- ").and_then(|it| it.strip_suffix(" -->"))
            {
                page.read_mark(mark)?;
            }
        }
        if page.text() == text { Ok(page) } else { Err("it was changed by hand".to_owned()) }
    }

    /// The part of `id`, which is added if it is not there.
    fn part(&mut self, id: &str, paper: Paper) -> &mut Part {
        let at = self.parts.iter().position(|part| part.id == id).unwrap_or_else(|| {
            let rows = Default::default();
            let (id, experiment) = (id.to_owned(), String::new());
            self.parts.push(Part { id, paper, rows, quick: false, experiment });
            self.parts.len() - 1
        });
        &mut self.parts[at]
    }

    fn read_mark(&mut self, mark: &str) -> Result<(), String> {
        let read = || {
            let (id, rest) = mark.split_once(": rows ")?;
            let (rows, rest) = rest.split_once(", experiment ")?;
            let experiment = rest.strip_suffix(", quick");
            Some((id, rows, experiment.unwrap_or(rest), experiment.is_some()))
        };
        let (id, rows, experiment, quick) =
            read().ok_or_else(|| format!("`{mark}` is no mark of an id"))?;
        let part = self.parts.iter_mut().find(|part| part.id == id);
        let part = part.ok_or_else(|| format!("{id} has a mark and no rows"))?;
        (part.experiment, part.quick) = (experiment.to_owned(), quick);
        if part.hash() == rows { Ok(()) } else { Err(format!("{id} was changed by hand")) }
    }

    /// The same with what was found for some ids in place of what was there, in the order of `cases`. Ids that
    /// are none of these are left out.
    #[must_use]
    pub fn with(self, found: &[Judged], cases: &[Case]) -> Page {
        let new = Page::new(found, cases).parts;
        let of = |id: &str| {
            let mut all = new.iter().chain(&self.parts);
            all.find(|part| part.id == id).cloned()
        };
        Page { parts: cases.iter().filter_map(|case| of(&case.id)).collect() }
    }

    /// The page as Markdown.
    pub fn text(&self) -> String {
        let mut text = self.without_marks();
        text.push('\n');
        for part in &self.parts {
            let quick = if part.quick { ", quick" } else { "" };
            let Part { id, experiment, .. } = part;
            let rows = part.hash();
            let _ = writeln!(text, "<!-- {id}: rows {rows}, experiment {experiment}{quick} -->");
        }
        text
    }

    /// The page without the marks of ids, which nobody checks.
    pub(super) fn without_marks(&self) -> String {
        let mut text = HEAD.to_owned();
        if self.parts.iter().any(|part| part.quick) {
            text.push_str(QUICK);
        }
        let _ = writeln!(text, "{}.", self.counts());
        for paper in Paper::ALL {
            let parts = || self.parts.iter().filter(|part| part.paper == *paper);
            if parts().next().is_none() {
                continue;
            }
            let _ = write!(text, "\n## {}\n\n", paper.title());
            for (at, head) in TABLES.iter().enumerate() {
                let rows: String = parts().map(|part| part.rows[at].as_str()).collect();
                // The table of verdicts is always there.
                if at == 0 || !rows.is_empty() {
                    text.push_str(head);
                    text.push_str(&rows);
                }
            }
        }
        text
    }

    /// How many verdicts are of each kind.
    fn counts(&self) -> String {
        let verdicts = || {
            let rows = self.parts.iter().flat_map(|part| part.rows[0].lines());
            rows.filter_map(|row| row.rsplit(" | ").nth(1))
        };
        let of = |verdict: Verdict| {
            let name = verdict.name();
            verdicts().filter(|cell| cell.trim_start_matches('*').starts_with(name)).count()
        };
        super::counted(
            self.parts.len(),
            verdicts().count(),
            [Verdict::Holds, Verdict::Fails, Verdict::Unclear, Verdict::Error].map(of),
            verdicts().filter(|cell| cell.starts_with("**")).count(),
        )
    }

    /// Checks, without a run, that the page has all of `cases`, each as it is now.
    ///
    /// # Errors
    /// Which ids are to be run again.
    pub fn check(&self, cases: &[Case]) -> Result<(), String> {
        let is_stale = |case: &&Case| {
            let part = self.parts.iter().find(|part| part.id == case.id);
            part.is_none_or(|part| part.experiment != experiment_hash(case))
        };
        let stale: Vec<&str> = cases.iter().filter(is_stale).map(|case| case.id.as_str()).collect();
        if !stale.is_empty() {
            let ids = stale.join(" ");
            return Err(format!(
                "not of the experiments as they are; run `quipu reproduce {ids} --docs FILE`"
            ));
        }
        let known = |part: &&Part| cases.iter().any(|case| case.id == part.id);
        match self.parts.iter().find(|part| !known(part)) {
            None => Ok(()),
            Some(part) => Err(format!(
                "{} is no experiment any more; run any id with `quipu reproduce ID --docs FILE`",
                part.id
            )),
        }
    }
}

impl Part {
    fn new(judged: &Judged, cases: &[Case]) -> Part {
        let id = format!("`{}`", judged.id);
        let verdicts = judged.rules.iter().map(|rule| {
            row(&[
                &id,
                &format!("{} ({})", rule.name, rule.kind),
                &rule.claim,
                &rule.reported,
                &rule.here,
                &rule.interval,
                &rule.rule,
                &in_bold(rule, judged.quick),
                &reason(rule, judged),
            ])
        });
        let numbers = judged.data.iter().map(|beside| {
            row(&[
                &id,
                &beside.page,
                &beside.network,
                &beside.policy,
                &format!("{}, {}", beside.metric, beside.stat),
                &beside.paper,
                &beside.here,
                &beside.interval,
            ])
        });
        let distances =
            from_bound(judged).into_iter().map(|(place, policies)| row(&[&id, &place, &policies]));
        let case = cases.iter().find(|case| case.id == judged.id);
        Part {
            id: judged.id.clone(),
            paper: judged.paper,
            rows: [verdicts.collect(), numbers.collect(), distances.collect()],
            quick: judged.quick,
            experiment: case.map(experiment_hash).unwrap_or_default(),
        }
    }

    fn hash(&self) -> String {
        format!("{:016x}", xxh3_64(self.rows.concat().as_bytes()))
    }
}

fn row(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| markdown(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// A hash of what an id is: the text of its file, whatever the runs.
fn experiment_hash(case: &Case) -> String {
    format!("{:016x}", xxh3_64(format!("{}\0{}", case.id, case.text).as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::docs::tests::judged;
    use quipu_record::verdict::RuleKind;
    use quipu_scenario::experiment::cases;

    /// The file of the id `id`, whose threshold is `value`.
    fn case(id: &str, value: &str) -> Case {
        let text = format!(
            "[experiment]\nid = \"{id}\"\npaper = \"ns3\"\ntitle = \"t\"\n[[experiment.rules]]\n\
             name = \"r\"\nclaim = \"c\"\nmetric = \"page\"\nvalue = \"{value}\""
        );
        cases(&text, "one.toml").unwrap().remove(0)
    }

    fn found(id: &str, here: &str) -> Judged {
        let mut judged = Judged { id: id.to_owned(), ..judged() };
        judged.rules[0].here = here.to_owned();
        judged
    }

    #[test]
    fn the_page_has_counts_verdicts_and_reasons() {
        let text = Page::new(&[judged()], &[]).text();
        let counted = "1 ids, 2 rules: 0 hold, 1 fail, 1 unclear, 0 without an answer; 0 other";
        assert!(text.contains(counted), "{text}");
        let row = "| `one` | first (claim) | a \\| b | −7 % | 2.000 ms | – | page: median each: > 1s \
                   | fails | it rains; shown by second: 2.000 ms (unclear) |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("| unclear (expected holds) |"), "{text}");
        let row = "| `one` | wikipedia over dsl (250.0 ms) | rr 1.25/2.00, wrr 1.25/2.00 |";
        assert!(text.contains(row), "{text}");
        let mut firm = judged();
        firm.rules[1].kind = RuleKind::Firm;
        let text = Page::new(&[firm], &[]).text();
        assert!(text.contains("| **unclear (expected holds)** |"), "{text}");
        assert!(text.contains("0 without an answer; 1 other than expected"), "{text}");
    }

    #[test]
    fn one_id_is_written_anew_and_all_others_stay() {
        let all = ["one", "two", "three"].map(|id| case(id, "> 1s"));
        let before = ["one", "two", "three"].map(|id| found(id, "2.000 ms"));
        let page = Page::new(&before, &all);
        page.check(&all).unwrap();
        assert_eq!(Page::read(&page.text()).unwrap(), page);
        // Another threshold of one, and an id more.
        let mut changed = all.to_vec();
        changed[1] = case("two", "> 2s");
        changed.insert(1, case("four", "> 1s"));
        let wrong = page.check(&changed).unwrap_err();
        assert!(wrong.contains("run `quipu reproduce four two --docs"), "{wrong}");
        let news = [found("four", "4.000 ms"), found("two", "3.000 ms")];
        let after = Page::read(&page.text()).unwrap().with(&news, &changed);
        after.check(&changed).unwrap();
        let whole = [&before[0], &news[0], &news[1], &before[2]].map(Clone::clone);
        assert_eq!(after.text(), Page::new(&whole, &changed).text());
        // One less.
        changed.remove(0);
        let wrong = after.check(&changed).unwrap_err();
        assert!(wrong.contains("one is no experiment any more"), "{wrong}");
        after.with(&[], &changed).check(&changed).unwrap();
    }

    #[test]
    fn a_page_that_was_changed_is_found_out_wherever() {
        let all = [case("one", "> 1s"), case("two", "> 1s")];
        let text = Page::new(&[judged(), found("two", "3.000 ms")], &all).text();
        Page::read(&text).unwrap();
        for (from, to) in [
            ("−7 %", "−8 %"),
            ("3.000 ms | – |", "3.100 ms | – |"),
            ("2 fail", "1 fail"),
            ("250.0 ms", "251.0 ms"),
            ("# Verdicts", "# Results"),
            ("## ", "### "),
            ("<!-- two: rows", "<!-- three: rows"),
            (", experiment", ", experiments"),
            ("| `two` | first", "| `three` | first"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            assert!(Page::read(&changed).is_err(), "{from}");
        }
        let without_last = text.trim_end().rsplit_once('\n').unwrap().0;
        assert!(Page::read(without_last).is_err());
        let quick = Page::new(&[Judged { quick: true, ..judged() }], &all);
        assert_eq!(Page::read(&quick.text()).unwrap(), quick);
        assert!(quick.text().contains("**Quick runs**"));
    }
}
