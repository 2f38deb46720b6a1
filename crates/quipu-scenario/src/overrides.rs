//! Single fields of a scenario changed by `key=value`.

use quipu_record::suggestion;
use toml::Value;

use super::document::Document;
use super::finding::{Finding, Findings, Place};
use super::profile::Profile;
use super::transport::Transport;
use super::{Scenario, ScenarioError};

/// The field on which others of the transport depend: among several changes it comes first.
pub const PROFILE: &str = "transport.profile";

impl Scenario {
    /// The same scenario with the field `key` set to `value`. The key is a path such as
    /// `transport.initial_window`, or its last part if only one field has it; `-` counts as `_`. In a
    /// path into a list, such as `networks.*.paths.wifi.down.queue`, elements have names or positions,
    /// and `*` stands for all.
    ///
    /// # Errors
    /// If there is no such field, or the value is none of its kind.
    pub fn with_field(&self, key: &str, value: &str) -> Result<Scenario, ScenarioError> {
        let path = resolve(key)?;
        let mut root = Value::Table(self.to_table()?);
        let new = match first_at(&root, &path.split('.').collect::<Vec<&str>>()) {
            Some(old) => value_like(old, &path, value)?,
            // What is left out is not written: most such fields hold text.
            None if is_in_list(&path) => Value::String(value.to_owned()),
            None => return Err(unknown_field(key)),
        };
        if !put_at(&mut root, &path, &new) {
            let expected = "a path to a field, where elements of lists have names or positions";
            return Err(ScenarioError::invalid("set", key, expected));
        }
        Scenario::from_table(&root).map_err(|error| {
            let message = error.message().replace('\n', ", ");
            // What serde says of types is for programmers.
            let is_of_serde = message.starts_with("invalid ") || message.starts_with("unknown ");
            if is_of_serde && let Some(finding) = of_form(&root, &path) {
                return ScenarioError::Found(Findings::one(finding));
            }
            let near = nearest(&message, &path);
            // Where it repeats the value, what was expected follows.
            let repeated = ["; expected ", "`: expected "];
            let expected = repeated.iter().find_map(|mark| message.split_once(mark));
            let expected = expected.map_or(&*message, |(_, rest)| rest);
            ScenarioError::invalid(path, value, format!("{expected}{near}"))
        })
    }
}

/// What the form of scenarios says of the field at `path` of `root`.
fn of_form(root: &Value, path: &str) -> Option<Finding> {
    let document = Document::new(toml::to_string(root).ok()?, "");
    let tables = document.parse().ok()?;
    let findings = Scenario::table().check(&document, &tables);
    let mut findings = findings.into_iter();
    // Elements of lists are numbered there.
    let is_meant = |finding: &Finding| path.contains('*') || finding.field.starts_with(path);
    findings.find(is_meant).map(|finding| Finding { place: Place::Unknown, ..finding })
}

/// The full path of the field that `key` names: `initial-window` is `transport.initial_window`.
///
/// # Errors
/// If no field has that name, or several have.
pub fn resolve(key: &str) -> Result<String, ScenarioError> {
    // Elements have names of their own.
    if is_in_list(key) {
        return Ok(key.to_owned());
    }
    let wanted = key.replace('-', "_");
    let paths = field_paths()?;
    if paths.contains(&wanted) {
        return Ok(wanted);
    }
    let mut found = paths.iter().filter(|path| path.rsplit('.').next() == Some(&wanted));
    match (found.next(), found.next()) {
        (Some(path), None) => Ok(path.clone()),
        _ => Err(unknown_field(key)),
    }
}

/// Whether `path` leads into one of the lists of tables that a scenario has.
fn is_in_list(path: &str) -> bool {
    const LISTS: [&str; 4] = ["networks", "servers", "flows", "cross"];
    path.split_once('.').is_some_and(|(first, _)| LISTS.contains(&first))
}

/// The first value that `parts` lead to below `at`.
fn first_at<'v>(at: &'v Value, parts: &[&str]) -> Option<&'v Value> {
    let Some((first, rest)) = parts.split_first() else { return Some(at) };
    match at {
        Value::Table(table) if *first == "*" => {
            table.values().find_map(|inner| first_at(inner, rest))
        }
        Value::Table(table) => first_at(table.get(*first)?, rest),
        Value::Array(list) => {
            let mut meant = list.iter().enumerate().filter(|it| is_meant(*it, first));
            meant.find_map(|(_, inner)| first_at(inner, rest))
        }
        _ => None,
    }
}

