//! From a file with an experiment to its ids: one for each combination of the values of its axes.

use toml::Value;

use crate::error::ScenarioError;
use crate::experiment::{AxisValue, Change, Experiment, Part, Rule, Settings};
use crate::overrides::{PROFILE, put_at, resolve};
use crate::scenario::Scenario;
use quipu_record::suggestion;

/// Ids that a file may have.
const MOST_IDS: usize = 1_000;

/// One id: an experiment with its scenario.
#[derive(Clone, Debug)]
pub struct Case {
    /// The id, unlike all others.
    pub id: String,
    /// The file that it is from.
    pub file: String,
    /// What is run.
    pub scenario: Scenario,
    /// What is claimed of it; only the rules that this id has.
    pub experiment: Experiment,
    /// The text of the file with the names of this id's values put in.
    pub text: String,
    /// Each axis and the name of its value.
    pub values: Vec<(String, String)>,
}

/// The ids of the scenario file `file` with content `text`; none if it has no experiment.
///
/// `{axis}` and `{axis.word}` anywhere in the file stand for the name and the words of the axis's value.
///
/// # Errors
/// If the file is no scenario, or its experiment not of the form wanted.
pub fn cases(text: &str, file: &str) -> Result<Vec<Case>, ScenarioError> {
    let Some(experiment) = head(text, file)? else { return Ok(Vec::new()) };
    let axes = axes(text, file, &experiment)?;
    let count = axes.iter().try_fold(1_usize, |all, (_, values)| all.checked_mul(values.len()));
    if !count.is_some_and(|count| (1..=MOST_IDS).contains(&count)) {
        let expected = "1 to 1000 combinations of values";
        return Err(ScenarioError::invalid(format!("{file}: vary"), count.unwrap_or(0), expected));
    }
    let mut chosen = vec![0; axes.len()];
    let mut all = Vec::new();
    loop {
        let values: Vec<(&str, &AxisValue)> = axes
            .iter()
            .zip(&chosen)
            .map(|((axis, values), &index)| (axis.as_str(), &values[index]))
            .collect();
        all.extend(case(text, file, &values, &axes)?);
        // The last axis moves first, as digits do.
        let next = (0..axes.len()).rev().find(|&axis| chosen[axis] + 1 < axes[axis].1.len());
        let Some(next) = next else { return Ok(all) };
        chosen[next] += 1;
        chosen[next + 1..].fill(0);
    }
}

/// An axis and its values.
type Axis = (String, Vec<AxisValue>);

/// What of an experiment can be read before axes have values.
struct Head {
    id: String,
    vary: std::collections::BTreeMap<String, Vec<AxisValue>>,
}

fn head(text: &str, file: &str) -> Result<Option<Head>, ScenarioError> {
    #[derive(serde::Deserialize)]
    struct File {
        experiment: Option<Table>,
    }
    #[derive(serde::Deserialize)]
    struct Table {
        id: String,
        #[serde(default)]
        vary: std::collections::BTreeMap<String, Vec<AxisValue>>,
    }
    let parsed: File =
        toml::from_str(text).map_err(|error| ScenarioError::toml(file, text, &error))?;
    Ok(parsed.experiment.map(|Table { id, vary }| Head { id, vary }))
}

/// The axes in the order of the id, each with its values.
fn axes(text: &str, file: &str, head: &Head) -> Result<Vec<Axis>, ScenarioError> {
    let mut axes = Vec::new();
    let mut rest = head.id.as_str();
    while let Some((_, tail)) = rest.split_once('{') {
        let field = format!("{file}: experiment.id");
        let Some((axis, tail)) = tail.split_once('}') else {
            return Err(ScenarioError::invalid(field, &head.id, "a `}` for each `{`"));
        };
        rest = tail;
        let values = match head.vary.get(axis) {
            Some(values) if values.is_empty() => {
                let field = format!("{file}: experiment.vary.{axis}");
                return Err(ScenarioError::invalid(field, "empty", "one value at least"));
            }
            Some(values) => values.clone(),
            None => own_values(text, file, axis, head)?,
        };
        axes.push((axis.to_owned(), values));
    }
    for axis in head.vary.keys() {
        if !axes.iter().any(|(known, _)| known == axis) {
            let field = format!("{file}: experiment.id");
            let expected = format!("`{{{axis}}}` in it, as vary has that axis");
            return Err(ScenarioError::invalid(field, &head.id, expected));
        }
    }
    Ok(axes)
}

