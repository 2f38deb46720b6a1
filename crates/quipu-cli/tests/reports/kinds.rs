//! A report of each kind of folder.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use quipu_lab::policies::Registry;
use quipu_record::FasterAlone;
use quipu_record::verdict::{Counts, Judged};
use quipu_report::page::{inline, page};
use quipu_report::{Options, report};
use quipu_study::replay::Replayer;
use serde_json::Value;

use crate::folders::{SMALL, Sweep, comparison, read, run, run_file, sweep_folder, try_read};
use crate::outline::outline;
use crate::specs::{check, figures, sections};

#[test]
fn a_comparison_has_all_figures_of_pages() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("first");
    comparison(&result);
    let document = read(&result);
    check(&document);
    assert_eq!(
        sections(&document),
        [
            "page-time",
            "object-time",
            "ratios",
            "critical-time",
            "paths",
            "bound",
            "load",
            "pair",
            "networks",
            "repeat",
            "methods"
        ]
    );
    assert!(document.notices.is_empty(), "{:?}", document.notices);
    insta::assert_snapshot!("comparison", outline(&document, "comparison"));
}

#[test]
fn the_same_folder_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("first");
    comparison(&result);
    assert_eq!(page(&read(&result)), page(&read(&result)));
}

#[test]
fn ratios_are_those_of_the_summary_with_and_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("first");
    let text = "\
        pages = [\"sitespeed\"]\nnetworks = [\"wifi+lte-lossy\"]\nruns = 8\n\
        [policies]\nstream = [\"rr\", \"fifo\"]\npath = [\"minrtt\"]\nbaselines = false\n";
    run_file(text, &result);
    let rows = |document: &quipu_report::document::Document| {
        let table = document.sections.iter().flat_map(|section| &section.tables);
        let table = table.clone().find(|table| table.id == "page-time-table").unwrap();
        let at = table.columns.iter().position(|column| column.key == "ratio").unwrap();
        table.rows.iter().map(|row| row[at..at + 3].to_vec()).collect::<Vec<_>>()
    };
    let with = rows(&read(&result));
    let text = fs::read_to_string(result.join("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&text).unwrap();
    let ratio = summary["rows"][1]["metrics"][1]["ratio"].as_f64().unwrap();
    assert!((with[1][0].as_f64().unwrap() - ratio).abs() < 0.001, "{with:?} {ratio}");
    assert!(with[1].iter().all(Value::is_number), "{with:?}");
    fs::remove_file(result.join("summary.json")).unwrap();
    let without = read(&result);
    assert_eq!(rows(&without), with, "the bootstrap has the same seed and the same pairs");
    assert_eq!(without.notices, ["first has no summary that can be read."]);
}

#[test]
fn a_load_can_be_chosen_and_one_of_another_version_is_not_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("first");
    comparison(&result);
    let load = "sitespeed,wifi+lte,fifo + minrtt,2".parse().unwrap();
    let options = Options { loads: vec![load] };
    let document = report(&result, &options, &Replayer(&Registry::builtin())).unwrap();
    check(&document);
    let shown = &document.datasets["waterfall"].levels["policy"];
    assert_eq!(shown, &["fifo + minrtt"]);
    let unknown = "sitespeed,wifi+lte,fifo + minrtt,99".parse().unwrap();
    let options = Options { loads: vec![unknown] };
    let document = report(&result, &options, &Replayer(&Registry::builtin())).unwrap();
    assert_eq!(
        document.notices,
        [
            "Run 99 of fifo + minrtt on sitespeed over wifi+lte is not shown: the results have no such run."
        ]
    );
    // A nanosecond more than what this version measures.
    let runs = fs::read_to_string(result.join("runs.csv")).unwrap();
    let changed: Vec<String> = runs
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            match cells[7].parse::<u64>() {
                Ok(time) => line.replace(cells[7], &(time + 1).to_string()),
                Err(_) => line.to_owned(),
            }
        })
        .collect();
    fs::write(result.join("runs.csv"), changed.join("\n") + "\n").unwrap();
    let document = read(&result);
    check(&document);
    assert!(!sections(&document).contains(&"load"));
    assert!(document.notices[0].contains("is of another version"), "{:?}", document.notices);
}