/// Whether `part` of a path means this element of a list.
fn is_meant((index, element): (usize, &Value), part: &str) -> bool {
    let name = element.get("name").and_then(Value::as_str);
    part == "*" || name == Some(part) || part == index.to_string()
}

/// Of the fields that `message` lists because the one at `path` is none of them, the nearest.
fn nearest(message: &str, path: &str) -> String {
    if !message.starts_with("unknown field") {
        return String::new();
    }
    // Names stand between backticks, the unknown one first.
    let names = message.split('`').skip(1).step_by(2).skip(1);
    suggestion(path.rsplit('.').next().unwrap_or_default(), names)
}

fn unknown_field(key: &str) -> ScenarioError {
    let paths = field_paths().unwrap_or_default();
    let key = key.replace('-', "_");
    ScenarioError::unknown("scenario field", &key, paths.iter().map(String::as_str))
}

/// All fields that hold a value or a list of values.
fn field_paths() -> Result<Vec<String>, ScenarioError> {
    let mut paths = Vec::new();
    for (key, value) in &Scenario::default().to_table()? {
        match value {
            Value::Table(inner) => paths.extend(inner.keys().map(|field| format!("{key}.{field}"))),
            // Links are not a value; `--link` and `--network` set them. Flows are none either.
            Value::Array(list) if list.iter().any(Value::is_table) => {}
            _ => paths.push(key.clone()),
        }
    }
    Ok(paths)
}

/// `text` as a value of the same kind as `old`.
fn value_like(old: &Value, field: &str, text: &str) -> Result<Value, ScenarioError> {
    let invalid = |expected: &str| ScenarioError::invalid(field, text, expected);
    Ok(match old {
        Value::Integer(_) => Value::Integer(text.parse().map_err(|_| invalid("a whole number"))?),
        Value::Float(_) => Value::Float(text.parse().map_err(|_| invalid("a number"))?),
        Value::Boolean(_) => Value::Boolean(text.parse().map_err(|_| invalid("true or false"))?),
        Value::Array(_) => Value::Array(split_list(text).into_iter().map(Value::String).collect()),
        _ => Value::String(text.to_owned()),
    })
}

/// Puts `value` at all places that `path` names below `root`; false if there are none. An element of a
/// list is named by its `name` or its position, and `*` stands for all.
///
/// With [`PROFILE`] go the values of the profile, but where the old one's were not kept.
pub fn put_at(root: &mut Value, path: &str, value: &Value) -> bool {
    if path == PROFILE
        && let Some(profile) = value.as_str().and_then(|name| name.parse::<Profile>().ok())
        && let Some(transport) = root.get_mut("transport").and_then(Value::as_table_mut)
    {
        Transport::change_profile(transport, profile);
    }
    put(root, &path.split('.').collect::<Vec<&str>>(), value)
}

/// Puts `value` at all places that `parts` name below `at`; false if there are none.
fn put(at: &mut Value, parts: &[&str], value: &Value) -> bool {
    let Some((first, rest)) = parts.split_first() else {
        *at = value.clone();
        return true;
    };
    let mut found = false;
    match at {
        Value::Table(table) if *first == "*" => {
            for (_, inner) in table.iter_mut().filter(|(_, inner)| inner.is_table()) {
                found |= put(inner, rest, value);
            }
        }
        Value::Table(table) if rest.is_empty() => {
            table.insert((*first).to_owned(), value.clone());
            found = true;
        }
        Value::Table(table) => {
            found = table.get_mut(*first).is_some_and(|inner| put(inner, rest, value));
        }
        Value::Array(list) => {
            for (index, inner) in list.iter_mut().enumerate() {
                found |= is_meant((index, inner), first) && put(inner, rest, value);
            }
        }
        _ => {}
    }
    found
}

/// The items of a comma-separated list of policies, where `ecf:beta=0.25,delta=1,rr` are two: a part
/// that is only `parameter=value` belongs to the item before it.
pub fn split_list(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let is_parameter = part.split_once('=').is_some_and(|(name, _)| !name.contains(':'));
        match items.last_mut() {
            Some(item) if is_parameter => {
                item.push(',');
                item.push_str(part);
            }
            _ => items.push(part.to_owned()),
        }
    }
    items
}
