//! Verdicts by figure: the ids of one file belong together.

use super::kept::Kept;
use quipu_record::verdict::{Judged, Outcome, Paper, RuleVerdict};

/// What there is of a figure of a paper: everything of one file.
#[derive(Debug)]
pub(super) struct Figure<'a> {
    /// Name of the file without folder and ending.
    pub(super) name: String,
    pub(super) paper: Paper,
    /// Its ids in their order.
    pub(super) ids: Vec<&'a Kept>,
}

/// A claim, in all ids that have it.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    /// In the first id that has it.
    pub(super) first: &'a RuleVerdict,
    /// Where it is, with what became of it.
    pub(super) all: Vec<(&'a Kept, &'a RuleVerdict, Outcome)>,
}

/// The figures of `kept`, in their order.
pub(super) fn figures(kept: &[Kept]) -> Vec<Figure<'_>> {
    let mut all: Vec<Figure<'_>> = Vec::new();
    for it in kept {
        let Judged { file, paper, .. } = &it.judged;
        let is_same = |figure: &&mut Figure<'_>| {
            figure.ids.first().is_some_and(|first| first.judged.file == *file)
        };
        match all.iter_mut().find(is_same) {
            Some(figure) => figure.ids.push(it),
            None => {
                let name = file.rsplit('/').next().unwrap_or(file);
                let name = name.strip_suffix(".toml").unwrap_or(name).to_owned();
                all.push(Figure { name, paper: *paper, ids: vec![it] });
            }
        }
    }
    // As people count: Figure 6 stands before Figure 10.
    all.sort_by_cached_key(|figure| natural(&figure.name));
    all
}

/// What orders `name` by its words and numbers.
fn natural(name: &str) -> Vec<(u64, String)> {
    let is_digit = |c: char| c.is_ascii_digit();
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c| !is_digit(c)).unwrap_or(rest.len()));
        let (word, after) = after.split_at(after.find(is_digit).unwrap_or(after.len()));
        parts.push((number.parse().unwrap_or(0), word.to_owned()));
        rest = after;
    }
    parts
}

impl<'a> Figure<'a> {
    /// Everything that was found.
    pub(super) fn judged(&self) -> impl Iterator<Item = &'a Judged> {
        self.ids.iter().map(|kept| &kept.judged)
    }

    /// What it shows: what the titles of its ids begin with.
    pub(super) fn title(&self) -> String {
        let mut titles = self.judged().map(|judged| judged.title.as_str());
        let Some(first) = titles.next() else { return String::new() };
        let shared = titles.fold(first.len(), |shared, title| {
            let same = first.bytes().zip(title.bytes()).take_while(|(one, other)| one == other);
            shared.min(same.count())
        });
        let shared = (0..=shared).rev().find_map(|end| first.get(..end)).unwrap_or_default();
        // Whole words.
        let whole = match shared.len() == first.len() {
            true => shared,
            false => shared.rsplit_once([' ', ',']).map_or(shared, |(whole, _)| whole),
        };
        whole.trim_end_matches([',', ' ', ':']).to_owned()
    }

    /// The papers' claims in it, those of the same name together.
    pub(super) fn claims(&self) -> Vec<Claim<'a>> {
        let mut all: Vec<Claim<'a>> = Vec::new();
        for kept in &self.ids {
            for rule in &kept.judged.rules {
                let Some(outcome) = kept.judged.outcome(rule) else { continue };
                match all.iter_mut().find(|claim| claim.first.name == rule.name) {
                    Some(claim) => claim.all.push((kept, rule, outcome)),
                    None => all.push(Claim { first: rule, all: vec![(kept, rule, outcome)] }),
                }
            }
        }
        all
    }
}

impl Claim<'_> {
    /// How many ids have each outcome, those without left out.
    pub(super) fn counts(&self) -> Vec<(Outcome, usize)> {
        let of = |outcome: &Outcome| self.all.iter().filter(|(.., it)| it == outcome).count();
        let counts = Outcome::ALL.iter().map(|outcome| (*outcome, of(outcome)));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ordered_as_people_count() {
        let mut names =
            ["pp-fig10", "ns3-tab1", "pp-fig6", "ns3-fig3b", "pp-fig13", "ns3-fig3a", "pp"];
        names.sort_by_cached_key(|name| natural(name));
        let expected =
            ["ns3-fig3a", "ns3-fig3b", "ns3-tab1", "pp", "pp-fig6", "pp-fig10", "pp-fig13"];
        assert_eq!(names, expected);
    }
}