#[test]
fn a_waterfall_marks_pushed_objects() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("first");
    let text = "\
        pages = [\"framework-youtube\"]\nnetworks = [\"wifi+lte\"]\nruns = 1\npush = \"images\"\n\
        [policies]\nstream = [\"rr\"]\npath = [\"minrtt\"]\nbaselines = false\n";
    run_file(text, &result);
    let document = read(&result);
    check(&document);
    let objects = &document.datasets["waterfall"].levels["object"];
    let marked = objects.iter().filter(|label| label.ends_with(" +")).count();
    assert!(marked > 0 && marked < objects.len(), "{objects:?}");
    let all = document.sections.iter().flat_map(|section| &section.figures);
    let waterfall = all.clone().find(|figure| figure.id == "waterfall").unwrap();
    assert!(waterfall.caption.contains("Objects with + were pushed"), "{}", waterfall.caption);
}

#[test]
fn flows_alone_have_goodput_and_series() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("flows");
    let text = "\
        pages = []\nnetworks = [\"wifi+lte\"]\nruns = 2\nduration = \"2s\"\n\
        [policies]\nstream = [\"rr\"]\npath = [\"minrtt\"]\nbaselines = false\n\
        [[flows]]\nname = \"one\"\n[[flows]]\nname = \"other\"\nstart = \"100ms\"\n";
    run_file(text, &result);
    let document = read(&result);
    check(&document);
    assert_eq!(sections(&document), ["load", "flows", "networks", "repeat", "methods"]);
    assert_eq!(figures(&document)[6..], ["flow-goodput", "flow-shares", "network-paths"]);
    assert!(document.summary[0].contains("one "), "{:?}", document.summary);
}

#[test]
fn a_sweep_has_selectors_for_its_fields_and_a_heat_map() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = Sweep { pages: 2, browsers: 2, networks: 6, policies: 3, runs: 4, objects: 5 };
    sweep_folder(folder.path(), &sweep);
    let document = read(folder.path());
    check(&document);
    let all = document.sections.iter().flat_map(|section| &section.figures);
    let heat = all.clone().find(|figure| figure.id == "heat-map").unwrap();
    let controls: Vec<&str> = heat.controls.iter().map(|control| control.id.as_str()).collect();
    assert_eq!(controls, ["page", "browser", "policy"]);
    let curves = all.clone().find(|figure| figure.id == "page-time-curves").unwrap();
    let controls: Vec<&str> = curves.controls.iter().map(|control| control.id.as_str()).collect();
    assert_eq!(controls, ["page", "network", "browser"]);
    assert!(
        document.summary[0].starts_with(
            "By page time policy0 + minrtt is the fastest in 24 of 24 combinations of page, network \
             and browser."
        ),
        "{:?}",
        document.summary
    );
}

#[test]
fn folders_side_by_side_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    comparison(&folder.path().join("one"));
    run(&[&SMALL[..], &[("pages", "framework-google")]].concat(), &folder.path().join("two"));
    fs::create_dir(folder.path().join("no result")).unwrap();
    // A part of another version.
    let file = folder.path().join("two/summary.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("\"version\": \"", "\"version\": \"9.", 1)).unwrap();
    let document = read(folder.path());
    check(&document);
    assert_eq!(document.notices.len(), 1, "{:?}", document.notices);
    assert!(
        document.notices[0].starts_with("The results are of 2 versions of the program"),
        "{:?}",
        document.notices
    );
    let curves = &document.sections[0].figures[0];
    let options: Vec<&str> =
        curves.controls[0].options.iter().map(|choice| choice.value.as_str()).collect();
    assert_eq!(
        options,
        ["sitespeed over wifi+lte, folder one", "framework-google over wifi+lte, folder two"]
    );
}

