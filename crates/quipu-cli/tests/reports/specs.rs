//! Every figure's datasets are there, and every column that its specification shows.

use std::collections::BTreeSet;

use quipu_report::document::{Dataset, Document, Figure};
use serde_json::Value;

/// The figure with this name.
pub(crate) fn figure<'a>(document: &'a Document, id: &str) -> &'a Figure {
    let mut figures = document.sections.iter().flat_map(|section| &section.figures);
    figures.find(|figure| figure.id == id).unwrap()
}

/// Holds all figures and tables of `document` against its data.
pub(crate) fn check(document: &Document) {
    let mut ids = BTreeSet::new();
    for section in &document.sections {
        assert!(ids.insert(section.id.clone()), "two parts are called {}", section.id);
        for figure in &section.figures {
            assert!(ids.insert(figure.id.clone()), "two parts are called {}", figure.id);
            check_figure(document, figure);
        }
        for table in &section.tables {
            assert!(ids.insert(table.id.clone()), "two parts are called {}", table.id);
            assert!(!table.rows.is_empty(), "{} has no rows", table.id);
            for row in &table.rows {
                assert_eq!(row.len(), table.columns.len(), "{}: {row:?}", table.id);
                for (cell, column) in row.iter().zip(&table.columns) {
                    let fits = cell.is_null() || cell.is_number() == column.numeric;
                    assert!(fits, "{}: {cell} in {}", table.id, column.key);
                }
            }
        }
    }
    for (name, dataset) in &document.datasets {
        assert!(!dataset.rows.is_empty(), "{name} has no rows");
        for row in &dataset.rows {
            assert_eq!(row.len(), dataset.columns.len(), "{name}: {row:?}");
        }
        let plain = |column: &String| column.chars().all(|it| it.is_alphanumeric() || it == '_');
        assert!(dataset.columns.iter().all(plain), "{name}: {:?}", dataset.columns);
    }
}

fn check_figure(document: &Document, figure: &Figure) {
    let id = &figure.id;
    for text in [&figure.title, &figure.caption, &figure.alt] {
        assert!(!text.is_empty() && !text.contains("NaN") && !text.contains("inf"), "{id}: {text}");
    }
    assert!(figure.alt.contains(|sign: char| sign.is_ascii_digit()), "{id}: {}", figure.alt);
    assert_eq!(figure.spec["width"], "container", "{id}");
    let mut used = BTreeSet::new();
    walk(document, figure, &figure.spec, None, &mut used);
    let named: BTreeSet<String> = figure.datasets.iter().cloned().collect();
    assert_eq!(used, named, "{id}");
    for control in &figure.controls {
        assert!(control.options.len() > 1, "{id}: {} has one option", control.id);
        let values: BTreeSet<&str> =
            control.options.iter().map(|choice| choice.value.as_str()).collect();
        assert!(values.contains(control.default.as_str()), "{id}: {}", control.default);
        for name in &figure.datasets {
            let dataset = &document.datasets[name];
            if !dataset.columns.contains(&control.id) {
                continue;
            }
            let there: BTreeSet<String> = dataset
                .objects()
                .filter_map(|row| Some(row[&control.id].as_str()?.to_owned()))
                .collect();
            assert!(there.contains(&control.default), "{id}: nothing is drawn at first");
            assert!(there.iter().all(|value| values.contains(value.as_str())), "{id}: {there:?}");
        }
    }
}

/// Looks at all encodings in `value`, whose rows are those of `dataset` unless it names its own.
fn walk(
    document: &Document,
    figure: &Figure,
    value: &Value,
    dataset: Option<&Dataset>,
    used: &mut BTreeSet<String>,
) {
    let own = value.pointer("/data/name").and_then(Value::as_str);
    let dataset = match own {
        Some(name) => {
            used.insert(name.to_owned());
            let found = document.datasets.get(name);
            assert!(found.is_some(), "{}: no dataset {name}", figure.id);
            found
        }
        None => dataset,
    };
    if let Some(field) = value.get("field") {
        let field = field.as_str().unwrap();
        let columns = &dataset.unwrap().columns;
        let known = columns.iter().any(|column| column == field);
        assert!(known, "{}: no column {field} in {columns:?}", figure.id);
    }
    let children: Vec<&Value> = match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => Vec::new(),
    };
    for child in children {
        walk(document, figure, child, dataset, used);
    }
}

/// Sections by name.
pub(crate) fn sections(document: &Document) -> Vec<&str> {
    document.sections.iter().map(|section| section.id.as_str()).collect()
}

/// Figures by name.
pub(crate) fn figures(document: &Document) -> Vec<&str> {
    let figures = document.sections.iter().flat_map(|section| &section.figures);
    figures.map(|figure| figure.id.as_str()).collect()
}
