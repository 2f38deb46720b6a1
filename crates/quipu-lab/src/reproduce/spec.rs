//! The `[experiment]` table of a scenario file: what is claimed, and when it counts as shown.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};

use super::metric::{Metric, Stat};
use super::settings::Settings;
use super::text_or_table;
use super::threshold::{Dimension, Threshold};
use crate::scenario::{ScenarioError, suggestion};

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

/// An experiment: one id, or several of the same form.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its id; `{axis}` stands for the name of the value that an axis has.
    pub id: String,
    /// Where it comes from.
    pub paper: Paper,
    /// Figure or table there.
    #[serde(default)]
    pub figure: String,
    /// What it shows.
    pub title: String,
    /// What the paper says.
    #[serde(default)]
    pub reported: String,
    /// What is reconstruction.
    #[serde(default)]
    pub note: String,
    /// Values of each axis; each combination is an id.
    #[serde(default)]
    pub vary: BTreeMap<String, Vec<AxisValue>>,
    /// What a quick run changes.
    #[serde(default)]
    pub quick: Quick,
    /// Changed scenarios, whose runs rules compare with the main ones.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// When it counts as shown.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// The paper's numbers.
    #[serde(default)]
    pub data: Vec<Data>,
}

/// A value of an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AxisValue {
    /// What stands for `{axis}`.
    pub name: String,
    /// What the field called as the axis becomes; of `page` the page, of `network` the networks kept.
    pub value: Option<toml::Value>,
    /// Fields that change.
    pub set: Settings,
    /// What stands for `{axis.word}`.
    pub words: BTreeMap<String, String>,
}

/// What a quick run changes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quick {
    /// Runs at most. 3.
    pub runs: u32,
    /// Fields that change.
    pub set: Settings,
}

impl Default for Quick {
    fn default() -> Self {
        Quick { runs: 3, set: Settings::default() }
    }
}

/// A changed scenario.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// What rules and result folders call it.
    pub name: String,
    /// Fields that change.
    #[serde(default)]
    pub set: Settings,
    /// Only these pages of the scenario; all if empty.
    #[serde(default)]
    pub pages: Vec<String>,
    /// Only these networks of the scenario; all if empty.
    #[serde(default)]
    pub networks: Vec<String>,
}

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

/// Numbers of a paper, which stand beside ours.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// What they are of.
    pub metric: Metric,
    /// Where they are from, if not the experiment's paper and figure.
    #[serde(default)]
    pub source: String,
    /// The page of all values that name none; the only one if empty.
    #[serde(default)]
    pub page: String,
    /// The network of all values that name none; the only one if empty.
    #[serde(default)]
    pub network: String,
    /// Values in the file itself.
    #[serde(default)]
    pub values: Vec<DataValue>,
    /// A table beside the file, instead: CSV with a header.
    pub file: Option<String>,
    /// Rows of the table: columns that must have these texts.
    #[serde(default)]
    pub filter: BTreeMap<String, String>,
    /// Column of the policy, and what its texts are called here; others are left out.
    #[serde(default)]
    pub policy_column: String,
    /// Texts of that column to labels of policies.
    #[serde(default)]
    pub policies: BTreeMap<String, String>,
    /// Columns of statistics: `mean = "mean_s"`.
    #[serde(default)]
    pub columns: BTreeMap<String, String>,
    /// Unit of the columns, such as `s`.
    #[serde(default)]
    pub unit: String,
}

/// One row of a paper's numbers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct DataValue {
    /// Label of the policy here.
    pub policy: String,
    /// The page, if not that of all.
    #[serde(default)]
    pub page: String,
    /// The network, if not that of all.
    #[serde(default)]
    pub network: String,
    /// Statistics, such as `mean = "0.39s"`.
    #[serde(flatten)]
    pub stats: BTreeMap<String, String>,
}

impl Experiment {
    /// The experiment in `text`, the content of the scenario file `file`; `None` if it has none.
    ///
    /// # Errors
    /// If the table is not of the form wanted; the line is named.
    pub fn from_toml(text: &str, file: &str) -> Result<Option<Experiment>, ScenarioError> {
        #[derive(Deserialize)]
        struct File {
            experiment: Option<Experiment>,
        }
        let parsed: File =
            toml::from_str(text).map_err(|error| ScenarioError::toml(file, text, &error))?;
        if let Some(experiment) = &parsed.experiment {
            experiment.check().map_err(|(line, message)| ScenarioError::Toml {
                file: file.to_owned(),
                line: line.line_in(text),
                message,
            })?;
        }
        Ok(parsed.experiment)
    }

