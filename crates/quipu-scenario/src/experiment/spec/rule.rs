//! A rule of an experiment: what is compared, and what must come out.

use std::collections::BTreeMap;

use quipu_record::threshold::{Amount, Dimension, Threshold};
use quipu_record::verdict::{Paper, Places, RuleKind, Verdict};
use serde::{Deserialize, Deserializer, Serializer, de};

use super::super::measure::{Measure, OVER, Stat};
use crate::error::ScenarioError;
use crate::form::text::NAME;
use crate::form::{
    FieldType, Held, Kind, Names, Numbers, Shorthand, Text, field_types, read_only, table,
};

table! {
    /// Which runs: what is not given is as in the place at hand.
    pub struct Side as "Side" or String {
        /// Label of the policy, as tables show it.
        pub policy: Option<String> [text NAME] => "any",
        /// Name of the network.
        pub network: Option<String> [text NAME] => "any",
        /// Name of the page.
        pub page: Option<String> [text NAME] => "any",
        /// Name of the variant; `main` is the scenario itself.
        pub variant: Option<String> [text NAME] => "`main`",
        /// Another metric than that of the rule.
        pub metric: Option<Measure> => "that of the rule",
    }
}

impl Shorthand<String> for Side {
    const EXPECTED: &'static str =
        "the label of a policy, or a table with policy, network, page or variant";

    fn narrow(_: Kind) -> Kind {
        Kind::Text(&NAME)
    }

    fn from_short(policy: String) -> Result<Self, String> {
        Ok(Side { policy: Some(policy), ..Side::default() })
    }
}

/// What a rule compares.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// The number itself.
    Value(Threshold),
    /// Its ratio to another one.
    Ratio(Threshold),
    /// It less another one.
    Difference(Threshold),
}

impl Test {
    /// What the number must be.
    pub fn threshold(&self) -> &Threshold {
        match self {
            Test::Value(threshold) | Test::Ratio(threshold) | Test::Difference(threshold) => {
                threshold
            }
        }
    }

    /// How rules name it.
    pub fn name(&self) -> &'static str {
        match self {
            Test::Value(_) => "value",
            Test::Ratio(_) => "ratio",
            Test::Difference(_) => "difference",
        }
    }
}

/// What is compared with the first side.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Others {
    /// Nothing.
    #[default]
    None,
    /// Each of these.
    Sides(Vec<Side>),
    /// Every other policy of the place.
    Policies,
}

table! {
    /// A condition under which a claim counts as reproduced. Exactly one is needed of `value`, `ratio`, `difference` and `within`.
    struct RuleForm as "Rule" needs [value ratio difference within] {
        /// Its name, different from those of other rules.
        name: String [text NAME],
        /// The direction, in words.
        claim: String,
        /// Its purpose: a direction that must hold, a claim of a paper, a test that separates two effects, or one
        /// that shows a reason.
        kind: RuleKind = RuleKind::Claim,
        /// The paper's numbers.
        reported: String => "none",
        /// The paper's number as the rule has it: a ratio, or an amount with its unit.
        paper: Option<Amount> => "none",
        /// The metric that is judged.
        metric: Measure,
        /// What is compared; each entry is a comparison of its own.
        of: Option<Sides> => "every policy",
        /// What it is compared with; `others`: every other policy of the same place.
        to: Option<Sides> => "none",
        /// Instead of `of` and `to`: each entry is compared with the one before it.
        steps: Vec<Side> [2..] => "none",
        /// The side whose ratio this ratio is compared with.
        beside: Option<Side> => "none",
        /// Threshold of the number itself.
        value: Option<Threshold> => "none",
        /// Threshold of its ratio to the other number.
        ratio: Option<Threshold> => "none",
        /// Threshold of the number minus the other one, with a unit.
        difference: Option<Threshold> => "none",
        /// How far the ratio may be from 1.
        within: Option<f64> [0.0..1.0] => "none",
        /// For `value`: the statistic over all runs.
        over: Option<Stat> [text OVER] => "`median`",
        /// Only these pages.
        pages: Vec<String> [text NAME] => "all",
        /// Only these networks.
        networks: Vec<String> [text NAME] => "all",
        /// Only these policies.
        policies: Vec<String> [text NAME] => "all",
        /// Whether it must hold in every place (a page, a network and a policy), or in at least one.
        r#where: Places = Places::All,
        /// The known outcome; a rule that is expected to fail needs `because`.
        expect: Verdict [one of expected] = Verdict::Holds,
        /// Why it does not hold, if it does not.
        because: String => "none",
        /// The rule that shows that reason.
        ablation: Option<String> [text NAME] => "none",
        /// Why it also holds if policies are exchanged at random, if it does.
        by_chance: String => "none",
        /// Ids that have it: values of axes.
        only: BTreeMap<String, Vec<String>> => "all",
    }
}

