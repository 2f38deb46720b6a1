//! Fields of a scenario that an axis, a variant or a quick run changes.

use serde::{Deserialize, Deserializer, de};
use toml::Value;

use crate::form::text::ASSIGNMENT;
use crate::form::{Kind, optional, read_only};
use crate::{Scenario, ScenarioError, put_at, resolve_field};

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
    pub(crate) fn one(key: &str, value: Value) -> Settings {
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

read_only! {
    Settings: Kind::Either(vec![
        Kind::Map(Box::new(Kind::Any)),
        Kind::List(Box::new(Kind::Text(&ASSIGNMENT)), 0, usize::MAX),
    ]),
}

optional!(Settings);

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
