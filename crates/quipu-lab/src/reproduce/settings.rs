//! Fields of a scenario that an axis, a variant or a quick run changes.

use serde::{Deserialize, Deserializer, de};
use toml::Value;

use crate::scenario::{Scenario, ScenarioError, resolve_field};

/// Changes of fields, in order.
///
/// Either a list of `KEY=VALUE`, as the command line has them, or a table from keys to values. A key of
/// a table is a path with dots: `transport.initial_window`, or its last part alone if only one field has
/// it. An element of a list is named by its `name` or its position, and `*` stands for all:
/// `"networks.*.paths.slow.down.queue" = "5p"`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    changes: Vec<Change>,
}

#[derive(Clone, Debug, PartialEq)]
enum Change {
    Text { key: String, value: String },
    Value { key: String, value: Value },
}

impl Settings {
    /// The change of the field `key` to `value`.
    pub(super) fn one(key: &str, value: Value) -> Settings {
        Settings { changes: vec![Change::Value { key: key.to_owned(), value }] }
    }

    /// `scenario` with all changes made.
    ///
    /// # Errors
    /// If there is no such field, or a value is none of its kind.
    pub fn apply(&self, scenario: &Scenario) -> Result<Scenario, ScenarioError> {
        let mut scenario = scenario.clone();
        for change in &self.changes {
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
    let path = if known { key.to_owned() } else { resolve_field(key)? };
    let mut root = Value::Table(table);
    if !put_at(&mut root, &path, value) {
        let expected = "a path to a field, where elements of lists have names or positions";
        return Err(ScenarioError::invalid("set", key, expected));
    }
    Scenario::from_table(&root).map_err(|error| {
        ScenarioError::invalid(key, value.to_string(), error.message().replace('\n', ", "))
    })
}

/// Puts `value` at all places that `path` names below `root`; false if there are none. An element of a
/// list is named by its `name` or its position, and `*` stands for all.
pub(crate) fn put_at(root: &mut Value, path: &str, value: &Value) -> bool {
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

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> de::Visitor<'de> for Reader {
            type Value = Settings;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a table of fields, or a list of KEY=VALUE")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Settings, A::Error> {
                let mut changes = Vec::new();
                while let Some(text) = list.next_element::<String>()? {
                    let Some((key, value)) = text.split_once('=') else {
                        return Err(de::Error::custom(format!("`{text}`: expected KEY=VALUE")));
                    };
                    let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
                    changes.push(Change::Text { key, value });
                }
                Ok(Settings { changes })
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Settings, A::Error> {
                let mut changes = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    flatten(key, value, &mut changes);
                }
                Ok(Settings { changes })
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

/// `transport = { start = … }` and `transport.start = …` are the same.
fn flatten(key: String, value: Value, changes: &mut Vec<Change>) {
    match value {
        Value::Table(table) => {
            for (inner, value) in table {
                flatten(format!("{key}.{inner}"), value, changes);
            }
        }
        value => changes.push(Change::Value { key, value }),
    }
}