/// Declares the words of types that stand in results too.
macro_rules! words {
    ($($ty:ty),+) => {
        field_types! {
            $($ty: Kind::Words(<$ty>::ALL.iter().map(|value| value.name()).collect()),)+
        }
    };
}

words!(Paper, Places, RuleKind, Verdict);

read_only! {
    Threshold: Kind::Text(&THRESHOLD),
    Amount: Kind::Text(&PAPER_NUMBER),
}

/// Names of the verdicts that a rule may expect.
fn expected() -> Vec<&'static str> {
    let known = Verdict::ALL.iter().filter(|verdict| **verdict != Verdict::Error);
    known.map(|verdict| verdict.name()).collect()
}

/// When a claim counts as shown: what a file says of it, with all defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its name, unlike those of the other rules of the experiment.
    pub name: String,
    /// The direction, in words.
    pub claim: String,
    /// Its purpose.
    pub kind: RuleKind,
    /// The paper's numbers.
    pub reported: String,
    /// The paper's number as the rule has it.
    pub paper: Option<Amount>,
    /// What is looked at.
    pub metric: Measure,
    /// One comparison for each; at least one.
    pub of: Vec<Side>,
    /// With what they are compared.
    pub to: Others,
    /// Sides that are compared each with the one before it; then `of` and `to` have nothing.
    pub steps: Vec<Side>,
    /// Where the other ratio is, if two are compared.
    pub beside: Option<Side>,
    /// What the result must be.
    pub test: Test,
    /// One number out of all runs, for a plain value.
    pub over: Stat,
    /// Pages; all if empty.
    pub pages: Vec<String>,
    /// Networks; all if empty.
    pub networks: Vec<String>,
    /// Policies; all if empty.
    pub policies: Vec<String>,
    /// In how many places it must hold.
    pub places: Places,
    /// The verdict that is known to come out.
    pub expect: Verdict,
    /// The reason if it does not hold; may be empty.
    pub because: String,
    /// The rule that shows that reason.
    pub ablation: Option<String>,
    /// Why it holds also where policies are exchanged by chance; may be empty.
    pub by_chance: String,
    /// Values of axes that its ids have; all if empty.
    pub only: BTreeMap<String, Vec<String>>,
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        RuleForm::deserialize(input)?.try_into().map_err(de::Error::custom)
    }
}

read_only! {
    Rule: Kind::Table(RuleForm::table()),
}

impl FieldType for Sides {
    const WRITTEN: bool = false;

    fn kind() -> Kind {
        let list = Vec::<Side>::kind();
        Kind::Either(vec![Kind::Text(&NAME), Kind::Table(Side::table()), list])
    }

    fn from_input<'de, D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Sides::deserialize(input)
    }

    fn to_output<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.serialize_unit()
    }

    fn check(&self, path: &str, problems: &mut Vec<ScenarioError>) {
        self.0.check(path, problems);
    }
}

impl TryFrom<RuleForm> for Rule {
    type Error = String;

