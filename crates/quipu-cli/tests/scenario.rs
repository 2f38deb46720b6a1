//! `quipu scenario` as a user meets it, and faults of scenario files with line and column.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn quipu(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// A folder with the files of these names and contents.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).expect("a file");
    }
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn experiments() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut files = Vec::new();
    for paper in std::fs::read_dir(root).expect("a folder") {
        let paper = paper.expect("an entry").path();
        if paper.is_dir() {
            let entries = std::fs::read_dir(paper).expect("a folder");
            files.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
    }
    files.retain(|file| file.extension().is_some_and(|ending| ending == "toml"));
    files
}

const NETWORK: &str = "[[networks]]\nname = \"n\"\n";

/// Files with one fault, and what is said of it.
fn faults() -> Vec<(String, &'static str)> {
    let link =
        |fields: &str| format!("{NETWORK}paths = [{{ name = \"p\", down = {{ {fields} }} }}]\n");
    let plain = |text: &str| text.to_owned();
    vec![
        // No TOML.
        (plain("runs = = 3\n"), "a.toml:1:8: extra `=`"),
        (plain("runs = 3\nseed\n"), "a.toml:2:5: key with no value"),
        (plain("runs = 3\nruns = 4\n"), "a.toml:2:1: duplicate key"),
        (plain("[policies\n"), "a.toml:1:10: unclosed table"),
        // Unknown fields.
        (
            plain("seed = 1\nrnus = 3\n"),
            "a.toml:2:1: rnus: no such field; expected one of seed, runs",
        ),
        (
            plain("[transport]\ninitial_windw = 3\n"),
            "a.toml:2:1: transport.initial_windw: no such field",
        ),
        (
            link("rate = \"1mbit\", dealy = \"1ms\", delay = \"1ms\""),
            "a.toml:3:49: networks[0].paths[0].down.dealy: no such field",
        ),
        // Other types and forms.
        (
            plain("runs = \"many\"\n"),
            "a.toml:1:8: runs: \"many\"; expected a whole number, 1 to 10000",
        ),
        (plain("runs = 0\n"), "a.toml:1:8: runs: 0; expected "),
        (plain("pages = \"cnn\"\n"), "a.toml:1:9: pages: \"cnn\"; expected a list"),
        (plain("host_jitter = \"-1us\"\n"), "a.toml:1:15: host_jitter: `-1us`; expected a time"),
        (plain("discovery = \"recoded\"\n"), "did you mean `recorded`?"),
        (
            plain("[policies]\nbaselines = \"no\"\n"),
            "a.toml:2:13: policies.baselines: \"no\"; expected true or false",
        ),
        (
            plain("[transport]\nstart = \"warm:0\"\n"),
            "a.toml:2:9: transport.start: `warm:0`; expected cold, paths-ready, or warm:N",
        ),
        (plain("networks = [\"wifi+lt\"]\n"), "did you mean `wifi+lte`?"),
        (
            link("rate = \"30mbt\", delay = \"1ms\""),
            "a.toml:3:40: networks[0].paths[0].down.rate: `30mbt`; expected a rate",
        ),
        (
            link("rate = \"1mbit\", delay = \"1ms\", loss = \"101%\""),
            "networks[0].paths[0].down.loss: `101%`; expected a share",
        ),
        (
            link("rate = \"1mbit\""),
            "a.toml:3:31: networks[0].paths[0].down.delay: missing; expected delay: a time",
        ),
        (
            format!("{NETWORK}paths = [{{ name = \"p\" }}]\n"),
            "a.toml:3:10: networks[0].paths[0].down: missing; expected down: a table",
        ),
        (
            plain("[[flows]]\nstart = \"1s\"\n"),
            "a.toml:1:1: flows[0].name: missing; expected a name",
        ),
        (plain("[[cross]]\nname = \"c\"\n"), "a.toml:1:1: cross[0].rate: missing; expected a rate"),
        // What is known only later.
        (plain("browser = \"crome\"\n"), "a.toml:1:11: browser: `crome`; expected "),
        (plain("pages = [\"wikipeda\"]\n"), "a.toml:1:10: pages[0]: `wikipeda`; expected a page: "),
        (
            plain("pages = [\"nowhere.har\"]\n"),
            "a.toml:1:10: pages[0]: cannot read page nowhere.har",
        ),
        (plain("pages = [\"cnn\", \"cnn\"]\n"), "a.toml:1:17: pages[1]: cnn twice"),
        (
            plain("http = \"h3\"\npush = \"images\"\n"),
            "a.toml:2:8: push: images; expected none over h3",
        ),
        (plain("series = \"1us\"\n"), "a.toml:1:10: series: 1us; expected 10us or more"),
        (
            plain("[policies]\nstream = [\"rr\", \"dwr\"]\n"),
            "a.toml:2:17: policies.stream[1]: `dwr`; expected a stream policy: ",
        ),
        (
            plain("[policies]\npath = [\"ecf:bta=1\"]\n"),
            "a.toml:2:9: policies.path[0]: ecf has no parameter `bta`; expected one of beta",
        ),
        (
            plain("[policies]\npath = [\"ecf:beta=-1\"]\n"),
            "a.toml:2:9: policies.path[0]: ecf: beta=-1; expected ",
        ),
        (
            plain("[policies]\nstream = []\n"),
            "a.toml:2:10: policies.stream: empty; expected at least one",
        ),
        (
            plain("[transport]\nudp_payload = \"100B\"\n"),
            "a.toml:2:15: transport.udp_payload: 100B; expected 1200B to 65527B",
        ),
        (
            plain("http = \"raw\"\n[raw]\nsplit = [\"2kB\", \"1kB\"]\n"),
            "a.toml:3:9: raw.split: 2000B+1000B; expected sizes above zero in ascending order",
        ),
        (
            link("rate = \"1mbit\", delay = \"1ms\", jitter = \"2ms\""),
            "networks[0].paths[0].down.jitter: 2.000 ms; expected",
        ),
        (
            format!("{NETWORK}paths = [{{ name = \"p\", bottleneck = \"q\" }}]\n"),
            "a.toml:3:37: networks[0].paths[0].bottleneck: ",
        ),
        (
            plain("[[flows]]\nname = \"f\"\npaths = [\"wify\"]\n"),
            "a.toml:3:10: flows[0].paths[0]: `wify`; expected a path: wifi",
        ),
        (
            plain("[[flows]]\nname = \"f\"\nstart = \"2s\"\nstop = \"1s\"\n"),
            "a.toml:4:8: flows[0].stop: 1s; expected later than its start, 2s",
        ),
        (
            plain("[[flows]]\nname = \"f\"\ncongestion = \"cubik\"\n"),
            "a.toml:3:14: flows[0].congestion: `cubik`; expected a congestion policy",
        ),
        (
            plain("[[cross]]\nname = \"c\"\nrate = \"1mbit\"\npath = 7\n"),
            "a.toml:4:8: cross[0].path: `7`; expected a path: wifi",
        ),
        (
            plain("measure = { from = \"2s\", until = \"1s\" }\n"),
            "a.toml:1:34: measure.until: 1s; expected later than measure.from, 2s",
        ),
    ]
}

