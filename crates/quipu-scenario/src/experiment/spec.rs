//! The `[experiment]` table of a scenario file: what is claimed, and when it counts as shown.

use std::collections::{BTreeMap, BTreeSet};

use quipu_record::suggestion;
use quipu_record::verdict::Paper;
use serde::Deserialize;

use super::measure::Measure;
use super::settings::Settings;
use crate::error::ScenarioError;
use crate::form::text::NAME;
use crate::form::{Kind, Names, Numbers, Shorthand, Text, table};

mod open;
mod result_table;
mod rule;

pub use open::{OpenSetting, OpenValue, Untestable};
pub use result_table::{Line, ResultTable};
pub use rule::{Others, Rule, Side, Test};

table! {
    /// Claims about the results, for `quipu reproduce`: one id, or several of the same form.
    /// [reproduce.md](reproduce.md) explains it. It does not affect runs and is not copied into their results.
    pub struct Experiment as "Experiment" {
        /// Its id; `{axis}` stands for the name of the value that an axis has.
        pub id: String [text NAME],
        /// Where it comes from.
        pub paper: Paper,
        /// Figure or table there.
        pub figure: String => "none",
        /// What the figure or table shows.
        pub title: String,
        /// The result that the paper reports.
        pub reported: String => "none",
        /// Which parts of the set-up are reconstructed.
        pub note: String => "none",
        /// Values of each axis; each combination is an id. A value is a name, or a table.
        pub vary: BTreeMap<String, Vec<AxisValue>> => "none",
        /// What a quick run changes.
        pub quick: Quick = Quick::default() => "3 runs",
        /// Changed scenarios, whose runs rules compare with the main ones.
        pub variants: Vec<Variant> => "none",
        /// What the paper leaves open: each claim is judged in every combination of values.
        pub settings: Vec<OpenSetting> => "none",
        /// Runs of each combination of settings, at most those of the scenario.
        pub settings_runs: u32 [1..] = 5,
        /// Claims of the paper that cannot be tested here.
        pub untestable: Vec<Untestable> => "none",
        /// The conditions under which the claims count as reproduced; at least one.
        pub rules: Vec<Rule> [1..],
        /// The paper's numbers.
        pub data: Vec<Data> => "none",
        /// Tables of results, for texts to show.
        pub tables: Vec<ResultTable> => "none",
    }
}

table! {
    /// A value of an axis: a name, or a table with words of its own, which stand for `{axis.word}`.
    pub struct AxisValue as "Axis value" or String {
        /// What stands for `{axis}`.
        pub name: String [text NAME],
        /// The value of the field that is named like the axis; for `page` the page, for `network` the networks that are kept.
        pub value: Option<toml::Value> => "its name",
        /// Fields that change.
        pub set: Settings => "none",
        ..
        /// What stands for `{axis.word}`.
        pub words: String
    }
}

table! {
    /// What a quick run changes.
    pub struct Quick as "Quick" {
        /// Runs at most.
        pub runs: u32 = 3,
        /// Fields that change.
        pub set: Settings => "none",
    }
}

table! {
    /// A changed scenario.
    pub struct Variant as "Variant" {
        /// Its name in rules and result folders.
        pub name: String [text VARIANT],
        /// Fields that change.
        pub set: Settings => "none",
        /// Only these pages of the scenario.
        pub pages: Vec<String> [text NAME] => "all",
        /// Only these networks of the scenario.
        pub networks: Vec<String> [text NAME] => "all",
    }
}

table! {
    /// Numbers of a paper, which are shown next to ours: in the file itself, or in a table next to it.
    pub struct Data as "Data" {
        /// The metric of the numbers.
        pub metric: Measure,
        /// Their source, if it is not the experiment's paper and figure.
        pub source: String => "the experiment's",
        /// The page of all values that name none.
        pub page: String => "the only one",
        /// The network of all values that name none.
        pub network: String => "the only one",
        /// Values in the file itself.
        pub values: Vec<DataValue> => "none",
        /// A table beside the file, instead: CSV with a header.
        pub file: Option<String> [text NAME] => "none",
        /// Rows of the table: columns that must have these texts.
        pub filter: BTreeMap<String, String> => "all rows",
        /// Column of the policy.
        pub policy_column: String => "none",
        /// Texts of that column to labels of policies; others are left out.
        pub policies: BTreeMap<String, String> => "none",
        /// Columns of statistics: `mean = "mean_s"`.
        pub columns: BTreeMap<String, String> => "none",
        /// Unit of the columns, such as `s`.
        pub unit: String => "none",
    }
}

table! {
    /// One row of a paper's numbers, with statistics such as `mean = "0.39s"`.
    pub struct DataValue as "Data value" {
        /// Label of the policy here.
        pub policy: String,
        /// The page, if not that of all.
        pub page: String => "that of all",
        /// The network, if not that of all.
        pub network: String => "that of all",
        ..
        /// Statistics, such as `mean = "0.39s"`.
        pub stats: String
    }
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

    /// The combinations of the values of all settings: for each setting the position of its value. The first is
    /// the scenario itself, and the last setting moves first. None if there are no settings.
    pub fn combinations(&self) -> Vec<Vec<usize>> {
        open::combinations(&self.settings)
    }

    /// Checks what no part of it can check alone.
    fn check(&self) -> Result<(), (Part, String)> {
        let mut problems = Vec::new();
        self.check_fields("experiment", &mut problems);
        if let Some(problem) = problems.first() {
            return Err((Part::Whole, problem.to_string()));
        }
        unlike("variant", self.variants.iter().map(|variant| variant.name.as_str()))
            .map_err(|message| (Part::Whole, message))?;
        unlike("rule", self.rules.iter().map(|rule| rule.name.as_str()))
            .map_err(|message| (Part::Whole, message))?;
        open::check(&self.settings).map_err(|message| (Part::Whole, message))?;
        result_table::check(&self.tables).map_err(|message| (Part::Whole, message))?;
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

impl Shorthand<String> for AxisValue {
    const EXPECTED: &'static str =
        "a name, or a table with name, and value, set or words of its own";

    fn narrow(_: Kind) -> Kind {
        Kind::Text(&NAME)
    }

    fn from_short(name: String) -> Result<Self, String> {
        Ok(AxisValue::least(name))
    }
}

/// What a variant is called.
static VARIANT: Text = Text {
    name: "name of a variant",
    expected: "letters, digits, spaces and -_.+, not beginning with a dot, and not `main`",
    pattern: r"^(?!main$)(?!\.)[\p{L}\p{N} _.+-]+$",
    accepts: |text| {
        let sign = |c: char| c.is_alphanumeric() || " -_.+".contains(c);
        text != "main" && !text.is_empty() && !text.starts_with('.') && text.chars().all(sign)
    },
    numbers: Numbers::None,
    names: Names::None,
    examples: &["unpaced", "window 32"],
    refused: &["main", "", ".hidden", "a/b"],
};
