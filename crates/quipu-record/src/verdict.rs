//! Verdicts: what the runs of an experiment say of its claims; the content of `verdicts.json`.

use serde::{Deserialize, Serialize};

use crate::metric::Dimension;
use crate::provenance::Provenance;

/// The file.
pub const VERDICTS: &str = "verdicts.json";

/// Declares an enum whose values have names in files and in results.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// All values.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

mod counts;
mod outcome;
mod table;

pub use counts::Counts;
pub use outcome::{Agreement, Effect, Outcome, Setting, Untested, ValueAgreement};
pub use table::{ResultTable, TableCell, TableRow};

words! {
    /// Where an experiment comes from.
    Paper {
        /// Nguyen, Vu, Nguyen, Nguyen (2025).
        Framework = "framework",
        /// Wang, Gao, Xu (APNet 2019).
        MobileH2 = "mobileh2",
        /// Du, Chen, Yu, Du, Xie, Chen (2026).
        PwPats = "pw-pats",
        /// Paro et al. (MSWiM 2020).
        Ns3 = "ns3",
        /// This project.
        Quipu = "quipu",
    }
}

impl Paper {
    /// What a table calls it.
    pub fn title(self) -> &'static str {
        match self {
            Paper::Framework => "Framework (Nguyen, Vu, Nguyen, Nguyen, 2025)",
            Paper::MobileH2 => "MobileH2 (Wang, Gao, Xu, APNet 2019)",
            Paper::PwPats => "PW-PATS (Du, Chen, Yu, Du, Xie, Chen, 2026)",
            Paper::Ns3 => "ns-3 QUIC (Paro et al., MSWiM 2020)",
            Paper::Quipu => "Our own",
        }
    }
}

words! {
    /// What a rule is for.
    RuleKind {
        /// A direction that must hold.
        Firm = "firm",
        /// What a paper says.
        Claim = "claim",
        /// What separates two effects.
        Control = "control",
        /// What shows why something does not hold, or does.
        Ablation = "ablation",
    }
}

words! {
    /// How a rule ends.
    Verdict {
        /// All of the interval satisfies the threshold.
        Holds = "holds",
        /// Nothing of it does.
        Fails = "fails",
        /// The interval straddles the threshold.
        Unclear = "unclear",
        /// It could not be decided: there is nothing to compare.
        Error = "error",
    }
}

words! {
    /// In how many places a rule must hold.
    Places {
        /// In every one.
        All = "all",
        /// In one at least.
        Any = "any",
    }
}

/// Everything that was found for one id: the content of its `verdicts.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The id.
    pub id: String,
    /// Where it comes from.
    pub paper: Paper,
    /// Figure or table there.
    pub figure: String,
    /// What it shows.
    pub title: String,
    /// What the paper says.
    pub reported: String,
    /// What is reconstruction.
    pub note: String,
    /// The scenario file.
    pub file: String,
    /// The program.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// In which world runs were made, such as `simulated`.
    #[serde(default = "simulated")]
    pub world: String,
    /// Hash of everything that decides the result.
    pub fingerprint: String,
    /// Whether runs are few.
    pub quick: bool,
    /// Seed of the experiment.
    pub seed: u64,
    /// Runs that ended well, of the scenario and its variants.
    pub runs: usize,
    /// Runs that failed, and why.
    pub failures: Vec<String>,
    /// What came out.
    pub rules: Vec<RuleVerdict>,
    /// What the paper leaves open, and which values were tried.
    #[serde(default)]
    pub settings: Vec<Setting>,
    /// Claims of the paper that cannot be tested here.
    #[serde(default)]
    pub untestable: Vec<Untested>,
    /// The paper's numbers beside ours.
    pub data: Vec<DataRow>,
    /// Tables of results, for texts to show.
    #[serde(default)]
    pub tables: Vec<ResultTable>,
    /// How far each policy is from the bound; of the scenario itself, without variants.
    #[serde(default)]
    pub bounds: Vec<BoundRow>,
}

/// How far a policy is from what no scheduler can beat: medians over the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundRow {
    /// The page.
    pub page: String,
    /// The network.
    pub network: String,
    /// The policy.
    pub policy: String,
    /// The bound of the page time, in nanoseconds.
    pub page_bound_ns: u64,
    /// Page time by its bound: 1 and more.
    pub page_over_bound: f64,
    /// Critical time by its bound; `null` if there is none.
    pub critical_over_bound: Option<f64>,
}