#[test]
fn every_fault_has_its_place_in_check_and_run_alike() {
    for (text, expected) in faults() {
        let folder = folder(&[("a.toml", &text)]);
        let run = quipu(folder.path(), &["run", "a.toml", "--out", "results"]);
        let told = stderr(&run);
        assert_eq!(run.status.code(), Some(2), "{text}: {told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(told.starts_with("error: a.toml:"), "{text}\n{told}");
        assert!(told.contains(expected), "{text}\n{told}\n{expected}");
        assert_eq!(names(folder.path()), ["a.toml"], "nothing is written");
        let check = quipu(folder.path(), &["scenario", "check", "a.toml"]);
        assert_eq!(check.status.code(), Some(2), "{text}");
        let report = stdout(&check);
        assert!(report.contains(expected), "{text}\n{report}\n{expected}");
        assert!(
            report.lines().last().is_some_and(|line| line.trim_end().ends_with('^')),
            "{report}"
        );
        assert_eq!(stderr(&check), "error: 1 fault in a.toml\n", "{report}");
    }
}

#[test]
fn check_shows_every_fault_with_its_line() {
    let text = "rnus = 3\n[policies]\nstream = [\"dwr\"]\n[transport]\nack_every = 0 # none\n";
    let folder = folder(&[("a.toml", text), ("b.toml", "pages = [\"sitespeed\"]\n")]);
    let output = quipu(folder.path(), &["scenario", "check", "a.toml", "b.toml"]);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!("check", stdout(&output));
    assert_eq!(stderr(&output), "error: 3 faults in a.toml\n");
}

#[test]
fn findings_can_be_read_by_programs() {
    let folder = folder(&[("a.toml", "runs = 0\n")]);
    let output = quipu(folder.path(), &["scenario", "check", "a.toml", "--format", "json"]);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!("check_json", stdout(&output));
    let fine = quipu(folder.path(), &["scenario", "check", "b.toml", "--format", "json"]);
    assert_eq!(fine.status.code(), Some(2), "a file that is not there");
    std::fs::write(folder.path().join("b.toml"), "").expect("a file");
    let fine = quipu(folder.path(), &["scenario", "check", "b.toml", "--format", "json"]);
    assert_eq!((fine.status.code(), stdout(&fine).as_str()), (Some(0), "[]\n"));
}

#[test]
fn all_experiments_are_fine() {
    let files: Vec<String> = experiments().iter().map(|file| file.display().to_string()).collect();
    let arguments: Vec<&str> =
        ["scenario", "check"].into_iter().chain(files.iter().map(String::as_str)).collect();
    let output = quipu(Path::new("."), &arguments);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains(": fine: ")).count(), files.len());
    let fig4 = text.lines().find(|line| line.contains("ns3-fig4.toml")).expect("a line");
    assert!(fig4.ends_with(": fine: 0 pages x 1 network x 1 policy x 5 runs"), "{fig4}");
}

