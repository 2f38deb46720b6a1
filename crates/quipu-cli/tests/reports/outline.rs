//! A document as a text short enough to be judged: what is on the page, and what each figure shows by which
//! column. Of all else there is a hash for each part, and the part itself as a file beside the test's others.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use quipu_report::document::Document;
use serde::Serialize;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

/// The outline of `document`, whose parts go into the folder `name` for whoever wants to see what a hash
/// that is another stands for: `target/tmp/NAME`.
pub(crate) fn outline(document: &Document, name: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let hash = |id: &str, part: &dyn Fn() -> String| {
        let part = part();
        fs::write(folder.join(format!("{id}.json")), &part).unwrap();
        format!("{:016x}", xxh3_64(part.as_bytes()))
    };
    let mut text = format!("{}\n{}\n", document.title, document.subtitle);
    for line in document.notices.iter().chain(&document.summary) {
        let _ = writeln!(text, "> {line}");
    }
    for section in &document.sections {
        let words = hash(&section.id, &|| pretty(&section.text));
        let _ = writeln!(text, "# {}: {} [{words}]", section.id, section.title);
        for figure in &section.figures {
            let whole = hash(&figure.id, &|| pretty(figure));
            let controls = figure.controls.iter().map(|control| control.id.as_str());
            let sources = figure.datasets.iter().map(String::as_str);
            let by = controls.map(|id| format!(", chosen by {id}")).collect::<String>();
            let of = sources.collect::<Vec<_>>().join(" and ");
            let _ = writeln!(text, "figure {}: {} of {of}{by} [{whole}]", figure.id, figure.title);
            marks(&figure.spec, "", &mut text);
        }
        for table in &section.tables {
            let whole = hash(&table.id, &|| pretty(table));
            let columns: Vec<&str> = table.columns.iter().map(|it| it.key.as_str()).collect();
            let _ = writeln!(text, "table {}: {} [{whole}]", table.id, columns.join(" "));
        }
    }
    for (name, dataset) in &document.datasets {
        let whole = hash(&format!("data-{name}"), &|| pretty(dataset));
        let (columns, rows) = (dataset.columns.join(" "), dataset.rows.len());
        let _ = writeln!(text, "data {name}: {columns}; {rows} rows [{whole}]");
    }
    text
}

fn pretty(part: &impl Serialize) -> String {
    serde_json::to_string_pretty(part).unwrap()
}

/// A line for each mark of a specification: its channels with their columns. `above` are those of the
/// specifications that it is within.
fn marks(spec: &Value, above: &str, text: &mut String) {
    let mut channels = above.to_owned();
    for (channel, encoding) in spec["encoding"].as_object().into_iter().flatten() {
        let one = |encoding: &Value| match (&encoding["field"], &encoding["value"]) {
            (Value::String(field), _) => field.clone(),
            (_, Value::Null) => "…".to_owned(),
            (_, value) => value.to_string(),
        };
        let columns = match encoding {
            Value::Array(several) => several.iter().map(one).collect::<Vec<_>>().join(","),
            encoding => one(encoding),
        };
        let _ = write!(channels, " {channel}={columns}");
    }
    if let Some(mark) = spec.get("mark") {
        let kind = mark.as_str().or(mark["type"].as_str()).unwrap();
        let _ = writeln!(text, "  {kind}{channels}");
    }
    for child in spec["layer"].as_array().into_iter().flatten() {
        marks(child, &channels, text);
    }
}