/// The verdicts of an id, as `reproduce` writes them.
const VERDICTS: &str = r#"{
  "id": "mine", "paper": "ns3", "figure": "Figure 1", "title": "A title", "reported": "less",
  "note": "", "file": "mine.toml", "version": "0.1.0", "commit": "c", "fingerprint": "f",
  "quick": false, "seed": 1, "runs": 6, "failures": [], "data": [],
  "rules": [{
    "name": "known", "claim": "the page comes sooner", "kind": "claim", "reported": "",
    "test": "ratio", "at_most": 1.1, "rule": "page: ratio fifo + minrtt to rr + minrtt: < 1.1",
    "here": "1.000", "interval": "0.990 to 1.020", "verdict": "holds", "expect": "holds",
    "because": "", "ablation": null,
    "findings": [{"place": "sitespeed, wifi+lte: fifo + minrtt to rr + minrtt", "value": 1.0,
      "low": 0.99, "high": 1.02, "runs": 3, "verdict": "holds"}]
  }, {
    "test": "ratio", "at_most": 1.1, "name": "sooner", "claim": "the page comes sooner", "kind": "firm", "reported": "",
    "rule": "page: ratio fifo + minrtt to rr + minrtt: < 1.1; networks wifi+lte",
    "here": "1.000", "interval": "0.990 to 1.200", "verdict": "unclear", "expect": "holds",
    "because": "", "ablation": null,
    "findings": [{"place": "sitespeed, wifi+lte: fifo + minrtt to rr + minrtt", "value": 1.0,
      "low": 0.99, "high": 1.2, "runs": 3, "verdict": "unclear"}]
  }]
}"#;

fn experiment(folder: &Path) {
    comparison(folder);
    comparison(&folder.join("a variant"));
    fs::write(folder.join("verdicts.json"), VERDICTS).unwrap();
}

#[test]
fn verdicts_have_figures_and_ids_have_variants() {
    let folder = tempfile::tempdir().unwrap();
    let id = folder.path().join("mine");
    experiment(&id);
    for (path, control) in [(id.as_path(), "variant"), (folder.path(), "")] {
        let document = read(path);
        check(&document);
        assert_eq!(document.sections[0].id, "verdicts");
        assert_eq!(figures(&document)[..2], ["verdict-counts", "verdict-ratios"]);
        // What no rule ended as is in no legend, and has its colour nevertheless.
        let figure = &document.sections[0].figures[1].spec["layer"][1]["encoding"]["color"];
        assert_eq!(figure["legend"]["values"], serde_json::json!(["holds", "unclear"]));
        assert_eq!(figure["scale"]["domain"][2], "fails");
        assert_eq!(figure["scale"]["range"][2], "#94102a");
        let shape = &document.sections[0].figures[1].spec["layer"][2]["encoding"]["shape"];
        assert!(shape["field"] == "verdict" && shape["scale"].get("range").is_none(), "{shape}");
        assert_eq!(
            document.summary[..2],
            [
                "1 ids; 1 claims of papers: 1 reproduced, 0 depends on the set-up, 0 direction only, \
                 0 not reproduced, 0 unclear, 0 not testable here; 1 rules of our own: 0 hold, 0 fail, \
                 1 unclear, 0 without an answer; 1 other than expected.",
                "One rule has another verdict than its file expects: sooner of mine."
            ]
        );
        let curves = &document.sections[1].figures[0];
        let controls: Vec<&str> =
            curves.controls.iter().map(|control| control.id.as_str()).collect();
        assert_eq!(controls.concat(), control);
    }
}

