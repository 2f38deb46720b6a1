//! Rules that hold though policies are exchanged by chance: lists of them, and the reasons.

use std::fmt::Write;

use super::row;
use quipu_record::verdict::{ByChance, Judged, RuleVerdict};

/// A rule that was held against chance.
struct Held<'a> {
    judged: &'a Judged,
    rule: &'a RuleVerdict,
    found: ByChance,
}

impl Held<'_> {
    fn is_claim(&self) -> bool {
        self.judged.outcome(self.rule).is_some()
    }

    fn name(&self) -> String {
        format!("{}/{}", self.judged.id, self.rule.name)
    }
}

/// All rules that were held against chance.
fn held<'a>(all: impl IntoIterator<Item = &'a Judged>) -> Vec<Held<'a>> {
    let mut list = Vec::new();
    for judged in all {
        for rule in &judged.rules {
            list.extend(rule.by_chance.map(|found| Held { judged, rule, found }));
        }
    }
    list
}

/// Those that hold all the same, for a terminal.
pub fn survivors(all: &[Judged]) -> String {
    let all = held(all);
    let mut text = String::new();
    for it in all.iter().filter(|it| it.found.survives()) {
        let Held { rule: RuleVerdict { kind, by_chance_because, .. }, found, .. } = it;
        let ByChance { held, deals } = found;
        let _ = write!(text, "{} ({kind}): in {held} of {deals}", it.name());
        if !by_chance_because.is_empty() {
            let _ = write!(text, "; {by_chance_because}");
        }
        text.push('\n');
    }
    let count = text.lines().count();
    let exchanged = all.iter().filter(|it| it.found.deals > 0).count();
    format!("{count} of {exchanged} rules hold in more than 5 % of deals by chance\n{text}")
}

/// Names of the claims of papers that hold all the same, and whose files do not say why.
pub fn unexplained<'a>(all: impl IntoIterator<Item = &'a Judged>) -> Vec<String> {
    let without = |it: &Held<'_>| {
        it.is_claim() && it.found.survives() && it.rule.by_chance_because.is_empty()
    };
    held(all).iter().filter(|it| without(it)).map(Held::name).collect()
}

/// Names of the claims of papers that were not held against chance.
pub(super) fn untried<'a>(all: impl IntoIterator<Item = &'a Judged>) -> Vec<String> {
    let mut names = Vec::new();
    for judged in all {
        let rules = judged.rules.iter().filter(|rule| judged.outcome(rule).is_some());
        let untried = rules.filter(|rule| rule.by_chance.is_none());
        names.extend(untried.map(|rule| format!("{}/{}", judged.id, rule.name)));
    }
    names
}

/// What the page says of them; nothing if none was held against chance.
pub(super) fn section(all: &[&Judged]) -> String {
    let all = held(all.iter().copied());
    let (all, alone): (Vec<Held<'_>>, Vec<Held<'_>>) =
        all.into_iter().partition(|it| it.found.deals > 0);
    let Some(deals) = all.first().map(|it| it.found.deals) else { return String::new() };
    let count = |survives: bool, claims: bool| {
        let those = |it: &&Held<'_>| it.is_claim() == claims && (it.found.survives() || !survives);
        all.iter().filter(those).count()
    };
    let mut text = format!(
        "\n## Rules that say nothing of policies\n\nEach rule was judged {deals} times more with policies \
         exchanged by chance within each run. {} of {} claims, and {} of {} rules of our own, hold in more than one of \
         twenty such deals. {} more are about one policy alone, so that there is nothing to exchange.\n",
        count(true, true),
        count(false, true),
        count(true, false),
        count(false, false),
        alone.len(),
    );
    let survivors: Vec<&Held<'_>> =
        all.iter().filter(|it| it.is_claim() && it.found.survives()).collect();
    if survivors.is_empty() {
        return text;
    }
    text.push_str("The claims, and why they may:\n\n");
    text.push_str(&row(&["claim", "holds in deals", "why"]));
    text.push_str("| --- | --- | --- |\n");
    // The ids of one file have a claim together.
    let mut together: Vec<Vec<&Held<'_>>> = Vec::new();
    for it in survivors {
        let is_same = |other: &&mut Vec<&Held<'_>>| {
            let name = |it: &Held<'_>| (it.judged.file.clone(), it.rule.name.clone());
            other.first().is_some_and(|first| name(first) == name(it))
        };
        match together.iter_mut().find(is_same) {
            Some(others) => others.push(it),
            None => together.push(vec![it]),
        }
    }
    for all in together {
        let Some(first) = all.first() else { continue };
        let name = match all.len() {
            1 => first.name(),
            2 => format!("{}, and another id of its file", first.name()),
            ids => format!("{}, and {} more ids of its file", first.name(), ids - 1),
        };
        let held = all.iter().map(|it| it.found.held);
        let (least, most) = (held.clone().min().unwrap_or(0), held.max().unwrap_or(0));
        let held = if least == most { most.to_string() } else { format!("{least} to {most}") };
        let deals = format!("{held} of {}", first.found.deals);
        text.push_str(&row(&[&name, &deals, &first.rule.by_chance_because]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::judged;
    use super::*;
    use quipu_record::verdict::RuleKind;

    fn found(held: u32, because: &str) -> Judged {
        let mut judged = judged();
        judged.rules[0].by_chance = Some(ByChance { held, deals: 40 });
        judged.rules[0].by_chance_because = because.to_owned();
        judged
    }

    #[test]
    fn a_claim_that_holds_by_chance_needs_a_reason() {
        assert_eq!(unexplained(&[found(2, "")]), Vec::<String>::new());
        assert_eq!(unexplained(&[found(3, "")]), ["one/first"]);
        assert_eq!(unexplained(&[found(3, "it is about all")]), Vec::<String>::new());
        let mut own = found(3, "");
        own.rules[0].kind = RuleKind::Control;
        assert_eq!(unexplained(&[own]), Vec::<String>::new());
        assert_eq!(untried(&[found(0, "")]), ["one/second"]);
    }

    #[test]
    fn lists_have_those_that_hold_and_why() {
        let list = survivors(&[found(3, "it is about all")]);
        assert!(list.starts_with("1 of 1 rules hold"), "{list}");
        assert!(list.contains("one/first (claim): in 3 of 40; it is about all"), "{list}");
        let page = section(&[&found(3, "it is about all")]);
        assert!(page.contains("1 of 1 claims, and 0 of 0 rules of our own"), "{page}");
        assert!(page.contains("| one/first | 3 of 40 | it is about all |"), "{page}");
        assert_eq!(section(&[&judged()]), "");
    }
}
