//! `quipu sweep` as a user meets it: killed, split and joined, with the same bytes as undisturbed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

const FILE: &str = "\
pages = [\"sitespeed\", \"framework-google\"]
networks = [\"wifi+lte\", \"mobileh2-high-lossy\"]
runs = 3

[policies]
stream = [\"rr\", \"dwrr\"]
path = [\"minrtt\", \"ecf\"]
baselines = false

[sweep]
browser = [\"chrome\", \"firefox\"]
initial_window = [10, 32]
";

/// Runs of the file.
const RUNS: usize = 2 * 2 * 4 * 3 * 4;

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.args(arguments).current_dir(folder);
    command
}

fn quipu(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("the program starts")
}

fn done(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("a.toml"), FILE).expect("a file");
    folder
}

/// Every file of a result but the store.
fn result(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file());
    let read = |path: PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, std::fs::read(path).expect("a file"))
    };
    paths.map(read).collect()
}

fn same(one: &Path, other: &Path) {
    let (one, other) = (result(one), result(other));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, bytes) in &one {
        assert!(other[name] == *bytes, "{name} differs");
    }
}

/// How many runs are kept. None is before the first one has its table.
fn kept(out: &Path) -> u64 {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let database = Connection::open_with_flags(out.join("store/runs.sqlite"), flags);
    let count = |database: Connection| {
        database.query_row("SELECT count(*) FROM runs", [], |row| row.get::<_, i64>(0))
    };
    database.and_then(count).map_or(0, i64::cast_unsigned)
}

