//! Single fields of a scenario changed by `key=value`.

use toml::Value;

use super::{Scenario, ScenarioError};

impl Scenario {
    /// The same scenario with the field `key` set to `value`. The key is a path such as
    /// `transport.initial_window`, or its last part if only one field has it; `-` counts as `_`.
    ///
    /// # Errors
    /// If there is no such field, or the value is none of its kind.
    pub fn with_field(&self, key: &str, value: &str) -> Result<Scenario, ScenarioError> {
        let path = resolve(key)?;
        let mut table = self.to_table()?;
        let (parents, last) = match path.rsplit_once('.') {
            Some((parents, last)) => (parents.split('.').collect(), last),
            None => (Vec::new(), path.as_str()),
        };
        let mut at = &mut table;
        for parent in parents {
            at = match at.get_mut(parent) {
                Some(Value::Table(inner)) => inner,
                _ => return Err(unknown_field(key)),
            };
        }
        let slot = at.get_mut(last).ok_or_else(|| unknown_field(key))?;
        *slot = value_like(slot, &path, value)?;
        Scenario::from_table(&Value::Table(table)).map_err(|error| {
            ScenarioError::invalid(path, value, error.message().replace('\n', ", "))
        })
    }
}

/// The full path of the field that `key` names: `initial-window` is `transport.initial_window`.
///
/// # Errors
/// If no field has that name, or several have.
pub fn resolve(key: &str) -> Result<String, ScenarioError> {
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
pub fn put_at(root: &mut Value, path: &str, value: &Value) -> bool {
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
                let name = inner.get("name").and_then(Value::as_str);
                let meant = *first == "*" || name == Some(first) || *first == index.to_string();
                found |= meant && put(inner, rest, value);
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
