//! The form of scenario files as a JSON Schema, for editors and for whoever writes such files by
//! program.
//!
//! Draft 7, <https://json-schema.org/draft-07/schema>, which editors of TOML know. It says all that
//! can be said of one value by itself: fields, types, words, units, bounds of numbers. What depends
//! on other values (`quipu scenario check` tells it) it does not say.
//!
//! The range of an amount stands in its description alone: a pattern of it would have the digits of both
//! ends once for each unit.

use std::collections::BTreeMap;
use std::ops::Bound;

use serde_json::{Map, Value, json};

use super::form::{Absent, Kind, Names, Numbers, Table, Text};
use super::policy_layer::PolicyLayer;
use super::{Scenario, sweep};

/// The schema of scenario files; `policies` names the policies of a layer.
pub fn schema(policies: &dyn Fn(PolicyLayer) -> Vec<String>) -> Value {
    let mut definitions = Definitions { parts: BTreeMap::new(), policies };
    let mut root = definitions.table(Scenario::table());
    let head = [
        ("$schema", json!("http://json-schema.org/draft-07/schema#")),
        ("definitions", Value::Object(definitions.parts.into_iter().collect())),
    ];
    for (key, value) in head {
        root.insert(key.to_owned(), value);
    }
    Value::Object(root)
}

/// The same as text.
pub fn schema_text(policies: &dyn Fn(PolicyLayer) -> Vec<String>) -> String {
    format!("{:#}\n", schema(policies))
}

/// The parts that others refer to.
struct Definitions<'p> {
    /// By name.
    parts: BTreeMap<String, Value>,
    /// Names of the policies of a layer.
    policies: &'p dyn Fn(PolicyLayer) -> Vec<String>,
}

impl Definitions<'_> {
    fn table(&mut self, table: &'static Table) -> Map<String, Value> {
        let mut properties = Map::new();
        for field in &table.fields {
            let mut property = self.kind(&field.kind);
            let range = field.kind.range().map(|range| format!(" Range: {range}."));
            let about = format!("{}{}", field.about, range.unwrap_or_default());
            property.insert("description".to_owned(), json!(about));
            if let Absent::Default(Some(default)) = &field.absent
                && !default.is_table()
                && let Ok(default) = serde_json::to_value(default)
            {
                property.insert("default".to_owned(), default);
            }
            properties.insert(field.name.to_owned(), Value::Object(property));
        }
        let required = table.fields.iter().filter(|field| matches!(field.absent, Absent::Required));
        let mut required: Vec<&str> = required.map(|field| field.name).collect();
        let mut choices = Vec::new();
        for group in table.needs {
            match group {
                [one] => required.push(one),
                _ => choices.push(json!({
                    "anyOf": group.iter().map(|name| json!({ "required": [name] }))
                        .collect::<Vec<_>>()
                })),
            }
        }
        let mut object = Map::new();
        object.insert("title".to_owned(), json!(table.title));
        object.insert("description".to_owned(), json!(table.about));
        object.insert("type".to_owned(), json!("object"));
        object.insert("properties".to_owned(), Value::Object(properties));
        let rest = table.rest.as_ref().map(|kind| Value::Object(self.kind(kind)));
        object.insert("additionalProperties".to_owned(), rest.unwrap_or(json!(false)));
        if !required.is_empty() {
            object.insert("required".to_owned(), json!(required));
        }
        if !choices.is_empty() {
            object.insert("allOf".to_owned(), json!(choices));
        }
        object
    }

    fn kind(&mut self, kind: &Kind) -> Map<String, Value> {
        let value = match kind {
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Whole(least, u64::MAX) => json!({ "type": "integer", "minimum": least }),
            Kind::Whole(least, most) => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Kind::Among(numbers) => json!({ "enum": numbers }),
            Kind::Number(least, most) => {
                let mut number = json!({ "type": "number" });
                for (end, closed, open) in
                    [(least, "minimum", "exclusiveMinimum"), (most, "maximum", "exclusiveMaximum")]
                {
                    match end {
                        Bound::Included(end) => number[closed] = json!(end),
                        Bound::Excluded(end) => number[open] = json!(end),
                        Bound::Unbounded => {}
                    }
                }
                number
            }
            Kind::Text(text) | Kind::Amount(text, _) => {
                self.define(text.name, |definitions| definitions.text(text));
                reference(text.name)
            }
            Kind::Words(words) => json!({ "enum": words }),
            Kind::List(of, least, most) => {
                let mut list = json!({ "type": "array", "items": self.kind(of) });
                if *least > 0 {
                    list["minItems"] = json!(least);
                }
                if *most < usize::MAX {
                    list["maxItems"] = json!(most);
                }
                list
            }
            Kind::Table(table) => {
                self.define(table.title, |definitions| Value::Object(definitions.table(table)));
                reference(table.title)
            }
            Kind::Map(of) => json!({ "type": "object", "additionalProperties": self.kind(of) }),
            Kind::Any => json!({}),
            Kind::Sweep => sweep::schema(),
            Kind::Either(kinds) => {
                json!({ "anyOf": kinds.iter().map(|kind| self.kind(kind)).collect::<Vec<_>>() })
            }
        };
        match value {
            Value::Object(object) => object,
            _ => Map::new(),
        }
    }

    fn define(&mut self, name: &str, make: impl FnOnce(&mut Self) -> Value) {
        let name = key(name);
        if !self.parts.contains_key(&name) {
            let value = make(self);
            self.parts.insert(name, value);
        }
    }

    fn text(&self, text: &Text) -> Value {
        let of_pattern = json!({ "type": "string", "pattern": text.pattern });
        let mut forms = match text.names {
            Names::All(names) => vec![json!({ "enum": names() }), of_pattern],
            Names::None | Names::Usual(_) | Names::Policies(_) => vec![of_pattern],
        };
        forms.extend(match text.numbers {
            Numbers::None => None,
            Numbers::Zero => Some(json!({ "const": 0 })),
            Numbers::Share => Some(json!({ "type": "number", "minimum": 0, "maximum": 1 })),
            Numbers::Index => Some(json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })),
        });
        let mut value = match forms.len() {
            1 => forms.remove(0),
            _ => json!({ "anyOf": forms }),
        };
        let given = text.examples.iter().map(|&example| example.to_owned());
        let mut examples: Vec<String> = given.collect();
        let names = match text.names {
            Names::Policies(layer) => (self.policies)(layer),
            names => names.list(),
        };
        examples.extend(names.into_iter().filter(|name| !text.examples.contains(&&**name)));
        value["title"] = json!(text.name);
        value["description"] = json!(format!("Expected: {}", text.expected));
        value["examples"] = json!(examples);
        value
    }
}

/// A name that a reference can have.
pub(crate) fn key(name: &str) -> String {
    let words = name.split(|sign: char| !sign.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-").to_lowercase()
}

fn reference(name: &str) -> Value {
    // What stands beside a bare reference does not count in draft 7.
    json!({ "allOf": [{ "$ref": format!("#/definitions/{}", key(name)) }] })
}

#[cfg(test)]
mod tests;