    fn try_from(input: RuleForm) -> Result<Rule, String> {
        let name = input.name.clone();
        let wrong = |message: &str| Err(format!("rule {name}: {message}"));
        let mut problems = Vec::new();
        input.check_fields("", &mut problems);
        if let Some(problem) = problems.first() {
            return wrong(&problem.to_string());
        }
        let within = input.within.map(|width| Test::Ratio(Threshold::around_one(width)));
        let of = input.of.map(|Sides(sides)| sides).unwrap_or_default();
        let to = input.to.map(Others::from).unwrap_or_default();
        let tests = [
            input.value.map(Test::Value),
            input.ratio.map(Test::Ratio),
            input.difference.map(Test::Difference),
            within,
        ];
        let mut tests = tests.into_iter().flatten();
        let (Some(test), None) = (tests.next(), tests.next()) else {
            return wrong("exactly one of value, ratio, difference and within is needed");
        };
        let compares = to != Others::None || !input.steps.is_empty();
        let dimension = match &test {
            Test::Value(_) if compares => return wrong("value compares nothing; leave `to` out"),
            Test::Ratio(_) | Test::Difference(_) if !compares => {
                return wrong("a comparison needs `to` or `steps`");
            }
            Test::Ratio(_) => Dimension::Plain,
            Test::Value(_) | Test::Difference(_) => input.metric.dimension(),
        };
        if test.threshold().dimension() != dimension {
            let (threshold, metric) = (test.threshold(), &input.metric);
            let expected = match dimension {
                Dimension::Plain => "without a unit",
                Dimension::Time => "a time",
                Dimension::Size => "a size",
                Dimension::Rate => "a rate",
                Dimension::Energy => "an energy",
            };
            return wrong(&format!(
                "{} is `{threshold}`; expected {expected} for {metric}",
                test.name()
            ));
        }
        if let Some(paper) = input.paper.filter(|paper| paper.dimension != dimension) {
            let threshold = test.threshold();
            return wrong(&format!("paper is `{paper}`; expected an amount as in `{threshold}`"));
        }
        if !input.steps.is_empty() && (to != Others::None || !of.is_empty()) {
            return wrong("steps stand instead of `of` and `to`");
        }
        if input.beside.is_some() && !matches!(test, Test::Ratio(_)) {
            return wrong("beside needs a ratio");
        }
        if input.beside.is_some() && input.metric.pooled {
            return wrong("beside needs a number for each run, not one of all runs");
        }
        if input.over.is_some() && (!matches!(test, Test::Value(_)) || input.metric.pooled) {
            return wrong("over is for the value of a metric that is not pooled");
        }
        let sides = of.iter().chain(&input.steps).chain(match &to {
            Others::Sides(sides) => sides.as_slice(),
            Others::None | Others::Policies => &[],
        });
        let mut metrics = sides.filter_map(|side| side.metric.as_ref());
        if let Some(other) = metrics.find(|other| other.pooled != input.metric.pooled) {
            return wrong(&format!("{other} and {}: either both or none is pooled", input.metric));
        }
        let over = input.over.unwrap_or(Stat::Percentile(50));
        if input.expect == Verdict::Fails && input.because.is_empty() {
            return wrong("what is expected to fail needs `because`");
        }
        Ok(Rule {
            name: input.name,
            claim: input.claim,
            kind: input.kind,
            reported: input.reported,
            paper: input.paper,
            metric: input.metric,
            of: if of.is_empty() { vec![Side::default()] } else { of },
            to,
            steps: input.steps,
            beside: input.beside,
            test,
            over,
            pages: input.pages,
            networks: input.networks,
            policies: input.policies,
            places: input.r#where,
            expect: input.expect,
            because: input.because,
            ablation: input.ablation,
            by_chance: input.by_chance,
            only: input.only,
        })
    }
}

impl Rule {
    /// All sides that it names.
    pub fn sides(&self) -> impl Iterator<Item = &Side> {
        let to: &[Side] = match &self.to {
            Others::Sides(sides) => sides,
            Others::None | Others::Policies => &[],
        };
        self.of.iter().chain(to).chain(&self.steps).chain(&self.beside)
    }

    /// All metrics that it looks at.
    pub fn metrics(&self) -> impl Iterator<Item = &Measure> {
        std::iter::once(&self.metric).chain(self.sides().filter_map(|side| side.metric.as_ref()))
    }
}

/// One side or a list of them.
#[derive(Clone, Debug, PartialEq)]
struct Sides(Vec<Side>);

impl<'de> Deserialize<'de> for Sides {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> serde::de::Visitor<'de> for Reader {
            type Value = Sides;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the label of a policy, a table, or a list of these")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Sides, E> {
                Ok(Sides(vec![Side { policy: Some(text.to_owned()), ..Side::default() }]))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Sides, A::Error> {
                let side = Side::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(Sides(vec![side]))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> Result<Sides, A::Error> {
                let mut sides = Vec::new();
                while let Some(Held(side)) = list.next_element()? {
                    sides.push(side);
                }
                Ok(Sides(sides))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl From<Sides> for Others {
    fn from(Sides(sides): Sides) -> Self {
        let others = Side { policy: Some("others".to_owned()), ..Side::default() };
        if sides == [others] { Others::Policies } else { Others::Sides(sides) }
    }
}

/// What a number must be.
static THRESHOLD: Text = Text {
    name: "threshold",
    expected: "a threshold such as < 0.75, >= 90%, 0.9..1.1, = 4.375s or 50% ± 5%",
    pattern: r"^ *([<>]=?|=|[-−+.0-9]).*[0-9]",
    accepts: |text| Threshold::parse(text).is_ok(),
    numbers: Numbers::None,
    names: Names::None,
    examples: &["= 4.375s", "< 0.75", ">= 90%", "0.9..1.1", "4.375s ± 0.1%", "-78ms..-11ms"],
    refused: &["above 1", "", "<"],
};

/// A number of a paper, as a rule has it.
static PAPER_NUMBER: Text = Text {
    name: "paper's number",
    expected: "a number with the unit that the rule's threshold has, such as 0.511, 1.03s or 90%",
    pattern: r"^ *[-−+]?[0-9][.0-9]* *[a-zA-Z%]*$",
    accepts: |text| Amount::parse(text).is_some(),
    numbers: Numbers::None,
    names: Names::None,
    examples: &["0.511", "1.03s", "-78ms"],
    refused: &["", "less", "< 1"],
};