/// Kills `child` with no warning as soon as more than `runs` are kept. False if it was done before.
#[expect(
    clippy::disallowed_methods,
    reason = "the process is another one, with a clock of its own"
)]
fn kill_beyond(mut child: Child, out: &Path, runs: u64) -> bool {
    while kept(out) <= runs {
        if child.try_wait().expect("a process").is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("a process that can be killed");
    !child.wait().expect("a process").success()
}

#[test]
fn killed_twice_it_ends_with_the_same_bytes() {
    let folder = folder();
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    let text = done(&quipu(folder.path(), &["sweep", "a.toml", "--out", "whole", "--jobs", "1"]));
    assert!(text.contains(&format!("4 points, {RUNS} of {RUNS} runs in whole")), "{text}");
    let all = kept(&whole);
    assert_eq!(all, RUNS as u64);
    for part in [5, 2] {
        let mut command = command(folder.path(), &["sweep", "a.toml", "--out", "killed"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a process");
        assert!(kill_beyond(child, &killed, all / part), "killed on the way");
        let status = std::fs::read_to_string(killed.join("status.json")).expect("a status");
        assert!(status.contains("\"state\": \"running\""), "{status}");
        assert!(!killed.join("runs.csv").exists());
    }
    let told = done(&quipu(folder.path(), &["sweep", "a.toml", "--out", "killed", "--dry-run"]));
    assert!(!told.contains(": 0 are done"), "what was done before counts: {told}");
    done(&quipu(folder.path(), &["sweep", "a.toml", "--out", "killed", "--jobs", "2"]));
    same(&whole, &killed);
    let status = std::fs::read_to_string(killed.join("status.json")).expect("a status");
    assert!(
        status.contains("\"state\": \"complete\"") && status.contains("\"missing\": 0"),
        "{status}"
    );
    let files = result(&whole);
    for name in
        ["runs.csv", "runs.parquet", "objects.csv", "objects.parquet", "paths.csv", "paths.parquet"]
    {
        assert!(files.contains_key(name), "{name}");
    }
    let runs = String::from_utf8(files["runs.csv"].clone()).expect("UTF-8");
    assert!(
        runs.starts_with("page,network,policy,run,browser,transport.initial_window,visit,client,")
    );
    assert_eq!(runs.lines().count(), RUNS + 1);
    assert!(files["runs.parquet"].starts_with(b"PAR1"));
}

#[test]
fn parts_join_to_the_whole_and_a_larger_file_makes_only_what_is_new() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    done(&quipu(folder.path(), &["sweep", "a.toml", "--out", "whole"]));
    // Two parts in one folder, the third in another.
    for (part, out) in [("1/3", "parts"), ("2/3", "parts"), ("3/3", "third")] {
        let text = done(&quipu(folder.path(), &["sweep", "a.toml", "--out", out, "--shard", part]));
        assert!(text.contains(&format!("part {part}: 0 of its runs are missing")), "{text}");
        assert!(!at(out).join("runs.csv").exists());
    }
    let joined = ["sweep", "a.toml", "--out", "parts", "--from", "third"];
    let told = done(&quipu(folder.path(), &[&joined[..], &["--dry-run"]].concat()));
    assert!(told.contains(&format!("{RUNS} are done, 0 are to be made")), "{told}");
    done(&quipu(folder.path(), &joined));
    same(&at("whole"), &at("parts"));
    // What was taken over stays without the other folder.
    std::fs::remove_dir_all(at("third")).expect("a folder");
    done(&quipu(folder.path(), &["sweep", "a.toml", "--out", "parts"]));
    same(&at("whole"), &at("parts"));

    let larger = FILE
        .replace("runs = 3", "runs = 4")
        .replace("\"chrome\", \"firefox\"", "\"firefox\", \"chrome\"");
    std::fs::write(at("a.toml"), larger).expect("a file");
    let told = done(&quipu(folder.path(), &["sweep", "a.toml", "--out", "parts", "--dry-run"]));
    let new = RUNS / 3;
    assert!(told.contains(&format!("{RUNS} are done, {new} are to be made")), "{told}");
}

#[test]
fn two_at_once_in_one_folder_do_each_other_no_harm() {
    let folder = folder();
    let start = |out: &str| {
        let mut command = command(folder.path(), &["sweep", "a.toml", "--out", out]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a process")
    };
    let both = [start("shared"), start("shared")];
    done(&quipu(folder.path(), &["sweep", "a.toml", "--out", "whole"]));
    for mut child in both {
        assert!(child.wait().expect("a process").success());
    }
    same(&folder.path().join("whole"), &folder.path().join("shared"));
}

#[test]
fn what_is_wrong_is_told_before_anything_runs() {
    let folder = folder();
    let refused = |text: &str, more: &[&str]| {
        std::fs::write(folder.path().join("b.toml"), text).expect("a file");
        let output = quipu(folder.path(), &[&["sweep", "b.toml", "--out", "out"], more].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty() && !folder.path().join("out").exists());
        String::from_utf8_lossy(&output.stderr).trim_end().to_owned()
    };
    let error =
        refused("pages = [\"sitespeed\"]\n[sweep]\nbrowser = [\"chrome\", \"chrom\"]\n", &[]);
    assert!(error.starts_with("error: b.toml:3:1: browser: "), "{error}");
    assert!(error.ends_with("did you mean `chrome`?"), "{error}");
    let error = refused("runs = 3\n", &[]);
    assert!(error.ends_with("expected a table [sweep], which `quipu sweep` needs"), "{error}");
    let error = refused(FILE, &["--shard", "4/3"]);
    assert_eq!(error, "error: --shard `4/3`: expected a part such as 1/4, from 1/4 to 4/4");
    let error = refused(FILE, &["--from", "nothing"]);
    assert!(error.starts_with("error: nothing has no runs of a sweep"), "{error}");
    std::fs::create_dir(folder.path().join("full")).expect("a folder");
    std::fs::write(folder.path().join("full/mine"), "").expect("a file");
    let output = quipu(folder.path(), &["sweep", "a.toml", "--out", "full"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("full is not empty and no result of `quipu sweep`"), "{error}");
}

/// The guide's example is the file that comes with the program, and says what its columns are.
#[test]
fn the_example_of_the_guide_is_as_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = std::fs::read_to_string(root.join("docs/sweeps.md")).expect("the guide");
    let file =
        std::fs::read_to_string(root.join("experiments/sweeps/ratios.toml")).expect("a file");
    let example = file.split_once("[sweep.").expect("a sweep").1;
    assert!(
        guide.contains(&format!("[sweep.{example}")),
        "the guide shows experiments/sweeps/ratios.toml"
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("ratios.toml"), file.replace("runs = 5", "runs = 1"))
        .expect("a file");
    done(&quipu(folder.path(), &["sweep", "ratios.toml", "--out", "out"]));
    let files = result(&folder.path().join("out"));
    let first_line = |name: &str| {
        let text = String::from_utf8(files[name].clone()).expect("UTF-8");
        text.lines().next().unwrap_or_default().to_owned()
    };
    assert!(
        first_line("runs.csv")
            .starts_with("page,network,policy,run,rate_ratio,delay_ratio,visit,client,")
    );
    assert!(first_line("networks.csv").starts_with("network,rate_ratio,delay_ratio,path,name,"));
    assert_eq!(
        first_line("points.csv"),
        "point,rate_ratio,delay_ratio,runs_planned,runs_finished,runs_failed"
    );
    for name in files.keys() {
        assert!(guide.contains(&format!("`{name}`")), "the guide tells of {name}");
    }
    let again = ["sweep", "out/sweep.toml", "--out", "again"];
    done(&quipu(folder.path(), &again));
    same(&folder.path().join("out"), &folder.path().join("again"));
}

#[test]
fn paths_alone_are_rows_of_every_point_and_told_where_they_are_faster() {
    let folder = folder();
    let file = "pages = [\"sitespeed\"]\nnetworks = [\"wifi+lte\"]\nruns = 2\n\
                [policies]\nstream = [\"rr\"]\n[sweep]\n\
                \"networks.*.paths.wifi.*.delay\" = [\"5ms\", \"15ms\", \"25ms\"]\n";
    std::fs::write(folder.path().join("alone.toml"), file).expect("a file");
    done(&quipu(folder.path(), &["sweep", "alone.toml", "--out", "out"]));
    let read = |name: &str| {
        std::fs::read_to_string(folder.path().join("out").join(name)).expect("a file of the sweep")
    };
    // LTE is the same at every point, so that its runs were made once.
    assert_eq!(kept(&folder.path().join("out")), 2 * (3 + 3 + 1));
    let runs = read("runs.csv");
    assert_eq!(runs.lines().filter(|row| row.contains(",lte alone,")).count(), 6);
    let summary: serde_json::Value = serde_json::from_str(&read("summary.json")).expect("JSON");
    let told = summary["faster_alone"].as_array().expect("a list");
    let points: Vec<_> =
        told.iter().map(|it| (it["point"].as_u64(), it["path"].as_str())).collect();
    assert_eq!(points, [(Some(1), Some("lte")), (Some(2), Some("lte"))]);
    assert_eq!(told[1]["fields"]["networks.*.paths.wifi.*.delay"], "25ms");
}
