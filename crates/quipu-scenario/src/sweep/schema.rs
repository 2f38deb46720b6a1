//! The form of `[sweep]` as a JSON Schema. Its keys are fields of the scenario, in more spellings than
//! a schema can list: only what stands behind them is told.

use serde_json::{Value, json};

use super::read::MOST_VALUES;

/// The schema of `[sweep]`.
pub(crate) fn schema() -> Value {
    let listed = json!({ "anyOf": [values(), described(&["from", "to", "steps"])] });
    let zip = json!({
        "description": "Fields that move together: lists as long as each other.",
        "type": "array",
        "items": { "type": "object", "minProperties": 1, "additionalProperties": listed },
    });
    json!({
        "type": "object",
        "minProperties": 1,
        "properties": { "random": random(), "zip": zip },
        "additionalProperties": listed,
    })
}

/// `[sweep.random]`.
fn random() -> Value {
    json!({
        "description": "What is drawn.",
        "type": "object",
        "minProperties": 2,
        "properties": {
            "count": {
                "description": "How many samples.",
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_VALUES,
            },
            "seed": { "description": "What decides them.", "type": "integer", "minimum": 0, "default": 1 },
        },
        "required": ["count"],
        "additionalProperties": { "anyOf": [values(), described(&["from", "to"])] },
    })
}

/// A list of values of any kind.
fn values() -> Value {
    json!({ "type": "array", "minItems": 1, "maxItems": MOST_VALUES, "uniqueItems": true })
}

/// A field that says more than its values: these, or the ends of a `range`.
fn described(range: &[&str]) -> Value {
    let amount = |about: &str| json!({ "description": about, "type": ["number", "string"] });
    let steps = json!({
        "description": "How many values.",
        "type": "integer",
        "minimum": 2,
        "maximum": MOST_VALUES,
    });
    let of_range = [
        ("from", amount("The first amount.")),
        ("to", amount("The last amount, of the same kind.")),
        ("steps", steps),
    ];
    let shared = [
        ("scale", json!({ "description": "How steps lie.", "enum": ["linear", "log"] })),
        (
            "fields",
            json!({
                "description": "Fields that get the value, where the key is a name of its own.",
                "type": "array",
                "items": { "type": "string" },
                "minItems": 1,
            }),
        ),
        (
            "times",
            json!({ "description": "The field that the value is a multiple of.", "type": "string" }),
        ),
    ];
    let object = |of_its_own: Vec<(&str, Value)>, required: &[&str]| {
        let properties = of_its_own.into_iter().chain(shared.clone());
        let properties: serde_json::Map<String, Value> =
            properties.map(|(name, value)| (name.to_owned(), value)).collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    };
    let ends = of_range.into_iter().filter(|(name, _)| range.contains(name)).collect();
    json!({ "anyOf": [object(vec![("values", values())], &["values"]), object(ends, range)] })
}