/// What the runs say of one rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleVerdict {
    /// Its name.
    pub name: String,
    /// The direction, in words.
    pub claim: String,
    /// What it is for.
    pub kind: RuleKind,
    /// The paper's numbers.
    pub reported: String,
    /// Metric, what is compared, threshold.
    pub rule: String,
    /// The paper's number as the rule has it, in the unit of result files; `null` if it is not given.
    #[serde(default)]
    pub paper: Option<f64>,
    /// What the number counts.
    #[serde(default)]
    pub dimension: Dimension,
    /// What is taken of the runs: `value`, `ratio` or `difference`.
    #[serde(default)]
    pub test: String,
    /// The lower end of the threshold; `null` if it has none.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// Its upper end.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// The number of the place that decides: of all places the one nearest to failing, or, where one place is
    /// enough, the one nearest to holding.
    #[serde(default)]
    pub deciding: Option<f64>,
    /// The 95 % interval of that number; `null` without chance.
    #[serde(default)]
    pub deciding_interval: Option<(f64, f64)>,
    /// Whether the number is on that side of no difference on which the threshold lies, whatever its size; `null`
    /// if the threshold lies on both sides, or is one for no comparison.
    #[serde(default)]
    pub direction: Option<bool>,
    /// What the settings change that the paper leaves open; `null` if it leaves none open, and for rules that are
    /// no claims.
    #[serde(default)]
    pub agreement: Option<Agreement>,
    /// Our numbers: one, or the least and the largest of all places.
    pub here: String,
    /// The interval, or the lowest and highest end of all.
    pub interval: String,
    /// How it ended.
    pub verdict: Verdict,
    /// What was known to come out.
    pub expect: Verdict,
    /// Why it does not hold.
    pub because: String,
    /// The rule that shows that reason.
    pub ablation: Option<String>,
    /// Each place.
    pub findings: Vec<Finding>,
    /// How often it holds where policies are exchanged by chance, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by_chance: Option<ByChance>,
    /// Why it does; empty if it does not, or no reason is known.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub by_chance_because: String,
}

/// How often a rule holds where the results of each page, network and run are dealt out to the policies
/// by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByChance {
    /// Deals in which it holds.
    pub held: u32,
    /// All deals; none if there is one policy only, so that nothing can be exchanged.
    pub deals: u32,
}

impl ByChance {
    /// True if it holds in more than one deal of twenty: it does not tell policies apart.
    pub fn survives(self) -> bool {
        u64::from(self.held) * 20 > u64::from(self.deals)
    }
}

/// What the runs say in one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The place, such as `wikipedia over wifi+lte, dwrr + minrtt to rr + minrtt`.
    pub place: String,
    /// The number, in nanoseconds, bytes, bits per second or plain; `null` if there is none.
    pub value: Option<f64>,
    /// Lower end of its 95 % interval; `null` without chance.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Runs, or pairs of runs.
    pub runs: usize,
    /// What follows.
    pub verdict: Verdict,
    /// Why there is no number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
}

/// The world of results that name none.
fn simulated() -> String {
    "simulated".to_owned()
}

impl Judged {
    /// Rules that ended otherwise than is known.
    pub fn surprises(&self) -> impl Iterator<Item = &RuleVerdict> {
        self.rules.iter().filter(|rule| !rule.is_as_expected(self.quick))
    }
}

impl RuleVerdict {
    /// True if it ended as is known. `unclear` contradicts nothing: only of a firm rule, with all runs,
    /// is it a surprise.
    pub fn is_as_expected(&self, quick: bool) -> bool {
        let either_is = |verdict| self.verdict == verdict || self.expect == verdict;
        self.verdict == self.expect
            || ((quick || self.kind != RuleKind::Firm)
                && either_is(Verdict::Unclear)
                && self.verdict != Verdict::Error)
    }
}

