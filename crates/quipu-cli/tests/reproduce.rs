//! `quipu reproduce` as a user meets it: verdicts, exit codes, what is kept and what is made again.
#![expect(clippy::panic, reason = "a helper of tests is allowed to stop them")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// Two ids of two runs each; the second one looks at both networks.
const TINY: &str = r#"
pages = ["sitespeed"]
runs = 3
networks = ["wifi+lte", "wifi+lte-lossy"]

[policies]
stream = ["fifo", "dwrr"]
path = ["minrtt"]
baselines = false

[experiment]
id = "tiny-{level}"
paper = "quipu"
title = "A page with {level} loss"
reported = "nothing"

[experiment.vary]
level = [
    { name = "clean", set = { networks = ["wifi+lte"] } },
    { name = "lossy", set = { networks = ["wifi+lte-lossy", "wifi+lte"] } },
]

[[experiment.variants]]
name = "slow"
set = { "networks.*.paths.*.down.rate" = "2mbit", runs = 2 }

[[experiment.rules]]
name = "page"
claim = "the page takes between 0.1 and 5 s"
metric = "page"
value = "0.1s..5s"

[[experiment.rules]]
name = "grows"
claim = "loss makes the page slower"
only = { level = ["lossy"] }
metric = "page"
of = { network = "wifi+lte-lossy" }
to = { network = "wifi+lte" }
ratio = "> 0.5"

[[experiment.rules]]
name = "alike"
claim = "both orders have the same time"
metric = { name = "object", index = 0, stat = "max" }
of = "dwrr + minrtt"
to = "others"
ratio = "> 100"
expect = "fails"
because = "nobody is that slow"
ablation = "slow"

[[experiment.rules]]
name = "slow"
claim = "a slow path makes the page slower"
kind = "ablation"
metric = "page"
of = { variant = "slow" }
to = { variant = "main" }
ratio = "> 1.2"

[[experiment.data]]
metric = "page"
network = "wifi+lte"
values = [{ policy = "dwrr + minrtt", mean = "0.5s", p90 = "0.6s" }]
"#;

fn folder_with(text: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tiny.toml"), text).expect("a file");
    folder
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.arg("reproduce").args(arguments).current_dir(folder);
    command
}

fn reproduce(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("the program starts")
}

fn error_of(output: &Output, code: i32) -> String {
    let text = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

/// Every file below `folder` with its content.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap_or_else(|_| panic!("{}", next.display())) {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below").display().to_string();
                found.insert(name, std::fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

#[test]
fn an_experiment_is_run_judged_and_kept() {
    let folder = folder_with(TINY);
    let output = reproduce(folder.path(), &["tiny.toml", "--out", "out"]);
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("tiny-clean · A page with clean loss · 10 runs"), "{text}");
    assert!(text.contains("× bound, sitespeed over wifi+lte ("), "{text}");
    assert!(text.contains("7 rules of our own: 5 hold, 2 fail, 0 unclear"), "{text}");
    let first = files(&folder.path().join("out"));
    for name in [
        "tiny-clean/verdicts.json",
        "tiny-clean/runs.csv",
        "tiny-clean/slow/summary.json",
        "tiny-lossy/scenario.toml",
        "verdicts.json",
        "verdicts.csv",
        "places.csv",
        "verdicts.md",
    ] {
        assert!(first.contains_key(name), "{name} of {:?}", first.keys());
    }
    assert!(!first.keys().any(|name| name.contains(".partial")), "{:?}", first.keys());
    let scenario = String::from_utf8(first["tiny-clean/scenario.toml"].clone()).expect("UTF-8");
    assert!(scenario.contains("sitespeed") && !scenario.contains("experiment"));
    let verdicts = String::from_utf8(first["tiny-clean/verdicts.json"].clone()).expect("UTF-8");
    assert!(verdicts.contains("\"paper\": \"500.0 ms\""), "{verdicts}");

    // The same again: nothing is run, nothing changes.
    let modified = |name: &str| {
        let data = std::fs::metadata(folder.path().join("out").join(name)).expect("a file");
        data.modified().expect("a time")
    };
    let before = modified("tiny-clean/runs.csv");
    let output = reproduce(folder.path(), &["tiny.toml", "--out", "out", "--jobs", "1"]);
    assert!(output.status.success());
    assert_eq!(modified("tiny-clean/runs.csv"), before);
    assert_eq!(files(&folder.path().join("out")), first);

    // Another number of threads gives the same bytes.
    let output = reproduce(folder.path(), &["tiny.toml", "--out", "one", "--jobs", "1"]);
    assert!(output.status.success());
    assert_eq!(files(&folder.path().join("one")), first);

    // A changed rule is judged anew.
    let changed = TINY.replace("0.1s..5s", "0.1s..0.11s");
    std::fs::write(folder.path().join("tiny.toml"), changed).expect("a file");
    let output = reproduce(folder.path(), &["tiny.toml", "--out", "out"]);
    let error = error_of(&output, 1);
    assert!(error.contains("tiny-clean/page fails instead of holds"), "{error}");
    assert_ne!(modified("tiny-clean/runs.csv"), before);
}

#[test]
fn the_command_the_page_and_the_report_tell_the_same_counts() {
    let settings = "[[experiment.settings]]\nname = \"window\"\nvalues = [{ name = \"own\" }, \
                    { name = \"64\", set = { \"transport.initial_window\" = 64 } }]\n\
                    [[experiment.untestable]]\nclaim = \"it is cheap\"\nbecause = \"nothing is paid\"\n";
    let text = TINY.replace("paper = \"quipu\"", "paper = \"ns3\"") + settings;
    let folder = folder_with(&text);
    let output = reproduce(folder.path(), &["tiny.toml", "--out", "out"]);
    let told = String::from_utf8(output.stdout).expect("UTF-8");
    let counts = told.lines().find(|line| line.starts_with("2 ids; ")).expect("counts");
    assert!(counts.contains("6 claims of papers: 3 reproduced,"), "{counts}");
    assert!(counts.contains("1 not testable here; 2 rules of our own: 2 hold"), "{counts}");
    let page = folder.path().join("out/verdicts.md");
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains(counts), "{page}");
    let mut report = Command::new(env!("CARGO_BIN_EXE_quipu"));
    let report = report.args(["report", "out", "--out", "report.html"]).current_dir(folder.path());
    assert!(report.status().expect("it starts").success());
    let report = std::fs::read_to_string(folder.path().join("report.html")).expect("a report");
    assert!(report.contains(counts), "the report has other counts than {counts}");
}

