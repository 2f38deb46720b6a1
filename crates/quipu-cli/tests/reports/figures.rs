//! What figures draw: data, axes, legends, and when there is nothing to draw.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use quipu_report::document::{Document, Figure};
use serde_json::Value;

use crate::folders::read;
use crate::specs::{check, figure, figures};

/// Writes runs with these page times in nanoseconds, one for each run of each policy.
fn runs(folder: &Path, policies: &[(&str, &[u64])]) {
    let mut text =
        "page,network,policy,run,visit,client,page_time_ns,critical_time_ns,page_bound_ns\n"
            .to_owned();
    for (policy, times) in policies {
        for (run, time) in times.iter().enumerate() {
            let (critical, bound) = (time / 2, time * 9 / 10);
            writeln!(text, "wiki,wifi+lte,{policy},{run},0,0,{time},{critical},{bound}").unwrap();
        }
    }
    fs::write(folder.join("runs.csv"), text).unwrap();
}

/// The report of [`runs`].
fn report_of(policies: &[(&str, &[u64])]) -> Document {
    let folder = tempfile::tempdir().unwrap();
    runs(folder.path(), policies);
    let document = read(folder.path());
    check(&document);
    document
}

/// The column `name` of the dataset `data`.
fn column(document: &Document, data: &str, name: &str) -> Vec<Value> {
    document.datasets[data].objects().map(|row| row[name].clone()).collect()
}

#[test]
fn data_of_times_above_a_second_are_not_rounded() {
    let times = [2_345_678_901, 12_345_678_902, 3_456_789_013];
    let document = report_of(&[("rr", &times), ("fifo", &[2_000_000_001, 2_000_000_002, 9])]);
    let millis = column(&document, "page-time-curves", "ms");
    for exact in [2_345.678_901, 12_345.678_902, 3_456.789_013, 2_000.000_001] {
        assert!(millis.contains(&Value::from(exact)), "{exact}: {millis:?}");
    }
    let medians = column(&document, "page-time-boxes", "median");
    assert_eq!(medians, [3_456.789_013, 2_000.000_001]);
    let table = document.sections.iter().flat_map(|section| &section.tables);
    let table = table.clone().find(|table| table.id == "page-time-table").unwrap();
    let at = table.columns.iter().position(|column| column.key == "page_time").unwrap();
    assert_eq!(table.rows[0][at], 3_456.789_013);
}

/// Every encoding of `channel` in `figure` that has a field.
fn channels<'a>(figure: &'a Figure, channel: &str) -> Vec<&'a Value> {
    let layers = figure.spec["layer"].as_array().unwrap().iter();
    let all = layers.chain([&figure.spec]).filter_map(|it| it["encoding"].get(channel));
    all.filter(|it| it.get("field").is_some()).collect()
}

#[test]
fn axes_of_times_begin_at_zero() {
    let document =
        report_of(&[("rr", &[1_000_000_000, 1_001_000_000]), ("fifo", &[1_003_000_000; 2])]);
    for (id, channel) in
        [("page-time-curves", "x"), ("page-time-boxes", "x"), ("critical-time-boxes", "x")]
    {
        let found = channels(figure(&document, id), channel);
        assert!(found.iter().all(|it| it["scale"]["zero"] == true), "{id}: {found:?}");
    }
}

#[test]
fn axes_of_ratios_show_five_percent_around_one_however_small_differences_are() {
    let document =
        report_of(&[("rr", &[1_000_000_000, 1_001_000_000]), ("fifo", &[1_003_000_000; 2])]);
    for (id, low) in [("ratio-intervals", 0.95), ("page-bound-boxes", 1.0)] {
        let band = &figure(&document, id).spec["layer"][0];
        assert_eq!(band["mark"]["style"], "band", "{id}");
        let ends = [&band["encoding"]["x"]["datum"], &band["encoding"]["x2"]["datum"]];
        assert_eq!(ends, [low, 1.05], "{id}");
    }
}

fn text_of(document: &Document, section: &str) -> String {
    document.sections.iter().find(|it| it.id == section).unwrap().text.join(" ")
}

fn has_figure(document: &Document, id: &str) -> bool {
    figures(document).contains(&id)
}