/// A number of a paper beside ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataRow {
    /// The page.
    pub page: String,
    /// The network.
    pub network: String,
    /// The policy.
    pub policy: String,
    /// What is measured.
    pub metric: String,
    /// Which number of it.
    pub stat: String,
    /// Where the paper's number is from, if not its figure.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The paper's number.
    pub paper: String,
    /// Ours; empty if there is none.
    pub here: String,
    /// Its 95 % interval; empty without chance.
    pub interval: String,
    /// The paper's number in nanoseconds, bytes, bits per second or plain.
    pub paper_value: f64,
    /// Ours.
    pub here_value: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn rule(kind: RuleKind, verdict: Verdict, expect: Verdict) -> RuleVerdict {
        let nothing = String::new;
        RuleVerdict {
            name: format!("{verdict} for {expect}"),
            claim: nothing(),
            kind,
            reported: nothing(),
            rule: nothing(),
            paper: None,
            dimension: Dimension::Plain,
            deciding: None,
            deciding_interval: None,
            test: nothing(),
            at_least: None,
            at_most: None,
            direction: None,
            agreement: None,
            here: nothing(),
            interval: nothing(),
            verdict,
            expect,
            because: nothing(),
            ablation: None,
            findings: Vec::new(),
            by_chance: None,
            by_chance_because: nothing(),
        }
    }

    pub(super) fn judged(rules: Vec<RuleVerdict>) -> Judged {
        let nothing = String::new;
        Judged {
            id: nothing(),
            paper: Paper::Quipu,
            figure: nothing(),
            title: nothing(),
            reported: nothing(),
            note: nothing(),
            file: nothing(),
            provenance: Provenance::default(),
            world: simulated(),
            fingerprint: nothing(),
            quick: false,
            seed: 1,
            runs: 0,
            failures: Vec::new(),
            rules,
            settings: Vec::new(),
            untestable: Vec::new(),
            tables: Vec::new(),
            data: Vec::new(),
            bounds: Vec::new(),
        }
    }

    #[test]
    fn what_ended_as_its_file_says_is_expected_whatever_it_is() {
        for kind in RuleKind::ALL {
            for verdict in Verdict::ALL {
                let found = rule(*kind, *verdict, *verdict);
                assert!(found.is_as_expected(true) && found.is_as_expected(false));
            }
        }
    }

    #[test]
    fn the_opposite_and_errors_are_surprises_with_few_runs_too() {
        use Verdict::{Error, Fails, Holds, Unclear};
        for (verdict, expect) in
            [(Holds, Fails), (Fails, Holds), (Error, Holds), (Error, Unclear), (Error, Fails)]
        {
            for kind in RuleKind::ALL {
                let found = rule(*kind, verdict, expect);
                assert!(!found.is_as_expected(true) && !found.is_as_expected(false), "{found:?}");
            }
        }
    }

    #[test]
    fn unclear_surprises_of_a_firm_rule_with_all_runs_alone() {
        use Verdict::{Fails, Holds, Unclear};
        for (verdict, expect) in
            [(Unclear, Holds), (Unclear, Fails), (Holds, Unclear), (Fails, Unclear)]
        {
            for kind in RuleKind::ALL {
                let found = rule(*kind, verdict, expect);
                assert!(found.is_as_expected(true), "{found:?}");
                assert_eq!(found.is_as_expected(false), *kind != RuleKind::Firm, "{found:?}");
            }
        }
    }

    #[test]
    fn surprises_are_the_rules_that_ended_otherwise() {
        let rules = vec![
            rule(RuleKind::Firm, Verdict::Holds, Verdict::Holds),
            rule(RuleKind::Firm, Verdict::Fails, Verdict::Holds),
            rule(RuleKind::Firm, Verdict::Unclear, Verdict::Holds),
        ];
        let mut judged = judged(rules);
        assert_eq!(judged.surprises().count(), 2);
        judged.quick = true;
        let found: Vec<_> = judged.surprises().map(|rule| rule.name.as_str()).collect();
        assert_eq!(found, ["fails for holds"]);
    }

    #[test]
    fn papers_have_titles_of_their_own() {
        let titles: std::collections::BTreeSet<_> =
            Paper::ALL.iter().map(|paper| paper.title()).collect();
        assert_eq!(titles.len(), Paper::ALL.len());
        assert!(!titles.contains(""));
    }
}