/// The pages or networks of the scenario, for an axis that says nothing itself.
fn own_values(
    text: &str,
    file: &str,
    axis: &str,
    head: &Head,
) -> Result<Vec<AxisValue>, ScenarioError> {
    let names: Vec<String> = match axis {
        "page" => Scenario::from_toml(text, file)?.pages,
        "network" => {
            let scenario = Scenario::from_toml(text, file)?;
            scenario.networks.into_iter().map(|network| network.name).collect()
        }
        _ => {
            let known = head.vary.keys().map(String::as_str).chain(["page", "network"]);
            let near = suggestion(axis, known);
            let expected = format!("an axis of vary, page or network{near}");
            return Err(ScenarioError::invalid(format!("{file}: experiment.id"), axis, expected));
        }
    };
    Ok(names.into_iter().map(AxisValue::least).collect())
}

fn case(
    text: &str,
    file: &str,
    values: &[(&str, &AxisValue)],
    axes: &[Axis],
) -> Result<Option<Case>, ScenarioError> {
    let mut text = text.to_owned();
    for (axis, value) in values {
        text = text.replace(&format!("{{{axis}}}"), &value.name);
        for (word, replacement) in &value.words {
            text = text.replace(&format!("{{{axis}.{word}}}"), replacement);
        }
    }
    let Some(mut experiment) = Experiment::from_toml(&text, file)? else { return Ok(None) };
    let id = experiment.id.clone();
    let sign = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    if id.is_empty() || id.starts_with('.') || !id.chars().all(sign) {
        let expected = "letters, digits and -_.+";
        return Err(ScenarioError::invalid(format!("{file}: experiment.id"), id, expected));
    }
    let mut scenario = Scenario::from_toml(&text, file)?;
    for (axis, value) in values {
        scenario = with_value(scenario, axis, value).map_err(|error| named(&id, error))?;
    }
    for rule in &experiment.rules {
        check_only(rule, axes).map_err(|message| ScenarioError::Toml {
            file: file.to_owned(),
            line: Part::named_rule(&text, &rule.name),
            message: format!("rule {}: only: {message}", rule.name),
        })?;
    }
    let of = |axis: &str| values.iter().find(|(name, _)| *name == axis).map(|(_, value)| value);
    experiment.rules.retain(|rule| {
        let matches = |(axis, names): (&String, &Vec<String>)| {
            of(axis).is_some_and(|value| names.contains(&value.name))
        };
        rule.only.iter().all(matches)
    });
    if experiment.rules.is_empty() {
        let expected = "rules of which each id has one at least";
        return Err(ScenarioError::invalid(format!("{file}: {id}"), "without a rule", expected));
    }
    let values = values.iter().map(|(axis, value)| ((*axis).to_owned(), value.name.clone()));
    let values = values.collect();
    Ok(Some(Case { id, file: file.to_owned(), scenario, experiment, text, values }))
}

/// Checks that the axes and values that `rule` is for are there.
fn check_only(rule: &Rule, axes: &[Axis]) -> Result<(), String> {
    for (axis, names) in &rule.only {
        let found = axes.iter().find(|(known, _)| known == axis);
        let Some((_, values)) = found else {
            let near = suggestion(axis, axes.iter().map(|(axis, _)| axis.as_str()));
            return Err(format!("the id has no `{{{axis}}}`{near}"));
        };
        let known = values.iter().map(|value| value.name.as_str());
        if let Some(name) = names.iter().find(|name| !known.clone().any(|known| known == *name)) {
            let near = suggestion(name, known);
            return Err(format!("{axis} has no value `{name}`{near}"));
        }
    }
    Ok(())
}

