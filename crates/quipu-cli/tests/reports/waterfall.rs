//! One load object by object: phases, events, the critical path, orders, and the table of all objects.

use quipu_report::document::{Document, Table};
use serde_json::{Map, Value};

use crate::folders::{read, run_file};
use crate::specs::{check, figure};

/// The report of one run of a recorded page, with who found what.
fn wikipedia() -> Document {
    let folder = tempfile::tempdir().unwrap();
    let text = "\
        pages = [\"wikipedia\"]\nnetworks = [\"wifi+lte\"]\nruns = 1\n\
        [policies]\nstream = [\"rr\"]\npath = [\"minrtt\"]\nbaselines = false\n";
    run_file(text, folder.path());
    let document = read(folder.path());
    check(&document);
    document
}

fn objects(document: &Document) -> Vec<Map<String, Value>> {
    let rows = document.datasets["waterfall"].objects();
    rows.filter(|row| row["order"] == "time").collect()
}

fn table(document: &Document) -> &Table {
    let mut tables = document.sections.iter().flat_map(|section| &section.tables);
    tables.find(|table| table.id == "load-objects").unwrap()
}

#[test]
fn a_waterfall_has_the_phases_of_every_object_in_order_of_requests() {
    let objects = objects(&wikipedia());
    let mut before = 0.0;
    for object in &objects {
        let time = |column: &str| object[column].as_f64().unwrap();
        let found = object["discovered"].as_f64().unwrap_or(time("requested"));
        assert!(
            found <= time("requested") && time("requested") <= time("first_byte"),
            "{object:?}"
        );
        assert!(time("first_byte") <= time("completed"), "{object:?}");
        assert!(time("requested") >= before, "{object:?}");
        before = time("requested");
    }
    assert!(objects.iter().any(|object| object["discovered"].is_number()));
    assert!(objects.iter().any(|object| object["bound"].is_number()));
}

#[test]
fn the_critical_path_is_a_chain_from_the_document_to_the_end_of_the_page() {
    let document = wikipedia();
    let objects = objects(&document);
    let on_path: Vec<_> = objects.iter().filter(|it| it["critical_from"].is_number()).collect();
    assert!(on_path.len() > 1 && on_path.len() < objects.len(), "{} objects", on_path.len());
    assert_eq!(on_path[0]["kind"], "document");
    let events: Vec<_> = document.datasets["waterfall-events"].objects().collect();
    let page_time = events.iter().find(|row| row["event"] == "page time").unwrap();
    let last = on_path.iter().filter_map(|it| it["completed"].as_f64()).fold(0.0, f64::max);
    assert_eq!(page_time["at"], last);
    for pair in on_path.windows(2) {
        assert_eq!(pair[1]["initiator"].as_str().map(str::is_empty), Some(false), "{pair:?}");
    }
}

#[test]
fn page_time_bound_and_floor_are_lines_across_a_waterfall() {
    let document = wikipedia();
    let events = &document.datasets["waterfall-events"].levels["event"];
    for event in ["page time", "bound", "floor"] {
        assert!(events.iter().any(|it| it == event), "{event}: {events:?}");
    }
}

#[test]
fn ticks_of_a_waterfall_have_units_at_any_length() {
    let document = wikipedia();
    for id in ["waterfall", "waterfall-types"] {
        let axis = &figure(&document, id).spec["layer"][0]["encoding"]["x"]["axis"];
        assert!(axis["labelExpr"].as_str().unwrap().contains("' s'"), "{id}: {axis}");
    }
}

#[test]
fn a_waterfall_is_coloured_by_path_and_by_type_and_ordered_by_priority_too() {
    let document = wikipedia();
    let color = |id: &str| {
        let layers = figure(&document, id).spec["layer"].as_array().unwrap();
        let colors = layers.iter().filter_map(|layer| layer["encoding"].get("color"));
        colors.map(|color| color["field"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(color("waterfall"), ["path"]);
    assert_eq!(color("waterfall-types"), ["type"]);
    let ranks = ["VeryHigh", "High", "Medium", "Low", "VeryLow", ""];
    let rank = |row: &Map<String, Value>| ranks.iter().position(|name| row["priority"] == *name);
    for id in ["waterfall", "waterfall-types"] {
        let options = figure(&document, id).controls[0].options.iter();
        let orders: Vec<&str> = options.map(|choice| choice.value.as_str()).collect();
        assert_eq!(orders, ["time", "priority"], "{id}");
        let rows = document.datasets[id].objects();
        let found: Vec<_> =
            rows.filter(|row| row["order"] == "priority").map(|row| rank(&row)).collect();
        assert!(found.is_sorted() && found.iter().all(Option::is_some), "{id}: {found:?}");
    }
}

#[test]
fn a_waterfall_can_be_zoomed_and_names_its_rows_whole() {
    let document = wikipedia();
    for id in ["waterfall", "waterfall-types"] {
        let spec = &figure(&document, id).spec;
        assert_eq!(spec["layer"][0]["params"][0]["bind"], "scales", "{id}");
        assert_eq!(spec["usermeta"]["names"]["whole"], "url", "{id}");
    }
}

#[test]
fn whole_names_size_priority_host_and_initiator_are_in_a_table() {
    let document = wikipedia();
    let table = table(&document);
    let at = |key: &str| table.columns.iter().position(|column| column.key == key).unwrap();
    for key in ["type", "size", "priority", "host", "initiator", "url", "critical"] {
        let column = at(key);
        let filled = |row: &&Vec<Value>| row[column] != "" && !row[column].is_null();
        assert!(table.rows.iter().any(|row| filled(&row)), "{key}");
    }
    let (url, host) = (at("url"), at("host"));
    for row in &table.rows {
        let whole = row[url].as_str().unwrap();
        assert!(whole.contains(row[host].as_str().unwrap()), "{row:?}");
    }
    let tooltip =
        figure(&document, "waterfall").spec["layer"][0]["encoding"]["tooltip"].to_string();
    assert!(tooltip.contains("\"url\""), "{tooltip}");
}