#[test]
fn pages_are_checked_in_their_own_files() {
    let whole = "{\"log\": {\n  \"entries\": [\n    {\"request\": 7}\n  ]\n}}\n";
    let cut = "{\"log\": {\n  \"entries\": [\n    {\"request\": {\"url\": \"https";
    let misspelt = "{\"log\": {\"entires\": []}}";
    for (content, expected) in [
        (whole, "p.har:3:"),
        (whole, ": log.entries[0].request: not a HAR file: "),
        (cut, "p.har:3:"),
        (cut, ": log.entries[0].request.url: the file ends in the middle"),
        (misspelt, "log.entries: the file has no entries; did you mean `entires`?"),
        (
            "{\"lgo\": 1}",
            "log: not a HAR file: no field `log` in the outer object; did you mean `lgo`?",
        ),
        ("nothing", "p.har:1:"),
    ] {
        let folder = folder(&[("p.har", content), ("a.toml", "pages = [\"p.har\"]\nruns = 1\n")]);
        for arguments in [&["scenario", "check", "a.toml"][..], &["run", "a.toml"]] {
            let output = quipu(folder.path(), arguments);
            assert_eq!(output.status.code(), Some(2));
            let told = stdout(&output) + &stderr(&output);
            assert!(told.contains(expected), "{expected}\n{told}");
        }
    }
}

#[test]
fn networks_are_checked_in_their_own_files() {
    let network =
        "name = \"n\"\npaths = [{ name = \"p\", down = { rate = \"1mbt\", delay = \"1ms\" } }]\n";
    let files = [("n.toml", network), ("a.toml", "networks = [\"n.toml\"]\n")];
    let folder = folder(&files);
    let expected = "n.toml:2:40: paths[0].down.rate: `1mbt`; expected a rate";
    for arguments in [
        &["scenario", "check", "a.toml"][..],
        &["run", "a.toml"],
        &["compare", "--network", "n.toml"],
    ] {
        let output = quipu(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2));
        let told = stdout(&output) + &stderr(&output);
        assert!(told.contains(expected), "{expected}\n{told}");
    }
}

