//! A rule of an experiment: what is compared, and what must come out.

use std::collections::BTreeMap;

use quipu_record::verdict::{Places, RuleKind, Verdict};
use serde::{Deserialize, Deserializer};

use super::super::metric::{Metric, Stat};
use super::super::reader::text_or_table;
use quipu_record::threshold::{Dimension, Threshold};

/// Which runs: what is not said is as in the place at hand.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Side {
    /// Label of the policy, as tables show it.
    pub policy: Option<String>,
    /// Name of the network.
    pub network: Option<String>,
    /// Name of the page.
    pub page: Option<String>,
    /// Name of the variant; `main` is the scenario itself.
    pub variant: Option<String>,
    /// Another metric than that of the rule.
    pub metric: Option<Metric>,
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

/// When a claim counts as shown.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RuleInput")]
pub struct Rule {
    /// Its name, unlike those of the other rules of the experiment.
    pub name: String,
    /// The direction, in words.
    pub claim: String,
    /// What it is for.
    pub kind: RuleKind,
    /// The paper's numbers.
    pub reported: String,
    /// What is looked at.
    pub metric: Metric,
    /// What is compared: one comparison for each.
    pub of: Vec<Side>,
    /// With what.
    pub to: Others,
    /// Instead of `of` and `to`: each of these with the one before it.
    pub steps: Vec<Side>,
    /// The ratio is compared with the same ratio there.
    pub beside: Option<Side>,
    /// What the result must be.
    pub test: Test,
    /// One number out of all runs, for a plain value. The median.
    pub over: Stat,
    /// Pages; all if empty.
    pub pages: Vec<String>,
    /// Networks; all if empty.
    pub networks: Vec<String>,
    /// Policies; all if empty.
    pub policies: Vec<String>,
    /// In how many places it must hold.
    pub places: Places,
    /// What is known to come out.
    pub expect: Verdict,
    /// Why it does not hold, if it does not.
    pub because: String,
    /// The rule that shows that reason.
    pub ablation: Option<String>,
    /// Ids that have it: values of axes; all if empty.
    pub only: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleInput {
    name: String,
    claim: String,
    #[serde(default = "claim")]
    kind: RuleKind,
    #[serde(default)]
    reported: String,
    metric: Metric,
    #[serde(default, deserialize_with = "one_or_more")]
    of: Vec<Side>,
    #[serde(default)]
    to: Others,
    #[serde(default)]
    steps: Vec<Side>,
    beside: Option<Side>,
    value: Option<Threshold>,
    ratio: Option<Threshold>,
    difference: Option<Threshold>,
    within: Option<f64>,
    over: Option<Stat>,
    #[serde(default)]
    pages: Vec<String>,
    #[serde(default)]
    networks: Vec<String>,
    #[serde(default)]
    policies: Vec<String>,
    #[serde(default = "all", rename = "where")]
    places: Places,
    #[serde(default = "holds")]
    expect: Verdict,
    #[serde(default)]
    because: String,
    ablation: Option<String>,
    #[serde(default)]
    only: BTreeMap<String, Vec<String>>,
}

fn claim() -> RuleKind {
    RuleKind::Claim
}

fn all() -> Places {
    Places::All
}

fn holds() -> Verdict {
    Verdict::Holds
}

impl TryFrom<RuleInput> for Rule {
    type Error = String;

    fn try_from(input: RuleInput) -> Result<Rule, String> {
        let name = input.name.clone();
        let wrong = |message: &str| Err(format!("rule {name}: {message}"));
        let within = match input.within {
            Some(width) if !(0.0..1.0).contains(&width) => {
                return wrong("within must be a part from 0 to 1, such as 0.02");
            }
            within => within.map(|width| Test::Ratio(Threshold::around_one(width))),
        };
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
        let compares = input.to != Others::None || !input.steps.is_empty();
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
            };
            return wrong(&format!(
                "{} is `{threshold}`; expected {expected} for {metric}",
                test.name()
            ));
        }
        if !input.steps.is_empty() && (input.to != Others::None || !input.of.is_empty()) {
            return wrong("steps stand instead of `of` and `to`");
        }
        if input.steps.len() == 1 {
            return wrong("steps must be two or more");
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
        let over = input.over.unwrap_or(Stat::Percentile(50));
        if !matches!(over, Stat::Mean | Stat::Min | Stat::Max | Stat::Percentile(_)) {
            return wrong("over must be mean, median, min, max or p0 to p100");
        }
        if input.expect == Verdict::Error {
            return wrong("expect must be holds, fails or unclear");
        }
        if input.expect == Verdict::Fails && input.because.is_empty() {
            return wrong("what is expected to fail needs `because`");
        }
        Ok(Rule {
            name: input.name,
            claim: input.claim,
            kind: input.kind,
            reported: input.reported,
            metric: input.metric,
            of: if input.of.is_empty() { vec![Side::default()] } else { input.of },
            to: input.to,
            steps: input.steps,
            beside: input.beside,
            test,
            over,
            pages: input.pages,
            networks: input.networks,
            policies: input.policies,
            places: input.places,
            expect: input.expect,
            because: input.because,
            ablation: input.ablation,
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
    pub fn metrics(&self) -> impl Iterator<Item = &Metric> {
        std::iter::once(&self.metric).chain(self.sides().filter_map(|side| side.metric.as_ref()))
    }
}

/// A side as a label of a policy, or as a table.
struct AnySide(Side);

impl<'de> Deserialize<'de> for AnySide {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let named = |name: &str| Side { policy: Some(name.to_owned()), ..Side::default() };
        let expected = "the label of a policy, or a table with policy, network, page or variant";
        text_or_table(deserializer, expected, named).map(AnySide)
    }
}

/// One side or a list of them.
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
                while let Some(AnySide(side)) = list.next_element()? {
                    sides.push(side);
                }
                Ok(Sides(sides))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Side>, D::Error> {
    Sides::deserialize(deserializer).map(|Sides(sides)| sides)
}

impl<'de> Deserialize<'de> for Others {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Sides(sides) = Sides::deserialize(deserializer)?;
        let others = Side { policy: Some("others".to_owned()), ..Side::default() };
        Ok(if sides == [others] { Others::Policies } else { Others::Sides(sides) })
    }
}