#[test]
fn one_value_is_not_drawn_as_a_distribution() {
    let document = report_of(&[("rr", &[1_000_000_000]), ("fifo", &[1_003_000_000])]);
    for (id, section) in
        [("page-time-curves", "page-time"), ("critical-time-curves", "critical-time")]
    {
        assert!(!has_figure(&document, id) && !document.datasets.contains_key(id), "{id}");
        let text = text_of(&document, section);
        assert!(
            text.contains("Each policy has only one value")
                && text.contains("no distribution is drawn"),
            "{text}"
        );
    }
    let points = figure(&document, "page-time-boxes");
    let marks: Vec<&Value> =
        points.spec["layer"].as_array().unwrap().iter().map(|it| &it["mark"]["type"]).collect();
    assert_eq!(marks, ["point"], "values are compared, without boxes");
    assert!(points.caption.contains("the only value of each policy"), "{}", points.caption);
    assert!(points.alt.starts_with("Points of page time, ms on"), "{}", points.alt);
}

#[test]
fn runs_that_are_all_identical_are_not_drawn_as_a_distribution() {
    let document = report_of(&[("rr", &[1_000_000_000; 3]), ("fifo", &[1_003_000_000; 3])]);
    assert!(!has_figure(&document, "page-time-curves"));
    let text = text_of(&document, "page-time");
    assert!(text.contains("All loads of a policy have the same page time"), "{text}");
}

#[test]
fn a_policy_with_one_value_beside_others_is_explained() {
    let document =
        report_of(&[("rr", &[1_000_000_000; 2]), ("fifo", &[1_003_000_000, 1_004_000_000])]);
    let curves = figure(&document, "page-time-curves");
    assert!(
        curves.caption.contains("A vertical line is a policy with only one value"),
        "{}",
        curves.caption
    );
}

#[test]
fn legends_hold_only_what_their_figure_holds() {
    let document =
        report_of(&[("rr", &[1_000_000_000, 1_001_000_000]), ("fifo", &[1_003_000_000; 2])]);
    for section in &document.sections {
        for figure in &section.figures {
            for encoding in
                ["color", "shape", "strokeDash"].iter().flat_map(|it| channels(figure, it))
            {
                let names =
                    encoding.pointer("/legend/values").or(encoding.pointer("/scale/domain"));
                let Some(names) = names.and_then(Value::as_array) else { continue };
                if encoding.get("legend").is_some_and(Value::is_null)
                    || encoding["type"] != "nominal"
                {
                    continue;
                }
                let field = encoding["field"].as_str().unwrap();
                let rows: Vec<Value> = figure
                    .datasets
                    .iter()
                    .flat_map(|data| column(&document, data, field))
                    .collect();
                assert!(names.iter().all(|name| rows.contains(name)), "{}: {names:?}", figure.id);
            }
        }
    }
}

#[test]
fn ratios_stand_before_what_is_asked_less() {
    let document =
        report_of(&[("rr", &[1_000_000_000, 1_001_000_000]), ("fifo", &[1_003_000_000; 2])]);
    let tables = document.sections.iter().flat_map(|section| &section.tables);
    let table = tables.clone().find(|table| table.id == "page-time-table").unwrap();
    let keys: Vec<&str> = table.columns.iter().map(|column| column.key.as_str()).collect();
    assert_eq!(keys[..5], ["policy", "page_time", "ratio", "ratio_low", "ratio_high"]);
    assert!(table.rows[1][2].as_f64().is_some_and(|ratio| ratio > 1.002 && ratio < 1.003));
}

#[test]
fn methods_tell_only_what_these_results_have() {
    let one = report_of(&[("rr", &[1_000_000_000])]);
    let text = text_of(&one, "methods");
    for absent in [
        "resamples",
        "clients of a run",
        "ByteIndex",
        "Floor",
        "20,000 objects",
        "virtual",
        "seed",
        "Curves",
        "quartiles",
    ] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    assert!(text.contains("Page time:") && text.contains("Bound:"), "{text}");
    let two = report_of(&[("rr", &[1_000_000_000, 1_001_000_000]), ("fifo", &[1_003_000_000; 2])]);
    let text = text_of(&two, "methods");
    assert!(text.contains("10,000 resamples"), "{text}");
}