#[test]
fn counts_of_verdicts_are_those_of_the_command() {
    let folder = tempfile::tempdir().unwrap();
    experiment(&folder.path().join("mine"));
    // An id of an earlier command, and one whose folder is gone.
    experiment(&folder.path().join("old"));
    let gone = VERDICTS.replace(r#""id": "mine""#, r#""id": "gone""#);
    let all = format!("[{gone}, {VERDICTS}]");
    fs::write(folder.path().join("verdicts.json"), &all).unwrap();
    let counted: Vec<Judged> = serde_json::from_str(&all).unwrap();
    let document = read(folder.path());
    check(&document);
    assert_eq!(document.summary[0], format!("{}.", Counts::of(&counted)));
    let claims: u64 = document.datasets["verdict-counts"]
        .objects()
        .filter_map(|row| row["claims"].as_u64())
        .sum();
    assert_eq!(claims, Counts::of(&counted).all_claims() as u64);
    assert!(
        document.notices.iter().any(|it| it.starts_with("1 id is of an earlier")),
        "{:?}",
        document.notices
    );
}

#[test]
fn specifications_alone_have_their_data() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("first");
    comparison(&result);
    let document = read(&result);
    for figure in document.sections.iter().flat_map(|section| &section.figures) {
        let text = inline(&document, figure).to_string();
        assert!(!text.contains("container"), "{}", figure.id);
        assert!(!text.contains(r#""name":"#) || !text.contains(r#""data":{"name""#));
        assert!(text.contains(r#""values":[{"#), "{}", figure.id);
    }
}

#[test]
fn what_is_no_result_is_told_with_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let error = |path: &Path| try_read(path).unwrap_err().to_string();
    let empty = error(folder.path());
    assert!(empty.contains("has no result: expected the folder of `quipu compare"), "{empty}");
    assert!(empty.ends_with("it is empty"), "{empty}");
    fs::create_dir(folder.path().join("results")).unwrap();
    let missing = error(&folder.path().join("result"));
    assert!(missing.contains("does not exist; expected"), "{missing}");
    assert!(missing.contains("did you mean"), "{missing}");
    fs::write(folder.path().join("results/run.csv"), "a\n").unwrap();
    let other = error(&folder.path().join("results"));
    assert!(other.ends_with("it only has `run.csv`"), "{other}");
    let file = error(&folder.path().join("results/run.csv"));
    assert!(file.contains("is a file"), "{file}");
    for message in [empty, missing, other, file] {
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn a_path_that_is_faster_alone_is_told_in_the_words_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let text = "pages = [\"sitespeed\"]\nnetworks = [\"wifi+lte\"]\nruns = 3\n\
        [policies]\nstream = [\"rr\"]\n";
    run_file(text, folder.path());
    let document = read(folder.path());
    let told: Vec<&String> =
        document.summary.iter().filter(|it| it.contains("alone is faster")).collect();
    let [told] = told[..] else { panic!("{:?}", document.summary) };
    let of_table = told.strip_prefix("On sitespeed over wifi+lte, ").unwrap();
    assert!(
        of_table.starts_with("lte alone is faster than every policy over both paths: "),
        "{told}"
    );
    let text = fs::read_to_string(folder.path().join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    let found: FasterAlone = serde_json::from_value(summary["faster_alone"][0].clone()).unwrap();
    assert_eq!(found.to_string(), of_table);
}

#[test]
fn paths_that_are_faster_alone_are_counted_over_many_networks() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "pages = [\"sitespeed\"]\nruns = 2\n[policies]\nstream = [\"rr\"]\n".to_owned();
    for (name, rate, first, second) in [
        ("a", "30mbit", "15ms", "10ms"),
        ("b", "30mbit", "60ms", "10ms"),
        ("c", "30mbit", "10ms", "60ms"),
        ("slow", "2mbit", "10ms", "10ms"),
    ] {
        let _ = write!(
            text,
            "[[networks]]\nname = \"{name}\"\npaths = [\n\
             {{ name = \"wifi\", down = {{ rate = \"{rate}\", delay = \"{first}\" }} }},\n\
             {{ name = \"lte\", down = {{ rate = \"{rate}\", delay = \"{second}\" }} }},\n]\n"
        );
    }
    run_file(&text, folder.path());
    let document = read(folder.path());
    let told: Vec<&String> =
        document.summary.iter().filter(|it| it.contains("a path alone is faster")).collect();
    let expected = "In 3 of 4 networks a path alone is faster than every policy over all paths: \
                    lte in 2 and wifi in 1.";
    assert_eq!(told, [expected], "{:?}", document.summary);
}
