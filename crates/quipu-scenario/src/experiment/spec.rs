//! The `[experiment]` table of a scenario file: what is claimed, and when it counts as shown.

use std::collections::{BTreeMap, BTreeSet};

use quipu_record::verdict::Paper;
use serde::{Deserialize, Deserializer};

use super::metric::Metric;
use super::reader::text_or_table;
use super::settings::Settings;
use crate::ScenarioError;
use quipu_record::suggestion;

mod rule;

pub use rule::{Others, Rule, Side, Test};

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

/// A part of the table that something is wrong with.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// All of it.
    Whole,
    /// The variant at this position.
    Variant(usize),
    /// The rule at this position.
    Rule(usize),
}

impl Part {
    /// Where it begins in `text`, from 1, if it has a header of its own there.
    pub fn line_in(self, text: &str) -> Option<usize> {
        let (header, index) = match self {
            Part::Whole => ("[experiment]", 0),
            Part::Variant(index) => ("[[experiment.variants]]", index),
            Part::Rule(index) => ("[[experiment.rules]]", index),
        };
        let headers = text.lines().enumerate().filter(|(_, line)| line.trim().starts_with(header));
        headers.map(|(line, _)| line + 1).nth(index)
    }

    /// Where the rule called `name` begins in `text`, if it has a header of its own there.
    pub fn named_rule(text: &str, name: &str) -> Option<usize> {
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