/// `scenario` with what `value` of `axis` changes.
fn with_value(
    mut scenario: Scenario,
    axis: &str,
    value: &AxisValue,
) -> Result<Scenario, ScenarioError> {
    let own = Value::String(value.name.clone());
    match axis {
        "page" => {
            let page = value.value.as_ref().unwrap_or(&own);
            let pages = texts(page).ok_or_else(|| no_texts(axis, page))?;
            // Pages that the file sets itself, with `{page}`, are as they are.
            if value.value.is_some() || scenario.pages.contains(&value.name) {
                scenario.pages = pages;
            }
        }
        "network" => {
            let network = value.value.as_ref().unwrap_or(&own);
            let names = texts(network).ok_or_else(|| no_texts(axis, network))?;
            let has = |name: &String| scenario.networks.iter().any(|it| it.name == *name);
            if let Some(missing) = names.iter().find(|name| !has(name)) {
                if value.value.is_some() {
                    let known = scenario.networks.iter().map(|network| network.name.as_str());
                    return Err(ScenarioError::unknown("network", missing, known));
                }
            } else {
                scenario.networks.retain(|network| names.contains(&network.name));
            }
        }
        _ => {
            if let Some(value) = &value.value {
                scenario = Settings::one(axis, value.clone()).apply(&scenario)?;
            }
        }
    }
    value.set.apply(&scenario)
}

fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(list) => {
            list.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<_>>()
        }
        _ => None,
    }
}

fn no_texts(axis: &str, value: &Value) -> ScenarioError {
    ScenarioError::invalid(format!("vary.{axis}"), value.to_string(), "a name or a list of names")
}

/// An error with the id that it is about.
fn named(id: &str, error: ScenarioError) -> ScenarioError {
    match error {
        ScenarioError::Invalid { field, value, expected } => {
            ScenarioError::Invalid { field: format!("{id}: {field}"), value, expected }
        }
        error => error,
    }
}

impl Settings {
    /// `scenario` with all changes made.
    ///
    /// # Errors
    /// If there is no such field, or a value is none of its kind.
    pub fn apply(&self, scenario: &Scenario) -> Result<Scenario, ScenarioError> {
        let mut scenario = scenario.clone();
        let mut changes: Vec<&Change> = self.changes().iter().collect();
        // Others depend on it.
        let is_profile = |change: &&Change| {
            let (Change::Text { key, .. } | Change::Value { key, .. }) = change;
            resolve(key).is_ok_and(|path| path == PROFILE)
        };
        changes.sort_by_key(|change| !is_profile(change));
        for change in changes {
            scenario = match change {
                Change::Text { key, value } => scenario.with_field(key, value)?,
                Change::Value { key, value } => set(&scenario, key, value)?,
            };
        }
        Ok(scenario)
    }
}

fn set(scenario: &Scenario, key: &str, value: &Value) -> Result<Scenario, ScenarioError> {
    let table = scenario.to_table()?;
    let first = key.split('.').next().unwrap_or_default();
    // Lists that are empty are not written out.
    let known = table.contains_key(first) || ["flows", "cross"].contains(&first);
    let path = if known { key.to_owned() } else { resolve(key)? };
    let mut root = Value::Table(table);
    if !put_at(&mut root, &path, value) {
        let expected = "a path to a field, where elements of lists have names or positions";
        return Err(ScenarioError::invalid("set", key, expected));
    }
    Scenario::from_table(&root).map_err(|error| {
        ScenarioError::invalid(key, value.to_string(), error.message().replace('\n', ", "))
    })
}
