//! `docs/write-a-scheduler.md`, followed to the letter: its code is the example, its commands run.
#![expect(clippy::panic, reason = "a helper of tests is allowed to stop them")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn guide() -> String {
    read("docs/write-a-scheduler.md")
}

fn read(file: &str) -> String {
    let path = root().join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The blocks of `text` that are fenced as `language`.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        match &mut open {
            Some(_) if line == "```" => blocks.extend(open.take()),
            Some(block) => *block += &format!("{line}\n"),
            None if line == format!("```{language}") => open = Some(String::new()),
            None => {}
        }
    }
    blocks
}

/// Every command of the guide, as words.
fn commands() -> Vec<Vec<String>> {
    let blocks = blocks(&guide(), "sh");
    let lines = blocks.iter().flat_map(|block| block.lines());
    lines.map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

/// The example as `cargo test` built it, beside the command; built now if it was left out.
fn example(name: &str) -> PathBuf {
    let command = Path::new(env!("CARGO_BIN_EXE_quipu"));
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let example = command.with_file_name("examples").join(file);
    if !example.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        let status = cargo.args(["build", "--example", name]).current_dir(root()).status();
        assert!(status.expect("cargo starts").success());
    }
    example
}

/// Runs what a command of the guide runs, in the profile of the tests: what it prints is the same.
/// `.ci/run guide` runs the commands as they stand.
fn run(words: &[String]) -> Output {
    let split = words.iter().position(|word| word == "--").expect("arguments after --");
    let program = match words[..split].join(" ").as_str() {
        "cargo run --release" => PathBuf::from(env!("CARGO_BIN_EXE_quipu")),
        "cargo run --release -p quipu-cli --example my_scheduler"
        | "cargo run --profile edit -p quipu-cli --example my_scheduler" => example("my_scheduler"),
        other => panic!("{other}"),
    };
    let arguments = &words[split + 1..];
    Command::new(program).args(arguments).current_dir(root()).output().expect("it starts")
}

fn printed(words: &[String]) -> String {
    let output = run(words);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn the_code_of_the_guide_is_the_example_and_short() {
    let code = blocks(&guide(), "rust");
    assert_eq!(code, [read("examples/my_scheduler.rs")]);
    assert!(code[0].lines().count() < 40, "{} lines", code[0].lines().count());
}

#[test]
fn every_command_of_the_guide_does_what_it_says() {
    let commands = commands();
    let mut tables = 0;
    for words in &commands {
        let text = printed(words);
        let has = |word: &str| words.iter().any(|given| given == word);
        if has("compare") {
            tables += 1;
            assert!(text.contains("Ratio to "), "{text}");
        }
        if has("--example") && has("compare") {
            assert!(text.contains("wrr + my-scheduler"), "{text}");
            assert!(text.contains("wrr + minrtt"), "{text}");
            assert!(!text.contains("Failed"), "{text}");
        }
        if has("--check") {
            assert!(text.contains("my-scheduler (path) keeps the rules of the seam"), "{text}");
        }
    }
    assert!(tables >= 3 && commands.len() >= 6, "{commands:?}");
}

#[test]
fn files_that_the_guide_points_at_exist() {
    let guide = guide();
    let links = guide.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let mut seen = 0;
    for link in links {
        let file = link.split('#').next().unwrap_or(link);
        assert!(root().join("docs").join(file).exists(), "{link}");
        seen += 1;
    }
    assert!(seen >= 6);
}

/// What the example with chance prints.
fn lottery(arguments: &[&str]) -> String {
    let output = Command::new(example("my_lottery")).args(arguments).current_dir(root()).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn a_scheduler_with_chance_stands_the_rules_and_draws_the_same_on_any_number_of_threads() {
    let checked = lottery(&["schedulers", "my-lottery", "--check"]);
    assert!(checked.contains("keeps the rules of the seam"), "{checked}");
    let compare = |seed: &str, jobs: &str| {
        let words =
            "compare --page framework-youtube --stream rr --path my-lottery,minrtt --runs 4";
        let words: Vec<&str> = words.split(' ').collect();
        lottery(&[&words[..], &["--seed", seed, "--jobs", jobs]].concat())
    };
    let one = compare("1", "1");
    assert_eq!(one, compare("1", "3"));
    assert_ne!(one, compare("2", "3"), "chance follows the seed");
}

/// A crate of one's own is built as this workspace is: Cargo reads profiles at the top alone.
#[test]
fn the_manifest_of_the_guide_has_the_release_profile_of_the_workspace() {
    let manifest = blocks(&guide(), "toml").concat();
    let workspace = read("Cargo.toml");
    let profile = |text: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|line| *line != "[profile.release]");
        lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    assert_eq!(profile(&manifest), profile(&workspace));
    assert!(!profile(&manifest).is_empty());
}
