//! Legends hold only what their figure holds: names have the same colour in every figure, so scales know
//! all of them, and a figure shows some.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::document::{Document, Figure};

/// Channels that have legends.
const CHANNELS: [&str; 6] = ["color", "fill", "stroke", "shape", "strokeDash", "opacity"];

/// Leaves out of all legends the names that no row of their figure has.
pub(super) fn settle(document: &mut Document) {
    let Document { sections, datasets, .. } = document;
    for figure in sections.iter_mut().flat_map(|section| &mut section.figures) {
        let Figure { spec, datasets: names, .. } = figure;
        let shown = |column: &str| -> BTreeSet<String> {
            let read = names.iter().filter_map(|name| datasets.get(name));
            let cells = read.flat_map(|dataset| {
                dataset.objects().filter_map(|mut row| match row.remove(column)? {
                    Value::String(text) => Some(text),
                    _ => None,
                })
            });
            cells.collect()
        };
        narrow(spec, &shown);
    }
}

/// Narrows the legends of `view` and of its layers.
fn narrow(view: &mut Value, shown: &dyn Fn(&str) -> BTreeSet<String>) {
    for channel in CHANNELS {
        if let Some(encoding) = view.pointer_mut(&format!("/encoding/{channel}")) {
            narrow_one(encoding, shown);
        }
    }
    let layers = view.get_mut("layer").and_then(Value::as_array_mut);
    for layer in layers.into_iter().flatten() {
        narrow(layer, shown);
    }
}

fn narrow_one(encoding: &mut Value, shown: &dyn Fn(&str) -> BTreeSet<String>) {
    if encoding["type"] == "quantitative" || encoding.get("legend").is_some_and(Value::is_null) {
        return;
    }
    let Some(column) = encoding["field"].as_str() else { return };
    let Some(all) = encoding.pointer("/scale/domain").and_then(Value::as_array) else { return };
    let there = shown(column);
    let is_there = |name: &&Value| name.as_str().is_some_and(|name| there.contains(name));
    let some: Vec<Value> = all.iter().filter(is_there).cloned().collect();
    if some.len() < all.len() {
        encoding["legend"] = serde_json::json!({ "values": some });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Dataset, Section};

    #[test]
    fn a_legend_has_no_name_that_no_row_has() {
        let dataset = Dataset {
            columns: vec!["path".to_owned()],
            rows: vec![vec![Value::from("lte")], vec![Value::Null]],
            ..Dataset::default()
        };
        let color = || {
            serde_json::json!({
                "field": "path", "type": "nominal", "scale": { "domain": ["wifi", "lte"] },
            })
        };
        let mut hidden = color();
        hidden["legend"] = Value::Null;
        let figure = Figure {
            id: String::new(),
            title: String::new(),
            caption: String::new(),
            alt: String::new(),
            spec: serde_json::json!({ "layer": [
                { "encoding": { "color": color(), "shape": color() } },
                { "encoding": { "color": hidden } },
            ] }),
            datasets: vec!["data".to_owned()],
            controls: Vec::new(),
        };
        let mut document = Document {
            sections: vec![Section { figures: vec![figure], ..Section::default() }],
            datasets: [("data".to_owned(), dataset)].into(),
            ..Document::default()
        };
        settle(&mut document);
        let layers = &document.sections[0].figures[0].spec["layer"];
        for channel in ["color", "shape"] {
            let encoding = &layers[0]["encoding"][channel];
            assert_eq!(encoding["legend"]["values"], serde_json::json!(["lte"]), "{channel}");
            assert_eq!(encoding["scale"]["domain"].as_array().map(Vec::len), Some(2));
        }
        assert_eq!(layers[1]["encoding"]["color"]["legend"], Value::Null);
    }
}
