//! One HTML file with everything in it: the page, its looks, its scripts, and a document.

use serde_json::Value;

use crate::document::{Document, Figure};

/// The page around a document. Its marks are replaced, each once.
const TEMPLATE: &str = include_str!("../assets/page.html");
const STYLE: &str = include_str!("../assets/report.css");
/// What draws specifications.
const LIBRARIES: [&str; 2] = [
    include_str!("../assets/vendor/vega.min.js"),
    include_str!("../assets/vendor/vega-lite.min.js"),
];
/// The page's own scripts, in the order of `assets/scripts/ORDER`.
const SCRIPTS: [&str; 12] = [
    include_str!("../assets/scripts/data.js"),
    include_str!("../assets/scripts/format.js"),
    include_str!("../assets/scripts/scheme.js"),
    include_str!("../assets/scripts/layout.js"),
    include_str!("../assets/scripts/chart.js"),
    include_str!("../assets/scripts/legend.js"),
    include_str!("../assets/scripts/zoom.js"),
    include_str!("../assets/scripts/rows.js"),
    include_str!("../assets/scripts/download.js"),
    include_str!("../assets/scripts/table.js"),
    include_str!("../assets/scripts/figure.js"),
    include_str!("../assets/scripts/page.js"),
];

/// What a mark of the template begins and ends with.
const MARK: (&str, &str) = ("<!-- quipu:", " -->");

/// `document` as one HTML file, which asks for nothing else.
pub fn page(document: &Document) -> String {
    let mut page = String::new();
    let mut rest = TEMPLATE;
    // What is put in is never searched for marks.
    while let Some((before, after)) = rest.split_once(MARK.0) {
        let Some((mark, after)) = after.split_once(MARK.1) else { break };
        page.push_str(before);
        match mark {
            "title" => page.push_str(&escaped(&document.title)),
            "style" => page.push_str(STYLE),
            "libraries" => page.push_str(&LIBRARIES.join("\n")),
            "script" => page.push_str(&SCRIPTS.join("\n")),
            "data" => page.push_str(&data(document)),
            _ => {}
        }
        rest = after;
    }
    page + rest
}

/// `text` between tags.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The document as JSON in which no tag can end or begin.
fn data(document: &Document) -> String {
    // Texts and numbers in maps with text keys always become JSON.
    serde_json::to_string(document).unwrap_or_default().replace('<', "\\u003c")
}

/// The specification of `figure` with its numbers inside, for other programs that draw Vega-Lite; its
/// selectors become parameters bound to inputs.
pub fn inline(document: &Document, figure: &Figure) -> Value {
    /// Pixels; a page of its own has no container to be as wide as.
    const WIDTH: u32 = 640;

    let mut spec = figure.spec.clone();
    spec["width"] = Value::from(WIDTH);
    spec["title"] = Value::from(figure.title.clone());
    spec["description"] = Value::from(figure.alt.clone());
    fill(document, figure, &mut spec);
    let layers = spec.get_mut("layer").and_then(Value::as_array_mut);
    for layer in layers.into_iter().flatten() {
        fill(document, figure, layer);
    }
    let params: Vec<Value> = figure
        .controls
        .iter()
        .enumerate()
        .map(|(index, control)| {
            let values: Vec<&str> =
                control.options.iter().map(|choice| choice.value.as_str()).collect();
            let labels: Vec<&str> =
                control.options.iter().map(|choice| choice.label.as_str()).collect();
            let bind = serde_json::json!({
                "input": "select", "name": format!("{} ", control.label),
                "options": values, "labels": labels,
            });
            serde_json::json!({
                "name": parameter(index), "value": control.default, "bind": bind,
            })
        })
        .collect();
    if !params.is_empty() {
        spec["params"] = Value::from(params);
    }
    spec
}

/// Puts the numbers of the dataset that `view` names into it, and filters them by the selectors that
/// they have columns for.
fn fill(document: &Document, figure: &Figure, view: &mut Value) {
    let name = view.pointer("/data/name").and_then(Value::as_str);
    let Some(dataset) = name.and_then(|name| document.datasets.get(name)) else { return };
    let values: Vec<Value> = dataset.objects().map(Value::Object).collect();
    view["data"] = serde_json::json!({ "values": values });
    let controls = figure.controls.iter().enumerate();
    let filters = controls
        .filter(|(_, control)| dataset.columns.contains(&control.id))
        .map(|(index, control)| {
            serde_json::json!({ "filter": format!("datum['{}'] === {}", control.id, parameter(index)) })
        });
    let filters: Vec<Value> = filters.collect();
    if !filters.is_empty() {
        view["transform"] = Value::from(filters);
    }
}

/// The name of the parameter of the selector at `index`.
fn parameter(index: usize) -> String {
    format!("choice_{index}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Choice, Control, Dataset};

    #[test]
    fn scripts_come_in_the_order_of_the_assets() {
        let order = include_str!("../assets/scripts/ORDER");
        let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/scripts");
        let read = |name: &str| std::fs::read_to_string(format!("{assets}/{name}")).unwrap();
        let scripts: Vec<String> = order.split_whitespace().map(read).collect();
        assert_eq!(scripts, SCRIPTS);
    }

    #[test]
    fn data_cannot_leave_its_place() {
        let hostile = "</script><script>alert(1)</script><!-- quipu:style -->";
        let document = Document { title: hostile.to_owned(), ..Document::default() };
        let page = page(&document);
        assert!(!page.contains("alert(1)</script>"), "the title or the data escaped");
        assert!(!page.contains("<!-- quipu:"), "a mark is left");
        assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    }

    #[test]
    fn a_specification_alone_has_its_numbers_and_selectors() {
        let dataset = Dataset {
            columns: vec!["page".to_owned(), "ms".to_owned()],
            rows: vec![vec![Value::from("a"), Value::from(1)]],
            ..Dataset::default()
        };
        let choice = Choice { value: "a".to_owned(), label: "A".to_owned() };
        let figure = Figure {
            id: "f".to_owned(),
            title: "F".to_owned(),
            caption: String::new(),
            alt: "what is seen".to_owned(),
            spec: serde_json::json!({ "data": { "name": "f" }, "layer": [{ "mark": "point" }] }),
            datasets: vec!["f".to_owned()],
            controls: vec![Control {
                id: "page".to_owned(),
                label: "page".to_owned(),
                options: vec![choice],
                default: "a".to_owned(),
            }],
        };
        let mut document = Document::default();
        document.datasets.insert("f".to_owned(), dataset);
        let spec = inline(&document, &figure);
        assert_eq!(spec["data"]["values"][0]["ms"], 1);
        assert_eq!(spec["params"][0]["value"], "a");
        assert_eq!(spec["transform"][0]["filter"], "datum['page'] === choice_0");
        assert_eq!(spec["description"], "what is seen");
    }
}