#[test]
fn an_option_is_the_place_of_what_it_set() {
    let folder = folder(&[("a.toml", "runs = 3\npages = [\"sitespeed\"]\n")]);
    for (arguments, expected) in [
        (&["run", "a.toml", "--runs", "0"][..], "error: --runs 0: runs: 0; expected 1 to 10000"),
        (
            &["run", "a.toml", "--initial-window=0"],
            "error: --initial-window 0: transport.initial_window: 0; expected 1 to 10000",
        ),
        (
            &["compare", "--scenario", "a.toml", "--stream", "rr,dwr"],
            "error: --stream rr,dwr: policies.stream[1]: `dwr`; expected a stream policy: ",
        ),
        (
            &["compare", "--page", "wikipeda"],
            "error: --page: pages[0]: `wikipeda`; expected a page: ",
        ),
        (&["compare", "--network", "lt"], "error: --network: networks: `lt`; expected a network: "),
        (
            &["compare", "--link", "rate=1mbit,delay=1ms,jitter=2ms"],
            "error: --link: networks[0].paths[0].down.jitter: 2.000 ms; expected",
        ),
    ] {
        let output = quipu(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2));
        let told = stderr(&output);
        assert!(told.starts_with(expected), "{expected}\n{told}");
    }
}

#[test]
fn files_that_cannot_be_read_are_told() {
    let folder = folder(&[]);
    let output = quipu(folder.path(), &["scenario", "check", "nowhere.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).starts_with("cannot read nowhere.toml: "), "{}", stdout(&output));
    let output = quipu(folder.path(), &["scenario", "check"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn networks_are_drawn_from_files_and_by_name() {
    let text = format!(
        "pages = []\n[[networks]]\nname = \"one\"\npaths = [{0}]\n[[networks]]\nname = \"two\"\n\
         paths = [{0}]\n[[flows]]\nname = \"bulk\"\n",
        "{ name = \"p\", down = { rate = \"1mbit\", delay = \"1ms\" } }"
    );
    let folder = folder(&[("a.toml", &text)]);
    let drawn = |arguments: &[&str]| {
        let output = quipu(folder.path(), &[&["scenario", "show"], arguments].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let both = drawn(&["a.toml"]);
    assert!(both.starts_with("one\n") && both.contains("\n\ntwo\n"), "{both}");
    assert!(both.contains("flow bulk: down over all paths"), "{both}");
    let two = drawn(&["a.toml", "--network", "two", "--ascii"]);
    assert!(two.starts_with("two\n") && two.is_ascii() && !two.contains("one\n"), "{two}");
    assert!(drawn(&["wifi+lte"]).contains("55mbit 15ms"));
    for (arguments, expected) in [
        (&["scenario", "show", "wifi+lt"][..], "did you mean `wifi+lte`?"),
        (&["scenario", "show", "a.toml", "--network", "twoo"], "did you mean `two`?"),
        (&["scenario", "show", "nowhere.toml"], "cannot read nowhere.toml"),
    ] {
        let output = quipu(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

#[test]
fn the_schema_and_the_fields_are_printed() {
    let folder = folder(&[]);
    let published = |name: &str| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        std::fs::read_to_string(root.join(name)).expect("a file")
    };
    let schema = stdout(&quipu(folder.path(), &["scenario", "schema"]));
    assert!(schema == published("scenario.schema.json"));
    let fields = stdout(&quipu(folder.path(), &["scenario", "fields"]));
    assert!(published("scenarios.md").ends_with(&fields));
    assert!(fields.contains("| `visible_images` | whole number, 0 to 1000 | `5` |"));
}