    /// Checks what no part of it can check alone.
    fn check(&self) -> Result<(), (Part, String)> {
        if self.rules.is_empty() {
            return Err((Part::Whole, "experiment.rules is empty; expected one at least".into()));
        }
        unlike("variant", self.variants.iter().map(|variant| variant.name.as_str()))
            .map_err(|message| (Part::Whole, message))?;
        unlike("rule", self.rules.iter().map(|rule| rule.name.as_str()))
            .map_err(|message| (Part::Whole, message))?;
        for (index, variant) in self.variants.iter().enumerate() {
            let name = &variant.name;
            let sign = |c: char| c.is_alphanumeric() || " -_.+".contains(c);
            if name == "main" || name.is_empty() || name.starts_with('.') || !name.chars().all(sign)
            {
                let message = format!(
                    "variant `{name}`: expected letters, digits, spaces and -_.+, and not `main`"
                );
                return Err((Part::Variant(index), message));
            }
        }
        for (index, rule) in self.rules.iter().enumerate() {
            let failed = |message: String| (Part::Rule(index), message);
            if let Some(ablation) = &rule.ablation
                && !self.rules.iter().any(|other| other.name == *ablation)
            {
                let names = self.rules.iter().map(|rule| rule.name.as_str());
                let near = suggestion(ablation, names);
                let message = format!("rule {}: there is no rule `{ablation}`{near}", rule.name);
                return Err(failed(message));
            }
            for variant in rule.sides().filter_map(|side| side.variant.as_ref()) {
                let mut names = self.variants.iter().map(|variant| variant.name.as_str());
                if variant != "main" && !names.clone().any(|name| name == variant) {
                    let near = suggestion(variant, names.by_ref());
                    let name = &rule.name;
                    let message = format!("rule {name}: there is no variant `{variant}`{near}");
                    return Err(failed(message));
                }
            }
        }
        Ok(())
    }
}

impl Rule {
    /// All sides that it names.
    pub(super) fn sides(&self) -> impl Iterator<Item = &Side> {
        let to: &[Side] = match &self.to {
            Others::Sides(sides) => sides,
            Others::None | Others::Policies => &[],
        };
        self.of.iter().chain(to).chain(&self.steps).chain(&self.beside)
    }

    /// All metrics that it looks at.
    pub(super) fn metrics(&self) -> impl Iterator<Item = &Metric> {
        std::iter::once(&self.metric).chain(self.sides().filter_map(|side| side.metric.as_ref()))
    }
}

/// A part of the table that something is wrong with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Whole,
    Variant(usize),
    Rule(usize),
}

impl Part {
    /// Where it begins in `text`, from 1, if it has a header of its own there.
    pub(super) fn line_in(self, text: &str) -> Option<usize> {
        let (header, index) = match self {
            Part::Whole => ("[experiment]", 0),
            Part::Variant(index) => ("[[experiment.variants]]", index),
            Part::Rule(index) => ("[[experiment.rules]]", index),
        };
        let headers = text.lines().enumerate().filter(|(_, line)| line.trim().starts_with(header));
        headers.map(|(line, _)| line + 1).nth(index)
    }

    /// Where the rule called `name` begins in `text`, if it has a header of its own there.
    pub(super) fn named_rule(text: &str, name: &str) -> Option<usize> {
        let named = format!("\"{name}\"");
        let mut header = None;
        for (line, content) in (1..).zip(text.lines()) {
            let content = content.trim();
            if content.starts_with('[') {
                header = content.starts_with("[[experiment.rules]]").then_some(line);
            }
            let value = content.strip_prefix("name").map(|rest| rest.trim_start());
            let value = value.and_then(|rest| rest.strip_prefix('=')).map(str::trim_start);
            if header.is_some() && value.is_some_and(|value| value.starts_with(&named)) {
                return header;
            }
        }
        None
    }
}

fn unlike<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(format!("{what} `{name}` is there twice; names must be unlike"));
        }
    }
    Ok(())
}

impl<'de> Deserialize<'de> for AxisValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Table {
            name: String,
            value: Option<toml::Value>,
            #[serde(default)]
            set: Settings,
            #[serde(flatten)]
            words: BTreeMap<String, String>,
        }
        let named = |name: &str| Table {
            name: name.to_owned(),
            value: None,
            set: Settings::default(),
            words: BTreeMap::new(),
        };
        let expected = "a name, or a table with name, and value, set or words of its own";
        let Table { name, value, set, words } = text_or_table(deserializer, expected, named)?;
        Ok(AxisValue { name, value, set, words })
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
