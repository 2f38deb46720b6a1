//! Results with files of their own repeat to the byte wherever they are, and notice a file that was replaced.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const HAR: &str = include_str!("../../quipu-web/tests/data/www.google.com-2017.har");

const NETWORK: &str = "\
name = \"drive\"
paths = [
    { name = \"one\", down = { trace = \"../traces/one/cell.csv\", delay = \"20ms\", from = \"random\" } },
    { name = \"two\", down = { trace = \"../traces/two/cell.csv\", delay = \"30ms\", from = \"random\" } },
]
";

const SCENARIO: &str = "\
pages = [\"pages/mine.har\", \"recorded\"]
networks = [
    \"networks/drive.toml\",
    { name = \"still\", paths = [{ name = \"a\", down = { trace = \"traces/one/cell.up\", delay = \"5ms\" } }] },
]
runs = 2

[policies]
stream = [\"rr\"]
path = [\"minrtt\"]
";

fn quipu(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.args(arguments).current_dir(folder).output().expect("the program starts")
}

fn done(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder `study` with a scenario, a sweep, and all files that they name.
fn study() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let put = |name: &str, text: &str| {
        let file = folder.path().join("study").join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    };
    put("pages/mine.har", HAR);
    // A file is taken for a page whatever it is called.
    put("recorded", &HAR.replace("/gen_204", "/gen_other"));
    put("traces/one/cell.csv", "time_s,mbps\n0,8\n1,4\n2,12\n");
    put("traces/two/cell.csv", "time_s,mbps\n0,3\n1,9\n2,1\n");
    put("traces/one/cell.up", "0\n1\n2\n3\n");
    put("networks/drive.toml", NETWORK);
    put("a.toml", SCENARIO);
    let sweep = "\n[sweep]\n\"networks.still.paths.a.down.trace\" = [\"traces/one/cell.up\", \"traces/two/cell.csv\"]\n";
    put("sweep.toml", &format!("{SCENARIO}{sweep}"));
    folder
}

/// Every file below `folder` but those of a store.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                let name = path.strip_prefix(folder).expect("a name below").to_owned();
                found.insert(name, fs::read(path).expect("a file"));
            } else if !path.ends_with("store") {
                folders.push(path);
            }
        }
    }
    found
}

fn same(one: &Path, other: &Path) {
    let (one, other) = (files(one), files(other));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, bytes) in &one {
        assert!(other[name] == *bytes, "{} differs", name.display());
    }
}

/// Moves the result `out` to another folder and removes all that it was made from.
fn moved(folder: &Path) -> PathBuf {
    let place = folder.join("elsewhere/kept");
    fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
    fs::rename(folder.join("out"), &place).expect("a moved folder");
    fs::remove_dir_all(folder.join("study")).expect("a removed folder");
    place
}

#[test]
fn a_result_that_was_moved_repeats_to_the_byte_from_its_own_copies() {
    let folder = study();
    let here = folder.path();
    done(&quipu(here, &["run", "study/a.toml", "--out", "out"]));
    let kept = moved(here);
    let names: Vec<_> = files(&kept.join("inputs")).into_keys().collect();
    let expected = ["1/mine.har", "2/recorded", "3/cell.csv", "3/cell.up", "4/cell.csv"];
    assert_eq!(names, expected.map(PathBuf::from));
    let scenario = fs::read_to_string(kept.join("scenario.toml")).expect("a scenario");
    assert!(!scenario.contains(&here.display().to_string()), "{scenario}");

    done(&quipu(&here.join("elsewhere"), &["run", "kept/scenario.toml", "--out", "again"]));
    same(&kept, &here.join("elsewhere/again"));
    // In its own place too.
    done(&quipu(&kept, &["run", "scenario.toml", "--out", ".", "--force"]));
    same(&kept, &here.join("elsewhere/again"));
    done(&quipu(here, &["report", "elsewhere/kept", "--out", "report.html"]));
}

#[test]
fn a_file_of_a_result_that_was_replaced_is_noticed() {
    let folder = study();
    let here = folder.path();
    done(&quipu(here, &["run", "study/a.toml", "--runs", "1", "--out", "out"]));
    let kept = moved(here);
    let page = kept.join("inputs/1/mine.har");
    fs::write(&page, HAR.replace("/gen_204", "/gen_strange")).expect("a file");
    let error = refused(&quipu(&kept, &["run", "scenario.toml"]));
    assert!(error.contains("mine.har has the content xxh3:"), "{error}");
    assert!(error.contains("the file has changed since"), "{error}");
    fs::write(&page, HAR).expect("a file");
    fs::write(kept.join("inputs/4/cell.csv"), "time_s,mbps\n0,3\n").expect("a file");
    let error = refused(&quipu(&kept, &["run", "scenario.toml"]));
    assert!(error.contains("cell.csv: has the content xxh3:"), "{error}");
}

#[test]
fn a_sweep_that_was_moved_repeats_to_the_byte_and_makes_no_run_again() {
    let folder = study();
    let here = folder.path();
    done(&quipu(here, &["sweep", "study/sweep.toml", "--out", "out"]));
    let kept = moved(here);
    let before = files(&kept);
    let text = String::from_utf8_lossy(&before[Path::new("runs.csv")]);
    assert!(text.contains(",cell.up,") && text.contains(",cell.csv,"), "{text}");
    let plan = quipu(&kept, &["sweep", "sweep.toml", "--out", ".", "--dry-run"]);
    done(&plan);
    let plan = String::from_utf8_lossy(&plan.stdout);
    assert!(plan.contains("32 are done, 0 are to be made"), "{plan}");
    done(&quipu(here, &["sweep", "elsewhere/kept/sweep.toml", "--out", "again"]));
    same(&kept, &here.join("again"));
}

#[test]
fn an_existing_file_wins_over_the_name_of_a_page() {
    let folder = study();
    let here = folder.path();
    fs::copy(here.join("study/recorded"), here.join("rust-book")).expect("a copy");
    let load = |page: &str| quipu(here, &["load", "--page", page, "--network", "wifi+lte"]);
    let text = |output: Output| String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(text(load("rust-book")), text(load("./rust-book")));
    assert!(text(load("rust-book")).contains("gen_other"));
}

#[test]
fn a_new_scenario_names_the_pages_that_were_given_and_runs() {
    let folder = study();
    let here = folder.path();
    let page = "study/pages/mine.har";
    let new = ["scenario", "new", "study/networks/new.toml", "--page", page, "--runs", "1"];
    done(&quipu(here, &new));
    assert!(refused(&quipu(here, &new)).contains("exists; --force replaces it"));
    done(&quipu(here, &["run", "study/networks/new.toml", "--out", "out"]));
    let runs = fs::read_to_string(here.join("out/runs.csv")).expect("a table");
    assert!(runs.contains("\nmine,mine,"), "{runs}");
}
