//! What every command prints on terminals of 80 and 120 columns: no line is longer, and nobody meets an escape sequence
//! that did not ask for colours.
#![expect(clippy::panic, reason = "a helper of tests is allowed to stop them")]

use std::process::Command;

/// Commands, one of each kind; those that need a file or write one have tests of their own.
const COMMANDS: [&str; 26] = [
    "columns",
    "pages",
    "networks",
    "traces",
    "browsers",
    "transports",
    "transports mp-quic-2018",
    "schedulers",
    "schedulers --layer congestion",
    "schedulers dwrr",
    "schedulers ecf --check",
    "compare --page framework-google --runs 2",
    "compare --page framework-google --runs 2 --sort critical --top 2",
    "compare --page rust-book --runs 2 --range",
    "load --page framework-youtube --rows 12",
    "run EXPERIMENTS/congestion/shared-bottleneck.toml --runs 1",
    "sweep EXPERIMENTS/sweeps/ratios.toml --out none --dry-run",
    "reproduce --list",
    "reproduce ns3-edf --quick",
    "page show rust-book",
    "page predict sphinx-manual",
    "page model --pages 50",
    "page self-test --pages 1",
    "scenario show dsl+lte",
    "scenario show framework-scene-low-a",
    "paths",
];

/// Commands whose text is the same on every machine and run, kept as it is.
const KEPT: [&str; 8] = [
    "compare --page framework-google --runs 2",
    "compare --page rust-book --runs 2 --range",
    "load --page framework-youtube --rows 12",
    "browsers",
    "transports mp-quic-2018",
    "page show rust-book",
    "page predict sphinx-manual",
    "scenario show dsl+lte",
];

fn printed(command: &str, columns: usize, more: &[&str]) -> String {
    let experiments = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
    let command_with_paths = command.replace("EXPERIMENTS", experiments);
    let mut quipu = Command::new(env!("CARGO_BIN_EXE_quipu"));
    quipu.args(command_with_paths.split(' ')).args(more);
    quipu.env("COLUMNS", columns.to_string()).env_remove("NO_COLOR");
    // Some write results beside what they print.
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    quipu.current_dir(folder.path());
    let output = quipu.output().unwrap_or_else(|error| panic!("{command}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.is_empty(), "{command}: {error}");
    text
}

fn longest(text: &str) -> &str {
    text.lines().max_by_key(|line| line.chars().count()).unwrap_or_default()
}

#[test]
fn no_line_is_longer_than_the_terminal() {
    for command in COMMANDS {
        for columns in [80, 120] {
            let text = printed(command, columns, &[]);
            let longest = longest(&text);
            assert!(longest.chars().count() <= columns, "{command}, {columns}: {longest}");
            assert!(!text.contains('\x1b'), "{command}");
        }
    }
}

#[test]
fn no_line_of_help_is_longer_than_the_terminal() {
    let all = [
        "",
        "compare",
        "cost",
        "load",
        "run",
        "sweep",
        "scenario",
        "scenario check",
        "reproduce",
        "report",
        "page",
        "page record",
        "page infer",
        "page self-test",
        "perf server",
        "fetch",
        "serve",
        "perf client",
        "paths",
        "schedulers",
        "completions",
    ];
    for command in all {
        for columns in [80, 120] {
            let mut words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
            words.push("--help");
            let text = printed(&words.join(" "), columns, &[]);
            let longest = longest(&text);
            assert!(longest.chars().count() <= columns, "{command}, {columns}: {longest}");
        }
    }
}

#[test]
fn screens_are_as_they_were() {
    for command in KEPT {
        for columns in [80, 120] {
            let name = command.replace([' ', '-', '+'], "_");
            insta::assert_snapshot!(format!("{name}_{columns}"), printed(command, columns, &[]));
        }
    }
}

#[test]
fn wide_prints_all_columns_and_colours_are_printed_on_request() {
    let compare = "compare --page framework-google --runs 2";
    let wide = printed(compare, 80, &["--wide"]);
    assert!(wide.contains("p95") && !wide.contains("not shown"), "{wide}");
    assert!(printed(compare, 80, &[]).contains("not shown: "));
    assert!(printed(compare, 80, &["--color", "always"]).contains("\x1b[32m"));
    assert!(!printed(compare, 80, &["--color", "never"]).contains('\x1b'));
}

#[test]
fn what_lists_compares_or_judges_is_json_and_csv_too() {
    for command in [
        "pages",
        "networks",
        "traces",
        "browsers",
        "transports",
        "schedulers",
        "reproduce --list",
        "compare --page framework-google --runs 2",
        "page predict sphinx-manual",
        "page self-test --pages 1",
        "reproduce ns3-edf --quick",
    ] {
        let text = printed(command, 80, &["--format", "json"]);
        let value: Result<serde_json::Value, _> = serde_json::from_str(&text);
        assert!(value.is_ok_and(|value| !value.is_null()), "{command}: {text}");
        let text = printed(command, 80, &["--format", "csv"]);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows = reader.records().collect::<Result<Vec<_>, _>>();
        assert!(rows.is_ok_and(|rows| !rows.is_empty()), "{command}: {text}");
    }
}

#[test]
fn shells_complete_and_man_has_pages() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(printed(&format!("completions {shell}"), 80, &[]).contains("compare"), "{shell}");
    }
    assert!(printed("man", 80, &[]).contains(".TH quipu"));
}
