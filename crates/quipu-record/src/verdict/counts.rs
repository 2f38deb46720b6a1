//! How many verdicts are of each kind: one count for the command, the page of the docs and reports.

use std::collections::BTreeSet;
use std::fmt;

use super::{Judged, Outcome, Paper, RuleVerdict, Verdict};

/// How many verdicts are of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ids.
    pub ids: usize,
    /// Claims of papers, in the order of [`Outcome::ALL`].
    pub claims: [usize; Outcome::ALL.len()],
    /// All other rules, in the order of [`Verdict::ALL`].
    pub own: [usize; Verdict::ALL.len()],
    /// Rules that ended otherwise than their files expect.
    pub surprises: usize,
}

impl Judged {
    /// What became of `rule`, if it is a claim of a paper. Those of this project are none.
    pub fn outcome(&self, rule: &RuleVerdict) -> Option<Outcome> {
        rule.outcome().filter(|_| self.paper != Paper::Quipu)
    }
}

impl Counts {
    /// Those of `all`. A claim that cannot be tested counts once for each file that has it.
    pub fn of<'a>(all: impl IntoIterator<Item = &'a Judged>) -> Counts {
        let mut counts = Counts::default();
        let mut untestable = BTreeSet::new();
        for judged in all {
            counts.ids += 1;
            counts.surprises += judged.surprises().count();
            for rule in &judged.rules {
                match judged.outcome(rule) {
                    Some(outcome) => counts.claims[outcome as usize] += 1,
                    None => counts.own[rule.verdict as usize] += 1,
                }
            }
            let claims = judged.untestable.iter().map(|it| (&judged.file, &it.claim));
            untestable.extend(claims);
        }
        counts.claims[Outcome::Untestable as usize] += untestable.len();
        counts
    }

    /// Claims that became `outcome`.
    pub fn claims_of(&self, outcome: Outcome) -> usize {
        self.claims[outcome as usize]
    }

    /// All claims.
    pub fn all_claims(&self) -> usize {
        self.claims.iter().sum()
    }

    /// All rules that are no claims.
    pub fn all_own(&self) -> usize {
        self.own.iter().sum()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let claims = Outcome::ALL.iter().zip(self.claims);
        let claims: Vec<String> =
            claims.map(|(outcome, count)| format!("{count} {outcome}")).collect();
        let [hold, fail, unclear, none] = self.own;
        write!(
            f,
            "{} ids; {} claims of papers: {}; {} rules of our own: {hold} hold, {fail} fail, {unclear} \
             unclear, {none} without an answer; {} other than expected",
            self.ids,
            self.all_claims(),
            claims.join(", "),
            self.all_own(),
            self.surprises
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, rule};
    use super::super::{RuleKind, Untested};
    use super::*;

    #[test]
    fn claims_of_papers_are_counted_apart_from_rules_of_our_own() {
        use RuleKind::{Claim, Firm};
        use Verdict::{Fails, Holds, Unclear};
        let untested =
            Untested { claim: "c".to_owned(), reported: String::new(), because: "b".to_owned() };
        let mut one = judged(vec![
            rule(Claim, Holds, Holds),
            rule(Claim, Fails, Holds),
            rule(Firm, Unclear, Unclear),
        ]);
        one.paper = Paper::Ns3;
        one.untestable = vec![untested];
        // A second id of the same file, and an experiment of our own.
        let two = one.clone();
        let own = judged(vec![rule(Claim, Holds, Holds)]);
        let counts = Counts::of([&one, &two, &own]);
        assert_eq!(counts.claims, [2, 0, 0, 2, 0, 1]);
        assert_eq!(counts.own, [1, 0, 2, 0]);
        assert_eq!((counts.all_claims(), counts.all_own(), counts.surprises), (5, 3, 2));
        let text = counts.to_string();
        assert!(text.starts_with("3 ids; 5 claims of papers: 2 reproduced, 0 depends"), "{text}");
    }
}
