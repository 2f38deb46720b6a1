//! Fields of a scenario that an axis, a variant or a quick run changes.

use serde::{Deserialize, Deserializer, de};
use toml::Value;

use crate::form::{Kind, Names, Numbers, Text, optional, read_only};

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

/// A change of one field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// As options have it.
    Text { key: String, value: String },
    /// As files have it.
    Value { key: String, value: Value },
}

impl Settings {
    /// The change of the field `key` to `value`.
    pub(crate) fn one(key: &str, value: Value) -> Settings {
        Settings { changes: vec![Change::Value { key: key.to_owned(), value }] }
    }

    /// In order.
    pub(crate) fn changes(&self) -> &[Change] {
        &self.changes
    }
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

/// A field of a scenario with its value.
static ASSIGNMENT: Text = Text {
    name: "assignment",
    expected: "KEY=VALUE",
    pattern: "=",
    accepts: |text| text.contains('='),
    numbers: Numbers::None,
    names: Names::None,
    examples: &["transport.initial_window=32"],
    refused: &["transport.initial_window"],
};