#[test]
fn a_call_that_was_killed_is_gone_on_with_and_ends_with_the_same_bytes() {
    let many = TINY.replace("runs = 3", "runs = 40");
    let folder = folder_with(&many);
    let whole = reproduce(folder.path(), &["tiny.toml", "--out", "whole"]);
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    let mut child: Child = command(folder.path(), &["tiny.toml", "--out", "cut", "--jobs", "1"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    // As soon as the first id is there, or anything is on its way.
    let is_there = |name: &str| folder.path().join("cut").join(name).exists();
    while !is_there("tiny-clean") && child.try_wait().expect("a state").is_none() {
        std::thread::yield_now();
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    let output = reproduce(folder.path(), &["tiny.toml", "--out", "cut"]);
    assert!(output.status.success());
    assert_eq!(files(&folder.path().join("cut")), files(&folder.path().join("whole")));
}

#[test]
fn unknown_names_and_bad_rules_are_refused_before_anything_is_run() {
    let empty = tempfile::tempdir().expect("a temporary folder");
    let error = error_of(&reproduce(empty.path(), &["framwork"]), 2);
    assert!(error.contains("did you mean `framework`?"), "{error}");
    let error = error_of(&reproduce(empty.path(), &["missing.toml"]), 2);
    assert!(error.contains("cannot read missing.toml"), "{error}");
    for (from, to, told) in [
        ("value = \"0.1s..5s\"", "value = \"fast\"", "expected a threshold"),
        ("of = \"dwrr + minrtt\"", "of = \"dwr + minrtt\"", "did you mean `dwrr + minrtt`?"),
        ("of = { variant = \"slow\" }", "of = { variant = \"slw\" }", "did you mean `slow`?"),
        ("index = 0", "indx = 0", "unknown field `indx`"),
        ("policy = \"dwrr + minrtt\", mean", "policy = \"x\", mean", "there is no policy `x`"),
        ("mean = \"0.5s\"", "mean = \"0.5\"", "expected an amount of page"),
        ("set = { \"networks.*", "set = { \"netwrks.*", "unknown scenario field"),
    ] {
        assert!(TINY.contains(from), "{from}");
        let folder = folder_with(&TINY.replace(from, to));
        let error = error_of(&reproduce(folder.path(), &["tiny.toml", "--out", "out"]), 2);
        assert!(error.contains(told), "{from}: {error}");
        assert!(!folder.path().join("out").exists(), "{from}");
    }
    // A rule that is malformed, or names what is not there, is told with its line.
    let line = |text: &str| TINY[..TINY.find(text).expect("it")].matches('\n').count() + 1;
    let folder = folder_with(&TINY.replace("0.1s..5s", "fast"));
    let error = error_of(&reproduce(folder.path(), &["tiny.toml", "--out", "out"]), 2);
    assert!(error.contains(&format!("tiny.toml:{}:", line("0.1s..5s"))), "{error}");
    let folder = folder_with(&TINY.replace("of = \"dwrr + minrtt\"", "of = \"dwr + minrtt\""));
    let error = error_of(&reproduce(folder.path(), &["tiny.toml", "--out", "out"]), 2);
    let begin = line("[[experiment.rules]]\nname = \"alike\"");
    assert!(error.contains(&format!("tiny.toml:{begin}: tiny-clean: rule alike")), "{error}");
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let folder = folder_with(TINY);
    let foreign = folder.path().join("out/tiny-clean");
    std::fs::create_dir_all(&foreign).expect("a folder");
    std::fs::write(foreign.join("thesis.txt"), "mine").expect("a file");
    let error = error_of(&reproduce(folder.path(), &["tiny.toml", "--out", "out"]), 2);
    assert!(error.contains("--force replaces it"), "{error}");
    assert!(foreign.join("thesis.txt").exists());
}

#[test]
fn quick_runs_are_few_and_what_is_unclear_in_them_is_no_surprise() {
    let folder = folder_with(&TINY.replace("runs = 3\n", "runs = 30\n"));
    let output = reproduce(folder.path(), &["tiny.toml", "--out", "out", "--quick"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("10 runs"), "{text}");
    // A full call does not take quick runs for its own.
    let output = reproduce(folder.path(), &["tiny.toml", "--out", "out"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("64 runs"));
}

#[test]
fn the_experiments_that_come_with_the_program_can_be_listed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = reproduce(folder.path(), &["--list"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("id "));
    assert!(files(folder.path()).is_empty());
}
