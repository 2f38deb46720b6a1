//! The bytes of result files, held to hashes that every machine and architecture must find again.
//!
//! The scenario is small and has much: two paths that lose, HTTP/2, several stream and path policies, time series.
//! Of `summary.json` what tells of the program is left out; the tables say nothing of the program that wrote them.

use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::AtomicBool;

use quipu_lab::batch::{Runner, run_all};
use quipu_lab::plan::Plan;
use quipu_record::Output;
use quipu_scenario::Scenario;
use xxhash_rust::xxh3::xxh3_128;

const SCENARIO: &str = r#"
seed = 7
pages = ["sitespeed"]
networks = ["wifi+lte-lossy"]
runs = 3
series = "20ms"

[policies]
stream = ["rr", "dwrr", "srpt"]
path = ["minrtt", "ecf"]
"#;

/// Lines of `summary.json` that tell of the program, not of what it measured. The text is taken as it is: parsed
/// and written again, its order and its last digits would hang on how `serde_json` is built.
const OF_THE_PROGRAM: [&str; 4] = ["version", "commit", "program", "profile"];

#[test]
fn result_files_have_the_same_bytes_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("results");
    let plan = Plan::new(Scenario::from_toml(SCENARIO, "result-bytes.toml").unwrap()).unwrap();
    let output = Output::prepare(&target, false).unwrap();
    let runner = Runner::new(&plan);
    let run = |_: &Plan, cell| runner.run_into(Some(&output), cell);
    let batch = run_all(&plan, None, &AtomicBool::new(false), &|_| {}, &run).unwrap();
    assert!(batch.summary.failures.is_empty(), "{:?}", batch.summary.failures);
    quipu_lab::results::write(output, &plan, &batch.finished, &batch.summary).unwrap();

    let summary = fs::read_to_string(target.join("summary.json")).unwrap();
    let of_the_program =
        |line: &&str| OF_THE_PROGRAM.iter().any(|key| line.starts_with(&format!("  \"{key}\":")));
    let lines = summary.lines();
    let measured: Vec<&str> = lines.clone().filter(|line| !of_the_program(line)).collect();
    assert_eq!(lines.count() - measured.len(), OF_THE_PROGRAM.len(), "{summary}");
    let mut parts = vec![("summary.json".to_owned(), (measured.join("\n") + "\n").into_bytes())];
    for entry in fs::read_dir(&target).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with(".csv") {
            parts.push((name, fs::read(entry.path()).unwrap()));
        }
    }
    parts.sort();
    let mut hashes = String::new();
    for (name, bytes) in parts {
        let lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
        let _ = writeln!(hashes, "{:032x} {name} {lines} lines", xxh3_128(&bytes));
    }
    let description = "Other hashes are other results. If they are meant, write down what moved and why in \
                       CHANGELOG.md under `Results change`, and run this test with INSTA_UPDATE=always.";
    insta::with_settings!({ description => description }, {
        insta::assert_snapshot!("result_bytes", hashes);
    });
}
